//! A hub that serves for the length of a test.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mailboat_hub::access::{kubeconfig, write_private};
use mailboat_hub::flow::Limits;
use mailboat_hub::storage::{Disk, Memory};
use mailboat_hub::workloads::Settings;
use mailboat_hub::{Opened, Options, Recorder, Server};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Where a hub writes down how it was asked.
const SHAPES: &str = "shapes.txt";
/// What is on record, and so compared with real servers.
const RECORDED: &str = include_str!("../../../conformance/recorded.txt");
const RECORD_VARIABLE: &str = "MAILBOAT_HUB_RECORD";

pub(crate) struct Served {
    pub(crate) folder: TempDir,
    pub(crate) kubeconfig: PathBuf,
    /// That of another who may do everything.
    pub(crate) other_kubeconfig: PathBuf,
    pub(crate) url: String,
    pub(crate) authority_file: PathBuf,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn in_memory() -> Self {
        let (listener, options) = listen().await;
        Self::start(mailboat_hub::cluster(Memory::default(), options).await.unwrap(), listener)
    }

    pub(crate) async fn with_limits(limits: Limits) -> Self {
        let (listener, options) = listen().await;
        let Opened { hub, authority } = mailboat_hub::cluster(Memory::default(), options).await.unwrap();
        Self::start(Opened { hub: hub.with_limits(limits), authority }, listener)
    }

    /// One that plays workloads, faster than any that run.
    pub(crate) async fn playing() -> Self {
        let (listener, options) = listen().await;
        let opened = mailboat_hub::cluster(Memory::default(), options).await.unwrap();
        let settings = Settings { nodes: 2, start: Duration::from_millis(50), ..Settings::default() };
        Self::start_with(opened, listener, |server| server.with_workloads(settings, 1))
    }

    pub(crate) async fn on_disk(folder: &Path) -> Self {
        let (listener, options) = listen().await;
        Self::start(mailboat_hub::cluster(Disk::open(folder).unwrap(), options).await.unwrap(), listener)
    }

    pub(crate) async fn workspaces() -> Self {
        let (listener, options) = listen().await;
        Self::start(mailboat_hub::workspaces(Memory::default(), options).await.unwrap(), listener)
    }

    pub(crate) async fn workspaces_on_disk(folder: &Path) -> Self {
        let (listener, options) = listen().await;
        Self::start(mailboat_hub::workspaces(Disk::open(folder).unwrap(), options).await.unwrap(), listener)
    }

    fn start(opened: Opened, listener: TcpListener) -> Self {
        Self::start_with(opened, listener, |server| server)
    }

    fn start_with(
        Opened { hub, authority }: Opened,
        listener: TcpListener,
        furnish: impl FnOnce(Server) -> Server,
    ) -> Self {
        let tls = authority.server_config(&["127.0.0.1".to_owned()]).unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let hub = hub.with_recorder(Recorder::to(&folder.path().join(SHAPES)).unwrap());
        let server = furnish(Server::new(hub, tls, listener));
        let [file, other_kubeconfig] = ["admin", "other"].map(|user| {
            let certified = authority.certify(user, Some("system:masters")).unwrap();
            let file = folder.path().join(format!("{user}.kubeconfig"));
            let content = kubeconfig("hub", &url, authority.certificate_pem(), user, &certified);
            write_private(&file, &content).unwrap();
            file
        });
        let authority_file = folder.path().join("authority.pem");
        std::fs::write(&authority_file, authority.certificate_pem()).unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Self { folder, kubeconfig: file, other_kubeconfig, url, authority_file, stop, serving }
    }

    /// Everything that was asked so far has to be on record, and is so compared with real servers. To record anew, a folder
    /// is named in the environment.
    pub(crate) fn check_record(&self) {
        let seen = std::fs::read_to_string(self.folder.path().join(SHAPES)).unwrap();
        assert!(!seen.is_empty(), "nothing was asked");
        if let Some(folder) = std::env::var_os(RECORD_VARIABLE) {
            let name = self.url.rsplit(':').next().unwrap();
            std::fs::write(Path::new(&folder).join(name), seen).unwrap();
            return;
        }
        let missing: Vec<&str> =
            seen.lines().filter(|shape| !RECORDED.lines().any(|known| known == *shape)).collect();
        assert!(missing.is_empty(), "these requests are not on record:\n{}", missing.join("\n"));
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

async fn listen() -> (TcpListener, Options) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    (listener, Options { url, ..Options::default() })
}
