//! A small HTTP listener for whoever watches over a process: `/livez`, `/healthz`, `/readyz` and `/metrics`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::health::{Answer, Health};
use crate::metrics::Metrics;

/// Where a process listens unless it is told otherwise: nobody but its own machine can ask. A manifest opens it.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:8081";
/// Connections at once; more wait.
const CONNECTIONS: usize = 16;
/// The largest request head.
const HEAD_LIMIT_BYTES: usize = 16 << 10;
/// Until a request's head has arrived.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// After a connection could not be taken, as when no file is left to open.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

const METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const TEXT_TYPE: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What a process says of itself and counts. One is shared by the process and its listener.
#[derive(Default)]
pub struct Instruments {
    /// How it is.
    pub health: Health,
    /// What it counts.
    pub metrics: Metrics,
}

/// Listens as long as it is held.
pub struct Listener {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// Why nobody listens.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for health and metrics at {address}: {cause}; choose another address and port")]
pub struct ListenError {
    address: String,
    #[source]
    cause: std::io::Error,
}

impl Listener {
    /// Begins to listen at an address such as `127.0.0.1:8081`; port 0 takes any that is free.
    pub async fn open(address: &str, instruments: Arc<Instruments>) -> Result<Self, ListenError> {
        let refused = |cause| ListenError { address: address.to_owned(), cause };
        let socket = TcpListener::bind(address).await.map_err(refused)?;
        let bound = socket.local_addr().map_err(refused)?;
        Ok(Self { address: bound, task: tokio::spawn(accept(socket, instruments)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(socket: TcpListener, instruments: Arc<Instruments>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => {
                let instruments = Arc::clone(&instruments);
                tokio::spawn(async move {
                    serve(stream, &instruments).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(AFTER_REFUSAL).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, instruments: &Instruments) {
    let service =
        service_fn(
            |request: Request<Incoming>| async move { Ok::<_, Infallible>(answer(&request, instruments)) },
        );
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_LIMIT_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::trace!(%error, "a question was not asked to its end");
    }
}

fn answer<B>(request: &Request<B>, instruments: &Instruments) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
    }
    let asks = |word: &str| {
        let query = request.uri().query().unwrap_or_default();
        query
            .split('&')
            .any(|part| part == word || part.strip_prefix(word).is_some_and(|v| v.starts_with('=')))
    };
    match request.uri().path() {
        "/livez" | "/healthz" => health(instruments.health.live()),
        "/readyz" => health(instruments.health.ready(asks("verbose"))),
        "/metrics" => {
            let mut response = text(StatusCode::OK, instruments.metrics.text());
            response.headers_mut().insert(CONTENT_TYPE, METRICS_TYPE);
            response
        }
        _ => text(StatusCode::NOT_FOUND, "here are /livez, /healthz, /readyz and /metrics\n".to_owned()),
    }
}

fn health(answer: Answer) -> Response<Full<Bytes>> {
    let status = if answer.ok { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    text(status, answer.text)
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, TEXT_TYPE);
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn ask(listener: &Listener, request: &str) -> String {
        let mut stream =
            TcpStream::connect(listener.address()).await.unwrap_or_else(|error| panic!("{error}"));
        let request = format!("{request} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
        let mut answer = String::new();
        let asked = async {
            stream.write_all(request.as_bytes()).await?;
            stream.read_to_string(&mut answer).await
        };
        asked.await.unwrap_or_else(|error| panic!("{error}"));
        answer
    }

    async fn listener(instruments: &Arc<Instruments>) -> Listener {
        let opened = Listener::open("127.0.0.1:0", Arc::clone(instruments)).await;
        opened.unwrap_or_else(|error| panic!("{error}"))
    }

    #[tokio::test]
    async fn each_path_answers_over_http() {
        let instruments = Arc::new(Instruments::default());
        let listener = listener(&instruments).await;
        let live = ask(&listener, "GET /livez").await;
        assert!(live.starts_with("HTTP/1.1 200 OK") && live.ends_with("ok\n"), "{live}");
        let starting = ask(&listener, "GET /readyz").await;
        assert!(starting.starts_with("HTTP/1.1 500"), "{starting}");
        instruments.health.turned();
        let ready = ask(&listener, "GET /readyz?verbose=true").await;
        assert!(ready.starts_with("HTTP/1.1 200 OK") && ready.contains("[+]running ok"), "{ready}");
        let metrics = ask(&listener, "GET /metrics").await;
        assert!(metrics.contains("openmetrics-text") && metrics.ends_with("# EOF\n"), "{metrics}");
        assert!(ask(&listener, "GET /").await.starts_with("HTTP/1.1 404"));
        assert!(ask(&listener, "POST /metrics").await.starts_with("HTTP/1.1 405"));
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_said_in_one_sentence() {
        let instruments = Arc::new(Instruments::default());
        let first = listener(&instruments).await;
        let address = first.address().to_string();
        let refused = Listener::open(&address, instruments).await.err().map(|error| error.to_string());
        let refused = refused.unwrap_or_default();
        assert!(
            refused.starts_with(&format!("cannot listen for health and metrics at {address}: ")),
            "{refused}"
        );
    }
}
