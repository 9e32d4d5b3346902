//! Where a connection's configuration comes from, and how a change of it is noticed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use kube::Config;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, Kubeconfig, KubeconfigError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Where the server's address, its certificate authority and our credential are written down.
#[derive(Clone)]
pub enum Source {
    /// A kubeconfig file.
    Kubeconfig {
        /// The file; `None`: those in `KUBECONFIG`, else `~/.kube/config`.
        path: Option<PathBuf>,
        /// The context; `None`: the file's current one.
        context: Option<String>,
    },
    /// The service account of the Pod that we run in.
    InCluster,
    /// A kubeconfig that somebody else wrote. It may name no file and no program of this machine, and no proxy: whoever
    /// may write one must not read, run or reach by it what only we may.
    Foreign(Arc<str>),
    /// A configuration made by the caller, which never changes.
    Given(Box<Config>),
}

/// Why there is no configuration to connect with. Each is one sentence with the cause and, where that is to be done in the
/// configuration itself, what to do; by which flag a file was named only the caller knows. None quotes a file, which may
/// hold keys and tokens.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The kubeconfig cannot be read.
    #[error("cannot read the kubeconfig {path}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// The kubeconfig is not YAML of the right form.
    #[error("the kubeconfig {path} cannot be understood{place}; compare it with `kubectl config view`")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where, as ` (line L, column C)`; empty if unknown.
        place: String,
    },
    /// No context is chosen.
    #[error("the kubeconfig {path} has no current context{}", of_contexts(known))]
    NoCurrentContext {
        /// The file.
        path: PathBuf,
        /// The contexts that it has.
        known: Vec<String>,
    },
    /// The chosen context, or what it refers to, is not there.
    #[error("the kubeconfig {path} has no {what} named {name:?}; it has: {known}")]
    Missing {
        /// The file.
        path: PathBuf,
        /// "context", "cluster" or "user".
        what: &'static str,
        /// The name looked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The server's address is missing or no URL.
    #[error(
        "the cluster {cluster:?} in the kubeconfig {path} has no usable `server`: it must be a URL like https://host:6443"
    )]
    NoServer {
        /// The file.
        path: PathBuf,
        /// The cluster entry.
        cluster: String,
    },
    /// A certificate, key or token that the configuration refers to cannot be used.
    #[error("{what} cannot be used: {cause}; correct it in {place}")]
    Credential {
        /// What, for example "the certificate authority".
        what: &'static str,
        /// Why, without its content.
        cause: String,
        /// Where it is written down.
        place: String,
    },
    /// An `auth-provider` entry, which Kubernetes has removed.
    #[error(
        "the auth-provider {name:?} is no longer supported by Kubernetes; use its credential plugin (`exec`) in {place}"
    )]
    AuthProvider {
        /// Its name.
        name: String,
        /// Where it is written down.
        place: String,
    },
    /// The credential plugin gives no credential.
    #[error(
        "the credential plugin {command:?} gives no credential: {cause}; run it by hand to see why{hint}"
    )]
    Plugin {
        /// The command, without its arguments.
        command: String,
        /// What went wrong, without its output.
        cause: String,
        /// The kubeconfig's own installation hint, in parentheses; empty if there is none.
        hint: String,
    },
    /// The proxy in the kubeconfig is no URL.
    #[error(
        "the `proxy-url` in {place} is no proxy that we can use: it must begin with http://, https:// or socks5://"
    )]
    Proxy {
        /// Where it is written down.
        place: String,
    },
    /// A kubeconfig of somebody else's refers to what is ours.
    #[error("the kubeconfig has {what}, which is not allowed here; {instead}")]
    NotSelfContained {
        /// The entry.
        what: &'static str,
        /// What to write in its place.
        instead: &'static str,
    },
    /// Not in a Pod.
    #[error("there is no service account here ({cause})")]
    NotInCluster {
        /// What is missing.
        cause: String,
    },
}

/// A configuration as it was read.
pub(crate) struct Loaded {
    /// Without proxy: that is decided per server, see [`Loaded::proxy`].
    pub(crate) config: Config,
    /// The kubeconfig's own `proxy-url`, which no environment variable overrides.
    pub(crate) proxy: Option<String>,
    pub(crate) files: Vec<Mark>,
    /// How to call the source in messages.
    pub(crate) place: String,
}

/// What can be chosen where no context is.
fn of_contexts(known: &[String]) -> String {
    match known {
        [] => ", and no contexts at all".to_owned(),
        known => format!("; name one of: {}", known.join(", ")),
    }
}

