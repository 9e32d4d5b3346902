use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::route::Rank;
use mailboat_engine::route::Read;
use mailboat_engine::want::Delivery;
use mailboat_object::digest::Digest;
use mailboat_object::key::ClusterId;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{Knowledge, key, object};

const WORKSPACE: &str = "wmw";
const LOCATIONS: &str = "locations.edge.kubestellar.io";
const CUSTOMIZERS: &str = "customizers.edge.kubestellar.io";
const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

fn marks() -> Arc<dyn Marks> {
    Arc::new(StandardMarks::new(OwnerId(Name::new("center"))))
}

fn location(name: &str, extra: &Value) -> Value {
    let mut labels = json!({ "loc-name": name, "env": "prod" });
    for (key, value) in extra.as_object().expect("labels") {
        labels[key] = value.clone();
    }
    json!({ "metadata": { "name": name, "labels": labels } })
}

fn customizer() -> Value {
    json!({
        "metadata": {
            "namespace": "commonstuff", "name": "example-customizer",
            "annotations": { "edge.kubestellar.io/expand-parameters": "true" },
        },
        "replacements": [{ "path": "$.spec.template.spec.containers.0.env.0.value", "value": "\"env is %(env)\"" }],
    })
}

/// Two Locations, a Customizer, and empty lists of what else may be asked for.
fn knowledge() -> Knowledge {
    let mut knowledge = Knowledge::new();
    knowledge.list(
        "imw",
        LOCATIONS,
        &[location("florin", &json!({})), location("guilder", &json!({ "extended": "yes" }))],
    );
    knowledge.list(WORKSPACE, CUSTOMIZERS, &[customizer()]);
    knowledge.list(WORKSPACE, "namespaces", &[]);
    knowledge
}

fn edge(location: &str) -> Edge {
    Edge { location: key("imw", LOCATIONS, "", location), departed: false }
}

fn destination(id: u32) -> Destination {
    Destination { id: DestinationId(id), cluster: ClusterId::new(&format!("mailbox-{id}")) }
}

fn what(spec: &Value) -> Arc<What> {
    Arc::new(What::of(&serde_json::from_value(spec.clone()).expect("a spec")))
}

fn translator_to(spec: &Value, edges: &[(u32, Edge)], singletons: Singletons) -> Translator {
    let placement = object(
        WORKSPACE,
        "edgeplacements.edge.kubestellar.io",
        &json!({ "metadata": { "name": "ep", "creationTimestamp": "2024-01-01T00:00:00Z" }, "spec": spec }),
    );
    Translator::new(Placed {
        keeps: false,
        placement: &placement,
        what: what(spec),
        sources: Vec::new(),
        edges: edges.iter().map(|(id, edge)| (DestinationId(*id), edge.clone())).collect(),
        singletons: Arc::new(singletons),
        provider: Arc::from("root:espw"),
        provider_cluster: ClusterId::new("espw"),
        marks: marks(),
    })
}

fn translator(spec: &Value) -> Translator {
    translator_to(spec, &[(1, edge("florin")), (2, edge("guilder"))], Singletons::default())
}

fn everything_in_apps() -> Value {
    json!({ "downsync": [{ "apiGroup": "apps" }, { "resources": ["configmaps"] }] })
}

fn body(want: &Want) -> Value {
    serde_json::from_slice(&want.body.json).expect("JSON")
}

fn projected(
    route: &Translator,
    source: &Object,
    to: u32,
    knowledge: &Knowledge,
) -> Result<Vec<Want>, String> {
    route.project(source, &destination(to), &View::new(&knowledge.store)).map_err(|hold| hold.reason)
}

fn page() -> Arc<Object> {
    object(
        WORKSPACE,
        "configmaps",
        &json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "namespace": "commonstuff", "name": "httpd-htdocs",
                "annotations": { "edge.kubestellar.io/expand-parameters": "true" },
            },
            "data": { "index.html": "This is a common web site.\nRunning in %(loc-name)." },
        }),
    )
}

