//! The life of a running syncer's token: renewed from half of its life on, written back to the edge's Secret, taken up
//! when somebody replaces it, and spoken of when it has ended.
//!
//! A state machine: whoever runs it sends the [`Call`]s that [`Renewal::next`] asks for, to the side that it names, and
//! tells what came of them. What the token file holds is told as well; the file is what counts, because a restart
//! begins from it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use serde_json::json;

use crate::manifest::TOKEN_KEY;
use crate::names::FIELD_MANAGER;
use crate::token::{self, Token};

/// The pause after a first failure; it doubles with each further one,
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// up to this. Half of a token's life is days: there is no hurry, and thousands of edges may be waiting.
const LONGEST_PAUSE: Duration = Duration::from_mins(15);

/// Watches over one token.
#[derive(Debug)]
pub struct Renewal {
    mailbox: ClusterId,
    secret: Option<Key>,
    /// What the file holds; `None`: a credential that is not of this kind, or none.
    held: Option<Token>,
    phase: Phase,
    failures: u32,
    trouble: Option<String>,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is under way.
    Resting { not_before: Option<Timestamp> },
    /// A new token is asked for.
    Asking,
    /// A new token is there and must get to the Secret; it is not asked for twice.
    Storing { token: Token, not_before: Option<Timestamp>, sent: bool },
    /// The Secret has it; the file will follow.
    Stored { token: Token },
}

/// What is to be done next.
#[derive(Debug)]
pub enum Next {
    /// Nothing, before this time (`None`: before something is told).
    Wait(Option<Timestamp>),
    /// Send this to the mailbox, and tell what came of it.
    Mailbox(Call),
    /// Send this to the edge, and tell what came of it.
    Edge(Call),
}

/// How the token is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// All is well, or there is no token to watch over.
    Well,
    /// It works, but should have been renewed and was not.
    Overdue(String),
    /// It has ended: the mailbox cannot be reached until it is replaced.
    Expired(String),
}

impl Renewal {
    /// Watches over a token for this mailbox; whose it is, the token says. A renewed one goes into the Secret at
    /// `secret` (at the edge); without one nothing can be kept, so nothing is renewed.
    pub fn new(mailbox: ClusterId, secret: Option<Key>) -> Self {
        Self {
            mailbox,
            secret,
            held: None,
            phase: Phase::Resting { not_before: None },
            failures: 0,
            trouble: None,
        }
    }

    /// The token file holds this now. To be told at the start, and when the file changes.
    pub fn holds(&mut self, text: &str) {
        let token = Token::read(text).ok();
        if token == self.held {
            return;
        }
        self.held = token;
        // Whatever was under way was for another token. A token of ours that has just arrived ends up here too.
        self.phase = Phase::Resting { not_before: None };
        self.failures = 0;
        self.trouble = None;
    }

    /// What is to be done now.
    pub fn next(&mut self, now: Timestamp) -> Next {
        let (Some(held), Some(secret)) = (&self.held, &self.secret) else { return Next::Wait(None) };
        let Some(account) = account_of(&self.mailbox, held) else { return Next::Wait(None) };
        match &mut self.phase {
            Phase::Resting { not_before } => {
                let due = not_before.unwrap_or(held.renew_from()).max(held.renew_from());
                if now < due {
                    return Next::Wait(Some(due));
                }
                let call = token::request(account, held.lifetime());
                self.phase = Phase::Asking;
                Next::Mailbox(call)
            }
            Phase::Asking | Phase::Storing { sent: true, .. } => Next::Wait(None),
            Phase::Storing { not_before: Some(due), .. } if now < *due => Next::Wait(Some(*due)),
            Phase::Storing { token, sent, .. } => {
                *sent = true;
                Next::Edge(store(secret.clone(), token))
            }
            // A Secret that somebody set back in between leaves the old token in the file: then this one's turn
            // comes again, by its own age.
            Phase::Stored { token } => {
                let due = token.renew_from();
                if now < due {
                    return Next::Wait(Some(due));
                }
                self.phase = Phase::Resting { not_before: None };
                self.next(now)
            }
        }
    }

