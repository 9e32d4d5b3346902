//! How the owner of a hub's data speaks to the hub while it serves: a socket in the data folder, which others cannot
//! open. No user of the API, whatever his rights, gets at all of its data.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::storage::{Disk, Storage as _, StorageError};
use crate::{Hub, private};

/// The socket in a data folder, in a folder of its own: the data folder may be one that others look into, and a socket can be
/// opened before its mode is set.
const SOCKET: &str = "control/socket";
/// What is answered when a backup is complete.
const DONE: &str = "done";
/// The longest path of a backup.
const REQUEST_LIMIT_BYTES: u64 = 4096;
/// How long somebody may take to say what he wants.
const ASKED_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The data cannot be read, or the backup not be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The hub that serves the data says why.
    #[error("{0}")]
    Refused(String),
    /// That hub does not answer.
    #[error("the hub that serves {} does not answer: {source}", folder.display())]
    Silent {
        /// The data folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Writes everything that a data folder holds to a new file, which is complete once it is there. A hub that serves the
/// folder is asked to do it, and goes on serving.
pub async fn backup(folder: &Path, file: &Path) -> Result<(), BackupError> {
    let file = std::path::absolute(file).map_err(|error| StorageError::file(file, "written", error))?;
    match UnixStream::connect(folder.join(SOCKET)).await {
        Ok(stream) => ask(stream, &file)
            .await
            .map_err(|source| BackupError::Silent { folder: folder.to_owned(), source })?,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            Disk::open_present(folder)?.snapshot()?.write_to(&file)?;
            Ok(())
        }
        Err(source) => Err(BackupError::Silent { folder: folder.to_owned(), source }),
    }
}

async fn ask(mut stream: UnixStream, file: &Path) -> io::Result<Result<(), BackupError>> {
    stream.write_all(file.as_os_str().as_encoded_bytes()).await?;
    stream.shutdown().await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    Ok(match &*said {
        DONE => Ok(()),
        "" => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it ended")),
        _ => Err(BackupError::Refused(said)),
    })
}

/// Does what is asked for through the socket of a data folder, one request after the other, until the server stops.
pub(crate) async fn listen(hub: Arc<Hub>, folder: PathBuf) {
    let socket = folder.join(SOCKET);
    let listener = match bind(&socket) {
        Ok(listener) => listener,
        Err(error) => {
            let socket = socket.display();
            return tracing::warn!(%error, %socket, "no backup can be asked for while this hub serves");
        }
    };
    let mut stopping = hub.stopping.subscribe();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => break,
        };
        let Ok((mut stream, _)) = stream else { continue };
        let said = match timeout(ASKED_WITHIN, wished(&mut stream)).await {
            Ok(Ok(file)) => match write(&hub, file).await {
                Ok(()) => DONE.to_owned(),
                Err(error) => error.to_string(),
            },
            // Whoever does not say what he wants gets nothing.
            Ok(Err(_)) | Err(_) => continue,
        };
        let _ = timeout(ASKED_WITHIN, stream.write_all(said.as_bytes())).await;
    }
    let _ = std::fs::remove_file(&socket);
}

fn bind(socket: &Path) -> io::Result<UnixListener> {
    // The folder is ours: whoever left this behind serves no more.
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if let Some(folder) = socket.parent() {
        private::folder(folder)?;
        private::shut(folder)?;
    }
    let listener = UnixListener::bind(socket)?;
    private::shut(socket)?;
    Ok(listener)
}

async fn wished(stream: &mut UnixStream) -> io::Result<PathBuf> {
    let mut path = String::new();
    stream.take(REQUEST_LIMIT_BYTES).read_to_string(&mut path).await?;
    Ok(PathBuf::from(path))
}

async fn write(hub: &Hub, file: PathBuf) -> Result<(), StorageError> {
    let snapshot = hub.snapshot().await?;
    let place = file.clone();
    let written = tokio::task::spawn_blocking(move || snapshot.write_to(&file)).await;
    written.unwrap_or_else(|error| Err(StorageError::file(&place, "written", io::Error::other(error))))
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::WriteOptions;
    use mailboat_object::{ClusterId, Key, KindId, Name};
    use serde_json::json;

    use super::*;
    use crate::cluster::CLUSTER;
    use crate::storage::restore;
    use crate::{Options, cluster};

    fn namespace(name: &str) -> Key {
        let kind = KindId::new("", "namespaces");
        Key { cluster: ClusterId::new(CLUSTER), kind, namespace: Name::EMPTY, name: Name::new(name) }
    }

    async fn make(hub: &Hub, name: &str) {
        let body = json!({ "metadata": { "name": name } });
        hub.write(|machine, moment| machine.create(&namespace(name), body, &WriteOptions::default(), moment))
            .await
            .unwrap();
    }

    async fn names(folder: &Path) -> Vec<bool> {
        let hub = cluster(Disk::open(folder).unwrap(), Options::default()).await.unwrap().hub;
        hub.peek(|machine| ["before", "after"].map(|name| machine.get(&namespace(name)).is_ok())).to_vec()
    }

    #[tokio::test]
    async fn a_backup_is_made_while_the_hub_serves_and_after_it_has_ended() {
        let place = tempfile::tempdir().unwrap();
        let (data, file) = (place.path().join("data"), place.path().join("one.backup"));
        let hub = Arc::new(cluster(Disk::open(&data).unwrap(), Options::default()).await.unwrap().hub);
        let listening = tokio::spawn(listen(Arc::clone(&hub), data.clone()));
        make(&hub, "before").await;
        while !data.join(SOCKET).exists() {
            tokio::task::yield_now().await;
        }
        backup(&data, &file).await.unwrap();
        make(&hub, "after").await;
        let again = backup(&data, &file).await.unwrap_err().to_string();
        assert!(again.contains("exists already"), "{again}");
        hub.stopping.send_replace(true);
        listening.await.unwrap();
        drop(hub);
        let later = place.path().join("two.backup");
        backup(&data, &later).await.unwrap();
        for (file, expected) in [(&file, [true, false]), (&later, [true, true])] {
            let folder = file.with_extension("restored");
            restore(file, &folder).unwrap();
            assert_eq!(names(&folder).await, expected, "{}", file.display());
        }
    }

    #[tokio::test]
    async fn nobody_else_gets_to_the_socket_at_any_moment() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(), open.clone()).unwrap();
        for round in 0..2 {
            let socket = place.path().join(SOCKET);
            let _listener = bind(&socket).unwrap();
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&socket), 0o600, "round {round}");
            assert_eq!(mode(socket.parent().unwrap()), 0o700, "round {round}");
            std::fs::set_permissions(socket.parent().unwrap(), open.clone()).unwrap();
        }
    }

    #[tokio::test]
    async fn where_no_hub_ever_was_nothing_is_backed_up_and_nothing_made() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let refused = backup(&data, &place.path().join("x")).await.unwrap_err().to_string();
        assert!(refused.contains("data/hub.redb cannot be opened"), "{refused}");
        assert!(!data.exists());
    }
}
