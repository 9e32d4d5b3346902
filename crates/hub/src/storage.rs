//! What the hub keeps: one trait, in memory for tests and on disk by default.
//!
//! The state that requests are answered from lives in a [`Machine`]; storage is a record of it, read once at start.
//! A [`Ledger`] joins the two: changes go to storage in the order in which they were made, many concurrent ones in
//! one commit, and nobody is told of a change, neither who made it nor who watches, before it is on disk. What
//! cannot be stored is taken back and refused.
//!
//! **Never here:** HTTP, a decision about objects.
//!
//! Reading order: [`Storage`], [`Disk`], [`Ledger`], [`restore`].

mod disk;
mod error;
mod ledger;
mod memory;
mod partial;
mod record;
mod restore;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use mailboat_machinery::{Change, Machine, Settings, Stored, Texts};
use mailboat_object::{Key, Version};

pub use disk::Disk;
pub use error::StorageError;
pub use ledger::{Ledger, Refused, Settled};
pub use memory::Memory;
pub use restore::restore;

/// Somewhere to keep what a machine has committed.
///
/// Whatever is committed is there after a crash at any later moment, all of one commit or nothing of it.
pub trait Storage: Send + 'static {
    /// Reads everything back, in the order of keys, and tells the version of the last change. What it reads is
    /// checked: either all of it is what was committed, or it is an error.
    fn load(&mut self, each: &mut EachObject<'_>) -> Result<Version, StorageError>;

    /// Stores changes, in the order of their versions. When this returns, they are durable.
    fn commit(&mut self, changes: &[Arc<Change>]) -> Result<(), StorageError>;

    /// Whether nothing can be stored any more until the storage is opened anew.
    fn is_stopped(&self) -> bool {
        false
    }

    /// The version of the last change that was stored; 0: there was none yet.
    fn version(&self) -> Version;

    /// Stores small values under names of their own, all or none: what the server itself must remember, such as its keys.
    fn keep(&mut self, values: &[(&str, &[u8])]) -> Result<(), StorageError>;

    /// The value under such a name.
    fn kept(&self, name: &str) -> Result<Option<Vec<u8>>, StorageError>;

    /// Is called when nothing was stored for a moment: makes that a crash from now on costs the next start little.
    fn rest(&mut self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Everything as it is now, to be written to a file later, beside further commits.
    fn snapshot(&self) -> Result<Snapshot, StorageError>;
}

/// A value that a storage has kept since its first start. None: this is the first start; later on it cannot be missing, and
/// whoever made a new one in its place would lock everybody out.
pub(crate) fn kept_since_begin(storage: &dyn Storage, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
    match storage.kept(name)? {
        None if storage.version() > Version(0) => Err(StorageError::Lost(name.to_owned())),
        kept => Ok(kept),
    }
}

/// Takes the objects that are read back, one by one, as they were written down.
pub type EachObject<'e> = dyn FnMut(Key, &[u8]) -> Result<(), StorageError> + 'e;

/// A state of the storage that can be written to a file.
pub struct Snapshot(Box<Writing>);

type Writing = dyn FnOnce(&Path) -> Result<(), StorageError> + Send;

impl Snapshot {
    fn new(write: impl FnOnce(&Path) -> Result<(), StorageError> + Send + 'static) -> Self {
        Self(Box::new(write))
    }

    /// Writes it to a file that does not exist yet. A file under this name is complete.
    pub fn write_to(self, file: &Path) -> Result<(), StorageError> {
        (self.0)(file)
    }
}

/// The machine that a storage remembers. It serves no kinds yet.
pub fn load(storage: &mut dyn Storage, settings: Settings) -> Result<Machine, StorageError> {
    let mut texts = Texts::default();
    let flavor = settings.flavor;
    let mut machine = Machine::new(settings);
    let version = storage.load(&mut |key, written| {
        machine.restore(Stored::from_record(key, written, flavor, &mut texts)?);
        Ok(())
    })?;
    machine.restored_at(version);
    Ok(machine)
}
