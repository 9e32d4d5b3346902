//! Where a request goes: a cluster, a workspace, or a view over many.

use std::sync::Arc;

use mailboat_machinery::{Kind, Machine, Status};
use mailboat_object::{ClusterId, KindId};

use crate::access::user::CLUSTER_EXTRA;
use crate::access::{Asked, User};
use crate::discovery::Keeper;
use crate::handle::not_allowed;
use crate::hub::{Hub, Serving};
use crate::path::{Asked as AskedFor, ObjectPath, decoded};
use crate::workspaces::waiting::{self, Waiting};
use crate::workspaces::{ROOT, Seen, View, logical_cluster, resolve};

/// Where a request goes.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The cluster; none: all of those that can be seen.
    pub cluster: Option<ClusterId>,
    /// The path in front of everything else.
    pub prefix: String,
    /// What it is seen through, if not directly.
    pub view: Option<Sight>,
    /// In whose name somebody else acts there, who prepares the workspace for him.
    pub owner: Option<User>,
}

/// What workspaces are seen through.
#[derive(Clone, Debug)]
pub(crate) enum Sight {
    /// The view of an export.
    Export(Arc<View>),
    /// The view of those who prepare workspaces of a type.
    Waiting(Arc<Waiting>),
}

impl Place {
    /// Reads the place from a path, and gives the rest of the path. A user who may not be there is told no more than
    /// that, whether or not there is anything.
    ///
    /// Whoever acts as another has to be let in himself, and so has the other ([`Place::check_entry`]).
    pub(crate) fn read<'p>(hub: &Hub, user: &User, path: &'p str) -> Result<(Self, &'p str), Status> {
        if let Serving::Cluster(id) = hub.serving() {
            return Ok((Self::whole(Some(id.clone()), String::new()), path));
        }
        if let Some(rest) = path.strip_prefix(waiting::PREFIX) {
            return Self::of_waiting(hub, user, rest);
        }
        if let Some(rest) = path.strip_prefix("/services/apiexport/") {
            return Self::of_view(hub, user, rest);
        }
        let Some(rest) = path.strip_prefix("/clusters/") else {
            // A service account is at home wherever it does not say otherwise; all others are at the root.
            let home = user.extra.get(CLUSTER_EXTRA).and_then(|home| home.first());
            let cluster = ClusterId::new(home.map_or(ROOT, String::as_str));
            let place = Self::whole(Some(cluster), String::new());
            place.check_entry(hub, user)?;
            return Ok((place, path));
        };
        let (reference, rest) = split(rest);
        let reference = &*decoded(reference).unwrap_or_default();
        let prefix = format!("/clusters/{reference}");
        let cluster = match reference {
            "*" => None,
            reference => Some(hub.peek(|machine| resolve(machine, reference)).ok_or_else(|| denied(user))?),
        };
        let place = Self::whole(cluster, prefix);
        place.check_entry(hub, user)?;
        Ok((place, rest))
    }

    fn whole(cluster: Option<ClusterId>, prefix: String) -> Self {
        Self { cluster, prefix, view: None, owner: None }
    }

    /// Refuses a user who may not be there at all.
    pub(crate) fn check_entry(&self, hub: &Hub, user: &User) -> Result<(), Status> {
        let may_enter = match (&self.view, &self.cluster, hub.serving()) {
            (_, _, Serving::Cluster(_)) => true,
            (Some(Sight::Waiting(waiting)), _, _) => {
                let asked = Asked::Object {
                    verb: "initialize",
                    group: waiting.of.kind.group(),
                    resource: waiting.of.kind.resource(),
                    subresource: "",
                    namespace: "",
                    name: &waiting.of.name,
                };
                hub.gate().rights(|rights| rights.decide(&waiting.of.cluster, user, &asked)).allowed
            }
            (Some(Sight::Export(view)), _, _) => {
                let asked = Asked::Object {
                    verb: "get",
                    group: "apis.kcp.io",
                    resource: "apiexports",
                    subresource: "content",
                    namespace: "",
                    name: &view.export.name,
                };
                hub.gate().rights(|rights| rights.decide(&view.export.cluster, user, &asked)).allowed
            }
            (None, Some(cluster), _) => hub.gate().rights(|rights| rights.may_enter(cluster, user)),
            (None, None, _) => user.is_master(),
        };
        if may_enter { Ok(()) } else { Err(denied(user)) }
    }

    fn of_view<'p>(hub: &Hub, user: &User, rest: &'p str) -> Result<(Self, &'p str), Status> {
        let (workspace, after) = split(rest);
        let (name, after) = split(after.trim_start_matches('/'));
        let (reference, after) = match after.strip_prefix("/clusters/") {
            Some(after) => split(after),
            None => ("*", after),
        };
        let part = |text: &str| decoded(text).unwrap_or_default();
        let (workspace, name, reference) = (&*part(workspace), &*part(name), &*part(reference));
        let prefix = format!("/services/apiexport/{workspace}/{name}/clusters/{reference}");
        let home = hub.peek(|machine| resolve(machine, workspace)).ok_or_else(|| denied(user))?;
        let view = Arc::new(View::of(&home, name));
        let place = Self { view: Some(Sight::Export(Arc::clone(&view))), ..Self::whole(None, prefix) };
        place.check_entry(hub, user)?;
        if hub.peek(|machine| machine.get(&view.export).is_err()) {
            return Err(denied(user));
        }
        let cluster = match reference {
            "*" => None,
            reference => {
                let cluster = hub.peek(|machine| resolve(machine, reference)).ok_or_else(|| denied(user))?;
                Some(cluster)
            }
        };
        Ok((Self { cluster, ..place }, after))
    }

    /// The view of those who prepare workspaces; or one of these workspaces itself, for whoever asked for it.
    fn of_waiting<'p>(hub: &Hub, user: &User, rest: &'p str) -> Result<(Self, &'p str), Status> {
        let (initializer, after) = split(rest);
        let (reference, after) = split(after.strip_prefix("/clusters/").ok_or_else(|| denied(user))?);
        let part = |text: &str| decoded(text).unwrap_or_default();
        let (initializer, reference) = (&*part(initializer), &*part(reference));
        let waiting = Arc::new(Waiting::of(initializer).ok_or_else(|| denied(user))?);
        let prefix = format!("{}{initializer}/clusters/{reference}", waiting::PREFIX);
        let cluster = (reference != "*").then(|| ClusterId::new(reference));
        let view = Some(Sight::Waiting(Arc::clone(&waiting)));
        let place = Self { view, ..Self::whole(cluster.clone(), prefix) };
        place.check_entry(hub, user)?;
        let of_view = |path: &ObjectPath| Waiting::shows(&KindId::new(&path.group, &path.resource));
        let Some(cluster) = cluster else { return Ok((place, after)) };
        if matches!(AskedFor::read(after), Some(AskedFor::Objects(path)) if of_view(&path)) {
            return Ok((place, after));
        }
        let owner = hub.peek(|machine| waiting.owner(machine, &cluster)).ok_or_else(|| denied(user))?;
        let place = Self { view: None, owner: Some(owner.clone()), ..place };
        place.check_entry(hub, &owner)?;
        Ok((place, after))
    }

    /// Refuses what the owner of a view's export was not granted. He sees through it by the word of those who are bound,
    /// so that nobody's rights are asked for.
    pub(crate) fn check_granted(
        &self,
        hub: &Hub,
        machine: &Machine,
        user: &User,
        verb: &str,
        path: &ObjectPath,
    ) -> Result<(), Status> {
        let kind = KindId::new(&path.group, &path.resource);
        let view = match &self.view {
            None => return Ok(()),
            Some(Sight::Waiting(_)) => {
                let one = self.cluster.is_some();
                let allowed = Waiting::allows(one, &kind, verb, &path.subresource);
                return if allowed || !Waiting::shows(&kind) { Ok(()) } else { Err(not_allowed()) };
            }
            Some(Sight::Export(view)) => view,
        };
        let granted = if let (Some(cluster), Serving::Workspaces(workspaces)) = (&self.cluster, hub.serving())
        {
            view.is_granted(workspaces, machine, cluster, &kind, verb)
        } else {
            let seen = self.seen(hub, machine, &kind);
            !self.kinds(hub, machine).iter().any(|served| served.id == kind)
                || seen.is_none_or(|seen| seen.is_own())
                || view.claims(machine, &kind, verb)
        };
        if granted {
            return Ok(());
        }
        Err(not_granted(user, verb, path))
    }

    /// The kinds that are served there.
    pub(crate) fn kinds(&self, hub: &Hub, machine: &Machine) -> Vec<Arc<Kind>> {
        match (&self.view, hub.serving(), &self.cluster) {
            (Some(Sight::Export(view)), Serving::Workspaces(workspaces), _) => {
                view.kinds(workspaces, machine)
            }
            (Some(Sight::Waiting(_)), ..) => {
                machine.kind(&ClusterId::new(ROOT), &logical_cluster()).cloned().into_iter().collect()
            }
            (_, Serving::Workspaces(_), None) => machine.kinds(&ClusterId::new(ROOT)).cloned().collect(),
            (_, _, Some(cluster)) => machine.kinds(cluster).cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Who keeps the objects that are seen there.
    pub(crate) fn keeper(&self, hub: &Hub) -> Keeper<'_> {
        match (&self.view, hub.serving(), &self.cluster) {
            (_, Serving::Cluster(_), _) => Keeper::Cluster,
            (Some(Sight::Export(view)), ..) => Keeper::View(&view.export.cluster.0),
            (_, _, Some(cluster)) => Keeper::Workspace(&cluster.0),
            (_, _, None) => Keeper::Workspace(ROOT),
        }
    }

    /// A kind that is served there.
    pub(crate) fn kind(&self, hub: &Hub, machine: &Machine, id: &KindId) -> Option<Arc<Kind>> {
        match (&self.view, &self.cluster) {
            (None, Some(cluster)) => machine.kind(cluster, id).cloned(),
            _ => self.kinds(hub, machine).into_iter().find(|kind| kind.id == *id),
        }
    }

    /// What is seen of a kind; none: all that was asked for.
    pub(crate) fn seen(&self, hub: &Hub, machine: &Machine, kind: &KindId) -> Option<Arc<Seen>> {
        match (&self.view, hub.serving()) {
            (Some(Sight::Export(view)), Serving::Workspaces(workspaces)) => {
                Some(Arc::new(view.seen(workspaces, machine, kind)))
            }
            (Some(Sight::Waiting(waiting)), Serving::Workspaces(workspaces)) => {
                Some(Arc::new(Seen::waiting(workspaces, waiting)))
            }
            _ => None,
        }
    }
}

/// The first word of a path, and the rest with its slash.
fn split(path: &str) -> (&str, &str) {
    path.find('/').map_or((path, ""), |at| path.split_at(at))
}

/// 403, in the words of kcp.
pub(crate) fn not_granted(user: &User, verb: &str, path: &ObjectPath) -> Status {
    let why = format!("{}: access denied", path.asked(verb).refusal(&user.name));
    Status::forbidden(&KindId::new(&path.group, &path.resource), &path.name, &why)
}

/// 403: nobody is told whether there is something where he may not be.
pub(crate) fn denied(user: &User) -> Status {
    Status::other(
        403,
        "Forbidden",
        format!("forbidden: User {:?} cannot get path \"/\": access denied", user.name),
    )
}
