use serde_json::{Value, json};

use super::*;
use crate::fixtures::{Knowledge, key, kind, object};

const CLUSTER: &str = "workload";

fn what(spec: &Value) -> What {
    What::of(&serde_json::from_value(spec.clone()).expect("a placement's spec"))
}

fn named(namespace: &str, name: &str, labels: &Value) -> Value {
    let mut object = json!({ "metadata": { "name": name, "labels": labels } });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// Two namespaces: `till` is labeled `special: yes`, `back` is not.
fn knowledge() -> Knowledge {
    let mut knowledge = Knowledge::new();
    let namespaces = [named("", "till", &json!({ "special": "yes" })), named("", "back", &json!({}))];
    knowledge.list(CLUSTER, "namespaces", &namespaces);
    knowledge
}

/// Which test selects an object: its index, or the reason why that cannot be said.
fn selected(what: &What, knowledge: &Knowledge, kind: &str, json: &Value) -> Result<Option<usize>, String> {
    let found = what.select(&object(CLUSTER, kind, json), &View::new(&knowledge.store));
    match found {
        Ok(None) => Ok(None),
        Ok(Some(Because::Test(index))) => Ok(Some(index)),
        Ok(Some(other)) => Err(format!("selected by {other:?}")),
        Err(hold) => Err(hold.reason),
    }
}

#[test]
fn every_criterion_must_hold_and_an_empty_one_holds_for_anything() {
    let knowledge = knowledge();
    let pos = named("till", "pos", &json!({ "part": "pos" }));
    let role = named("", "reader", &json!({}));
    for (test, fits_pos, fits_role) in [
        (json!({ "apiGroup": "apps" }), true, false),
        (json!({ "apiGroup": "" }), false, false),
        (json!({ "apiGroup": "*" }), false, false),
        (json!({ "resources": ["deployments"] }), true, false),
        (json!({ "resources": ["statefulsets", "deployments"] }), true, false),
        (json!({ "apiGroup": "apps", "resources": ["*"] }), true, false),
        (json!({ "apiGroup": "apps", "resources": ["statefulsets"] }), false, false),
        (json!({ "namespaces": ["till"] }), true, false),
        (json!({ "namespaces": ["back"] }), false, false),
        (json!({ "namespaces": ["*"], "objectNames": ["pos", "reader"] }), true, true),
        (json!({ "objectNames": ["reader"] }), false, true),
        (json!({ "objectNames": ["*"], "resources": ["clusterpolicies"] }), false, true),
        (
            json!({ "labelSelectors": [{ "matchLabels": { "part": "x" } }, { "matchLabels": { "part": "pos" } }] }),
            true,
            false,
        ),
        (json!({ "labelSelectors": [{ "matchLabels": { "part": "x" } }] }), false, false),
        (json!({ "labelSelectors": [{}], "apiGroup": "apps" }), true, false),
        (json!({ "namespaceSelectors": [{ "matchLabels": { "special": "yes" } }] }), true, false),
        (json!({ "namespaceSelectors": [{ "matchLabels": { "special": "no" } }] }), false, false),
        // A cluster-scoped object is tested as if its namespace had no labels.
        (
            json!({ "namespaceSelectors": [{ "matchExpressions": [{ "key": "special", "operator": "DoesNotExist" }] }] }),
            false,
            true,
        ),
        (json!({ "namespaceSelectors": [{}], "resources": ["clusterpolicies", "deployments"] }), true, true),
        (
            json!({ "apiGroup": "apps", "namespaces": ["till"], "objectNames": ["pos"], "labelSelectors": [{ "matchLabels": { "part": "y" } }] }),
            false,
            false,
        ),
    ] {
        let what = what(&json!({ "downsync": [test] }));
        let expected = |fits: bool| Ok(if fits { Some(0) } else { None });
        assert_eq!(
            selected(&what, &knowledge, "deployments.apps", &pos),
            expected(fits_pos),
            "pos by {test}"
        );
        assert_eq!(
            selected(&what, &knowledge, "clusterpolicies.kyverno.io", &role),
            expected(fits_role),
            "role by {test}"
        );
    }
}

#[test]
fn the_tests_of_a_placement_are_alternatives_and_none_is_nothing() {
    let knowledge = knowledge();
    let of = |name: &str| named("till", name, &json!({}));
    let what = what(&json!({ "downsync": [{ "objectNames": ["a"] }, { "objectNames": ["b"] }] }));
    assert_eq!(selected(&what, &knowledge, "configmaps", &of("a")), Ok(Some(0)));
    assert_eq!(selected(&what, &knowledge, "configmaps", &of("b")), Ok(Some(1)));
    assert_eq!(selected(&what, &knowledge, "configmaps", &of("c")), Ok(None));
    assert_eq!(selected(&What::default(), &knowledge, "configmaps", &of("a")), Ok(None));
}

#[test]
fn a_namespace_that_is_not_known_yet_selects_nothing_and_drops_nothing() {
    let what =
        what(&json!({ "downsync": [{ "namespaceSelectors": [{ "matchLabels": { "special": "yes" } }] }] }));
    let unknown = selected(&what, &Knowledge::new(), "configmaps", &named("till", "a", &json!({})));
    assert!(unknown.as_ref().is_err_and(|reason| reason.contains("namespace")), "{unknown:?}");
}

#[test]
fn a_namespace_that_vanished_before_its_objects_drops_nothing() {
    let mut knowledge = knowledge();
    let what =
        what(&json!({ "downsync": [{ "namespaceSelectors": [{ "matchLabels": { "special": "yes" } }] }] }));
    let pos = named("till", "a", &json!({}));
    assert_eq!(selected(&what, &knowledge, "configmaps", &pos), Ok(Some(0)));
    knowledge.event(CLUSTER, "namespaces", "DELETED", &named("", "till", &json!({ "special": "yes" })));
    let held = selected(&what, &knowledge, "configmaps", &pos);
    assert_eq!(held, Err("its namespace is gone, and it is not".to_owned()));
}

#[test]
fn a_changed_label_of_a_namespace_wakes_what_is_in_it() {
    let mut knowledge = knowledge();
    let what =
        what(&json!({ "downsync": [{ "namespaceSelectors": [{ "matchLabels": { "special": "yes" } }] }] }));
    let pos = object(CLUSTER, "configmaps", &named("till", "a", &json!({})));
    let view = View::new(&knowledge.store);
    assert!(what.select(&pos, &view).expect("known").is_some());
    let reads = view.take_reads();
    let namespace = key(CLUSTER, "namespaces", "", "till");
    assert_eq!(reads, [mailboat_engine::route::Read::Object(namespace)]);
    knowledge.event(CLUSTER, "namespaces", "MODIFIED", &named("", "till", &json!({})));
    assert_eq!(what.select(&pos, &View::new(&knowledge.store)), Ok(None));
}

#[test]
fn another_test_decides_where_one_cannot() {
    let what = what(&json!({ "downsync": [
        { "namespaceSelectors": [{ "matchLabels": { "special": "yes" } }] },
        { "objectNames": ["a"] },
    ] }));
    assert_eq!(
        selected(&what, &Knowledge::new(), "configmaps", &named("till", "a", &json!({}))),
        Ok(Some(1))
    );
}

#[test]
fn a_test_that_matches_everything_is_refused_and_withdraws_nothing() {
    let knowledge = knowledge();
    for test in [
        json!({}),
        json!({ "resources": ["*"], "namespaces": ["*"], "objectNames": ["*"] }),
        json!({ "namespaceSelectors": [{}], "labelSelectors": [{ "matchLabels": { "a": "b" } }, {}] }),
    ] {
        let what = what(&json!({ "downsync": [test] }));
        let errors: Vec<_> = what.validation_errors().iter().map(|error| error.path.as_str()).collect();
        assert_eq!(errors, ["spec.downsync[0]"], "{test}");
        let held = selected(&what, &knowledge, "configmaps", &named("till", "a", &json!({})));
        assert!(held.is_err(), "{test}: {held:?}");
    }
}

#[test]
fn a_selector_that_cannot_be_understood_is_named_and_withdraws_nothing() {
    let knowledge = knowledge();
    let bad = json!({ "matchExpressions": [{ "key": "a", "operator": "Near", "values": ["b"] }] });
    let what = what(&json!({ "downsync": [
        { "objectNames": ["other"] },
        { "resources": ["configmaps"], "labelSelectors": [{ "matchLabels": { "a": "b" } }, bad] },
    ] }));
    let [error] = what.validation_errors() else { panic!("{:?}", what.validation_errors()) };
    assert_eq!(error.path, "spec.downsync[1].labelSelectors[1]");
    assert!(error.message.contains("operator"), "{}", error.message);
    let of = |kind: &str| selected(&what, &knowledge, kind, &named("till", "a", &json!({})));
    assert!(of("configmaps").is_err(), "it may have been selected before");
    assert_eq!(of("secrets"), Ok(None), "another kind was never meant");
}

#[test]
fn a_star_among_names_and_as_a_group_are_told_about() {
    let what = what(&json!({ "downsync": [{ "apiGroup": "*", "resources": ["configmaps", "*"] }] }));
    let errors: Vec<_> = what.validation_errors().iter().map(|error| error.path.as_str()).collect();
    assert_eq!(errors, ["spec.downsync[0].apiGroup", "spec.downsync[0].resources"]);
}

#[test]
fn what_would_be_a_right_over_mailboxes_is_named_and_not_brought_up() {
    let upsync = |group: &str, resources: &[&str]| json!({ "apiGroup": group, "resources": resources, "namespaces": ["*"], "names": ["*"] });
    let what = what(&json!({ "upsync": [
        upsync("wgpolicyk8s.io", &["*"]),
        upsync("rbac.authorization.k8s.io", &["roles", "*"]),
        upsync("*", &["*", "clusterrolebindings"]),
        upsync("edge.kubestellar.io", &["syncerconfigs"]),
        upsync("", &["configmaps", "serviceaccounts/token", "name*"]),
        upsync("", &["*", "namespaces", "serviceaccounts"]),
        upsync("apps/v1", &["deployments"]),
    ] }));
    let errors: Vec<_> = what.validation_errors().iter().map(|error| error.path.as_str()).collect();
    assert_eq!(
        errors,
        [
            "spec.upsync[1].resources[1]",
            "spec.upsync[2].apiGroup",
            "spec.upsync[3].resources[0]",
            "spec.upsync[4].resources[1]",
            "spec.upsync[4].resources[2]",
            "spec.upsync[6].apiGroup",
        ]
    );
}

#[test]
fn what_comes_from_the_edges_is_not_sent_there() {
    let knowledge = knowledge();
    let upsync = |namespaces: &Value, names: &Value| {
        what(&json!({
            "downsync": [{ "resources": ["policyreports"] }],
            "upsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"], "namespaces": namespaces, "names": names }],
        }))
    };
    let report = named("till", "r", &json!({}));
    for (namespaces, names, sent) in [
        (json!(["till"]), json!(["r"]), None),
        (json!(["*"]), json!(["*"]), None),
        (json!(["till"]), json!(["other"]), Some(0)),
        (json!(["policyreports"]), json!(["policyreports"]), Some(0)),
        (json!([]), json!(["*"]), Some(0)),
        (json!(["*"]), json!([]), Some(0)),
    ] {
        let found =
            selected(&upsync(&namespaces, &names), &knowledge, "policyreports.wgpolicyk8s.io", &report);
        assert_eq!(found, Ok(sent), "{namespaces} {names}");
    }
}

