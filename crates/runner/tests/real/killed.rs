//! The process that carries is killed at random moments while a thousand objects change, again and again.
//! In the end both sides agree, nothing of others was touched, and one more start writes nothing.

pub(crate) mod carrier;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use mailboat_store::Random;
use mailboat_testkit::{ADMIN, EdgeSpec, World, wait_until};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use carrier::{FROM_VARIABLE, NAMESPACE, SETTLED, TO_VARIABLE};

const OBJECTS: u64 = 1_000;
/// Every so many names are taken at the target by somebody else.
const TAKEN_EVERY: u64 = 40;
/// Writes that a user has under way at once.
const HANDS: usize = 4;
/// How long a carrier lives at most before it is killed; the least is nothing at all.
const LONGEST_LIFE_MILLISECONDS: u64 = 3_000;
/// Within this all is delivered once nobody disturbs any more.
const SETTLE_LIMIT: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_moments_it_loses_nothing_and_touches_nothing_foreign() {
    let world = World::builder()
        .edge_with(EdgeSpec::bare("source"))
        .edge_with(EdgeSpec::bare("target"))
        .start()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let trial = Trial::prepare(&world).await;
    let foreign = trial.foreign().await;

    let (lives, changes) = tokio::join!(trial.kill_again_and_again(), trial.change_all_the_time());
    println!("{changes} changes while the carrier lived {lives} times");
    assert!(lives > 5 && changes > OBJECTS, "{lives} lives, {changes} changes: this tried too little");

    let mut last = trial.launch();
    trial.until_both_agree().await;
    until_it_says_settled(&mut last.output).await;
    last.child.kill().await.unwrap();
    assert_eq!(trial.foreign().await, foreign, "what others put there has changed");

    let before = trial.versions().await;
    let mut again = trial.launch();
    until_it_says_settled(&mut again.output).await;
    again.child.kill().await.unwrap();
    assert_eq!(trial.versions().await, before, "a start with nothing to do has written something");
}

/// Two clusters, and what the trial knows of them.
struct Trial {
    source: Api<ConfigMap>,
    target: Api<ConfigMap>,
    kubeconfigs: [PathBuf; 2],
    length: Duration,
}

/// A carrier in a process of its own, which ends with this value.
struct Carrier {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Trial {
    async fn prepare(world: &World) -> Self {
        let mut sides = Vec::new();
        for name in ["source", "target"] {
            let client = world.edge(name).client(ADMIN).await.unwrap();
            let namespace: Namespace =
                serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).unwrap();
            Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
            sides.push(Api::namespaced(client, NAMESPACE));
        }
        let kubeconfigs = ["source", "target"].map(|name| world.edge(name).kubeconfig(ADMIN).unwrap());
        let target: Api<ConfigMap> = sides.pop().unwrap();
        let source = sides.pop().unwrap();
        let soak = std::env::var_os("MAILBOAT_SOAK").is_some_and(|value| value == "1");
        let length = if soak { Duration::from_mins(10) } else { Duration::from_secs(30) };
        let trial = Self { source, target, kubeconfigs, length };
        for number in (0..OBJECTS).step_by(usize::try_from(TAKEN_EVERY).unwrap()) {
            let taken = map(number, "somebody else's");
            trial.target.create(&PostParams::default(), &taken).await.unwrap();
        }
        let create = |number| {
            let source = trial.source.clone();
            async move { source.create(&PostParams::default(), &map(number, "first")).await }
        };
        stream::iter(0..OBJECTS)
            .map(create)
            .buffer_unordered(16)
            .for_each(|created| async { drop(created.unwrap()) })
            .await;
        trial
    }

    fn launch(&self) -> Carrier {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::carrier::carries_when_asked_to", "--nocapture"])
            .env(FROM_VARIABLE, &self.kubeconfigs[0])
            .env(TO_VARIABLE, &self.kubeconfigs[1])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Carrier { child, output }
    }

    /// Starts a carrier and kills it after a random time, for as long as the trial is; gives how many lived.
    async fn kill_again_and_again(&self) -> u32 {
        let begun = Instant::now();
        let mut random = Random::new(41);
        let mut lives = 0;
        while begun.elapsed() < self.length {
            let mut carrier = self.launch();
            let life = Duration::from_millis(random.draw() % LONGEST_LIFE_MILLISECONDS);
            let ended = tokio::time::timeout(life, carrier.child.wait()).await;
            assert!(ended.is_err(), "the carrier ended by itself: {ended:?}");
            carrier.child.kill().await.unwrap();
            lives += 1;
        }
        lives
    }

