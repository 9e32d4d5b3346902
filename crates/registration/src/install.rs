//! A syncer installed by the center, in an edge whose kubeconfig it was given: what is asked and written, one thing after
//! the other.
//!
//! A state machine: whoever runs it does what [`Next`] says and tells what came of it. Nothing is remembered between runs.
//! Each looks at what is there and writes what is missing or otherwise, so that one that was broken off is taken up by the
//! next, and one that finds everything in place writes nothing. The token stands in the edge's own Secret, where the syncer
//! renews it; a new one is made when that has ended, or is of a mailbox that is no more.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use mailboat_engine::role::Kubeconfig;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};
use serde_json::Value;

use crate::account::{Registration, Wanted};
use crate::lifetime::Lifetime;
use crate::manifest::{CenterAddress, EdgeOptions, KUBECONFIG_KEY, Manifest, TOKEN_KEY};
use crate::names::REGISTRATION_LABEL;
use crate::token::{self, Token};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The kinds of a manifest.
const KINDS: [(&str, &str, &str); 8] = [
    ("Namespace", "", "namespaces"),
    ("ServiceAccount", "", "serviceaccounts"),
    ("Secret", "", "secrets"),
    ("Role", RBAC, "roles"),
    ("RoleBinding", RBAC, "rolebindings"),
    ("ClusterRole", RBAC, "clusterroles"),
    ("ClusterRoleBinding", RBAC, "clusterrolebindings"),
    ("Deployment", "apps", "deployments"),
];

/// The id under which an edge's cluster is reached to install its syncer, by the uid of the SyncTarget.
pub fn edge_cluster(sync_target_uid: &str) -> ClusterId {
    ClusterId::new(&format!("{EDGE_PREFIX}{sync_target_uid}"))
}

/// Whether a cluster is an edge's, reached to install its syncer.
pub fn is_edge_cluster(cluster: &ClusterId) -> bool {
    cluster.0.starts_with(EDGE_PREFIX)
}

/// No cluster of kcp has a slash in its id.
const EDGE_PREFIX: &str = "edge/";

/// One run.
#[derive(Debug)]
pub struct Installation {
    registration: Registration,
    center: CenterAddress,
    options: EdgeOptions,
    secret: Key,
    edge: ClusterId,
    stage: Stage,
    account_uid: String,
    missing: VecDeque<Wanted>,
    written: usize,
}

#[derive(Debug)]
enum Stage {
    /// The Secret with the edge's kubeconfig is read.
    Kubeconfig,
    /// The edge is reached with it.
    Reaching,
    /// The account in the mailbox is read.
    Account,
    /// The edge's own Secret is read, for the token in it.
    Held,
    /// A token is asked for.
    Token,
    /// The first of what may be missing is read,
    Looking,
    /// or written.
    Writing,
}

/// What is to be done next.
#[derive(Debug)]
pub enum Next {
    /// Send this, to the cluster that its key names.
    Call(Call),
    /// Reach a cluster from now on by this.
    Reach(ClusterId, Kubeconfig),
    /// Nothing: all is in place, and so many objects had to be written for that.
    Installed(usize),
    /// Nothing more in this run.
    Failed(Trouble),
}

/// Why a syncer is not installed: a word for programs and a sentence for people. Neither holds anything secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// One word.
    pub reason: &'static str,
    /// The cause, and what to do.
    pub message: String,
}

impl Trouble {
    /// A trouble.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

impl Installation {
    /// A run for this registration, with the kubeconfig in the Secret at `secret`; and what it begins with.
    pub fn begin(
        registration: Registration,
        center: CenterAddress,
        options: EdgeOptions,
        secret: Key,
    ) -> (Self, Next) {
        let first = Next::Call(get(secret.clone()));
        let edge = edge_cluster(&registration.mailbox.sync_target_uid);
        let run = Self {
            registration,
            center,
            options,
            secret,
            edge,
            stage: Stage::Kubeconfig,
            account_uid: String::new(),
            missing: VecDeque::new(),
            written: 0,
        };
        (run, first)
    }

    /// Goes on with the answer to what was to be done: the body of a reply, or nothing where an edge was to be reached.
    pub fn answered(&mut self, now: Timestamp, answer: Result<&[u8], &Fault>) -> Next {
        self.step(now, answer).unwrap_or_else(Next::Failed)
    }

    fn step(&mut self, now: Timestamp, answer: Result<&[u8], &Fault>) -> Result<Next, Trouble> {
        match self.stage {
            Stage::Kubeconfig => {
                let secret = answer.map_err(|fault| self.secret_unread(fault))?;
                let kubeconfig = self.kubeconfig(secret)?;
                self.stage = Stage::Reaching;
                Ok(Next::Reach(self.edge.clone(), kubeconfig))
            }
            Stage::Reaching => {
                answer.map_err(|fault| Trouble::new("KubeconfigUnusable", fault.text.clone()))?;
                self.stage = Stage::Account;
                Ok(Next::Call(get(self.registration.account_key())))
            }
            Stage::Account => {
                let account = answer.map_err(|fault| mailbox("the syncer's account", fault))?;
                let account: Value = serde_json::from_slice(account).unwrap_or_default();
                account["metadata"]["uid"].as_str().unwrap_or_default().clone_into(&mut self.account_uid);
                self.stage = Stage::Held;
                Ok(Next::Call(get(self.edge_secret())))
            }
            Stage::Held => {
                let held = match answer {
                    Ok(secret) => token_in(secret),
                    Err(fault) if fault.kind == FaultKind::NotFound => None,
                    Err(fault) => return Err(edge("the syncer's Secret cannot be read", fault)),
                };
                match held {
                    Some(token) if token.account_uid == self.account_uid && !token.has_expired(now) => {
                        self.wants(token);
                        Ok(self.look())
                    }
                    _ => {
                        self.stage = Stage::Token;
                        Ok(Next::Call(self.registration.token_request(Lifetime::DEFAULT)))
                    }
                }
            }
            Stage::Token => {
                let reply = answer.map_err(|fault| mailbox("a token", fault))?;
                let token = token::granted(reply);
                self.wants(token.map_err(|bad| Trouble::new("MailboxNotReady", format!("a token: {bad}")))?);
                Ok(self.look())
            }
            Stage::Looking => self.found(answer),
            Stage::Writing => {
                if let (Some(wanted), Err(fault)) = (self.missing.front(), answer) {
                    return Err(edge(&format!("{} cannot be made", wanted.title), fault));
                }
                self.written += 1;
                self.missing.pop_front();
                Ok(self.look())
            }
        }
    }

