//! What is acknowledged stays, whatever breaks.

mod asking;
mod backend;
mod health;
mod refused;
mod world;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mailboat_machinery::Seeded;

use super::*;
use backend::{BeforeCommits, Device, Full};
use world::{config_map, delete, key, ledger_on, names, put, serve, settings, values};

fn open(folder: &Path) -> Result<(Machine, Disk), StorageError> {
    let mut disk = Disk::open(folder)?;
    let mut machine = load(&mut disk, settings())?;
    serve(&mut machine);
    Ok((machine, disk))
}

fn ledger(folder: &Path) -> Ledger {
    let (machine, disk) = open(folder).unwrap();
    Ledger::new(machine, disk, |_| {}).unwrap()
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = ledger(folder.path());
    for name in ["a", "b", "c"] {
        put(&first, name, "1").unwrap();
    }
    put(&first, "a", "2").unwrap();
    delete(&first, "b").unwrap();
    let before = first.peek(|machine| (values(machine), machine.version()));
    drop(first);
    let (machine, _disk) = open(folder.path()).unwrap();
    assert_eq!((values(&machine), machine.version()), before);
    assert_eq!(before.0, BTreeMap::from([("a".into(), "2".into()), ("c".into(), "1".into())]));
}

#[test]
fn concurrent_writes_share_commits() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, disk) = open(folder.path()).unwrap();
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    let counting = BeforeCommits(disk, move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let ledger = Ledger::new(machine, counting, |_| {}).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..32 {
            let ledger = &ledger;
            scope.spawn(move || {
                for number in 0..10 {
                    put(ledger, &format!("w{writer}-{number}"), "1").unwrap();
                }
            });
        }
    });
    let commits = commits.load(Ordering::Relaxed);
    assert_eq!(ledger.peek(|machine| values(machine).len()), 320);
    assert!(commits < 200, "320 writes by 32 writers took {commits} commits");
}

#[test]
fn what_is_stored_is_told_while_something_else_is_on_its_way() {
    let gate = Arc::new(Mutex::new(()));
    let mut machine = Machine::new(settings());
    serve(&mut machine);
    let passed = Arc::clone(&gate);
    let gated = BeforeCommits(Memory::default(), move || drop(passed.lock().unwrap()));
    let ledger = Ledger::new(machine, gated, |_| {}).unwrap();
    put(&ledger, "old", "1").unwrap();
    let closed = gate.lock().unwrap();
    let ((), stored) = ledger.write(|machine| config_map(machine, "new", "1"));
    // It would wait for ever, were it to wait.
    let (old, settled) = ledger.read_object(|machine| machine.get(&key("old")));
    settled.wait_blocking().unwrap();
    assert_eq!(old.unwrap().body()["data"]["value"], "1");
    let (new, settled) = ledger.read_object(|machine| machine.get(&key("new")));
    drop(closed);
    settled.wait_blocking().unwrap();
    stored.wait_blocking().unwrap();
    assert!(new.unwrap().version <= ledger.peek(Machine::shown), "it is told when it is stored");
}

#[test]
fn a_second_hub_on_the_same_data_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _first = ledger(folder.path());
    let said = open(folder.path()).err().unwrap().to_string();
    assert!(
        said.ends_with("is in use by another hub: stop that one first, or choose another data folder"),
        "{said}"
    );
}

#[test]
fn a_lost_file_is_not_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    put(&ledger(folder.path()), "a", "1").unwrap();
    let file = folder.path().join(disk::FILE);
    fs::write(&file, b"").unwrap();
    assert!(matches!(open(folder.path()), Err(StorageError::Damaged { .. })));
    fs::remove_file(&file).unwrap();
    assert!(matches!(open(folder.path()), Err(StorageError::Missing { .. })));
    assert!(!file.exists(), "nothing was made in its place");
}