fn commond() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "namespace": "commonstuff", "name": "commond",
            "annotations": { "edge.kubestellar.io/customizer": "example-customizer" },
        },
        "spec": { "template": { "spec": { "containers": [
            { "name": "httpd", "env": [{ "name": "EXAMPLE_VAR", "value": "example value" }] },
        ] } } },
    })
}

#[test]
fn example_one_arrives_in_each_mailbox_in_the_form_meant_for_it() {
    let (knowledge, route) = (knowledge(), translator(&everything_in_apps()));
    for (id, name) in [(1, "florin"), (2, "guilder")] {
        let wants = projected(&route, &page(), id, &knowledge).expect("customized");
        let [want] = wants.as_slice() else { panic!("{} wants", wants.len()) };
        assert_eq!(want.slot, key(&format!("mailbox-{id}"), "configmaps", "commonstuff", "httpd-htdocs"));
        let found = body(want);
        assert_eq!(found["data"]["index.html"], format!("This is a common web site.\nRunning in {name}."));
        assert_eq!(found["metadata"]["labels"]["edge.kubestellar.io/projected"], "yes");
        let wants = projected(&route, &object(WORKSPACE, "replicasets.apps", &commond()), id, &knowledge);
        let found = body(&wants.expect("customized")[0]);
        assert_eq!(found["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"], "env is prod");
    }
}

#[test]
fn h35_what_is_only_true_in_the_workspace_stays_there() {
    let source = object(
        WORKSPACE,
        "deployments.apps",
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "namespace": "n", "name": "d", "uid": "u", "resourceVersion": "7", "generation": 3,
                "finalizers": ["example.com/stay"],
                "ownerReferences": [{ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "y" }],
                "labels": { "app": "d", "mailboat.dev/owner": "publisher" },
                "annotations": {
                    "note": "travels", "kcp.io/cluster": "wmw", "kubestellar.io/executing-count": "2",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}", "mailboat.dev/mark": "{}",
                },
            },
            "spec": { "replicas": 1 }, "status": { "replicas": 1 },
        }),
    );
    let wants = projected(&translator(&everything_in_apps()), &source, 1, &knowledge()).expect("a copy");
    assert_eq!(
        body(&wants[0]),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "namespace": "n", "name": "d",
                "labels": { "app": "d", "edge.kubestellar.io/projected": "yes" },
                "annotations": { "note": "travels" },
            },
            "spec": { "replicas": 1 },
        })
    );
}

#[test]
fn a_kind_that_would_take_effect_is_stored_under_another_group() {
    let role = |api_version: &str| json!({ "apiVersion": api_version, "kind": "ClusterRole", "metadata": { "name": "kyverno:admin" }, "rules": [] });
    let denatured = "clusterroles.rbac.authorization.k8s.io.denatured";
    let spec = json!({ "downsync": [{ "apiGroup": "rbac.authorization.k8s.io" }] });
    for (source_kind, api_version) in [
        ("clusterroles.rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"),
        (denatured, "rbac.authorization.k8s.io.denatured/v1"),
    ] {
        let source = object(WORKSPACE, source_kind, &role(api_version));
        let wants = projected(&translator(&spec), &source, 1, &knowledge()).expect("a copy");
        assert_eq!(wants[0].slot, key("mailbox-1", denatured, "", "kyverno:admin"));
        assert_eq!(body(&wants[0])["apiVersion"], "rbac.authorization.k8s.io.denatured/v1");
    }
}

