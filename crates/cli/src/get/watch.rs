//! Going on with what changes, in one place or in many at once.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use mailboat_cluster::{Cluster, Read, ReadMode, Transport as _};
use mailboat_object::key::{KindId, Version};
use mailboat_object::wire::{Fault, FaultKind};
use serde_json::Value;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::sleep;

use super::at_edge;
use super::mailboxes::Coming;
use crate::failure::before_writing;
use crate::place::list_and_version;
use crate::table::text;

/// The server ends a watch after this by itself, and it is begun again.
const WATCH_SECONDS: u32 = 300;
/// Before a link that was lost is tried again.
const PAUSE: Duration = Duration::from_secs(2);
/// Changes that wait to be shown; whoever reads slower holds up the watches.
pub(super) const MOST_WAITING: usize = 64;

/// One kind in one place, and from where on it is followed.
pub(super) struct Followed {
    pub(super) cluster: Cluster,
    pub(super) kind: KindId,
    pub(super) from: Version,
    /// The edge whose mailbox it is.
    pub(super) edge: Option<String>,
}

/// Shows every change, until interrupted or until none of the places can be read any more. One of many that cannot is told,
/// and left out from then on: a mailbox goes with its edge, and others come.
pub(super) async fn follow(
    followed: Vec<Followed>,
    coming: Option<Coming>,
    shown: impl Fn(Value, &str) -> Result<()>,
) -> Result<()> {
    let (to, mut changes) = mpsc::channel(MOST_WAITING);
    let mut left = followed.len() + usize::from(coming.is_some());
    for one in followed {
        let to = to.clone();
        tokio::spawn(async move {
            if let Err(fault) = one.watch(&to).await {
                let _ = to.send(Err(one.lost(&fault))).await;
            }
        });
    }
    if let Some(coming) = coming {
        let to = to.clone();
        tokio::spawn(async move {
            if let Err(fault) = coming.follow(to.clone()).await {
                let failure = before_writing("mailboxes that come are not seen any more", &fault);
                let _ = to.send(Err(failure)).await;
            }
        });
    }
    drop(to);
    while let Some(change) = changes.recv().await {
        match change {
            Ok((object, action)) => shown(object, action)?,
            Err(failure) if left == 1 => return Err(failure),
            Err(failure) => {
                left -= 1;
                say!("note: {failure:#}");
            }
        }
    }
    Ok(())
}

/// An object, and what became of it: `add`, `update` or `delete`.
pub(super) type Changes = Sender<Result<(Value, &'static str)>>;

impl Followed {
    /// What is to be said when it cannot be followed any more.
    pub(super) fn lost(&self, fault: &Fault) -> anyhow::Error {
        let place = self.edge.as_ref().map(|edge| format!(" of {edge}")).unwrap_or_default();
        before_writing(&format!("{}{place} cannot be watched any more", self.kind), fault)
    }

    /// Tells every change, for as long as somebody listens and the server lets it.
    pub(super) async fn watch(&self, to: &Changes) -> Result<(), Fault> {
        let mut from = self.from;
        // The versions that were shown, so that a list made anew shows what is new in it alone.
        let mut shown: BTreeMap<String, String> = BTreeMap::new();
        loop {
            match self.watch_from(&mut from, &mut shown, to).await {
                Err(fault) if fault.kind == FaultKind::Expired => {
                    let (found, version) = list_and_version(&self.cluster, &self.kind, "").await?;
                    from = version;
                    for object in found {
                        self.show(object, "update", &mut shown, to).await;
                    }
                }
                Err(fault) if fault.passes() || fault.kind == FaultKind::Away => sleep(PAUSE).await,
                Err(fault) => return Err(fault),
                Ok(()) if to.is_closed() => return Ok(()),
                Ok(()) => {}
            }
        }
    }

    /// Watches until the server ends it.
    async fn watch_from(
        &self,
        from: &mut Version,
        shown: &mut BTreeMap<String, String>,
        to: &Changes,
    ) -> Result<(), Fault> {
        let mode = ReadMode::Watch { from: *from, timeout_seconds: WATCH_SECONDS };
        let mut lines = self.cluster.fetch(Read::all(self.kind.clone(), mode)).await?;
        while let Some(line) = lines.next().await {
            let Ok(mut event) = serde_json::from_slice::<Value>(&line?) else { continue };
            let object = event["object"].take();
            if let Ok(version) = text(&object, "/metadata/resourceVersion").parse() {
                *from = Version(version);
            }
            match event["type"].as_str() {
                Some("ADDED") => self.show(object, "add", shown, to).await,
                Some("MODIFIED") => self.show(object, "update", shown, to).await,
                Some("DELETED") => self.show(object, "delete", shown, to).await,
                Some("ERROR") => return Err(Fault::new(FaultKind::Expired, "the watch is too old")),
                _ => {}
            }
            if to.is_closed() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn show(
        &self,
        object: Value,
        action: &'static str,
        shown: &mut BTreeMap<String, String>,
        to: &Changes,
    ) {
        let version = text(&object, "/metadata/resourceVersion");
        let before = shown.insert(text(&object, "/metadata/uid"), version.clone());
        if before.as_ref() != Some(&version) {
            let _ = to.send(Ok((at_edge(object, self.edge.as_deref()), action))).await;
        }
    }
}
