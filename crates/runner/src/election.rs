//! Who leads: a candidate for a Lease of `coordination.k8s.io/v1`, without I/O and without a clock.
//!
//! The record is the one that Kubernetes' own components keep, so a Lease may be shared with them and read with kubectl. Of
//! the times that others write into it none is ever compared with ours: a candidate counts by its own clock since
//! *it saw* the record change. A leader counts from the moment that it *asked* for its renewal, and for less time than
//! others wait; so two clocks may show anything, as long as they run about equally fast, and two never lead at once.

#[cfg(test)]
mod tests;

use std::time::Duration;

use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{Moment, Now, Random};
use serde_json::{Value, json};

/// The times of an election. Those of Kubernetes' own components are the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// So long after a candidate last saw the record change, the lease is free.
    pub lease: Duration,
    /// So long after it asked for its last renewal, a leader leads; well below the lease, for clocks that run unequally
    /// and for writes that take a while to leave.
    pub renew_within: Duration,
    /// How often a leader renews, and how often others look.
    pub retry: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            renew_within: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// What a candidate wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Read the Lease.
    Get,
    /// Make it; a fault if it exists.
    Create(Value),
    /// Replace it, at the version that stands in it.
    Replace(Value),
    /// Nothing before this moment.
    WaitUntil(Moment),
}

/// One who wants to lead.
pub struct Candidate {
    identity: String,
    times: Times,
    random: Random,
    /// The Lease as last seen; none if there was none.
    seen: Option<Seen>,
    /// It has to be read before anything else: it may be another by now.
    must_read: bool,
    /// When to ask again.
    ask_at: Moment,
    /// When the request under way was sent.
    sent_at: Moment,
    /// We lead until then.
    leads_until: Option<Moment>,
}

/// A Lease, and since when it has said the same, by our clock.
struct Seen {
    lease: Value,
    since: Moment,
}

impl Candidate {
    /// A candidate by this name, which no other process may have. The seed spreads the looks of many.
    pub fn new(identity: impl Into<String>, times: Times, seed: u64) -> Self {
        Self {
            identity: identity.into(),
            times,
            random: Random::new(seed),
            seen: None,
            must_read: true,
            ask_at: Moment(0),
            sent_at: Moment(0),
            leads_until: None,
        }
    }