#[test]
fn a_definition_travels_as_data_with_a_binding_beside_it() {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "crontabs.stable.example.com" },
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced",
            "names": { "plural": "crontabs", "kind": "CronTab" },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
    });
    let spec = json!({ "downsync": [{ "apiGroup": "stable.example.com" }] });
    let crd = object(WORKSPACE, CRDS, &crd);
    let wants = projected(&translator(&spec), &crd, 1, &knowledge()).expect("a copy");
    let [copy, binding, schema, export] = wants.as_slice() else { panic!("{} wants", wants.len()) };
    assert_eq!(copy.slot, key("mailbox-1", &format!("{CRDS}.denatured"), "", "crontabs.stable.example.com"));
    assert_eq!(
        binding.slot,
        key("mailbox-1", "apibindings.apis.kcp.io", "", "crd-crontabs.stable.example.com")
    );
    assert_eq!(
        body(binding)["spec"]["reference"]["export"],
        json!({ "path": "root:espw", "name": "crontabs.stable.example.com" })
    );
    assert_eq!(export.slot, key("espw", "apiexports.apis.kcp.io", "", "crontabs.stable.example.com"));
    assert_eq!(body(export)["spec"]["resources"][0]["schema"], schema.slot.name.as_str());
    assert_eq!(schema.slot.cluster, ClusterId::new("espw"));
    for stays in [binding, schema, export] {
        assert_eq!(
            stays.policy.withdrawal,
            Withdrawal::Leave,
            "with {} go all objects of a kind",
            stays.slot
        );
    }
    assert!(translator(&spec).varies(&crd), "what is wanted in one cluster alone is not the same for all");
}

fn api_binding(name: &str, path: &str, export: &str) -> Arc<Object> {
    let json = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": name },
        "spec": {
            "reference": { "export": { "path": path, "name": export } },
            "permissionClaims": [{ "resource": "secrets", "state": "Accepted" }],
        },
        "status": { "boundResources": [{ "group": "wgpolicyk8s.io", "resource": "policyreports" }] },
    });
    object(WORKSPACE, "apibindings.apis.kcp.io", &json)
}

#[test]
fn a_binding_goes_along_to_the_same_export_without_the_rights_it_gave_away() {
    let upsync = json!({ "upsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"], "namespaces": ["*"], "names": ["*"] }] });
    let (route, knowledge) = (translator(&upsync), knowledge());
    for (name, path, expected_path) in
        [("policy-report", "root:policies", "root:policies"), ("policy-report", "", WORKSPACE)]
    {
        let source = api_binding(name, path, "policy-report");
        let selected = route.select(&source, &View::new(&knowledge.store)).expect("decided");
        assert_eq!(selected.by.as_str(), "spec.upsync (which names policyreports.wgpolicyk8s.io)");
        let wants = projected(&route, &source, 1, &knowledge).expect("a copy");
        let found = body(&wants[0]);
        assert_eq!(
            found["spec"],
            json!({ "reference": { "export": { "path": expected_path, "name": "policy-report" } } })
        );
        assert_eq!((wants.len(), wants[0].slot.name.as_str()), (1, "policy-report"));
    }
    // A name that the mailbox's own bindings have does not collide with them.
    let wants = projected(&route, &api_binding("bind-edge", "root:policies", "policy-report"), 1, &knowledge);
    assert_ne!(wants.expect("a copy")[0].slot.name.as_str(), "bind-edge");
    // Mailboxes are bound to the provider's exports in any case.
    let ours = api_binding("bind-kube", "root:espw", "kubernetes");
    assert!(route.select(&ours, &View::new(&knowledge.store)).expect("decided").to.is_empty());
}