#[test]
fn only_its_owner_may_read_it() {
    let place = tempfile::tempdir().unwrap();
    let (data, backup) = (place.path().join("center/data"), place.path().join("backup"));
    drop(ledger(&data));
    Disk::open(&data).unwrap().snapshot().unwrap().write_to(&backup).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&backup), 0o600);
    // Somebody lays the backup where others may read it: what is made of it is its owner's all the same.
    fs::set_permissions(&backup, fs::Permissions::from_mode(0o644)).unwrap();
    let again = place.path().join("again");
    restore(&backup, &again).unwrap();
    for folder in [&data, &again] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
    // What an earlier hub left open is shut.
    fs::set_permissions(again.join(disk::FILE), fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&again).unwrap());
    assert_eq!(mode(&again.join(disk::FILE)), 0o600);
}

/// Damages a stored file in many ways. What is read is everything, or nothing.
#[test]
fn a_damaged_file_is_refused_or_whole() {
    let folder = tempfile::tempdir().unwrap();
    let first = ledger(folder.path());
    for number in 0..200 {
        put(&first, &format!("object-{number}"), &"x".repeat(400)).unwrap();
    }
    first.keep("key", b"secret").wait_blocking().unwrap();
    let whole = first.peek(values);
    drop(first);
    let file = folder.path().join(disk::FILE);
    let original = fs::read(&file).unwrap();
    // Panics inside of redb on pages that make no sense are expected here, and would fill the output.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut chance = Seeded(7);
    let mut below = |limit: usize| {
        let number = mailboat_machinery::Random::next(&mut chance);
        usize::try_from(number % u64::try_from(limit).unwrap()).unwrap()
    };
    let mut refused = 0;
    let mut wrong = Vec::new();
    for trial in 0..150 {
        let mut bytes = original.clone();
        match trial % 3 {
            0 => {
                let at = below(bytes.len());
                bytes[at] ^= 1 << below(8);
            }
            1 => {
                let at = below(bytes.len() - 512);
                bytes[at..at + 512].fill(0);
            }
            _ => bytes.truncate(below(original.len())),
        }
        fs::write(&file, &bytes).unwrap();
        match open(folder.path()) {
            Ok((machine, disk))
                if values(&machine) == whole
                    && matches!(disk.kept("key"), Ok(Some(key)) if key == b"secret") => {}
            Ok((machine, _)) => wrong.push(format!("{trial}: {} objects", values(&machine).len())),
            Err(StorageError::Damaged { .. }) => refused += 1,
            Err(other) => wrong.push(format!("{trial}: {other}")),
        }
    }
    std::panic::set_hook(hook);
    assert_eq!(wrong, Vec::<String>::new(), "served something else, or refused in another way");
    assert!(refused > 40, "only {refused} of 150 damages were noticed");
}

/// Every bit of every copy of a key and of its name: it is read as it was kept, or refused. Were it missed, a new one would
/// be made in its place, and nobody's credentials would be worth anything.
#[test]
fn a_damaged_key_is_refused_and_never_missing() {
    let folder = tempfile::tempdir().unwrap();
    let first = ledger(folder.path());
    first.keep("the-key-name", b"the-key-itself").wait_blocking().unwrap();
    put(&first, "a", "1").unwrap();
    drop(first);
    let file = folder.path().join(disk::FILE);
    let original = fs::read(&file).unwrap();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (mut refused, mut wrong) = (0, Vec::new());
    for text in [&b"the-key-name"[..], b"the-key-itself"] {
        let places = original.windows(text.len()).enumerate().filter(|(_, bytes)| *bytes == text);
        for (at, bit) in places.flat_map(|(at, _)| (0..text.len() * 8).map(move |bit| (at, bit))) {
            let mut bytes = original.clone();
            bytes[at + bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &bytes).unwrap();
            match open(folder.path()).and_then(|(_, disk)| disk.kept("the-key-name")) {
                Ok(Some(key)) if key == b"the-key-itself" => {}
                Ok(key) => wrong.push(format!("byte {} bit {}: {key:?}", at + bit / 8, bit % 8)),
                Err(StorageError::Damaged { .. }) => refused += 1,
                Err(other) => wrong.push(other.to_string()),
            }
        }
    }
    std::panic::set_hook(hook);
    assert_eq!(wrong, Vec::<String>::new(), "read something else, or refused in another way");
    assert!(refused >= 26 * 8, "only {refused} damages were noticed");
}

