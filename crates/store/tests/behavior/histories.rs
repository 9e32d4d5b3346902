//! Random histories of servers, random faults on the way: what the store says is never more than what is so.

use std::collections::BTreeMap;
use std::time::Duration;

use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key};
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{Absence, Doubt, Gone, Input, Seen};
use proptest::prelude::*;

use crate::rig::{Mode, Rig, Wire, place};
use crate::server::{Asked, Server, bindings, configmaps, key, line};

const NAMES: [&str; 5] = ["ale", "beer", "cider", "gin", "rum"];

#[derive(Clone, Debug)]
enum Step {
    Put { cluster: usize, name: usize, value: u32, labelled: bool },
    Delete { cluster: usize, name: usize },
    OtherWrites(u64),
    Drive { wire: usize, steps: usize },
    Bookmark { wire: usize },
    Cut { wire: usize },
    End { wire: usize },
    Repeat { wire: usize },
    Garble { wire: usize, name: usize },
    Nonsense { wire: usize },
    Refuse { wire: usize, kind: FaultKind },
    Compact { server: usize },
    Restore { server: usize, back: u64 },
    Flip { cluster: usize },
    ReplaceIdentity,
    FollowIdentity { cluster: usize },
    Wait { seconds: u64 },
}

fn steps() -> impl Strategy<Value = Step> {
    let kinds = prop_oneof![
        Just(FaultKind::Retry(Some(Duration::from_secs(2)))),
        Just(FaultKind::Unserved),
        Just(FaultKind::Forbidden),
        Just(FaultKind::Unauthorized),
        Just(FaultKind::Expired),
        Just(FaultKind::TooLarge),
        Just(FaultKind::Invalid),
    ];
    prop_oneof![
        8 => (0..3_usize, 0..NAMES.len(), any::<u32>(), any::<bool>())
            .prop_map(|(cluster, name, value, labelled)| Step::Put { cluster, name, value, labelled }),
        5 => (0..3_usize, 0..NAMES.len()).prop_map(|(cluster, name)| Step::Delete { cluster, name }),
        1 => (1..5_u64).prop_map(Step::OtherWrites),
        16 => (0..4_usize, 1..6_usize).prop_map(|(wire, steps)| Step::Drive { wire, steps }),
        2 => (0..4_usize).prop_map(|wire| Step::Bookmark { wire }),
        3 => (0..4_usize).prop_map(|wire| Step::Cut { wire }),
        1 => (0..4_usize).prop_map(|wire| Step::End { wire }),
        2 => (0..4_usize).prop_map(|wire| Step::Repeat { wire }),
        1 => (0..2_usize, 0..NAMES.len()).prop_map(|(wire, name)| Step::Garble { wire, name }),
        1 => (0..4_usize).prop_map(|wire| Step::Nonsense { wire }),
        2 => (0..4_usize, kinds).prop_map(|(wire, kind)| Step::Refuse { wire, kind }),
        2 => (0..2_usize).prop_map(|server| Step::Compact { server }),
        1 => (0..2_usize, 1..8_u64).prop_map(|(server, back)| Step::Restore { server, back }),
        2 => (0..3_usize).prop_map(|cluster| Step::Flip { cluster }),
        1 => Just(Step::ReplaceIdentity),
        2 => (0..3_usize).prop_map(|cluster| Step::FollowIdentity { cluster }),
        4 => (1..40_u64).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

/// A rig with what only the test knows: every life of every server.
struct Trial {
    rig: Rig,
    /// Every server as it was when it was restored, by its number of restores.
    lives: Vec<BTreeMap<u32, Server>>,
    /// Other identities were accepted: what is hidden under an older one does not count any more.
    accepted: bool,
}

impl Trial {
    fn new(mode: Mode) -> Self {
        let rig = Rig::new(mode);
        let servers = rig.servers.len();
        let mut trial = Self { rig, lives: vec![BTreeMap::new(); servers], accepted: false };
        if mode.is_view() {
            for cluster in trial.clusters() {
                let server = trial.server_of(cluster);
                trial.rig.servers[server].bind(cluster, true);
            }
        }
        trial
    }

    fn clusters(&self) -> &'static [&'static str] {
        if self.rig.mode.is_view() { &["one", "two", "three"] } else { &["one"] }
    }

    fn cluster(&self, index: usize) -> &'static str {
        self.clusters()[index % self.clusters().len()]
    }

    fn server_of(&self, cluster: &str) -> usize {
        usize::from(cluster == "three") % self.rig.servers.len()
    }

    /// Whether a server may be written to. One that went back and passes its old versions before anybody
    /// looked cannot be told from one that never went back, so that is not asked for.
    fn may_write(&self, server: usize, versions: u64) -> bool {
        let state = &self.rig.servers[server];
        let mut wires = self.rig.wires.iter().filter(|wire| wire.server == server);
        wires.all(|wire| wire.life == state.restored || state.version + versions < wire.heard)
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Put { cluster, name, value, labelled } => {
                let cluster = self.cluster(*cluster);
                let server = self.server_of(cluster);
                if self.may_write(server, 1) {
                    self.rig.servers[server].put(cluster, NAMES[*name], *value, *labelled);
                }
            }
            Step::Delete { cluster, name } => {
                let cluster = self.cluster(*cluster);
                let server = self.server_of(cluster);
                if self.may_write(server, 1) {
                    self.rig.servers[server].delete(cluster, NAMES[*name]);
                }
            }
            Step::OtherWrites(count) => {
                for server in 0..self.rig.servers.len() {
                    if self.may_write(server, *count) {
                        self.rig.servers[server].other_writes(*count);
                    }
                }
            }
            Step::Drive { wire, steps } => {
                for _ in 0..*steps {
                    self.rig.step(self.wire(*wire));
                    self.check();
                }
            }
            Step::Bookmark { wire } => self.rig.bookmark(self.wire(*wire)),
            Step::Cut { wire } => self.rig.cut(self.wire(*wire)),
            Step::End { wire } => {
                let wire = self.wire(*wire);
                if self.rig.wires[wire].open.is_some() {
                    self.rig.feed(wire, Input::Ended);
                }
            }
            Step::Repeat { wire } => {
                let wire = self.wire(*wire);
                if let Some(line) = self.rig.wires[wire].last_line.clone()
                    && self.rig.wires[wire].open.is_some()
                {
                    self.rig.feed(wire, Input::Line(&line));
                }
            }
            Step::Garble { wire, name } => self.garble(self.wire(*wire), NAMES[*name]),
            Step::Nonsense { wire } => {
                let wire = self.wire(*wire);
                if self.rig.wires[wire].open.is_some() {
                    self.rig.feed(wire, Input::Line(b"{\"type\":\"ADDED\",\"obj"));
                }
            }
            Step::Refuse { wire, kind } => {
                let wire = self.wire(*wire);
                self.rig.wires[wire].follower.next(self.rig.now);
                self.rig.feed(wire, Input::Fault(&Fault::new(*kind, "no")));
                self.rig.wires[wire].open = None;
            }
            Step::Compact { server } => {
                let server = server % self.rig.servers.len();
                self.rig.servers[server].compact();
            }
            Step::Restore { server, back } => self.restore(server % self.rig.servers.len(), *back),
            Step::Flip { cluster } => self.flip(self.cluster(*cluster)),
            Step::ReplaceIdentity => self.replace_identity(),
            Step::FollowIdentity { cluster } => {
                let cluster = self.cluster(*cluster);
                let server = self.server_of(cluster);
                if self.may_write(server, 1) {
                    self.rig.servers[server].follow_identity(cluster);
                }
            }
            Step::Wait { seconds } => self.rig.wait(Duration::from_secs(*seconds)),
        }
        self.check();
    }

    fn wire(&self, index: usize) -> usize {
        index % self.rig.wires.len()
    }

    /// The next event about an object cannot be read beyond its names.
    fn garble(&mut self, wire: usize, name: &str) {
        let Some(sent) = self.rig.wires[wire].open else { return };
        let server = &self.rig.servers[self.rig.wires[wire].server];
        let asked = self.rig.wires[wire].asked;
        if server.line_after(asked, sent).is_none() || sent > server.version {
            let cluster = if self.rig.wires[wire].server == 0 { "one" } else { "three" };
            let object = serde_json::json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": name, "namespace": "till", "annotations": { "kcp.io/cluster": cluster },
                    "uid": "x", "resourceVersion": "not a number",
                },
            });
            self.rig.feed(wire, Input::Line(&line("MODIFIED", &object)));
        }
    }

    fn restore(&mut self, server: usize, back: u64) {
        let state = &self.rig.servers[server];
        let noticed = self.rig.wires.iter().all(|wire| wire.server != server || wire.life == state.restored);
        // Nor is a second disaster before anybody noticed the first.
        if !noticed || state.identity > 0 || state.version < 13 + back {
            return;
        }
        self.lives[server].insert(state.restored, state.clone());
        let version = state.version - back;
        self.rig.servers[server].restore(version);
        self.cut_all(server);
    }

    fn cut_all(&mut self, server: usize) {
        for wire in 0..self.rig.wires.len() {
            if self.rig.wires[wire].server == server {
                self.rig.cut(wire);
            }
        }
    }

    /// Bindings and claims come and go. Whether objects or bindings are heard of first is up to the wires.
    fn flip(&mut self, cluster: &'static str) {
        let server = self.server_of(cluster);
        if !self.rig.mode.is_view() || !self.may_write(server, 12) {
            return;
        }
        let state = &self.rig.servers[server];
        let bound = state.is_bound(cluster);
        // Nor can another identity be missed if the only binding that named it went before anybody heard of it. Only
        // the workspace itself tells then, which a fresh look asks.
        if bound && state.identity > 0 && !self.rig.wires.iter().all(|wire| self.has_heard_bindings(wire)) {
            return;
        }
        self.rig.servers[server].bind(cluster, !bound);
    }

    /// Whether a wire has heard of all bindings, if it is one that hears of them.
    fn has_heard_bindings(&self, wire: &Wire) -> bool {
        let server = &self.rig.servers[wire.server];
        wire.asked == Asked::Maps || (wire.life == server.restored && wire.read >= server.bound_at())
    }

    /// The center is restarted with another identity of its export.
    fn replace_identity(&mut self) {
        // An identity that nobody has heard of cannot be missed.
        let heard = self.rig.wires.iter().all(|wire| self.has_heard_bindings(wire));
        let unserved = self.rig.servers.iter().any(|server| server.unserved);
        if self.rig.mode == Mode::View && !unserved && heard {
            for server in 0..self.rig.servers.len() {
                self.rig.servers[server].replace_identity();
                self.cut_all(server);
            }
        }
    }

    /// What must hold after every step.
    fn check(&self) {
        for cluster in self.clusters() {
            for name in NAMES {
                let key = key(cluster, name);
                if let Seen::Absent(absence) = self.rig.store.get(&key) {
                    self.check_absence(&key, absence);
                }
            }
            // What is told of all kinds at once, with those passed over that were listed, is what each of them tells.
            let cluster = ClusterId::new(cluster);
            let store = &self.rig.store;
            let each = [configmaps(), bindings()].map(|kind| store.unlisted_kind(&cluster, &kind));
            assert_eq!(store.unlisted(&cluster), each.into_iter().flatten().min(), "{cluster}: {each:?}");
        }
        assert_eq!(self.rig.present(), self.rig.fold.present(), "the news tell another story than the store");
    }

    /// The central property: no key is absent at a version at which its server had the object.
    fn check_absence(&self, key: &Key, absence: Absence) {
        let version = absence.version().0;
        assert_ne!(self.rig.mode, Mode::Labels, "{key} is absent by a filter");
        assert_ne!(self.rig.mode, Mode::Claims, "{key} is absent through a claim");
        let server = self.server_of(key.cluster.0.as_str());
        let life = self.rig.wires.iter().find(|wire| wire.server == server).unwrap().life;
        let state = self.lives[server].get(&life).unwrap_or(&self.rig.servers[server]);
        let address = (key.cluster.to_string(), key.name.to_string());
        let cluster = key.cluster.0.as_str();
        let identities = match state.identity_at(cluster, version) {
            // A user of the workspace deleted what its binding brought then; what it brought before is out of reach.
            Some(bound) if absence.how() == Gone::Deleted => bound..=bound,
            _ if self.accepted => state.identity..=state.identity,
            _ => 0..=state.identity,
        };
        assert!(!state.had(&address, identities, version), "{key} is absent at {version}, where it was");
    }

    /// Once faults end, the store is the server's state and the replica agrees.
    fn check_quiet(&mut self) {
        // Whatever was refused before is served now.
        for server in &mut self.rig.servers {
            for cluster in ["one", "two", "three"] {
                server.follow_identity(cluster);
            }
            server.unserved = false;
        }
        self.rig.quiet();
        self.check();
        self.accept_identities();
        let stuck = self.stuck();
        let restores: u32 = self.rig.servers.iter().map(|server| server.restored).sum();
        assert!(stuck.is_empty() || restores > 0, "{stuck:?} in doubt of a past that never was");
        self.heal_garbled();
        self.check();
        self.check_present_or_gone();
    }

    fn accept_identities(&mut self) {
        self.accepted = true;
        let mut out = Vec::new();
        for cluster in self.clusters() {
            let strange = self.rig.store.get(&key(cluster, NAMES[0])).doubt() == Some(Doubt::IdentityChanged);
            let accepted = strange
                && self.rig.store.accept_identity(
                    &place(),
                    &ClusterId::new(cluster),
                    &configmaps(),
                    &mut out,
                );
            assert_eq!(strange, accepted, "{cluster}");
        }
        self.rig.hear(out);
        self.rig.quiet();
        self.check();
    }

    /// A server that sent nonsense about an object once shows it well at the next list.
    fn heal_garbled(&mut self) {
        for server in &mut self.rig.servers {
            server.compact();
            server.other_writes(1);
        }
        for wire in 0..self.rig.wires.len() {
            let line = crate::server::expired_line();
            self.rig.feed(wire, Input::Line(&line));
        }
        self.rig.quiet();
        self.rig.confirm_all();
    }

    fn stuck(&self) -> Vec<Key> {
        let keys = self.clusters().iter().flat_map(|cluster| NAMES.map(|name| key(cluster, name)));
        keys.filter(|key| self.rig.store.get(key).doubt() == Some(Doubt::OlderThanKnown)).collect()
    }

    fn check_present_or_gone(&self) {
        for cluster in self.clusters() {
            let server = &self.rig.servers[self.server_of(cluster)];
            let bound = !self.rig.mode.is_view() || server.is_bound(cluster);
            for name in NAMES {
                let key = key(cluster, name);
                let stored = server.now().remove(&((*cluster).to_owned(), name.to_owned()));
                let shown = stored.filter(|stored| self.rig.mode != Mode::Labels || stored.labelled);
                match (self.rig.store.get(&key), shown, bound) {
                    (Seen::Present(object), Some(stored), true) => {
                        assert_eq!(object.version.0, stored.version, "{key}");
                        let value = object.get(&["data", "value"]).and_then(Raw::as_str);
                        assert_eq!(value.as_deref(), Some(stored.value.to_string().as_str()), "{key}");
                    }
                    (Seen::Absent(_), None, true) => assert!(self.rig.fold.absent(&key), "{key}"),
                    (Seen::Unknown(Doubt::Filtered), None, true) if self.rig.mode == Mode::Labels => {}
                    // A backup may be of the midst of a claim's acceptance.
                    (Seen::Present(_), Some(stored), false) if stored.visible && server.restored > 0 => {}
                    (Seen::Unknown(Doubt::Claimed), None, true) if self.rig.mode == Mode::Claims => {}
                    (Seen::Unknown(Doubt::Withdrawn | Doubt::NotEngaged), _, false) => {}
                    (seen, stored, bound) => panic!("{key}: {seen:?}, server has {stored:?}, bound: {bound}"),
                }
            }
        }
    }
}

fn run(mode: Mode, steps: &[Step]) {
    let mut trial = Trial::new(mode);
    for step in steps {
        trial.apply(step);
    }
    trial.check_quiet();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_whole_cluster_is_known_as_it_is(steps in prop::collection::vec(steps(), 1..120)) {
        run(Mode::Whole, &steps);
    }

    #[test]
    fn a_filtered_kind_is_never_absent(steps in prop::collection::vec(steps(), 1..120)) {
        run(Mode::Labels, &steps);
    }

    #[test]
    fn through_a_claim_nothing_is_ever_absent(steps in prop::collection::vec(steps(), 1..150)) {
        run(Mode::Claims, &steps);
    }

    #[test]
    fn a_view_over_two_shards_is_known_as_it_is(steps in prop::collection::vec(steps(), 1..150)) {
        run(Mode::View, &steps);
    }
}
