//! Users, and users who act as others.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mailboat_object::ClusterId;

use super::{Asked, Decision};

/// Everybody who proved who he is.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everybody else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Who may do everything.
pub const MASTERS: &str = "system:masters";
/// Whoever did not prove who he is.
pub const ANONYMOUS: &str = "system:anonymous";
/// How the user names of service accounts begin.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
/// How kcp calls service accounts where all workspaces are meant: what follows is the workspace, and then as above.
const GLOBAL_SERVICE_ACCOUNT: &str = "system:kcp:serviceaccount:";
/// Where kcp writes down in which workspace a service account lives.
pub const CLUSTER_EXTRA: &str = "authentication.kcp.io/cluster-name";

/// Where kcp writes down in which workspaces alone a user is who he is.
const SCOPES_EXTRA: &str = "authentication.kcp.io/scopes";
/// Groups that mean something in every workspace: nobody acts as one of them who is not in it himself.
const SPECIAL_GROUPS: [&str; 6] = [
    MASTERS,
    AUTHENTICATED,
    "system:kcp:admin",
    "system:kcp:tenancy:workspace-bootstrapper",
    "system:kcp:logical-cluster-admin",
    "system:kcp:external-logical-cluster-admin",
];

/// Whether a group means more than that somebody proved who he is, in every workspace.
pub(crate) fn is_special(group: &str) -> bool {
    group != AUTHENTICATED && SPECIAL_GROUPS.contains(&group)
}

/// Who makes a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The user's uid, if there is one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Whatever else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Why a user may not act as another, in the server's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImpersonationError {
    /// Groups, uid or extra without a user name.
    #[error("requested {0:?} without impersonating a user")]
    NoUser(Vec<String>),
    /// Not allowed; 403.
    #[error(
        "{resource} {name:?} is forbidden: User {user:?} cannot impersonate resource {resource:?} in API group {group:?} {scope}"
    )]
    Forbidden {
        /// Whoever asks.
        user: String,
        /// Such as `users`.
        resource: String,
        /// The API group.
        group: String,
        /// Whom, or what.
        name: String,
        /// Where, in words.
        scope: String,
    },
}

