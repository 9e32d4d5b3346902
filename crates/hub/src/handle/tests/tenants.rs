//! Workspaces of tenants are kept apart, and none of them harms another or the server.

use super::*;
use crate::access::user::CLUSTER_EXTRA;
use crate::workspaces::{logical_cluster, resolve};

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
pub(super) const APIS: &str = "/apis/apis.kcp.io/v1alpha2";
pub(super) const TYPES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes";
pub(super) const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
pub(super) const CLUSTER: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster";

/// A hub of workspaces, spoken to as its administrator.
pub(super) struct World {
    pub(super) hub: Arc<Hub>,
}

impl World {
    /// With these workspaces in the root; alice rules each, but nothing else.
    pub(super) async fn of(names: &[&str]) -> Self {
        let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
        let world = Self { hub: Arc::new(crate::workspaces(Memory::default(), options).await.unwrap().hub) };
        for name in names {
            world.make("root", WORKSPACES, workspace(name, &json!({}))).await;
            world.rule(&format!("root:{name}"), "cluster-admin", &json!([user("alice")])).await;
        }
        world
    }

    pub(super) async fn asked(
        &self,
        by: &User,
        method: Method,
        path: &str,
        media: &str,
        body: &Value,
    ) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        answered_to(&self.hub, by, ask(method, path, media, body)).await
    }

    pub(super) async fn make(&self, at: &str, path: &str, body: Value) {
        let (code, said) =
            self.asked(&admin(), Method::POST, &format!("/clusters/{at}{path}"), JSON, &body).await;
        assert_eq!(code, 201, "{path} in {at}: {said}");
    }

    pub(super) async fn get(&self, by: &User, path: &str) -> (u16, Value) {
        self.asked(by, Method::GET, path, "", &Value::Null).await
    }

    /// Binds these to a role of the workspace, or one that is there everywhere.
    pub(super) async fn rule(&self, at: &str, role: &str, subjects: &Value) {
        let name = format!("{role}-{}", subjects[0]["name"].as_str().unwrap().replace(':', "-"));
        let binding = json!({
            "metadata": { "name": name }, "subjects": subjects,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        });
        self.make(at, &format!("{RBAC}/clusterrolebindings"), binding).await;
    }

    pub(super) fn id(&self, path: &str) -> ClusterId {
        self.hub.peek(|machine| resolve(machine, path)).unwrap()
    }

    /// Makes a kind's schema and an export of it.
    pub(super) async fn offer(&self, at: &str, group: &str, plural: &str, kind: &str, more: Value) {
        let name = format!("v1.{plural}.{}", if group.is_empty() { "core" } else { group });
        let schema = json!({
            "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": { "name": name },
            "spec": { "group": group, "scope": "Namespaced",
                "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } }] },
        });
        self.make(at, "/apis/apis.kcp.io/v1alpha1/apiresourceschemas", schema).await;
        let mut export = json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": plural },
            "spec": { "resources": [{ "group": group, "name": plural, "schema": name, "storage": { "crd": {} } }] },
        });
        mailboat_object::merge::merge(&mut export["spec"], &more);
        self.make(at, &format!("{APIS}/apiexports"), export).await;
    }

    pub(super) async fn bind(&self, at: &str, name: &str, path: &str, export: &str, claims: Value) {
        self.make(at, &format!("{APIS}/apibindings"), binding(name, path, export, &claims)).await;
    }

    /// The condition of a binding of this type: its status and reason.
    pub(super) async fn condition(&self, at: &str, binding: &str, what: &str) -> (String, String) {
        let (code, said) = self.get(&admin(), &format!("/clusters/{at}{APIS}/apibindings/{binding}")).await;
        assert_eq!(code, 200, "{said}");
        let mut all = said["status"]["conditions"].as_array().into_iter().flatten();
        let found = all.find(|condition| condition["type"] == what).cloned().unwrap_or_default();
        let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"))
    }

    /// What the keeper does, until there is nothing left to do.
    pub(super) async fn tidy(&self, cluster: &ClusterId) {
        for _ in 0..20 {
            let round = self.hub.write(|machine, moment| {
                let tidied = self.hub.tidy_workspaces(machine, cluster, moment);
                Ok(tidied
                    + machine.empty_namespaces(cluster, moment)
                    + machine.follow_definitions(cluster, moment))
            });
            if round.await.unwrap() == 0 {
                return;
            }
        }
        panic!("it is never done");
    }
}

