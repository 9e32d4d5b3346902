//! How a hub is opened: as one plain cluster, or with workspaces.

use mailboat_machinery::{Flavor, Settings, WriteOptions};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use crate::access::rbac::{self, bootstrap};
use crate::access::{Accounts, Authority, AuthorityError, SigningKey, TokenFile};
use crate::catalog::{self, BadCatalog};
use crate::gate::Gate;
use crate::hub::{Hub, Serving, now_seconds};
use crate::random::NoRandomness;
use crate::storage::{self, Ledger, Storage, StorageError};
use crate::workspaces::Workspaces;

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// Who signs service accounts' tokens, and for whom.
const ISSUER: &str = "https://kubernetes.default.svc";
/// The address of the Service `kubernetes`, the first of all Services' addresses.
const API_ADDRESS: &str = "10.96.0.1";
/// The name of the one cluster, which nobody sees.
pub(crate) const CLUSTER: &str = "cluster";

/// How many of the last changes are at hand as trees: what is being worked on. All else rests.
const AWAKE: usize = 256;
/// How many bytes of JSON these may be. As trees they take some times as much.
const AWAKE_BYTES: usize = 4 << 20;
/// How much may be taken by what watches can still ask for, besides those.
const HISTORY_BYTES: usize = 16 << 20;

/// How a hub is opened.
#[derive(Debug, Default)]
pub struct Options {
    /// Users with fixed tokens.
    pub tokens: TokenFile,
    /// How clients reach it, such as `https://127.0.0.1:6443`.
    pub url: String,
}

/// A hub, and who signs its certificates.
pub struct Opened {
    /// The hub.
    pub hub: Hub,
    /// Its authority.
    pub authority: Authority,
}

/// Why a hub cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The program was put together wrongly.
    #[error(transparent)]
    Catalog(#[from] BadCatalog),
    /// What it keeps cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It has no certificates or keys.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The thread that stores cannot be started.
    #[error("the storage cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// Nothing can be made that others cannot guess.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// What every server has cannot be made.
    #[error("what every cluster has cannot be made: {0}")]
    First(#[from] mailboat_machinery::Status),
}

/// Opens a server that is one cluster, with the kinds of Kubernetes.
pub async fn cluster(mut storage: impl Storage, options: Options) -> Result<Opened, OpenError> {
    let id = ClusterId::new(CLUSTER);
    let authority = Authority::of(&mut storage, now_seconds())?;
    let accounts = Accounts::new(SigningKey::of(&mut storage)?, ISSUER);
    let settings = settings(Flavor::Kubernetes);
    let mut machine = storage::load(&mut storage, settings)?;
    machine.serve(&id, catalog::kinds(Flavor::Kubernetes)?);
    let gate = Gate::new(&machine, [], accounts, options.tokens);
    let heard = gate.follower();
    let serving = Serving::Cluster(id.clone());
    let hub = Hub::new(Ledger::new(machine, storage, heard)?, gate, serving, options.url)?;
    // Kinds are served by what is stored of their definitions.
    hub.write(|machine, moment| {
        machine.follow_definitions(&id, moment);
        Ok(())
    })
    .await?;
    let namespaces = NAMESPACES.map(|name| {
        (KindId::new("", "namespaces"), "", name.to_owned(), json!({ "metadata": { "name": name } }))
    });
    let rights = bootstrap::objects().into_iter().filter_map(|object| {
        let resource = match object["kind"].as_str()? {
            "ClusterRole" => "clusterroles",
            "ClusterRoleBinding" => "clusterrolebindings",
            _ => return None,
        };
        let name = object["metadata"]["name"].as_str()?.to_owned();
        Some((KindId::new(rbac::GROUP, resource), "", name, object))
    });
    let itself =
        (KindId::new("", "services"), "default", "kubernetes".to_owned(), api_service(hub.address()));
    let first: Vec<_> = namespaces.into_iter().chain(rights).chain([itself]).collect();
    hub.write(|machine, moment| {
        for (kind, namespace, name, body) in first {
            let key =
                Key { cluster: id.clone(), kind, namespace: Name::new(namespace), name: Name::new(&name) };
            if machine.get(&key).is_err() {
                let options = WriteOptions { manager: Name::new("mailboat-hub"), ..WriteOptions::default() };
                machine.create(&key, body, &options, moment)?;
            }
        }
        Ok(())
    })
    .await?;
    // Nobody saw how it began.
    hub.forget();
    Ok(Opened { hub, authority })
}

/// The Service by which a cluster's own pods know its API.
fn api_service(address: &str) -> Value {
    let port: Option<u16> = address.rsplit(':').next().and_then(|port| port.parse().ok());
    let port = json!({ "name": "https", "port": 443, "protocol": "TCP", "targetPort": port.unwrap_or(443) });
    let labels = json!({ "component": "apiserver", "provider": "kubernetes" });
    json!({
        "metadata": { "name": "kubernetes", "namespace": "default", "labels": labels },
        "spec": { "clusterIP": API_ADDRESS, "clusterIPs": [API_ADDRESS], "ports": [port] },
    })
}

fn settings(flavor: Flavor) -> Settings {
    Settings {
        flavor,
        awake: Some(AWAKE),
        awake_bytes: AWAKE_BYTES,
        log_bytes: HISTORY_BYTES,
        addresses: flavor == Flavor::Kubernetes,
        ..Settings::default()
    }
}

/// Opens a server of workspaces, as kcp is one.
pub async fn workspaces(mut storage: impl Storage, options: Options) -> Result<Opened, OpenError> {
    let authority = Authority::of(&mut storage, now_seconds())?;
    let accounts = Accounts::new(SigningKey::of(&mut storage)?, ISSUER);
    let settings = settings(Flavor::Kcp);
    let mut machine = storage::load(&mut storage, settings)?;
    let workspaces = Workspaces::new(options.url.clone())?;
    workspaces.serve(&mut machine);
    let gate = Gate::new(&machine, bootstrap::of_workspaces(), accounts, options.tokens);
    let heard = gate.follower();
    let ledger = Ledger::taking_back(machine, storage, heard, workspaces.taken_back())?;
    let hub = Hub::new(ledger, gate, Serving::Workspaces(workspaces), options.url)?;
    hub.write(|machine, moment| match hub.serving() {
        Serving::Workspaces(workspaces) => workspaces.begin(machine, moment),
        Serving::Cluster(_) => Ok(()),
    })
    .await?;
    hub.forget();
    Ok(Opened { hub, authority })
}
