use mailboat_api::condition::{Condition, ConditionStatus, types};
use mailboat_api::edge::UpsyncSet;
use mailboat_registration::SyncerId;
use serde_json::Value;

use super::*;
use crate::fixtures::{kind, object};

fn json_of(fixture: &Fixture) -> Value {
    serde_json::from_slice(&fixture.body.json).expect("JSON")
}

#[test]
fn a_mailbox_is_named_after_its_target_and_says_so() {
    let target = object(
        "niqdko2g2pwoadfb",
        "synctargets.edge.kubestellar.io",
        &json!({ "metadata": { "name": "stest1", "uid": "f99e773f-3db2-439e-8054-827c4ac55368" } }),
    );
    let workspace = workspace(&target);
    assert_eq!(workspace.name.as_str(), "niqdko2g2pwoadfb-mb-f99e773f-3db2-439e-8054-827c4ac55368");
    let found = json_of(&workspace);
    assert_eq!(found["metadata"]["annotations"]["edge.kubestellar.io/sync-target-name"], "stest1");
    assert_eq!(found["spec"]["type"]["name"], "universal");
}

#[test]
fn a_mailbox_holds_bindings_with_claims_accepted_and_no_finalizer() {
    let all = contents("root:espw", &syncer(), &SyncedKinds::default());
    let bindings: Vec<(String, String)> = all
        .iter()
        .filter(|fixture| fixture.kind.resource() == "apibindings")
        .map(|fixture| {
            let export = json_of(fixture)["spec"]["reference"]["export"].clone();
            assert_eq!(export["path"], "root:espw");
            (fixture.name.to_string(), export["name"].as_str().unwrap().to_owned())
        })
        .collect();
    let expected = [
        ("bind-edge", "edge.kubestellar.io"),
        ("bind-kubernetes", "kubernetes"),
        ("bind-denatured", "denatured.mailboat.dev"),
        ("bind-mailbox", "mailbox.mailboat.dev"),
    ];
    assert_eq!(bindings, expected.map(|(name, export)| (name.to_owned(), export.to_owned())));
    let claims = json_of(&all[4])["spec"]["permissionClaims"].clone();
    for claim in claims.as_array().expect("claims") {
        assert_eq!((&claim["state"], &claim["selector"]), (&json!("Accepted"), &json!({ "matchAll": true })));
    }
    for fixture in &all {
        assert!(json_of(fixture)["metadata"].get("finalizers").is_none(), "{}", fixture.name);
    }
    assert_eq!(all[0].name.as_str(), "mailboat:center", "the center's own access comes first");
}

fn syncer() -> SyncerId {
    SyncerId::new("florin", "f99e773f-3db2-439e-8054-827c4ac55368")
}

#[test]
fn the_role_that_follows_placements_is_bound_to_the_account_that_tokens_are_of() {
    let all = contents("root:espw", &syncer(), &SyncedKinds::default());
    let find = |resource: &str, name: &str| {
        let found =
            all.iter().find(|fixture| fixture.kind.resource() == resource && fixture.name.as_str() == name);
        json_of(found.expect(resource))
    };
    let account = find("serviceaccounts", syncer().as_str());
    let binding = find("clusterrolebindings", "mailboat-syncer");
    let subject = &binding["subjects"][0];
    assert_eq!(subject["name"], account["metadata"]["name"]);
    assert_eq!(subject["namespace"], account["metadata"]["namespace"]);
    let accounts = all.iter().filter(|fixture| fixture.kind.resource() == "serviceaccounts").count();
    assert_eq!(accounts, 1);
}

