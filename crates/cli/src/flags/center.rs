//! The flags of the center.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use mailboat_api::names::object::PROVIDER_WORKSPACE;
use mailboat_center::parts::Part;
use mailboat_cluster::{Rate, Source};

use super::LogFormat;
use super::caution::CautionFlags;

const NOTES: &str = "\
Examples:
  mailboat center init        once, and after each upgrade
  mailboat center             runs until it is told to end
  mailboat center --parts scheduler,summarizer --listen :8081
                              beside one with --parts mailbox-controller,translator

Both act as the user of the kubeconfig, who should be in the group mailboat:center; never as an
administrator of kcp's shards.";

/// Run the center: mailboxes for SyncTargets, slices and copies for EdgePlacements.
///
/// It reads inventories and placements in every workspace that is bound to the provider workspace's APIs, makes a mailbox
/// workspace for each SyncTarget, and puts into it what placements select for that edge, in the form meant for it.
/// Nothing is withdrawn because a workspace or a binding goes away: that is held, and said.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = NOTES, args_conflicts_with_subcommands = true)]
pub struct CenterArguments {
    /// Instead of running
    #[command(subcommand)]
    pub command: Option<CenterCommand>,
    /// Where kcp is
    #[command(flatten)]
    pub kcp: KcpFlags,
    /// Requests per second; by default as many as it takes
    #[arg(long, value_name = "NUMBER", value_parser = super::rate)]
    pub qps: Option<f64>,
    /// Requests at once after a quiet time
    #[arg(long, value_name = "NUMBER", default_value_t = 100, requires = "qps", value_parser = clap::value_parser!(u32).range(1..))]
    pub burst: u32,
    /// Let one of several centers write at a time, by a Lease in the provider workspace; the others stand by, warm
    #[arg(long, value_name = "true|false", default_value_t = true, action = clap::ArgAction::Set)]
    pub leader_elect: bool,
    /// What of a center this process does; other processes do the rest, and those with the same parts stand by for each other
    #[arg(long, value_name = "PARTS", value_delimiter = ',', default_values_t = Part::ALL.map(CenterPart))]
    pub parts: Vec<CenterPart>,
    /// Install the syncer from this image in edges whose SyncTarget names a Secret with their kubeconfig
    #[arg(long, value_name = "IMAGE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub syncer_image: Option<String>,
    /// The center's URL as these edges reach it, if that is not the kubeconfig's own
    #[arg(long, value_name = "URL", requires = "syncer_image", value_parser = super::server_url)]
    pub syncer_server: Option<String>,
    /// How long an edge may be silent before its SyncTarget is not Ready any more, such as 90s or 5m; nothing is withdrawn for that
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = super::syncer::period)]
    pub silent_after: Duration,
    /// When somebody is asked first
    #[command(flatten)]
    pub caution: CautionFlags,
    /// Where health and metrics are served: address:port, or :port for every address
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", value_parser = super::syncer::listen_address)]
    pub listen: SocketAddr,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Which log lines are written: error, warn, info, debug or trace, or by part, such as info,mailboat_cluster=debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "MAILBOAT_LOG")]
    pub log_level: String,
}

/// A part of the center, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CenterPart(pub Part);

impl fmt::Display for CenterPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl ValueEnum for CenterPart {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [CenterPart; 4] = [
            CenterPart(Part::MailboxController),
            CenterPart(Part::Scheduler),
            CenterPart(Part::Translator),
            CenterPart(Part::Summarizer),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            Part::MailboxController => "Mailboxes, what stands in them, and SyncTargets' conditions",
            Part::Scheduler => "SinglePlacementSlices, and what Locations lead to",
            Part::Translator => "Copies in mailboxes, what syncers are told, and EdgePlacements' status",
            Part::Summarizer => "StatusSummaries",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}

/// What the center does besides running.
#[derive(Clone, Debug, Subcommand)]
#[allow(missing_docs, reason = "a description here would take the place of the arguments' own, longer one")]
pub enum CenterCommand {
    Init(InitArguments),
}

/// Set up the provider workspace: APIs, who may bind them, and types of workspaces.
///
/// Makes the workspace if it is not there, and in it APIResourceSchemas, APIExports with identities of their own, rights
/// and WorkspaceTypes. Run it again and nothing changes; run it with a newer version and what is new is added. It prints
/// what it made or changed.
///
/// The Secrets in the namespace mailboat-identities are part of every backup: without them, the objects of every
/// workspace are out of reach. Where one is missing, nothing is done.
#[derive(Clone, Debug, Args)]
pub struct InitArguments {
    /// Where kcp is
    #[command(flatten)]
    pub kcp: KcpFlags,
}

/// Which kcp, as whom, and where in it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "kcp")]
pub struct KcpFlags {
    /// The kubeconfig of kcp; by default the files in KUBECONFIG, else ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; by default its current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The provider workspace, in which mailboxes stand
    #[arg(long, value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
}

impl KcpFlags {
    /// How kcp is reached.
    pub fn source(&self) -> Source {
        Source::Kubeconfig { path: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

impl CenterArguments {
    /// How many requests are made.
    pub fn rate(&self) -> Option<Rate> {
        self.qps.map(|per_second| Rate { per_second, burst: self.burst })
    }
}
