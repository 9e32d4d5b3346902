//! Who asks, and whether they may: the users and rights of `access`, in front of every request.

use std::sync::{Arc, PoisonError, RwLock};

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use mailboat_machinery::{Change, ListRequest, Machine, Status};
use mailboat_object::{ClusterId, KindId};
use serde_json::Value;

use crate::access::rbac::escalation::Escalation;
use crate::access::user::ImpersonationError;
use crate::access::{Accounts, Asked, BadToken, Rights, TokenFile, User, rbac};
use crate::cluster::CLUSTER;
use crate::hub::now_seconds;
use crate::path::ObjectPath;

/// How the headers begin by which somebody acts as another.
const IMPERSONATE: &str = "impersonate-";

/// Who may come in, and what they may do.
pub(crate) struct Gate {
    rights: Arc<RwLock<Rights>>,
    accounts: Accounts,
    tokens: TokenFile,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Gate {
    /// A gate that knows the rights that stand in the objects of a machine, and those that hold everywhere.
    pub(crate) fn new(
        machine: &Machine,
        common: impl IntoIterator<Item = Value>,
        accounts: Accounts,
        tokens: TokenFile,
    ) -> Self {
        let mut rights = Rights::new();
        rights.add_common(common);
        let mut reading = rbac::Reading::default();
        for cluster in machine.clusters() {
            let mut objects = Vec::new();
            for resource in rbac::RESOURCES {
                let kind = KindId::new(rbac::GROUP, resource);
                let request = ListRequest { cluster: Some(cluster.clone()), kind, ..ListRequest::default() };
                let found = machine.list(&request).into_iter().flat_map(|list| list.items);
                objects.extend(found.map(|object| (resource, object)));
            }
            rights.read(&mut reading, cluster, &objects);
        }
        Self { rights: Arc::new(RwLock::new(rights)), accounts, tokens }
    }

    /// Follows the roles and bindings that are stored.
    pub(crate) fn follower(&self) -> impl FnMut(&[Arc<Change>]) + Send + 'static {
        let rights = Arc::clone(&self.rights);
        move |changes| {
            let mut concerning =
                changes.iter().filter(|change| Rights::concerns(&change.key.kind)).peekable();
            if concerning.peek().is_some() {
                let mut rights = rights.write().unwrap_or_else(PoisonError::into_inner);
                concerning.for_each(|change| rights.observe(change));
            }
        }
    }

