//! Opening connections: TCP with its keep-alives, a proxy where one is set, TLS, and HTTP/2 where the server
//! speaks it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube::Config;
use kube::client::ConfigExt as _;
use mailboat_object::wire::Fault;
use rustls::pki_types::ServerName;
use tower::{Service, ServiceExt as _};

use crate::fault;
use crate::settings::Settings;
use crate::source::{ConfigError, Loaded};

/// Scheme, host and port: what one pool of connections leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
}

impl Origin {
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        Some(Self { scheme: uri.scheme()?.clone(), authority: uri.authority()?.clone() })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    fn uri(&self) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        Uri::from_parts(parts).unwrap_or_default()
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without a user name and password, which an authority may carry.
        write!(f, "{}://{}", self.scheme, self.authority.host())?;
        self.authority.port_u16().map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Bytes both ways, whatever is between us and the server.
pub(crate) trait Wire: hyper::rt::Read + hyper::rt::Write + Send + Unpin {}

impl<T: hyper::rt::Read + hyper::rt::Write + Send + Unpin> Wire for T {}

/// A fresh connection, and which protocol both sides agreed on.
pub(crate) struct Dialed {
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) http2: bool,
}

/// Opens connections with one configuration.
pub(crate) struct Dialer {
    tcp: HttpConnector,
    tls: Arc<rustls::ClientConfig>,
    server_name: Option<ServerName<'static>>,
    proxies: Proxies,
    timeout: Duration,
}

enum Proxies {
    /// The kubeconfig's own.
    Given(Matcher),
    /// https_proxy, http_proxy, all_proxy and no_proxy.
    Environment(Matcher),
}

impl Dialer {
    pub(crate) fn new(loaded: &Loaded, settings: &Settings) -> Result<Self, ConfigError> {
        let config = &loaded.config;
        let unusable =
            |what, cause: String| ConfigError::Credential { what, cause, place: loaded.place.clone() };
        let mut tls = config
            .rustls_client_config()
            .map_err(|error| unusable("the client certificate or its key", safe_tls_cause(&error)))?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let server_name = match &config.tls_server_name {
            None => None,
            Some(name) => {
                let name = ServerName::try_from(name.clone());
                Some(name.map_err(|_| unusable("`tls-server-name`", "it is no host name".into()))?)
            }
        };
        let proxies = match &loaded.proxy {
            None => Proxies::Environment(Matcher::from_env()),
            Some(proxy) => {
                let scheme = proxy.split_once("://").map(|(scheme, _)| scheme);
                if !matches!(scheme, Some("http" | "https" | "socks5" | "socks5h")) {
                    return Err(ConfigError::Proxy { place: loaded.place.clone() });
                }
                Proxies::Given(Matcher::builder().all(proxy.as_str()).build())
            }
        };
        let timeout = settings.connect_timeout;
        Ok(Self { tcp: tcp(settings), tls: Arc::new(tls), server_name, proxies, timeout })
    }

    /// Opens a connection.
    pub(crate) async fn dial(&self, origin: &Origin) -> Result<Dialed, Fault> {
        match tokio::time::timeout(self.timeout, self.connect(origin.uri())).await {
            Ok(Ok(dialed)) => Ok(dialed),
            Ok(Err(error)) => Err(fault::unreachable(&origin.to_string(), &*error)),
            Err(_) => {
                let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
                Err(fault::unreachable(&origin.to_string(), &error))
            }
        }
    }

    async fn connect(&self, uri: Uri) -> Result<Dialed, Box<dyn Error + Send + Sync>> {
        let Some(proxy) = self.proxies.toward(&uri) else {
            return self.secure(self.tcp.clone(), uri).await;
        };
        let to = proxy.uri().clone();
        match to.scheme_str() {
            Some("socks5" | "socks5h") => {
                let mut socks = SocksV5::new(to, self.tcp.clone());
                if let Some((user, password)) = proxy.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                self.secure(socks, uri).await
            }
            Some("https") => {
                // The proxy's certificate is the system's business, not the API server's CA's.
                let tls = Config::new(to.clone()).rustls_client_config()?;
                let wrapped = HttpsConnector::new(
                    self.tcp.clone(),
                    tls,
                    true,
                    Arc::new(DefaultServerNameResolver::default()),
                );
                self.secure(authorized(Tunnel::new(to, wrapped), &proxy), uri).await
            }
            _ => self.secure(authorized(Tunnel::new(to, self.tcp.clone()), &proxy), uri).await,
        }
    }

    async fn secure<C>(&self, connector: C, uri: Uri) -> Result<Dialed, Box<dyn Error + Send + Sync>>
    where
        C: Service<Uri> + Send,
        C::Response: Connection + Wire + 'static,
        C::Future: Send + 'static,
        C::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let resolver: Arc<dyn ResolveServerName + Send + Sync> = match &self.server_name {
            Some(name) => Arc::new(FixedServerNameResolver::new(name.clone())),
            None => Arc::new(DefaultServerNameResolver::default()),
        };
        let stream = HttpsConnector::new(connector, self.tls.clone(), false, resolver).oneshot(uri).await?;
        let http2 = stream.connected().is_negotiated_h2();
        Ok(Dialed { wire: Box::new(stream), http2 })
    }
}

impl Proxies {
    fn toward(&self, uri: &Uri) -> Option<Intercept> {
        match self {
            // As Go programs do: the machine itself is never reached through a proxy of the environment.
            Self::Environment(_) if is_loopback(uri.host()?) => None,
            Self::Given(matcher) | Self::Environment(matcher) => matcher.intercept(uri),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn authorized<C>(tunnel: Tunnel<C>, proxy: &Intercept) -> Tunnel<C> {
    match proxy.basic_auth() {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    }
}

fn tcp(settings: &Settings) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(settings.keepalive_idle));
    tcp.set_keepalive_interval(Some(settings.keepalive_interval));
    tcp.set_keepalive_retries(Some(settings.keepalive_probes));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(settings.user_timeout));
    tcp
}

/// kube's errors about certificates and keys name the problem, and its file errors the file; neither quotes
/// their content.
fn safe_tls_cause(error: &kube::Error) -> String {
    match error.source() {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_shown_without_what_people_hide_in_its_url() {
        let uri: Uri = "https://user:s3cr3t@edge.example.com:6443/clusters/root".parse().unwrap();
        assert_eq!(Origin::of(&uri).unwrap().to_string(), "https://edge.example.com:6443");
    }

    #[test]
    fn the_environments_proxy_leaves_out_the_machine_itself_and_no_proxy() {
        let matcher = || {
            Matcher::builder()
                .all("http://proxy.example.com:3128")
                .no(".inside.example.com,10.0.0.0/8")
                .build()
        };
        let toward = |proxies: &Proxies, uri: &str| proxies.toward(&uri.parse().unwrap()).is_some();
        let environment = Proxies::Environment(matcher());
        assert!(toward(&environment, "https://edge.example.com:6443"));
        for uri in [
            "https://127.0.0.1:6443",
            "https://[::1]:6443",
            "https://localhost",
            "https://a.inside.example.com",
            "https://10.1.2.3",
        ] {
            assert!(!toward(&environment, uri), "{uri}");
        }
        assert!(
            toward(&Proxies::Given(matcher()), "https://127.0.0.1:6443"),
            "what a kubeconfig says is meant"
        );
    }
}
