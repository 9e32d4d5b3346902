use super::*;

// Shapes as kube-apiserver 1.36 and kcp 0.28 send them, shortened.
const AGGREGATED_APIS: &str = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
  {"metadata":{"name":"apps","creationTimestamp":null},"versions":[{"version":"v1","resources":[
    {"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment",
     "verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["deploy"],"categories":["all"],
     "subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]},
                     {"subresource":"status","responseKind":{"group":"","version":"","kind":"Deployment"},"verbs":["get","patch","update"]}]}],"freshness":"Current"}]},
  {"metadata":{"name":"autoscaling"},"versions":[
    {"version":"v2","resources":[{"resource":"horizontalpodautoscalers","responseKind":{"kind":"HorizontalPodAutoscaler"},"scope":"Namespaced","singularResource":"","verbs":["get","list","watch"]}],"freshness":"Current"},
    {"version":"v1","resources":[{"resource":"horizontalpodautoscalers","responseKind":{"kind":"HorizontalPodAutoscaler"},"scope":"Namespaced","singularResource":"","verbs":["get","list","watch"]}],"freshness":"Current"}]},
  {"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]}]}"#;
const PLAIN_CORE: &str = r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}"#;
const PLAIN_GROUPS: &str = r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[
  {"name":"apis.kcp.io","versions":[{"groupVersion":"apis.kcp.io/v1alpha1","version":"v1alpha1"},{"groupVersion":"apis.kcp.io/v1alpha2","version":"v1alpha2"}],
   "preferredVersion":{"groupVersion":"apis.kcp.io/v1alpha2","version":"v1alpha2"}}]}"#;
