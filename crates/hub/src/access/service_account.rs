//! Service accounts: tokens for them, and whose token one is.

use std::collections::HashSet;

use mailboat_machinery::time::rfc3339;
use mailboat_machinery::{Machine, Stored};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use super::user::CLUSTER_EXTRA;
use super::{BadToken, SigningKey, User};

/// Where it is said by which token somebody came in.
const CREDENTIAL_EXTRA: &str = "authentication.kubernetes.io/credential-id";
/// How long a token is good if nobody says otherwise.
pub(crate) const DEFAULT_SECONDS: u64 = 3_600;
/// How long at least, as Kubernetes wants it.
const SHORTEST_SECONDS: u64 = 600;
/// How long at most.
const LONGEST_SECONDS: u64 = 1 << 32;
/// By how much clocks may differ.
const LEEWAY_SECONDS: u64 = 10;

/// Signs and checks the tokens of service accounts.
pub struct Accounts {
    key: SigningKey,
    issuer: String,
    audiences: Vec<String>,
}

/// What is asked for in a `TokenRequest`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRequest {
    /// For whom; none: for this server.
    pub audiences: Vec<String>,
    /// For how long.
    pub seconds: u64,
    /// Only as long as this object is there.
    pub bound: Option<Bound>,
}

/// The object without which a token is worth nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// `Pod`, `Secret` or `Node`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid; empty: whichever it has.
    pub uid: String,
}

/// Why no token is given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AccountError {
    /// 422: the request is not as it must be; field and sentence.
    #[error("{field}: {what}")]
    Invalid {
        /// Such as `spec.expirationSeconds`.
        field: &'static str,
        /// Without the field.
        what: String,
    },
    /// 404: what the token would be bound to is not there.
    #[error("{kind} {name:?} not found")]
    NotFound {
        /// Such as `pods`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// 409: there is one of that name, but another.
    #[error(
        "the UID in the bound object reference ({asked}) does not match the UID in record. The object might have been deleted and then recreated"
    )]
    OtherUid {
        /// The uid that was asked for.
        asked: String,
    },
    /// 400: a Pod runs as one account, and only that one's tokens are bound to it.
    #[error("cannot bind token for serviceaccount {0:?} to pod running with different serviceaccount name.")]
    OtherAccount(String),
    /// 500: it cannot be signed.
    #[error("the token cannot be signed")]
    Signing,
}

impl TokenRequest {
    /// Reads the body of a `TokenRequest`.
    pub fn from_json(body: &Value) -> Result<Self, AccountError> {
        let spec = &body["spec"];
        let audiences = spec["audiences"].as_array().into_iter().flatten();
        let seconds = spec["expirationSeconds"].as_i64();
        let seconds = match seconds {
            None => DEFAULT_SECONDS,
            Some(seconds) => {
                let said = |what: &str| AccountError::Invalid {
                    field: "spec.expirationSeconds",
                    what: format!("Invalid value: {seconds}: {what}"),
                };
                let asked = u64::try_from(seconds).unwrap_or(0);
                if asked < SHORTEST_SECONDS {
                    return Err(said("may not specify a duration less than 10 minutes"));
                }
                if asked > LONGEST_SECONDS {
                    return Err(said("may not specify a duration larger than 2^32 seconds"));
                }
                asked
            }
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let bound = &spec["boundObjectRef"];
        Ok(Self {
            audiences: audiences.filter_map(Value::as_str).map(str::to_owned).collect(),
            seconds,
            bound: bound.is_object().then(|| Bound {
                kind: text(&bound["kind"]),
                name: text(&bound["name"]),
                uid: text(&bound["uid"]),
            }),
        })
    }
}

impl Accounts {
    /// Tokens of this issuer, which is also the audience that a token for this server must name.
    pub fn new(key: SigningKey, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        Self { key, audiences: vec![issuer.clone()], issuer }
    }

