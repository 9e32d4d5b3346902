//! `mailboat syncer-remove`: takes away at the edge what can be reached there, then the account in the mailbox.

use std::time::Duration;

use anyhow::{Result, anyhow};
use mailboat_cluster::{Cluster, Connection, Settings, Source, Transport as _};
use mailboat_object::key::{Key, KindId, Name, Uid};
use mailboat_object::object::{ClusterOf, Keep, Limits, Object, Place};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Propagation, Verb};
use mailboat_registration::Registration;
use mailboat_registration::account::Need;
use mailboat_registration::names::REGISTRATION_LABEL;
use mailboat_registration::removal;
use serde_json::Value;

use crate::failure::{bad_configuration, before_writing};
use crate::flags::SyncerRemoveArguments;
use crate::place::{Reached, check_rights, get, key, list, reach_mailbox};

/// How long the syncer's Pod may take to end.
const ENDING_LIMIT: Duration = Duration::from_mins(2);
const GLANCE: Duration = Duration::from_millis(500);

/// Removes a syncer.
pub async fn run(arguments: &SyncerRemoveArguments) -> Result<()> {
    // A file that is not there is said before anybody is asked.
    let edge = edge(arguments).await?;
    let reached = reach_mailbox(&arguments.center, &arguments.name).await?;
    let registration = &reached.registration;
    let needs: Vec<Need> = registration
        .made()
        .into_iter()
        .chain([registration.default_configuration_key()])
        .flat_map(|key| ["get", "delete"].map(|verb| Need { verb, subresource: "", key: key.clone() }))
        .collect();
    check_rights(&reached.cluster, &registration.mailbox, &needs).await?;
    match edge {
        Some(edge) => {
            edge.catalog()
                .await
                .map_err(|fault| before_writing("the edge cannot be asked what it serves", &fault))?;
            clear_edge(&edge, registration, arguments.keep_objects).await?;
        }
        None => say_what_remains(registration),
    }
    clear_mailbox(&reached).await
}

async fn edge(arguments: &SyncerRemoveArguments) -> Result<Option<Cluster>> {
    let Some(path) = &arguments.edge_kubeconfig else { return Ok(None) };
    let source = Source::Kubeconfig { path: Some(path.clone()), context: arguments.edge_context.clone() };
    let connection = Connection::open(source, Settings::default()).await;
    let connection = connection.map_err(|bad| bad_configuration(&bad, "--edge-kubeconfig"))?;
    Ok(Some(connection.cluster()))
}

fn say_what_remains(registration: &Registration) {
    say!("at the edge nothing was touched: what was delivered stays; to remove the syncer there, run");
    for command in registration.commands() {
        println!("{command}");
    }
}

/// Everything at the edge: first the syncer itself, so that nothing is delivered again, then what it delivered, then
/// the rest.
async fn clear_edge(edge: &Cluster, registration: &Registration, keep_objects: bool) -> Result<()> {
    let stopped = remove_labelled(edge, registration, &removal::syncer_kind()).await?;
    if stopped > 0 {
        until_ended(edge, registration).await?;
    }
    if keep_objects {
        say!("at the edge: what was delivered stays (--keep-objects)");
    } else {
        let gone = remove_delivered(edge, registration).await?;
        say!("at the edge: {gone} delivered objects deleted");
    }
    for kind in removal::manifest_kinds() {
        remove_labelled(edge, registration, &kind).await?;
    }
    Ok(())
}

async fn remove_labelled(edge: &Cluster, registration: &Registration, kind: &KindId) -> Result<usize> {
    let found = list(edge, kind, &registration.selector()).await;
    let found = found.map_err(|fault| anyhow!("{kind} at the edge cannot be listed: {fault}"))?;
    let mut removed = 0;
    for object in found {
        let Some((key, uid)) = located("edge", kind, &object) else { continue };
        if !registration.goes(kind, &key.name) {
            say!("at the edge: the namespace {} stays, because it was chosen by hand", key.name);
            continue;
        }
        delete(edge, &key, uid).await?;
        say!("at the edge: {} deleted", words(&key));
        removed += 1;
    }
    Ok(removed)
}

async fn until_ended(edge: &Cluster, registration: &Registration) -> Result<()> {
    let pods = KindId::new("", "pods");
    let ended = async {
        loop {
            match list(edge, &pods, &registration.selector()).await {
                Ok(left) if left.is_empty() => return Ok(()),
                Ok(_) => tokio::time::sleep(GLANCE).await,
                Err(fault) => return Err(anyhow!("the syncer's Pod cannot be looked at: {fault}")),
            }
        }
    };
    tokio::time::timeout(ENDING_LIMIT, ended).await.unwrap_or_else(|_| {
        Err(anyhow!(
            "the syncer's Pod did not end within {ENDING_LIMIT:?}; run the same command again when it has"
        ))
    })
}