#[test]
fn what_came_of_an_installation_is_said_until_it_is_not_asked_for() {
    let said = |installed: Installed| Standing { installed, ..Standing::default() };
    let condition = Condition {
        type_: types::SYNCER_INSTALLED.to_owned(),
        status: ConditionStatus::True,
        reason: "Installed".to_owned(),
        ..Condition::default()
    };
    let installed = said(Installed::Said(condition));
    let first = judge(&[], None, None, &installed, 10, LIMITS).expect("first words");
    assert_eq!(status(&first, types::SYNCER_INSTALLED), (ConditionStatus::True, "Installed".to_owned()));
    assert_eq!(judge(&first.conditions, None, None, &installed, 20, LIMITS), None);
    let begins = judge(&first.conditions, None, None, &said(Installed::Unsaid), 20, LIMITS);
    assert_eq!(begins, None, "a center that begins takes nothing back");
    let not_asked =
        judge(&first.conditions, None, None, &said(Installed::NotAsked), 20, LIMITS).expect("a change");
    assert_eq!(mailboat_api::condition::find(&not_asked.conditions, types::SYNCER_INSTALLED), None);
}

/// Whether the rules let somebody do something, as RBAC reads them.
fn allows(rules: &[Value], verb: &str, group: &str, resource: &str, name: &str) -> bool {
    let lists = |rule: &Value, member: &str, what: &[&str]| {
        rule[member]
            .as_array()
            .is_some_and(|listed| listed.iter().any(|entry| what.iter().any(|one| entry == one)))
    };
    rules.iter().any(|rule| {
        let subresource = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
        lists(rule, "verbs", &[verb, "*"])
            && lists(rule, "apiGroups", &[group, "*"])
            && lists(rule, "resources", &[resource, "*", subresource.as_deref().unwrap_or("*")])
            && (rule.get("resourceNames").is_none() || lists(rule, "resourceNames", &[name]))
    })
}

#[test]
fn a_syncer_may_do_what_it_needs_and_nothing_to_the_workspace() {
    let upsync = |group: &str, resources: &[&str]| UpsyncSet {
        api_group: group.to_owned(),
        resources: resources.iter().map(|resource| (*resource).to_owned()).collect(),
        namespaces: vec!["*".to_owned()],
        names: vec!["*".to_owned()],
    };
    let synced = SyncedKinds {
        carried: [
            "deployments.apps",
            "namespaces",
            "clusterroles.rbac.authorization.k8s.io.denatured",
            "drawers.kiosk.example",
        ]
        .map(kind)
        .into(),
        without_status: ["drawers.kiosk.example", "lids.kiosk.example", "workspaces.tenancy.kcp.io"]
            .map(kind)
            .into(),
        upsync: [
            upsync("wgpolicyk8s.io", &["policyreports"]),
            upsync("metrics.example", &["*"]),
            upsync("", &["*"]),
            upsync("rbac.authorization.k8s.io", &["roles"]),
            upsync("rbac.authorization.k8s.io", &["*"]),
            upsync("apis.kcp.io", &["*"]),
            upsync("tenancy.kcp.io", &["workspaces"]),
            upsync("*", &["*"]),
            upsync("*", &["clusterrolebindings"]),
            upsync("edge.kubestellar.io", &["syncerconfigs"]),
            upsync("edge.kubestellar.io", &["*"]),
            upsync("", &["serviceaccounts/token", "*/token", "namespaces"]),
            upsync("certificates.k8s.io", &["*"]),
            upsync("flowcontrol.apiserver.k8s.io", &["*"]),
        ]
        .into(),
    };
    let rules = rules(&syncer(), &synced);
    for (verb, group, resource, name) in [
        ("get", "", "secrets", "x"),
        ("watch", "apps", "deployments", "x"),
        ("patch", "apps", "deployments/status", "x"),
        ("patch", "kiosk.example", "drawers", "x"),
        ("patch", "edge.kubestellar.io", "syncerconfigs/status", "the-one"),
        ("create", "wgpolicyk8s.io", "policyreports", "x"),
        ("patch", "wgpolicyk8s.io", "policyreports/status", "x"),
        ("delete", "metrics.example", "readings", "x"),
        ("create", "", "configmaps", "x"),
        ("create", "", "namespaces", "x"),
        ("create", "rbac.authorization.k8s.io.denatured", "roles", "x"),
        ("create", "", "serviceaccounts/token", syncer().as_str()),
    ] {
        assert!(allows(&rules, verb, group, resource, name), "may not {verb} {resource}.{group} {name}");
    }
    for (verb, group, resource, name) in [
        ("patch", "apps", "deployments", "x"),
        ("update", "kiosk.example", "drawers", "x"),
        ("patch", "kiosk.example", "lids", "x"),
        ("patch", "tenancy.kcp.io", "workspaces", "x"),
        ("patch", "edge.kubestellar.io", "syncerconfigs", "the-one"),
        ("create", "rbac.authorization.k8s.io", "clusterrolebindings", "x"),
        ("create", "rbac.authorization.k8s.io", "roles", "x"),
        ("create", "tenancy.kcp.io", "workspaces", "x"),
        ("create", "apis.kcp.io", "apibindings", "x"),
        ("patch", "core.kcp.io", "logicalclusters/status", "cluster"),
        ("create", "", "serviceaccounts", "x"),
        ("create", "", "serviceaccounts/token", "another"),
        ("update", "edge.kubestellar.io", "syncerconfigs", "another"),
        ("create", "edge.kubestellar.io", "edgesyncconfigs", "x"),
        ("create", "certificates.k8s.io", "certificatesigningrequests", "x"),
        ("create", "flowcontrol.apiserver.k8s.io", "flowschemas", "x"),
        ("create", "any.group", "things", "x"),
        ("delete", "", "namespaces", "x"),
    ] {
        assert!(!allows(&rules, verb, group, resource, name), "may {verb} {resource}.{group} {name}");
    }
    let everything = rules.iter().any(|rule| rule["verbs"].as_array().unwrap().contains(&json!("*")));
    assert!(!everything, "no rule gives all verbs");
    let reads = |rule: &Value| {
        !["create", "delete", "patch", "update"]
            .iter()
            .any(|verb| allows(std::slice::from_ref(rule), verb, "any", "any", "x"))
    };
    assert!(rules.iter().all(reads), "no rule lets every group be written: {rules:#?}");
}

