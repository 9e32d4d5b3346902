//! What a connection's configuration says at present: the server, TLS, and the headers that say who we are.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use http::{HeaderMap, HeaderValue, Request, header};
use jiff::Timestamp;
use kube::client::ConfigExt as _;
use tower::{Layer as _, ServiceExt as _};

use crate::connection::ServerAddress;
use crate::dial::{Dialer, Origin};
use crate::pool::Pool;
use crate::settings::Settings;
use crate::source::{ConfigError, Loaded, Mark, Source};
use crate::{certificate, credential};

const USER_AGENT: &str = concat!("mailboat/", env!("CARGO_PKG_VERSION"));

/// One reading of the configuration. Replaced as a whole when it changes.
pub(crate) struct Session {
    /// Grows with each reading.
    pub(crate) number: u64,
    pub(crate) origin: Origin,
    /// How the server is known, without its URL.
    pub(crate) address: ServerAddress,
    /// The path of the configured URL, without a slash at its end.
    pub(crate) base: String,
    /// Sent with every request: authorization, impersonation, user agent.
    pub(crate) headers: HeaderMap,
    renew_at: Option<Timestamp>,
    /// When the client certificate ends, if there is one.
    certificate_ends: Option<Timestamp>,
    files: Vec<Mark>,
    /// What connections depend on; a change of a token alone keeps them.
    shape: u64,
    pools: Arc<Pools>,
}

/// The pools behind one TLS configuration: one per server (the shards of a kcp are servers of their own).
struct Pools {
    dialer: Arc<Dialer>,
    by_origin: Mutex<BTreeMap<String, Arc<Pool>>>,
}

impl Session {
    /// Reads the configuration, and keeps the connections of `before` if they lead to the same.
    pub(crate) async fn open(
        source: &Source,
        settings: &Arc<Settings>,
        before: Option<&Session>,
    ) -> Result<Self, ConfigError> {
        let mut loaded = source.load()?;
        let credential = credential::resolve(&mut loaded.config.auth_info, &loaded.place).await?;
        let origin = Origin::of(&loaded.config.cluster_url).ok_or_else(|| ConfigError::Credential {
            what: "the server's URL",
            cause: "it has no scheme or host".into(),
            place: loaded.place.clone(),
        })?;
        let shape = shape(&loaded);
        let pools = match before {
            Some(before) if before.shape == shape => before.pools.clone(),
            _ => {
                let dialer = Arc::new(Dialer::new(&loaded, settings)?);
                Arc::new(Pools { dialer, by_origin: Mutex::default() })
            }
        };
        let mut headers = extra_headers(&loaded).await?;
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        if let Some(authorization) = credential.authorization {
            headers.insert(header::AUTHORIZATION, authorization);
        }
        Ok(Self {
            number: before.map_or(0, |before| before.number + 1),
            origin,
            address: address(&loaded),
            base: loaded.config.cluster_url.path().trim_end_matches('/').to_owned(),
            headers,
            renew_at: credential.renew_at,
            certificate_ends: certificate::ends_at(&loaded.config.auth_info),
            files: loaded.files,
            shape,
            pools,
        })
    }

    /// Whether the credential is about to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.renew_at.is_some_and(|renew_at| Timestamp::now() >= renew_at)
    }

    /// When the client certificate ended, if it has.
    pub(crate) fn certificate_ended(&self) -> Option<Timestamp> {
        self.certificate_ends.filter(|end| *end <= Timestamp::now())
    }

    /// Whether a file behind it has been replaced.
    pub(crate) fn is_outdated(&self) -> bool {
        self.files.iter().any(Mark::changed)
    }

    /// Whether it says the same as another: the same server, and we are the same.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        self.shape == other.shape && self.headers == other.headers
    }

    /// The connections to a server.
    pub(crate) fn pool(&self, origin: &Origin, settings: &Arc<Settings>) -> Arc<Pool> {
        let mut pools = self.pools.by_origin.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Pool::new(origin.clone(), self.pools.dialer.clone(), settings.clone()));
        pools.entry(origin.to_string()).or_insert_with(new).clone()
    }

    /// How many connections are open, to all servers together.
    pub(crate) fn open_links(&self) -> usize {
        let pools = self.pools.by_origin.lock().unwrap_or_else(PoisonError::into_inner);
        pools.values().map(|pool| pool.open_links()).sum()
    }
}

fn address(loaded: &Loaded) -> ServerAddress {
    let config = &loaded.config;
    ServerAddress {
        url: String::new(),
        certificate_authority_pem: config
            .root_cert
            .as_ref()
            .map(|all| all.iter().map(|der| pem(der)).collect()),
        tls_server_name: config.tls_server_name.clone(),
        insecure: config.accept_invalid_certs,
    }
}

/// A certificate as text, in lines of 64 characters as RFC 7468 wants them.
fn pem(der: &[u8]) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        (0..encoded.len()).step_by(64).filter_map(|at| encoded.get(at..encoded.len().min(at + 64))).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// A number that differs when a new TLS configuration is needed.
fn shape(loaded: &Loaded) -> u64 {
    let config = &loaded.config;
    let user = &config.auth_info;
    let mut hasher = DefaultHasher::new();
    config.cluster_url.to_string().hash(&mut hasher);
    config.root_cert.hash(&mut hasher);
    config.accept_invalid_certs.hash(&mut hasher);
    config.tls_server_name.hash(&mut hasher);
    loaded.proxy.hash(&mut hasher);
    user.client_certificate_data.hash(&mut hasher);
    user.client_key_data.as_ref().map(secrecy::ExposeSecret::expose_secret).hash(&mut hasher);
    for file in [&user.client_certificate, &user.client_key].into_iter().flatten() {
        fs::read(file).ok().hash(&mut hasher);
    }
    hasher.finish()
}

/// The headers of impersonation, which kube knows how to write. Its layer is asked by letting it handle an
/// empty request that goes nowhere.
async fn extra_headers(loaded: &Loaded) -> Result<HeaderMap, ConfigError> {
    let unusable = |_| ConfigError::Credential {
        what: "the impersonated user",
        cause: "it has characters that HTTP does not carry".into(),
        place: loaded.place.clone(),
    };
    let layer = loaded.config.extra_headers_layer().map_err(unusable)?;
    let echo = tower::service_fn(|request: Request<()>| async move { Ok::<_, Infallible>(request) });
    match layer.layer(echo).oneshot(Request::new(())).await {
        Ok(request) => Ok(request.into_parts().0.headers),
        Err(never) => match never {},
    }
}
