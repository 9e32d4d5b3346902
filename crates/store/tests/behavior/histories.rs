//! Random histories of servers, random faults on the way: what the store says is never more than what is so.

use std::collections::BTreeMap;
use std::time::Duration;

use mailboat_object::json::Raw;
use mailboat_object::key::Key;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{Doubt, Input, Seen};
use proptest::prelude::*;

use crate::rig::{Mode, Rig};
use crate::server::{Server, key, line};

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
    TellBinding { cluster: usize },
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
        16 => (0..2_usize, 1..6_usize).prop_map(|(wire, steps)| Step::Drive { wire, steps }),
        2 => (0..2_usize).prop_map(|wire| Step::Bookmark { wire }),
        3 => (0..2_usize).prop_map(|wire| Step::Cut { wire }),
        1 => (0..2_usize).prop_map(|wire| Step::End { wire }),
        2 => (0..2_usize).prop_map(|wire| Step::Repeat { wire }),
        1 => (0..2_usize, 0..NAMES.len()).prop_map(|(wire, name)| Step::Garble { wire, name }),
        1 => (0..2_usize).prop_map(|wire| Step::Nonsense { wire }),
        2 => (0..2_usize, kinds).prop_map(|(wire, kind)| Step::Refuse { wire, kind }),
        2 => (0..2_usize).prop_map(|server| Step::Compact { server }),
        1 => (0..2_usize, 1..8_u64).prop_map(|(server, back)| Step::Restore { server, back }),
        2 => (0..3_usize).prop_map(|cluster| Step::Flip { cluster }),
        3 => (0..3_usize).prop_map(|cluster| Step::TellBinding { cluster }),
        4 => (1..40_u64).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

/// A rig with what only the test knows: every life of every server, and bindings not yet told.
struct Trial {
    rig: Rig,
    /// Every server as it was when it was restored, by its number of restores.
    lives: Vec<BTreeMap<u32, Server>>,
    untold: BTreeMap<String, u64>,
}

impl Trial {
    fn new(mode: Mode) -> Self {
        let rig = Rig::new(mode);
        let servers = rig.servers.len();
        let mut trial = Self { rig, lives: vec![BTreeMap::new(); servers], untold: BTreeMap::new() };
        if mode == Mode::View {
            for cluster in trial.clusters() {
                let server = trial.server_of(cluster);
                let since = trial.rig.servers[server].bind(cluster, true);
                trial.rig.engage(cluster, Some(since));
            }
        }
        trial
    }

    fn clusters(&self) -> &'static [&'static str] {
        if self.rig.mode == Mode::View { &["one", "two", "three"] } else { &["one"] }
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
        let wire = self.rig.wires.iter().find(|wire| wire.server == server).unwrap();
        wire.life == state.restored || state.version + versions < wire.heard
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
            Step::TellBinding { cluster } => {
                let cluster = self.cluster(*cluster);
                if let Some(since) = self.untold.remove(cluster) {
                    self.rig.engage(cluster, Some(since));
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
        if server.line_after(sent).is_none() || sent > server.version {
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
        if !noticed || !self.untold.is_empty() || state.version < 12 + back {
            return;
        }
        self.lives[server].insert(state.restored, state.clone());
        let bound = state.bound.clone();
        let version = state.version - back;
        self.rig.servers[server].restore(version);
        for wire in 0..self.rig.wires.len() {
            if self.rig.wires[wire].server == server {
                self.rig.cut(wire);
            }
        }
        // A backup may hold other bindings than the present: whoever reads them says so.
        for cluster in bound.into_keys() {
            let bound = self.rig.servers[server].bound[&cluster];
            if bound {
                self.rig.engage(&cluster, Some(version));
            } else {
                self.rig.withdraw(&cluster, version);
            }
        }
    }

    /// Claims come and go. That one goes is told at once (before its objects seem to be deleted), that one came
    /// at any time.
    fn flip(&mut self, cluster: &'static str) {
        let server = self.server_of(cluster);
        if self.rig.mode != Mode::View || !self.may_write(server, 12) {
            return;
        }
        let bound = !self.rig.servers[server].bound[cluster];
        self.untold.remove(cluster);
        let since = self.rig.servers[server].bind(cluster, bound);
        if bound {
            self.untold.insert(cluster.to_owned(), since);
        } else {
            self.rig.withdraw(cluster, since);
        }
    }

    /// What must hold after every step.
    fn check(&self) {
        for cluster in self.clusters() {
            for name in NAMES {
                let key = key(cluster, name);
                if let Seen::Absent(absence) = self.rig.store.get(&key) {
                    self.check_absence(&key, absence.version().0);
                }
            }
        }
        assert_eq!(self.rig.present(), self.rig.fold.present(), "the news tell another story than the store");
    }

    /// The central property: no key is absent at a version at which its server had the object.
    fn check_absence(&self, key: &Key, version: u64) {
        assert_ne!(self.rig.mode, Mode::Labels, "{key} is absent by a filter");
        let server = self.server_of(key.cluster.0.as_str());
        let life = self.rig.wires.iter().find(|wire| wire.server == server).unwrap().life;
        let state = self.lives[server].get(&life).unwrap_or(&self.rig.servers[server]);
        let address = (key.cluster.to_string(), key.name.to_string());
        let there = state.one_at(&address, version);
        assert_eq!(there, None, "{key} is absent at {version}, where it was");
    }

    /// Once faults end, the store is the server's state and the replica agrees.
    fn check_quiet(&mut self) {
        for (cluster, since) in std::mem::take(&mut self.untold) {
            self.rig.engage(&cluster, Some(since));
        }
        // Whatever was refused before is served now.
        self.rig.quiet();
        self.check();
        let stuck = self.stuck();
        let restores: u32 = self.rig.servers.iter().map(|server| server.restored).sum();
        assert!(stuck.is_empty() || restores > 0, "{stuck:?} in doubt of a past that never was");
        self.heal_garbled();
        self.check();
        self.check_present_or_gone();
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
            let bound = self.rig.mode != Mode::View || server.bound[*cluster];
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
    fn a_view_over_two_shards_is_known_as_it_is(steps in prop::collection::vec(steps(), 1..150)) {
        run(Mode::View, &steps);
    }
}