pub(super) fn user(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name })
}

pub(super) fn workspace(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
        "metadata": { "name": name, "finalizers": ["core.kcp.io/logicalcluster"] }, "spec": spec })
}

fn binding(name: &str, path: &str, export: &str, claims: &Value) -> Value {
    json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": name },
        "spec": { "reference": { "export": { "path": path, "name": export } }, "permissionClaims": claims } })
}

/// The default account of a workspace, as its token shows it.
fn account(of: &ClusterId) -> User {
    let mut account = User::service_account("default", "default", "u");
    account.extra.insert(CLUSTER_EXTRA.to_owned(), vec![of.0.to_string()]);
    account
}

#[tokio::test]
async fn nobody_has_a_workspace_emptied_that_is_not_made_for_his() {
    let world = World::of(&["mine", "other"]).await;
    let other = world.id("root:other");
    let kept = json!({ "metadata": { "name": "kept" } });
    world.make("root:other", MAPS, kept).await;
    let workspaces = format!("/clusters/root:mine{WORKSPACES}");
    for (spec, told) in [
        (json!({ "cluster": "root" }), "spec.Cluster can only be set by system privileged users"),
        (json!({ "cluster": *other.0 }), "spec.Cluster can only be set by system privileged users"),
        (json!({ "URL": "https://elsewhere" }), "spec.URL can only be set by system privileged users"),
    ] {
        let (code, said) =
            world.asked(&alice(), Method::POST, &workspaces, JSON, &workspace("trap", &spec)).await;
        assert_eq!(code, 403, "{spec}: {said}");
        assert!(said["message"].as_str().unwrap().ends_with(told), "{said}");
    }
    let (code, said) =
        world.asked(&alice(), Method::POST, &workspaces, JSON, &workspace("own", &json!({}))).await;
    assert_eq!(code, 201, "{said}");
    for (spec, expected) in [
        (json!({ "cluster": *other.0 }), 422),
        (json!({ "cluster": null }), 422),
        (json!({ "URL": "https://elsewhere" }), 403),
    ] {
        let patch = json!({ "spec": spec });
        let (code, said) =
            world.asked(&alice(), Method::PATCH, &format!("{workspaces}/own"), MERGE, &patch).await;
        assert_eq!(code, expected, "{spec}: {said}");
    }
    // One that the administrator lays over another's cluster goes alone.
    for (name, cluster) in [("over-root", "root"), ("over-other", &*other.0)] {
        world.make("root:mine", WORKSPACES, workspace(name, &json!({ "cluster": cluster }))).await;
        let path = format!("{workspaces}/{name}");
        let (code, said) = world.asked(&alice(), Method::DELETE, &path, JSON, &Value::Null).await;
        assert_eq!(code, 200, "{said}");
        world.tidy(&world.id("root:mine")).await;
        assert_eq!(world.get(&admin(), &path).await.0, 404, "it is gone");
    }
    let (code, said) = world.get(&admin(), &format!("/clusters/root:other{MAPS}/kept")).await;
    assert_eq!(code, 200, "{said}");
    let (code, said) = world.get(&admin(), &format!("/clusters/root{CLUSTER}")).await;
    assert_eq!((code, &said["metadata"]["deletionTimestamp"]), (200, &Value::Null), "{said}");
    // Her own goes as ever.
    let (id, path) = (world.id("root:mine:own"), format!("{workspaces}/own"));
    assert_eq!(world.asked(&alice(), Method::DELETE, &path, JSON, &Value::Null).await.0, 200);
    world.tidy(&id).await;
    assert_eq!(world.get(&admin(), &path).await.0, 404);
}

#[tokio::test]
async fn tokens_are_made_for_accounts_of_the_core_group_alone() {
    let world = World::of(&["mine"]).await;
    let rule =
        json!({ "apiGroups": ["sea.example"], "resources": ["serviceaccounts/token"], "verbs": ["create"] });
    let access = json!({ "nonResourceURLs": ["/"], "verbs": ["access"] });
    let role = json!({ "metadata": { "name": "sailor" }, "rules": [rule, access] });
    world.make("root:mine", &format!("{RBAC}/clusterroles"), role).await;
    world.rule("root:mine", "sailor", &json!([user("bob")])).await;
    let bob = User::authenticated("bob", []);
    for (by, path, expected) in [
        (&bob, "/api/v1/namespaces/default/serviceaccounts/default/token", 403),
        (&bob, "/apis/sea.example/v1/namespaces/default/serviceaccounts/default/token", 405),
        (&alice(), "/apis/sea.example/v1/namespaces/default/serviceaccounts/default/token", 405),
        (&alice(), "/api/v2/namespaces/default/serviceaccounts/default/token", 405),
        (&alice(), "/api/v1/namespaces/default/serviceaccounts/default/token", 201),
    ] {
        let path = format!("/clusters/root:mine{path}");
        let (code, said) = world.asked(by, Method::POST, &path, JSON, &json!({})).await;
        assert_eq!(code, expected, "{} {path}: {said}", by.name);
        assert_eq!(said["status"]["token"].is_string(), expected == 201);
    }
}