#[test]
fn what_belongs_to_the_center_or_to_one_server_never_travels() {
    for text in [
        "edgeplacements.edge.kubestellar.io",
        "synctargets.workload.kcp.io",
        "locations.scheduling.kcp.io",
        "workspaces.tenancy.kcp.io",
        "partitions.topology.kcp.io",
        "apiexports.apis.kcp.io",
        "apiexportendpointslices.apis.kcp.io",
        "apiresourceschemas.apis.kcp.io",
        "apiconversions.apis.kcp.io",
        "negotiatedapiresources.apiresource.kcp.io",
        "logicalclusters.core.kcp.io",
        "controllerrevisions.apps",
        "tokenreviews.authentication.k8s.io",
        "subjectaccessreviews.authorization.k8s.io",
        "certificatesigningrequests.certificates.k8s.io",
        "leases.coordination.k8s.io",
        "events.events.k8s.io",
        "events",
        "nodes",
        "bindings",
        "componentstatuses",
    ] {
        assert!(excluded_kind(&kind(text)).is_some(), "{text}");
    }
    for text in [
        "deployments.apps",
        "apibindings.apis.kcp.io",
        "syncerconfigs.edge.kubestellar.io",
        "nodes.example.com",
    ] {
        assert_eq!(excluded_kind(&kind(text)), None, "{text}");
    }
}