/// What a workspace has from somebody else's export is seen in mailboxes by a claim on it, of that identity and no other.
#[test]
fn a_binding_to_what_is_sent_brings_along_what_lets_the_center_see_it() {
    let sends = json!({ "downsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"] }] });
    let (route, mut knowledge) = (translator(&sends), knowledge());
    let reports = "policyreports.wgpolicyk8s.io";
    let report = json!({ "metadata": { "namespace": "till", "name": "r" } });
    knowledge.list(WORKSPACE, reports, std::slice::from_ref(&report));
    let bound = |identity: Value| {
        let binding = api_binding("policy-report", "root:policies", "policy-report");
        let mut json: Value = serde_json::from_slice(binding.json()).expect("JSON");
        json["status"]["boundResources"][0]["schema"] = identity;
        object(WORKSPACE, "apibindings.apis.kcp.io", &json)
    };
    let source = bound(json!({ "identityHash": "0123456789abcdef" }));
    assert!(route.varies(&source), "what is wanted in one cluster alone is not the same for all");
    let wants = projected(&route, &source, 1, &knowledge).expect("wants");
    let [copy, export, claim] = wants.as_slice() else { panic!("{} wants", wants.len()) };
    assert_eq!(copy.slot.name.as_str(), "policy-report");
    let claimed = &body(export)["spec"]["permissionClaims"][0];
    assert_eq!(
        *claimed,
        json!({ "group": "wgpolicyk8s.io", "resource": "policyreports", "identityHash": "0123456789abcdef", "verbs": ["get", "list", "watch"] })
    );
    assert_eq!(export.slot.cluster, ClusterId::new("espw"));
    assert_eq!(claim.slot, key("mailbox-1", "apibindings.apis.kcp.io", "", &format!("claim-{reports}")));
    let accepted = &body(claim)["spec"];
    assert_eq!(accepted["reference"]["export"], json!({ "path": "root:espw", "name": *export.slot.name }));
    let mut without_answer = accepted["permissionClaims"][0].clone();
    let answer =
        without_answer.as_object_mut().map(|claim| (claim.remove("state"), claim.remove("selector")));
    assert_eq!(answer, Some((Some(json!("Accepted")), Some(json!({ "matchAll": true })))));
    assert_eq!(without_answer, *claimed, "kcp compares the two as a whole");
    for stays in &wants {
        assert_eq!(stays.policy.withdrawal, Withdrawal::Leave, "without {} copies are not seen", stays.slot);
    }
    // Under another identity are other objects: another export, and the mailbox's one binding is contended for.
    let other = projected(&route, &bound(json!({ "identityHash": "fedcba9876543210" })), 1, &knowledge);
    let other = other.expect("wants");
    assert!(other[1].slot != export.slot && other[2].slot == claim.slot);
    // One that does not say it yet is waited for, and nothing of it is withdrawn.
    let held = projected(&route, &bound(json!({})), 1, &knowledge).err().expect("a hold");
    assert_eq!(held, "it does not say by which identity policyreports.wgpolicyk8s.io is known");
    // Where nothing of it is sent, nothing is claimed.
    knowledge.event(WORKSPACE, reports, "DELETED", &report);
    assert_eq!(projected(&route, &source, 1, &knowledge).expect("wants").len(), 1);
}