    /// Asks the rights something.
    pub(crate) fn rights<T>(&self, ask: impl FnOnce(&Rights) -> T) -> T {
        ask(&self.rights.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The accounts of services, which sign tokens.
    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Who makes a request: whoever the token names, else the certificate, else nobody in particular.
    pub(crate) fn user(
        &self,
        machine: &Machine,
        headers: &HeaderMap,
        certified: Option<&User>,
    ) -> Result<User, Status> {
        match bearer(headers) {
            Some(token) => self.whose(machine, token).ok_or_else(unauthorized),
            None => Ok(certified.cloned().unwrap_or_else(User::anonymous)),
        }
    }

    /// Whom a user acts as: another where he asks for it and has the right to, in the cluster that he asks. None: himself.
    pub(crate) fn acting(
        &self,
        cluster: &ClusterId,
        user: &User,
        headers: &HeaderMap,
    ) -> Result<Option<User>, Status> {
        let mut pairs = Vec::new();
        for (name, value) in headers.iter().filter(|(name, _)| name.as_str().starts_with(IMPERSONATE)) {
            // A name that cannot be read is not passed over: he who asks would act as himself, and may do more.
            let value = std::str::from_utf8(value.as_bytes())
                .map_err(|_| Status::bad_request(format!("the header {name} is not text")))?;
            pairs.push((name.as_str(), value));
        }
        if pairs.is_empty() {
            return Ok(None);
        }
        let in_workspace = *cluster != ClusterId::new(CLUSTER);
        if in_workspace && !user.may_take_groups(pairs.iter().copied()) {
            let message = "forbidden: impersonation is not allowed for the requestor";
            return Err(Status::other(403, "Forbidden", message));
        }
        let acting =
            self.rights(|rights| user.impersonate(pairs, |user, asked| rights.decide(cluster, user, asked)));
        let mut acting = acting.map_err(|error| match error {
            ImpersonationError::NoUser(_) => Status::bad_request(error.to_string()),
            ImpersonationError::Forbidden { .. } => Status::other(403, "Forbidden", error.to_string()),
        })?;
        if in_workspace && !user.is_master() {
            // What one workspace lets him be, he is there alone.
            acting.confine(cluster);
        }
        Ok(Some(acting))
    }

    /// Whose token it is, here.
    fn whose(&self, machine: &Machine, token: &str) -> Option<User> {
        self.whose_for(machine, token, self.accounts.audiences()).ok().map(|(user, _)| user)
    }

    /// Whose token it is that is good for one of these audiences, and for which of them. Fixed tokens are good here alone.
    pub(crate) fn whose_for(
        &self,
        machine: &Machine,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), BadToken> {
        let Some(user) = self.tokens.whose(token) else {
            return self.accounts.whose(machine, token, audiences, now_seconds());
        };
        let here = self.accounts.audiences();
        let good_for: Vec<String> = audiences.iter().filter(|asked| here.contains(asked)).cloned().collect();
        if good_for.is_empty() { Err(BadToken::Invalid) } else { Ok((user.clone(), good_for)) }
    }

    /// Refuses what a user may not do with objects.
    pub(crate) fn check_object(
        &self,
        cluster: &ClusterId,
        user: &User,
        verb: &str,
        path: &ObjectPath,
    ) -> Result<(), Status> {
        let asked = path.asked(verb);
        let decision = self.rights(|rights| rights.decide(cluster, user, &asked));
        if decision.allowed {
            return Ok(());
        }
        let kind = KindId::new(&path.group, &path.resource);
        let mut why = asked.refusal(&user.name);
        if !decision.reason.is_empty() {
            why = format!("{why}: {}", decision.reason);
        } else if *cluster != ClusterId::new(CLUSTER) {
            // kcp says no more than this, in the same place.
            why.push_str(": access denied");
        }
        Err(Status::forbidden(&kind, &path.name, &why))
    }

    /// Refuses what a user may not do with a path that is no object's.
    pub(crate) fn check_path(
        &self,
        cluster: &ClusterId,
        user: &User,
        method: &Method,
        path: &str,
    ) -> Result<(), Status> {
        let verb = method.as_str().to_lowercase();
        let asked = Asked::Path { verb: &verb, path };
        if self.rights(|rights| rights.decide(cluster, user, &asked)).allowed {
            return Ok(());
        }
        let message = format!("forbidden: {}", asked.refusal(&user.name));
        Err(Status::other(403, "Forbidden", message).without_details())
    }

    /// Refuses a role or binding, as it would be stored, that gives away what its writer does not have.
    pub(crate) fn check_escalation(
        &self,
        cluster: &ClusterId,
        user: &User,
        path: &ObjectPath,
        body: &Value,
    ) -> Result<(), Status> {
        if path.group != rbac::GROUP {
            return Ok(());
        }
        let checked = self
            .rights(|rights| rights.check_escalation(cluster, user, &path.resource, &path.namespace, body));
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        let kind = KindId::new(&path.group, &path.resource);
        checked.map_err(|why| match why {
            Escalation::Refused(why) => Status::forbidden(&kind, name, &why),
            Escalation::NoRole { role, .. } => Status::not_found(&kind, &role),
        })
    }
}

/// 401: who does not say who he is, or says it wrongly.
pub(crate) fn unauthorized() -> Status {
    Status::other(401, "Unauthorized", "Unauthorized")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
