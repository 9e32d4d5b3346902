//! Nothing is deleted without a warrant: whatever is in doubt, whatever the configuration is, and whatever a fresh look finds.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_engine::look::Serving;
use proptest::prelude::*;

use crate::prelude::*;

const NAMES: [&str; 4] = ["anchor", "buoy", "chart", "davit"];
const ROUTES: [&str; 2] = ["p1", "p2"];
/// Longer than any look is put off, in milliseconds.
const SOME_TIME: u64 = 120_000;

/// Something that somebody does, or that goes wrong.
#[derive(Clone, Debug)]
enum Step {
    /// A source is made or changed, and placed or not.
    Put { name: usize, placed: bool },
    /// A source is deleted.
    Remove { name: usize },
    /// A route goes to these places, or is taken away.
    Route { route: usize, to: Option<Vec<u32>> },
    /// Not all of the configuration is known, or all is again.
    Known(bool),
    /// The link to a cluster is lost, or found again.
    Link { cluster: usize, up: bool },
    /// A kind is not served in a cluster, or is again.
    Served { cluster: usize, served: bool },
    /// The sources' workspace is being deleted, or was found not to be.
    Lives(bool),
    /// The sources' kind is gone from its workspace, or is there.
    Defined(bool),
    /// The process ends and starts again.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let to = prop::sample::subsequence(vec![FLORIN, GUILDER], 0..=2);
    // The edges, and where the sources are.
    let cluster = prop::sample::select(vec![0_usize, 1, 3]);
    prop_oneof![
        4 => (0..NAMES.len(), prop::bool::weighted(0.8)).prop_map(|(name, placed)| Step::Put { name, placed }),
        3 => (0..NAMES.len()).prop_map(|name| Step::Remove { name }),
        3 => (0..ROUTES.len(), prop::option::weighted(0.7, to)).prop_map(|(route, to)| Step::Route { route, to }),
        2 => any::<bool>().prop_map(Step::Known),
        2 => (cluster.clone(), any::<bool>()).prop_map(|(cluster, up)| Step::Link { cluster, up }),
        2 => (cluster, any::<bool>()).prop_map(|(cluster, served)| Step::Served { cluster, served }),
        1 => any::<bool>().prop_map(Step::Lives),
        1 => any::<bool>().prop_map(Step::Defined),
        1 => Just(Step::Restart),
    ]
}

/// A world, and what is true of it.
struct Story {
    world: World,
    routes: BTreeMap<usize, Vec<u32>>,
    known: bool,
    /// Clusters that are not followed as they should be.
    lost: BTreeSet<usize>,
}

