//! The flags of `mailboat hub`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::LogFormat;

const HUB_NOTES: &str = "\
Examples:
  mailboat hub --data ~/hub
  kubectl --kubeconfig ~/hub/admin.kubeconfig get namespaces

  mailboat hub --mode cluster --memory --kubeconfig /tmp/edge.kubeconfig --listen 127.0.0.1:0

  mailboat hub --mode cluster --memory --kubeconfig /tmp/edge.kubeconfig --simulate-workloads

  mailboat hub backup --data ~/hub --file hub.backup
  mailboat hub restore --backup hub.backup --data ~/hub-again";

/// Serve the Kubernetes API from this process: workspaces as kcp has them, or one cluster without machines, for a first
/// run, for tests and small sites.
///
/// What is written is on disk before it is answered, and only one process may use a data folder. At the first start an
/// authority is made that signs the server's certificate and the administrator's, whose kubeconfig is written so that
/// only its owner can read it. Nobody else may do anything until the administrator says so, by RBAC as anywhere.
///
/// It runs until SIGTERM or SIGINT.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = HUB_NOTES, args_conflicts_with_subcommands = true)]
pub struct HubArguments {
    /// Something else than serving
    #[command(subcommand)]
    pub command: Option<HubCommand>,
    /// The folder that everything is kept in; it is made if it is not there
    #[arg(long, value_name = "FOLDER", required_unless_present = "memory", conflicts_with = "memory")]
    pub data: Option<PathBuf>,
    /// Keep everything in memory: at the end it is gone
    #[arg(long)]
    pub memory: bool,
    /// What to serve
    #[arg(long, value_enum, default_value_t = HubMode::Workspaces)]
    pub mode: HubMode,
    /// Where to listen; with port 0 at a free one. Other machines reach it only if it is not a loopback address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6443")]
    pub listen: SocketAddr,
    /// Where the administrator's kubeconfig goes; by default admin.kubeconfig in the data folder
    #[arg(long, value_name = "FILE", required_if_eq("memory", "true"))]
    pub kubeconfig: Option<PathBuf>,
    /// More names and addresses that clients reach it by, for its certificate
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// A certificate to show in place of one of the hub's own, as PEM; it is shown under whatever names it bears
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// The key of that certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// An authority, as PEM, whose certificates name users, besides the hub's own
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub client_ca_file: Option<PathBuf>,
    /// Users with fixed tokens: lines of `token,user,uid,"group1,group2"`
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// Play pods, nodes and the controllers of a cluster, so that workloads report status though nothing runs; with
    /// --mode cluster
    #[arg(long)]
    pub simulate_workloads: bool,
    /// How messages look
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// What a hub serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HubMode {
    /// Workspaces, as kcp does, for a center
    Workspaces,
    /// One cluster with the kinds of Kubernetes, for an edge
    Cluster,
}

/// What else can be done with a hub's data.
#[derive(Clone, Debug, Subcommand)]
pub enum HubCommand {
    /// Write everything to a new file, while the hub serves or afterwards; whoever may read the data folder may do this
    Backup {
        /// The data folder
        #[arg(long, value_name = "FOLDER")]
        data: PathBuf,
        /// The backup, which must not be there yet
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
    /// Put a backup into a data folder that is empty or not there yet
    Restore {
        /// The backup
        #[arg(long, value_name = "FILE")]
        backup: PathBuf,
        /// The data folder
        #[arg(long, value_name = "FOLDER")]
        data: PathBuf,
    },
}
