//! How a process is, for whoever asks: alive, ready, and what somebody should look at.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::lease::Word;

/// The loop turns at least this often, so that standing still can be told from having nothing to do.
pub(crate) const TURNS_EVERY: Duration = Duration::from_secs(10);
/// A loop that did not turn for so long stands still.
const STANDS_STILL: Duration = Duration::from_mins(1);
/// So many findings are shown; more are counted.
const FINDINGS_SHOWN: usize = 8;

/// What a process says of itself.
pub struct Health(Mutex<State>);

struct State {
    stage: Stage,
    turned: Instant,
    unready: Vec<Finding>,
    degraded: Vec<Finding>,
    /// What others than the process's own loop found, by what it is about.
    noted: BTreeMap<&'static str, String>,
    lease: Option<(bool, Word)>,
}

/// Where a process is in its life.
#[derive(Clone, Debug)]
enum Stage {
    /// Before its loop runs; why, if somebody said so.
    Starting(String),
    Running,
    Stopping,
}

/// One thing that was found: what it is about, and a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    about: String,
    sentence: String,
}

impl Finding {
    /// A finding about something.
    pub fn new(about: impl Into<String>, sentence: impl fmt::Display) -> Self {
        Self { about: about.into(), sentence: sentence.to_string() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.about, self.sentence)
    }
}

/// An answer to a question about health.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Whether it is well.
    pub ok: bool,
    /// What to say.
    pub text: String,
}

impl Default for Health {
    fn default() -> Self {
        Self(Mutex::new(State {
            stage: Stage::Starting("it has just begun".to_owned()),
            turned: Instant::now(),
            unready: Vec::new(),
            degraded: Vec::new(),
            noted: BTreeMap::new(),
            lease: None,
        }))
    }
}

impl Health {
    /// The process has not begun its work, because it waits for this.
    pub fn waits_for(&self, what: impl Into<String>) {
        self.state().stage = Stage::Starting(what.into());
    }

    /// Whether the process is alive: its loop turns, or has not begun.
    pub fn live(&self) -> Answer {
        let state = self.state();
        let still = state.turned.elapsed();
        if matches!(state.stage, Stage::Running) && still > STANDS_STILL {
            let text = format!("the process has stood still for {} s\n", still.as_secs());
            return Answer { ok: false, text };
        }
        Answer { ok: true, text: "ok\n".to_owned() }
    }

    /// Whether the process does its work: it runs, every server answers, and every list is complete. What is degraded
    /// does not make it unready; it is said when `verbose`.
    pub fn ready(&self, verbose: bool) -> Answer {
        let state = self.state();
        let stage = match &state.stage {
            Stage::Running => None,
            Stage::Starting(why) => Some(Finding::new("the process", format!("is starting: {why}"))),
            Stage::Stopping => Some(Finding::new("the process", "is stopping")),
        };
        let ok = stage.is_none() && state.unready.is_empty();
        if ok && !verbose {
            return Answer { ok, text: "ok\n".to_owned() };
        }
        let mut text = String::new();
        check(&mut text, "running", stage.as_slice());
        check(&mut text, "servers and lists", &state.unready);
        let degraded = state.degraded();
        if !degraded.is_empty() {
            text += "[!]degraded, and it goes on\n";
            listed(&mut text, &degraded);
        }
        if let Some((leads, word)) = &state.lease {
            let _ = match (leads, &word.holder) {
                (true, _) => writeln!(text, "[+]lease held"),
                (false, Some(holder)) => writeln!(text, "[+]standby: {holder} holds the lease"),
                (false, None) => writeln!(text, "[+]standby: it is not known yet who holds the lease"),
            };
        }
        text += if ok { "readyz check passed\n" } else { "readyz check failed\n" };
        Answer { ok, text }
    }

    /// Whether it is ready, and whether it is degraded.
    pub(crate) fn summary(&self) -> (bool, bool) {
        let ready = self.ready(false).ok;
        (ready, !self.state().degraded().is_empty())
    }

    pub(crate) fn turned(&self) {
        let mut state = self.state();
        state.turned = Instant::now();
        if matches!(state.stage, Stage::Starting(_)) {
            state.stage = Stage::Running;
        }
    }

    pub(crate) fn stopping(&self) {
        self.state().stage = Stage::Stopping;
    }

    pub(crate) fn found(&self, unready: Vec<Finding>, degraded: Vec<Finding>) {
        let mut state = self.state();
        (state.unready, state.degraded) = (unready, degraded);
    }