impl Source {
    /// The file that our token is read from; `None`: the credential is another one.
    pub fn token_file(&self) -> Result<Option<PathBuf>, ConfigError> {
        Ok(self.load()?.config.auth_info.token_file.map(PathBuf::from))
    }

    /// Reads the configuration now.
    pub(crate) fn load(&self) -> Result<Loaded, ConfigError> {
        match self {
            Self::Kubeconfig { path, context } => load_kubeconfig(path.as_deref(), context.as_deref()),
            Self::Foreign(text) => load_foreign(text),
            Self::InCluster => {
                let config = Config::incluster()
                    .map_err(|error| ConfigError::NotInCluster { cause: error.to_string() })?;
                let token = config.auth_info.token_file.as_ref().map(PathBuf::from);
                Ok(Loaded { config, proxy: None, files: marks(token), place: "the service account".into() })
            }
            Self::Given(config) => {
                let files = files_of(&config.auth_info);
                Ok(Loaded {
                    proxy: config.proxy_url.as_ref().map(ToString::to_string),
                    config: (**config).clone(),
                    files: marks(files),
                    place: "the configuration".into(),
                })
            }
        }
    }
}

/// A file as it was when we read it.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    path: PathBuf,
    state: Option<(SystemTime, u64, u64)>,
}

impl Mark {
    fn new(path: PathBuf) -> Self {
        let state = state(&path);
        Self { path, state }
    }

    /// Whether the file is another one by now. One that is gone is not: files that were made available at
    /// the start only and then removed are a way to protect them.
    pub(crate) fn changed(&self) -> bool {
        let now = state(&self.path);
        now.is_some() && now != self.state
    }
}

fn state(path: &Path) -> Option<(SystemTime, u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

fn marks(paths: impl IntoIterator<Item = PathBuf>) -> Vec<Mark> {
    paths.into_iter().map(Mark::new).collect()
}

fn load_kubeconfig(path: Option<&Path>, context: Option<&str>) -> Result<Loaded, ConfigError> {
    let paths = path.map_or_else(default_paths, |path| vec![path.to_owned()]);
    // Marked before it is read: a change in between is then seen as one.
    let mut files = marks(paths.clone());
    let mut merged = Kubeconfig::default();
    let shown = paths.first().cloned().unwrap_or_default();
    for path in paths {
        let one = Kubeconfig::read_from(&path).map_err(|error| understand(error, &path))?;
        let malformed = |_| ConfigError::Malformed { path: path.clone(), place: String::new() };
        merged = merged.merge(one).map_err(malformed)?;
    }
    let (cluster_name, cluster, user) = choose(&merged, &shown, context)?;
    files.extend(marks(files_of(&user)));
    files.extend(marks(cluster.certificate_authority.as_ref().map(PathBuf::from)));
    let place = format!("the kubeconfig {}", shown.display());
    let mut loaded = connect(&shown, cluster_name, cluster, user, place)?;
    loaded.files = files;
    Ok(loaded)
}

/// A kubeconfig that somebody else wrote: all that it needs stands in it.
fn load_foreign(text: &str) -> Result<Loaded, ConfigError> {
    let shown = PathBuf::from("given");
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| understand(error, &shown))?;
    let (cluster_name, cluster, user) = choose(&kubeconfig, &shown, None)?;
    let given = |entry: &Option<String>| entry.as_ref().is_some_and(|text| !text.is_empty());
    let (data, token) =
        ("give the content itself, under the same name with `-data`", "give a token or a certificate");
    let refused = [
        (user.exec.is_some(), "a credential plugin (`exec`)", token),
        (user.auth_provider.is_some(), "an `auth-provider`", token),
        (given(&user.token_file), "a `tokenFile`", "give the `token` itself"),
        (given(&user.client_certificate), "a file as `client-certificate`", data),
        (given(&user.client_key), "a file as `client-key`", data),
        (given(&cluster.certificate_authority), "a file as `certificate-authority`", data),
        (given(&cluster.proxy_url), "a `proxy-url`", "the server must be reachable without"),
    ];
    if let Some((_, what, instead)) = refused.into_iter().find(|(found, ..)| *found) {
        return Err(ConfigError::NotSelfContained { what, instead });
    }
    connect(&shown, cluster_name, cluster, user, "the kubeconfig".to_owned())
}

