//! Storage in one file, by redb.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use mailboat_machinery::{Change, Stored};
use mailboat_object::{Key, Version};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition};

use super::partial::{self, exists, sync_folder};
use super::record::{FORMAT, State, decode_key, digest_kept, encode_key};
use super::{EachObject, Snapshot, Storage, StorageError};
use crate::private;

/// The file of the data folder that holds everything.
pub(super) const FILE: &str = "hub.redb";
/// Says that the folder belongs to a hub, even if that file is gone.
const MARKER: &str = "hub.format";
/// Objects are read once, at start; afterwards only the pages on the way to a change are looked at.
const CACHE_BYTES: usize = 8 << 20;
/// How much is handed over at once at the start, and how many such batches may wait.
const BATCH_BYTES: usize = 256 << 10;
const BATCHES_AHEAD: usize = 8;

const OBJECTS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("objects");
const KEPT: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("kept");
const STATE: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("state");
const STATE_KEY: &str = "state";

/// Storage in one file, which belongs to one process at a time.
pub struct Disk {
    path: PathBuf,
    open: Open,
    state: State,
    /// Something was written since the file was last left so that it is opened quickly after a crash.
    stirred: bool,
    open_again: Box<dyn Fn() -> Result<Database, StorageError> + Send>,
}

enum Open {
    Yes(Database),
    /// A write found the disk full. The next one tries anew.
    Full,
    /// A write failed in a way that leaves open what is on the disk.
    Stopped(String),
}

impl Disk {
    /// Opens the storage of a data folder. A new one is made only where no hub has been: a lost or damaged file is
    /// refused, never taken for an empty one.
    pub fn open(folder: &Path) -> Result<Self, StorageError> {
        let path = folder.join(FILE);
        let marker = folder.join(MARKER);
        if !exists(&path)? {
            if exists(&marker)? {
                return Err(StorageError::Missing { path, folder: folder.to_owned() });
            }
            private::folder(folder).map_err(|error| StorageError::file(folder, "made", error))?;
            create(&path, |_| Ok(()))?;
        }
        if !exists(&marker)? {
            write_marker(&marker)?;
        }
        // Where it belongs to another user, it is his to say who reads it.
        let _ = private::shut(&path);
        let again = path.clone();
        Self::with(path, Box::new(move || open_file(&again)))
    }

    /// Opens the storage of a folder that a hub has used; where none has, nothing is made.
    pub fn open_present(folder: &Path) -> Result<Self, StorageError> {
        let path = folder.join(FILE);
        if exists(&path)? {
            return Self::open(folder);
        }
        Err(StorageError::file(&path, "opened", std::io::Error::other("there is no data of a hub")))
    }

    /// Opens a storage that is given by how to open its database.
    pub(super) fn with(
        path: PathBuf,
        open_again: Box<dyn Fn() -> Result<Database, StorageError> + Send>,
    ) -> Result<Self, StorageError> {
        let database = open_again()?;
        let state = guarded(&path, || read_state(&database, &path))?;
        // A file that was left in the middle of something was put right as it was opened, which it does not remember.
        Ok(Self { path, open: Open::Yes(database), state, stirred: true, open_again })
    }

    /// The file that holds everything.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the version jump, so that whoever remembers later versions of a past that is no more sees no version twice.
    pub(super) fn skip_versions(&mut self, count: u64) -> Result<(), StorageError> {
        let version = Version(self.state.version.0.saturating_add(count));
        let state = State { format: FORMAT, version, ..self.state };
        self.write(|path, transaction| write_state(path, transaction, state))?;
        self.state = state;
        Ok(())
    }

    /// Writes the state as versions did that knew no digest of what is kept.
    #[cfg(test)]
    pub(super) fn write_old_state(&mut self) -> Result<(), StorageError> {
        let state = State { format: 2, kept: None, ..self.state };
        self.write(|path, transaction| write_state(path, transaction, state))
    }

    fn database(&self) -> Result<&Database, StorageError> {
        match &self.open {
            Open::Yes(database) => Ok(database),
            Open::Full => Err(StorageError::Full(self.path.clone())),
            Open::Stopped(why) => Err(StorageError::Stopped { path: self.path.clone(), why: why.clone() }),
        }
    }

