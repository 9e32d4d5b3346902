//! Asks a container whether it has started, lives and is ready, as its manifest says.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Uri};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::Blocked;
use super::environment::POD_ADDRESS;

/// A container that is not ready yet is asked this often even if its manifest says less: tests wait for it.
const IMPATIENT_PERIOD: Duration = Duration::from_secs(1);

/// What became known by asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has started: the other probes begin.
    Started,
    /// It is ready, or is not any more.
    Ready(bool),
}

/// The probes of one container.
#[derive(Debug)]
pub(super) struct Probes {
    startup: Option<Check>,
    liveness: Option<Check>,
    readiness: Option<Check>,
}

#[derive(Debug)]
struct Check {
    action: Action,
    initial_delay: Duration,
    period: Duration,
    timeout: Duration,
    successes_needed: i32,
    failures_allowed: i32,
}

#[derive(Debug)]
enum Action {
    Get { address: SocketAddr, path: Uri, headers: Vec<(HeaderName, HeaderValue)> },
    Connect(SocketAddr),
}

impl Probes {
    /// The probes that `container` asks for.
    pub(super) fn of(container: &Container) -> Result<Self, Blocked> {
        let check =
            |probe: &Option<Probe>| probe.as_ref().map(|probe| Check::of(container, probe)).transpose();
        Ok(Self {
            startup: check(&container.startup_probe)?,
            liveness: check(&container.liveness_probe)?,
            readiness: check(&container.readiness_probe)?,
        })
    }

    /// Asks for as long as the container runs. Returns when it has to be restarted, and says why.
    pub(super) async fn ask(&self, report: impl Fn(Verdict)) -> String {
        if let Some(startup) = &self.startup
            && let Err(failure) = startup.until_it_succeeds().await
        {
            return format!("Startup probe failed: {failure}");
        }
        report(Verdict::Started);
        let readiness = async {
            match &self.readiness {
                None => report(Verdict::Ready(true)),
                Some(readiness) => readiness.keep_asking(&report).await,
            }
            std::future::pending::<()>().await;
        };
        let liveness = async {
            match &self.liveness {
                None => std::future::pending().await,
                Some(liveness) => liveness.until_it_fails().await,
            }
        };
        tokio::select! {
            failure = liveness => format!("Liveness probe failed: {failure}"),
            () = readiness => String::new(),
        }
    }
}

impl Check {
    fn of(container: &Container, probe: &Probe) -> Result<Self, Blocked> {
        let action = if let Some(get) = &probe.http_get {
            Action::get(container, get)?
        } else if let Some(connect) = &probe.tcp_socket {
            Action::Connect(address(container, connect.host.as_deref(), &connect.port)?)
        } else {
            return Err(Blocked::config(
                "a probe is of a kind that is not played by this kubelet: only HTTP and TCP are",
            ));
        };
        let seconds = |value: Option<i32>, default: u32| {
            let value = value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default);
            Duration::from_secs(value.into())
        };
        Ok(Self {
            action,
            initial_delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10).max(Duration::from_secs(1)),
            timeout: seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1)),
            successes_needed: probe.success_threshold.unwrap_or(1),
            failures_allowed: probe.failure_threshold.unwrap_or(3),
        })
    }

    async fn ask(&self) -> Result<(), String> {
        match timeout(self.timeout, self.action.perform()).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(format!("no answer within {:?}", self.timeout)),
        }
    }

    async fn until_it_succeeds(&self) -> Result<(), String> {
        sleep(self.initial_delay).await;
        let mut failures = 0;
        loop {
            let Err(failure) = self.ask().await else { return Ok(()) };
            failures += 1;
            if failures >= self.failures_allowed {
                return Err(failure);
            }
            sleep(self.period).await;
        }
    }

    async fn until_it_fails(&self) -> String {
        sleep(self.initial_delay).await;
        let mut failures = 0;
        loop {
            match self.ask().await {
                Ok(()) => failures = 0,
                Err(failure) => {
                    failures += 1;
                    if failures >= self.failures_allowed {
                        return failure;
                    }
                }
            }
            sleep(self.period).await;
        }
    }

    async fn keep_asking(&self, report: &impl Fn(Verdict)) {
        sleep(self.initial_delay).await;
        let (mut ready, mut in_a_row) = (false, 0);
        loop {
            let succeeded = self.ask().await.is_ok();
            in_a_row = if succeeded == ready { 0 } else { in_a_row + 1 };
            let needed = if ready { self.failures_allowed } else { self.successes_needed };
            if in_a_row >= needed.max(1) {
                (ready, in_a_row) = (succeeded, 0);
                report(Verdict::Ready(ready));
            }
            sleep(if ready { self.period } else { self.period.min(IMPATIENT_PERIOD) }).await;
        }
    }
}

