//! Random request scripts, sent to a real kube-apiserver and to the machinery, and compared answer by answer.
//!
//! `MAILBOAT_SCRIPTS` says how many scripts of each kind are run, `MAILBOAT_SEED` with which number they begin. A
//! script that is answered differently is shrunk by removing steps, and printed with its seed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod answer;
mod draw;
mod model;
mod script;
mod server;
mod subjects;

use mailboat_testkit::{ADMIN, EdgeSpec, World};

use crate::answer::Answer;
use crate::model::Model;
use crate::script::Script;
use crate::server::Server;
use crate::subjects::Subject;

/// Scripts of each kind; there are four kinds.
const SCRIPTS: u64 = 50;

#[tokio::test]
async fn random_scripts_are_answered_as_by_a_real_server() {
    let world = World::builder().edge_with(EdgeSpec::bare("guilder").with_own_etcd()).start().await.unwrap();
    let mut server = Server::new(world.edge("guilder").client(ADMIN).await.unwrap());
    let number = |variable: &str, default| {
        std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (first, count) = (number("MAILBOAT_SEED", 1), number("MAILBOAT_SCRIPTS", SCRIPTS));
    let mut failures = Vec::new();
    let mut steps = 0;
    for subject in subjects::all(&server).await {
        for seed in first..first + count {
            let script = Script::drawn(&subject, seed);
            steps += script.steps.len();
            if let Some(difference) = difference(&mut server, &subject, &script).await {
                let (script, difference) = shrunk(&mut server, &subject, script, difference).await;
                failures.push(format!("{} seed {seed}:\n{script}{difference}", subject.kind.id));
            }
        }
    }
    println!("{} scripts of each kind, {steps} steps, {} answered differently", count, failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The first step that is answered differently, and how.
async fn difference(server: &mut Server, subject: &Subject, script: &Script) -> Option<String> {
    let name = server.fresh_name();
    let mut model = Model::new(subject, &name);
    let mut running = server.running(subject, &name);
    for (index, step) in script.steps.iter().enumerate() {
        let expected = running.step(step).await;
        let found = model.step(step);
        if let Some(difference) = Answer::difference(&expected, &found) {
            running.clean_up().await;
            return Some(format!("at step {index}:\n{difference}"));
        }
    }
    running.clean_up().await;
    None
}

/// The script without every step that it fails without as well.
async fn shrunk(
    server: &mut Server,
    subject: &Subject,
    mut script: Script,
    mut seen: String,
) -> (Script, String) {
    let mut at = script.steps.len();
    while at > 0 {
        at -= 1;
        let mut shorter = script.clone();
        shorter.steps.remove(at);
        if let Some(difference) = difference(server, subject, &shorter).await {
            (script, seen) = (shorter, difference);
            at = at.min(script.steps.len());
        }
    }
    (script, seen)
}