#[tokio::test]
async fn nobody_gets_tokens_of_those_who_are_bound_to_him() {
    let world = World::of(&["provider", "mine"]).await;
    let claim = json!({ "group": "", "resource": "serviceaccounts", "verbs": ["*"] });
    world
        .offer("root:provider", "sea.example", "boats", "Boat", json!({ "permissionClaims": [claim] }))
        .await;
    let mut accepted = claim.clone();
    mailboat_object::merge::merge(
        &mut accepted,
        &json!({ "state": "Accepted", "selector": { "matchAll": true } }),
    );
    world.bind("root:mine", "boats", "root:provider", "boats", json!([accepted])).await;
    let view = format!("/services/apiexport/root:provider/boats/clusters/{}", world.id("root:mine").0);
    let account = format!("{view}/api/v1/namespaces/default/serviceaccounts/default");
    assert_eq!(world.get(&alice(), &account).await.0, 200, "the claim shows the account");
    let (code, said) =
        world.asked(&alice(), Method::POST, &format!("{account}/token"), JSON, &json!({})).await;
    assert_eq!(code, 404, "{said}");
}

#[tokio::test]
async fn an_account_of_another_workspace_is_not_the_one_of_the_same_name() {
    let world = World::of(&["provider", "mine"]).await;
    world.offer("root:provider", "sea.example", "boats", "Boat", json!({})).await;
    let rule = json!({ "apiGroups": ["apis.kcp.io"], "resources": ["apiexports", "apiexports/content"], "verbs": ["*"] });
    let role = json!({ "metadata": { "name": "binder" }, "rules": [rule] });
    world.make("root:provider", &format!("{RBAC}/clusterroles"), role).await;
    let local = json!({ "kind": "ServiceAccount", "namespace": "default", "name": "default" });
    world
        .rule(
            "root:provider",
            "binder",
            &json!([local, {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts" }]),
        )
        .await;
    world.rule("root:mine", "cluster-admin", &json!([local])).await;
    let (mine, provider) = (world.id("root:mine"), world.id("root:provider"));
    let view = "/services/apiexport/root:provider/boats/clusters/*/apis/sea.example/v1/boats";
    let bindings = format!("/clusters/root:mine{APIS}/apibindings");
    let wanted = binding("boats", "root:provider", "boats", &json!([]));
    // As long as nobody is bound, nothing is there for those who are let in.
    assert_eq!(world.get(&account(&provider), view).await.0, 404, "it is the one that is meant");
    assert_eq!(world.get(&account(&mine), view).await.0, 403);
    let (code, said) = world.asked(&account(&mine), Method::POST, &bindings, JSON, &wanted).await;
    assert_eq!(code, 403, "{said}");
    // By the name that it has everywhere, it may be let in.
    let global = format!("system:kcp:serviceaccount:{}:default:default", mine.0);
    world.rule("root:provider", "binder", &json!([user(&global)])).await;
    assert_eq!(world.get(&account(&mine), view).await.0, 404);
    let (code, said) = world.asked(&account(&mine), Method::POST, &bindings, JSON, &wanted).await;
    assert_eq!(code, 201, "{said}");
}

#[tokio::test]
async fn a_binding_takes_no_kind_that_the_server_has() {
    let world = World::of(&["provider", "mine"]).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    world
        .make("root:mine", secrets, json!({ "metadata": { "name": "mine" }, "stringData": { "key": "x" } }))
        .await;
    let kinds = [
        ("", "secrets", "Secret"),
        ("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding"),
    ];
    for (group, plural, kind) in kinds {
        world.offer("root:provider", group, plural, kind, json!({})).await;
        world.bind("root:mine", plural, "root:provider", plural, json!([])).await;
        let conflict = ("False".to_owned(), "NamingConflicts".to_owned());
        for what in ["BindingUpToDate", "InitialBindingCompleted", "Ready"] {
            assert_eq!(world.condition("root:mine", plural, what).await, conflict, "{plural} {what}");
        }
        let id = KindId::new(group, plural);
        let origin =
            world.hub.peek(|machine| machine.kind(&world.id("root:mine"), &id).map(|kind| kind.origin));
        assert_eq!(origin, Some(Origin::Native), "{id}");
    }
    for clusters in ["*".to_owned(), world.id("root:mine").0.to_string()] {
        let path = format!("/services/apiexport/root:provider/secrets/clusters/{clusters}/api/v1/secrets");
        let (code, said) = world.get(&alice(), &path).await;
        assert!(matches!(code, 403 | 404), "{code} {said}");
    }
    let path = format!("/clusters/root:mine{APIS}/apibindings/secrets");
    assert_eq!(world.asked(&admin(), Method::DELETE, &path, JSON, &Value::Null).await.0, 200);
    world.tidy(&world.id("root:mine")).await;
    assert_eq!(world.get(&admin(), &path).await.0, 404, "the binding is gone");
    let (code, said) = world.get(&admin(), &format!("/clusters/root:mine{secrets}/mine")).await;
    assert_eq!(code, 200, "{said}");
}

#[tokio::test]
async fn a_kind_belongs_to_the_binding_that_had_it_first() {
    let world = World::of(&["first", "second", "mine"]).await;
    let mine = world.id("root:mine");
    for provider in ["first", "second"] {
        world.offer(&format!("root:{provider}"), "sea.example", "boats", "Boat", json!({})).await;
        world.bind("root:mine", provider, &format!("root:{provider}"), "boats", json!([])).await;
    }
    let boats = "/apis/sea.example/v1/namespaces/default/boats";
    let boat = json!({ "apiVersion": "sea.example/v1", "kind": "Boat", "metadata": { "name": "one" } });
    world.make("root:mine", boats, boat.clone()).await;
    assert_eq!(world.condition("root:mine", "first", "Ready").await.0, "True");
    let conflict = ("False".to_owned(), "NamingConflicts".to_owned());
    assert_eq!(world.condition("root:mine", "second", "InitialBindingCompleted").await, conflict);
    let seen = async |provider: &str| {
        let path = format!("/services/apiexport/root:{provider}/boats/clusters/*/apis/sea.example/v1/boats");
        let (code, said) = world.get(&alice(), &path).await;
        assert_eq!(code, 200, "{said}");
        said["items"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((seen("first").await, seen("second").await), (1, 0), "the boat is the first's");
    // A definition does not take it either.
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.sea.example" },
        "spec": { "group": "sea.example", "scope": "Namespaced", "names": { "plural": "boats", "kind": "Boat" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }] },
    });
    let definitions = "/clusters/root:mine/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, said) = world.asked(&admin(), Method::POST, definitions, JSON, &definition).await;
    assert_eq!(code, 403, "{said}");
    let told = "cannot create because resource is bound by APIBinding \"first\"";
    assert!(said["message"].as_str().unwrap().ends_with(told), "{said}");
    // What the first leaves, the second gets, but nothing that was in it.
    let path = format!("/clusters/root:mine{APIS}/apibindings/first");
    assert_eq!(world.asked(&admin(), Method::DELETE, &path, JSON, &Value::Null).await.0, 200);
    world.tidy(&mine).await;
    assert_eq!(world.condition("root:mine", "second", "Ready").await.0, "True");
    assert_eq!(seen("second").await, 0);
    world.make("root:mine", boats, boat).await;
    assert_eq!(seen("second").await, 1);
}

#[tokio::test]
async fn a_workspace_says_of_itself_what_the_server_says() {
    let world = World::of(&["mine"]).await;
    let cluster = format!("/clusters/root:mine{CLUSTER}");
    for (part, patch, told) in [
        (
            "",
            json!({ "metadata": { "annotations": { "kcp.io/path": "root" } } }),
            "reserved annotation: \"kcp.io/path\"",
        ),
        ("", json!({ "metadata": { "annotations": null } }), "reserved annotation: \"kcp.io/path\""),
        (
            "",
            json!({ "metadata": { "finalizers": null } }),
            "reserved finalizer: \"core.kcp.io/logicalcluster-deletion\"",
        ),
        ("", json!({ "spec": { "owner": { "name": "other" } } }), "spec.owner is immutable"),
        ("", json!({ "spec": { "owner": null } }), "spec.owner is immutable"),
        ("", json!({ "spec": { "directlyDeletable": true } }), "spec.directlyDeletable is immutable"),
        (
            "/status",
            json!({ "status": { "phase": "Initializing" } }),
            "cannot transition from \"Ready\" to \"Initializing\"",
        ),
        (
            "/status",
            json!({ "status": { "phase": "Scheduling" } }),
            "cannot transition from \"Ready\" to \"Scheduling\"",
        ),
    ] {
        let (code, said) =
            world.asked(&alice(), Method::PATCH, &format!("{cluster}{part}"), MERGE, &patch).await;
        assert_eq!(code, 403, "{patch}: {said}");
        assert!(said["message"].as_str().unwrap().ends_with(told), "{said}");
    }
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    assert_eq!(world.asked(&alice(), Method::PATCH, &cluster, MERGE, &label).await.0, 200);
    let all = cluster.trim_end_matches("/cluster");
    for path in [&cluster, all] {
        let (code, said) = world.asked(&alice(), Method::DELETE, path, JSON, &Value::Null).await;
        assert_eq!(code, 403, "{path}: {said}");
    }
    let key = crate::workspaces::View::of(&world.id("root:mine"), "cluster").export;
    let key = Key { kind: logical_cluster(), ..key };
    assert!(world.hub.peek(|machine| !machine.get(&key).unwrap().is_deleting()));
}

/// The state of a generator that gave a number: SplitMix64 undone.
fn state_before(number: u64) -> u64 {
    let unshift = |mixed: u64, by: u32| (0..64 / by).fold(mixed, |found, _| mixed ^ (found >> by));
    let inverse = |odd: u64| {
        (0..6).fold(odd, |found, _| found.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(found))))
    };
    let mixed = unshift(number, 31).wrapping_mul(inverse(0x94d0_49bb_1331_11eb));
    unshift(unshift(mixed, 27).wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9)), 30)
}