#[test]
fn a_second_export_of_a_kind_is_told_and_the_first_stays() {
    const BINDINGS: &str = "apibindings.apis.kcp.io";
    let upsync = json!({ "upsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["*"], "namespaces": ["*"], "names": ["*"] }] });
    let (route, mut knowledge) = (translator(&upsync), knowledge());
    let source = |name: &str, identity: &str| {
        let binding = api_binding(name, "root:policies", "policy-report");
        let mut json: Value = serde_json::from_slice(binding.json()).expect("JSON");
        json["status"]["boundResources"][0]["schema"] = json!({ "identityHash": identity });
        object(WORKSPACE, BINDINGS, &json)
    };
    let (first, second) = (source("first", "0123456789abcdef"), source("second", "fedcba9876543210"));
    let of = |source: &Object, knowledge: &Knowledge| projected(&route, source, 1, knowledge);
    let copy = |source: &Object, knowledge: &Knowledge, created: &str| {
        let mut copy = body(&of(source, knowledge).expect("wants")[0]);
        copy["metadata"]["creationTimestamp"] = json!(created);
        copy
    };
    knowledge.list("mailbox-1", BINDINGS, &[]);
    let (early, late) = ("2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z");
    let (one, other) = (copy(&first, &knowledge, early), copy(&second, &knowledge, late));
    knowledge.event("mailbox-1", BINDINGS, "ADDED", &one);
    assert!(of(&first, &knowledge).is_ok());
    let told = of(&second, &knowledge).err().expect("a hold");
    assert!(told.starts_with("policyreports.wgpolicyk8s.io come to the mailbox from another"), "{told}");
    assert!(told.contains("APIBinding first"), "{told}");
    // Made in one moment, both are there: the first one stays so.
    knowledge.event("mailbox-1", BINDINGS, "ADDED", &other);
    assert!(of(&first, &knowledge).is_ok() && of(&second, &knowledge).is_err());
    // The same export under another name brings the same.
    assert!(of(&source("third", "0123456789abcdef"), &knowledge).is_ok());
    knowledge.event("mailbox-1", BINDINGS, "DELETED", &one);
    assert!(of(&second, &knowledge).is_ok());
}

#[test]
fn a_namespace_that_is_no_longer_selected_stays_with_what_others_put_into_it() {
    let namespace = object(
        WORKSPACE,
        "namespaces",
        &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } }),
    );
    let spec = json!({ "downsync": [{ "resources": ["namespaces"] }] });
    let wants = projected(&translator(&spec), &namespace, 1, &knowledge()).expect("a copy");
    assert_eq!((wants[0].policy.withdrawal, wants[0].policy.adopt), (Withdrawal::Leave, Adopt::Unmarked));
}

#[test]
fn what_cannot_be_customized_is_held_and_says_why() {
    let route = translator(&everything_in_apps());
    let mut known = knowledge();
    let source = |annotations: &Value| {
        let mut json = commond();
        json["metadata"]["annotations"] = annotations.clone();
        object(WORKSPACE, "replicasets.apps", &json)
    };
    let missing = source(&json!({ "edge.kubestellar.io/customizer": "other" }));
    assert_eq!(
        projected(&route, &missing, 1, &known).err().expect("a hold"),
        "ReplicaSet commonstuff/commond cannot be customized for Location florin: its Customizer commonstuff/other is missing"
    );
    let unlisted = projected(&route, &missing, 1, &Knowledge::new()).err().expect("a hold");
    assert!(unlisted.contains("what is known of its Customizer commonstuff/other"), "{unlisted}");
    known.event("imw", LOCATIONS, "DELETED", &location("florin", &json!({})));
    let gone = projected(&route, &page(), 1, &known).err().expect("a hold");
    assert!(gone.ends_with("the Location is gone"), "{gone}");
    let fine = projected(&route, &page(), 2, &known).expect("another edge is not concerned");
    assert_eq!(fine.len(), 1);
    known.event("imw", LOCATIONS, "MODIFIED", &json!({ "metadata": { "name": "guilder", "labels": {} } }));
    let lacking = projected(&route, &page(), 2, &known).err().expect("a hold");
    assert_eq!(
        lacking,
        "ConfigMap commonstuff/httpd-htdocs cannot be customized for Location guilder: $.data['index.html'] asks for the \
         parameter \"loc-name\", which is neither a label nor an annotation of the Location"
    );
}

#[test]
fn h40_a_changed_customizer_or_location_wakes_what_reads_it() {
    let (knowledge, route) = (knowledge(), translator(&everything_in_apps()));
    let view = View::new(&knowledge.store);
    route
        .project(&object(WORKSPACE, "replicasets.apps", &commond()), &destination(1), &view)
        .expect("customized");
    let reads = view.take_reads();
    for read in [
        key(WORKSPACE, CUSTOMIZERS, "commonstuff", "example-customizer"),
        key("imw", LOCATIONS, "", "florin"),
    ] {
        assert!(reads.contains(&Read::Object(read.clone())), "{read} is not among {reads:?}");
    }
}

