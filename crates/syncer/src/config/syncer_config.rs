//! SyncerConfig as entries.

use std::sync::Arc;

use mailboat_api::edge::{DeliveryOptions, SyncerConfigSpec, UpsyncEntry};
use mailboat_object::key::{KindId, Name};

use super::edge_sync_config::conversion;
use super::validate::{options_of, owner_selector, selector, wrong_entry};
use super::{Config, Entry, KindRef, Scope, Which};

/// Reads a `spec` into `config`.
pub(super) fn read(spec: &str, config: &mut Config) -> Result<(), serde_json::Error> {
    let spec: SyncerConfigSpec = serde_json::from_str(spec)?;
    if let Some(scope) = &spec.namespace_scope {
        let namespaces = Which::of(&scope.namespaces);
        if let Which::These(these) = &namespaces {
            config.namespaces.extend(these.iter().cloned());
        }
        for (index, resource) in scope.resources.iter().enumerate() {
            let path = format!("spec.namespaceScope.resources[{index}]");
            let kind = KindId::new(&resource.group, &resource.resource);
            let what = (Scope::Namespaced, namespaces.clone(), Which::All);
            config.down.push(entry(config, path, kind, what, &resource.options));
        }
    }
    for (index, objects) in spec.namespaced_objects.iter().enumerate() {
        let kind = KindId::new(&objects.group, &objects.resource);
        for (inner, some) in objects.objects_by_namespace.iter().enumerate() {
            let path = format!("spec.namespacedObjects[{index}].objectsByNamespace[{inner}]");
            let namespaces = Which::of([&some.namespace]);
            if let Which::These(these) = &namespaces
                && !some.names.is_empty()
            {
                config.namespaces.extend(these.iter().cloned());
            }
            let what = (Scope::Namespaced, namespaces, Which::of(&some.names));
            config.down.push(entry(config, path, kind.clone(), what, &objects.options));
        }
    }
    for (index, objects) in spec.cluster_scope.iter().enumerate() {
        let path = format!("spec.clusterScope[{index}]");
        let kind = KindId::new(&objects.group, &objects.resource);
        let what = (Scope::Cluster, Which::All, Which::of(&objects.objects));
        config.down.push(entry(config, path, kind, what, &objects.options));
    }
    for (index, upsync) in spec.upsync.iter().enumerate() {
        read_upsync(index, upsync, config);
    }
    for (index, one) in spec.conversions.iter().enumerate() {
        let path = format!("spec.conversions[{index}]");
        config.conversions.push(conversion(config.id.clone(), path, one));
    }
    Ok(())
}

fn entry(
    config: &Config,
    path: String,
    kind: KindId,
    (scope, namespaces, names): (Scope, Which, Which),
    options: &DeliveryOptions,
) -> Arc<Entry> {
    let mut wrong = wrong_entry(&KindRef::Resource(kind.clone()));
    let labels = selector(options.label_selector.as_ref(), "labelSelector", &mut wrong);
    let annotations = selector(options.annotation_selector.as_ref(), "annotationSelector", &mut wrong);
    Arc::new(Entry {
        config: config.id.clone(),
        path,
        kind: KindRef::Resource(kind),
        scope: Some(scope),
        namespaces,
        names,
        labels,
        annotations,
        owner: None,
        options: options_of(options),
        wrong,
    })
}