/// Deletes what bears the syncer's mark, of every kind that the edge serves: what lives in others before what others
/// live by.
async fn remove_delivered(edge: &Cluster, registration: &Registration) -> Result<usize> {
    let catalog =
        edge.catalog().await.map_err(|fault| anyhow!("the edge cannot be asked what it serves: {fault}"))?;
    if let Some((group, why)) = catalog.unknown_groups().next() {
        return Err(anyhow!(
            "what is served of {group} at the edge is not known ({why}), so nothing is deleted yet"
        ));
    }
    let mut kinds: Vec<_> =
        catalog.iter().filter(|served| served.verbs.has("list") && served.verbs.has("delete")).collect();
    kinds.sort_by_key(|served| removal::rank(&served.kind));
    let cluster = registration.edge();
    let mut removed = 0;
    for served in kinds {
        let found = list(edge, &served.kind, &registration.delivered_selector()).await;
        let found =
            found.map_err(|fault| anyhow!("{} at the edge cannot be listed: {fault}", served.kind))?;
        for body in found {
            let place = Place {
                cluster: ClusterOf::One(&cluster),
                kind: &served.kind,
                api_version: &served.api_version(),
                kind_name: &served.kind_name,
                manager: "",
                keep: Keep::Head,
                limits: Limits::default(),
            };
            let object = Object::decode(body.to_string().as_bytes(), &place)
                .map_err(|bad| anyhow!("{} at the edge cannot be understood: {bad}", served.kind))?;
            if registration.delivered(&object) {
                delete(edge, &object.key, object.uid.clone()).await?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

async fn clear_mailbox(reached: &Reached) -> Result<()> {
    let Reached { cluster, registration, .. } = reached;
    let unread = |fault: Fault| anyhow!("what was registered cannot be read: {fault}");
    let configuration = registration.default_configuration_key();
    let found: Option<Value> = match get(cluster, configuration.clone()).await {
        Err(fault) if fault.kind == FaultKind::Unserved => None,
        found => found.map_err(unread)?,
    };
    if let Some(found) = found {
        let empty = found["spec"].as_object().is_none_or(serde_json::Map::is_empty);
        let ours = found["metadata"]["labels"][REGISTRATION_LABEL] == registration.id.as_str();
        if empty && ours {
            delete(cluster, &configuration, uid(&found)).await?;
            say!("in the mailbox: {} deleted", words(&configuration));
        } else {
            say!("in the mailbox: {} stays, because somebody has written it", words(&configuration));
        }
    }
    let mut removed = 0;
    for key in registration.made() {
        let Some(found) = get::<Value>(cluster, key.clone()).await.map_err(unread)? else { continue };
        delete(cluster, &key, uid(&found)).await?;
        say!("in the mailbox: {} deleted", words(&key));
        removed += 1;
    }
    if removed == 0 {
        say!("in the mailbox: no syncer was registered as {}", registration.id);
    }
    Ok(())
}

/// Deletes the object with this uid; one that is gone already is as it should be.
async fn delete(cluster: &Cluster, key: &Key, uid: Uid) -> Result<()> {
    let verb = Verb::Delete { uid, version: None, propagation: Propagation::Background };
    match cluster.call(Call { key: key.clone(), verb, part: Part::Whole, dry_run: false }).await {
        Ok(_) => Ok(()),
        Err(fault) if matches!(fault.kind, FaultKind::NotFound | FaultKind::Conflict) => Ok(()),
        Err(fault) => Err(anyhow!("{} cannot be deleted: {fault}; run the same command again", words(key))),
    }
}

fn located(cluster: &str, kind: &KindId, object: &Value) -> Option<(Key, Uid)> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let name = metadata["name"].as_str()?;
    let key =
        Key { namespace: Name::new(namespace), ..key(cluster, kind.group(), kind.resource(), "", name) };
    Some((key, uid(object)))
}

fn uid(object: &Value) -> Uid {
    Uid::parse(object["metadata"]["uid"].as_str().unwrap_or_default())
}

/// An object as kubectl would name it, without the cluster that is said already.
fn words(key: &Key) -> String {
    if key.namespace.is_empty() {
        format!("{} {}", key.kind, key.name)
    } else {
        format!("{} {}/{}", key.kind, key.namespace, key.name)
    }
}
