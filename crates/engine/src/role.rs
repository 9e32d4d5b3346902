//! The seam between a role and whoever runs it.
//!
//! A role turns its own API objects into routes, and says what is to be followed for them. It decides and never does:
//! what it is told comes in through [`Role`]'s methods, what it wants comes out of [`Role::next`] as [`Order`]s. A thin
//! driver carries them out on real servers, and a simulation does so on simulated ones.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use mailboat_object::catalog::Catalog;
use mailboat_object::key::{ClusterId, KindId, Name, Uid};
use mailboat_object::object::Object;
use mailboat_object::wire::{Call, Fault, Reply};
use mailboat_store::interest::{Interest, PlaceId};
use mailboat_store::seen::{Absence, News};
use mailboat_store::store::Store;
use mailboat_store::time::{Moment, Now};

use crate::breaker::ScopeId;
use crate::engine::{Engine, Notice};
use crate::look::{LastSight, Look, Serving, Sighted};
use crate::mutation::{Mutation, broken};
use crate::plan::ChangeId;
use crate::route::{Destination, Route, RouteId};
use crate::want::Origin;

/// What decides for one role. Whoever runs it tells it everything, asks it what to do after that, and tells it what
/// came of each thing that it asked for.
pub trait Role {
    /// Something was learned; the engine and the store know it already.
    fn observe(&mut self, now: Now, store: &Store, news: &News);

    /// What a place serves, as last heard.
    fn served(&mut self, place: &PlaceId, catalog: &Arc<Catalog>);

    /// A place does not let us know what it serves. It is asked on, and may say it later.
    fn refused(&mut self, _place: &PlaceId) {}

    /// A slot's verdict changed.
    fn noticed(&mut self, notice: &Notice);

    /// What came of an [`Order::Call`].
    fn answered(&mut self, now: Now, id: CallId, reply: Result<Reply, Fault>);

    /// What came of an [`Order::Look`].
    fn looked(&mut self, now: Now, id: CallId, found: Result<Ground, Fault>);

    /// What is to be done now. Asked whenever something was told, when the time asked for has come, and only while
    /// the engine wants nothing more.
    fn next(&mut self, now: Now, store: &Store, engine: &Engine) -> Turn;
}

/// Names something that a role asked for, so that the answer finds its question. A role gives the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// The numbers of a role's questions, each given once.
#[derive(Default, Debug)]
pub struct CallIds(u64);

impl CallIds {
    /// One that no question has yet.
    pub fn fresh(&mut self) -> CallId {
        self.0 += 1;
        CallId(self.0)
    }
}

/// What a role wants done, in this order, and when it wants to be asked again at the latest.
#[derive(Default)]
pub struct Turn {
    /// What to do.
    pub orders: Vec<Order>,
    /// When to ask again if nothing happens before.
    pub wake: Option<Moment>,
}

/// One thing that a role wants done.
pub enum Order {
    /// Read a place of the center there from now on. An open one may be given other endpoints.
    Open(PlaceId, Where),
    /// Read a place no more: nothing is known through it from now on.
    Close(PlaceId),
    /// A workspace of the center is written to from now on, at its own path and never through a view.
    Reach(ClusterId),
    /// A workspace that waits to be prepared is entered from now on through the view that shows it.
    ReachWaiting {
        /// The id under which it is reached so.
        cluster: ClusterId,
        /// The view's URL.
        view: Name,
        /// The workspace.
        workspace: ClusterId,
    },
    /// A cluster outside the center is written to from now on, by a kubeconfig of its own. What came of it is told like
    /// what came of a call, with nothing in the reply.
    ReachBy(CallId, ClusterId, Kubeconfig),
    /// A view shows a cluster no more and never will again: nothing of it need be remembered there.
    Leave(PlaceId, ClusterId),
    /// Follow this and nothing else: the whole set, every time.
    Follow(Vec<Interest>),
    /// Name a destination of routes.
    Destination(Destination),
    /// A route was made, changed or, with `None`, taken away.
    Configure(RouteId, Option<Arc<dyn Route>>),
    /// The configuration is known as a whole, or is not any more.
    ConfigurationKnown(Option<u64>),
    /// Somebody confirmed a held change. One that does not fit is no error: what would go is another by now.
    Confirm(ScopeId, ChangeId),
    /// A scope is no more: what still stands of it, and nobody claims, belongs to its cluster alone.
    Disown(ScopeId),
    /// Clusters are gone with all that stood in them: what nobody claims there is forgotten.
    Forget(BTreeSet<ClusterId>),
    /// Look afresh at what a kind rests on in a cluster; see [`Ground`].
    Look(CallId, ClusterId, KindId),
    /// A small call of the role's own: a heartbeat, a status, a record. Never an object that a route carries.
    Call(CallId, Call),
}

/// A kubeconfig as text. It holds keys: nobody prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct Kubeconfig(Arc<str>);

impl Kubeconfig {
    /// A kubeconfig with this text.
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The text itself, for whoever connects with it.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a kubeconfig of {} bytes", self.0.len())
    }
}

/// Where a place of the center is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Where {
    /// In one workspace, whole.
    Workspace(ClusterId),
    /// In a view over many, by the URLs of its endpoints; none while its endpoint slice has none. The bindings that it
    /// shows are followed with it, whatever else is.
    View(Vec<Name>),
    /// In the view of workspaces that wait to be prepared, by its URL. It shows no bindings, so nothing that it does not show
    /// is known to be gone.
    Waiting(Name),
}

/// What a kind rests on in a cluster, looked at afresh. A list that shows nothing is believed only on solid ground: a
/// workspace that is being deleted, and a kind whose binding or CRD is, answer with complete and empty lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ground {
    /// The workspace is there and not being deleted; true for a plain cluster that answered.
    pub workspace_lives: bool,
    /// What serves the kind.
    pub kind: Serving,
}

impl Ground {
    /// Whether an absence there can be believed.
    pub fn is_solid(&self) -> bool {
        let served = match &self.kind {
            Serving::Nothing => false,
            Serving::Itself => true,
            Serving::By(definition) => !definition.deleting,
        };
        (self.workspace_lives && served) || broken(Mutation::BelieveEmptyLists)
    }

    /// Which definition the kind rests on; none if its server serves it by itself.
    pub fn definition(&self) -> Option<&Uid> {
        match &self.kind {
            Serving::By(definition) => Some(&definition.uid),
            Serving::Itself | Serving::Nothing => None,
        }
    }

    /// Whether an object that is shown is known to rest on this.
    pub fn bears(&self, object: &Object) -> bool {
        match &self.kind {
            Serving::By(definition) => definition.is_that_of(&LastSight::present(object)),
            Serving::Itself => true,
            Serving::Nothing => false,
        }
    }

    /// Whether an object that was there, and is known to be absent, is gone alone: not with the definition that its kind
    /// had before this one.
    pub fn shows_gone(&self, absence: Absence, was: Option<&Object>) -> bool {
        let Self { workspace_lives, kind } = self.clone();
        let origin = was.map(Origin::of);
        let sight = LastSight::of(absence, origin.as_ref());
        let look = Look { object: Sighted::Missing, workspace_lives, kind };
        look.judge(&sight).is_ok() || broken(Mutation::BelieveEmptyLists)
    }
}

impl Engine {
    /// Whether something is being evaluated, settled or called. While it is so, the verdicts do not tell everything:
    /// a slot that is written anew keeps its last verdict meanwhile.
    pub fn is_busy(&self) -> bool {
        !self.evaluations.is_empty() || !self.unsettled.is_empty() || !self.flights.is_empty()
    }
}
