//! One kind of object over all mailboxes, those that come while it is watched among them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use mailboat_api::names::{MailboxName, annotation};
use mailboat_cluster::{Cluster, Transport as _};
use mailboat_object::catalog::Catalog;
use mailboat_object::key::KindId;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_registration::workspace::WorkspacePath;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::watch::{Changes, Followed, MOST_WAITING};
use super::{Found, at_edge, edge_of};
use crate::failure::{before_writing, refusal};
use crate::flags::GetArguments;
use crate::place::list_and_version;
use crate::site::Site;
use crate::table::text;

/// Mailboxes that are asked at once.
const AT_ONCE: usize = 8;
/// Before a mailbox that could not be asked, or does not serve the kind, is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// One kind in every mailbox. A mailbox that does not serve it has none of it.
pub(super) async fn all(site: &Arc<Site>, arguments: &GetArguments) -> Result<Found> {
    let provider =
        WorkspacePath::parse(&arguments.provider_workspace).map_err(|bad| refusal(bad.to_string()))?;
    let asked = arguments.kind.as_deref().unwrap_or_default();
    let kind = KindId::new("tenancy.kcp.io", "workspaces");
    let workspaces = list_and_version(&site.at(&provider), &kind, "").await;
    let (workspaces, from) = workspaces.map_err(|fault| match fault.kind {
        FaultKind::Forbidden => refusal(format!(
            "the workspace {provider} is not there, or you may not see the mailboxes in it; --provider-workspace names \
             another"
        )),
        _ => before_writing(&format!("the mailboxes in {provider} cannot be listed"), &fault),
    })?;
    let mailboxes: Vec<Mailbox> =
        workspaces.iter().filter_map(|workspace| Mailbox::of(workspace, &provider)).collect();
    let asking = mailboxes.iter().map(|mailbox| mailbox.ask(site, asked));
    let answers: Vec<_> = futures::stream::iter(asking).buffered(AT_ONCE).collect().await;
    let (mut objects, mut followed, mut unasked) = (Vec::new(), Vec::new(), Vec::new());
    let (mut known, mut waiting) = (BTreeSet::new(), Vec::new());
    for (mailbox, answer) in mailboxes.iter().zip(answers) {
        match answer {
            Ok(Some((found, follow))) => {
                objects.extend(found);
                followed.push(follow);
                known.insert(mailbox.uid.clone());
                continue;
            }
            Ok(None) => {}
            // One that is being made or removed keeps nobody from seeing the others.
            Err(failure) => unasked.push((mailbox, failure)),
        }
        waiting.push(mailbox.clone());
    }
    if followed.is_empty() && !mailboxes.is_empty() {
        return Err(match unasked.into_iter().next() {
            Some((_, failure)) => failure,
            None => refusal(format!(
                "no mailbox in {provider} serves a kind called {asked:?}; `kubectl api-resources` in a mailbox shows them"
            )),
        });
    }
    for (mailbox, failure) in unasked {
        say!("note: {} is left out: {failure:#}", mailbox.edge);
    }
    objects.sort_by(by_edge_and_name);
    let what = followed.first().map_or_else(|| asked.to_owned(), |one| one.kind.to_string());
    let workspaces = Followed { cluster: site.at(&provider), kind, from, edge: None };
    let place = format!("the mailboxes of {provider}");
    let asked =
        Asked { site: Arc::clone(site), kind: asked.to_owned(), at_once: Arc::new(Semaphore::new(AT_ONCE)) };
    let coming = Some(Coming { asked, provider, workspaces, known, waiting });
    Ok(Found { what, place, objects, followed, coming })
}

/// The mailboxes that come while others are watched, and those that do not serve the kind yet.
pub(super) struct Coming {
    asked: Asked,
    provider: WorkspacePath,
    /// The Workspaces of the provider, among which mailboxes are.
    workspaces: Followed,
    /// The mailboxes that are followed already, by the uids of their Workspaces.
    known: BTreeSet<String>,
    waiting: Vec<Mailbox>,
}

/// What is asked of a mailbox.
#[derive(Clone)]
struct Asked {
    site: Arc<Site>,
    kind: String,
    at_once: Arc<Semaphore>,
}

