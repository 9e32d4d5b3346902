//! A world: at most one center and any number of edges, started together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{OptionFuture, try_join_all};
use tokio::sync::OnceCell;

use crate::build::Programs;
use crate::center::{Center, CenterSpec};
use crate::edge::{Edge, EdgeSpec};
use crate::error::{Error, Result};
use crate::etcd;
use crate::hub;
use crate::part::Part;
use crate::process::Lifetime;
use crate::site::{RunFolder, Site};
use crate::state::WorldState;

/// Names a world that a test may join instead of starting one of its own: the folder of a running world.
pub const TESTBED_VARIABLE: &str = "MAILBOAT_TESTBED";

const ETCD: &str = "etcd";

/// A running world. Dropping it ends every process that it started and removes its folder, unless the test
/// panics: then the logs stay, and where they are is printed. `MAILBOAT_KEEP=1` keeps them always.
pub struct World {
    // Processes first: a folder cannot be removed under a server that still writes.
    center: Option<Center>,
    edges: Vec<Edge>,
    folder: RunFolder,
    started_in: Duration,
}

/// What a world shall consist of.
#[derive(Debug, Default)]
pub struct WorldBuilder {
    center: Option<CenterSpec>,
    edges: Vec<EdgeSpec>,
    lasting: Option<PathBuf>,
}

impl World {
    /// A world to be described.
    pub fn builder() -> WorldBuilder {
        WorldBuilder::default()
    }

    /// The world whose kcp all tests of this process share, each in fresh workspaces: the one that
    /// `MAILBOAT_TESTBED` names, or else a center that is started once per process.
    ///
    /// Its parts cannot be stopped or paused when it is joined, and should not be when it is not.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<World> = OnceCell::const_new();
        SHARED
            .get_or_try_init(|| async {
                if let Some(folder) = std::env::var_os(TESTBED_VARIABLE).filter(|folder| !folder.is_empty()) {
                    return Self::join(Path::new(&folder));
                }
                let world = Self::builder().center().start().await?;
                world.folder.share()?;
                Ok(world)
            })
            .await
    }

    /// Joins a world that another process runs. Its places can be used; its parts cannot be steered.
    pub fn join(folder: &Path) -> Result<Self> {
        let state = WorldState::read(folder)?;
        let (center, edges) = state.open(folder)?;
        Ok(Self { center, edges, folder: RunFolder::given(folder)?, started_in: Duration::ZERO })
    }

    /// The center.
    ///
    /// # Panics
    /// If the world was started without one.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test that asks for a center it did not start is wrong")]
    pub fn center(&self) -> &Center {
        let Some(center) = &self.center else { panic!("this world was started without a center") };
        center
    }

    /// An edge by name.
    ///
    /// # Panics
    /// If the world was started without it.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test that asks for an edge it did not start is wrong")]
    pub fn edge(&self, name: &str) -> &Edge {
        let Some(edge) = self.edges.iter().find(|edge| edge.name() == name) else {
            panic!("this world was started without an edge {name:?}")
        };
        edge
    }

    /// All edges, in the order in which they were named.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// All parts: each center's and edge's, and the etcds behind edges, once each.
    pub fn parts(&self) -> Vec<&Part> {
        let mut parts: Vec<&Part> = self.center.iter().map(Center::kcp).collect();
        let mut etcds = BTreeSet::new();
        for edge in &self.edges {
            let own = edge.etcd().port() == edge.apiserver().port();
            if !own && etcds.insert(edge.etcd().port()) {
                parts.push(edge.etcd());
            }
            parts.extend(edge.parts());
        }
        parts
    }

    /// The folder with everything the world wrote; fit for `MAILBOAT_TESTBED`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How long it took until all was ready.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// Keeps the folder when the world ends, for a test that fails without a panic.
    pub fn keep_logs(&mut self) {
        self.folder.keep();
    }

    pub(crate) fn has_center(&self) -> Option<&Center> {
        self.center.as_ref()
    }

    /// Lets the world live on without this process.
    pub(crate) fn release(self) {
        for part in self.parts() {
            part.release();
        }
    }
}

impl WorldBuilder {
    /// With a center.
    #[must_use]
    pub fn center(self) -> Self {
        self.center_with(CenterSpec::new())
    }