impl Action {
    fn get(container: &Container, get: &HTTPGetAction) -> Result<Self, Blocked> {
        if get.scheme.as_deref().is_some_and(|scheme| !scheme.eq_ignore_ascii_case("http")) {
            return Err(Blocked::config("HTTPS probes are not played by this kubelet"));
        }
        let malformed = |what: &str| Blocked::config(format!("{what:?} of a probe cannot be sent"));
        let path = get.path.as_deref().unwrap_or("/");
        let mut headers = Vec::new();
        for header in get.http_headers.iter().flatten() {
            let name = HeaderName::try_from(&header.name).map_err(|_| malformed(&header.name))?;
            headers.push((name, HeaderValue::try_from(&header.value).map_err(|_| malformed(&header.value))?));
        }
        Ok(Self::Get {
            address: address(container, get.host.as_deref(), &get.port)?,
            path: path.parse().map_err(|_| malformed(path))?,
            headers,
        })
    }

    async fn perform(&self) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        match self {
            Self::Connect(address) => {
                TcpStream::connect(address).await.map(drop).map_err(|error| text(&error))
            }
            Self::Get { address, path, headers } => {
                let stream = TcpStream::connect(address).await.map_err(|error| text(&error))?;
                let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
                let (mut sender, connection) = handshake.map_err(|error| text(&error))?;
                let mut request = Request::get(path.clone()).header(http::header::HOST, address.to_string());
                for (name, value) in headers {
                    request = request.header(name, value);
                }
                let request = request.body(Empty::<Bytes>::new()).map_err(|error| text(&error))?;
                let mut answer = std::pin::pin!(sender.send_request(request));
                let response = tokio::select! {
                    response = &mut answer => response,
                    // A server may close the connection with its answer, which has then arrived all the same.
                    _ = connection => answer.await,
                };
                let status = response.map_err(|error| text(&error))?.status();
                let is_fine = status.is_success() || status.is_redirection();
                if is_fine {
                    Ok(())
                } else {
                    Err(format!("HTTP probe failed with statuscode: {}", status.as_u16()))
                }
            }
        }
    }
}

fn address(container: &Container, host: Option<&str>, port: &IntOrString) -> Result<SocketAddr, Blocked> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            ports.find(|port| port.name.as_ref() == Some(name)).map(|port| port.container_port)
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok());
    let number = number
        .ok_or_else(|| Blocked::config(format!("a probe's port {port:?} is none of the container's")))?;
    let host = host.filter(|host| !host.is_empty()).unwrap_or(POD_ADDRESS);
    let ip =
        host.parse().map_err(|_| Blocked::config(format!("a probe's host {host:?} is no IP address")))?;
    Ok(SocketAddr::new(ip, number))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU16, Ordering};

    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers with the status that `status` holds.
    async fn server(status: &'static AtomicU16) -> u16 {
        let listener = TcpListener::bind((POD_ADDRESS, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let answer =
                    format!("HTTP/1.1 {} X\r\ncontent-length: 0\r\n\r\n", status.load(Ordering::Relaxed));
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        port
    }

    fn probes(container: Value) -> Result<Probes, Blocked> {
        Probes::of(&serde_json::from_value(container).unwrap())
    }

    #[tokio::test]
    async fn a_container_becomes_ready_and_is_restarted_when_it_no_longer_lives() {
        static STATUS: AtomicU16 = AtomicU16::new(200);
        let port = server(&STATUS).await;
        let get = json!({ "path": "/healthz?full", "port": "health" });
        let container = json!({
            "name": "c",
            "ports": [{ "name": "health", "containerPort": port }],
            "readinessProbe": { "httpGet": get },
            "livenessProbe": { "httpGet": get, "periodSeconds": 1, "failureThreshold": 1 },
        });
        let seen = Mutex::new(Vec::new());
        let failure = probes(container)
            .unwrap()
            .ask(|verdict| {
                seen.lock().unwrap().push(verdict);
                if verdict == Verdict::Ready(true) {
                    STATUS.store(500, Ordering::Relaxed);
                }
            })
            .await;
        assert_eq!(failure, "Liveness probe failed: HTTP probe failed with statuscode: 500");
        assert_eq!(*seen.lock().unwrap(), [Verdict::Started, Verdict::Ready(true)]);
    }

    #[tokio::test]
    async fn a_container_that_never_starts_is_given_up() {
        let listener = TcpListener::bind((POD_ADDRESS, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let startup = json!({ "tcpSocket": { "port": port }, "failureThreshold": 1 });
        let failure = probes(json!({ "name": "c", "startupProbe": startup })).unwrap().ask(|_| ()).await;
        assert!(failure.starts_with("Startup probe failed: "), "{failure}");
    }

    #[test]
    fn what_is_not_played_is_refused_rather_than_ignored() {
        let cases = [
            (json!({ "exec": { "command": ["true"] } }), "not played"),
            (json!({ "httpGet": { "port": 1, "scheme": "HTTPS" } }), "not played"),
            (json!({ "httpGet": { "port": "nowhere" } }), "none of the container's"),
        ];
        for (probe, message) in cases {
            let blocked = probes(json!({ "name": "c", "livenessProbe": probe })).unwrap_err();
            assert!(blocked.message.contains(message), "{blocked:?}");
        }
    }
}
