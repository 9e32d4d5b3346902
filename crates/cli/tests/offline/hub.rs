//! `mailboat hub` as a process, over HTTP: what it acknowledged is there, whatever becomes of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};

/// How long a start may take on a machine that has other things to do.
const LIMIT: Duration = Duration::from_mins(1);

/// A hub that runs. It is killed with this value.
struct Hub {
    _process: Process,
    maps: Api<ConfigMap>,
}

pub(crate) struct Process(Child);

impl Hub {
    /// Starts one on the data of a folder, whose files may have so many KiB.
    async fn start(folder: &Path, file_kib: Option<u32>) -> Self {
        let words = ["hub", "--mode", "cluster", "--data", "data", "--listen", "127.0.0.1:0"];
        let process = started(folder, &words, file_kib).await;
        let admin = Kubeconfig::read_from(folder.join("data/admin.kubeconfig")).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        let maps = Api::namespaced(kube::Client::try_from(config).unwrap(), "default");
        Self { _process: process, maps }
    }

    /// The names of all that is there, and how long their texts are.
    async fn lengths(&self) -> BTreeMap<String, usize> {
        let list = self.maps.list(&kube::api::ListParams::default()).await.unwrap();
        let length =
            |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("text")).map_or(0, String::len);
        let named = list.items.iter().map(|map| (map.metadata.name.clone().unwrap(), length(map)));
        named.filter(|(name, _)| name.starts_with("map-")).collect()
    }
}

/// Starts a hub in a folder, and waits until it is ready.
pub(crate) async fn started(folder: &Path, words: &[&str], file_kib: Option<u32>) -> Process {
    let said = folder.join("said");
    let out = std::fs::File::create(&said).unwrap();
    // Whoever writes more is told so, and not killed.
    let limit = file_kib.map(|kib| format!("trap '' XFSZ; ulimit -f {kib}; ")).unwrap_or_default();
    let child = Command::new("bash")
        .args(["-c", &format!(r#"{limit}exec "$0" "$@""#), env!("CARGO_BIN_EXE_mailboat")])
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(out.try_clone().unwrap())
        .stdout(out)
        .spawn()
        .unwrap();
    let mut process = Process(child);
    let read = || std::fs::read_to_string(&said).unwrap();
    let end = Instant::now() + LIMIT;
    while !read().contains("the hub is ready") {
        assert!(process.0.try_wait().unwrap().is_none(), "it ended:\n{}", read());
        assert!(Instant::now() < end, "it takes too long:\n{}", read());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    process
}

impl Drop for Process {
    /// SIGKILL, so that nothing is tidied up.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes a ConfigMap with a text of this length.
async fn create(maps: &Api<ConfigMap>, name: &str, length: usize) -> Result<ConfigMap, kube::Error> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.data = Some(BTreeMap::from([("text".to_owned(), "x".repeat(length))]));
    maps.create(&PostParams::default(), &map).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_and_loses_nothing_that_was_acknowledged() {
    const LENGTH: usize = 400_000;
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), Some(8 * 1024)).await;
    let mut acknowledged = BTreeMap::new();
    let refused = loop {
        let name = format!("map-{}", acknowledged.len());
        match create(&hub.maps, &name, LENGTH).await {
            Ok(_) => acknowledged.insert(name, LENGTH),
            Err(refused) => break refused,
        };
        assert!(acknowledged.len() < 100, "8 MiB take no 40 MB");
    };
    let kube::Error::Api(status) = &refused else { panic!("{refused:?}") };
    assert_eq!(status.code, 500, "{status:?}");
    assert!(
        status.message.contains("is full: nothing was stored; free some space and try again"),
        "{status:?}"
    );
    assert!(!acknowledged.is_empty(), "{status:?}");
    assert_eq!(hub.lengths().await, acknowledged, "it serves on, and what was refused is not there");
    drop(hub);
    let hub = Hub::start(folder.path(), None).await;
    assert_eq!(hub.lengths().await, acknowledged);
    create(&hub.maps, "map-later", 1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_served_hub_that_is_killed_loses_nothing_that_was_acknowledged() {
    const LIVES: usize = 5;
    const WRITERS: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    let mut tried = acknowledged.clone();
    for life in 0..LIVES {
        let hub = Hub::start(folder.path(), None).await;
        let found = hub.lengths().await;
        for (name, length) in &acknowledged {
            assert_eq!(found.get(name), Some(length), "life {life}: {name}");
        }
        // A write that was under way may have come through, and nothing else.
        assert!(found.iter().all(|(name, length)| tried.get(name) == Some(length)), "life {life}: {found:?}");
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let write = |writer: usize| {
            let (told, maps) = (told.clone(), hub.maps.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    let (name, length) = (format!("map-{life}-{writer}-{number}"), 100 + number);
                    let _ = told.send((name.clone(), length, false));
                    if create(&maps, &name, length).await.is_err() {
                        return;
                    }
                    let _ = told.send((name, length, true));
                }
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        drop(told);
        // It dies in the middle of whatever it does.
        let mut left = 20 + 13 * life;
        let mut hub = Some(hub);
        while let Some((name, length, done)) = heard.recv().await {
            if !done {
                tried.insert(name, length);
                continue;
            }
            acknowledged.insert(name, length);
            left = left.saturating_sub(1);
            if left == 0
                && let Some(hub) = hub.take()
            {
                drop(hub);
            }
        }
        for writer in writers {
            writer.await.unwrap();
        }
    }
    assert!(acknowledged.len() >= 20 * LIVES, "only {} were acknowledged", acknowledged.len());
    let found = Hub::start(folder.path(), None).await.lengths().await;
    assert!(acknowledged.iter().all(|(name, length)| found.get(name) == Some(length)), "{found:?}");
}
