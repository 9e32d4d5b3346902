//! The mailbox's half of a registration: an account, its rights, the default configuration, and the token that the
//! edge was last given.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mailboat_api::names::group;
use mailboat_api::names::object::SYNCER_ROLE;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Part, Verb};
use serde_json::{Value, json};

use crate::lifetime::Lifetime;
use crate::mailbox::Mailbox;
use crate::names::{
    BadName, FIELD_MANAGER, REGISTRATION_LABEL, SyncerId, check_namespace, check_object_name,
};
use crate::rights::{self, Rule};
use crate::token::{self, Token};

/// The type of the Secret that holds the token last given out. Not Kubernetes' own type for such Secrets, whose
/// controllers would put a token without an end into it.
const TOKEN_SECRET_TYPE: &str = "mailboat.dev/syncer-token";
const RBAC: &str = "rbac.authorization.k8s.io";
/// The namespace of a syncer's account in its mailbox, unless another is chosen.
pub const ACCOUNT_NAMESPACE: &str = "default";

/// A syncer's place in its mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The mailbox.
    pub mailbox: Mailbox,
    /// The SyncTarget's name.
    pub sync_target_name: String,
    /// The namespace of the account in the mailbox.
    pub account_namespace: String,
    /// What everything is called.
    pub id: SyncerId,
}

/// An object as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Where it stands.
    pub key: Key,
    /// What it is in words: `ServiceAccount default/x`.
    pub title: String,
    /// All of it.
    pub body: Value,
}

impl Registration {
    /// The registration of the SyncTarget with this name in its mailbox.
    pub fn new(mailbox: Mailbox, sync_target_name: &str, account_namespace: &str) -> Result<Self, BadName> {
        check_object_name(sync_target_name, "a SyncTarget")?;
        check_namespace(account_namespace)?;
        Ok(Self {
            id: SyncerId::new(sync_target_name, &mailbox.sync_target_uid),
            mailbox,
            sync_target_name: sync_target_name.to_owned(),
            account_namespace: account_namespace.to_owned(),
        })
    }

    /// The account, its rights in the mailbox, where it returns the status of some kinds, the right to bring others up, and what
    /// binds them.
    ///
    /// The second role is there even when nothing comes up: kinds come and go with the configurations, and a role
    /// without rules takes back what was given before.
    pub fn account(&self, returned: &BTreeSet<KindId>, upsynced: &BTreeSet<KindId>) -> Vec<Wanted> {
        let mut objects = vec![self.wanted("v1", "ServiceAccount", self.account_key(), json!({}))];
        objects
            .extend(self.role_and_binding(self.id.as_str(), &rights::in_mailbox(self.id.as_str(), returned)));
        objects.extend(self.role_and_binding(&self.upsync_role(), &rights::for_upsync(upsynced)));
        // The center keeps a role by what placements carry and bring up, now and later, and binds it to the account of this
        // name in its usual namespace. Where there is no center, this binds nothing.
        if self.account_namespace != ACCOUNT_NAMESPACE {
            let told = self.key(RBAC, "clusterrolebindings", "", &self.told_binding());
            objects.push(self.binding(told, SYNCER_ROLE));
        }
        objects
    }

    /// The configuration that every mailbox has had since the first syncers: empty, named like the SyncTarget.
    pub fn default_configuration(&self) -> Wanted {
        let api_version = format!("{}/{}", group::EDGE, group::EDGE_VERSION);
        self.wanted(&api_version, "EdgeSyncConfig", self.default_configuration_key(), json!({ "spec": {} }))
    }

    /// Where [`Self::default_configuration`] stands.
    pub fn default_configuration_key(&self) -> Key {
        self.key(group::EDGE, "edgesyncconfigs", "", &self.sync_target_name)
    }

    /// The Secret that remembers the token last given to the edge, so that registering again gives the same one.
    pub fn token_secret(&self, token: &Token) -> Wanted {
        let mut content =
            json!({ "type": TOKEN_SECRET_TYPE, "data": { "token": STANDARD.encode(token.text()) } });
        content["metadata"]["annotations"]["mailboat.dev/expires"] = token.expires_at.to_string().into();
        self.wanted("v1", "Secret", self.token_secret_key(), content)
    }

