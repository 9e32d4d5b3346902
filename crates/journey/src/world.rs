//! The loop: a script is played to its end, and then all must be well.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mailboat_api::names::export;
use mailboat_api::names::object::PROVIDER_WORKSPACE;
use mailboat_engine::plan::Verdict;
use mailboat_machinery::Machine;
#[cfg(test)]
use mailboat_machinery::{ListRequest, Stored};
#[cfg(test)]
use mailboat_object::key::KindId;
use mailboat_object::key::{ClusterId, Key};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use crate::base::{self, Bad, Base};
use crate::crew::{Aboard, Running, why};
use crate::kinds;
use crate::oracle::arrived;
use crate::script::{Script, Site};
#[cfg(test)]
use crate::sea::CENTER;
use crate::sea::{Sea, Shared, Who, lock};
use crate::truth::Edge;
#[cfg(test)]
use crate::truth::Truth;
use crate::{Failure, Options, Report};

/// Nothing that can happen in one run takes so many requests: beyond, something goes round and round.
const REQUESTS_AT_MOST: u64 = 60_000;
/// Longer than any watch, dead link and back-off last, one after the other: by then everything is as it will be.
const SETTLING: Duration = Duration::from_mins(20);
/// Longer than any watch or back-off lasts: whatever would still be written is written by then.
const QUIET: Duration = Duration::from_mins(8);
/// How often it is asked whether an edge has its mailbox.
const MAILBOX_ASKED_FOR_EVERY: Duration = Duration::from_millis(500);
/// How often it is looked whether something went wrong.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A world that is being played.
pub(crate) struct World {
    pub(crate) sea: Shared,
    running: BTreeMap<Who, Running>,
    /// Processes that are down, and when they start again.
    down: BTreeMap<Who, Instant>,
    /// Processes that stand still, and when they go on.
    still: BTreeMap<Who, Instant>,
    values: u64,
}

/// Plays a script to its end, and sees that all is well then.
pub(crate) fn play(seed: u64, script: &Script, options: &Options) -> Result<Report, Failure> {
    let failure = |line: usize, message: String, log: Vec<String>| {
        Failure::new(seed, line, message, &script.lines, log)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| failure(0, format!("no world: {error}"), Vec::new()))?;
    runtime.block_on(async {
        let mut world = World::new(seed, script, *options)
            .map_err(|error| failure(0, format!("no world: {error}"), Vec::new()))?;
        let mut played = 0;
        let played_well = world.play(script, &mut played).await;
        for (_, running) in std::mem::take(&mut world.running) {
            running.crash().await;
        }
        let mut sea = lock(&world.sea);
        let log = std::mem::take(&mut sea.log);
        match played_well {
            Ok(()) => Ok(sea.report.clone()),
            Err(message) => Err(failure(played, message, log)),
        }
    })
}

#[cfg(test)]
impl World {
    /// Plays a script, waits for so long, and says what is not as it is wanted then.
    pub(crate) async fn unsettled_after(
        seed: u64,
        script: &Script,
        time: Duration,
    ) -> Result<Vec<String>, String> {
        let mut world = Self::new(seed, script, Options::default()).map_err(|bad| bad.to_string())?;
        world.follow(script, &mut 0).await?;
        world.pass(time).await?;
        let mut unsettled = Vec::new();
        for (who, running) in std::mem::take(&mut world.running) {
            let Some(process) = running.stop().await else { continue };
            let engine = process.engine();
            let waits = engine.slots().filter(|slot| engine.verdict(slot) != Some(&Verdict::Settled));
            unsettled.extend(waits.map(|slot| format!("{who:?} {slot}: {:?}", engine.verdict(slot))));
        }
        Ok(unsettled)
    }

    /// Plays a script, starts the center once more when all has come to rest, and says what that one wrote. Just before,
    /// it was written down when the syncers were heard of, which is due only every five minutes.
    pub(crate) async fn written_after_a_restart(seed: u64, script: &Script) -> Result<Vec<String>, String> {
        let mut world = Self::new(seed, script, Options::default()).map_err(|bad| bad.to_string())?;
        world.follow(script, &mut 0).await?;
        world.pass(SETTLING).await?;
        let wrote = |world: &Self| lock(&world.sea).oracle.take_wrote(Who::Center);
        wrote(&world);
        while !wrote(&world).iter().any(|line| line.contains("synctargets")) {
            world.pass(Duration::from_secs(1)).await?;
        }
        world.pass(Duration::from_mins(1)).await?;
        wrote(&world);
        world.crash(Who::Center, Duration::from_secs(1)).await;
        world.pass(Duration::from_mins(2)).await?;
        Ok(wrote(&world))
    }