#[test]
fn a_syncer_may_report_on_its_own_target_only() {
    let target = object(
        "imw",
        "synctargets.edge.kubestellar.io",
        &json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "SyncTarget",
                 "metadata": { "name": "florin", "uid": "f99e773f-3db2-439e-8054-827c4ac55368" } }),
    );
    let all = reporting(&target);
    for fixture in &all {
        assert_eq!(fixture.name.as_str(), syncer().as_str(), "one name for all that belongs to a syncer");
        let owner = &json_of(fixture)["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["kind"], &owner["name"]), (&json!("SyncTarget"), &json!("florin")));
    }
    let role = all.iter().find(|fixture| fixture.kind.resource() == "clusterroles").expect("a role");
    let rules = json_of(role)["rules"].as_array().expect("rules").clone();
    assert!(allows(&rules, "patch", "edge.kubestellar.io", "synctargets/status", "florin"));
    assert!(!allows(&rules, "patch", "edge.kubestellar.io", "synctargets/status", "guilder"));
    assert!(!allows(&rules, "patch", "edge.kubestellar.io", "synctargets", "florin"));
}

const LIMITS: Limits = Limits { silent_after_seconds: 90, write_every_seconds: 300 };

fn status(judged: &Judged, type_: &str) -> (ConditionStatus, String) {
    let found = mailboat_api::condition::find(&judged.conditions, type_).expect(type_);
    (found.status, found.reason.clone())
}

