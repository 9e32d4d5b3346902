//! Mailboxes as routes: a SyncTarget wants its Workspace, and a Workspace wants what stands in it.

use std::sync::Arc;

use mailboat_api::names::MailboxName;
use mailboat_engine::mark::Marks;
use mailboat_engine::route::{
    Destination, DestinationId, Route, RouteHead, RouteId, Selected, Sources, View,
};
use mailboat_engine::want::{Adopt, Body, Hold, Origin, Policy, Want, Withdrawal};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;

use super::{Fixture, reporting, workspace};

/// The kind of Workspaces.
pub fn workspaces() -> KindId {
    KindId::new("tenancy.kcp.io", "workspaces")
}

/// The id of the route of all mailboxes, and what the breaker counts together.
pub const MAILBOXES: &str = "mailboxes";

/// All SyncTargets, each with its Workspace. A Workspace goes when its SyncTarget is seen to be gone, and never because
/// the inventory is.
pub struct Mailboxes {
    head: RouteHead,
    provider: ClusterId,
    to: Arc<[DestinationId]>,
    policy: Arc<Policy>,
}

impl Mailboxes {
    /// The route; `here` is the provider workspace as a destination.
    pub fn new(
        sources: Vec<Sources>,
        provider: ClusterId,
        here: DestinationId,
        marks: Arc<dyn Marks>,
    ) -> Self {
        Self {
            head: RouteHead::new(Name::new(MAILBOXES)).reading(sources),
            provider,
            to: Arc::from([here]),
            policy: policy(marks, Adopt::Never),
        }
    }
}

impl Route for Mailboxes {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, _: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("metadata.uid") })
    }

    fn project(&self, source: &Object, _: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        Ok(vec![want(workspace(source), &self.provider, source, &self.policy)])
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}

/// All SyncTargets, each with an account in its own workspace by which a syncer may report on it, and on it alone. It goes with
/// the SyncTarget that owns it.
pub struct Reporters {
    head: RouteHead,
    to: Arc<[DestinationId]>,
    policy: Arc<Policy>,
}

impl Reporters {
    /// The route; `here` is the provider workspace as a destination.
    pub fn new(sources: Vec<Sources>, here: DestinationId, marks: Arc<dyn Marks>) -> Self {
        let policy = Policy { adopt: Adopt::Unmarked, withdrawal: Withdrawal::Leave, ..Policy::plain(marks) };
        Self {
            head: RouteHead::new(Name::new("reporters")).reading(sources),
            to: Arc::from([here]),
            policy: Arc::new(policy),
        }
    }
}

impl Route for Reporters {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        if source.deleting {
            return Ok(Selected::nowhere());
        }
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("metadata.uid") })
    }

    fn project(&self, source: &Object, _: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let fixtures = reporting(source);
        Ok(fixtures
            .into_iter()
            .map(|fixture| want(fixture, &source.key.cluster, source, &self.policy))
            .collect())
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}

/// One mailbox: what stands in it whatever is placed there, and what its syncer is told.
pub struct Furnished {
    head: RouteHead,
    cluster: ClusterId,
    fixtures: Vec<Fixture>,
    to: Arc<[DestinationId]>,
    policy: Arc<Policy>,
}

impl Furnished {
    /// The route of a mailbox, by the Workspace that it is; `here` is the provider workspace as a destination.
    pub fn new(
        workspace: Key,
        cluster: ClusterId,
        fixtures: Vec<Fixture>,
        here: DestinationId,
        marks: Arc<dyn Marks>,
    ) -> Self {
        let id = Self::id_of(&workspace.name, &cluster);
        Self {
            head: RouteHead::new(id.0).of(workspace),
            cluster,
            fixtures,
            to: Arc::from([here]),
            // What a user or `syncer-gen` made there before is the same object.
            policy: policy(marks, Adopt::Unmarked),
        }
    }

    /// The name of a mailbox's route. A mailbox that was made again is another one.
    pub fn id_of(workspace: &Name, cluster: &ClusterId) -> RouteId {
        RouteId(Name::new(&format!("mailbox/{workspace}/{cluster}")))
    }
}

impl Route for Furnished {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        // One that is going takes along what is in it; nothing is written there any more.
        if source.deleting {
            return Err(Hold {
                reason: "the mailbox is being deleted".to_owned(),
                on: Some(source.key.clone()),
            });
        }
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("the mailbox itself") })
    }

    fn project(&self, source: &Object, _: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let wants = self.fixtures.iter().cloned();
        Ok(wants.map(|fixture| want(fixture, &self.cluster, source, &self.policy)).collect())
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}

/// A Workspace that is some SyncTarget's mailbox, as far as it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Whose it is.
    pub name: MailboxName,
    /// The logical cluster behind it, once it can be used.
    pub cluster: Option<ClusterId>,
}

impl Found {
    /// Reads a Workspace; `None` if it is no mailbox.
    pub fn of(workspace: &Object) -> Option<Self> {
        let name = workspace.key.name.as_str().parse().ok()?;
        let text = |path: &[&str]| workspace.get(path).and_then(mailboat_object::json::Raw::as_str);
        // A phase that left Ready again is a shard that is away: the mailbox is still the same.
        let used = text(&["status", "phase"]).is_some_and(|phase| phase == "Ready" || phase == "Unavailable");
        let cluster = text(&["spec", "cluster"]).filter(|cluster| used && !cluster.is_empty());
        Some(Self { name, cluster: cluster.map(|cluster| ClusterId::new(&cluster)) })
    }
}

fn want(fixture: Fixture, cluster: &ClusterId, source: &Object, policy: &Arc<Policy>) -> Want {
    Want {
        slot: fixture.key(cluster),
        origin: Origin::of(source),
        body: fixture.body,
        policy: Arc::clone(policy),
    }
}

fn policy(marks: Arc<dyn Marks>, adopt: Adopt) -> Arc<Policy> {
    Arc::new(Policy { adopt, ..Policy::plain(marks) })
}
