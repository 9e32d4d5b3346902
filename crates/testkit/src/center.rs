//! A center: kcp with an etcd of its own, ordinary users, and fresh workspaces for whoever asks.

use std::path::PathBuf;
use std::time::Duration;

use crate::access::{Access, Credential};
use crate::authority::{CertifiedUser, Validity};
use crate::error::Result;
use crate::hub::{self, Played};
use crate::part::{Part, PartKind, PartSpec, Probe};
use crate::place::{ADMIN, Place, User};
use crate::ports::Port;
use crate::site::Site;
use crate::wait::wait_until;
use crate::workspace::{self, Workspace};

const ROOT_LIMIT: Duration = Duration::from_mins(2);

/// The user that Mailboat's own controllers run as, in [`CENTER_GROUP`].
pub const CENTER_USER: &str = "center";
/// The group of Mailboat's own controllers.
pub const CENTER_GROUP: &str = "mailboat:center";
/// The user who may pass kcp's own checks, as its shards do. Nothing that ships may need this one.
pub const SHARD_ADMIN: &str = "shard-admin";

/// What a center is made of.
#[derive(Debug, Clone)]
pub struct CenterSpec {
    users: Vec<User>,
    flags: Vec<String>,
}

impl Default for CenterSpec {
    fn default() -> Self {
        Self {
            users: vec![
                User::new(ADMIN, &["system:kcp:admin"]),
                User::new(SHARD_ADMIN, &["system:masters"]),
                User::new(CENTER_USER, &[CENTER_GROUP]),
                User::new("alice", &[]),
                User::new("bob", &[]),
            ],
            flags: Vec::new(),
        }
    }
}

impl CenterSpec {
    /// kcp with the users `admin`, `shard-admin`, `center`, `alice` and `bob`.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more user, with a token.
    #[must_use]
    pub fn with_user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// One more flag for `kcp start`.
    #[must_use]
    pub fn with_flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }
}

/// A running center.
pub struct Center {
    place: Place,
    kcp: Part,
}

impl Center {
    pub(crate) const NAME: &'static str = "center";

    pub(crate) async fn start(site: &Site, spec: CenterSpec) -> Result<Self> {
        let port = Port::reserve()?;
        let url = format!("https://127.0.0.1:{}", port.number());
        let place = Place::create(Self::NAME, site.folder.join(Self::NAME), url, &spec.users)?;
        let kcp = match hub::program() {
            // It takes none of kcp's flags.
            Some(program) => hub::launch(site, &program, &place, port, Played::Workspaces)?,
            None => launch(site, &place, port, spec.flags)?,
        };
        let center = Self { place, kcp };
        center.ready().await?;
        Ok(center)
    }

    pub(crate) fn joined(place: Place, kcp: Part) -> Self {
        Self { place, kcp }
    }

    /// Waits until the server is ready and the root workspace can be used.
    pub async fn ready(&self) -> Result<()> {
        self.kcp.ready().await?;
        let client = self.client(ADMIN, "root").await?;
        wait_until("root workspace of the center usable", ROOT_LIMIT, || workspace::usable(&client)).await?;
        Ok(())
    }

    /// The server's URL, without any workspace.
    pub fn url(&self) -> &str {
        self.place.url()
    }

    /// The URL of a workspace, by its path (`root:org:team`) or its logical cluster's name.
    pub fn workspace_url(&self, workspace: &str) -> String {
        format!("{}{}", self.url(), prefix(workspace))
    }

    /// The certificate of its authority.
    pub fn ca_pem(&self) -> &str {
        self.place.ca_pem()
    }

    /// A user's token: `admin`, `shard-admin`, `center`, `alice`, `bob`, or one that was added.
    pub fn token(&self, user: &str) -> Result<&str> {
        self.place.token(user)
    }

    /// How to reach a workspace as a user; the empty workspace is the server itself.
    pub fn access(&self, user: &str, workspace: &str) -> Result<Access> {
        self.place.access(user, &prefix(workspace))
    }

