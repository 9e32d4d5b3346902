//! A disk that can be filled, and that can lose its power; and stores whose commits can be counted and kept waiting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use mailboat_machinery::{Change, Random, Seeded};
use mailboat_object::Version;
use redb::StorageBackend;

use crate::storage::disk::initialize;
use crate::storage::{Disk, EachObject, Snapshot, Storage, StorageError};

/// What is on the disk, and what is only on its way there.
#[derive(Clone, Debug)]
pub(super) struct Device(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// What a reader sees: everything that was written.
    present: Vec<u8>,
    /// What survives a power cut for certain.
    synced: Vec<u8>,
    /// What was written since, each of which may survive or not.
    pending: Vec<Write>,
    full: Option<Full>,
    /// How many writes there are until the power goes.
    left: Option<usize>,
    off: bool,
    chance: Seeded,
}

/// When a full disk says that it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Full {
    /// When the file is to grow.
    Growing,
    /// When anything is written.
    Writing,
    /// When what was written is to stay.
    Syncing,
}

#[derive(Debug)]
enum Write {
    At(usize, Vec<u8>),
    Length(usize),
}

impl Write {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::At(at, data) => {
                let end = at + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at..end].copy_from_slice(data);
            }
            Self::Length(length) => bytes.resize(*length, 0),
        }
    }
}

impl Device {
    pub(super) fn new(seed: u64) -> Self {
        let state = State {
            present: Vec::new(),
            synced: Vec::new(),
            pending: Vec::new(),
            full: None,
            left: None,
            off: false,
            chance: Seeded(seed),
        };
        let device = Self(Arc::new(Mutex::new(state)));
        let database = redb::Database::builder().create_with_backend(device.clone()).unwrap();
        initialize(&database, Path::new("device"), |_| Ok(())).unwrap();
        device
    }

    pub(super) fn open(&self) -> Result<Disk, StorageError> {
        let path = PathBuf::from("device");
        let device = self.clone();
        let open = move || {
            redb::Database::builder()
                .create_with_backend(device.clone())
                .map_err(|error| StorageError::of(Path::new("device"), "opened", error))
        };
        Disk::with(path, Box::new(open))
    }

    pub(super) fn fill(&self, full: Full) {
        self.state().full = Some(full);
    }

    pub(super) fn make_room(&self) {
        self.state().full = None;
    }

    /// Makes it what an old version wrote, with a value that was kept.
    pub(super) fn make_old(&self, name: &str, value: &[u8]) {
        let mut disk = self.open().unwrap();
        disk.keep(&[(name, value)]).unwrap();
        disk.write_old_state().unwrap();
    }

    /// Puts other bytes in the place of some, wherever they stand.
    pub(super) fn replace(&self, these: &[u8], others: &[u8]) {
        let mut state = self.state();
        let places: Vec<usize> = (0..state.present.len() - these.len())
            .filter(|at| state.present[*at..].starts_with(these))
            .collect();
        assert!(!places.is_empty(), "they are nowhere");
        for at in places {
            state.present[at..at + others.len()].copy_from_slice(others);
        }
    }

    pub(super) fn cut_after_writes(&self, writes: usize) {
        self.state().left = Some(writes);
    }

    /// After a cut: of what was not synced, chance decides what is there.
    pub(super) fn power_on(&self) {
        let mut state = self.state();
        let mut bytes = state.synced.clone();
        for write in std::mem::take(&mut state.pending) {
            if state.chance.next().is_multiple_of(2) {
                write.apply(&mut bytes);
            }
        }
        state.present.clone_from(&bytes);
        state.synced = bytes;
        state.left = None;
        state.off = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn powered(&mut self) -> io::Result<()> {
        if self.off { Err(io::Error::other("no power")) } else { Ok(()) }
    }

    fn write(&mut self, write: Write) -> io::Result<()> {
        self.powered()?;
        if let Some(left) = &mut self.left {
            if *left == 0 {
                self.off = true;
                return self.powered();
            }
            *left -= 1;
        }
        write.apply(&mut self.present);
        self.pending.push(write);
        Ok(())
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

impl StorageBackend for Device {
    fn len(&self) -> io::Result<u64> {
        let mut state = self.state();
        state.powered()?;
        Ok(u64::try_from(state.present.len()).unwrap())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.state();
        state.powered()?;
        let at = place(offset);
        let bytes = state.present.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        if state.full == Some(Full::Growing) && place(len) > state.present.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.write(Write::Length(place(len)))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        state.powered()?;
        if state.full == Some(Full::Syncing) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.synced = state.present.clone();
        state.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if state.full == Some(Full::Writing) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.write(Write::At(place(offset), data.to_owned()))
    }
}

/// A store to which something happens before each commit.
pub(super) struct BeforeCommits<S, F>(pub(super) S, pub(super) F);

impl<S: Storage, F: Fn() + Send + 'static> Storage for BeforeCommits<S, F> {
    fn load(&mut self, each: &mut EachObject<'_>) -> Result<Version, StorageError> {
        self.0.load(each)
    }

    fn commit(&mut self, changes: &[Arc<Change>]) -> Result<(), StorageError> {
        (self.1)();
        self.0.commit(changes)
    }

    fn version(&self) -> Version {
        self.0.version()
    }

    fn keep(&mut self, values: &[(&str, &[u8])]) -> Result<(), StorageError> {
        self.0.keep(values)
    }

    fn kept(&self, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
        self.0.kept(name)
    }

    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        self.0.snapshot()
    }
}