impl User {
    /// A user that proved who he is.
    pub fn authenticated(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// Whoever did not prove who he is.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// A service account, in its groups.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            name: format!("{SERVICE_ACCOUNT}{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: service_account_groups(namespace),
            extra: BTreeMap::new(),
        }
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|mine| mine == group)
    }

    /// Whether the user may do everything.
    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    /// Whether the user may act as somebody in the groups that these headers name, in a workspace. The rights that he has
    /// there say nothing of others.
    pub(crate) fn may_take_groups<'h>(&self, headers: impl IntoIterator<Item = (&'h str, &'h str)>) -> bool {
        let groups = headers.into_iter().filter(|(name, _)| *name == "impersonate-group");
        self.is_master()
            || groups.into_iter().all(|(_, group)| !SPECIAL_GROUPS.contains(&group) || self.is_in(group))
    }

    /// From now on the user is who he is in one workspace alone.
    pub(crate) fn confine(&mut self, cluster: &ClusterId) {
        self.extra.entry(SCOPES_EXTRA.to_owned()).or_default().push(format!("cluster:{}", cluster.0));
    }

    /// Who the user is in a workspace. A service account of another workspace is not the one of the same name here: as in
    /// kcp it has the name by which it is known everywhere, and no group of this place. Outside of the workspaces that a user
    /// is confined to, he is somebody without a name.
    pub(crate) fn seen_in(&self, cluster: &ClusterId) -> Cow<'_, Self> {
        let wanted = format!("cluster:{}", cluster.0);
        // Every scope has to hold; each may name several workspaces.
        let holds = |scope: &String| scope.split(',').any(|one| one == wanted);
        if !self.extra.get(SCOPES_EXTRA).is_none_or(|scopes| scopes.iter().all(holds)) {
            return Cow::Owned(self.nameless());
        }
        if !self.is_foreign_account(cluster) {
            return Cow::Borrowed(self);
        }
        let mut seen = self.nameless();
        if let Some(name) = self.global_account() {
            seen.name = name;
        }
        Cow::Owned(seen)
    }

    /// Somebody of whom no more is known than whether he proved who he is.
    fn nameless(&self) -> Self {
        if self.is_in(AUTHENTICATED) { Self::authenticated(ANONYMOUS, []) } else { Self::anonymous() }
    }

    /// Whether the user is a service account of another workspace. One that does not say where it lives lives here.
    pub(crate) fn is_foreign_account(&self, cluster: &ClusterId) -> bool {
        let elsewhere = |homes: &Vec<String>| !homes.iter().any(|home| *home == *cluster.0.as_str());
        self.as_service_account().is_some() && self.extra.get(CLUSTER_EXTRA).is_some_and(elsewhere)
    }

    /// How a service account that says where it lives is called where all workspaces are meant.
    pub(crate) fn global_account(&self) -> Option<String> {
        let (namespace, name) = self.as_service_account()?;
        match self.extra.get(CLUSTER_EXTRA)?.as_slice() {
            [home] => Some(format!("{GLOBAL_SERVICE_ACCOUNT}{home}:{namespace}:{name}")),
            _ => None,
        }
    }

    /// Namespace and name, if the user is a service account.
    pub fn as_service_account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')
    }

    /// Lets this user act as another, as far as `decide` lets him. The headers are those of the request, with lower-case
    /// names; none of them about impersonation: the user stays who he is.
    pub fn impersonate<'h>(
        &self,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
        decide: impl Fn(&Self, &Asked<'_>) -> Decision,
    ) -> Result<Self, ImpersonationError> {
        let mut other = Self::default();
        let mut asked = Vec::new();
        for (header, value) in headers {
            let Some(what) = header.strip_prefix("impersonate-") else { continue };
            asked.push(header.to_owned());
            match what {
                "user" => value.clone_into(&mut other.name),
                "uid" => value.clone_into(&mut other.uid),
                "group" => other.groups.push(value.to_owned()),
                _ => {
                    if let Some(key) = what.strip_prefix("extra-") {
                        other.extra.entry(unescaped(key)).or_default().push(value.to_owned());
                    }
                }
            }
        }
        if asked.is_empty() {
            return Ok(self.clone());
        }
        if other.name.is_empty() {
            return Err(ImpersonationError::NoUser(asked));
        }
        other.check_by(self, &decide)?;
        other.complete();
        Ok(other)
    }

    /// Asks for each part of the impersonated user whether the one who asks may take it.
    fn check_by(
        &self,
        by: &Self,
        decide: &impl Fn(&Self, &Asked<'_>) -> Decision,
    ) -> Result<(), ImpersonationError> {
        const AUTHENTICATION: &str = "authentication.k8s.io";
        let check = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
            let asked = Asked::Object { verb: "impersonate", group, resource, subresource, namespace, name };
            if decide(by, &asked).allowed {
                return Ok(());
            }
            Err(ImpersonationError::Forbidden {
                user: by.name.clone(),
                resource: if subresource.is_empty() {
                    resource.to_owned()
                } else {
                    format!("{resource}/{subresource}")
                },
                group: group.to_owned(),
                name: name.to_owned(),
                scope: if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {namespace:?}")
                },
            })
        };
        match self.as_service_account() {
            Some((namespace, name)) => check("", "serviceaccounts", "", namespace, name)?,
            None => check("", "users", "", "", &self.name)?,
        }
        for group in &self.groups {
            check("", "groups", "", "", group)?;
        }
        if !self.uid.is_empty() {
            check(AUTHENTICATION, "uids", "", "", &self.uid)?;
        }
        for (key, values) in &self.extra {
            for value in values {
                check(AUTHENTICATION, "userextras", key, "", value)?;
            }
        }
        Ok(())
    }

    /// The groups that come by themselves.
    fn complete(&mut self) {
        if let Some((namespace, _)) = self.as_service_account()
            && self.groups.is_empty()
        {
            self.groups = service_account_groups(namespace);
        }
        let unauthenticated = self.name == ANONYMOUS;
        let group = if unauthenticated { UNAUTHENTICATED } else { AUTHENTICATED };
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(group.to_owned());
        }
    }
}

fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        AUTHENTICATED.to_owned(),
    ]
}

/// Extra keys are percent-encoded in headers; what makes no sense stays as it is.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_users(_: &User, asked: &Asked<'_>) -> Decision {
        match asked {
            Asked::Object { resource: "users" | "serviceaccounts", .. } => Decision::allow(""),
            _ => Decision::deny(""),
        }
    }

    #[test]
    fn who_asks_for_nobody_stays_himself() {
        let alice = User::authenticated("alice", []);
        let same = alice.impersonate([("accept", "*/*")], |_, _| Decision::deny("")).unwrap();
        assert_eq!(same, alice);
    }

    #[test]
    fn every_part_of_another_is_asked_for() {
        let alice = User::authenticated("alice", []);
        let bob = alice.impersonate([("impersonate-user", "bob")], may_users).unwrap();
        assert_eq!(bob.groups, [AUTHENTICATED]);
        let account = [("impersonate-user", "system:serviceaccount:ns:sa")];
        let account = alice.impersonate(account, may_users).unwrap();
        assert_eq!(account.groups, ["system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED]);
        let headers = [("impersonate-user", "bob"), ("impersonate-group", MASTERS)];
        let said = alice.impersonate(headers, may_users).unwrap_err().to_string();
        assert_eq!(
            said,
            "groups \"system:masters\" is forbidden: User \"alice\" cannot impersonate resource \"groups\" in API \
             group \"\" at the cluster scope"
        );
        let headers = [("impersonate-user", "bob"), ("impersonate-extra-a%2fb", "c")];
        let said = alice.impersonate(headers, may_users).unwrap_err().to_string();
        assert!(said.contains("\"userextras/a/b\""), "{said}");
        let nobody = alice.impersonate([("impersonate-group", "g")], may_users).unwrap_err();
        assert_eq!(nobody, ImpersonationError::NoUser(vec!["impersonate-group".to_owned()]));
    }

    #[test]
    fn who_acts_as_another_in_a_workspace_is_nobody_elsewhere_and_takes_no_special_group() {
        let alice = User::authenticated("alice", []);
        for group in ["system:masters", "system:kcp:admin"] {
            assert!(!alice.may_take_groups([("impersonate-group", group)]), "{group}");
        }
        assert!(
            alice.may_take_groups([("impersonate-group", AUTHENTICATED), ("impersonate-group", "sailors")])
        );
        let mut bob = alice.impersonate([("impersonate-user", "bob")], may_users).unwrap();
        let (here, there) = (ClusterId::new("here"), ClusterId::new("there"));
        bob.confine(&here);
        assert_eq!(bob.seen_in(&here).name, "bob");
        assert_eq!(bob.seen_in(&there).name, ANONYMOUS);
        bob.groups.push(MASTERS.to_owned());
        assert!(bob.seen_in(&here).is_master() && !bob.seen_in(&there).is_master());
        let mut nobody = User::anonymous();
        nobody.confine(&here);
        assert_eq!(nobody.seen_in(&there).groups, [UNAUTHENTICATED], "he proves no more elsewhere");
    }

    #[test]
    fn a_service_account_of_another_workspace_is_not_the_one_of_the_same_name() {
        let (here, there) = (ClusterId::new("here"), ClusterId::new("there"));
        let unsaid = User::service_account("default", "sync", "u");
        let mut account = unsaid.clone();
        account.extra.insert(CLUSTER_EXTRA.to_owned(), vec!["here".to_owned()]);
        assert_eq!(*account.seen_in(&here), account);
        let seen = account.seen_in(&there);
        assert_eq!(seen.name, "system:kcp:serviceaccount:here:default:sync");
        assert_eq!(seen.groups, [AUTHENTICATED]);
        assert!(seen.as_service_account().is_none());
        assert_eq!(*unsaid.seen_in(&there), unsaid, "one that does not say where it lives lives here");
    }
}