    /// Everything that is kept beside the objects, as it was written.
    fn all_kept(&self) -> Result<BTreeMap<String, Vec<u8>>, StorageError> {
        let path = &self.path;
        let database = self.database()?;
        let kept = guarded(path, || {
            let transaction = database.begin_read().map_err(|error| StorageError::of(path, "read", error))?;
            kept_of(&transaction, path)
        })?;
        if self.state.kept.is_some_and(|known| known != digest_kept(&kept)) {
            return Err(StorageError::damaged(path, "the hub's own keys are not as they were written"));
        }
        Ok(kept)
    }

    /// After a full disk: opens again what the failed write left, which must be the state before it.
    fn recover(&mut self) -> Result<(), StorageError> {
        if !matches!(self.open, Open::Full) {
            return Ok(());
        }
        let database = (self.open_again)()?;
        if guarded(&self.path, || read_state(&database, &self.path))? == self.state {
            self.open = Open::Yes(database);
        } else {
            self.open = Open::Stopped("the disk was full".to_owned());
        }
        Ok(())
    }

    /// One durable transaction. A failed one closes the database: redb does not go on after a failed write, and what
    /// a failed sync left behind only a new look at the file can tell.
    fn write(
        &mut self,
        act: impl FnOnce(&Path, &redb::WriteTransaction) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.stirred = true;
        self.write_as(false, act)
    }

    /// The same; with a map of the file beside it, if asked for, which spares the next start after a crash going through
    /// all of it twice.
    fn write_as(
        &mut self,
        with_map: bool,
        act: impl FnOnce(&Path, &redb::WriteTransaction) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.recover()?;
        let path = self.path.clone();
        let database = self.database()?;
        let written = guarded(&path, || {
            let mut transaction =
                database.begin_write().map_err(|error| StorageError::of(&path, "written", error))?;
            transaction.set_quick_repair(with_map);
            act(&path, &transaction)?;
            transaction.commit().map_err(|error| StorageError::of(&path, "written", error))
        });
        match &written {
            Ok(()) => {}
            Err(StorageError::Full(_)) => self.open = Open::Full,
            Err(error) => self.open = Open::Stopped(error.to_string()),
        }
        written
    }
}

impl Storage for Disk {
    /// One thread reads and checks, another makes objects of what was read: a start is mostly this.
    fn load(&mut self, each: &mut EachObject<'_>) -> Result<Version, StorageError> {
        let path = &self.path;
        let database = self.database()?;
        let mut take = |key: &[u8], written: &[u8]| match each(decode_key(key, path)?, written) {
            Err(StorageError::Object(bad)) => Err(StorageError::damaged(path, bad.to_string())),
            taken => taken,
        };
        thread::scope(|scope| {
            let (batches, received) = mpsc::sync_channel(BATCHES_AHEAD);
            let read = move || guarded(path, || read_ahead(database, path, &batches));
            let reader = thread::Builder::new()
                .name("load".to_owned())
                .spawn_scoped(scope, read)
                .map_err(|error| StorageError::file(path, "read", error))?;
            let taken = received.iter().try_for_each(|batch: Batch| batch.each(&mut take));
            // A reader that nobody listens to ends.
            drop(received);
            let read =
                reader.join().unwrap_or_else(|_| Err(StorageError::damaged(path, "its pages make no sense")));
            taken.and(read)
        })?;
        Ok(self.state.version)
    }

    fn commit(&mut self, changes: &[Arc<Change>]) -> Result<(), StorageError> {
        let Some(last) = changes.last() else { return Ok(()) };
        let mut state = State { format: FORMAT, version: last.version, ..self.state };
        // Of several changes of one object in one commit, the last is the state after it.
        let latest: BTreeMap<&Key, Option<Arc<Stored>>> =
            changes.iter().map(|change| (&change.key, change.after())).collect();
        self.write(|path, transaction| {
            let fail = |error: redb::StorageError| StorageError::of(path, "written", error);
            let mut objects =
                transaction.open_table(OBJECTS).map_err(|error| StorageError::of(path, "written", error))?;
            for (key, object) in latest {
                let key = encode_key(key);
                let (written, former) = match object {
                    Some(object) => {
                        let written = object.to_record();
                        let former = objects.insert(&key[..], &written[..]).map_err(fail)?;
                        (Some(written), former.map(|former| former.value().to_vec()))
                    }
                    None => {
                        (None, objects.remove(&key[..]).map_err(fail)?.map(|former| former.value().to_vec()))
                    }
                };
                if let Some(former) = former {
                    state.remove(&key, &former);
                }
                if let Some(written) = written {
                    state.add(&key, &written);
                }
            }
            drop(objects);
            write_state(path, transaction, state)
        })?;
        self.state = state;
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        matches!(self.open, Open::Stopped(_))
    }

