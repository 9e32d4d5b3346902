//! Jobs: pods that come to an end.

use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::Key;
use serde_json::{Value, json};

use super::condition::{self, Said};
use super::hand::Hand;
use super::{number, template};

/// Looks at one job; answers when to look again.
pub(super) fn look(hand: &mut Hand<'_>, key: &Key) -> Option<u64> {
    let job = hand.get(key)?;
    if job.is_deleting() || is_over(&job) {
        return None;
    }
    let spec = &job.body()["spec"];
    let pods = hand.owned("", "pods", &job);
    let tally = Tally::of(&pods);
    let parallelism = number(&spec["parallelism"], 1);
    let completions = spec["completions"].as_i64();
    // Without a number of completions one that ends well is enough, and the others come to their end.
    let done =
        completions.map_or(tally.succeeded > 0 && tally.active == 0, |wanted| tally.succeeded >= wanted);
    // Nothing more is begun once one has ended well.
    let enough = done || (completions.is_none() && tally.succeeded > 0);
    let given_up = tally.failed > number(&spec["backoffLimit"], 6);
    let suspended = spec["suspend"] == true;
    if suspended || given_up {
        for pod in pods.iter().filter(|pod| template::is_active(pod)) {
            hand.delete(&pod.key, None);
        }
    } else if !enough {
        let left = completions.map_or(parallelism, |wanted| (wanted - tally.succeeded).min(parallelism));
        for _ in tally.active..left {
            let uid = job.uid.to_string();
            let labels = [
                ("batch.kubernetes.io/controller-uid", uid.as_str()),
                ("batch.kubernetes.io/job-name", job.key.name.as_str()),
                ("controller-uid", uid.as_str()),
                ("job-name", job.key.name.as_str()),
            ];
            template::make_pod(hand, &job, None, &labels);
        }
    }
    let pods = hand.owned("", "pods", &job);
    let status = report(hand, &job, &Tally::of(&pods), done, given_up, suspended);
    hand.set_status(&job, status);
    None
}

/// What became of a job's pods.
struct Tally {
    active: i64,
    ready: i64,
    succeeded: i64,
    failed: i64,
}

impl Tally {
    fn of(pods: &[Arc<Stored>]) -> Self {
        let count = |of: &dyn Fn(&Stored) -> bool| {
            i64::try_from(pods.iter().filter(|pod| of(pod)).count()).unwrap_or(i64::MAX)
        };
        let in_phase = |phase: &'static str| move |pod: &Stored| pod.body()["status"]["phase"] == phase;
        Self {
            active: count(&template::is_active),
            ready: count(&|pod| template::is_active(pod) && template::is_ready(pod)),
            succeeded: count(&in_phase("Succeeded")),
            failed: count(&in_phase("Failed")),
        }
    }
}

fn is_over(job: &Stored) -> bool {
    condition::holds(job.body(), "Complete") || condition::holds(job.body(), "Failed")
}

fn report(
    hand: &Hand<'_>,
    job: &Stored,
    tally: &Tally,
    done: bool,
    given_up: bool,
    suspended: bool,
) -> Value {
    let now = hand.now();
    let former = &job.body()["status"];
    let mut status = json!({ "ready": tally.ready, "terminating": 0, "uncountedTerminatedPods": {} });
    if !suspended {
        let started = former["startTime"].as_str().unwrap_or(&now);
        status["startTime"] = started.into();
    }
    for (member, count) in
        [("active", tally.active), ("succeeded", tally.succeeded), ("failed", tally.failed)]
    {
        if count > 0 {
            status[member] = count.into();
        }
    }
    let mut conditions = condition::of(job.body());
    let mut say = |kind, status, reason, message| {
        condition::set(&mut conditions, &Said { kind, status, reason, message }, &now);
    };
    if done {
        let message = "Reached expected number of succeeded pods";
        say("SuccessCriteriaMet", true, "CompletionsReached", message);
        say("Complete", true, "CompletionsReached", message);
        status["completionTime"] = now.as_str().into();
    } else if given_up {
        let message = "Job has reached the specified backoff limit";
        say("FailureTarget", true, "BackoffLimitExceeded", message);
        say("Failed", true, "BackoffLimitExceeded", message);
    } else if suspended {
        say("Suspended", true, "JobSuspended", "Job suspended");
    } else if condition::holds(job.body(), "Suspended") {
        say("Suspended", false, "JobResumed", "Job resumed");
    }
    if !conditions.is_empty() {
        for condition in &mut conditions {
            if condition.get("lastProbeTime").is_none() {
                condition["lastProbeTime"] = now.as_str().into();
            }
        }
        status["conditions"] = conditions.into();
    }
    status
}