    /// With a center of a certain make.
    #[must_use]
    pub fn center_with(mut self, spec: CenterSpec) -> Self {
        self.center = Some(spec);
        self
    }

    /// With a whole edge, of one node.
    #[must_use]
    pub fn edge(self, name: impl Into<String>) -> Self {
        self.edge_with(EdgeSpec::new(name))
    }

    /// With an edge of a certain make.
    #[must_use]
    pub fn edge_with(mut self, spec: EdgeSpec) -> Self {
        self.edges.push(spec);
        self
    }

    /// In a certain folder, with processes that live on when this one ends.
    pub(crate) fn lasting_in(mut self, folder: &Path) -> Self {
        self.lasting = Some(folder.to_owned());
        self
    }

    /// Starts everything at once and waits until all of it is ready.
    pub async fn start(self) -> Result<World> {
        check_names(&self.edges)?;
        let begun = Instant::now();
        let programs = Programs::locate()?;
        let (mut folder, lifetime) = match &self.lasting {
            Some(path) => (RunFolder::given(path)?, Lifetime::ItsOwn),
            None => (RunFolder::temporary()?, Lifetime::Ours),
        };
        let site = Site { programs, folder: folder.path().to_owned(), lifetime };
        match start_places(&site, self.center, self.edges).await {
            Ok((center, edges)) => {
                let world = World { center, edges, folder, started_in: begun.elapsed() };
                WorldState::of(&world).write(world.folder())?;
                Ok(world)
            }
            Err(error) => {
                folder.keep();
                Err(Error::Start { logs: folder.path().to_owned(), source: Box::new(error) })
            }
        }
    }
}

async fn start_places(
    site: &Site,
    center: Option<CenterSpec>,
    edges: Vec<EdgeSpec>,
) -> Result<(Option<Center>, Vec<Edge>)> {
    if let Some(program) = hub::program() {
        let center = OptionFuture::from(center.map(|spec| Center::start(site, spec)));
        let edges = edges.into_iter().map(|spec| Edge::start_hub(site, &program, spec));
        return futures::try_join!(async { center.await.transpose() }, try_join_all(edges));
    }
    let mut shared_etcd = None;
    if edges.iter().any(|spec| !spec.own_etcd) {
        shared_etcd = Some(Arc::new(etcd::launch(site, ETCD, &site.folder.join(ETCD), false)?));
    }
    let etcd_of = |spec: &EdgeSpec| match &shared_etcd {
        Some(etcd) if !spec.own_etcd => Ok(Arc::clone(etcd)),
        _ => {
            let folder = site.folder.join(&spec.name).join(ETCD);
            etcd::launch(site, &format!("{}/{ETCD}", spec.name), &folder, spec.durable).map(Arc::new)
        }
    };
    let center = OptionFuture::from(center.map(|spec| Center::start(site, spec)));
    let edges = edges.into_iter().map(|spec| {
        let etcd = etcd_of(&spec);
        async { Edge::start(site, spec, etcd?).await }
    });
    futures::try_join!(async { center.await.transpose() }, try_join_all(edges))
}

// The names become folders, parts of kubeconfig contexts, and prefixes in etcd.
fn check_names(edges: &[EdgeSpec]) -> Result<()> {
    let mut seen = BTreeSet::from([Center::NAME, ETCD]);
    for EdgeSpec { name, .. } in edges {
        let bad = |why| Err(Error::BadName { name: name.clone(), why });
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if name.is_empty() || !name.chars().all(plain) || name.starts_with('-') {
            return bad("small letters, digits and dashes make a name");
        }
        if !seen.insert(name) {
            return bad("the name is taken");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_needs_a_plain_name_of_its_own() {
        let check =
            |names: &[&str]| check_names(&names.iter().map(|&name| EdgeSpec::bare(name)).collect::<Vec<_>>());
        check(&["guilder", "florin-2"]).unwrap();
        for names in [&["guilder", "guilder"][..], &["center"], &["etcd"], &["../up"], &[""], &["-x"], &["A"]]
        {
            assert!(matches!(check(names), Err(Error::BadName { .. })), "{names:?}");
        }
    }
}