    fn version(&self) -> Version {
        self.state.version
    }

    fn keep(&mut self, values: &[(&str, &[u8])]) -> Result<(), StorageError> {
        self.recover()?;
        let mut all = self.all_kept()?;
        all.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let state = State { format: FORMAT, kept: Some(digest_kept(&all)), ..self.state };
        self.write(|path, transaction| {
            let mut kept =
                transaction.open_table(KEPT).map_err(|error| StorageError::of(path, "written", error))?;
            for (name, value) in values {
                kept.insert(*name, *value).map_err(|error| StorageError::of(path, "written", error))?;
            }
            drop(kept);
            write_state(path, transaction, state)
        })?;
        self.state = state;
        Ok(())
    }

    fn kept(&self, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.all_kept()?.remove(name))
    }

    fn rest(&mut self) -> Result<(), StorageError> {
        if !self.stirred {
            return Ok(());
        }
        let state = self.state;
        self.write_as(true, |path, transaction| write_state(path, transaction, state))?;
        self.stirred = false;
        Ok(())
    }

    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        let path = self.path.clone();
        let state = self.state;
        let transaction =
            self.database()?.begin_read().map_err(|error| StorageError::of(&path, "read", error))?;
        Ok(Snapshot::new(move |file| write_snapshot(&transaction, state, &path, file)))
    }
}

/// Copies everything that a transaction sees into a new file.
fn write_snapshot(
    from: &ReadTransaction,
    state: State,
    path: &Path,
    file: &Path,
) -> Result<(), StorageError> {
    if exists(file)? {
        return Err(StorageError::Exists(file.to_owned()));
    }
    create(file, |to| {
        let fail = |error: redb::StorageError| StorageError::of(file, "written", error);
        let mut objects = to.open_table(OBJECTS).map_err(|error| StorageError::of(file, "written", error))?;
        each_record(from, path, |key, written| objects.insert(key, written).map(|_| ()).map_err(fail))?;
        let mut kept = to.open_table(KEPT).map_err(|error| StorageError::of(file, "written", error))?;
        for (name, value) in kept_of(from, path)? {
            kept.insert(&*name, &*value).map_err(fail)?;
        }
        drop((objects, kept));
        write_state(file, to, State { format: FORMAT, ..state })
    })
}

/// Records that were read and not yet looked into.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each key and each object ends.
    ends: Vec<(usize, usize)>,
}

