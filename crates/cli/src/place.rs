//! How commands reach servers: a mailbox of the center, and an edge.

use anyhow::Result;
use mailboat_api::kcp::{LogicalCluster, Workspace};
use mailboat_api::names::{annotation, object};
use mailboat_cluster::{
    Cluster, Connection, Read, ReadMode, ServerAddress, Settings, Source, Transport as _,
};
use mailboat_object::key::{ClusterId, Key, KindId, Name, Version};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};
use mailboat_registration::account::Need;
use mailboat_registration::{Mailbox, Registration, mailbox};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{CENTER_FLAG, bad_configuration, before_writing, refusal};
use crate::flags::CenterFlags;

/// Objects per page of a list.
const PAGE: u32 = 500;

/// A mailbox that we reached, and whose registration a command is about.
pub(crate) struct Reached {
    pub(crate) cluster: Cluster,
    pub(crate) address: ServerAddress,
    pub(crate) registration: Registration,
}

/// Finds the mailbox that the flags name, and checks that it is one and that it is this SyncTarget's.
pub(crate) async fn reach_mailbox(flags: &CenterFlags, sync_target_name: &str) -> Result<Reached> {
    // A bad name is the same bad name wherever it would be used: nobody need be asked.
    mailboat_registration::names::check_object_name(sync_target_name, "a SyncTarget")
        .map_err(|bad| refusal(bad.to_string()))?;
    let source = Source::Kubeconfig { path: flags.kubeconfig.clone(), context: flags.context.clone() };
    let connection = Connection::open(source, Settings::default())
        .await
        .map_err(|bad| bad_configuration(&bad, CENTER_FLAG))?;
    let (cluster, named) = match &flags.mailbox {
        Some(mailbox) => {
            let path = mailbox::path_of(mailbox, &flags.provider_workspace);
            (connection.at(&format!("/clusters/{path}")), path)
        }
        None => (connection.cluster(), workspace_of(&connection)?),
    };
    let mailbox = identify(&cluster, &named).await?;
    let owner = owner_of(&connection, &mailbox).await;
    mailbox.check_owner(owner.as_deref(), sync_target_name).map_err(|not| refusal(not.to_string()))?;
    let registration = Registration::new(mailbox, sync_target_name, &flags.kcp_namespace)
        .map_err(|bad| refusal(bad.to_string()))?;
    Ok(Reached { cluster, address: connection.address(), registration })
}

/// The workspace that the configuration itself points to.
fn workspace_of(connection: &Connection) -> Result<String> {
    match connection.path().strip_prefix("/clusters/") {
        Some(workspace) if !workspace.is_empty() && !workspace.contains(['/', '*']) => {
            Ok(workspace.to_owned())
        }
        _ => Err(refusal(format!(
            "the kubeconfig points to {} and not to a workspace of it; enter a mailbox with `kubectl ws`, or name one \
             with --mailbox",
            connection.server()
        ))),
    }
}

async fn identify(cluster: &Cluster, named: &str) -> Result<Mailbox> {
    let key = key("", "core.kcp.io", "logicalclusters", "", object::LOGICAL_CLUSTER);
    let seen: LogicalCluster = match get(cluster, key).await {
        Ok(Some(seen)) => seen,
        Ok(None) => {
            return Err(refusal(format!(
                "the workspace {named} has no LogicalCluster, so it is none of kcp"
            )));
        }
        Err(fault) => return Err(unreachable_mailbox(named, &fault)),
    };
    Mailbox::identify(&seen).map_err(|not| refusal(not.to_string()))
}

fn unreachable_mailbox(named: &str, fault: &Fault) -> anyhow::Error {
    match fault.kind {
        FaultKind::Forbidden => refusal(format!(
            "the workspace {named} is not there, or you may not enter it; check its name with `kubectl ws tree`"
        )),
        FaultKind::Unserved => {
            refusal(format!("{named} is no workspace of kcp: it serves no LogicalCluster"))
        }
        _ => before_writing(&format!("the workspace {named} cannot be read"), fault),
    }
}

/// Whose mailbox it is, as its parent says. Whoever may use a mailbox need not be allowed to read its parent: then
/// nobody says so, and the name that was given is believed.
async fn owner_of(connection: &Connection, mailbox: &Mailbox) -> Option<String> {
    let parent = connection.at(&format!("/clusters/{}", mailbox.parent()?));
    let key = key("", "tenancy.kcp.io", "workspaces", "", mailbox.name());
    let workspace: Workspace = get(&parent, key).await.ok()??;
    workspace.metadata.annotations?.remove(annotation::SYNC_TARGET_NAME)
}

/// Asks for each right by itself, and refuses with all that are missing.
pub(crate) async fn check_rights(cluster: &Cluster, mailbox: &Mailbox, needs: &[Need]) -> Result<()> {
    let mut missing: Vec<String> = Vec::new();
    for need in needs {
        let granted = match cluster.call(need.review()).await {
            Ok(reply) => Need::is_granted(&reply.body),
            Err(fault) if fault.kind == FaultKind::Forbidden => false,
            Err(fault) => return Err(before_writing("your rights in the mailbox cannot be learned", &fault)),
        };
        if !granted {
            missing.push(need.to_string());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(refusal(format!(
        "you may not {} in the mailbox {}; ask its administrator, or use an account that may",
        missing.join(", "),
        mailbox.path
    )))
}

/// Reads one object; `None`: it is not there.
pub(crate) async fn get<T: DeserializeOwned>(cluster: &Cluster, key: Key) -> Result<Option<T>, Fault> {
    let call = Call { key, verb: Verb::Get, part: Part::Whole, dry_run: false };
    let what = call.key.to_string();
    match cluster.call(call).await {
        Ok(reply) => serde_json::from_slice(&reply.body).map(Some).map_err(|_| not_understood(&what)),
        Err(fault) if fault.kind == FaultKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Reads every object of a kind that has these labels (in the query's form; empty: all).
pub(crate) async fn list(cluster: &Cluster, kind: &KindId, labels: &str) -> Result<Vec<Value>, Fault> {
    list_and_version(cluster, kind, labels).await.map(|(items, _)| items)
}

/// The same, and the version from which a watch goes on.
pub(crate) async fn list_and_version(
    cluster: &Cluster,
    kind: &KindId,
    labels: &str,
) -> Result<(Vec<Value>, Version), Fault> {
    let mut items = Vec::new();
    let mut continue_token = None;
    loop {
        let mut read = Read::all(kind.clone(), ReadMode::Page { limit: PAGE, continue_token });
        labels.clone_into(&mut read.labels);
        let page = cluster.fetch(read).await?.whole().await?;
        let mut page: Value = serde_json::from_slice(&page).map_err(|_| not_understood(&kind.to_string()))?;
        if let Value::Array(found) = page["items"].take() {
            items.extend(found);
        }
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => continue_token = Some(token.to_owned()),
            _ => {
                let version = page["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
                return Ok((items, Version(version.unwrap_or_default())));
            }
        }
    }
}

/// A key in the cluster of this name.
pub(crate) fn key(cluster: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new(cluster),
        kind: KindId::new(group, resource),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}

fn not_understood(what: &str) -> Fault {
    Fault::new(FaultKind::Invalid, format!("the server's answer for {what} is not understood"))
}