    /// What somebody beside the loop found about something that the process needs, such as its credential; `None`: all
    /// is well with it. It makes the process degraded.
    pub fn note(&self, about: &'static str, sentence: Option<String>) {
        let mut state = self.state();
        match sentence {
            Some(sentence) => drop(state.noted.insert(about, sentence)),
            None => drop(state.noted.remove(about)),
        }
    }

    /// Whether it holds the lease of its role, and what is known of that; not said by a process that runs without one.
    pub(crate) fn leads(&self, leads: bool, word: Word) {
        self.state().lease = Some((leads, word));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// All that is degraded; the lease and what was noted come first, since there is little of it.
    fn degraded(&self) -> Vec<Finding> {
        let trouble = self.lease.as_ref().and_then(|(_, word)| word.trouble.as_ref());
        let trouble = trouble.map(|trouble| Finding::new("the lease", trouble));
        let noted = self.noted.iter().map(|(about, sentence)| Finding::new(*about, sentence));
        trouble.into_iter().chain(noted).chain(self.degraded.iter().cloned()).collect()
    }
}

/// One line as API servers write it, and what was found below it.
fn check(text: &mut String, name: &str, findings: &[Finding]) {
    let _ = match findings {
        [] => writeln!(text, "[+]{name} ok"),
        _ => writeln!(text, "[-]{name} failed"),
    };
    listed(text, findings);
}

fn listed(text: &mut String, findings: &[Finding]) {
    for finding in findings.iter().take(FINDINGS_SHOWN) {
        let _ = writeln!(text, "   {finding}");
    }
    if findings.len() > FINDINGS_SHOWN {
        let _ = writeln!(text, "   and {} more", findings.len() - FINDINGS_SHOWN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_not_alive_and_an_idle_one_is() {
        let health = Health::default();
        tokio::time::advance(Duration::from_mins(10)).await;
        assert!(health.live().ok, "a process that waits for its server is alive");
        health.turned();
        tokio::time::advance(TURNS_EVERY * 2).await;
        assert!(health.live().ok);
        tokio::time::advance(STANDS_STILL).await;
        assert_eq!(health.live().text, "the process has stood still for 80 s\n");
        health.turned();
        assert!(health.live().ok);
    }

    #[tokio::test]
    async fn ready_is_what_runs_reaches_its_servers_and_has_its_lists() {
        let health = Health::default();
        health.waits_for("the mailbox does not answer");
        let starting = health.ready(false);
        assert!(!starting.ok);
        assert!(starting.text.contains("is starting: the mailbox does not answer"), "{}", starting.text);
        health.turned();
        assert_eq!(health.ready(false), Answer { ok: true, text: "ok\n".to_owned() });
        let lost = (0..20).map(|number| Finding::new(format!("kind {number}"), "the link is lost")).collect();
        health.found(lost, vec![Finding::new("withdrawals", "12 held, until somebody confirms them")]);
        let unready = health.ready(false);
        assert!(!unready.ok);
        assert_eq!(
            unready.text,
            "[+]running ok\n[-]servers and lists failed\n   kind 0: the link is lost\n   kind 1: the link is lost\n   \
             kind 2: the link is lost\n   kind 3: the link is lost\n   kind 4: the link is lost\n   kind 5: the link \
             is lost\n   kind 6: the link is lost\n   kind 7: the link is lost\n   and 12 more\n[!]degraded, and it \
             goes on\n   withdrawals: 12 held, until somebody confirms them\nreadyz check failed\n"
        );
        health.found(Vec::new(), Vec::new());
        health.note("the token", Some("it has ended".to_owned()));
        assert_eq!(health.summary(), (true, true), "what others note degrades too");
        assert!(health.ready(true).text.contains("   the token: it has ended\n"));
        health.note("the token", None);
        assert_eq!(health.summary(), (true, false));
        let holder = Some("boat_7".to_owned());
        health.leads(false, Word { holder, trouble: None });
        let standby = health.ready(true);
        assert!(
            standby.ok && standby.text.contains("[+]standby: boat_7 holds the lease"),
            "{}",
            standby.text
        );
        health.leads(false, Word { holder: None, trouble: Some("leases may not be read".to_owned()) });
        let troubled = health.ready(true);
        assert!(
            troubled.ok && troubled.text.contains("   the lease: leases may not be read\n"),
            "{}",
            troubled.text
        );
        assert_eq!(health.summary(), (true, true));
        health.stopping();
        assert!(!health.ready(false).ok);
    }
}
