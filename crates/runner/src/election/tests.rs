//! Candidates with clocks that agree on nothing, over a server that keeps one Lease and a link that loses half.

use std::collections::BTreeMap;

use super::*;

const SEEDS: u64 = 100;
const END: u64 = 240_000;

/// A server with one Lease.
#[derive(Default)]
struct Server {
    lease: Option<Value>,
    version: u64,
}

impl Server {
    fn carry_out(&mut self, step: &Step) -> Result<Vec<u8>, Fault> {
        let fault = |kind| Err(Fault::new(kind, "no"));
        let present = self.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        match (step, present) {
            (Step::WaitUntil(_), _) => return fault(FaultKind::Bug),
            (Step::Get | Step::Replace(_), None) => return fault(FaultKind::NotFound),
            (Step::Create(_), Some(_)) => return fault(FaultKind::Exists),
            (Step::Replace(wanted), Some(version)) if wanted["metadata"]["resourceVersion"] != version => {
                return fault(FaultKind::Conflict);
            }
            (Step::Create(wanted) | Step::Replace(wanted), _) => {
                self.version += 1;
                let mut lease = wanted.clone();
                lease["metadata"]["resourceVersion"] = self.version.to_string().into();
                self.lease = Some(lease);
            }
            (Step::Get, Some(_)) => {}
        }
        Ok(self.lease.as_ref().map(Value::to_string).unwrap_or_default().into_bytes())
    }

    fn spec(&self, field: &str) -> Value {
        self.lease.as_ref().map_or(Value::Null, |lease| lease["spec"][field].clone())
    }
}

/// A candidate and its clocks: one that begins anywhere and runs a little too fast or too slow, and one that tells an
/// arbitrary year.
struct Player {
    candidate: Candidate,
    begun: u64,
    per_mille: u64,
    wall_seconds: u64,
    cut_off: bool,
    events: BTreeMap<u64, Event>,
}

enum Event {
    /// A request reaches the server, or is lost on the way.
    Arrives(Step),
    /// Its answer reaches the candidate.
    Answered(Step, Result<Vec<u8>, Fault>),
}

impl Player {
    fn now(&self, true_time: u64) -> Now {
        let mono = Moment(self.begun + true_time * self.per_mille / 1_000);
        Now { mono, wall_seconds: self.wall_seconds + true_time / 1_000 }
    }
}

fn away() -> Fault {
    Fault::new(FaultKind::Away, "no link")
}

#[test]
fn two_never_lead_at_once_whatever_their_clocks_show_and_somebody_does_once_links_hold() {
    let mut takeovers = 0;
    for seed in 0..SEEDS {
        takeovers += play(seed);
    }
    assert!(takeovers > SEEDS, "only {takeovers} takeovers: this tried too little");
}

/// Plays one election of three, and counts how often the lease went from one to another.
fn play(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut server = Server::default();
    let mut players: Vec<Player> = (0..3)
        .map(|number| Player {
            candidate: Candidate::new(format!("candidate-{number}"), Times::default(), random.draw()),
            begun: random.between(0, 1 << 40),
            per_mille: random.between(950, 1_050),
            wall_seconds: random.between(0, 1 << 34),
            cut_off: false,
            events: BTreeMap::new(),
        })
        .collect();
    // Tenths of a second; for the last minute nobody is cut off any more.
    let mut led = 0;
    for time in (0..END).step_by(50) {
        for (number, player) in players.iter_mut().enumerate() {
            let calm = time > END - 60_000;
            if calm {
                player.cut_off = false;
            } else if random.between(0, 400) == 0 {
                player.cut_off = !player.cut_off;
            }
            let due: Vec<u64> = player.events.range(..=time).map(|(at, _)| *at).collect();
            for at in due {
                match player.events.remove(&at) {
                    Some(Event::Arrives(step)) => {
                        let lost = player.cut_off || (!calm && random.between(0, 9) == 0);
                        let answer = if lost { Err(away()) } else { server.carry_out(&step) };
                        // The answer may be lost as well, after the server has done what was asked.
                        let lost = !calm && random.between(0, 9) == 0;
                        let answer = if lost { Err(away()) } else { answer };
                        let back = time + random.between(1, if calm { 100 } else { 4_000 });
                        player.events.insert(back, Event::Answered(step, answer));
                    }
                    Some(Event::Answered(step, answer)) => {
                        let now = player.now(time).mono;
                        player.candidate.answered(now, &step, answer.as_deref());
                    }
                    None => {}
                }
            }
            if player.events.is_empty() {
                let step = player.candidate.next(player.now(time));
                if !matches!(step, Step::WaitUntil(_)) {
                    let there = time + random.between(1, if calm { 100 } else { 4_000 });
                    player.events.insert(there, Event::Arrives(step));
                }
            }
            // A leader goes, in good order.
            if !calm
                && random.between(0, 3_000) == 0
                && let Some(lease) = player.candidate.release(player.now(time))
            {
                let _ = server.carry_out(&Step::Replace(lease));
                assert!(!player.candidate.leads(player.now(time).mono), "seed {seed}: {number} leads on");
            }
        }
        let leaders: Vec<usize> = players
            .iter()
            .enumerate()
            .filter(|(_, player)| player.candidate.leads(player.now(time).mono))
            .map(|(number, _)| number)
            .collect();
        assert!(leaders.len() <= 1, "seed {seed}: {leaders:?} lead at {time} ms");
        led = if leaders.is_empty() { led } else { time };
    }
    assert!(END - led < 20_000, "seed {seed}: nobody has led since {led} ms");
    server.spec("leaseTransitions").as_u64().unwrap_or_default()
}

