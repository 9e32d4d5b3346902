//! Random roles, bindings and requests, decided by a real kube-apiserver and by the hub, and compared.
//!
//! `MAILBOAT_SCRIPTS` says how many sets of rules are drawn, `MAILBOAT_SEED` with which number they begin.

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::client::Body;
use mailboat_hub::access::rbac::escalation::Escalation;
use mailboat_hub::access::rbac::{GROUP, bootstrap};
use mailboat_hub::access::{Rights, User, review};
use mailboat_machinery::{Random, Seeded};
use mailboat_object::ClusterId;
use mailboat_testkit::{ADMIN, EdgeSpec, World, wait_until};
use serde_json::{Value, json};

/// How many sets of rules are drawn.
const SETS: u64 = 8;
/// How many questions are asked about each.
const QUESTIONS: usize = 40;
/// How many roles and bindings a user tries to write about each.
const GRANTS: usize = 15;

const VERBS: &[&str] = &["get", "list", "bind", "escalate", "*"];
const GROUPS: &[&str] = &["", GROUP, "*"];
const RESOURCES: &[&str] =
    &["pods", "pods/log", "deployments", "deployments/scale", "*/scale", "roles", "clusterroles", "*"];
const NAMES: &[&str] = &["one", "two"];
const PATHS: &[&str] = &["/healthz", "/metrics", "/apis/*", "/a*", "*"];
const NAMESPACES: &[&str] = &["dock", "sea"];
const TEAMS: &[&str] = &["crew", "guests"];

struct Draw(Seeded);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn some(&mut self, of: &[&str]) -> Vec<String> {
        let count = 1 + self.below(3);
        (0..count).map(|_| self.one(of).to_owned()).collect()
    }

    fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn rule(&mut self, paths: bool) -> Value {
        if paths && self.chance(4) {
            return json!({ "nonResourceURLs": self.some(PATHS), "verbs": self.some(VERBS) });
        }
        let mut rule = json!({ "apiGroups": self.some(GROUPS), "resources": self.some(RESOURCES), "verbs": self.some(VERBS) });
        if self.chance(4) {
            rule["resourceNames"] = json!(self.some(NAMES));
        }
        rule
    }

    fn rules(&mut self, paths: bool) -> Value {
        let count = 1 + self.below(2);
        (0..count).map(|_| self.rule(paths)).collect()
    }

    fn subject(&mut self, set: u64) -> Value {
        match self.below(3) {
            0 => json!({ "kind": "User", "apiGroup": GROUP, "name": self.user(set) }),
            1 => json!({ "kind": "Group", "apiGroup": GROUP, "name": format!("{}-{set}", self.one(TEAMS)) }),
            _ => {
                json!({ "kind": "ServiceAccount", "name": format!("boat-{set}"), "namespace": self.one(NAMESPACES) })
            }
        }
    }

    fn user(&mut self, set: u64) -> String {
        format!("{}-{set}", self.one(&["alice", "bob"]))
    }

    fn question(&mut self, set: u64) -> Value {
        let mut spec = if self.chance(5) {
            json!({ "nonResourceAttributes": { "path": self.one(&["/healthz", "/apis/apps", "/ab", "/metrics", "/"]), "verb": self.one(VERBS) } })
        } else {
            let resource = self.one(RESOURCES);
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let mut asked = json!({
                "verb": self.one(VERBS), "group": self.one(GROUPS), "resource": resource, "subresource": subresource,
            });
            if !self.chance(3) {
                asked["namespace"] = self.one(NAMESPACES).into();
            }
            if self.chance(2) {
                asked["name"] = self.one(NAMES).into();
            }
            json!({ "resourceAttributes": asked })
        };
        spec["user"] = match self.below(3) {
            0 => format!("system:serviceaccount:{}:boat-{set}", self.one(NAMESPACES)).into(),
            _ => self.user(set).into(),
        };
        spec["groups"] = match self.below(4) {
            0 => json!([]),
            1 => json!([self.one(TEAMS)]),
            _ => json!([format!("{}-{set}", self.one(TEAMS)), "system:authenticated"]),
        };
        json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec })
    }
}

/// One server, asked with raw requests.
struct Server(kube::Client);