const CORE_V1: &str = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[
  {"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["create","delete","get","list","patch","update","watch"],"shortNames":["po"]},
  {"name":"pods/status","singularName":"","namespaced":true,"kind":"Pod","verbs":["get","patch","update"]},
  {"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["create","get","list","watch"],"shortNames":["ns"]},
  {"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]}]}"#;

fn aggregated() -> Catalog {
    let mut catalog = Catalog::default();
    add_aggregated(&mut catalog, AGGREGATED_APIS.as_bytes()).expect("the aggregated form");
    catalog
}

#[test]
fn an_aggregated_answer_tells_scope_subresources_verbs_and_short_names() {
    let catalog = aggregated();
    let Found::Served(deployments) = catalog.find(&KindId::new("apps", "deployments")) else {
        panic!("not found in {catalog:?}")
    };
    assert_eq!(deployments.api_version(), "apps/v1");
    assert_eq!(&*deployments.kind_name, "Deployment");
    assert!(deployments.namespaced && deployments.status && deployments.scale);
    assert!(
        deployments.verbs.can_follow() && deployments.verbs.has("deletecollection"),
        "{:?}",
        deployments.verbs
    );
    assert!(!deployments.verbs.has("escalate"));
    assert_eq!(deployments.short_names.len(), 1);
}

#[test]
fn the_preferred_version_comes_first_and_others_are_kept() {
    let catalog = aggregated();
    let versions: Vec<&str> = catalog
        .versions(&KindId::new("autoscaling", "horizontalpodautoscalers"))
        .iter()
        .map(|served| &*served.version)
        .collect();
    assert_eq!(versions, ["v2", "v1"]);

    let plain = plain_group_versions(PLAIN_CORE.as_bytes(), PLAIN_GROUPS.as_bytes()).expect("the plain form");
    let plain: Vec<String> = plain.iter().map(|(group, version)| format!("{group}/{version}")).collect();
    assert_eq!(plain, ["/v1", "apis.kcp.io/v1alpha2", "apis.kcp.io/v1alpha1"]);
}

#[test]
fn a_group_whose_server_is_down_is_unknown_and_the_rest_is_served() {
    let catalog = aggregated();
    assert!(matches!(catalog.find(&KindId::new("metrics.k8s.io", "nodes")), Found::Unknown(_)));
    assert!(matches!(catalog.find(&KindId::new("apps", "deployments")), Found::Served(_)));
    assert_eq!(catalog.find(&KindId::new("apps", "sailboats")), Found::NotServed);
    assert_eq!(catalog.find(&KindId::new("nobody.example.com", "boats")), Found::NotServed);
    assert_eq!(catalog.unknown_groups().map(|(group, _)| group).collect::<Vec<_>>(), ["metrics.k8s.io"]);
}

#[test]
fn a_plain_resource_list_folds_subresources_into_their_kind() {
    let mut catalog = Catalog::default();
    add_group_version(&mut catalog, "", "v1", CORE_V1.as_bytes()).expect("the plain form");
    let Found::Served(pods) = catalog.find(&KindId::new("", "pods")) else { panic!("{catalog:?}") };
    assert!(pods.status && !pods.scale && pods.namespaced);
    assert_eq!(pods.api_version(), "v1");
    let Found::Served(bindings) = catalog.find(&KindId::new("", "bindings")) else { panic!("{catalog:?}") };
    assert!(!bindings.verbs.can_follow());
    assert_eq!(catalog.iter().count(), 3, "{catalog:?}");
}

#[test]
fn people_may_use_any_of_a_kinds_names() {
    let mut catalog = aggregated();
    add_group_version(&mut catalog, "", "v1", CORE_V1.as_bytes()).expect("the plain form");
    for word in ["deployments", "deployment", "deploy", "Deployment", "deployments.apps", "deploy.apps"] {
        let found = catalog.find_word(word).map(|served| served.kind.to_string());
        assert_eq!(found.as_deref(), Some("deployments.apps"), "{word}");
    }
    assert_eq!(catalog.find_word("deploy.batch"), None);
    assert_eq!(catalog.find_word("ns").map(Served::resource), Some("namespaces"));
    assert_eq!(catalog.find_named("apps", "Deployment").map(Served::resource), Some("deployments"));
}

#[test]
fn answers_of_another_form_are_recognized_as_such() {
    for body in ["", "{}", "<html>", "[]", r#"{"kind":"Status"}"#, "null", CORE_V1] {
        assert!(!is_aggregated(body.as_bytes()), "{body}");
        assert!(add_aggregated(&mut Catalog::default(), body.as_bytes()).is_none(), "{body}");
        assert!(plain_group_versions(body.as_bytes(), PLAIN_GROUPS.as_bytes()).is_none(), "{body}");
    }
    assert!(is_aggregated(AGGREGATED_APIS.as_bytes()));
    assert!(add_group_version(&mut Catalog::default(), "", "v1", PLAIN_CORE.as_bytes()).is_none());
}

#[test]
fn a_null_where_a_list_should_be_is_an_empty_list() {
    // kcp's views answer so for APIBindings.
    let body = r#"{"kind":"APIResourceList","apiVersion":"v1","resources":[
        {"name":"apibindings","singularName":"apibinding","namespaced":false,"kind":"APIBinding","verbs":["get","list","watch"],"shortNames":null},
        {"name":"apibindings/status","singularName":"","namespaced":false,"kind":"APIBinding","verbs":null}]}"#;
    let mut catalog = Catalog::default();
    add_group_version(&mut catalog, "apis.kcp.io", "v1alpha2", body.as_bytes()).expect("the plain form");
    let Found::Served(bindings) = catalog.find(&KindId::new("apis.kcp.io", "apibindings")) else {
        panic!("{catalog:?}")
    };
    assert!(bindings.verbs.can_follow() && bindings.status);
    let empty = br#"{"kind":"APIResourceList","resources":null}"#;
    assert!(add_group_version(&mut Catalog::default(), "x", "v1", empty).is_some());
    let none = br#"{"kind":"APIGroupList","groups":null}"#;
    assert_eq!(plain_group_versions(PLAIN_CORE.as_bytes(), none).map(|all| all.len()), Some(1));
}
