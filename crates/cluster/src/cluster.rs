//! A cluster, a workspace or a view, as a path below a connection: the one way to read and write it.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mailboat_object::key::KindId;
use mailboat_object::wire::{Abilities, Call, Fault, FaultKind, Reply, Verb};
use tokio::sync::watch;

use crate::catalog::{Catalog, Served};
use crate::connection::{Connection, Location, Silence};
use crate::discovery::{Form, Known};
use crate::fault::Asked;
use crate::lines::Lines;
use crate::request::{self, Plain, Read};
use crate::transport::Transport;

/// A handle to one cluster, workspace or view; cheap to clone and to make.
#[derive(Clone)]
pub struct Cluster {
    connection: Connection,
    location: Location,
    reach: Reach,
    known: Arc<Known>,
    silence: Arc<Silence>,
}

/// How much of the world a path shows, and how it may be written. It follows from the path itself, so that
/// nobody can get it wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// One whole cluster or workspace, with true server-side apply.
    Whole,
    /// One workspace through a view: some kinds, perhaps some objects of them, and no true apply.
    Viewed,
    /// Many workspaces at once: only read.
    Many,
}

impl Connection {
    /// The cluster or workspace that the configuration points to.
    pub fn cluster(&self) -> Cluster {
        let reach = Reach::of(&self.base());
        Cluster::new(self.clone(), Location::Own, reach, Arc::new(Known::new(self.alike())))
    }

    /// The workspace or view at a path such as `/clusters/root:org:ws`, whatever path the configuration has.
    pub fn at(&self, path: &str) -> Cluster {
        let path = format!("/{}", path.trim_matches('/'));
        let reach = Reach::of(&path);
        Cluster::new(self.clone(), Location::Path(path), reach, Arc::new(Known::new(self.alike())))
    }
}

impl Cluster {
    pub(crate) fn elsewhere(
        connection: Connection,
        location: Location,
        path: &str,
        known: Arc<Known>,
    ) -> Self {
        Self::new(connection, location, Reach::of(path), known)
    }

    fn new(connection: Connection, location: Location, reach: Reach, known: Arc<Known>) -> Self {
        Self { connection, location, reach, known, silence: Arc::default() }
    }

    /// This handle, sharing what `other` knows of served kinds. For the many workspaces that serve the same,
    /// such as mailboxes, of which then one is asked.
    #[must_use]
    pub fn serving_like(mut self, other: &Self) -> Self {
        self.known = other.known.clone();
        self
    }

    /// How a kind is served here. Not served is [`FaultKind::Unserved`]; a group whose server is away is
    /// [`FaultKind::Retry`].
    pub async fn served(&self, kind: &KindId) -> Result<Served, Fault> {
        self.known.served(kind, |path, form| self.ask(path, form)).await
    }

    /// Every new catalog, as lookups learn of it.
    pub fn catalogs(&self) -> watch::Receiver<Option<Arc<Catalog>>> {
        self.known.subscribe()
    }

    /// The connection below.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    async fn ask(&self, path: String, form: Form) -> Result<Box<[u8]>, Fault> {
        let plain = Plain::get(path, form.accept());
        Ok(self.connection.call(&self.location, &plain, &Asked::default(), &self.silence).await?.body)
    }

    async fn carry_out(self, call: Call) -> Result<Reply, Fault> {
        self.reach.allows(&call)?;
        if puts(&call.verb)
            && let Some(served) = self.known.presumably_served(&call.key.kind)
        {
            match self.send(&call, &served).await {
                // Nothing was written: it is asked what is served, and the call is made once more.
                Err(fault) if fault.kind == FaultKind::Unserved => self.known.refuted(),
                reply => return reply,
            }
        }
        let served = self.served(&call.key.kind).await?;
        let reply = self.send(&call, &served).await;
        self.note(reply)
    }

    async fn send(&self, call: &Call, served: &Served) -> Result<Reply, Fault> {
        let plain = request::of_call(call, served)?;
        let asked = Asked {
            name: &call.key.name,
            resource: served.resource(),
            kind_name: &served.kind_name,
            json_patch: matches!(call.verb, Verb::Json { .. }),
        };
        self.connection.call(&self.location, &plain, &asked, &self.silence).await
    }

    async fn begin(self, read: Read) -> Result<Lines, Fault> {
        let served = self.served(&read.kind).await?;
        let plain = request::of_read(&read, &served)?;
        let asked = Asked { resource: served.resource(), kind_name: &served.kind_name, ..Asked::default() };
        let lines = self.connection.fetch(&self.location, &plain, &asked, read.is_watch()).await;
        self.note(lines)
    }

    /// A kind that the catalog has and the server has not: the catalog is old.
    fn note<T>(&self, answer: Result<T, Fault>) -> Result<T, Fault> {
        if matches!(&answer, Err(fault) if fault.kind == FaultKind::Unserved) {
            self.known.refuted();
        }
        answer
    }
}

/// Whether a call puts something there. What is read or taken away goes by what is served now.
fn puts(verb: &Verb) -> bool {
    matches!(verb, Verb::Create { .. } | Verb::Apply { .. })
}

impl Transport for Cluster {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
        self.clone().carry_out(call).boxed()
    }

    fn fetch(&self, read: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
        self.clone().begin(read).boxed()
    }

    fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
        let this = self.clone();
        async move { this.known.catalog(|path, form| this.ask(path, form)).await }.boxed()
    }

    fn stale(&self) {
        self.known.stale();
    }

    fn abilities(&self) -> Abilities {
        let whole = self.reach == Reach::Whole;
        Abilities { apply: whole, whole }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {:?} of {}", self.location, self.connection.server())
    }
}

impl Reach {
    fn of(path: &str) -> Self {
        let path = path.trim_end_matches('/');
        if path.ends_with("/clusters/*") {
            Self::Many
        } else if path.contains("/services/") {
            Self::Viewed
        } else {
            Self::Whole
        }
    }

    fn allows(self, call: &Call) -> Result<(), Fault> {
        let refused = |text: String| Err(Fault::new(FaultKind::Bug, text));
        match (self, &call.verb) {
            (Self::Many, _) => refused(format!(
                "{}: one object is read and written in its own cluster, never in all at once",
                call.key
            )),
            (Self::Viewed, Verb::Apply { .. }) => refused(format!(
                "{}: apply through a view is not server-side apply; it takes patches only",
                call.key
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_place_may_be_written_follows_from_its_path() {
        for (path, reach) in [
            ("", Reach::Whole),
            ("/clusters/root:org:ws", Reach::Whole),
            ("/k8s/clusters/c-abc", Reach::Whole),
            ("/clusters/*", Reach::Many),
            ("/services/apiexport/2pmw064ytyy24u1h/kubernetes/clusters/*", Reach::Many),
            ("/services/apiexport/2pmw064ytyy24u1h/kubernetes/clusters/*/", Reach::Many),
            ("/services/apiexport/2pmw064ytyy24u1h/kubernetes/clusters/36xyox9rhpvrzmlo", Reach::Viewed),
        ] {
            assert_eq!(Reach::of(path), reach, "{path}");
        }
    }
}
