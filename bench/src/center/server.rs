//! The server that a fleet stands on: a hub in memory, or a real kcp.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::Client;
use mailboat_api::names::export;
use mailboat_center::setup::Offer;
use mailboat_cluster::{Connection, Settings, Source, Transport as _};
use mailboat_object::KindId;
use mailboat_testkit::{CENTER_USER, SHARD_ADMIN, World};

use super::watching::version_of;
use crate::hub::HubServer;

/// What the center of this benchmark writes, where the server counts by resource.
const WRITTEN: [&str; 14] = [
    "apibindings",
    "clusterrolebindings",
    "clusterroles",
    "configmaps",
    "edgeplacements",
    "locations",
    "namespaces",
    "serviceaccounts",
    "singleplacementslices",
    "statussummaries",
    "summarizers",
    "syncerconfigs",
    "synctargets",
    "workspaces",
];

/// A server. It ends with this value.
pub struct Server {
    /// How users and the center reach it.
    pub connection: Connection,
    /// The same, for programs.
    pub kubeconfig: PathBuf,
    /// What a provider workspace is to offer there.
    pub offer: Offer,
    kind: Kind,
}

enum Kind {
    Hub(Box<HubServer>),
    Kcp(Box<Kcp>),
}

struct Kcp {
    counter: Client,
    _world: World,
}

impl Server {
    /// A hub that keeps everything in memory; what it writes down of itself goes to a folder.
    pub async fn hub(program: &Path, folder: &Path) -> Result<Self> {
        let hub = HubServer::start_in_memory(program, folder).await?;
        Ok(Self {
            connection: hub.connection.clone(),
            kubeconfig: HubServer::kubeconfig(folder),
            offer: Offer::all()?,
            kind: Kind::Hub(Box::new(hub)),
        })
    }

    /// kcp with an etcd, where an ordinary user is the center and all others. Few kinds are offered: each takes kcp seconds.
    pub async fn kcp() -> Result<Self> {
        let world = World::builder().center().start().await.context("starting the testbed")?;
        let center = world.center();
        center.make_administrator(CENTER_USER, "root").await?;
        let kubeconfig = center.kubeconfig(CENTER_USER, "root")?;
        let source = Source::Kubeconfig { path: Some(kubeconfig.clone()), context: None };
        let connection = Connection::open(source, Settings::default()).await?;
        let offer = Offer::all()?
            .narrowed(&[export::COMPUTE], &BTreeSet::from(["deployments", "services"]))
            .narrowed(&[export::DENATURED], &BTreeSet::from(["clusterroles", "customresourcedefinitions"]));
        let counter = center.client(SHARD_ADMIN, "root").await?;
        Ok(Self { connection, kubeconfig, offer, kind: Kind::Kcp(Box::new(Kcp { counter, _world: world })) })
    }

    /// How many writes it has answered, by its own count: all of them where that is a hub, and where it is kcp, with
    /// controllers of its own, those to kinds that the center writes.
    pub async fn writes(&self) -> Result<u64> {
        match &self.kind {
            Kind::Hub(hub) => {
                let root = hub.connection.at("/clusters/root");
                Ok(version_of(&root, &KindId::new("", "namespaces")).await?.0)
            }
            Kind::Kcp(kcp) => {
                let request = http::Request::get("/metrics").body(Vec::new())?;
                Ok(counted(&kcp.counter.request_text(request).await?))
            }
        }
    }

    /// What it takes of memory, where it is ours.
    pub fn resident_bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::Hub(hub) => hub.resident().ok().map(|resident| resident.now_bytes),
            Kind::Kcp(_) => None,
        }
    }

    /// Waits until workspaces serve a kind: kcp takes some seconds after it was bound.
    pub async fn until_served(&self, path: &str, kind: &KindId) -> Result<()> {
        let at = self.connection.at(path);
        mailboat_testkit::wait_until("a kind served", super::LIMIT, || async {
            at.stale();
            version_of(&at, kind).await.map(|_| ())
        })
        .await?;
        Ok(())
    }
}

/// The writes that were answered with success, of the kinds that count.
fn counted(metrics: &str) -> u64 {
    let label = |line: &str, name: &str, value: &str| line.contains(&format!("{name}=\"{value}\""));
    let counts = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && ["200", "201"].iter().any(|code| label(line, "code", code))
            && !["GET", "LIST", "WATCH"].iter().any(|verb| label(line, "verb", verb))
            && WRITTEN.iter().any(|resource| label(line, "resource", resource))
            // A dry run writes nothing.
            && !label(line, "dry_run", "All")
    };
    let lines = metrics.lines().filter(counts);
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_the_kinds_that_count_are_counted() {
        let line = |verb: &str, code: &str, dry_run: &str, resource: &str| {
            format!(
                r#"apiserver_request_total{{code="{code}",dry_run="{dry_run}",resource="{resource}",verb="{verb}"}} 2"#
            )
        };
        let metrics = [
            line("PATCH", "200", "", "configmaps"),
            line("APPLY", "201", "", "syncerconfigs"),
            line("APPLY", "201", "All", "syncerconfigs"),
            line("PATCH", "409", "", "configmaps"),
            line("LIST", "200", "", "configmaps"),
            line("PUT", "200", "", "leases"),
        ];
        assert_eq!(counted(&metrics.join("\n")), 4);
    }
}