    /// Plays a script, and gives what stands of a kind in a workspace or at an edge so long after its last line.
    pub(crate) async fn standing_after(
        seed: u64,
        script: &Script,
        (place, kind): (fn(&Truth) -> Option<ClusterId>, KindId),
        span: Duration,
    ) -> Result<Vec<Arc<Stored>>, String> {
        let mut world = Self::new(seed, script, Options::default()).map_err(|bad| bad.to_string())?;
        world.follow(script, &mut 0).await?;
        world.pass(span).await?;
        let sea = lock(&world.sea);
        let cluster = place(&sea.truth);
        let request = ListRequest { cluster, kind, ..ListRequest::default() };
        let server = request.cluster.as_ref().map_or(CENTER, |cluster| sea.server_of(cluster));
        let server = sea.machines.get(server).ok_or("no server")?;
        server.list(&request).map(|list| list.items).map_err(|status| status.to_string())
    }

    /// Plays a script, and says how many copies are at the edges so long after its last line.
    pub(crate) async fn arrived_after(seed: u64, script: &Script, span: Duration) -> Result<u64, String> {
        let mut world = Self::new(seed, script, Options::default()).map_err(|bad| bad.to_string())?;
        world.follow(script, &mut 0).await?;
        world.pass(span).await?;
        Ok(arrived(&lock(&world.sea)))
    }
}

impl World {
    fn new(seed: u64, script: &Script, options: Options) -> Result<Self, Bad> {
        let base = Base::get()?;
        let (kcp, center) = base.center()?;
        let mut sea = Sea::new(seed, options, kcp, center);
        if script.center {
            let workload = sea.workspace(Site::Workload)?;
            if script.bound {
                sea.offer_boats()?;
                sea.bind_boats(&workload);
            } else {
                sea.define_boats(&workload);
            }
            let inventory = sea.workspace(Site::Inventory)?;
            for number in 0..script.edges {
                let uid = sea.inventory_entry(&inventory, number).ok_or("no SyncTarget")?;
                let cluster = ClusterId::new(&format!("edge-{uid}"));
                let target = kinds::key(&inventory, kinds::edge("synctargets"), &format!("t{number}"));
                let edge = Edge { cluster: cluster.clone(), mailbox: None, target: Some(target) };
                sea.moor(base.edge(&cluster), edge);
            }
            sea.truth.workload = Some(workload);
            sea.truth.inventory = Some(inventory);
            sea.truth.provider = Some(base.provider.clone());
        } else {
            for number in 0..script.edges {
                let mailbox = sea.workspace(Site::Mailbox(number))?;
                sea.define_boats(&mailbox);
                let cluster = ClusterId::new(&format!("edge-u{number}"));
                sea.moor(base.edge(&cluster), Edge { cluster, mailbox: Some(mailbox), target: None });
            }
        }
        sea.truth.recount(0);
        let servers = sea.machines.len();
        let sea = Arc::new(Mutex::new(sea));
        for server in 0..servers {
            tokio::spawn(tidy(Arc::clone(&sea), server));
        }
        Ok(Self { sea, running: BTreeMap::new(), down: BTreeMap::new(), still: BTreeMap::new(), values: 0 })
    }

    async fn play(&mut self, script: &Script, played: &mut usize) -> Result<(), String> {
        self.follow(script, played).await?;
        self.pass(SETTLING).await?;
        let writes = lock(&self.sea).oracle.written();
        self.pass(QUIET).await?;
        self.no_more_writes(writes)?;
        let open = self.all_is_well().await?;
        lock(&self.sea).oracle.begin_to_note();
        self.start_all();
        self.pass(QUIET).await?;
        self.only_written(open.as_ref())?;
        self.all_is_well().await.map(drop)
    }

    /// Plays the lines of a script, and ends all faults.
    async fn follow(&mut self, script: &Script, played: &mut usize) -> Result<(), String> {
        let begun = lock(&self.sea).begun;
        let crew = script.center.then_some(Who::Center).into_iter();
        for who in crew.chain((0..script.edges).map(Who::Syncer)) {
            self.down.insert(who, begun + Duration::from_millis(5));
        }
        for (at, step) in &script.lines {
            self.until(begun + Duration::from_millis(*at)).await?;
            *played += 1;
            lock(&self.sea).trace(&step.to_string());
            self.step(step).await;
        }
        self.calm();
        self.pass(Duration::from_secs(1)).await?;
        self.mend();
        Ok(())
    }

    /// Lets time pass.
    async fn pass(&mut self, time: Duration) -> Result<(), String> {
        self.until(Instant::now() + time).await
    }

