//! What every world begins with: a center with its provider workspace, and edges.

use std::sync::OnceLock;

use mailboat_api::names::{export, group, object};
use mailboat_center::setup::{Offer, pieces};
use mailboat_hub::{Workspaces, catalog};
use mailboat_machinery::{Flavor, Kind, Machine, Moment, Seeded, Settings, Status, WriteOptions};
use mailboat_object::key::{ClusterId, Key, Name};
use serde_json::{Value, json};

use crate::kinds;

/// What all worlds share, since it takes long to make.
pub(crate) struct Base {
    kcp: Workspaces,
    machine: Machine,
    edge_kinds: Vec<std::sync::Arc<Kind>>,
    /// The provider workspace.
    pub(crate) provider: ClusterId,
}

/// Why there is no world: the program was put together wrongly.
pub(crate) type Bad = Box<dyn std::error::Error + Send + Sync>;

/// How servers are reached.
const URL: &str = "https://center";
/// What defines kinds is older than all that happens.
const BEFORE: u64 = crate::sea::BEGINNING - 60;

impl Base {
    /// The one of this program.
    pub(crate) fn get() -> Result<&'static Self, String> {
        static BASE: OnceLock<Result<Base, String>> = OnceLock::new();
        BASE.get_or_init(|| Self::new().map_err(|error| error.to_string())).as_ref().map_err(Clone::clone)
    }

    fn new() -> Result<Self, Bad> {
        let kcp = Workspaces::new(URL.to_owned())?;
        let mut machine = Machine::new(Settings { flavor: Flavor::Kcp, ..Settings::default() });
        let mut chance = Seeded(0);
        let mut moment = Moment { now_seconds: BEFORE, random: &mut chance };
        kcp.begin(&mut machine, &mut moment)?;
        let root = ClusterId::new("root");
        let provider = workspace(&kcp, &mut machine, &mut moment, &root, "espw")?;
        let few = ["customresourcedefinitions", "clusterroles", "deployments"].into_iter().collect();
        let offer = Offer::all()?.narrowed(&[export::COMPUTE, export::DENATURED], &few);
        let mut number = 0_u64;
        let pieces = pieces(object::PROVIDER_WORKSPACE, &offer, || {
            number += 1;
            format!("key-{number}")
        });
        for piece in pieces {
            write(&kcp, &mut machine, &mut moment, &piece.key(&provider), piece.object.clone())?;
        }
        let wanted = [kinds::namespaces(), kinds::configmaps(), kinds::definitions()];
        let edge_kinds = catalog::kinds(mailboat_machinery::Flavor::Kubernetes)?
            .into_iter()
            .filter(|kind| wanted.contains(&kind.id))
            .collect();
        Ok(Self { kcp, machine, edge_kinds, provider })
    }

    /// A center of its own.
    pub(crate) fn center(&self) -> Result<(Workspaces, Machine), Status> {
        let (kcp, mut machine) = (self.kcp.alike(), self.machine.clone());
        let mut chance = Seeded(1);
        kcp.begin(&mut machine, &mut Moment { now_seconds: BEFORE, random: &mut chance })?;
        Ok((kcp, machine))
    }

    /// An edge.
    pub(crate) fn edge(&self, cluster: &ClusterId) -> Machine {
        let mut machine = Machine::new(Settings::default());
        machine.serve(cluster, self.edge_kinds.iter().cloned());
        machine
    }
}

/// A workspace, as a user asks for it.
pub(crate) fn workspace_object(name: &str) -> Value {
    json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name },
        "spec": { "type": { "name": "universal", "path": "root" } },
    })
}

/// Makes a workspace, and says which cluster it is.
fn workspace(
    kcp: &Workspaces,
    machine: &mut Machine,
    moment: &mut Moment<'_>,
    parent: &ClusterId,
    name: &str,
) -> Result<ClusterId, Bad> {
    let key = kinds::key(parent, kinds::workspaces(), name);
    write(kcp, machine, moment, &key, workspace_object(name))?;
    let made = machine.get(&key)?;
    let cluster = made.body()["spec"]["cluster"].as_str().ok_or("the workspace was not made")?;
    Ok(ClusterId::new(cluster))
}

/// Writes an object, with all that follows from it.
fn write(
    kcp: &Workspaces,
    machine: &mut Machine,
    moment: &mut Moment<'_>,
    key: &Key,
    body: Value,
) -> Result<(), Status> {
    let before = machine.version();
    let options = WriteOptions { manager: Name::new("alice"), ..WriteOptions::default() };
    machine.create(key, body, &options, moment)?;
    machine.follow_definitions(&key.cluster, moment);
    kcp.follow(machine, before, moment);
    Ok(())
}

/// The binding to an export of the provider workspace.
pub(crate) fn binding(name: &str, export: &str) -> Value {
    binding_to(object::PROVIDER_WORKSPACE, name, export)
}

/// The binding to an export of a workspace.
pub(crate) fn binding_to(path: &str, name: &str, export: &str) -> Value {
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": name },
        "spec": { "reference": { "export": { "path": path, "name": export } } },
    })
}

/// An object of the edge's own group.
pub(crate) fn edge_object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/{}", group::EDGE, group::EDGE_VERSION), "kind": kind,
        "metadata": { "name": name }, "spec": spec,
    })
}