#[test]
fn what_was_written_before_there_was_a_digest_of_keys_gets_one() {
    let device = Device::new(3);
    device.make_old("key", b"secret");
    let mut disk = device.open().unwrap();
    assert_eq!(disk.kept("key").unwrap().as_deref(), Some(&b"secret"[..]));
    disk.keep(&[("other", b"value")]).unwrap();
    drop(disk);
    let disk = device.open().unwrap();
    assert_eq!(disk.kept("key").unwrap().as_deref(), Some(&b"secret"[..]));
    drop(disk);
    device.replace(b"secret", b"sEcret");
    assert!(matches!(device.open().err(), Some(StorageError::Damaged { .. })), "from now on it is noticed");
}

#[test]
fn a_storage_that_lost_a_key_is_not_taken_for_a_new_one() {
    use crate::access::{Authority, SigningKey};
    let mut storage = Memory::default();
    let authority = Authority::of(&mut storage, 1_700_000_000).unwrap();
    SigningKey::of(&mut storage).unwrap();
    let change = {
        let mut machine = Machine::new(settings());
        serve(&mut machine);
        machine.keep_changes();
        config_map(&mut machine, "a", "1");
        machine.take_changes()
    };
    storage.commit(&change).unwrap();
    let again = Authority::of(&mut storage, 1_700_000_000).unwrap();
    assert_eq!(again.certificate_pem(), authority.certificate_pem());
    let mut lost = Memory::default();
    lost.commit(&change).unwrap();
    let said = Authority::of(&mut lost, 1_700_000_000).err().unwrap().to_string();
    assert!(said.contains("is missing from its data: restore a backup"), "{said}");
    assert!(SigningKey::of(&mut lost).is_err());
}

/// The disk forgets what was not synced, as after a power cut, at any moment and in any order.
#[test]
fn a_power_cut_loses_no_acknowledged_write() {
    for seed in 0..60 {
        let device = Device::new(seed);
        let ledger = ledger_on(&device);
        let mut acknowledged = BTreeMap::new();
        device.cut_after_writes(5 + usize::try_from(seed).unwrap() * 7);
        for number in 0..60 {
            let name = format!("object-{}", number % 20);
            let value = number.to_string();
            if put(&ledger, &name, &value).is_ok() {
                acknowledged.insert(name, value);
            } else {
                break;
            }
        }
        drop(ledger);
        device.power_on();
        let back = ledger_on(&device).peek(values);
        for (name, value) in &acknowledged {
            // The write that was under way may have come through; nothing else may differ.
            let at_least: u64 = value.parse().unwrap();
            let found: Option<u64> = back.get(name).and_then(|found| found.parse().ok());
            assert!(
                found.is_some_and(|found| found >= at_least),
                "seed {seed}: {name} is {found:?}, not {value}"
            );
        }
    }
}

#[test]
fn a_full_disk_refuses_and_serves_on_and_recovers() {
    // Some file systems say at once that there is no room, some only when something is written, or even when it is synced.
    for full in [Full::Growing, Full::Writing, Full::Syncing] {
        a_disk_that_is_full_when(full);
    }
}