#[tokio::test]
async fn an_exports_secret_does_not_follow_from_what_everybody_sees() {
    use mailboat_machinery::{Random as _, Seeded};
    let mut known = Seeded(7);
    let state = Seeded(state_before(known.next())).next();
    assert_eq!(state, known.next(), "the generator is undone");
    let world = World::of(&["provider"]).await;
    world.offer("root:provider", "sea.example", "boats", "Boat", json!({})).await;
    let (_, export) = world.get(&admin(), &format!("/clusters/root:provider{APIS}/apiexports/boats")).await;
    let (_, secret) =
        world.get(&admin(), "/clusters/root:provider/api/v1/namespaces/kcp-system/secrets/boats").await;
    let secret = secret["data"]["key"].as_str().unwrap().to_owned();
    let uid = export["metadata"]["uid"].as_str().unwrap().replace('-', "");
    let low = u64::from_str_radix(&uid[16..], 16).unwrap();
    for variant in 0..4_u64 {
        // Two bits of a uid say what kind of uid it is.
        let mut chance = Seeded(state_before((low & !(3 << 62)) | variant << 62));
        let drawn: Vec<u64> = (0..40).map(|_| chance.next()).collect();
        for four in drawn.windows(4) {
            let guess = format!("{:016x}{:016x}{:016x}{:016x}", four[0], four[1], four[2], four[3]);
            let guess = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, guess);
            assert_ne!(guess, secret, "it can be guessed");
        }
    }
}

