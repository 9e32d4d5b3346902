//! What holds whatever happens: random edits and configurations, planned in any order, come to the same end; what came to
//! its end is not touched again; and whatever was deleted was ours.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::prelude::*;

const NAMES: [&str; 4] = ["anchor", "buoy", "chart", "davit"];
const ROUTES: [&str; 2] = ["p1", "p2"];

/// Something that somebody does.
#[derive(Clone, Debug)]
enum Step {
    /// A source gets this value, and is selected or not.
    Put { name: usize, value: u8, placed: bool },
    /// A source is deleted.
    Remove { name: usize },
    /// Somebody puts an object of their own where a copy may be wanted.
    Foreign { cluster: usize, name: usize },
    /// A route goes to these places, or is taken away.
    Route { route: usize, to: Option<Vec<u32>> },
    /// The process ends and starts again.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let to = prop::sample::subsequence(vec![FLORIN, GUILDER], 0..=2);
    prop_oneof![
        4 => (0..NAMES.len(), 0..3_u8, prop::bool::weighted(0.8))
            .prop_map(|(name, value, placed)| Step::Put { name, value, placed }),
        2 => (0..NAMES.len()).prop_map(|name| Step::Remove { name }),
        1 => (0..2_usize, 0..NAMES.len()).prop_map(|(cluster, name)| Step::Foreign { cluster, name }),
        3 => (0..ROUTES.len(), prop::option::weighted(0.8, to)).prop_map(|(route, to)| Step::Route { route, to }),
        1 => Just(Step::Restart),
    ]
}

/// A world in which steps are taken, with the configuration as it is by now.
struct Story {
    world: World,
    routes: BTreeMap<usize, Vec<u32>>,
}

impl Story {
    fn new() -> Self {
        let mut world = world();
        known(&mut world);
        Self { world, routes: BTreeMap::new() }
    }

    fn take(&mut self, step: &Step) {
        let at = |cluster, name: &usize| key(cluster, "configmaps", "till", NAMES[*name]);
        match step {
            Step::Put { name, value, placed } => {
                let mut object = config_map(&value.to_string());
                if !placed {
                    object["metadata"] = json!({});
                }
                self.world.put(&at("workload", name), object);
            }
            Step::Remove { name } => self.world.remove(&at("workload", name)),
            Step::Foreign { cluster, name } => {
                let place = at(CLUSTERS[*cluster], name);
                if self.world.object(&place).is_none() {
                    let object =
                        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "theirs" } });
                    self.world.put(&place, object);
                }
            }
            Step::Route { route, to } => {
                match to {
                    Some(to) => self.routes.insert(*route, to.clone()),
                    None => self.routes.remove(route),
                };
                self.configure(&[*route]);
            }
            Step::Restart => self.restart(&[0, 1]),
        }
    }

    /// Tells the engine of these routes, in this order.
    fn configure(&mut self, order: &[usize]) {
        for route in order {
            if let Some(to) = self.routes.get(route) {
                configure(&mut self.world, translator(ROUTES[*route], to));
            } else {
                let id = RouteId(Name::new(ROUTES[*route]));
                self.world.engine.configure(&self.world.store, &id, None);
            }
        }
    }

    fn restart(&mut self, order: &[usize]) {
        self.world.restart(&KINDS);
        self.configure(order);
        known(&mut self.world);
    }

    /// What stands at the edges: contents, and whose they are.
    fn edges(&self) -> BTreeMap<String, (Value, bool)> {
        let edges = self.world.servers.iter().filter(|(cluster, _)| CLUSTERS[..2].contains(&&*cluster.0));
        let objects = edges.flat_map(|(_, server)| &server.objects);
        let maps = objects.filter(|(key, _)| key.kind.resource() == "configmaps");
        maps.map(|(key, object)| {
            let ours = object["metadata"]["labels"]["mailboat.dev/owner"] == "test";
            (key.to_string(), (object["data"].clone(), ours))
        })
        .collect()
    }

    /// Nothing is written by looking again: not after all is configured anew, nor after a restart.
    fn is_at_rest(&mut self) {
        let before = self.edges();
        written(&mut self.world);
        self.configure(&[0, 1]);
        self.world.run();
        assert_eq!(written(&mut self.world), Vec::<String>::new(), "configured anew as it was");
        self.restart(&[1, 0]);
        self.world.run();
        assert_eq!(written(&mut self.world), Vec::<String>::new(), "started again");
        assert_eq!(self.edges(), before);
    }

    /// What should stand at the edges: for each place, the copy that the first route wants unless somebody was there before.
    fn is_as_wanted(&self) {
        let edges = self.edges();
        for (number, name) in NAMES.iter().enumerate() {
            let source = self.world.object(&key("workload", "configmaps", "till", name));
            let placed = source.filter(|source| source["metadata"]["labels"]["place"] == "yes");
            for (cluster, to) in [("florin", FLORIN), ("guilder", GUILDER)] {
                let wanted = placed.filter(|_| self.routes.values().any(|places| places.contains(&to)));
                let found = edges.get(&key(cluster, "configmaps", "till", NAMES[number]).to_string());
                match (wanted, found) {
                    (_, Some((data, false))) => assert_eq!(data["a"], "theirs", "{name} at {cluster}"),
                    (Some(wanted), Some((data, true))) => {
                        assert_eq!(*data, wanted["data"], "{name} at {cluster}");
                    }
                    (None, None) => {}
                    (wanted, found) => {
                        panic!("{name} at {cluster}: {wanted:?} is wanted, {found:?} is there")
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_history_ends_as_wanted_and_then_nothing_is_written(steps in prop::collection::vec(step(), 1..14)) {
        let mut story = Story::new();
        for step in &steps {
            story.take(step);
            story.world.run();
            story.is_as_wanted();
        }
        story.is_at_rest();
    }

    #[test]
    fn the_end_does_not_depend_on_the_order_in_which_it_is_planned(
        steps in prop::collection::vec(step(), 1..14),
        order in Just(vec![0_usize, 1]).prop_shuffle(),
        pauses in prop::collection::vec(any::<bool>(), 14),
    ) {
        // Once with everything settled after each step, once with only some of them, and once from nothing at the end.
        let (mut eager, mut lazy) = (Story::new(), Story::new());
        for (step, pause) in steps.iter().zip(pauses) {
            eager.take(step);
            eager.world.run();
            lazy.take(step);
            if pause {
                lazy.world.run();
            }
        }
        lazy.restart(&order);
        lazy.world.run();
        lazy.is_as_wanted();
        eager.is_as_wanted();
        lazy.is_at_rest();
    }
}
