//! Worlds on the embedded server: the same places, each a `mailboat hub`, in place of kcp and Kubernetes.
//!
//! Tests are not told. They ask for a center and edges, and get what the environment says.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::part::{Part, PartKind, PartSpec, Probe};
use crate::place::Place;
use crate::ports::Port;
use crate::site::Site;

/// Names the program `mailboat` to let worlds be made of hubs.
pub const HUB_VARIABLE: &str = "MAILBOAT_HUB";

/// The program, if worlds are made of hubs.
pub(crate) fn program() -> Option<PathBuf> {
    std::env::var_os(HUB_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Whether worlds are made of hubs, of which there can be many: for tests that share a world only because a real one takes
/// so long to make.
pub fn is_on_hub() -> bool {
    program().is_some()
}

/// What a hub plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Played {
    /// A center.
    Workspaces,
    /// An edge that stores objects, and on which nothing acts.
    Bare,
    /// A whole edge, with nodes and workloads.
    Cluster,
}

/// Starts a hub, not ready yet.
pub(crate) fn launch(site: &Site, program: &Path, place: &Place, port: Port, played: Played) -> Result<Part> {
    let folder = place.folder().join("hub");
    let data = folder.join("data");
    let (certificate, key) = place.authority().serving_files()?;
    let mut arguments = vec![
        "hub".to_owned(),
        format!("--data={}", data.display()),
        format!("--kubeconfig={}", place.folder().join("hub.kubeconfig").display()),
        format!("--listen=127.0.0.1:{}", port.number()),
        format!("--tls-cert-file={}", certificate.display()),
        format!("--tls-private-key-file={}", key.display()),
        format!("--client-ca-file={}", place.authority().certificate_file().display()),
        format!("--token-auth-file={}", place.token_auth_file().display()),
    ];
    match played {
        Played::Workspaces => {}
        Played::Bare => arguments.push("--mode=cluster".to_owned()),
        Played::Cluster => arguments.extend([
            "--mode=cluster".to_owned(),
            "--simulate-workloads".to_owned(),
            format!("--root-ca-file={}", place.authority().certificate_file().display()),
        ]),
    }
    Part::launch(PartSpec {
        kind: PartKind::Hub,
        name: format!("{}/hub", place.name()),
        program: program.to_owned(),
        arguments,
        environment: Vec::new(),
        data: Some(data),
        lifetime: site.lifetime,
        probe: Probe::new(PartKind::Hub, port.number(), Some(place))?,
        folder,
        port,
        more_ports: Vec::new(),
    })
}
