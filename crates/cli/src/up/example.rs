//! The example that `mailboat up` applies, and how it looks when it has arrived.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use mailboat_cluster::{Cluster, Transport as _};
use mailboat_object::key::Key;
use mailboat_object::wire::{Fault, FaultKind};
use serde_json::Value;

use crate::place::{get, key};
use crate::site::{create, passing, patiently};

/// A workspace of the example, and what stands in it.
pub(super) struct Workload {
    /// The workspace below the root, which is also the name of its context.
    pub(super) workspace: &'static str,
    /// What it is, for people.
    pub(super) about: &'static str,
    objects: &'static str,
}

/// Both workspaces.
pub(super) const WORKLOADS: [Workload; 2] = [
    Workload {
        workspace: "wmw-c",
        about: "what runs at every edge with env=prod",
        objects: include_str!("../../../../examples/example1/common.yaml"),
    },
    Workload {
        workspace: "wmw-s",
        about: "what runs at edges with extended=yes as well",
        objects: include_str!("../../../../examples/example1/special.yaml"),
    },
];

/// The labels by which the example's placements choose an edge.
pub(super) fn labels(edge: &str) -> BTreeMap<String, String> {
    let mut labels = vec![("env", "prod"), ("loc-name", edge)];
    if is_special(edge) {
        labels.push(("extended", "yes"));
    }
    labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn is_special(edge: &str) -> bool {
    edge == "guilder"
}

impl Workload {
    /// Makes what is not there. What is there is somebody's by now, and stays as it is.
    pub(super) async fn apply(&self, cluster: &Cluster) -> Result<()> {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(self.objects).context("the example cannot be read")?;
        for object in &objects {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
            let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
            let (namespace, name) =
                (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
            let failing = format!("{kind} {name} of the example cannot be made in {}", self.workspace);
            patiently(&failing, async || {
                let catalog = cluster.catalog().await?;
                let Some(served) = catalog.find_named(&group, &kind) else {
                    cluster.stale();
                    return Err(passing(&format!("{kind} is not served yet")));
                };
                let key = key("", served.kind.group(), served.kind.resource(), &namespace, &name);
                create(cluster, key, object).await
            })
            .await?;
        }
        Ok(())
    }
}

/// Something that stands at an edge when the example has arrived.
pub(super) struct Arrival {
    key: Key,
    fits: fn(&Value, &str) -> bool,
    /// What it is, for people.
    pub(super) what: String,
}

/// All that the example brings to an edge that one can look for there. What a cluster of somebody's own has besides is theirs: a
/// definition may be there before, and an APIService without its service is not left in peace by every cluster.
pub(super) fn arrivals(edge: &str, played: bool) -> Vec<Arrival> {
    fn is_page(map: &Value, edge: &str) -> bool {
        let page = map["data"]["index.html"].as_str().unwrap_or_default();
        page.contains(&format!("Running in {edge}."))
    }
    fn is_ready(workload: &Value, _: &str) -> bool {
        workload["status"]["readyReplicas"] == 1
    }
    fn is_there(_: &Value, _: &str) -> bool {
        true
    }
    // Elsewhere, an image may have to be fetched first, which is nobody's fault here.
    let runs: fn(&Value, &str) -> bool = if played { is_ready } else { is_there };
    let mut wanted = vec![
        ("", "configmaps", "ConfigMap", "commonstuff", "httpd-htdocs", is_page as fn(&Value, &str) -> bool),
        ("apps", "replicasets", "ReplicaSet", "commonstuff", "commond", runs),
    ];
    if is_special(edge) {
        wanted.push(("", "configmaps", "ConfigMap", "specialstuff", "httpd-htdocs", is_page));
        wanted.push(("apps", "deployments", "Deployment", "specialstuff", "speciald", runs));
    }
    if is_special(edge) && played {
        let (definitions, services) = ("apiextensions.k8s.io", "apiregistration.k8s.io");
        let crontabs = "crontabs.stable.example.com";
        wanted.push((
            definitions,
            "customresourcedefinitions",
            "CustomResourceDefinition",
            "",
            crontabs,
            is_there,
        ));
        wanted.push((
            "stable.example.com",
            "crontabs",
            "CronTab",
            "specialstuff",
            "my-new-cron-object",
            is_there,
        ));
        wanted.push((services, "apiservices", "APIService", "", "v1090.example.my", is_there));
    }
    let arrival = |(group, resource, kind, namespace, name, fits)| Arrival {
        key: key("", group, resource, namespace, name),
        fits,
        what: if namespace.is_empty() {
            format!("{kind} {name}")
        } else {
            format!("{kind} {namespace}/{name}")
        },
    };
    wanted.into_iter().map(arrival).collect()
}

impl Arrival {
    /// Whether it has arrived, in the form meant for this edge.
    pub(super) async fn is_at(&self, cluster: &Cluster, edge: &str) -> Result<bool, Fault> {
        let found: Result<Option<Value>, Fault> = get(cluster, self.key.clone()).await;
        if found.as_ref().is_err_and(|fault| fault.kind == FaultKind::Unserved) {
            // It may be by the time that this is asked again.
            cluster.stale();
        }
        Ok(found?.is_some_and(|found| (self.fits)(&found, edge)))
    }

    /// Whether it is there, in whatever form.
    pub(super) async fn stands_at(&self, cluster: &Cluster) -> Result<bool, Fault> {
        let found: Option<Value> = get(cluster, self.key.clone()).await?;
        Ok(found.is_some())
    }
}