fn a_disk_that_is_full_when(full: Full) {
    let device = Device::new(1);
    let ledger = ledger_on(&device);
    put(&ledger, "a", "1").unwrap();
    device.fill(full);
    let said = put(&ledger, "big", &"x".repeat(1_400_000)).unwrap_err().to_string();
    assert!(said.contains("is full: nothing was stored"), "{said}");
    let said = put(&ledger, "a", &"y".repeat(1_400_000)).unwrap_err().to_string();
    assert!(said.contains("is full: nothing was stored"), "{said}");
    let (seen, settled) = ledger.read(values);
    settled.wait_blocking().unwrap();
    assert_eq!(seen, BTreeMap::from([("a".into(), "1".into())]), "{full:?}: what was refused never was");
    device.make_room();
    put(&ledger, "b", "2").unwrap();
    drop(ledger);
    assert_eq!(names(&ledger_on(&device)), ["a", "b"], "{full:?}");
}

#[test]
fn a_backup_is_one_moment_of_a_running_hub() {
    let folder = tempfile::tempdir().unwrap();
    let running = ledger(&folder.path().join("data"));
    running.keep("key", b"secret").wait_blocking().unwrap();
    put(&running, "a", "1").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let snapshot = runtime.block_on(running.snapshot()).unwrap();
    put(&running, "a", "2").unwrap();
    put(&running, "b", "1").unwrap();
    let backup = folder.path().join("backup");
    snapshot.write_to(&backup).unwrap();
    let again = runtime.block_on(running.snapshot()).unwrap();
    assert!(matches!(again.write_to(&backup), Err(StorageError::Exists(_))));
    let version = running.peek(Machine::version);

    let other = folder.path().join("other");
    restore(&backup, &other).unwrap();
    let (machine, disk) = open(&other).unwrap();
    assert_eq!(values(&machine), BTreeMap::from([("a".into(), "1".into())]));
    assert_eq!(disk.kept("key").unwrap().as_deref(), Some(&b"secret"[..]));
    assert!(machine.version() > version, "versions after the backup are not used again");
    assert!(matches!(restore(&backup, &other), Err(StorageError::Exists(_))));

    let mut damaged = fs::read(&backup).unwrap();
    let half = damaged.len() / 2;
    damaged.truncate(half);
    fs::write(folder.path().join("half"), damaged).unwrap();
    let third = folder.path().join("third");
    let said = restore(&folder.path().join("half"), &third).unwrap_err().to_string();
    assert!(said.contains("half is damaged"), "{said}");
    assert!(!third.join(disk::FILE).exists(), "nothing half-done");
}

#[test]
fn watchers_are_told_after_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, disk) = open(folder.path()).unwrap();
    let (hear, heard) = std::sync::mpsc::channel();
    let ledger = Ledger::new(machine, disk, move |changes| {
        hear.send(changes.last().map(|change| change.version)).unwrap();
    })
    .unwrap();
    let shown = ledger.shown();
    let ((), settled) = ledger.write(|machine| config_map(machine, "a", "1"));
    let version = ledger.peek(Machine::version);
    settled.wait_blocking().unwrap();
    assert_eq!(heard.try_recv().unwrap(), Some(version), "heard before it was answered");
    assert_eq!(*shown.borrow(), version);
    assert_eq!(ledger.peek(Machine::shown), version);
    assert!(ledger.peek(|machine| machine.get(&key("a")).is_ok()));
}

#[test]
fn a_storage_that_rests_is_opened_after_a_crash_without_going_through_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(super::disk::FILE);
    let (mut machine, mut disk) = open(folder.path()).unwrap();
    machine.keep_changes();
    let goes_through = |name: &str| {
        // As a crash at this moment would leave it.
        let copy = folder.path().join(name);
        fs::copy(&file, &copy).unwrap();
        let found = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&found);
        let mut builder = redb::Database::builder();
        builder.set_repair_callback(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        builder.open(&copy).unwrap();
        found.load(Ordering::Relaxed) > 0
    };
    disk.keep(&[("some", b"thing")]).unwrap();
    assert!(goes_through("stirred"), "this test looks at the wrong thing");
    disk.rest().unwrap();
    assert!(!goes_through("resting"));
    disk.rest().unwrap();
    assert!(!goes_through("resting-still"));
}