#[test]
fn one_body_serves_all_destinations_unless_it_is_customized() {
    let route = translator(&everything_in_apps());
    let plain = object(WORKSPACE, "configmaps", &json!({ "metadata": { "namespace": "n", "name": "c" } }));
    assert!(!route.varies(&plain) && route.varies(&page()));
    let bodies: Vec<_> =
        [1, 2].map(|to| projected(&route, &plain, to, &knowledge()).expect("a copy")[0].body.digest).into();
    assert_eq!(bodies[0], bodies[1]);
    let departing = translator_to(
        &everything_in_apps(),
        &[(1, edge("florin")), (2, Edge { departed: true, ..edge("guilder") })],
        Singletons::default(),
    );
    assert!(departing.varies(&plain), "one of its destinations is held");
}

#[test]
fn where_the_target_is_gone_nothing_is_withdrawn() {
    let route = translator_to(
        &everything_in_apps(),
        &[(1, Edge { departed: true, ..edge("florin") })],
        Singletons::default(),
    );
    let selected = route.select(&page(), &View::new(&knowledge().store)).expect("decided");
    assert_eq!(&*selected.to, [DestinationId(1)], "it is still a destination");
    let held = projected(&route, &page(), 1, &knowledge()).err().expect("a hold");
    assert!(held.contains("SyncTarget is gone"), "{held}");
}

#[test]
fn adoption_is_asked_for_on_the_source() {
    let route = translator(&everything_in_apps());
    let source = |annotations: Value| {
        object(
            WORKSPACE,
            "configmaps",
            &json!({ "metadata": { "namespace": "n", "name": "c", "annotations": annotations } }),
        )
    };
    let adopt = |annotations| {
        projected(&route, &source(annotations), 1, &knowledge()).expect("a copy")[0].policy.adopt
    };
    assert_eq!(adopt(json!({ "mailboat.dev/on-conflict": "adopt" })), Adopt::Unmarked);
    assert_eq!(adopt(json!({ "mailboat.dev/on-conflict": "fight" })), Adopt::Never);
}

#[test]
fn the_older_placement_comes_first() {
    let route = translator(&everything_in_apps());
    let RouteHead { id, scope, rank, .. } = route.head();
    assert_eq!(**rank, Rank { since: 1_704_067_200, name: Name::new("placement/wmw/ep") });
    assert_eq!((&id.0, &scope.0), (&rank.name, &rank.name));
}

/// Placements of one workspace: to which edges each goes, and whether it wants status back.
fn singletons(placements: &[(&Value, &[u32], bool)]) -> Singletons {
    let mut all = Singletons::default();
    for (spec, to, wanted) in placements {
        all.add(what(spec), to.iter().copied().map(DestinationId).collect(), *wanted);
    }
    all
}

#[test]
fn the_count_is_that_of_edges_over_all_placements_that_select_the_object() {
    let (apps, maps) = (
        json!({ "downsync": [{ "apiGroup": "apps" }] }),
        json!({ "downsync": [{ "resources": ["configmaps"] }] }),
    );
    let knowledge = knowledge();
    let view = View::new(&knowledge.store);
    let source = object(WORKSPACE, "replicasets.apps", &commond());
    for (placements, expected) in [
        (&[(&apps, &[1, 2][..], true)][..], Some(2)),
        (&[(&apps, &[1], true)], Some(1)),
        (&[(&apps, &[1], true), (&apps, &[1], false)], Some(1)),
        (&[(&apps, &[1], true), (&apps, &[2], false)], Some(2)),
        (&[(&apps, &[1], false), (&apps, &[2], false)], None),
        (&[(&apps, &[1], false), (&maps, &[2], true)], None),
        (&[(&apps, &[], true)], Some(0)),
        (&[], None),
    ] {
        assert_eq!(singletons(placements).executing_count(&source, &view), Ok(expected), "{placements:?}");
    }
    let namespace = object(WORKSPACE, "namespaces", &json!({ "metadata": { "name": "n" } }));
    let all = json!({ "downsync": [{ "resources": ["namespaces"] }] });
    assert_eq!(singletons(&[(&all, &[1], true)]).executing_count(&namespace, &view), Ok(None));
}