    /// How to reach a workspace with a credential of the caller's.
    pub fn access_with(&self, credential: Credential, workspace: &str) -> Access {
        self.place.access_with(credential, &prefix(workspace))
    }

    /// A client certificate for any user in at most one group; the user need not have a token.
    pub fn certificate(&self, user: &str, group: Option<&str>, validity: Validity) -> Result<CertifiedUser> {
        self.place.certificate(user, group, validity)
    }

    /// The file of a user's kubeconfig for a workspace, with one context that bears the workspace's path.
    pub fn kubeconfig(&self, user: &str, workspace: &str) -> Result<PathBuf> {
        self.place.kubeconfig(user, &prefix(workspace), workspace)
    }

    /// A client for a user in a workspace, made in the current runtime.
    pub async fn client(&self, user: &str, workspace: &str) -> Result<kube::Client> {
        self.access(user, workspace)?.client().await
    }

    /// A fresh workspace below `root`, made by `admin`, whose name begins with `name_prefix`. It need not be
    /// deleted: names are never used again.
    pub async fn workspace(&self, name_prefix: &str) -> Result<Workspace> {
        self.workspace_in("root", name_prefix).await
    }

    /// A fresh workspace below another one.
    pub async fn workspace_in(&self, parent: &str, name_prefix: &str) -> Result<Workspace> {
        workspace::create(self, ADMIN, parent, name_prefix).await
    }

    /// A fresh workspace below another one, made by a user, who needs the right to and becomes its administrator.
    pub async fn workspace_by(&self, user: &str, parent: &str, name_prefix: &str) -> Result<Workspace> {
        workspace::create(self, user, parent, name_prefix).await
    }

    /// Makes a user administrator of a workspace, and waits until kcp heeds it.
    pub async fn make_administrator(&self, user: &str, workspace: &str) -> Result<()> {
        workspace::make_administrator(self, user, workspace).await
    }

    /// Its kcp, or the hub in its place.
    pub fn kcp(&self) -> &Part {
        &self.kcp
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

fn prefix(workspace: &str) -> String {
    if workspace.is_empty() { String::new() } else { format!("/clusters/{workspace}") }
}

fn launch(site: &Site, place: &Place, port: Port, flags: Vec<String>) -> Result<Part> {
    let folder = place.folder().join("kcp");
    let root_directory = folder.join("root");
    let (etcd_port, etcd_peer_port) = (Port::reserve()?, Port::reserve()?);
    let (certificate, key) = place.authority().serving_files()?;
    let mut arguments = vec![
        "start".to_owned(),
        format!("--root-directory={}", root_directory.display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", port.number()),
        "--external-hostname=127.0.0.1".to_owned(),
        format!("--shard-base-url={}", place.url()),
        format!("--tls-cert-file={}", certificate.display()),
        format!("--tls-private-key-file={}", key.display()),
        format!("--client-ca-file={}", place.authority().certificate_file().display()),
        format!("--token-auth-file={}", place.token_auth_file().display()),
        format!("--embedded-etcd-client-port={}", etcd_port.number()),
        format!("--embedded-etcd-peer-port={}", etcd_peer_port.number()),
        // The default preallocates 64 MB for each log file.
        "--embedded-etcd-wal-size-bytes=4000000".to_owned(),
        "--profiling=false".to_owned(),
    ];
    arguments.extend(flags);
    Part::launch(PartSpec {
        kind: PartKind::Kcp,
        name: format!("{}/kcp", Center::NAME),
        program: site.programs.kcp()?,
        arguments,
        environment: vec![("UNSAFE_E2E_HACK_DISABLE_ETCD_FSYNC".to_owned(), "true".to_owned())],
        data: Some(root_directory),
        lifetime: site.lifetime,
        probe: Probe::new(PartKind::Kcp, port.number(), Some(place))?,
        folder,
        port,
        more_ports: vec![etcd_port, etcd_peer_port],
    })
}
