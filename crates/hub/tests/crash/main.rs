//! A hub that is killed at any moment loses nothing that it acknowledged.
//!
//! The test runs itself as a child that writes and says what was acknowledged, kills it (SIGKILL, so that nothing is
//! tidied up), and looks at what is there. `MAILBOAT_SOAK` makes it ten times longer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use mailboat_hub::storage::{Disk, Ledger, StorageError, load};
use mailboat_machinery::{
    DeleteOptions, Kind, Machine, Moment, Origin, Patch, Random, Rules, Schema, Seeded, Settings,
    WriteOptions,
};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::json;

/// Tells the child that it is one, and where the data is.
const FOLDER: &str = "MAILBOAT_TEST_CRASH_FOLDER";
const KILLS: u64 = 200;
const WRITERS: u64 = 4;
/// How many objects each writer changes in turn; every eleventh act deletes.
const OBJECTS: u64 = 7;

fn key(name: &str) -> Key {
    Key {
        cluster: ClusterId::new("guilder"),
        kind: KindId::new("", "configmaps"),
        namespace: Name::new("default"),
        name: Name::new(name),
    }
}

fn open(folder: &Path) -> Result<(Machine, Disk), StorageError> {
    let mut disk = Disk::open(folder)?;
    let mut machine = load(&mut disk, Settings::default())?;
    let versions = [("v1", Schema::permissive())];
    let kind = Kind::new(key("").kind, "ConfigMap", true, versions, Origin::Custom, Rules::custom());
    machine.serve(&key("").cluster, [Arc::new(kind)]);
    Ok((machine, disk))
}

/// What stands under a name: a number, or none.
fn number(machine: &Machine, name: &str) -> Option<u64> {
    machine.get(&key(name)).ok()?.body()["data"]["number"].as_str()?.parse().ok()
}

/// Writes until it is killed. `start NAME NUMBER` says what is tried, `done NAME NUMBER` what was acknowledged.
fn write_until_killed(folder: &Path) {
    let (machine, disk) = open(folder).unwrap();
    let ledger = Ledger::new(machine, disk, |_| {}).unwrap();
    let say = |word: &str, name: &str, number: u64| {
        let line = format!("{word} {name} {number}\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    };
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (ledger, say) = (&ledger, &say);
            let first = ledger.peek(|machine| machine.version().0) * 1000;
            scope.spawn(move || {
                for act in first.. {
                    let name = format!("w{writer}-{}", act % OBJECTS);
                    say("start", &name, act);
                    let ((), settled) = ledger.write(|machine| write(machine, &name, act));
                    settled.wait_blocking().unwrap();
                    say("done", &name, act);
                }
            });
        }
    });
}

fn write(machine: &mut Machine, name: &str, act: u64) {
    let mut random = Seeded(act);
    let mut moment = Moment { now_seconds: 1_700_000_000, random: &mut random };
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "number": act.to_string(), "filling": "x".repeat(600) },
    });
    let options = WriteOptions::default();
    let there = machine.get(&key(name)).is_ok();
    if act.is_multiple_of(11) {
        let _ = machine.delete(&key(name), &DeleteOptions::default(), &mut moment);
    } else if there {
        machine.patch(&key(name), Patch::Merge(&body), &options, &mut moment).unwrap();
    } else {
        machine.create(&key(""), body, &options, &mut moment).unwrap();
    }
}

/// What an act leaves: a deletion leaves none.
fn left_by(act: u64) -> Option<u64> {
    Some(act).filter(|act| !act.is_multiple_of(11))
}

#[test]
fn a_killed_hub_loses_no_acknowledged_write() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        write_until_killed(Path::new(&folder));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kills = if std::env::var_os("MAILBOAT_SOAK").is_some() { KILLS * 10 } else { KILLS };
    let mut chance = Seeded(3);
    let mut expected: BTreeMap<String, Option<u64>> = BTreeMap::new();
    let (mut acknowledged, mut last_version) = (0_u64, 0);
    for kill in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_killed_hub_loses_no_acknowledged_write", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut tried: BTreeMap<String, u64> = BTreeMap::new();
        let mut take = |line: &str, expected: &mut BTreeMap<String, Option<u64>>| {
            let words: Vec<&str> = line.split(' ').collect();
            let [word @ ("start" | "done"), name, act] = words[..] else { return };
            let act: u64 = act.parse().unwrap();
            if word == "start" {
                tried.insert(name.to_owned(), act);
            } else {
                tried.remove(name);
                expected.insert(name.to_owned(), left_by(act));
                acknowledged += 1;
            }
        };
        // It lives for so many lines, however fast the machine is, and then dies in the middle of whatever it does.
        let life = usize::try_from(1 + chance.next() % 60).unwrap();
        for line in lines.by_ref().map_while(Result::ok).take(life) {
            take(&line, &mut expected);
        }
        if kill == 0 {
            let said = open(folder.path()).err().expect("another process has it open").to_string();
            assert!(said.contains("is in use by another hub"), "{said}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            take(&line, &mut expected);
        }
        let (machine, disk) = open(folder.path()).unwrap();
        drop(disk);
        for (name, want) in &mut expected {
            let found = number(&machine, name);
            // A write that was under way may have come through.
            let may_be = tried.get(name).map(|act| left_by(*act));
            assert!(
                found == *want || may_be == Some(found),
                "kill {kill}: {name} is {found:?}, acknowledged {want:?}, tried {may_be:?}"
            );
            *want = found;
        }
        assert!(machine.version().0 >= last_version, "kill {kill}: versions went back");
        last_version = machine.version().0;
    }
    println!("{kills} kills, {acknowledged} acknowledged writes, none lost");
    assert!(acknowledged > kills, "only {acknowledged} writes were acknowledged in {kills} lives");
}