    /// Whether it leads at this moment: whoever writes asks this right before.
    pub fn leads(&self, now: Moment) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }

    /// Until when it leads, if nothing more is heard.
    pub fn leads_until(&self) -> Option<Moment> {
        self.leads_until
    }

    /// Who holds the lease, as last seen.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref().map(Seen::holder).filter(|holder| !holder.is_empty())
    }

    /// What to do next. What is asked for must be answered before this is asked again.
    pub fn next(&mut self, now: Now) -> Step {
        if now.mono < self.ask_at {
            return Step::WaitUntil(self.ask_at);
        }
        self.sent_at = now.mono;
        match &self.seen {
            _ if self.must_read => Step::Get,
            None => Step::Create(self.record(json!({}), now, Taken::Anew { transitions: 0 })),
            Some(seen) if seen.holder() == self.identity => {
                Step::Replace(self.record(seen.lease.clone(), now, Taken::Before))
            }
            Some(seen) if now.mono >= seen.free_at(self.times) => {
                let transitions = seen.transitions().saturating_add(1);
                Step::Replace(self.record(seen.lease.clone(), now, Taken::Anew { transitions }))
            }
            Some(_) => Step::Get,
        }
    }

    /// What came of the last step.
    pub fn answered(&mut self, now: Moment, step: &Step, answer: Result<&[u8], &Fault>) {
        self.ask_at = now + self.pause();
        match (step, answer) {
            (Step::WaitUntil(_), _) => self.ask_at = now,
            (Step::Get, Ok(body)) => {
                self.see(now, body);
                if let Some(seen) = &self.seen {
                    // What is ours is renewed at once, and what is another's is looked at when it may be free.
                    let due = if seen.holder() == self.identity { now } else { seen.free_at(self.times) };
                    self.ask_at = self.ask_at.min(due.max(now));
                }
            }
            (Step::Create(_) | Step::Replace(_), Ok(body)) => {
                self.see(now, body);
                if self.holder() == Some(self.identity.as_str()) {
                    self.leads_until = Some(self.sent_at + self.times.renew_within);
                }
            }
            (Step::Get, Err(fault)) if fault.kind == FaultKind::NotFound => {
                (self.seen, self.must_read, self.leads_until) = (None, false, None);
                self.ask_at = now;
            }
            // Somebody was faster, or the answer was lost and nobody knows what stands there now.
            (Step::Create(_) | Step::Replace(_), Err(fault)) => {
                self.must_read = true;
                if matches!(fault.kind, FaultKind::Conflict | FaultKind::Exists | FaultKind::NotFound) {
                    self.ask_at = now;
                }
            }
            (Step::Get, Err(_)) => {}
        }
    }

    /// Gives the lease up, so that another need not wait: what to write, if it is ours. It leads no more from here on.
    pub fn release(&mut self, now: Now) -> Option<Value> {
        self.leads_until = None;
        self.must_read = true;
        let seen = self.seen.take()?;
        (seen.holder() == self.identity).then(|| self.record(seen.lease, now, Taken::GivenUp))
    }

    /// Notes what the Lease says. A record that says the same as before is as old as it was.
    fn see(&mut self, now: Moment, body: &[u8]) {
        let Ok(lease) = serde_json::from_slice::<Value>(body) else {
            self.must_read = true;
            return;
        };
        let since = match &self.seen {
            Some(before) if before.lease["spec"] == lease["spec"] => before.since,
            _ => now,
        };
        let seen = Seen { lease, since };
        if seen.holder() != self.identity {
            // Seen to be another's, whatever our own count says.
            self.leads_until = None;
        }
        (self.seen, self.must_read) = (Some(seen), false);
    }

    /// The record that we want to stand there.
    fn record(&self, mut lease: Value, now: Now, taken: Taken) -> Value {
        let time = micro_time(now.wall_seconds);
        let spec = &mut lease["spec"];
        spec["renewTime"] = time.clone().into();
        let lease_seconds = u64::try_from(self.times.lease.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX);
        match taken {
            Taken::Before => spec["leaseDurationSeconds"] = lease_seconds.into(),
            Taken::Anew { transitions } => {
                spec["holderIdentity"] = self.identity.clone().into();
                spec["leaseDurationSeconds"] = lease_seconds.into();
                spec["acquireTime"] = time.into();
                spec["leaseTransitions"] = transitions.into();
            }
            Taken::GivenUp => {
                spec["holderIdentity"] = "".into();
                spec["leaseDurationSeconds"] = 1.into();
                spec["acquireTime"] = time.into();
            }
        }
        lease
    }

    /// The time between two looks, a fifth of it random.
    fn pause(&mut self) -> Duration {
        let retry = u64::try_from(self.times.retry.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(retry - self.random.between(0, retry / 5))
    }
}

/// How a candidate comes to write the record.
#[derive(Clone, Copy)]
enum Taken {
    /// It holds it already.
    Before,
    /// It takes it.
    Anew { transitions: u64 },
    /// It lets it go.
    GivenUp,
}

impl Seen {
    fn holder(&self) -> &str {
        self.lease["spec"]["holderIdentity"].as_str().unwrap_or_default()
    }

    fn transitions(&self) -> u64 {
        self.lease["spec"]["leaseTransitions"].as_u64().unwrap_or_default()
    }

    /// When another may take it: at once if nobody holds it, else when it was not renewed for as long as its holder
    /// said.
    fn free_at(&self, times: Times) -> Moment {
        if self.holder().is_empty() {
            return Moment(0);
        }
        let duration = self.lease["spec"]["leaseDurationSeconds"].as_u64();
        self.since + duration.map_or(times.lease, Duration::from_secs)
    }
}

/// A time as `MicroTime` of Kubernetes wants it.
fn micro_time(wall_seconds: u64) -> String {
    let seconds = i64::try_from(wall_seconds).unwrap_or_default();
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
}