    /// What came of the call that [`Self::next`] asked for last.
    pub fn answered(&mut self, now: Timestamp, answer: Result<&Reply, &Fault>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Resting { not_before: None });
        match (phase, answer) {
            (Phase::Asking, Ok(reply)) => match token::granted(&reply.body) {
                Ok(token) if self.held.as_ref().is_none_or(|held| token.expires_at > held.expires_at) => {
                    self.failures = 0;
                    self.phase = Phase::Storing { token, not_before: None, sent: false };
                }
                Ok(token) => self.rest(
                    now,
                    &format!("the center gave a token that ends no later, at {}", token.expires_at),
                ),
                Err(bad) => self.rest(now, &format!("the center's answer is no token: {bad}")),
            },
            (Phase::Asking, Err(fault)) => self.rest(now, &asking_failed(fault)),
            (Phase::Storing { token, sent: true, .. }, Ok(_)) => {
                self.failures = 0;
                self.trouble = None;
                self.phase = Phase::Stored { token };
            }
            (Phase::Storing { token, sent: true, .. }, Err(fault)) => {
                let not_before = Some(self.later(now));
                let secret = self.secret.as_ref().map(ToString::to_string).unwrap_or_default();
                self.trouble = Some(format!("a renewed token cannot be written to {secret}: {fault}"));
                self.phase = Phase::Storing { token, not_before, sent: false };
            }
            // Nothing was asked for, or the file has changed meanwhile and the answer is of no use any more.
            (phase, _) => self.phase = phase,
        }
    }

    /// How the token is doing.
    pub fn health(&self, now: Timestamp) -> Health {
        let Some(held) = &self.held else { return Health::Well };
        let name = held.account().map_or(held.subject.as_str(), |(_, name)| name);
        if held.has_expired(now) {
            return Health::Expired(format!(
                "the token of {name} ended at {}, so the mailbox cannot be reached; `mailboat syncer-gen --rotate` \
                 makes a new one, and applying its manifest mends it without a restart",
                held.expires_at
            ));
        }
        match &self.trouble {
            Some(trouble) => Health::Overdue(format!(
                "the token of {name} ends at {} and is not renewed: {trouble}",
                held.expires_at
            )),
            None => Health::Well,
        }
    }

    fn rest(&mut self, now: Timestamp, why: &str) {
        self.trouble = Some(why.to_owned());
        self.phase = Phase::Resting { not_before: Some(self.later(now)) };
    }

    fn later(&mut self, now: Timestamp) -> Timestamp {
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        now.checked_add(SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX))
            .unwrap_or(Timestamp::MAX)
    }
}

/// Where the account of a token stands.
fn account_of(mailbox: &ClusterId, token: &Token) -> Option<Key> {
    let (namespace, name) = token.account()?;
    Some(Key {
        cluster: mailbox.clone(),
        kind: KindId::new("", "serviceaccounts"),
        namespace: Name::new(namespace),
        name: Name::new(name),
    })
}

/// A merge patch, so that the kubeconfig beside the token stays as it is.
fn store(secret: Key, token: &Token) -> Call {
    let patch = json!({ "data": { TOKEN_KEY: STANDARD.encode(token.text()) } });
    let body: Arc<[u8]> = patch.to_string().into_bytes().into();
    let verb = Verb::Merge { body, manager: Name::new(FIELD_MANAGER) };
    Call { key: secret, verb, part: Part::Whole, dry_run: false }
}

