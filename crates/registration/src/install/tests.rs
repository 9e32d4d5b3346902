//! Runs against an edge and a mailbox that are two maps.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::mailbox::Mailbox;
use crate::rights::EdgeAccess;
use crate::token::made_up;

const UID: &str = "123e4567-e89b-12d3-a456-426614174000";
const SECRET: &str = "apiVersion: v1\nkind: Config\n";

/// All servers together.
#[derive(Default)]
struct World {
    objects: BTreeMap<Key, Value>,
    tokens: usize,
    writes: Vec<String>,
    refuses: Option<(&'static str, FaultKind)>,
}

fn registration() -> Registration {
    let mailbox = Mailbox {
        path: format!("root:espw:a-mb-{UID}"),
        cluster: "mailbox".to_owned(),
        sync_target_uid: UID.to_owned(),
    };
    Registration::new(mailbox, "guilder", "default").unwrap()
}

fn options(image: &str) -> EdgeOptions {
    EdgeOptions {
        image: image.to_owned(),
        namespace: None,
        replicas: 1,
        qps: 20.0,
        burst: 30,
        port: 8080,
        labels: BTreeMap::new(),
        access: EdgeAccess::All,
    }
}

fn secret_key() -> Key {
    Key {
        cluster: ClusterId::new("inventory"),
        kind: KindId::new("", "secrets"),
        namespace: Name::new("default"),
        name: Name::new("guilder"),
    }
}

impl World {
    fn new() -> Self {
        let mut world = Self::default();
        world.objects.insert(secret_key(), json!({ "data": { "kubeconfig": STANDARD.encode(SECRET) } }));
        world.account("u-1");
        world
    }

    fn account(&mut self, uid: &str) {
        self.objects.insert(registration().account_key(), json!({ "metadata": { "uid": uid } }));
    }

    fn run(&mut self, image: &str, now: i64) -> Result<usize, Trouble> {
        let center = CenterAddress {
            url: "https://center".to_owned(),
            certificate_authority_pem: None,
            tls_server_name: None,
            insecure: false,
        };
        let (mut run, mut next) = Installation::begin(registration(), center, options(image), secret_key());
        let now = Timestamp::from_second(now).unwrap();
        loop {
            let answer = match next {
                Next::Installed(written) => return Ok(written),
                Next::Failed(trouble) => return Err(trouble),
                Next::Reach(_, kubeconfig) => {
                    assert_eq!(kubeconfig.text(), SECRET);
                    assert!(!format!("{kubeconfig:?}").contains("Config\n"));
                    Ok(Vec::new())
                }
                Next::Call(call) => self.answer(&call),
            };
            next = run.answered(now, answer.as_deref());
        }
    }

    fn answer(&mut self, call: &Call) -> Result<Vec<u8>, Fault> {
        if let Some((resource, kind)) = self.refuses
            && call.key.kind.resource() == resource
        {
            return Err(Fault::new(kind, "no"));
        }
        match &call.verb {
            Verb::Get => {
                let found = self.objects.get(&call.key).map(|object| object.to_string().into_bytes());
                found.ok_or_else(|| Fault::new(FaultKind::NotFound, "not found"))
            }
            Verb::Create { .. } if call.part == Part::Token => {
                self.tokens += 1;
                Ok(json!({ "status": { "token": made_up(0, 10_000) } }).to_string().into_bytes())
            }
            Verb::Apply { body, .. } => {
                self.writes.push(call.key.kind.resource().to_owned());
                self.objects.insert(call.key.clone(), serde_json::from_slice(body).unwrap());
                Ok(Vec::new())
            }
            verb => panic!("{verb:?}"),
        }
    }
}

#[test]
fn a_second_run_writes_nothing_and_a_new_image_the_deployment_alone() {
    let mut world = World::new();
    assert_eq!(world.run("v1", 100), Ok(8), "{:?}", world.writes);
    assert_eq!(world.writes.last().unwrap(), "deployments", "what it needs is there before it");
    assert_eq!(world.run("v1", 200), Ok(0));
    assert_eq!(world.tokens, 1);
    world.writes.clear();
    assert_eq!(world.run("v2", 300), Ok(1));
    assert_eq!(world.writes, ["deployments"]);
}

#[test]
fn a_token_is_made_anew_when_it_has_ended_or_its_mailbox_is_another() {
    let mut world = World::new();
    world.run("v1", 100).unwrap();
    assert_eq!(world.run("v1", 9_999), Ok(0), "it lives");
    assert_eq!((world.run("v1", 10_000), world.tokens), (Ok(0), 2), "asked for again");
    world.account("u-2");
    world.run("v1", 100).unwrap();
    assert_eq!(world.tokens, 3, "the account is another one");
}

#[test]
fn what_is_not_of_this_syncer_is_left_alone() {
    let mut world = World::new();
    world.run("v1", 100).unwrap();
    let deployment = world.objects.keys().find(|key| key.kind.resource() == "deployments").unwrap().clone();
    let theirs = json!({ "metadata": { "name": "theirs" } });
    world.objects.insert(deployment.clone(), theirs.clone());
    let trouble = world.run("v1", 200).unwrap_err();
    assert_eq!(trouble.reason, "EdgeOccupied", "{trouble:?}");
    assert_eq!(world.objects[&deployment], theirs);
}

#[test]
fn every_trouble_is_said_in_a_word_and_a_sentence() {
    let mut world = World::new();
    for (resource, kind, reason) in [
        ("secrets", FaultKind::NotFound, "SecretMissing"),
        ("secrets", FaultKind::Forbidden, "SecretForbidden"),
        ("serviceaccounts", FaultKind::NotFound, "MailboxNotReady"),
        ("deployments", FaultKind::Away, "EdgeUnreachable"),
        ("clusterroles", FaultKind::Forbidden, "EdgeRefuses"),
    ] {
        world.refuses = Some((resource, kind));
        let trouble = world.run("v1", 100).unwrap_err();
        assert_eq!(trouble.reason, reason, "{trouble:?}");
        assert!(!trouble.message.is_empty());
    }
    world.refuses = None;
    world.objects.insert(secret_key(), json!({ "data": { "value": "x" } }));
    let trouble = world.run("v1", 100).unwrap_err();
    assert_eq!(trouble.reason, "KubeconfigUnusable");
    assert!(trouble.message.contains("default/guilder"), "{trouble:?}");
}

#[test]
fn every_kind_of_a_manifest_is_known() {
    let token = Token::read(&made_up(0, 10_000)).unwrap();
    let center = CenterAddress {
        url: "https://center".to_owned(),
        certificate_authority_pem: None,
        tls_server_name: None,
        insecure: false,
    };
    let access = EdgeAccess::Namespaces(["till".to_owned()].into());
    let options = EdgeOptions { access, ..options("v1") };
    let manifest = Manifest { registration: registration(), token, center, options };
    let documents = manifest.documents();
    let edge = edge_cluster(UID);
    assert!(is_edge_cluster(&edge) && !is_edge_cluster(&ClusterId::new("2sxa8riw5xha32po")));
    let known: Vec<Wanted> = documents.iter().cloned().filter_map(|body| wanted(&edge, body)).collect();
    assert_eq!(known.len(), documents.len());
}