#[test]
fn status_returns_while_there_is_one_edge_only() {
    let apps = json!({ "downsync": [{ "apiGroup": "apps" }] });
    let source = object(WORKSPACE, "replicasets.apps", &commond());
    let status = |edges: &[(u32, Edge)], all: Singletons| {
        let route = translator_to(&apps, edges, all);
        projected(&route, &source, 1, &knowledge()).expect("a copy")[0].policy.status
    };
    let one = [(1, edge("florin"))];
    let two = [(1, edge("florin")), (2, edge("guilder"))];
    assert_eq!(status(&one, singletons(&[(&apps, &[1], true)])), StatusReturn::Subresource);
    assert_eq!(status(&two, singletons(&[(&apps, &[1, 2], true)])), StatusReturn::Off);
    assert_eq!(status(&one, singletons(&[(&apps, &[1], false)])), StatusReturn::Off);
    assert_eq!(status(&one, singletons(&[(&apps, &[1], true), (&apps, &[2], false)])), StatusReturn::Off);
}

#[test]
fn the_count_is_put_on_the_object_and_nothing_else_of_it_touched() {
    let apps = json!({ "downsync": [{ "apiGroup": "apps" }] });
    let knowledge = knowledge();
    let view = View::new(&knowledge.store);
    let source = object(WORKSPACE, "replicasets.apps", &commond());
    let route = |placements: &[(&Value, &[u32], bool)]| {
        let all = Arc::new(singletons(placements));
        SingletonRoute::new(
            &ClusterId::new(WORKSPACE),
            DestinationId(9),
            all,
            Vec::new(),
            Digest::NONE,
            marks(),
        )
    };
    let counting = route(&[(&apps, &[1, 2], true)]);
    assert_eq!(&*counting.select(&source, &view).expect("decided").to, [DestinationId(9)]);
    let wants = counting.project(&source, &destination(9), &view).expect("a count");
    assert_eq!((&wants[0].slot, wants[0].policy.delivery), (&source.key, Delivery::Overlay));
    assert_eq!(
        body(&wants[0]),
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": { "namespace": "commonstuff", "name": "commond", "annotations": { "kubestellar.io/executing-count": "2" } },
        })
    );
    let zero = route(&[(&apps, &[], true)]).project(&source, &destination(9), &view).expect("a count");
    assert_eq!(body(&zero[0])["metadata"]["annotations"]["kubestellar.io/executing-count"], "0");
    let unasked = route(&[(&apps, &[1], false)]);
    assert!(unasked.select(&source, &view).expect("decided").to.is_empty(), "then the annotation goes");
}

#[test]
fn the_status_of_one_edge_is_taken_away_when_there_is_not_one() {
    let apps = json!({ "downsync": [{ "apiGroup": "apps" }] });
    let knowledge = knowledge();
    let view = View::new(&knowledge.store);
    let saying = |count: &str, status: &Value| {
        let mut json = commond();
        json["metadata"]["annotations"]["kubestellar.io/executing-count"] = json!(count);
        json["status"] = status.clone();
        object(WORKSPACE, "replicasets.apps", &json)
    };
    let (ready, none) = (json!({ "readyReplicas": 2 }), json!({}));
    for (placements, source, count, clears) in [
        (&[(&apps, &[1][..], true)][..], saying("1", &ready), Some("1"), false),
        (&[(&apps, &[1, 2], true)], saying("1", &ready), Some("2"), true),
        (&[(&apps, &[], true)], saying("1", &ready), Some("0"), true),
        // Nobody asks any more, or nothing is placed: first its status goes, then the count.
        (&[(&apps, &[1], false)], saying("1", &ready), Some("0"), true),
        (&[], saying("1", &ready), Some("0"), true),
        (&[(&apps, &[1], false)], saying("1", &none), None, false),
        // What somebody else reports into an object that never had one edge is theirs.
        (&[(&apps, &[1, 2], true)], saying("2", &ready), Some("2"), false),
        (&[], saying("2", &ready), None, false),
    ] {
        let all = Arc::new(singletons(placements));
        let here = ClusterId::new(WORKSPACE);
        let route = SingletonRoute::new(&here, DestinationId(9), all, Vec::new(), Digest::NONE, marks());
        let wants = route.project(&source, &destination(9), &view).expect("decided");
        let said = wants.first().map(|want| body(want)["metadata"]["annotations"].clone());
        let said = said.map(|said| said["kubestellar.io/executing-count"].clone());
        assert_eq!(said, count.map(Value::from), "{placements:?}");
        let returns = wants.first().is_some_and(|want| want.policy.status == StatusReturn::Subresource);
        assert_eq!(returns, clears, "{placements:?}");
        let report = route.report(&source, &source, &view).expect("decided");
        assert_eq!(report.map(|body| body.json.to_vec()), clears.then(|| b"null".to_vec()), "{placements:?}");
    }
}