    /// An object of the manifest as it is at the edge.
    fn found(&mut self, answer: Result<&[u8], &Fault>) -> Result<Next, Trouble> {
        let Some(wanted) = self.missing.front() else { return Ok(self.look()) };
        match answer {
            Ok(found) => {
                let found: Value = serde_json::from_slice(found).unwrap_or_default();
                if found["metadata"]["labels"][REGISTRATION_LABEL] != self.registration.id.as_str() {
                    let message = format!(
                        "{} is at the edge already and is not of this syncer; it is left as it is",
                        wanted.title
                    );
                    return Err(Trouble::new("EdgeOccupied", message));
                }
                if wanted.is_in(&found) {
                    self.missing.pop_front();
                    return Ok(self.look());
                }
            }
            Err(fault) if fault.kind == FaultKind::NotFound => {}
            Err(fault) => return Err(edge(&format!("{} cannot be read", wanted.title), fault)),
        }
        let write = Next::Call(wanted.apply(false));
        self.stage = Stage::Writing;
        Ok(write)
    }

    fn look(&mut self) -> Next {
        self.stage = Stage::Looking;
        match self.missing.front() {
            Some(wanted) => Next::Call(get(wanted.key.clone())),
            None => Next::Installed(self.written),
        }
    }

    fn wants(&mut self, token: Token) {
        let manifest = Manifest {
            registration: self.registration.clone(),
            token,
            center: self.center.clone(),
            options: self.options.clone(),
        };
        let edge = &self.edge;
        self.missing = manifest.documents().into_iter().filter_map(|body| wanted(edge, body)).collect();
    }

    fn edge_secret(&self) -> Key {
        let id = self.registration.id.as_str();
        Key {
            cluster: self.edge.clone(),
            kind: KindId::new("", "secrets"),
            namespace: Name::new(self.options.namespace.as_deref().unwrap_or(id)),
            name: Name::new(id),
        }
    }

    fn kubeconfig(&self, secret: &[u8]) -> Result<Kubeconfig, Trouble> {
        let secret: Value = serde_json::from_slice(secret).unwrap_or_default();
        let text = secret["data"][KUBECONFIG_KEY].as_str().and_then(|text| STANDARD.decode(text).ok());
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(|text| Kubeconfig::new(&text)).ok_or_else(|| {
            let message = format!("the Secret {} has no text under the key {KUBECONFIG_KEY}", self.named());
            Trouble::new("KubeconfigUnusable", message)
        })
    }

    fn secret_unread(&self, fault: &Fault) -> Trouble {
        let named = self.named();
        match fault.kind {
            FaultKind::NotFound => {
                Trouble::new("SecretMissing", format!("the Secret {named} is not in this workspace"))
            }
            FaultKind::Forbidden => Trouble::new(
                "SecretForbidden",
                format!(
                    "the center may not read the Secret {named}; a Role in its namespace has to let the group \
                     mailboat:center get it"
                ),
            ),
            _ => Trouble::new("SecretUnread", format!("the Secret {named} cannot be read: {fault}")),
        }
    }

    fn named(&self) -> String {
        format!("{}/{}", self.secret.namespace, self.secret.name)
    }
}

fn get(key: Key) -> Call {
    Call { key, verb: Verb::Get, part: Part::Whole, dry_run: false }
}

fn token_in(secret: &[u8]) -> Option<Token> {
    let secret: Value = serde_json::from_slice(secret).ok()?;
    let bytes = STANDARD.decode(secret["data"][TOKEN_KEY].as_str()?).ok()?;
    Token::read(std::str::from_utf8(&bytes).ok()?).ok()
}

fn wanted(edge: &ClusterId, body: Value) -> Option<Wanted> {
    let text = |name: &str| body["metadata"][name].as_str().unwrap_or_default().to_owned();
    let (kind, namespace, name) = (body["kind"].as_str()?, text("namespace"), text("name"));
    let (_, group, resource) = KINDS.into_iter().find(|(known, ..)| *known == kind)?;
    let title =
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") };
    let key = Key {
        cluster: edge.clone(),
        kind: KindId::new(group, resource),
        namespace: Name::new(&namespace),
        name: Name::new(&name),
    };
    Some(Wanted { key, title, body })
}

fn mailbox(what: &str, fault: &Fault) -> Trouble {
    Trouble::new("MailboxNotReady", format!("{what} cannot be had from the mailbox: {fault}"))
}

fn edge(what: &str, fault: &Fault) -> Trouble {
    let reason = if fault.passes() { "EdgeUnreachable" } else { "EdgeRefuses" };
    Trouble::new(reason, format!("at the edge, {what}: {fault}"))
}

#[cfg(test)]
mod tests;