fn now(seconds: u64) -> Now {
    Now { mono: Moment(seconds * 1_000), wall_seconds: 1_750_000_000 + seconds }
}

/// Lets a candidate do what it wants, at once, until it waits.
fn settle(candidate: &mut Candidate, server: &mut Server, at: Now) {
    loop {
        let step = candidate.next(at);
        if matches!(step, Step::WaitUntil(_)) {
            return;
        }
        let answer = server.carry_out(&step);
        candidate.answered(at.mono, &step, answer.as_deref());
    }
}

#[test]
fn the_record_is_the_one_that_kubernetes_keeps() {
    let mut server = Server::default();
    let mut first = Candidate::new("boat_1", Times::default(), 1);
    settle(&mut first, &mut server, now(0));
    let expected = json!({
        "holderIdentity": "boat_1", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2025-06-15T15:06:40.000000Z", "renewTime": "2025-06-15T15:06:40.000000Z",
    });
    assert_eq!(server.lease.as_ref().map(|lease| &lease["spec"]), Some(&expected));
    settle(&mut first, &mut server, now(5));
    assert_eq!(server.spec("acquireTime"), "2025-06-15T15:06:40.000000Z", "renewed, not acquired");
    assert_eq!(server.spec("renewTime"), "2025-06-15T15:06:45.000000Z");

    // What others put on the Lease stays.
    let lease = server.lease.as_mut().unwrap();
    lease["metadata"]["labels"] = json!({ "team": "harbor" });
    lease["spec"]["strategy"] = json!("OldestEmulationVersion");
    let mut second = Candidate::new("boat_2", Times::default(), 2);
    settle(&mut second, &mut server, now(6));
    assert!(!second.leads(now(6).mono) && second.holder() == Some("boat_1"));
    for seconds in 7..30 {
        settle(&mut second, &mut server, now(seconds));
    }
    assert!(second.leads(now(29).mono), "not renewed for 15 s, it is free");
    assert_eq!(server.spec("leaseTransitions"), 1);
    assert_eq!(server.spec("strategy"), "OldestEmulationVersion");
    assert_eq!(
        server.lease.as_ref().map(|lease| lease["metadata"]["labels"]["team"].clone()),
        Some(json!("harbor"))
    );
}

#[test]
fn a_leader_that_cannot_renew_stops_before_another_may_begin() {
    let mut server = Server::default();
    let mut leader = Candidate::new("boat_1", Times::default(), 1);
    settle(&mut leader, &mut server, now(0));
    assert!(leader.leads(now(9).mono));
    for seconds in 3..30 {
        let step = leader.next(now(seconds));
        leader.answered(now(seconds).mono, &step, Err(&away()));
    }
    assert!(
        !leader.leads(now(10).mono),
        "ten seconds after its last renewal was asked for, it leads no more"
    );
}

#[test]
fn what_was_released_is_taken_at_once() {
    let mut server = Server::default();
    let mut leader = Candidate::new("boat_1", Times::default(), 1);
    settle(&mut leader, &mut server, now(0));
    let mut standby = Candidate::new("boat_2", Times::default(), 2);
    settle(&mut standby, &mut server, now(1));
    let released = leader.release(now(2)).map(|lease| server.carry_out(&Step::Replace(lease)).is_ok());
    assert_eq!(released, Some(true));
    assert!(!leader.leads(now(2).mono));
    settle(&mut standby, &mut server, now(4));
    assert!(standby.leads(now(4).mono), "the standby looks every two seconds");
    assert_eq!(standby.release(now(5)).map(|lease| lease["spec"]["holderIdentity"].clone()), Some(json!("")));
}

#[test]
fn an_answer_that_comes_too_late_makes_nobody_lead() {
    let mut server = Server::default();
    let mut candidate = Candidate::new("boat_1", Times::default(), 1);
    let step = candidate.next(now(0));
    let answer = server.carry_out(&step);
    candidate.answered(now(0).mono, &step, answer.as_deref());
    let step = candidate.next(now(0));
    let answer = server.carry_out(&step);
    assert!(matches!(step, Step::Create(_)));
    candidate.answered(now(12).mono, &step, answer.as_deref());
    assert!(!candidate.leads(now(12).mono), "it was asked for twelve seconds ago");
}