    /// Changes, deletes, makes and deselects objects for as long as the trial is; gives how many times.
    async fn change_all_the_time(&self) -> u64 {
        let begun = Instant::now();
        let numbers =
            stream::iter(0_u64..).take_while(|_| futures::future::ready(begun.elapsed() < self.length));
        numbers.map(|number| self.change(number)).buffer_unordered(HANDS).count().await as u64
    }

    /// What was taken away is given back more often than not: were half of all gone between two lives, the breaker
    /// would hold it, as it should.
    async fn change(&self, step: u64) {
        let mut random = Random::new(step);
        let number = random.draw() % OBJECTS;
        let name = name(number);
        let result = match random.draw() % 20 {
            0 => self.source.delete(&name, &DeleteParams::default()).await.map(drop),
            1..=4 => {
                let again = map(number, "made again");
                self.source.create(&PostParams::default(), &again).await.map(drop)
            }
            5 => self.patch(&name, &json!({ "metadata": { "labels": { carrier::LABEL: null } } })).await,
            6..=9 => self.patch(&name, &json!({ "metadata": { "labels": { carrier::LABEL: "yes" } } })).await,
            // A member that comes and goes: what is taken away must go at the other side too.
            10..=11 => self.patch(&name, &json!({ "data": { "extra": null } })).await,
            12..=13 => self.patch(&name, &json!({ "data": { "extra": "here" } })).await,
            _ => self.patch(&name, &json!({ "data": { "text": format!("step {step}") } })).await,
        };
        match result {
            // It is there already, or not there: which, is a matter of chance.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            other => other.unwrap(),
        }
    }

    async fn patch(&self, name: &str, patch: &serde_json::Value) -> kube::Result<()> {
        self.source.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    /// What others put at the target, whole.
    async fn foreign(&self) -> Vec<ConfigMap> {
        let there = self.target.list(&ListParams::default()).await.unwrap().items;
        there.into_iter().filter(is_foreign).collect()
    }

    /// Name and version of everything on both sides.
    async fn versions(&self) -> Vec<(Option<String>, Option<String>)> {
        let mut versions = Vec::new();
        for side in [&self.source, &self.target] {
            let items = side.list(&ListParams::default()).await.unwrap().items;
            versions.extend(items.into_iter().map(|map| (map.metadata.name, map.metadata.resource_version)));
        }
        versions
    }

    async fn until_both_agree(&self) {
        wait_until("both sides to agree", SETTLE_LIMIT, || async {
            let source = self.source.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let target = self.target.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let there: BTreeMap<_, _> = target
                .items
                .iter()
                .filter(|map| !is_foreign(map))
                .map(|map| (&map.metadata.name, &map.data))
                .collect();
            let taken: Vec<_> =
                target.items.iter().filter(|map| is_foreign(map)).map(|map| &map.metadata.name).collect();
            let wanted: BTreeMap<_, _> = source
                .items
                .iter()
                .filter(|map| is_selected(map) && !taken.contains(&&map.metadata.name))
                .map(|map| (&map.metadata.name, &map.data))
                .collect();
            let missing = wanted.iter().filter(|(name, data)| there.get(*name) != Some(data)).count();
            let extra = there.keys().filter(|name| !wanted.contains_key(*name)).count();
            if missing + extra == 0 {
                Ok(())
            } else {
                Err(format!("{missing} of {} not as wanted, {extra} too many", wanted.len()))
            }
        })
        .await
        .unwrap();
    }
}

async fn until_it_says_settled(output: &mut Lines<BufReader<ChildStdout>>) {
    let said = tokio::time::timeout(SETTLE_LIMIT, async {
        while let Some(line) = output.next_line().await.unwrap() {
            if line.ends_with(SETTLED) {
                return true;
            }
        }
        false
    });
    assert!(said.await.expect("it never settled"), "the carrier ended before it had settled");
}

fn name(number: u64) -> String {
    format!("boat-{number}")
}

fn map(number: u64, text: &str) -> ConfigMap {
    let map = json!({
        "metadata": { "name": name(number), "labels": { carrier::LABEL: "yes" } },
        "data": { "text": text },
    });
    serde_json::from_value(map).unwrap()
}

fn is_selected(map: &ConfigMap) -> bool {
    map.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(carrier::LABEL))
}

/// At the target: put there by somebody else. Known by the number, not by marks, which are what is on trial.
fn is_foreign(map: &ConfigMap) -> bool {
    let number =
        map.metadata.name.as_deref().and_then(|name| name.strip_prefix("boat-")?.parse::<u64>().ok());
    number.is_none_or(|number| number % TAKEN_EVERY == 0)
}