fn connect(
    shown: &Path,
    cluster_name: &str,
    cluster: Cluster,
    user: AuthInfo,
    place: String,
) -> Result<Loaded, ConfigError> {
    let no_server = || ConfigError::NoServer { path: shown.to_owned(), cluster: cluster_name.to_owned() };
    let server: http::Uri = cluster.server.as_deref().unwrap_or_default().parse().map_err(|_| no_server())?;
    if !matches!(server.scheme_str(), Some("http" | "https")) || server.host().is_none() {
        return Err(no_server());
    }
    let mut config = Config::new(server);
    config.root_cert = certificate_authority(&cluster, &place)?;
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.tls_server_name.clone_from(&cluster.tls_server_name);
    config.auth_info = user;
    let proxy = cluster.proxy_url.filter(|proxy| !proxy.is_empty());
    Ok(Loaded { config, proxy, files: Vec::new(), place })
}

fn default_paths() -> Vec<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let listed: Vec<PathBuf> =
        std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    if !listed.is_empty() {
        // As kubectl does: of several, those that are not there are left out.
        let there: Vec<PathBuf> = listed.iter().filter(|path| path.exists()).cloned().collect();
        return if there.is_empty() { listed } else { there };
    }
    vec![std::env::home_dir().unwrap_or_default().join(".kube/config")]
}

/// The parser's own message quotes the file, so only the place is taken from it.
fn understand(error: KubeconfigError, path: &Path) -> ConfigError {
    match error {
        KubeconfigError::ReadConfig(cause, path) => ConfigError::Unreadable { path, cause },
        KubeconfigError::Parse(error) => {
            let place = error.location().map(|at| format!(" (line {}, column {})", at.line(), at.column()));
            ConfigError::Malformed { path: path.to_owned(), place: place.unwrap_or_default() }
        }
        _ => ConfigError::Malformed { path: path.to_owned(), place: String::new() },
    }
}

fn choose<'a>(
    kubeconfig: &'a Kubeconfig,
    path: &Path,
    context: Option<&'a str>,
) -> Result<(&'a str, Cluster, AuthInfo), ConfigError> {
    let names = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let missing = |what, name: &str, known| ConfigError::Missing {
        path: path.to_owned(),
        what,
        name: name.to_owned(),
        known: names(known),
    };
    let contexts = || kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect::<Vec<_>>();
    let Some(name) = context.or(kubeconfig.current_context.as_deref()).filter(|name| !name.is_empty()) else {
        let known = contexts().into_iter().map(str::to_owned).collect();
        return Err(ConfigError::NoCurrentContext { path: path.to_owned(), known });
    };
    let chosen = kubeconfig.contexts.iter().find(|named| named.name == name);
    let chosen = chosen
        .and_then(|named| named.context.as_ref())
        .ok_or_else(|| missing("context", name, contexts()))?;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == chosen.cluster);
    let cluster = cluster.and_then(|named| named.cluster.clone()).ok_or_else(|| {
        missing(
            "cluster",
            &chosen.cluster,
            kubeconfig.clusters.iter().map(|named| named.name.as_str()).collect(),
        )
    })?;
    let mut user = AuthInfo::default();
    if let Some(name) = chosen.user.as_deref().filter(|name| !name.is_empty()) {
        let found = kubeconfig.auth_infos.iter().find(|named| named.name == name);
        user = found.and_then(|named| named.auth_info.clone()).ok_or_else(|| {
            missing("user", name, kubeconfig.auth_infos.iter().map(|named| named.name.as_str()).collect())
        })?;
    }
    if let Some(exec) = user.exec.as_mut().filter(|exec| exec.provide_cluster_info) {
        exec.cluster = ExecAuthCluster::try_from(&cluster).ok();
    }
    Ok((&chosen.cluster, cluster, user))
}

fn files_of(user: &AuthInfo) -> Vec<PathBuf> {
    [&user.client_certificate, &user.client_key, &user.token_file]
        .into_iter()
        .flatten()
        .map(PathBuf::from)
        .collect()
}

fn certificate_authority(cluster: &Cluster, place: &str) -> Result<Option<Vec<Vec<u8>>>, ConfigError> {
    let unusable = |cause: String| ConfigError::Credential {
        what: "the certificate authority",
        cause,
        place: place.to_owned(),
    };
    let pem = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) if !data.is_empty() => base64::engine::general_purpose::STANDARD
            .decode(data)
            .map_err(|_| unusable("it is not base64".into()))?,
        (_, Some(file)) if !file.is_empty() => {
            fs::read(file).map_err(|cause| unusable(format!("{file}: {cause}")))?
        }
        _ => return Ok(None),
    };
    let certificates: Result<Vec<Vec<u8>>, _> =
        CertificateDer::pem_slice_iter(&pem).map(|one| one.map(|der| der.as_ref().to_vec())).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(Some(certificates)),
        _ => Err(unusable("it holds no PEM certificate".into())),
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