    /// The audiences of this server.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Answers a `TokenRequest` for an account: the body that was sent, with its status.
    pub fn issue(
        &self,
        machine: &Machine,
        account: &Stored,
        mut body: Value,
        now_seconds: u64,
    ) -> Result<Value, AccountError> {
        let request = TokenRequest::from_json(&body)?;
        let Key { cluster, namespace, name, .. } = &account.key;
        let mut about = json!({
            "clusterName": cluster.0.as_str(),
            "namespace": namespace.as_str(),
            "serviceaccount": { "name": name.as_str(), "uid": account.uid.to_string() },
        });
        if let Some(bound) = &request.bound {
            let (member, kind) = bound_kind(&bound.kind).ok_or_else(|| AccountError::Invalid {
                field: "spec.boundObjectRef.kind",
                what: format!("Invalid value: {:?}: supported are Pod, Secret and Node", bound.kind),
            })?;
            let object = machine
                .get(&bound_key(cluster, namespace, kind, &bound.name))
                .map_err(|_| AccountError::NotFound { kind, name: bound.name.clone() })?;
            let uid = object.uid.to_string();
            if !bound.uid.is_empty() && bound.uid != uid {
                return Err(AccountError::OtherUid { asked: bound.uid.clone() });
            }
            let own = object.body()["spec"]["serviceAccountName"].as_str().unwrap_or_default();
            let own = if own.is_empty() { "default" } else { own };
            if kind == "pods" && own != name.as_str() {
                return Err(AccountError::OtherAccount(name.to_string()));
            }
            about[member] = json!({ "name": bound.name, "uid": uid });
        }
        let audiences = if request.audiences.is_empty() { &self.audiences } else { &request.audiences };
        let expires = now_seconds.saturating_add(request.seconds);
        let number = self.key.number().ok_or(AccountError::Signing)?;
        let claims = json!({
            "aud": audiences, "exp": expires, "iat": now_seconds, "nbf": now_seconds, "iss": self.issuer, "jti": number,
            "sub": format!("system:serviceaccount:{namespace}:{name}"), "kubernetes.io": about,
        });
        let token = self.key.sign(&claims).ok_or(AccountError::Signing)?;
        body["spec"]["audiences"] = json!(audiences);
        body["spec"]["expirationSeconds"] = request.seconds.into();
        body["status"] = json!({ "token": token, "expirationTimestamp": rfc3339(expires) });
        Ok(body)
    }