    /// The token in [`Self::token_secret`], if it is one of this very account: an account that was deleted and made
    /// again under its name has taken its tokens with it.
    pub fn remembered(secret: &Value, account: &Value) -> Option<Token> {
        let bytes = STANDARD.decode(secret["data"]["token"].as_str()?).ok()?;
        let token = Token::read(std::str::from_utf8(&bytes).ok()?).ok()?;
        (account["metadata"]["uid"].as_str()? == token.account_uid).then_some(token)
    }

    /// Where [`Self::token_secret`] stands.
    pub fn token_secret_key(&self) -> Key {
        self.key("", "secrets", &self.account_namespace, &format!("{}-token", self.id))
    }

    /// Where the account stands.
    pub fn account_key(&self) -> Key {
        self.key("", "serviceaccounts", &self.account_namespace, self.id.as_str())
    }

    /// The request for a token of the account.
    pub fn token_request(&self, lifetime: Lifetime) -> Call {
        token::request(self.account_key(), lifetime)
    }

    /// What whoever registers must be allowed, each to be asked before anything is written.
    pub fn needs(&self) -> Vec<Need> {
        let written = ["get", "create", "patch"];
        let mut needs = Vec::new();
        for key in [self.account_key(), self.token_secret_key(), self.role_key(), self.binding_key()] {
            needs.extend(written.map(|verb| Need { verb, subresource: "", key: key.clone() }));
        }
        needs.push(Need { verb: "create", subresource: "token", key: self.account_key() });
        for verb in ["get", "create", "list"] {
            needs.push(Need { verb, subresource: "", key: self.default_configuration_key() });
        }
        needs
    }

    /// Everything that registration may have made in the mailbox, in the order in which it is taken away: rights
    /// before the account, so that nothing outlives what it belongs to.
    pub fn made(&self) -> Vec<Key> {
        let upsync = self.upsync_role();
        vec![
            self.key(RBAC, "clusterrolebindings", "", &self.told_binding()),
            self.key(RBAC, "clusterrolebindings", "", &upsync),
            self.key(RBAC, "clusterroles", "", &upsync),
            self.binding_key(),
            self.role_key(),
            self.token_secret_key(),
            self.account_key(),
        ]
    }

    fn role_key(&self) -> Key {
        self.key(RBAC, "clusterroles", "", self.id.as_str())
    }

    fn binding_key(&self) -> Key {
        self.key(RBAC, "clusterrolebindings", "", self.id.as_str())
    }

    fn upsync_role(&self) -> String {
        format!("{}-upsync", self.id)
    }

    fn told_binding(&self) -> String {
        format!("{}-told", self.id)
    }

    fn role_and_binding(&self, name: &str, rules: &[Rule]) -> [Wanted; 2] {
        let (role_key, binding_key) =
            (self.key(RBAC, "clusterroles", "", name), self.key(RBAC, "clusterrolebindings", "", name));
        let role = self.wanted(&format!("{RBAC}/v1"), "ClusterRole", role_key, json!({ "rules": rules }));
        [role, self.binding(binding_key, name)]
    }

    /// What gives the account a role.
    fn binding(&self, key: Key, role: &str) -> Wanted {
        let binding = json!({
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "namespace": self.account_namespace, "name": self.id.as_str() }],
        });
        self.wanted(&format!("{RBAC}/v1"), "ClusterRoleBinding", key, binding)
    }

    fn wanted(&self, api_version: &str, kind: &str, key: Key, mut body: Value) -> Wanted {
        body["apiVersion"] = api_version.into();
        body["kind"] = kind.into();
        body["metadata"]["name"] = key.name.as_str().into();
        body["metadata"]["labels"] = json!({ REGISTRATION_LABEL: self.id.as_str() });
        let mut title = format!("{kind} {}", key.name);
        if !key.namespace.is_empty() {
            body["metadata"]["namespace"] = key.namespace.as_str().into();
            title = format!("{kind} {}/{}", key.namespace, key.name);
        }
        Wanted { key, title, body }
    }

    fn key(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Key {
        Key {
            cluster: ClusterId::new(&self.mailbox.cluster),
            kind: KindId::new(group, resource),
            namespace: Name::new(namespace),
            name: Name::new(name),
        }
    }
}

impl Wanted {
    /// The request that makes it so, or lets the server check that it could.
    pub fn apply(&self, dry_run: bool) -> Call {
        let verb = Verb::Apply { body: self.bytes(), manager: Name::new(FIELD_MANAGER), force: true };
        Call { key: self.key.clone(), verb, part: Part::Whole, dry_run }
    }