impl Batch {
    fn push(&mut self, key: &[u8], written: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(written);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn each(
        &self,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let mut start = 0;
        for (key_end, end) in &self.ends {
            take(&self.bytes[start..*key_end], &self.bytes[*key_end..*end])?;
            start = *end;
        }
        Ok(())
    }
}

/// Reads everything, checks it, and hands it over in batches, as long as somebody takes them.
fn read_ahead(database: &Database, path: &Path, batches: &SyncSender<Batch>) -> Result<(), StorageError> {
    let transaction = database.begin_read().map_err(|error| StorageError::of(path, "read", error))?;
    let mut batch = Batch::default();
    let mut heard = true;
    each_record(&transaction, path, |key, written| {
        batch.push(key, written);
        if heard && batch.bytes.len() >= BATCH_BYTES {
            heard = batches.send(std::mem::take(&mut batch)).is_ok();
        }
        if !heard {
            batch = Batch::default();
        }
        Ok(())
    })?;
    if heard {
        // Whoever does not take it has refused something before.
        let _ = batches.send(batch);
    }
    Ok(())
}

/// Reads all records of a transaction and checks that they are all there as they were written.
fn each_record(
    transaction: &ReadTransaction,
    path: &Path,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let fail = |error: redb::StorageError| StorageError::of(path, "read", error);
    let expected = state_of(transaction, path)?;
    let objects = transaction.open_table(OBJECTS).map_err(|error| StorageError::of(path, "read", error))?;
    let mut found = State { count: 0, digest: 0, ..expected };
    for entry in objects.iter().map_err(fail)? {
        let (key, written) = entry.map_err(fail)?;
        found.add(key.value(), written.value());
        each(key.value(), written.value())?;
    }
    if found != expected {
        let what = format!("{} objects are read where {} were written", found.count, expected.count);
        let what =
            if found.count == expected.count { "objects are not as they were written".into() } else { what };
        return Err(StorageError::damaged(path, what));
    }
    Ok(())
}

fn read_state(database: &Database, path: &Path) -> Result<State, StorageError> {
    let transaction = database.begin_read().map_err(|error| StorageError::of(path, "read", error))?;
    state_of(&transaction, path)
}

/// The state, and that what is kept beside the objects is as it was written. In a file of an old format, that is not known,
/// and from now on it is.
fn state_of(transaction: &ReadTransaction, path: &Path) -> Result<State, StorageError> {
    let state = written_state(transaction, path)?;
    let found = digest_kept(&kept_of(transaction, path)?);
    if state.kept.is_some_and(|kept| kept != found) {
        return Err(StorageError::damaged(path, "the hub's own keys are not as they were written"));
    }
    Ok(State { kept: Some(found), ..state })
}

/// Everything that is kept beside the objects: a few small values.
fn kept_of(transaction: &ReadTransaction, path: &Path) -> Result<BTreeMap<String, Vec<u8>>, StorageError> {
    let fail = |error: redb::StorageError| StorageError::of(path, "read", error);
    let table = transaction.open_table(KEPT).map_err(|error| StorageError::of(path, "read", error))?;
    let mut kept = BTreeMap::new();
    for entry in table.iter().map_err(fail)? {
        let (name, value) = entry.map_err(fail)?;
        kept.insert(name.value().to_owned(), value.value().to_vec());
    }
    Ok(kept)
}

fn written_state(transaction: &ReadTransaction, path: &Path) -> Result<State, StorageError> {
    let table = transaction.open_table(STATE).map_err(|error| StorageError::of(path, "read", error))?;
    let state = table.get(STATE_KEY).map_err(|error| StorageError::of(path, "read", error))?;
    let state = state.ok_or_else(|| StorageError::damaged(path, "it has no state"))?;
    State::from_bytes(state.value(), path)
}

fn write_state(path: &Path, transaction: &redb::WriteTransaction, state: State) -> Result<(), StorageError> {
    let mut table =
        transaction.open_table(STATE).map_err(|error| StorageError::of(path, "written", error))?;
    let bytes = state.to_bytes();
    table.insert(STATE_KEY, &bytes[..]).map_err(|error| StorageError::of(path, "written", error))?;
    Ok(())
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Makes a complete file with all that is filled in.
fn create(
    path: &Path,
    fill: impl FnOnce(&redb::WriteTransaction) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    partial::create(path, |partial, backend| {
        let made = builder().create_with_backend(backend);
        initialize(&made.map_err(|error| StorageError::of(partial, "made", error))?, partial, fill)
    })
}

/// Writes the tables, and whatever else belongs into the first commit.
pub(super) fn initialize(
    database: &Database,
    path: &Path,
    fill: impl FnOnce(&redb::WriteTransaction) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let transaction = database.begin_write().map_err(|error| StorageError::of(path, "made", error))?;
    transaction.open_table(OBJECTS).map_err(|error| StorageError::of(path, "made", error))?;
    transaction.open_table(KEPT).map_err(|error| StorageError::of(path, "made", error))?;
    write_state(path, &transaction, State::empty())?;
    fill(&transaction)?;
    transaction.commit().map_err(|error| StorageError::of(path, "made", error))
}

fn open_file(path: &Path) -> Result<Database, StorageError> {
    let length = fs::metadata(path).map_err(|error| StorageError::file(path, "opened", error))?.len();
    if length == 0 {
        // redb takes an empty file for a new one.
        return Err(StorageError::damaged(path, "it is empty"));
    }
    guarded(path, || builder().open(path).map_err(|error| StorageError::of(path, "opened", error)))
}

/// Runs what reads the file's pages: on pages that make no sense, redb may panic instead of answering.
fn guarded<T>(path: &Path, act: impl FnOnce() -> Result<T, StorageError>) -> Result<T, StorageError> {
    catch_unwind(AssertUnwindSafe(act))
        .unwrap_or_else(|_| Err(StorageError::damaged(path, "its pages make no sense")))
}

fn write_marker(marker: &Path) -> Result<(), StorageError> {
    let fail = |error| StorageError::file(marker, "written", error);
    let mut file = private::file(marker).map_err(fail)?;
    file.write_all(b"This folder belongs to `mailboat hub`. Its data is in hub.redb.\n").map_err(fail)?;
    file.sync_all().map_err(fail)?;
    sync_folder(marker)
}