#[test]
fn single_objects_that_each_server_has_its_own_of_never_travel() {
    let grant = |name: &str, subject: &str| json!({ "metadata": { "name": name }, "subjects": [{ "kind": "Group", "name": subject }] });
    let secret = |kind: &str| json!({ "metadata": { "namespace": "till", "name": "s" }, "type": kind });
    for (kind, json, travels) in [
        ("secrets", secret("kubernetes.io/service-account-token"), false),
        ("secrets", secret("bootstrap.kubernetes.io/token"), false),
        ("secrets", secret("Opaque"), true),
        ("configmaps", named("till", "kube-root-ca.crt", &json!({})), false),
        ("configmaps", named("kcp-system", "x", &json!({})), false),
        ("namespaces", named("", "kcp-system", &json!({})), false),
        ("namespaces", named("", "default", &json!({})), true),
        ("serviceaccounts", named("till", "default", &json!({})), false),
        ("serviceaccounts", named("till", "pos", &json!({})), true),
        ("serviceaccounts", named("till", "pos", &json!({ "mailboat.dev/owner": "center" })), false),
        ("clusterrolebindings.rbac.authorization.k8s.io", grant("workspace-admin", "somebody"), false),
        ("clusterrolebindings.rbac.authorization.k8s.io", grant("x", "mailboat:center"), false),
        ("rolebindings.rbac.authorization.k8s.io", grant("x", "mailboat:center"), false),
        ("clusterrolebindings.rbac.authorization.k8s.io", grant("x", "somebody"), true),
        ("syncerconfigs.edge.kubestellar.io", named("", "the-one", &json!({})), false),
        ("syncerconfigs.edge.kubestellar.io", named("", "mine", &json!({})), true),
    ] {
        let found = excluded_object(&object(CLUSTER, kind, &json));
        assert_eq!(found.is_none(), travels, "{kind} {json}: {found:?}");
    }
}

