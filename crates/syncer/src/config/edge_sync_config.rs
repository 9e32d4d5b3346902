//! EdgeSyncConfig as entries.

use std::sync::Arc;

use mailboat_api::edge::{self, DeliveryOptions, EdgeSyncConfigSpec, KindAndName, OwnerSelector};
use mailboat_object::key::Name;

use super::validate::{options_of, owner_selector, selector, wrong_entry};
use super::{Config, ConfigId, Conversion, Entry, Form, KindRef, Which};

/// Reads a `spec` into `config`.
pub(super) fn read(spec: &str, config: &mut Config) -> Result<(), serde_json::Error> {
    let spec: EdgeSyncConfigSpec = serde_json::from_str(spec)?;
    for (index, resource) in spec.down_synced_resources.iter().enumerate() {
        let path = format!("spec.downSyncedResources[{index}]");
        let made = entry(config.id.clone(), path, &resource.object, &resource.options, None);
        if let Which::These(namespaces) = &made.namespaces {
            config.namespaces.extend(namespaces.iter().filter(|name| !name.is_empty()).cloned());
        }
        config.down.push(Arc::new(made));
    }
    for (index, resource) in spec.up_synced_resources.iter().enumerate() {
        let path = format!("spec.upSyncedResources[{index}]");
        let owner = resource.options.owner_selector.as_ref();
        let made = entry(config.id.clone(), path, &resource.object, &resource.options.delivery, owner);
        config.up.push(Arc::new(made));
    }
    for (index, one) in spec.conversions.iter().enumerate() {
        let path = format!("spec.conversions[{index}]");
        config.conversions.push(conversion(config.id.clone(), path, one));
    }
    Ok(())
}

fn entry(
    config: ConfigId,
    path: String,
    object: &KindAndName,
    options: &DeliveryOptions,
    owner: Option<&OwnerSelector>,
) -> Entry {
    let kind = KindRef::Named { group: Name::new(&object.group), kind: Name::new(&object.kind) };
    let mut wrong = wrong_entry(&kind);
    if object.kind.is_empty() {
        wrong.get_or_insert_with(|| "it names no kind".to_owned());
    }
    if object.name.is_empty() {
        wrong.get_or_insert_with(|| "it names no object; * means all".to_owned());
    }
    let labels = selector(options.label_selector.as_ref(), "labelSelector", &mut wrong);
    let annotations = selector(options.annotation_selector.as_ref(), "annotationSelector", &mut wrong);
    Entry {
        config,
        path,
        kind,
        scope: None,
        namespaces: Which::of([&object.namespace]),
        names: Which::of([&object.name]),
        labels,
        annotations,
        owner: owner_selector(owner),
        options: options_of(options),
        wrong,
    }
}

/// A conversion, in either kind of configuration.
pub(super) fn conversion(config: ConfigId, path: String, conversion: &edge::Conversion) -> Conversion {
    Conversion {
        config,
        path,
        upstream: form(&conversion.upstream),
        downstream: form(&conversion.downstream),
    }
}

fn form(side: &KindAndName) -> Form {
    let one = |text: &str| if matches!(text, "" | "*") { None } else { Some(Name::new(text)) };
    Form {
        group: Name::new(&side.group),
        version: Name::new(&side.version),
        kind: Name::new(&side.kind),
        namespace: one(&side.namespace),
        name: one(&side.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigKind;
    use crate::testing::config;

    #[test]
    fn entries_name_kinds_as_people_write_them() {
        let config = config(
            ConfigKind::EdgeSyncConfig,
            "florin",
            r#"{"downSyncedResources":[{"kind":"ConfigMap","version":"v1","namespace":"till","name":"cfg"},
                                       {"kind":"ClusterRole","group":"rbac.authorization.k8s.io","version":"v1","name":"*"},
                                       {"kind":"Deployment","group":"apps","namespace":"till"}],
                "upSyncedResources":[{"kind":"Reading","group":"metrics.example","namespace":"*","name":"*",
                                      "ownerSelector":{"kind":"Deployment"}}],
                "conversions":[{"upstream":{"group":"a.denatured","kind":"A","name":"x"},
                                "downstream":{"group":"a","version":"v1","kind":"A","name":"*"}}]}"#,
        );
        assert_eq!(config.unreadable, None);
        let down: Vec<String> = config.down.iter().map(|entry| entry.kind.to_string()).collect();
        assert_eq!(down, ["ConfigMap", "ClusterRole.rbac.authorization.k8s.io", "Deployment.apps"]);
        assert!(config.down[0].names(&Name::new("till"), &Name::new("cfg")));
        assert!(config.down[1].names(&Name::EMPTY, &Name::new("anything")));
        assert!(config.down[2].wrong.is_some(), "an entry without a name means nothing");
        assert!(config.up[0].owner.is_some());
        assert_eq!(config.conversions[0].upstream.name, Some(Name::new("x")));
        assert_eq!(config.conversions[0].downstream.name, None, "whatever the object has");
    }
}