impl Story {
    fn new() -> Self {
        let mut story = Self { world: world(), routes: BTreeMap::new(), known: true, lost: BTreeSet::new() };
        for name in 0..NAMES.len() {
            story.world.put(&at("workload", name), config_map("1"));
        }
        story.routes.insert(0, vec![FLORIN, GUILDER]);
        story.configure();
        story.world.run();
        assert_eq!(story.copies().len(), 2 * NAMES.len());
        story
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Put { name, placed } => {
                let mut object = config_map("2");
                if !placed {
                    object["metadata"] = json!({});
                }
                self.world.put(&at("workload", *name), object);
            }
            Step::Remove { name } => self.world.remove(&at("workload", *name)),
            Step::Route { route, to } => {
                match to {
                    Some(to) => self.routes.insert(*route, to.clone()),
                    None => self.routes.remove(route),
                };
                self.configure();
            }
            Step::Known(known) => {
                self.known = *known;
                self.world.engine.configuration_known(known.then_some(1));
            }
            Step::Link { cluster, up } | Step::Served { cluster, served: up } => {
                if *up {
                    self.find(*cluster);
                } else if self.lost.insert(*cluster) {
                    match step {
                        Step::Link { .. } => self.world.lose(CLUSTERS[*cluster], "configmaps"),
                        _ => self.world.unserve(CLUSTERS[*cluster], "configmaps"),
                    }
                }
            }
            Step::Lives(lives) => self.world.workspace_lives = *lives,
            Step::Defined(defined) => {
                self.world.kind = if *defined { Serving::Itself } else { Serving::Nothing };
            }
            Step::Restart => {
                self.world.restart(&KINDS);
                self.lost.clear();
                self.configure();
            }
        }
    }

    fn find(&mut self, cluster: usize) {
        if self.lost.remove(&cluster) {
            // What happened meanwhile is told by a list.
            let kind = key(CLUSTERS[cluster], "configmaps", "", "");
            let server = self.world.servers.get_mut(&kind.cluster).unwrap();
            server.events.retain(|(key, ..)| key.kind != kind.kind);
            self.world.find_again(CLUSTERS[cluster], "configmaps");
            // Where a watch would go on instead: nobody kept what it would have to tell.
            self.world.expire(CLUSTERS[cluster], "configmaps");
            self.world.find_again(CLUSTERS[cluster], "configmaps");
        }
    }

    fn configure(&mut self) {
        for (number, route) in ROUTES.iter().enumerate() {
            if let Some(to) = self.routes.get(&number) {
                configure(&mut self.world, translator(route, to));
            } else {
                self.world.engine.configure(&self.world.store, &RouteId(Name::new(route)), None);
            }
        }
        self.world.engine.configuration_known(self.known.then_some(1));
    }

    /// Where copies of ours stand.
    fn copies(&self) -> BTreeSet<Key> {
        let objects = self.world.servers.values().flat_map(|server| &server.objects);
        let ours = objects.filter(|(_, object)| object["metadata"]["labels"]["mailboat.dev/owner"] == "test");
        ours.map(|(key, _)| key.clone()).collect()
    }

    /// Runs, and sees why whatever was deleted was.
    fn run(&mut self) {
        let before = self.copies();
        let uids: BTreeMap<Key, Value> = before
            .iter()
            .map(|copy| (copy.clone(), self.world.object(copy).unwrap()["metadata"]["uid"].clone()))
            .collect();
        self.world.writes.clear();
        // What is held is looked at again for ever.
        self.world.run_for(SOME_TIME);
        for call in std::mem::take(&mut self.world.writes) {
            let Verb::Delete { uid, version, .. } = &call.verb else { continue };
            assert_eq!(
                uids.get(&call.key),
                Some(&json!(uid.to_string())),
                "{}: not ours as it was",
                call.key
            );
            assert!(version.is_some(), "{}: whatever it has become", call.key);
            let source = Key { cluster: key("workload", "", "", "").cluster, ..call.key.clone() };
            let looked = self.world.workspace_lives && self.world.kind == Serving::Itself;
            let deleted = self.world.object(&source).is_none() && looked;
            let deselected = self.known && !self.is_selected(&call.key);
            assert!(deleted || deselected, "{} was deleted without a warrant", call.key);
        }
    }

    fn is_selected(&self, copy: &Key) -> bool {
        let to = CLUSTERS.iter().position(|cluster| *cluster == copy.cluster.0.as_str());
        let to = to.and_then(|to| u32::try_from(to).ok()).unwrap();
        let source = Key { cluster: key("workload", "", "", "").cluster, ..copy.clone() };
        let placed =
            self.world.object(&source).is_none_or(|source| source["metadata"]["labels"]["place"] == "yes");
        placed && self.routes.values().any(|places| places.contains(&to))
    }

    /// Everything can be known again: then it is as wanted.
    fn ends_well(&mut self) {
        (self.world.workspace_lives, self.world.kind, self.known) = (true, Serving::Itself, true);
        for cluster in self.lost.clone() {
            self.find(cluster);
        }
        self.configure();
        self.run();
        // What was held for a moment is looked at again.
        self.world.now += 3_600_000;
        self.run();
        let wanted: BTreeSet<Key> = CLUSTERS[..2]
            .iter()
            .flat_map(|cluster| (0..NAMES.len()).map(move |name| at(cluster, name)))
            .filter(|copy| {
                let source = Key { cluster: key("workload", "", "", "").cluster, ..copy.clone() };
                self.world.object(&source).is_some() && self.is_selected(copy)
            })
            .collect();
        let missing: Vec<_> =
            wanted.difference(&self.copies()).map(|slot| explain(&self.world, slot)).collect();
        assert_eq!(missing, Vec::<String>::new());
    }
}

fn at(cluster: &str, name: usize) -> Key {
    key(cluster, "configmaps", "till", NAMES[name])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_is_deleted_without_a_warrant(steps in prop::collection::vec((step(), any::<bool>()), 1..16)) {
        let mut story = Story::new();
        for (step, pause) in &steps {
            story.take(step);
            if *pause {
                story.run();
            }
        }
        story.run();
        story.ends_well();
    }
}

#[test]
fn a_source_made_anew_while_nobody_looks_is_copied_again() {
    let mut story = Story::new();
    story.take(&Step::Remove { name: 3 });
    story.run();
    story.take(&Step::Link { cluster: 3, up: false });
    story.take(&Step::Put { name: 3, placed: true });
    story.run();
    story.ends_well();
}