fn crontabs() -> Value {
    json!({ "metadata": { "name": "crontabs.stable.example.com" }, "spec": { "group": "stable.example.com", "names": { "plural": "crontabs" } } })
}

#[test]
fn what_defines_a_selected_kind_goes_along() {
    let mut knowledge = knowledge();
    let cron = named("till", "my-new-cron-object", &json!({}));
    knowledge.list(CLUSTER, "crontabs.stable.example.com", std::slice::from_ref(&cron));
    let what = what(&json!({ "downsync": [
        { "resources": ["configmaps"] },
        { "apiGroup": "stable.example.com", "resources": ["crontabs"], "namespaces": ["till"], "objectNames": ["my-new-cron-object"] },
    ] }));
    let binding = json!({ "metadata": { "name": "bind-cron" }, "status": { "boundResources": [
        { "group": "other.example.com", "resource": "others" },
        { "group": "stable.example.com", "resource": "crontabs" },
    ] } });
    for (definer, json) in [
        ("customresourcedefinitions.apiextensions.k8s.io", crontabs()),
        ("customresourcedefinitions.apiextensions.k8s.io.denatured", crontabs()),
        ("apibindings.apis.kcp.io", binding),
    ] {
        let found = what.select(&object(CLUSTER, definer, &json), &View::new(&knowledge.store));
        let because = Because::Defines(kind("crontabs.stable.example.com"), 1);
        assert_eq!(found, Ok(Some(because)), "{definer}");
    }
    // With the last selected object the reason to go along is gone.
    let definer = object(CLUSTER, "customresourcedefinitions.apiextensions.k8s.io", &crontabs());
    knowledge.event(CLUSTER, "crontabs.stable.example.com", "DELETED", &cron);
    assert_eq!(what.select(&definer, &View::new(&knowledge.store)), Ok(None));
}

#[test]
fn what_defines_an_upsynced_kind_goes_along() {
    let upsyncs = what(
        &json!({ "upsync": [{ "apiGroup": "stable.example.com", "resources": ["*"], "namespaces": ["*"], "names": ["*"] }] }),
    );
    let definer = object(CLUSTER, "customresourcedefinitions.apiextensions.k8s.io", &crontabs());
    let found = upsyncs.select(&definer, &View::new(&knowledge().store));
    assert_eq!(found, Ok(Some(Because::DefinesUpsynced(kind("crontabs.stable.example.com")))));
}

#[test]
fn a_definer_of_what_is_not_listed_yet_is_undecided() {
    let what = what(&json!({ "downsync": [{ "apiGroup": "stable.example.com" }] }));
    let definer = object(CLUSTER, "customresourcedefinitions.apiextensions.k8s.io", &crontabs());
    let found = what.select(&definer, &View::new(&knowledge().store));
    assert!(
        found.as_ref().is_err_and(|hold| hold.reason.contains("crontabs.stable.example.com")),
        "{found:?}"
    );
}

#[test]
fn an_object_found_denatured_is_meant_by_its_real_group() {
    let what = what(
        &json!({ "downsync": [{ "apiGroup": "rbac.authorization.k8s.io", "resources": ["clusterroles"] }] }),
    );
    let role = named("", "kyverno:admin", &json!({}));
    let denatured = "clusterroles.rbac.authorization.k8s.io.denatured";
    assert_eq!(selected(&what, &knowledge(), denatured, &role), Ok(Some(0)));
    assert!(what.may_select(&kind(denatured)) && !what.may_select(&kind("roles.rbac.authorization.k8s.io")));
}

#[test]
fn the_reason_reads_as_the_entry_of_the_placement() {
    assert_eq!(Because::Test(2).by().as_str(), "spec.downsync[2]");
    let defines = Because::Defines(kind("crontabs.stable.example.com"), 3);
    assert_eq!(defines.by().as_str(), "spec.downsync[3] (which selects crontabs.stable.example.com)");
}