#[tokio::test]
async fn what_is_no_longer_granted_when_it_is_written_is_not_written() {
    let world = World::of(&["provider", "mine"]).await;
    let claim = |verbs: Value| json!({ "group": "", "resource": "configmaps", "verbs": verbs, "state": "Accepted", "selector": { "matchAll": true } });
    let offered = json!({ "permissionClaims": [{ "group": "", "resource": "configmaps", "verbs": ["create", "delete", "get"] }] });
    world.offer("root:provider", "sea.example", "boats", "Boat", offered).await;
    let all = claim(json!(["create", "delete", "get"]));
    world.bind("root:mine", "boats", "root:provider", "boats", json!([all])).await;
    let view = format!("/services/apiexport/root:provider/boats/clusters/{}{MAPS}", world.id("root:mine").0);
    let made = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let (code, said) = world.asked(&alice(), Method::POST, &view, JSON, &made("early")).await;
    assert_eq!(code, 201, "{said}");
    // He begins to ask, and while he is at it the word is taken back.
    let late = async |method: Method, path: &str, body: Value| {
        let said = json!({ "spec": { "permissionClaims": [claim(json!(["get"]))] } });
        let path_of_binding = format!("/clusters/root:mine{APIS}/apibindings/boats");
        let world = &world;
        let slowly = async move {
            let (code, said) = world.asked(&admin(), Method::PATCH, &path_of_binding, MERGE, &said).await;
            assert_eq!(code, 200, "{said}");
            Ok::<_, std::io::Error>(Frame::data(Bytes::from(body.to_string())))
        };
        let body = StreamBody::new(Box::pin(futures::stream::once(slowly)));
        let request =
            Request::builder().method(method).uri(path).header("content-type", JSON).body(body).unwrap();
        let code = handle(Arc::clone(&world.hub), Some(&alice()), request).await.status().as_u16();
        let all = json!({ "spec": { "permissionClaims": [all.clone()] } });
        let path = format!("/clusters/root:mine{APIS}/apibindings/boats");
        assert_eq!(world.asked(&admin(), Method::PATCH, &path, MERGE, &all).await.0, 200);
        code
    };
    assert_eq!(late(Method::POST, &view, made("late")).await, 403);
    assert_eq!(late(Method::DELETE, &format!("{view}/early"), json!({})).await, 403);
    assert_eq!(world.get(&admin(), &format!("/clusters/root:mine{MAPS}/late")).await.0, 404);
    assert_eq!(world.get(&admin(), &format!("/clusters/root:mine{MAPS}/early")).await.0, 200);
}