    /// Lets time pass until then, and starts what is down when its time has come.
    async fn until(&mut self, end: Instant) -> Result<(), String> {
        loop {
            let due: Vec<Who> =
                self.down.iter().filter(|(_, at)| **at <= Instant::now()).map(|(who, _)| *who).collect();
            for who in due {
                self.down.remove(&who);
                self.start(who);
            }
            self.go_on(|at| at <= Instant::now());
            {
                let sea = lock(&self.sea);
                if let Some(failure) = &sea.failure {
                    return Err(failure.clone());
                }
                if sea.report.events > REQUESTS_AT_MOST * sea.machines.len() as u64 {
                    return Err("the world does not come to rest".to_owned());
                }
            }
            if Instant::now() >= end {
                return Ok(());
            }
            let next = self.down.values().chain(self.still.values()).min().copied().unwrap_or(end).min(end);
            sleep_until(next.min(Instant::now() + LOOK_EVERY)).await;
        }
    }

    fn start(&mut self, who: Who) {
        let running = match who {
            Who::Center => {
                let provider = lock(&self.sea).truth.provider.clone();
                provider.map(|provider| Running::center(&self.sea, &provider, PROVIDER_WORKSPACE))
            }
            Who::Syncer(number) => Running::syncer(&self.sea, number),
        };
        match running {
            Some(running) => drop(self.running.insert(who, running)),
            // It is given its credential with its mailbox.
            None => drop(self.down.insert(who, Instant::now() + MAILBOX_ASKED_FOR_EVERY)),
        }
    }

    fn start_all(&mut self) {
        let (center, edges) = {
            let sea = lock(&self.sea);
            (sea.truth.provider.is_some(), u8::try_from(sea.truth.edges.len()).unwrap_or(0))
        };
        for who in center.then_some(Who::Center).into_iter().chain((0..edges).map(Who::Syncer)) {
            self.start(who);
        }
    }

    async fn crash(&mut self, who: Who, down_for: Duration) {
        if let Some(running) = self.running.remove(&who) {
            running.crash().await;
        }
        self.still.remove(&who);
        lock(&self.sea).forgets(who);
        self.down.insert(who, Instant::now() + down_for);
    }

    fn stand_still(&mut self, who: Who, time: Duration) {
        if let Some(running) = self.running.get(&who) {
            running.pause.stand_still();
            self.still.insert(who, Instant::now() + time);
        }
    }

    /// Lets processes go on whose time this is.
    fn go_on(&mut self, due: impl Fn(Instant) -> bool) {
        self.still.retain(|who, at| {
            let due = due(*at);
            if due && let Some(running) = self.running.get(who) {
                running.pause.go_on();
            }
            !due
        });
    }

    /// All faults end. What is lost stays lost, and dead streams are found out by their time.
    fn calm(&mut self) {
        self.go_on(|_| true);
        let mut sea = lock(&self.sea);
        sea.noise = 0;
        sea.silent = None;
        for water in &mut sea.waters {
            water.partitioned = false;
            water.stale = 0;
        }
        for bell in &sea.bells {
            bell.ring();
        }
    }

    /// Ends all processes, asks whether everything is as it should be, and gives the slots about which a new process may
    /// decide otherwise: none if all of them may be.
    async fn all_is_well(&mut self) -> Result<Option<BTreeSet<Key>>, String> {
        let mut ended: BTreeMap<Who, Box<dyn Aboard>> = BTreeMap::new();
        for (who, running) in std::mem::take(&mut self.running) {
            if let Some(process) = running.stop().await {
                ended.insert(who, process);
            }
            lock(&self.sea).forgets(who);
        }
        let mut sea = lock(&self.sea);
        sea.report.arrived = arrived(&sea);
        let said = |who: Who, slot: &Key| {
            ended.get(&who).map_or(("nobody carries it".to_owned(), false), |process| why(&**process, slot))
        };
        sea.oracle.converged(&sea, said)?;
        sea.report.unknowable = sea.oracle.unknowable();
        if sea.truth.configuration_lost(None).is_some() || sea.oracle.saw_a_restoring() {
            return Ok(None);
        }
        let open = ended.values().flat_map(|process| {
            let engine = process.engine();
            engine.slots().filter(|slot| engine.verdict(slot) != Some(&Verdict::Settled)).cloned()
        });
        Ok(Some(open.collect()))
    }

    fn no_more_writes(&self, before: u64) -> Result<(), String> {
        let sea = lock(&self.sea);
        let more = sea.oracle.written() - before;
        if more == 0 {
            return Ok(());
        }
        Err(format!(
            "{more} writes in a long quiet time, with nothing left to do; the last: {}",
            sea.oracle.last()
        ))
    }

    fn only_written(&self, open: Option<&BTreeSet<Key>>) -> Result<(), String> {
        let sea = lock(&self.sea);
        let Some(open) = open else { return Ok(()) };
        match sea.oracle.noted().find(|slot| !open.contains(*slot) && !follows(&sea, open, slot)) {
            None => Ok(()),
            Some(slot) => Err(format!(
                "writes in a restart of {slot}, which was as it should be; the last: {}",
                sea.oracle.last()
            )),
        }
    }
}