#[test]
fn ready_is_lost_after_a_silence_and_comes_back_with_a_beat() {
    let standing = Standing { generation: 3, ..Standing::default() };
    let pulse = Pulse::first(1_000, 1_010);
    let alive = judge(&[], None, Some(pulse), &standing, 1_010, LIMITS).expect("first words");
    assert_eq!(status(&alive, types::READY), (ConditionStatus::True, "Heard".to_owned()));
    let again = |now: u64, pulse: Pulse, before: &Judged| {
        judge(&before.conditions, before.heartbeat, Some(pulse), &standing, now, LIMITS)
    };
    assert_eq!(again(1_089, pulse, &alive), None, "nothing new to say");
    assert_eq!(pulse.silent_from(LIMITS), 1_090);
    let silent = again(1_090, pulse, &alive).expect("silence");
    assert_eq!(status(&silent, types::READY), (ConditionStatus::False, "ErrorHeartbeat".to_owned()));
    let message = &silent.conditions[0].message;
    assert!(message.contains("90 seconds") && message.contains("1970-01-01T00:16:40Z"), "{message}");
    assert_eq!(again(2_000, pulse, &silent), None, "it is said once");
    let back = again(2_001, pulse.seen(1_990, 2_001), &silent).expect("a beat");
    assert_eq!(status(&back, types::READY), (ConditionStatus::True, "Heard".to_owned()));
}

#[test]
fn beats_in_time_are_written_every_few_minutes_only() {
    let standing = Standing::default();
    let mut pulse = Pulse::first(1_000, 1_000);
    let mut said = judge(&[], None, Some(pulse), &standing, 1_000, LIMITS).expect("first words");
    let mut writes = 0;
    for beat in 1..=40 {
        let now = 1_000 + 30 * beat;
        pulse = pulse.seen(now, now);
        if let Some(judged) = judge(&said.conditions, said.heartbeat, Some(pulse), &standing, now, LIMITS) {
            said = judged;
            writes += 1;
        }
    }
    assert_eq!(writes, 4, "in twenty minutes");
}

#[test]
fn a_wrong_clock_at_the_edge_is_no_silence() {
    let mut pulse = Pulse::first(500, 10_000);
    for beat in 0..10 {
        let now = 10_000 + 30 * beat;
        pulse = pulse.seen(500 + 30 * beat + 1, now);
        assert!(now < pulse.silent_from(LIMITS), "beats come, whatever time they say");
    }
    // A time from the future that never changes is no sign of life for ever.
    let ahead = Pulse::first(99_999, 10_000);
    assert_eq!(ahead.seen(99_999, 20_000).silent_from(LIMITS), 10_090);
}

#[test]
fn a_center_that_starts_says_what_was_said_until_a_beat_was_missed() {
    let standing = Standing::default();
    let say = |before: &Judged, pulse: Pulse, now: u64| {
        judge(&before.conditions, before.heartbeat, Some(pulse), &standing, now, LIMITS)
    };
    // The clock of its edge is two minutes slow.
    let well = judge(&[], None, Some(Pulse::first(880, 880).seen(881, 1_000)), &standing, 1_000, LIMITS)
        .expect("first words");
    assert_eq!(status(&well, types::READY).0, ConditionStatus::True);
    let found = Pulse::found(881, 1_010);
    assert_eq!((say(&well, found, 1_010), say(&well, found, 1_099)), (None, None));
    assert_eq!(found.heard_in_time(), 1_010);
    assert_eq!(say(&well, found.seen(911, 1_030), 1_030), None, "a beat");
    assert_eq!(found.silent_from(LIMITS), 1_100);
    let silent = say(&well, found, 1_100).expect("silence");
    assert_eq!(status(&silent, types::READY), (ConditionStatus::False, "ErrorHeartbeat".to_owned()));
    assert_eq!(silent.heartbeat, Some(1_000), "what was heard before was heard");
    // Its clock is fast, and it was silent before.
    let found = Pulse::found(9_000, 2_000);
    assert_eq!((say(&silent, found, 2_000), say(&silent, found, 5_000)), (None, None));
    let back = say(&silent, found.seen(9_030, 5_010), 5_010).expect("a beat");
    assert_eq!(status(&back, types::READY).0, ConditionStatus::True);
    // Nothing was said of it before: its clock is all there is.
    let late =
        judge(&[], None, Some(Pulse::found(100, 1_000)), &standing, 1_000, LIMITS).expect("first words");
    assert_eq!(status(&late, types::READY).0, ConditionStatus::False);
}