#[test]
fn a_confirmation_on_a_placement_asks_for_nothing_else() {
    let placement = |annotations: serde_json::Value, resources: &str| {
        let json = json!({
            "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement",
            "metadata": { "name": "ep", "annotations": annotations },
            "spec": { "downsync": [{ "resources": [resources] }] },
        });
        crate::fixtures::object("wmw", "edgeplacements.edge.kubestellar.io", &json)
    };
    let before = super::specification(&placement(json!({}), "configmaps"));
    let confirmed = placement(json!({ annotation::CONFIRM_WITHDRAWAL: "c0ffee" }), "configmaps");
    assert_eq!(super::specification(&confirmed), before);
    assert_ne!(super::specification(&placement(json!({}), "secrets")), before);
}

#[test]
fn what_is_also_stored_denatured_stands_back_for_that() {
    const ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
    let stored = format!("{ROLES}.denatured");
    let role = |name: &str| json!({ "metadata": { "name": name, "labels": { "app": name } } });
    let reading = |spec: &Value| {
        let mut route = translator(spec);
        let sources = [ROLES, &stored].map(|kind| Sources {
            place: mailboat_store::interest::PlaceId::new(WORKSPACE),
            cluster: Some(ClusterId::new(WORKSPACE)),
            kind: crate::fixtures::kind(kind),
        });
        route.head = route.head.reading(sources);
        route
    };
    let goes = |route: &Translator, kind: &str, knowledge: &Knowledge| {
        let selected = route.select(&object(WORKSPACE, kind, &role("a")), &View::new(&knowledge.store));
        selected.map(|selected| !selected.to.is_empty()).map_err(|hold| hold.reason)
    };
    let all = json!({ "downsync": [{ "resources": ["clusterroles"] }] });
    let mut knowledge = knowledge();
    let unknown = goes(&reading(&all), ROLES, &knowledge);
    assert!(unknown.as_ref().is_err_and(|reason| reason.contains("denatured")), "{unknown:?}");
    assert_eq!(goes(&translator(&all), ROLES, &knowledge), Ok(true), "the workspace has no such kind");
    knowledge.list(WORKSPACE, &stored, &[role("b")]);
    assert_eq!(goes(&reading(&all), ROLES, &knowledge), Ok(true));
    knowledge.event(WORKSPACE, &stored, "ADDED", &role("a"));
    assert_eq!(goes(&reading(&all), ROLES, &knowledge), Ok(false));
    assert_eq!(goes(&reading(&all), &stored, &knowledge), Ok(true));
    let natured = json!({ "downsync": [{ "resources": ["clusterroles"], "labelSelectors": [{ "matchLabels": { "app": "c" } }] },
                                       { "apiGroup": "rbac.authorization.k8s.io", "objectNames": ["x"] }] });
    assert_eq!(goes(&reading(&natured), ROLES, &knowledge), Ok(false), "neither is selected");
}