    /// The audiences that a token of ours names, whether or not it is good.
    pub fn audiences_of(&self, token: &str) -> Vec<String> {
        let claims = self.key.claims(token).unwrap_or_default();
        claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Whose token this is, and for which of the audiences. The account, and what the token is bound to, must still be there; it
    /// must name one of the audiences.
    pub fn whose(
        &self,
        machine: &Machine,
        token: &str,
        audiences: &[String],
        now_seconds: u64,
    ) -> Result<(User, Vec<String>), BadToken> {
        let claims = self.key.claims(token)?;
        let number = |claim: &str| claims[claim].as_u64().ok_or(BadToken::Invalid);
        if claims["iss"] != self.issuer {
            return Err(BadToken::Invalid);
        }
        if number("exp")?.saturating_add(LEEWAY_SECONDS) < now_seconds
            || number("nbf")? > now_seconds.saturating_add(LEEWAY_SECONDS)
        {
            return Err(BadToken::Expired);
        }
        let named: HashSet<&str> =
            claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let good_for: Vec<String> =
            audiences.iter().filter(|asked| named.contains(asked.as_str())).cloned().collect();
        if good_for.is_empty() {
            return Err(BadToken::Audience);
        }
        let about = &claims["kubernetes.io"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (cluster, namespace) = (ClusterId::new(&text(&about["clusterName"])), text(&about["namespace"]));
        let is_there = |kind: &str, of: &Value| {
            let key = bound_key(&cluster, &Name::new(&namespace), kind, &text(&of["name"]));
            let uid = text(&of["uid"]);
            machine.get(&key).is_ok_and(|object| object.uid.to_string() == uid && !object.is_deleting())
        };
        let account = &about["serviceaccount"];
        if !is_there("serviceaccounts", account) {
            return Err(BadToken::Invalidated);
        }
        let mut user = User::service_account(&namespace, &text(&account["name"]), &text(&account["uid"]));
        user.extra.insert(CLUSTER_EXTRA.to_owned(), vec![cluster.0.to_string()]);
        // Tokens of earlier releases have none.
        if let Some(number) = claims["jti"].as_str().filter(|number| !number.is_empty()) {
            user.extra.insert(CREDENTIAL_EXTRA.to_owned(), vec![format!("JTI={number}")]);
        }
        for (member, kind) in BOUND_KINDS {
            let bound = &about[member];
            if bound.is_object() {
                if !is_there(kind, bound) {
                    return Err(BadToken::Invalidated);
                }
                for part in ["name", "uid"] {
                    let key = format!("authentication.kubernetes.io/{member}-{part}");
                    user.extra.insert(key, vec![text(&bound[part])]);
                }
            }
        }
        Ok((user, good_for))
    }
}

/// As claims name them, and as resources.
const BOUND_KINDS: [(&str, &str); 3] = [("pod", "pods"), ("secret", "secrets"), ("node", "nodes")];

fn bound_kind(kind: &str) -> Option<(&'static str, &'static str)> {
    BOUND_KINDS.into_iter().find(|(member, _)| member.eq_ignore_ascii_case(kind))
}

fn bound_key(cluster: &ClusterId, namespace: &Name, kind: &str, name: &str) -> Key {
    Key {
        cluster: cluster.clone(),
        kind: KindId::new("", kind),
        namespace: if kind == "nodes" { Name::EMPTY } else { namespace.clone() },
        name: Name::new(name),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mailboat_machinery::{
        DeleteOptions, Kind, Moment, Origin, Rules, Schema, Seeded, Settings, WriteOptions,
    };

    use super::*;
    use crate::storage::Memory;

    const NOW: u64 = 1_790_000_000;

    struct World {
        machine: Machine,
        accounts: Accounts,
        chance: Seeded,
    }

    fn key(kind: &str, name: &str) -> Key {
        bound_key(&ClusterId::new("here"), &Name::new("default"), kind, name)
    }

    impl World {
        fn new() -> Self {
            let mut machine = Machine::new(Settings::default());
            for (resource, name) in [("serviceaccounts", "ServiceAccount"), ("secrets", "Secret")] {
                let versions = [("v1", Schema::permissive())];
                let id = KindId::new("", resource);
                let kind = Kind::new(id, name, true, versions, Origin::Custom, Rules::custom());
                machine.serve(&ClusterId::new("here"), [Arc::new(kind)]);
            }
            let accounts = Accounts::new(SigningKey::of(&mut Memory::default()).unwrap(), "https://hub");
            let mut world = Self { machine, accounts, chance: Seeded(1) };
            world.create("serviceaccounts", "ServiceAccount", "boat");
            world
        }

        fn create(&mut self, resource: &str, kind: &str, name: &str) {
            let body = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name } });
            let mut moment = Moment { now_seconds: NOW, random: &mut self.chance };
            self.machine.create(&key(resource, ""), body, &WriteOptions::default(), &mut moment).unwrap();
        }

        fn delete(&mut self, resource: &str, name: &str) {
            let mut moment = Moment { now_seconds: NOW, random: &mut self.chance };
            self.machine.delete(&key(resource, name), &DeleteOptions::default(), &mut moment).unwrap();
        }

        fn issue(&self, spec: &Value) -> Result<String, AccountError> {
            let account = self.machine.get(&key("serviceaccounts", "boat")).unwrap();
            let answer = self.accounts.issue(&self.machine, &account, json!({ "spec": spec }), NOW)?;
            Ok(answer["status"]["token"].as_str().unwrap().to_owned())
        }

        fn whose(&self, token: &str, now: u64) -> Result<User, BadToken> {
            let audiences = self.accounts.audiences();
            self.accounts.whose(&self.machine, token, audiences, now).map(|(user, _)| user)
        }
    }