impl Coming {
    /// Follows what is asked for in every mailbox that comes, for as long as Workspaces can be watched.
    pub(super) async fn follow(self, to: Changes) -> Result<(), Fault> {
        let Self { asked, provider, workspaces, mut known, waiting } = self;
        let mut joining: BTreeMap<String, AbortHandle> = BTreeMap::new();
        let join = |mailbox: Mailbox| tokio::spawn(mailbox.join(asked.clone(), to.clone())).abort_handle();
        for mailbox in waiting {
            joining.insert(mailbox.uid.clone(), join(mailbox));
        }
        let (seen, mut changes) = mpsc::channel(MOST_WAITING);
        let watching = async move { workspaces.watch(&seen).await };
        let noticing = async {
            while let Some(change) = changes.recv().await {
                let Ok((workspace, action)) = change else { continue };
                let Some(mailbox) = Mailbox::of(&workspace, &provider) else { continue };
                if action == "delete" {
                    known.remove(&mailbox.uid);
                    if let Some(joins) = joining.remove(&mailbox.uid) {
                        joins.abort();
                    }
                } else if !known.contains(&mailbox.uid) && !joining.contains_key(&mailbox.uid) {
                    joining.insert(mailbox.uid.clone(), join(mailbox));
                }
            }
        };
        tokio::join!(watching, noticing).0
    }
}

/// A mailbox, and whose it is.
#[derive(Clone)]
struct Mailbox {
    /// The uid of its Workspace: one that is made again is another.
    uid: String,
    path: WorkspacePath,
    /// The edge's name, or the workspace's own where that is not known.
    edge: String,
}

impl Mailbox {
    /// The mailbox that a workspace below the provider is, if it is one.
    fn of(workspace: &Value, provider: &WorkspacePath) -> Option<Self> {
        let name = workspace["metadata"]["name"].as_str()?;
        name.parse::<MailboxName>().ok()?;
        let named = workspace["metadata"]["annotations"][annotation::SYNC_TARGET_NAME].as_str();
        let edge = named.filter(|edge| !edge.is_empty()).unwrap_or(name).to_owned();
        Some(Self { uid: text(workspace, "/metadata/uid"), path: provider.child(name).ok()?, edge })
    }

    /// What it holds of a kind, and from where on that can be followed; nothing if it does not serve the kind.
    async fn ask(&self, site: &Site, asked: &str) -> Result<Option<(Vec<Value>, Followed)>> {
        let cluster = site.at(&self.path);
        let Some(kind) = find_kind(&cluster, &self.path, asked).await? else { return Ok(None) };
        let found = list_and_version(&cluster, &kind, "").await;
        let (found, from) = found
            .map_err(|fault| before_writing(&format!("{kind} in {} cannot be listed", self.path), &fault))?;
        let found = found.into_iter().map(|object| at_edge(object, Some(&self.edge))).collect();
        Ok(Some((found, Followed { cluster, kind, from, edge: Some(self.edge.clone()) })))
    }

    /// Shows what it holds as soon as it serves the kind, and goes on with what changes.
    async fn join(self, asked: Asked, to: Changes) {
        while !to.is_closed() {
            let answer = {
                let Ok(_turn) = asked.at_once.acquire().await else { return };
                self.ask(&asked.site, &asked.kind).await
            };
            // One that is being made answers later, and one that is removed is forgotten by whoever watches Workspaces.
            let Ok(Some((found, follow))) = answer else {
                sleep(ASK_AGAIN_AFTER).await;
                continue;
            };
            for object in found {
                if to.send(Ok((object, "add"))).await.is_err() {
                    return;
                }
            }
            if let Err(fault) = follow.watch(&to).await {
                say!("note: {:#}", follow.lost(&fault));
            }
            return;
        }
    }
}

fn by_edge_and_name(one: &Value, other: &Value) -> Ordering {
    let key = |object: &Value| {
        (edge_of(object), text(object, "/metadata/namespace"), text(object, "/metadata/name"))
    };
    key(one).cmp(&key(other))
}

async fn find_kind(cluster: &Cluster, path: &WorkspacePath, asked: &str) -> Result<Option<KindId>> {
    let catalog = cluster.catalog().await;
    let catalog = catalog.map_err(|fault| {
        before_writing(&format!("the mailbox {path} cannot be asked what it serves"), &fault)
    })?;
    Ok(kind_called(&catalog, asked))
}

/// A kind by whatever kubectl would know it by: kind, plural, singular, short name, or kind or plural and group.
fn kind_called(catalog: &Catalog, asked: &str) -> Option<KindId> {
    let whole = catalog.iter().find(|served| served.kind.to_string() == asked);
    let lower = asked.to_lowercase();
    let by_name = || {
        catalog.iter().find(|served| {
            let names = [served.resource(), &served.singular, &served.kind_name];
            let with_group = format!("{}.{}", served.kind_name, served.kind.group());
            names.iter().any(|name| name.to_lowercase() == lower)
                || with_group.to_lowercase() == lower
                || served.short_names.iter().any(|short| short.as_str() == lower)
        })
    };
    whole.or_else(by_name).map(|served| served.kind.clone())
}