impl Server {
    async fn post(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> (u16, Value) {
        let mut request = http::Request::builder().method("POST").uri(path);
        request = request.header("accept", "application/json").header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_string().into_bytes())).unwrap();
        let answer = self.0.send(request).await.unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn allows(&self, question: &Value) -> Value {
        let (code, answer) =
            self.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", question, &[]).await;
        assert_eq!(code, 201, "{answer}");
        answer["status"].clone()
    }
}

/// A role or binding on both sides.
struct Grant {
    resource: &'static str,
    namespace: String,
    body: Value,
}

impl Grant {
    fn new(resource: &'static str, namespace: &str, name: &str, content: &Value) -> Self {
        let kind = match resource {
            "clusterroles" => "ClusterRole",
            "roles" => "Role",
            "clusterrolebindings" => "ClusterRoleBinding",
            _ => "RoleBinding",
        };
        let mut body =
            json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": { "name": name } });
        for (member, value) in content.as_object().unwrap() {
            body[member] = value.clone();
        }
        Self { resource, namespace: namespace.to_owned(), body }
    }

    fn path(&self) -> String {
        let Self { resource, namespace, .. } = self;
        match namespace.as_str() {
            "" => format!("/apis/{GROUP}/v1/{resource}"),
            namespace => format!("/apis/{GROUP}/v1/namespaces/{namespace}/{resource}"),
        }
    }

    async fn write(&self, server: &Server, rights: &mut Rights) {
        let (code, answer) = server.post(&self.path(), &self.body, &[]).await;
        assert_eq!(code, 201, "{answer}");
        let name = self.body["metadata"]["name"].as_str().unwrap();
        rights.set(&here(), self.resource, &self.namespace, name, Some(&self.body));
    }
}

fn here() -> ClusterId {
    ClusterId::new("here")
}

fn binding(kind: &str, role: &str, subjects: &Value) -> Value {
    json!({ "roleRef": { "apiGroup": GROUP, "kind": kind, "name": role }, "subjects": subjects })
}

fn drawn(draw: &mut Draw, set: u64) -> Vec<Grant> {
    let mut grants = Vec::new();
    for number in 0..4 {
        let name = format!("r{set}-{number}");
        let rules = json!({ "rules": draw.rules(true) });
        grants.push(Grant::new("clusterroles", "", &name, &rules));
        let rules = json!({ "rules": draw.rules(false) });
        grants.push(Grant::new("roles", draw.one(NAMESPACES), &name, &rules));
    }
    for number in 0..4 {
        let name = format!("b{set}-{number}");
        // One in five names a role that is not there.
        let role = format!("r{set}-{}", draw.below(5));
        let subjects = json!([draw.subject(set), draw.subject(set)]);
        let content = binding("ClusterRole", &role, &subjects);
        grants.push(Grant::new("clusterrolebindings", "", &name, &content));
        let kind = draw.one(&["Role", "ClusterRole"]);
        let content = binding(kind, &role, &json!([draw.subject(set)]));
        grants.push(Grant::new("rolebindings", draw.one(NAMESPACES), &name, &content));
    }
    // Whoever tries to write roles below may do so as such.
    let rules = json!({ "rules": [{ "apiGroups": [GROUP], "resources": ["*"], "verbs": ["create"] }] });
    grants.push(Grant::new("clusterroles", "", &format!("writer-{set}"), &rules));
    let team = json!([{ "kind": "Group", "apiGroup": GROUP, "name": format!("writers-{set}") }]);
    let content = binding("ClusterRole", &format!("writer-{set}"), &team);
    grants.push(Grant::new("clusterrolebindings", "", &format!("writer-{set}"), &content));
    // The last of each resource: when they take effect, everything before has.
    let rules = json!({ "rules": [{ "apiGroups": [""], "resources": ["beacons"], "verbs": ["get"] }] });
    let name = format!("last-{set}");
    let subject = json!([{ "kind": "User", "apiGroup": GROUP, "name": name }]);
    let (of_cluster, of_namespace) =
        (binding("ClusterRole", &name, &subject), binding("Role", &name, &subject));
    grants.push(Grant::new("clusterroles", "", &name, &rules));
    grants.push(Grant::new("roles", "dock", &name, &rules));
    grants.push(Grant::new("clusterrolebindings", "", &name, &of_cluster));
    grants.push(Grant::new("rolebindings", "dock", &name, &of_namespace));
    grants
}

