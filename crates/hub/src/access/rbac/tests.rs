//! Decisions that must come out as Kubernetes makes them. Random ones are compared with a real server in `tests/real`.

use mailboat_object::ClusterId;
use serde_json::{Value, json};

use super::escalation::Escalation;
use super::*;
use crate::access::review;

fn here() -> ClusterId {
    ClusterId::new("here")
}

fn user(name: &str, groups: &[&str]) -> User {
    User::authenticated(name, groups.iter().map(|group| (*group).to_owned()))
}

fn role(rules: &Value) -> Value {
    json!({ "rules": rules })
}

fn binding(kind: &str, role: &str, subjects: &Value) -> Value {
    json!({ "roleRef": { "kind": kind, "name": role }, "subjects": subjects })
}

fn rights() -> Rights {
    let mut rights = Rights::new();
    rights.add_common(bootstrap::objects());
    let pods = json!([{ "apiGroups": [""], "resources": ["pods", "pods/log", "*/scale"], "verbs": ["get", "list"] }]);
    let secret =
        json!([{ "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"] }]);
    let own_pods = json!([{ "apiGroups": ["*"], "resources": ["pods"], "verbs": ["*"] }]);
    rights.set(&here(), "clusterroles", "", "pods", Some(&role(&pods)));
    rights.set(&here(), "clusterroles", "", "secret", Some(&role(&secret)));
    rights.set(&here(), "roles", "dock", "pods", Some(&role(&own_pods)));
    let alice = json!([{ "kind": "User", "name": "alice" }]);
    let crew = json!([{ "kind": "Group", "name": "crew" }, { "kind": "ServiceAccount", "name": "boat", "namespace": "sea" }]);
    let local = json!([{ "kind": "ServiceAccount", "name": "boat" }]);
    rights.set(&here(), "clusterrolebindings", "", "alice", Some(&binding("ClusterRole", "pods", &alice)));
    rights.set(&here(), "rolebindings", "dock", "crew", Some(&binding("ClusterRole", "secret", &crew)));
    rights.set(&here(), "rolebindings", "dock", "local", Some(&binding("Role", "pods", &local)));
    rights.set(&here(), "rolebindings", "sea", "lost", Some(&binding("Role", "none", &alice)));
    rights
}

fn object<'a>(verb: &'a str, resource: &'a str, namespace: &'a str, name: &'a str) -> Asked<'a> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Asked::Object { verb, group: "", resource, subresource, namespace, name }
}

#[test]
fn bindings_give_what_their_roles_say_where_they_stand() {
    let rights = rights();
    let boat = User::service_account("sea", "boat", "");
    let local = User::service_account("dock", "boat", "");
    let rows = [
        (user("alice", &[]), object("get", "pods", "", ""), true),
        (user("alice", &[]), object("get", "pods", "anywhere", "x"), true),
        (user("alice", &[]), object("get", "pods/log", "sea", "x"), true),
        (user("alice", &[]), object("get", "pods/status", "sea", "x"), false),
        (user("alice", &[]), object("get", "deployments/scale", "sea", "x"), true),
        (user("alice", &[]), object("watch", "pods", "", ""), false),
        (user("bob", &[]), object("get", "pods", "", ""), false),
        (user("bob", &["crew"]), object("get", "secrets", "dock", "one"), true),
        (user("bob", &["crew"]), object("get", "secrets", "dock", "two"), false),
        (user("bob", &["crew"]), object("list", "secrets", "dock", ""), false),
        (user("bob", &["crew"]), object("get", "secrets", "sea", "one"), false),
        (boat.clone(), object("get", "secrets", "dock", "one"), true),
        (boat, object("delete", "pods", "dock", "x"), false),
        (local.clone(), object("delete", "pods", "dock", "x"), true),
        (local, object("delete", "pods", "sea", "x"), false),
        (user("eve", &["system:masters"]), object("delete", "nodes", "", "x"), true),
        (User::anonymous(), Asked::Path { verb: "get", path: "/healthz" }, true),
        (User::anonymous(), Asked::Path { verb: "get", path: "/apis/apps" }, false),
        (user("bob", &[]), Asked::Path { verb: "get", path: "/apis/apps" }, true),
        (user("bob", &[]), Asked::Path { verb: "post", path: "/apis/apps" }, false),
    ];
    for (user, asked, allowed) in rows {
        let decision = rights.decide(&here(), &user, &asked);
        assert_eq!(decision.allowed, allowed, "{} {asked:?}: {decision:?}", user.name);
    }
    let elsewhere =
        rights.decide(&ClusterId::new("there"), &user("alice", &[]), &object("get", "pods", "", ""));
    assert!(!elsewhere.allowed, "workspaces are apart");
}