/// Whether what is written in a slot follows from what a center decides about others that were open: what its syncer may do and
/// is told in the same mailbox, and then the copy at the edge.
fn follows(sea: &Sea, open: &BTreeSet<Key>, slot: &Key) -> bool {
    let edge = sea.truth.edges.iter().find(|edge| {
        edge.cluster == slot.cluster || edge.mailbox.as_ref().is_some_and(|mailbox| *mailbox == slot.cluster)
    });
    let Some(mailbox) = edge.and_then(|edge| edge.mailbox.as_ref()) else { return false };
    let mut there = open.iter().filter(|key| key.cluster == *mailbox);
    if *mailbox == slot.cluster {
        return !kinds::is_cargo(&slot.kind) && there.next().is_some();
    }
    there.any(|key| {
        kinds::natured(&key.kind) == slot.kind && key.namespace == slot.namespace && key.name == slot.name
    })
}

impl Sea {
    /// A workspace that is bound to the edge's kinds.
    fn workspace(&mut self, site: Site) -> Result<ClusterId, Bad> {
        let cluster = self.bare_workspace(&steps::workspace_name(site))?;
        let binding = kinds::key(&cluster, kinds::bindings(), export::BINDING_IN_MAILBOX);
        self.put(&binding, base::binding(export::BINDING_IN_MAILBOX, export::EDGE), &json!({}));
        Ok(cluster)
    }

    fn bare_workspace(&mut self, name: &str) -> Result<ClusterId, Bad> {
        let key = kinds::key(&ClusterId::new("root"), kinds::workspaces(), name);
        self.put(&key, base::workspace_object(name), &json!({}));
        let made = self.get(&key).ok_or("the workspace is not made")?;
        let cluster = made.body()["spec"]["cluster"].as_str().map(ClusterId::new);
        Ok(cluster.ok_or("the workspace is not made")?)
    }

    /// Somebody else offers boats, in a workspace of their own.
    fn offer_boats(&mut self) -> Result<(), Bad> {
        let shipyard = self.bare_workspace(steps::SHIPYARD)?;
        for (kind, object) in kinds::offer() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.put(&kinds::key(&shipyard, kind, &name), object, &json!({}));
        }
        Ok(())
    }

    fn define_boats(&mut self, cluster: &ClusterId) {
        let definition = kinds::key(cluster, kinds::definitions(), "boats.example.dev");
        self.put(&definition, kinds::definition(), &json!({}));
    }

    /// A SyncTarget and its Location; the uid of the first.
    fn inventory_entry(&mut self, inventory: &ClusterId, number: u8) -> Option<String> {
        let name = format!("t{number}");
        let target = kinds::key(inventory, kinds::edge("synctargets"), &name);
        let mut body = base::edge_object("SyncTarget", &name, &json!({}));
        body["metadata"]["labels"] = json!({ "id": name });
        self.put(&target, body, &json!({}));
        let location = kinds::key(inventory, kinds::edge("locations"), &name);
        let spec = json!({
            "resource": { "group": "edge.kubestellar.io", "version": "v2alpha1", "resource": "synctargets" },
            "instanceSelector": { "matchLabels": { "id": name } },
        });
        let mut body = base::edge_object("Location", &name, &spec);
        body["metadata"]["labels"] = json!({ "env": format!("l{}", number % 2) });
        self.put(&location, body, &json!({}));
        self.get(&target).map(|target| target.uid.to_string())
    }

    /// One edge more, with what every cluster has. The boats are known there unless the center brings them.
    fn moor(&mut self, machine: Machine, edge: Edge) {
        let (cluster, defined) = (edge.cluster.clone(), edge.mailbox.is_some());
        self.add(machine);
        self.truth.edges.push(edge);
        let namespace = kinds::key(&cluster, kinds::namespaces(), "default");
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
        self.put(&namespace, body, &json!({}));
        if defined {
            self.define_boats(&cluster);
        }
    }
}

/// What a server's controllers do, a moment after each change.
async fn tidy(sea: Shared, server: usize) {
    let mut bell = lock(&sea).bells[server].listen();
    let mut tidied = lock(&sea).machines[server].version();
    loop {
        bell.hear().await;
        let untidy = {
            let sea = lock(&sea);
            let machine = &sea.machines[server];
            let going = machine.version() < tidied
                || machine.changed_since(tidied).any(|change| change.is_going_or_owned() || change.unmade());
            tidied = machine.version();
            going
        };
        if untidy {
            let after = lock(&sea).draw(2_000);
            sleep(Duration::from_millis(after)).await;
            lock(&sea).tidy(server);
        }
    }
}