/// Waits until the server's own index has seen all of a set.
async fn taken_in(server: &Server, set: u64) {
    for namespace in ["", "dock"] {
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": { "user": format!("last-{set}"), "resourceAttributes": {
                "verb": "get", "resource": "beacons", "namespace": namespace,
            } },
        });
        wait_until("the server has seen the rules", Duration::from_secs(20), || async {
            let status = server.allows(&question).await;
            if status["allowed"] == true { Ok(()) } else { Err(status.to_string()) }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn random_rules_are_decided_as_by_a_real_server() {
    let world = World::builder().edge_with(EdgeSpec::bare("rights").with_own_etcd()).start().await.unwrap();
    let server = Server(world.edge("rights").client(ADMIN).await.unwrap());
    let number = |variable: &str, default| {
        std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (first, sets): (u64, u64) = (number("MAILBOAT_SEED", 1), number("MAILBOAT_SCRIPTS", SETS));
    for namespace in NAMESPACES {
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        server.post("/api/v1/namespaces", &body, &[]).await;
    }
    let mut rights = Rights::new();
    rights.add_common(bootstrap::objects());
    let (mut asked, mut allowed, mut granted) = (0, 0, 0);
    let mut different = Vec::new();
    for set in first..first + sets {
        let mut draw = Draw(Seeded(set));
        for grant in drawn(&mut draw, set) {
            grant.write(&server, &mut rights).await;
        }
        taken_in(&server, set).await;
        for _ in 0..QUESTIONS {
            let question = draw.question(set);
            let theirs = server.allows(&question).await;
            let ours = review::subject_access(&rights, &here(), question.clone(), None).unwrap();
            asked += 1;
            allowed += usize::from(theirs["allowed"] == true);
            // Where several bindings allow it, or several roles are missing, a server takes them in any order.
            let denied = theirs["allowed"] == false && !theirs["reason"].to_string().contains('[');
            if theirs["allowed"] != ours["status"]["allowed"]
                || (denied && theirs["reason"] != ours["status"]["reason"])
            {
                different.push(format!("set {set}: {}\n  {theirs}\n  {}", question["spec"], ours["status"]));
            }
        }
        for attempt in 0..GRANTS {
            granted += 1;
            if let Some(difference) = try_to_grant(&server, &rights, &mut draw, set, attempt).await {
                different.push(difference);
            }
        }
    }
    println!(
        "{asked} questions ({allowed} allowed) and {granted} grants, {} decided differently",
        different.len()
    );
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(allowed * 10 > asked, "too few were allowed to tell anything");
}

/// A user writes a role or binding, without effect; both sides must refuse it in the same words, or let it be.
async fn try_to_grant(
    server: &Server,
    rights: &Rights,
    draw: &mut Draw,
    set: u64,
    attempt: usize,
) -> Option<String> {
    let namespace = draw.one(NAMESPACES);
    let name = format!("g{set}-{attempt}");
    let role = format!("r{set}-{}", draw.below(5));
    let subjects = json!([draw.subject(set)]);
    let grant = match draw.below(4) {
        0 => Grant::new("clusterroles", "", &name, &json!({ "rules": draw.rules(true) })),
        1 => Grant::new("roles", namespace, &name, &json!({ "rules": draw.rules(false) })),
        2 => Grant::new("clusterrolebindings", "", &name, &binding("ClusterRole", &role, &subjects)),
        _ => Grant::new("rolebindings", namespace, &name, &binding("Role", &role, &subjects)),
    };
    let team = format!("{}-{set}", draw.one(&["crew", "guests"]));
    let writers = format!("writers-{set}");
    let user = User::authenticated(draw.user(set), [writers.clone(), team.clone()]);
    let headers = [
        ("impersonate-user", user.name.as_str()),
        ("impersonate-group", &writers),
        ("impersonate-group", &team),
    ];
    let (code, answer) = server.post(&format!("{}?dryRun=All", grant.path()), &grant.body, &headers).await;
    let ours = rights.check_escalation(&here(), &user, grant.resource, &grant.namespace, &grant.body);
    let same = match &ours {
        Ok(()) => code == 201,
        Err(said @ Escalation::NoRole { .. }) => code == 404 && answer["message"] == said.to_string(),
        Err(said) => {
            let prefix = format!("{}.{GROUP} {name:?} is forbidden: ", grant.resource);
            code == 403 && answer["message"] == format!("{prefix}{said}")
        }
    };
    (!same).then(|| {
        format!("set {set}: {} {}\n  {code} {}\n  {ours:?}", grant.path(), grant.body, answer["message"])
    })
}
