//! Storage that ends with the process, for tests and trials.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mailboat_machinery::Change;
use mailboat_object::{Key, Version};

use super::{EachObject, Snapshot, Storage, StorageError};

/// Storage in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    objects: BTreeMap<Key, Vec<u8>>,
    kept: BTreeMap<String, Vec<u8>>,
    version: Version,
}

impl Storage for Memory {
    fn load(&mut self, each: &mut EachObject<'_>) -> Result<Version, StorageError> {
        for (key, written) in &self.objects {
            each(key.clone(), written)?;
        }
        Ok(self.version)
    }

    fn commit(&mut self, changes: &[Arc<Change>]) -> Result<(), StorageError> {
        for change in changes {
            match change.after() {
                Some(object) => self.objects.insert(change.key.clone(), object.to_record()),
                None => self.objects.remove(&change.key),
            };
            self.version = change.version;
        }
        Ok(())
    }

    fn version(&self) -> Version {
        self.version
    }

    fn keep(&mut self, values: &[(&str, &[u8])]) -> Result<(), StorageError> {
        self.kept.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Ok(())
    }

    fn kept(&self, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
        Ok(self.kept.get(name).cloned())
    }

    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        Ok(Snapshot::new(|file: &Path| {
            let source = std::io::Error::other("this hub keeps everything in memory alone");
            Err(StorageError::file(file, "written", source))
        }))
    }
}