#[test]
fn before_the_first_beat_nobody_can_tell_and_without_a_mailbox_it_cannot_be_ready() {
    let unheard = judge(&[], None, None, &Standing::default(), 10, LIMITS).expect("first words");
    assert_eq!(status(&unheard, types::READY), (ConditionStatus::Unknown, "NeverHeard".to_owned()));
    let standing =
        Standing { mailbox_missing: Some("its workspace is being made".to_owned()), ..Standing::default() };
    let waiting = judge(&[], None, Some(Pulse::first(10, 10)), &standing, 10, LIMITS).expect("first words");
    assert_eq!(status(&waiting, types::READY), (ConditionStatus::False, "NoMailbox".to_owned()));
    assert_eq!(status(&waiting, types::HEARTBEAT_HEALTHY).0, ConditionStatus::True);
}

#[test]
fn a_syncer_whose_mailbox_was_made_again_is_said_to_need_a_new_credential() {
    let standing = Standing { name: "florin".to_owned(), ..Standing::default() };
    let heard = judge(&[], None, Some(Pulse::first(10, 10)), &standing, 10, LIMITS).expect("first words");
    let authorized = |judged: &Judged| {
        mailboat_api::condition::find(&judged.conditions, types::SYNCER_AUTHORIZED).cloned()
    };
    assert_eq!(authorized(&heard), None);
    // For a while there is none at all.
    let missing =
        Standing { mailbox_missing: Some("its workspace is being made".to_owned()), ..standing.clone() };
    let between = judge(&heard.conditions, heard.heartbeat, None, &missing, 15, LIMITS).expect("no mailbox");
    assert_eq!(authorized(&between), None);
    assert_eq!(status(&between, types::READY), (ConditionStatus::False, "NoMailbox".to_owned()));
    // The other workspace has heard nothing yet. A center that starts knows no more than that.
    let again =
        judge(&between.conditions, between.heartbeat, None, &standing, 20, LIMITS).expect("a new mailbox");
    let said = authorized(&again).expect("a word");
    assert_eq!((said.status, &*said.reason), (ConditionStatus::False, "MailboxMadeAgain"));
    assert!(said.message.contains("prep-for-syncer florin`"), "{}", said.message);
    assert_eq!(status(&again, types::READY), (ConditionStatus::False, "MailboxMadeAgain".to_owned()));
    assert_eq!(
        judge(&again.conditions, again.heartbeat, None, &standing, 30, LIMITS),
        None,
        "it is said once"
    );
    let back = judge(&again.conditions, again.heartbeat, Some(Pulse::first(40, 40)), &standing, 40, LIMITS);
    let back = back.expect("a beat");
    assert_eq!(authorized(&back).expect("a word").status, ConditionStatus::True);
    assert_eq!(status(&back, types::READY).0, ConditionStatus::True);
    // One of another make writes into the SyncTarget itself, and was never heard in its mailbox.
    let foreign = judge(&[], Some(10), None, &standing, 20, LIMITS).expect("first words");
    assert_eq!(authorized(&foreign), None);
}

#[test]
fn unschedulable_is_said_with_the_time_since_when() {
    let standing = |unschedulable| Standing { unschedulable, ..Standing::default() };
    let before = judge(&[], None, None, &standing(false), 10, LIMITS).expect("first words");
    let cordoned = judge(&before.conditions, None, None, &standing(true), 20, LIMITS).expect("a change");
    let since = |judged: &Judged| {
        mailboat_api::condition::find(&judged.conditions, types::SCHEDULABLE)
            .unwrap()
            .last_transition_time
            .clone()
            .unwrap()
            .0
            .as_second()
    };
    assert_eq!((status(&cordoned, types::SCHEDULABLE).0, since(&cordoned)), (ConditionStatus::False, 20));
    assert_eq!(judge(&cordoned.conditions, None, None, &standing(true), 30, LIMITS), None);
}
