mod definitions;
mod singletons;

use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::route::Rank;
use mailboat_engine::route::Read;
use mailboat_engine::want::Delivery;
use mailboat_object::digest::Digest;
use mailboat_object::key::ClusterId;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{Knowledge, key, kind, object};

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
    translator_of(spec, &what(spec), edges, singletons, false)
}

fn translator_of(
    spec: &Value,
    what: &Arc<What>,
    edges: &[(u32, Edge)],
    singletons: Singletons,
    keeps: bool,
) -> Translator {
    let placement = object(
        WORKSPACE,
        "edgeplacements.edge.kubestellar.io",
        &json!({ "metadata": { "name": "ep", "creationTimestamp": "2024-01-01T00:00:00Z" }, "spec": spec }),
    );
    Translator::new(Placed {
        keeps,
        placement: &placement,
        what: Arc::clone(what),
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

#[test]
fn a_placement_that_goes_elsewhere_says_where_and_nothing_else_may_have_changed() {
    let spec = everything_in_apps();
    let asked = what(&spec);
    let [both, one, other] = [
        vec![(1, edge("florin")), (2, edge("guilder"))],
        vec![(1, edge("florin"))],
        vec![(1, edge("florin")), (2, Edge { departed: true, ..edge("guilder") }), (3, edge("florin"))],
    ];
    let none = Singletons::default;
    let route = |edges: &[(u32, Edge)]| translator_of(&spec, &asked, edges, none(), false);
    let changes = |now: &Translator, before: &Translator| {
        let changed = now.changes_at(before);
        changed.map(|changed| changed.into_iter().map(|to| to.0).collect::<Vec<u32>>())
    };
    assert_eq!(changes(&route(&both), &route(&both)), Some(vec![]));
    assert_eq!(changes(&route(&one), &route(&both)), Some(vec![2]), "one that goes");
    assert_eq!(changes(&route(&both), &route(&one)), Some(vec![2]), "one that comes");
    assert_eq!(changes(&route(&other), &route(&both)), Some(vec![2, 3]), "one whose SyncTarget went");
    let kept = translator_of(&spec, &asked, &one, none(), true);
    let otherwise = translator_of(&spec, &what(&spec), &one, none(), false);
    for different in [kept, otherwise] {
        assert_eq!(changes(&different, &route(&both)), None);
    }
    // Where status is to return from the only edge, it depends on the others.
    let mut singletons = none();
    singletons.add(Arc::clone(&asked), Arc::from([DestinationId(1)]), true);
    let returning = translator_of(&spec, &asked, &one, singletons, false);
    assert_eq!(changes(&returning, &route(&both)), None);
    assert_eq!(changes(&route(&both), &returning), None);
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
    // The one that is stored denatured is another's by its labels, and nobody asks for that one.
    let mut other = role("a");
    other["metadata"]["labels"]["app"] = json!("other");
    knowledge.event(WORKSPACE, &stored, "MODIFIED", &other);
    let labelled = json!({ "downsync": [{ "resources": ["clusterroles"], "labelSelectors": [{ "matchLabels": { "app": "a" } }] }] });
    assert_eq!(goes(&reading(&labelled), ROLES, &knowledge), Ok(true), "a twin that is not asked for");
    assert_eq!(goes(&reading(&all), ROLES, &knowledge), Ok(false), "one that is");
}