fn read_upsync(index: usize, upsync: &UpsyncEntry, config: &mut Config) {
    let set = &upsync.set;
    let kinds: Vec<KindRef> = if set.resources.iter().any(|resource| resource == "*") {
        vec![KindRef::Group(Name::new(&set.api_group))]
    } else {
        let kind = |resource: &String| KindRef::Resource(KindId::new(&set.api_group, resource));
        set.resources.iter().map(kind).collect()
    };
    for kind in kinds {
        let mut wrong = wrong_entry(&kind);
        let options = &upsync.options.delivery;
        let labels = selector(options.label_selector.as_ref(), "labelSelector", &mut wrong);
        let annotations = selector(options.annotation_selector.as_ref(), "annotationSelector", &mut wrong);
        config.up.push(Arc::new(Entry {
            config: config.id.clone(),
            path: format!("spec.upsync[{index}]"),
            kind,
            scope: None,
            namespaces: Which::of(&set.namespaces),
            names: Which::of(&set.names),
            labels,
            annotations,
            owner: owner_selector(upsync.options.owner_selector.as_ref()),
            options: options_of(options),
            wrong,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigId, ConfigKind};
    use crate::testing::config;

    fn read_yaml(yaml: &str) -> Config {
        config(ConfigKind::SyncerConfig, "the-one", yaml)
    }

    #[test]
    fn every_part_becomes_entries_with_their_paths() {
        let config = read_yaml(
            r#"{"namespaceScope":{"namespaces":["kyverno","policy"],"resources":[
                  {"group":"","resource":"configmaps","apiVersion":"v1"},
                  {"group":"apps","resource":"deployments","apiVersion":"v1","returnStatus":false}]},
                "namespacedObjects":[{"group":"","resource":"secrets","apiVersion":"v1","objectsByNamespace":[
                  {"namespace":"till","names":["a","b"]},{"namespace":"none","names":[]}]}],
                "clusterScope":[{"group":"kyverno.io","resource":"clusterpolicies","apiVersion":"v1","objects":["*"]},
                                {"group":"","resource":"namespaces","apiVersion":"v1"}],
                "upsync":[{"apiGroup":"wgpolicyk8s.io","resources":["policyreports","clusterpolicyreports"],
                           "namespaces":["policy"],"names":["*"]},
                          {"apiGroup":"metrics.example","resources":["*"],"namespaces":["*"],"names":["*"]}]}"#,
        );
        assert_eq!(config.unreadable, None);
        let paths: Vec<_> =
            config.down.iter().map(|entry| format!("{} {}", entry.path, entry.kind)).collect();
        assert_eq!(
            paths,
            [
                "spec.namespaceScope.resources[0] configmaps",
                "spec.namespaceScope.resources[1] deployments.apps",
                "spec.namespacedObjects[0].objectsByNamespace[0] secrets",
                "spec.namespacedObjects[0].objectsByNamespace[1] secrets",
                "spec.clusterScope[0] clusterpolicies.kyverno.io",
                "spec.clusterScope[1] namespaces",
            ]
        );
        assert!(config.down[0].options.return_status && !config.down[1].options.return_status);
        let [policy, till, none] = ["policy", "till", "none"].map(Name::new);
        assert!(config.down[0].names(&policy, &Name::new("anything")));
        assert!(!config.down[0].names(&till, &Name::new("anything")));
        assert!(
            config.down[2].names(&till, &Name::new("b")) && !config.down[2].names(&till, &Name::new("c"))
        );
        assert!(!config.down[3].names(&none, &Name::new("a")));
        let up: Vec<_> = config.up.iter().map(|entry| format!("{} {}", entry.path, entry.kind)).collect();
        assert_eq!(
            up,
            [
                "spec.upsync[0] policyreports.wgpolicyk8s.io",
                "spec.upsync[0] clusterpolicyreports.wgpolicyk8s.io",
                "spec.upsync[1] *.metrics.example",
            ]
        );
        let namespaces: Vec<&str> = config.namespaces.iter().map(Name::as_str).collect();
        assert_eq!(namespaces, ["kyverno", "policy", "till"], "a namespace without names is not asked for");
    }

    #[test]
    fn absent_objects_select_nothing() {
        let config =
            read_yaml(r#"{"clusterScope":[{"group":"","resource":"namespaces","apiVersion":"v1"}]}"#);
        assert!(!config.down[0].names(&Name::EMPTY, &Name::new("default")));
    }

    #[test]
    fn a_wrong_selector_is_said_and_the_rest_stays() {
        let config = read_yaml(
            r#"{"clusterScope":[
                {"group":"","resource":"namespaces","apiVersion":"v1","objects":["*"],
                 "labelSelector":{"matchExpressions":[{"key":"a","operator":"Near"}]}},
                {"group":"tenancy.kcp.io","resource":"workspaces","apiVersion":"v1alpha1","objects":["*"]},
                {"group":"rbac.authorization.k8s.io","resource":"clusterroles","apiVersion":"v1","objects":["a"]}]}"#,
        );
        let wrong: Vec<Option<&str>> = config.down.iter().map(|entry| entry.wrong.as_deref()).collect();
        assert!(wrong[0].is_some_and(|why| why.contains("labelSelector.matchExpressions[0]")), "{wrong:?}");
        assert!(wrong[1].is_some_and(|why| why.contains("workspaces.tenancy.kcp.io")), "{wrong:?}");
        assert_eq!(wrong[2], None);
    }

    #[test]
    fn a_spec_of_another_form_is_unreadable_and_says_so() {
        let config = read_yaml(r#"{"clusterScope":"all"}"#);
        assert!(config.unreadable.is_some());
        assert_eq!(config.id, ConfigId { kind: ConfigKind::SyncerConfig, name: Name::new("the-one") });
    }
}