    #[test]
    fn a_token_is_its_accounts_while_that_lives() {
        let mut world = World::new();
        let token = world.issue(&json!({})).unwrap();
        let user = world.whose(&token, NOW + 3_599).unwrap();
        assert_eq!(user.name, "system:serviceaccount:default:boat");
        assert_eq!(user.extra[CLUSTER_EXTRA], ["here"]);
        assert_eq!(world.whose(&token, NOW + 3_611), Err(BadToken::Expired));
        world.delete("serviceaccounts", "boat");
        assert_eq!(world.whose(&token, NOW), Err(BadToken::Invalidated));
        world.create("serviceaccounts", "ServiceAccount", "boat");
        assert_eq!(world.whose(&token, NOW), Err(BadToken::Invalidated), "a namesake is another");
    }

    #[test]
    fn a_token_for_others_is_none_here() {
        let world = World::new();
        let token = world.issue(&json!({ "audiences": ["elsewhere"] })).unwrap();
        assert_eq!(world.whose(&token, NOW), Err(BadToken::Audience));
        let elsewhere = ["elsewhere".to_owned()];
        assert!(world.accounts.whose(&world.machine, &token, &elsewhere, NOW).is_ok());
    }

    #[test]
    fn a_bound_token_goes_with_what_it_is_bound_to() {
        let mut world = World::new();
        let bound = json!({ "boundObjectRef": { "kind": "Secret", "apiVersion": "v1", "name": "s" } });
        assert_eq!(
            world.issue(&bound).unwrap_err(),
            AccountError::NotFound { kind: "secrets", name: "s".to_owned() }
        );
        world.create("secrets", "Secret", "s");
        let token = world.issue(&bound).unwrap();
        let user = world.whose(&token, NOW).unwrap();
        assert_eq!(user.extra["authentication.kubernetes.io/secret-name"], ["s"]);
        world.delete("secrets", "s");
        assert_eq!(world.whose(&token, NOW), Err(BadToken::Invalidated));
    }

    #[test]
    fn a_token_says_its_number_and_for_whom_of_those_asked_it_is_good() {
        let world = World::new();
        let token = world.issue(&json!({ "audiences": ["vault", "bank"] })).unwrap();
        let asked = ["other", "bank"].map(str::to_owned);
        let (user, good_for) = world.accounts.whose(&world.machine, &token, &asked, NOW).unwrap();
        assert_eq!(good_for, ["bank"]);
        let number = &user.extra[CREDENTIAL_EXTRA][0];
        assert!(number.starts_with("JTI=") && number.len() == 40, "{number}");
        let another = world.issue(&json!({ "audiences": ["bank"] })).unwrap();
        let (other, _) = world.accounts.whose(&world.machine, &another, &asked, NOW).unwrap();
        assert_ne!(&other.extra[CREDENTIAL_EXTRA][0], number);
        assert_eq!(world.accounts.audiences_of(&token), ["vault", "bank"]);
        assert!(world.accounts.audiences_of("nonsense").is_empty());
    }

    #[test]
    fn lifetimes_have_limits() {
        let world = World::new();
        for seconds in [-1, 0, 599, (1_i64 << 32) + 1] {
            let refused = world.issue(&json!({ "expirationSeconds": seconds })).unwrap_err().to_string();
            assert!(refused.starts_with("spec.expirationSeconds: Invalid value"), "{refused}");
        }
        world.issue(&json!({ "expirationSeconds": 600 })).unwrap();
    }
}