#[test]
fn reasons_are_those_of_kubernetes() {
    let rights = rights();
    let reason = |user: &User, asked: &Asked<'_>| rights.decide(&here(), user, asked).reason;
    assert_eq!(
        reason(&user("alice", &[]), &object("get", "pods", "", "")),
        "RBAC: allowed by ClusterRoleBinding \"alice\" of ClusterRole \"pods\" to User \"alice\""
    );
    let local = User::service_account("dock", "boat", "");
    assert_eq!(
        reason(&local, &object("get", "pods", "dock", "")),
        "RBAC: allowed by RoleBinding \"local/dock\" of Role \"pods\" to ServiceAccount \"boat/dock\""
    );
    assert_eq!(
        reason(&user("alice", &[]), &object("get", "secrets", "sea", "x")),
        "RBAC: role.rbac.authorization.k8s.io \"none\" not found"
    );
}

#[test]
fn what_is_taken_away_is_gone() {
    let mut rights = rights();
    let asked = object("get", "pods", "", "");
    assert!(rights.decide(&here(), &user("alice", &[]), &asked).allowed);
    let other = json!([{ "kind": "User", "name": "bob" }]);
    rights.set(&here(), "clusterrolebindings", "", "alice", Some(&binding("ClusterRole", "pods", &other)));
    assert!(!rights.decide(&here(), &user("alice", &[]), &asked).allowed);
    assert!(rights.decide(&here(), &user("bob", &[]), &asked).allowed);
    rights.set(&here(), "clusterroles", "", "pods", None);
    assert!(!rights.decide(&here(), &user("bob", &[]), &asked).allowed);
}

#[test]
fn entering_a_workspace_is_a_right_of_its_own() {
    let mut rights = Rights::new();
    let access = json!([{ "nonResourceURLs": ["/"], "verbs": ["access"] }]);
    rights.set(&here(), "clusterroles", "", "access", Some(&role(&access)));
    let alice = json!([{ "kind": "User", "name": "alice" }]);
    rights.set(&here(), "clusterrolebindings", "", "a", Some(&binding("ClusterRole", "access", &alice)));
    assert!(rights.may_enter(&here(), &user("alice", &[])));
    assert!(!rights.may_enter(&here(), &user("bob", &[])));
    assert!(rights.may_enter(&here(), &user("eve", &["system:masters"])));
    let mut account = User::service_account("default", "syncer", "");
    account.extra.insert(crate::access::user::CLUSTER_EXTRA.to_owned(), vec!["here".to_owned()]);
    assert!(rights.may_enter(&here(), &account));
    assert!(!rights.may_enter(&ClusterId::new("there"), &account));
}

