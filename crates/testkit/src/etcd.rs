//! The store behind edges' API servers.

use std::path::Path;

use crate::error::Result;
use crate::part::{Part, PartKind, PartSpec, Probe};
use crate::ports::Port;
use crate::site::Site;

/// Starts an etcd, not ready yet. Several API servers may use it, each under a prefix of its own.
pub(crate) fn launch(site: &Site, name: &str, folder: &Path, durable: bool) -> Result<Part> {
    let (port, peer_port) = (Port::reserve()?, Port::reserve()?);
    let data = folder.join("data");
    let client_url = url(port.number());
    let peer_url = url(peer_port.number());
    let arguments = vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client_url}"),
        format!("--advertise-client-urls={client_url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster=default={peer_url}"),
        // What a power cut would lose is of no interest to tests: a kill -9 loses nothing that was written.
        format!("--unsafe-no-fsync={}", !durable),
        "--log-level=warn".to_owned(),
        // Without it an idle watch cache cannot know that it is up to date, and consistent reads wait.
        "--watch-progress-notify-interval=5s".to_owned(),
    ];
    Part::launch(PartSpec {
        kind: PartKind::Etcd,
        name: name.to_owned(),
        folder: folder.to_owned(),
        program: site.programs.etcd()?,
        arguments,
        environment: Vec::new(),
        data: Some(data),
        lifetime: site.lifetime,
        probe: Probe::new(PartKind::Etcd, port.number(), None)?,
        port,
        more_ports: vec![peer_port],
    })
}

pub(crate) fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}