fn asking_failed(fault: &Fault) -> String {
    match fault.kind {
        FaultKind::Unauthorized => {
            "the center no longer accepts the present token; `mailboat syncer-gen --rotate` makes a new one"
                .to_owned()
        }
        FaultKind::Forbidden | FaultKind::NotFound => format!(
            "the account may not renew its token ({fault}); running `mailboat syncer-gen` again restores its rights"
        ),
        _ => format!("the center gives no new one: {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::token::made_up;

    const LIFE: i64 = 10_000;

    fn secret() -> Key {
        Key {
            cluster: ClusterId::new("edge"),
            kind: KindId::new("", "secrets"),
            namespace: Name::new("default"),
            name: Name::new("syncer"),
        }
    }

    fn renewal() -> Renewal {
        let mut renewal = Renewal::new(ClusterId::new("mailbox"), Some(secret()));
        renewal.holds(&made_up(0, LIFE));
        renewal
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn reply(body: &Value) -> Reply {
        Reply { body: body.to_string().into_bytes().into(), created: true, warnings: Vec::new() }
    }

    fn grant(issued_at: i64) -> Reply {
        reply(&json!({ "status": { "token": made_up(issued_at, issued_at + LIFE) } }))
    }

    fn is_wait(next: &Next, until: Option<i64>) -> bool {
        matches!(next, Next::Wait(time) if *time == until.map(at))
    }

    fn fault(kind: FaultKind) -> Fault {
        Fault::new(kind, "no luck")
    }

    #[test]
    fn a_token_is_renewed_from_half_of_its_life_and_written_back() {
        let mut renewal = renewal();
        assert!(is_wait(&renewal.next(at(0)), Some(5_000)));
        assert!(is_wait(&renewal.next(at(4_999)), Some(5_000)));
        let Next::Mailbox(call) = renewal.next(at(5_000)) else { panic!("{renewal:?}") };
        assert_eq!(
            (call.part, call.key.to_string().as_str()),
            (Part::Token, "mailbox|serviceaccounts default/syncer")
        );
        assert!(is_wait(&renewal.next(at(5_001)), None), "one request at a time");
        renewal.answered(at(5_002), Ok(&grant(5_002)));
        let Next::Edge(call) = renewal.next(at(5_002)) else { panic!("{renewal:?}") };
        let Verb::Merge { body, .. } = &call.verb else { panic!("{call:?}") };
        let patch: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(patch["data"][TOKEN_KEY], STANDARD.encode(made_up(5_002, 5_002 + LIFE)));
        assert_eq!(patch["data"].as_object().unwrap().len(), 1, "only the token is replaced");
        renewal.answered(at(5_003), Ok(&reply(&json!({}))));
        assert!(is_wait(&renewal.next(at(5_003)), Some(10_002)));
        renewal.holds(&made_up(5_002, 5_002 + LIFE));
        assert!(is_wait(&renewal.next(at(5_060)), Some(10_002)));
        assert_eq!(renewal.health(at(5_060)), Health::Well);
    }

    #[test]
    fn what_fails_is_tried_again_later_and_spoken_of() {
        let mut renewal = renewal();
        let mut now = 5_000;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert!(matches!(renewal.next(at(now)), Next::Mailbox(_)), "{renewal:?}");
            renewal.answered(at(now), Err(&fault(FaultKind::Away)));
            let Next::Wait(Some(due)) = renewal.next(at(now)) else { panic!("{renewal:?}") };
            pauses.push(due.as_second() - now);
            now = due.as_second();
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 900, 900]);
        let Health::Overdue(told) = renewal.health(at(now)) else { panic!("{renewal:?}") };
        assert!(told.contains("no luck"), "{told}");
        assert!(matches!(renewal.next(at(now)), Next::Mailbox(_)));
        renewal.answered(at(now), Ok(&grant(now)));
        assert!(matches!(renewal.next(at(now)), Next::Edge(_)));
        renewal.answered(at(now), Ok(&reply(&json!({}))));
        assert_eq!(renewal.health(at(now)), Health::Well);
    }

    #[test]
    fn a_token_that_cannot_be_stored_is_kept_and_not_asked_for_twice() {
        let mut renewal = renewal();
        let _ = renewal.next(at(5_000));
        renewal.answered(at(5_000), Ok(&grant(5_000)));
        for now in [5_000, 5_010] {
            assert!(matches!(renewal.next(at(now)), Next::Edge(_)), "{now}");
            renewal.answered(at(now), Err(&fault(FaultKind::Forbidden)));
        }
        assert!(is_wait(&renewal.next(at(5_010)), Some(5_030)));
        let Health::Overdue(told) = renewal.health(at(5_010)) else { panic!("{renewal:?}") };
        assert!(told.contains("cannot be written") && told.contains("edge|secrets default/syncer"), "{told}");
        assert!(matches!(renewal.next(at(5_030)), Next::Edge(_)));
        renewal.answered(at(5_030), Ok(&reply(&json!({}))));
        assert_eq!(renewal.health(at(5_030)), Health::Well);
    }

    #[test]
    fn a_token_that_has_ended_is_said_so_and_a_replaced_one_is_taken_up() {
        let mut renewal = renewal();
        let _ = renewal.next(at(LIFE));
        renewal.answered(at(LIFE), Err(&fault(FaultKind::Unauthorized)));
        let Health::Expired(told) = renewal.health(at(LIFE)) else { panic!("{renewal:?}") };
        assert!(told.contains("--rotate") && told.contains("1970-01-01T02:46:40Z"), "{told}");
        renewal.holds(&made_up(LIFE, 3 * LIFE));
        assert_eq!(renewal.health(at(LIFE)), Health::Well);
        assert!(is_wait(&renewal.next(at(LIFE)), Some(2 * LIFE)));
    }

    #[test]
    fn an_answer_for_a_token_that_was_replaced_meanwhile_is_of_no_use() {
        let mut renewal = renewal();
        assert!(matches!(renewal.next(at(5_000)), Next::Mailbox(_)));
        renewal.holds(&made_up(5_000, 25_000));
        renewal.answered(at(5_001), Ok(&grant(5_001)));
        assert!(is_wait(&renewal.next(at(5_001)), Some(15_000)), "{renewal:?}");
    }

    #[test]
    fn an_older_token_put_back_by_hand_is_renewed_again() {
        let mut renewal = renewal();
        renewal.holds(&made_up(6_000, 6_000 + LIFE));
        assert!(is_wait(&renewal.next(at(6_000)), Some(11_000)));
        renewal.holds(&made_up(0, LIFE));
        assert!(matches!(renewal.next(at(6_001)), Next::Mailbox(_)));
    }

    #[test]
    fn a_center_that_gives_nothing_better_is_not_asked_without_end() {
        let mut renewal = renewal();
        for (answer, words) in [
            (reply(&json!({ "status": { "token": made_up(0, LIFE) } })), "ends no later"),
            (reply(&json!({ "status": { "token": "opaque" } })), "is no token"),
        ] {
            let mut now = 5_000;
            while let Next::Wait(Some(due)) = renewal.next(at(now)) {
                now = due.as_second();
            }
            renewal.answered(at(now), Ok(&answer));
            let Health::Overdue(told) = renewal.health(at(now)) else { panic!("{renewal:?}") };
            assert!(told.contains(words), "{told}");
            assert!(matches!(renewal.next(at(now)), Next::Wait(Some(_))));
        }
    }

    #[test]
    fn without_a_secret_or_a_token_that_ends_nothing_is_renewed() {
        let mut nowhere_to_keep = Renewal::new(ClusterId::new("mailbox"), None);
        nowhere_to_keep.holds(&made_up(0, LIFE));
        assert!(is_wait(&nowhere_to_keep.next(at(9_000)), None));
        assert!(matches!(nowhere_to_keep.health(at(LIFE)), Health::Expired(_)));
        let mut opaque = renewal();
        opaque.holds("a-static-token");
        assert!(is_wait(&opaque.next(at(9_000)), None));
        assert_eq!(opaque.health(at(LIFE)), Health::Well);
    }
}