#[test]
fn nobody_gives_away_what_he_does_not_have() {
    let rights = rights();
    let check = |user: &User, resource: &str, namespace: &str, body: &Value| {
        rights.check_escalation(&here(), user, resource, namespace, body)
    };
    let alice = user("alice", &[]);
    let held = role(&json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]));
    check(&alice, "clusterroles", "", &held).unwrap();
    let named =
        json!([{ "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"], "verbs": ["get"] }]);
    check(&alice, "roles", "dock", &role(&named)).unwrap();
    let more =
        json!([{ "apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "watch", "delete"] }]);
    let said = check(&alice, "clusterroles", "", &role(&more)).unwrap_err().to_string();
    assert_eq!(
        said,
        "user \"alice\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently \
         held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"watch\" \"delete\"]}\n{APIGroups:[\"\"], \
         Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}"
    );
    let subjects = json!([]);
    check(&alice, "clusterrolebindings", "", &binding("ClusterRole", "pods", &subjects)).unwrap();
    check(&alice, "clusterrolebindings", "", &binding("ClusterRole", "secret", &subjects)).unwrap_err();
    let said =
        check(&alice, "rolebindings", "dock", &binding("Role", "none", &subjects)).unwrap_err().to_string();
    assert_eq!(said, "rolebindings.rbac.authorization.k8s.io \"none\" not found");
    let made_of = json!({ "aggregationRule": { "clusterRoleSelectors": [] }, "rules": [] });
    check(&alice, "clusterroles", "", &made_of).unwrap_err();
    check(&user("eve", &["system:masters"]), "clusterroles", "", &made_of).unwrap();
}

#[test]
fn escalate_and_bind_are_verbs_of_their_own() {
    let mut rights = Rights::new();
    let rules = json!([
        { "apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": ["big"] },
        { "apiGroups": [GROUP], "resources": ["roles"], "verbs": ["escalate"] },
    ]);
    let everything = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
    rights.set(&here(), "clusterroles", "", "r", Some(&role(&rules)));
    rights.set(&here(), "clusterroles", "", "big", Some(&role(&everything)));
    let alice = json!([{ "kind": "User", "name": "alice" }]);
    rights.set(&here(), "clusterrolebindings", "", "b", Some(&binding("ClusterRole", "r", &alice)));
    let check = |resource: &str, namespace: &str, body: &Value| {
        rights.check_escalation(&here(), &user("alice", &[]), resource, namespace, body)
    };
    check("clusterrolebindings", "", &binding("ClusterRole", "big", &json!([]))).unwrap();
    check("roles", "dock", &role(&everything)).unwrap();
    check("clusterroles", "", &role(&everything)).unwrap_err();
}

#[test]
fn reviews_answer_as_the_server_decides() {
    let rights = rights();
    let body = json!({ "spec": {
        "user": "alice", "resourceAttributes": { "verb": "get", "resource": "pods", "namespace": "dock" },
    } });
    let answer = review::subject_access(&rights, &here(), body.clone(), None).unwrap();
    assert_eq!(answer["status"]["allowed"], true, "{answer}");
    review::subject_access(&rights, &here(), body.clone(), Some("dock")).unwrap();
    review::subject_access(&rights, &here(), body, Some("sea")).unwrap_err();
    let nobody = json!({ "spec": { "nonResourceAttributes": { "path": "/", "verb": "get" } } });
    assert_eq!(
        review::subject_access(&rights, &here(), nobody, None).unwrap_err(),
        "at least one of user or group must be specified"
    );
    let rules = json!({ "spec": { "namespace": "dock" } });
    let local = User::service_account("dock", "boat", "");
    let answer = review::self_subject_rules(&rights, &here(), &local, rules);
    let own = json!({ "apiGroups": ["*"], "resources": ["pods"], "verbs": ["*"] });
    assert!(answer["status"]["resourceRules"].as_array().unwrap().contains(&own), "{answer}");
    assert!(!answer["status"]["nonResourceRules"].as_array().unwrap().is_empty(), "{answer}");
    let who = review::self_subject(&local, json!({}));
    assert_eq!(who["status"]["userInfo"]["username"], "system:serviceaccount:dock:boat");
}

/// Prints what a decision costs; `cargo test --release -- --nocapture decisions_are_cheap` shows it.
#[test]
fn decisions_are_cheap() {
    let mut rights = rights();
    let rules =
        json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"] }]);
    for number in 0..10_000 {
        let mailbox = ClusterId::new(&format!("mailbox-{number}"));
        rights.set(&mailbox, "clusterroles", "", "syncer", Some(&role(&rules)));
        let subjects = json!([{ "kind": "ServiceAccount", "name": "syncer", "namespace": "default" }]);
        let syncer = binding("ClusterRole", "syncer", &subjects);
        rights.set(&mailbox, "clusterrolebindings", "", "syncer", Some(&syncer));
    }
    let syncer = User::service_account("default", "syncer", "");
    let start = std::time::Instant::now();
    for number in 0..10_000 {
        let mailbox = ClusterId::new(&format!("mailbox-{number}"));
        assert!(rights.decide(&mailbox, &syncer, &object("list", "configmaps", "", "")).allowed);
        assert!(!rights.decide(&mailbox, &syncer, &object("delete", "configmaps", "", "")).allowed);
    }
    println!("a decision among 10,000 workspaces takes {:?}", start.elapsed() / 20_000);
}

#[test]
fn a_role_of_millions_of_parts_is_refused_at_once_and_who_has_it_all_may_give_it() {
    let names =
        |what: &str, count: usize| -> Vec<String> { (0..count).map(|n| format!("{what}{n}")).collect() };
    let rules =
        json!([{ "verbs": names("v", 150), "resources": names("r", 150), "apiGroups": names("g", 60) }]);
    let mut rights = rights();
    let check = |rights: &Rights, role: &Value| {
        rights.check_escalation(&here(), &user("alice", &[]), "roles", "dock", role)
    };
    let Err(Escalation::Refused(why)) = check(&rights, &role(&rules)) else { panic!("it is given away") };
    assert!(why.len() < 1 << 20, "{} bytes", why.len());

    let give = |rights: &mut Rights, rules: &Value| {
        let alice = json!([{ "kind": "User", "name": "alice" }]);
        rights.set(&here(), "clusterroles", "", "large", Some(&role(rules)));
        rights.set(
            &here(),
            "clusterrolebindings",
            "",
            "large",
            Some(&binding("ClusterRole", "large", &alice)),
        );
    };
    let mut nearly = rules.clone();
    nearly[0]["verbs"] = json!(names("v", 149));
    give(&mut rights, &nearly);
    let Err(Escalation::Refused(why)) = check(&rights, &role(&rules)) else { panic!("it is given away") };
    assert!(why.len() < 1 << 20, "{} bytes", why.len());

    give(&mut rights, &rules);
    check(&rights, &role(&rules)).unwrap();
}