    /// Whether an object is as it should be: everything wanted is in it, whatever else is. Then nothing is written; a
    /// server may store even an equal apply anew.
    pub fn is_in(&self, found: &Value) -> bool {
        contains(found, &self.body)
    }

    /// The request that makes it if it is not there.
    pub fn create(&self, dry_run: bool) -> Call {
        let verb = Verb::Create { body: self.bytes(), manager: Name::new(FIELD_MANAGER) };
        Call { key: self.key.clone(), verb, part: Part::Whole, dry_run }
    }

    fn bytes(&self) -> Arc<[u8]> {
        self.body.to_string().into_bytes().into()
    }
}

/// Maps may have more members than wanted; lists may not, since a rule or subject more is a right more. An empty list
/// may be left out, as servers do.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| contains(found.get(name).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| contains(found, wanted))
        }
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        (Value::Null, Value::Object(wanted)) => wanted.is_empty(),
        _ => found == wanted,
    }
}

/// Something that one must be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The verb.
    pub verb: &'static str,
    /// The subresource; empty for the object itself.
    pub subresource: &'static str,
    /// The object.
    pub key: Key,
}

impl Need {
    /// The question to the server whether we are allowed it.
    pub fn review(&self) -> Call {
        // A list or a creation is of a kind and not of one object.
        let name = if matches!(self.verb, "list" | "create") && self.subresource.is_empty() {
            ""
        } else {
            &self.key.name
        };
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": self.verb,
                "group": self.key.kind.group(),
                "resource": self.key.kind.resource(),
                "subresource": self.subresource,
                "namespace": self.key.namespace.as_str(),
                "name": name,
            } },
        });
        let key = Key {
            cluster: self.key.cluster.clone(),
            kind: KindId::new("authorization.k8s.io", "selfsubjectaccessreviews"),
            namespace: Name::EMPTY,
            // A review is answered and not stored, so it has no name of its own.
            name: Name::new("review"),
        };
        let body: Arc<[u8]> = body.to_string().into_bytes().into();
        Call { key, verb: Verb::Create { body, manager: Name::EMPTY }, part: Part::Whole, dry_run: false }
    }

    /// Whether the answer to [`Self::review`] says yes.
    pub fn is_granted(answer: &[u8]) -> bool {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        answer["status"]["allowed"] == Value::Bool(true)
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.key.kind)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if !self.key.namespace.is_empty() {
            write!(f, " in namespace {}", self.key.namespace)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::made_up;

    fn registration() -> Registration {
        registration_in(ACCOUNT_NAMESPACE)
    }

    fn registration_in(namespace: &str) -> Registration {
        let mailbox = Mailbox {
            path: "root:espw:a-mb-123e4567-e89b-12d3-a456-426614174000".to_owned(),
            cluster: "2sxa8riw5xha32po".to_owned(),
            sync_target_uid: "123e4567-e89b-12d3-a456-426614174000".to_owned(),
        };
        Registration::new(mailbox, "guilder", namespace).unwrap()
    }

    #[test]
    fn everything_that_is_made_is_marked_and_taken_away_again() {
        let registration = registration_in("syncers");
        let token = Token::read(&made_up(0, 10_000)).unwrap();
        let kinds = BTreeSet::from([KindId::new("", "configmaps")]);
        let mut made = registration.account(&kinds, &kinds);
        made.push(registration.token_secret(&token));
        for wanted in &made {
            assert_eq!(wanted.body["metadata"]["labels"][REGISTRATION_LABEL], registration.id.as_str());
        }
        let mut made: Vec<Key> = made.into_iter().map(|wanted| wanted.key).collect();
        let mut taken = registration.made();
        made.sort();
        taken.sort();
        assert_eq!(made, taken);
    }

    #[test]
    fn the_account_is_bound_to_its_own_roles_and_to_the_centers() {
        let objects = registration_in("syncers").account(&BTreeSet::new(), &BTreeSet::new());
        let binding = &objects[2].body;
        let id = "kubestellar-syncer-guilder-co8kev4q";
        assert_eq!(binding["roleRef"]["name"], id);
        assert_eq!(
            binding["subjects"],
            json!([{ "kind": "ServiceAccount", "namespace": "syncers", "name": id }])
        );
        assert_eq!(objects[1].body["metadata"]["name"], id);
        let told = &objects[5].body;
        assert_eq!(
            (&told["roleRef"]["name"], &told["subjects"]),
            (&json!(SYNCER_ROLE), &binding["subjects"])
        );
        let usual = registration().account(&BTreeSet::new(), &BTreeSet::new());
        let told = usual.iter().filter(|wanted| wanted.body["roleRef"]["name"] == SYNCER_ROLE).count();
        assert_eq!(told, 0, "the center binds the account of its usual namespace itself");
        assert_eq!(objects[3].body["rules"], json!([]), "what nobody brings up, nobody may write");
    }

    #[test]
    fn what_is_as_it_should_be_is_not_written_again() {
        let kinds = BTreeSet::from([KindId::new("", "configmaps")]);
        for wanted in registration()
            .account(&kinds, &kinds)
            .into_iter()
            .chain(registration().account(&BTreeSet::new(), &BTreeSet::new()))
        {
            let mut found = wanted.body.clone();
            found["metadata"]["uid"] = "u".into();
            found["metadata"]["labels"]["theirs"] = "x".into();
            assert!(wanted.is_in(&found), "{found}");
            found["metadata"]["labels"][REGISTRATION_LABEL] = "another".into();
            assert!(!wanted.is_in(&found), "{found}");
        }
        let none = &registration().account(&BTreeSet::new(), &BTreeSet::new())[3];
        let mut found = none.body.clone();
        found["rules"] = Value::Null;
        assert!(none.is_in(&found), "servers leave empty lists out");
        found["rules"] = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
        assert!(!none.is_in(&found), "a rule more is a right more");
        let role = &registration().account(&BTreeSet::new(), &BTreeSet::new())[1];
        let mut found = role.body.clone();
        found["rules"][2]["verbs"] = json!(["create", "delete"]);
        assert!(!role.is_in(&found));
    }

    #[test]
    fn bad_names_are_refused_before_anything_is_asked() {
        let mailbox = registration().mailbox;
        for (name, namespace) in [("Guilder", "default"), ("", "default"), ("guilder", "a.b")] {
            assert!(Registration::new(mailbox.clone(), name, namespace).is_err(), "{name} {namespace}");
        }
    }

    #[test]
    fn a_need_is_asked_for_and_named_in_words() {
        let needs = registration().needs();
        let told: Vec<String> = needs.iter().map(ToString::to_string).collect();
        assert!(told.contains(&"create serviceaccounts/token in namespace default".to_owned()), "{told:?}");
        assert!(told.contains(&"patch clusterroles.rbac.authorization.k8s.io".to_owned()), "{told:?}");
        let token = needs.iter().find(|need| need.subresource == "token").unwrap();
        let Verb::Create { body, .. } = token.review().verb else { panic!("a review is created") };
        let asked: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(asked["spec"]["resourceAttributes"]["name"], "kubestellar-syncer-guilder-co8kev4q");
        assert!(Need::is_granted(br#"{"status":{"allowed":true}}"#));
        for no in [&br#"{"status":{"allowed":false}}"#[..], b"{}", b"", br#"{"status":{"allowed":"true"}}"#] {
            assert!(!Need::is_granted(no));
        }
    }

    #[test]
    fn a_remembered_token_is_the_present_accounts_or_none() {
        let token = Token::read(&made_up(0, 10_000)).unwrap();
        let secret = registration().token_secret(&token).body;
        let account = |uid: &str| json!({ "metadata": { "uid": uid } });
        assert_eq!(Registration::remembered(&secret, &account("u-1")), Some(token));
        assert_eq!(Registration::remembered(&secret, &account("u-2")), None);
        assert_eq!(Registration::remembered(&json!({}), &account("u-1")), None);
        assert_eq!(Registration::remembered(&json!({ "data": { "token": "!" } }), &account("u-1")), None);
    }

    #[test]
    fn a_token_is_kept_under_a_type_that_no_controller_fills_in() {
        let token = Token::read(&made_up(0, 10_000)).unwrap();
        let secret = registration().token_secret(&token).body;
        assert_ne!(secret["type"], "kubernetes.io/service-account-token");
        assert_eq!(secret["metadata"]["annotations"]["mailboat.dev/expires"], "1970-01-01T02:46:40Z");
    }
}