#[tokio::test]
async fn whoever_acts_as_another_is_let_in_as_that_other() {
    let world = World::of(&["mine"]).await;
    let rule = json!({ "nonResourceURLs": ["/"], "verbs": ["access"] });
    let role = json!({ "metadata": { "name": "guest" }, "rules": [rule] });
    world.make("root:mine", &format!("{RBAC}/clusterroles"), role).await;
    world.rule("root:mine", "guest", &json!([user("carol")])).await;
    let acting = async |by: &User, name: &str, place: &str| {
        let mut request = ask(Method::GET, &format!("{place}/version"), "", String::new());
        request.headers_mut().insert("impersonate-user", name.parse().unwrap());
        answered_to(&world.hub, by, request).await
    };
    for (by, name, place, expected) in [
        (&alice(), "carol", "/clusters/root:mine", 200),
        (&alice(), "bob", "/clusters/root:mine", 403),
        (&admin(), "bob", "/clusters/root:mine", 403),
        (&admin(), "alice", "/clusters/root:mine", 200),
        (&admin(), "alice", "/clusters/*", 403),
        (&alice(), "system:serviceaccount:default:default", "/clusters/root:mine", 200),
    ] {
        let (code, said) = acting(by, name, place).await;
        assert_eq!(code, expected, "{} as {name} in {place}: {said}", by.name);
        assert!(
            expected == 200 || said["message"].as_str().unwrap().contains(&format!("User {name:?}")),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_tenant_takes_no_more_watches_by_having_more_workspaces() {
    let world = World::of(&["mine", "other"]).await;
    for name in ["a", "b"] {
        let child = workspace(name, &json!({ "type": { "name": "universal", "path": "root" } }));
        world.make("root:mine", WORKSPACES, child).await;
    }
    let ids = ["root:mine", "root:mine:a", "root:mine:b", "root:other"].map(|path| world.id(path));
    let hub = Arc::into_inner(world.hub)
        .unwrap()
        .with_limits(Limits { watches_per_tenant: 2, ..Limits::default() });
    let hub = Arc::new(hub);
    let watch = async |of: &ClusterId| {
        let path =
            format!("/clusters/{}/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=1", of.0);
        let mut user = account(of);
        user.groups.push("system:masters".to_owned());
        handle(Arc::clone(&hub), Some(&user), ask(Method::GET, &path, "", String::new())).await
    };
    let held = [watch(&ids[0]).await, watch(&ids[1]).await];
    assert!(held.iter().all(|answer| answer.status() == 200));
    assert_eq!(watch(&ids[2]).await.status(), 429, "it stands below the same one");
    assert_eq!(watch(&ids[3]).await.status(), 200, "another tenant has a share of his own");
    drop(held);
    // What a watch holds goes with its clock, which is told to stop.
    tokio::task::yield_now().await;
    assert_eq!(watch(&ids[2]).await.status(), 200);
}
