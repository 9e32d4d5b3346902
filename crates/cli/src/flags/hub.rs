//! The flags of `mailboat hub`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::LogFormat;

/// In milliseconds.
const LONGEST_MOMENT: u64 = 3_600_000;

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
    /// The authority of that certificate, as PEM, for the pods of a simulated cluster, which trust it; by default the hub's own
    #[arg(long, value_name = "FILE", requires = "simulate_workloads")]
    pub root_ca_file: Option<PathBuf>,
    /// Users with fixed tokens: lines of `token,user,uid,"group1,group2"`
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// Play pods, nodes and the controllers of a cluster, so that workloads report status though nothing runs; with
    /// --mode cluster
    #[arg(long)]
    pub simulate_workloads: bool,
    /// How it is played
    #[command(flatten)]
    pub simulation: Simulation,
    /// How messages look
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How fast things happen in a cluster that is played, and how often they go wrong.
#[derive(Clone, Debug, Args)]
pub struct Simulation {
    /// How many nodes are played
    #[arg(long, value_name = "COUNT", default_value_t = 2, requires = "simulate_workloads")]
    pub simulated_nodes: u16,
    /// How long a pod that is played takes until it runs, such as 200ms or 5s
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = moment, requires = "simulate_workloads")]
    pub simulated_start: Duration,
    /// How long it takes from then on until it is ready
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = moment, requires = "simulate_workloads")]
    pub simulated_ready: Duration,
    /// How long it takes to go
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = moment, requires = "simulate_workloads")]
    pub simulated_stop: Duration,
    /// How long one runs that comes to an end by itself, as a Job's
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = moment, requires = "simulate_workloads")]
    pub simulated_run: Duration,
    /// How many of a thousand starts fail
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1000),
        requires = "simulate_workloads")]
    pub simulated_failures: u16,
    /// What decides which of them: the same number lets the same ones fail
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "simulate_workloads")]
    pub simulated_seed: u64,
}

/// Reads a time as `200ms`, `5s` or `2m`.
fn moment(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000)];
    let read = units.iter().find_map(|(unit, milliseconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*milliseconds).filter(|time| *time <= LONGEST_MOMENT)
    });
    read.map(Duration::from_millis).ok_or_else(|| "write it as 200ms, 5s or 2m, up to an hour".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_three_units_and_have_a_limit() {
        for (text, milliseconds) in
            [("0ms", 0), ("200ms", 200), ("5s", 5_000), ("2m", 120_000), ("60m", 3_600_000)]
        {
            assert_eq!(moment(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "5", "5h", "-1s", "1.5s", "61m", "18446744073709551615m"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
