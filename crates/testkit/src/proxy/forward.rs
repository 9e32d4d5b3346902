//! A forward proxy as companies have them: clients ask it to be led to a host, and it leads all of them to one server,
//! whatever host they name. So a server on this machine is reached by a name that only the proxy knows.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::faulty::serving_tls;
use super::target_of;
use crate::access::Access;
use crate::error::{Error, Result};

/// The most that a client may say before it is led on.
const HEAD_LIMIT_BYTES: usize = 8 << 10;

/// What a forward proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// `CONNECT` of HTTP/1.1.
    Http,
    /// The same, inside TLS.
    Https,
    /// SOCKS 5 (RFC 1928).
    Socks5,
}

/// A forward proxy on 127.0.0.1. Dropping it ends it.
#[derive(Debug)]
pub struct ForwardProxy {
    address: SocketAddr,
    speaks: Speaks,
    ca_pem: String,
    asked: Arc<Mutex<Vec<String>>>,
    acceptor: JoinHandle<()>,
}

#[derive(Clone)]
struct Client {
    to: SocketAddr,
    speaks: Speaks,
    /// The name and password that are wanted, if any.
    wanted: Option<(&'static str, &'static str)>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ForwardProxy {
    /// Starts a proxy that leads to the server of `access`, for whoever shows this name and password.
    pub async fn start(
        speaks: Speaks,
        access: &Access,
        wanted: Option<(&'static str, &'static str)>,
    ) -> Result<Self> {
        let (ca_pem, tls) = serving_tls()?;
        let tls = (speaks == Speaks::Https).then(|| TlsAcceptor::from(Arc::new(tls)));
        let listening = |source| Error::Io { doing: "listening on 127.0.0.1".to_owned(), source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let client = Client { to: target_of(&access.url)?, speaks, wanted, asked: Arc::clone(&asked) };
        let acceptor = tokio::spawn(accept(listener, tls, client));
        Ok(Self { address, speaks, ca_pem, asked, acceptor })
    }

    /// Its URL, for `proxy-url` and the variables of the environment.
    pub fn url(&self) -> String {
        self.url_for("")
    }

    /// The same with a user, as `name:password`.
    pub fn url_for(&self, user: &str) -> String {
        let scheme = match self.speaks {
            Speaks::Http => "http",
            Speaks::Https => "https",
            Speaks::Socks5 => "socks5",
        };
        let at = if user.is_empty() { "" } else { "@" };
        format!("{scheme}://{user}{at}{}", self.address)
    }

    /// The certificate of the authority that signed its own, if it speaks TLS.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Every `host:port` that it was asked for and led to.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, client: Client) {
    while let Ok((stream, _)) = listener.accept().await {
        let (client, tls) = (client.clone(), tls.clone());
        // What a client breaks off is its own business: the test sees it there.
        tokio::spawn(async move {
            match tls {
                Some(tls) => client.lead(tls.accept(stream).await?).await,
                None => client.lead(stream).await,
            }
        });
    }
}

impl Client {
    async fn lead(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let host = match self.speaks {
            Speaks::Http | Speaks::Https => self.connect(&mut stream).await?,
            Speaks::Socks5 => self.socks(&mut stream).await?,
        };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(host);
        let mut server = TcpStream::connect(self.to).await?;
        tokio::io::copy_bidirectional(&mut stream, &mut server).await.map(drop)
    }

    async fn connect(&self, stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() > HEAD_LIMIT_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head);
        let shown = self
            .wanted
            .map(|(name, password)| format!("Basic {}", BASE64.encode(format!("{name}:{password}"))));
        let refused = |answer: &'static str| (answer, io::Error::from(io::ErrorKind::PermissionDenied));
        let host = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
        let (answer, error) = match (host, shown) {
            (None, _) => refused("HTTP/1.1 405 Method Not Allowed\r\n\r\n"),
            (Some(_), Some(shown)) if !head.contains(&shown) => {
                refused("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            }
            (Some(host), _) => {
                stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                return Ok(host.to_owned());
            }
        };
        stream.write_all(answer.as_bytes()).await?;
        Err(error)
    }

    async fn socks(&self, stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<String> {
        const VERSION: u8 = 5;
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let _version = stream.read_u8().await?;
        let methods = text(stream).await?;
        let method = if self.wanted.is_some() { 2 } else { 0 };
        if !methods.contains(&method) {
            stream.write_all(&[VERSION, 0xff]).await?;
            return Err(denied());
        }
        stream.write_all(&[VERSION, method]).await?;
        if let Some((name, password)) = self.wanted {
            let _version = stream.read_u8().await?;
            let shown = (text(stream).await?, text(stream).await?);
            let fits = shown == (name.as_bytes().to_vec(), password.as_bytes().to_vec());
            stream.write_all(&[1, u8::from(!fits)]).await?;
            if !fits {
                return Err(denied());
            }
        }
        let mut request = [0; 4];
        stream.read_exact(&mut request).await?;
        let host = match request {
            [VERSION, 1, _, 1] => Ipv4Addr::from(stream.read_u32().await?).to_string(),
            [VERSION, 1, _, 3] => String::from_utf8_lossy(&text(stream).await?).into_owned(),
            _ => return Err(denied()),
        };
        let port = stream.read_u16().await?;
        stream.write_all(&[VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        Ok(format!("{host}:{port}"))
    }
}

/// A text that its length stands before.
async fn text(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut text = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut text).await?;
    Ok(text)
}
