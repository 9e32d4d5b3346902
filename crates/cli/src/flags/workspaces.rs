//! The flags of commands about workspaces, and of what is described and seen in them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use mailboat_api::names::object::PROVIDER_WORKSPACE;

use super::SyncerOptions;

/// Which server, and as whom.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The center")]
pub struct ServerFlags {
    /// The kubeconfig of the center; by default the files in KUBECONFIG, else ~/.kube/config
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; by default its current one
    #[arg(long, value_name = "NAME", global = true)]
    pub context: Option<String>,
    /// Shell tracing of older scripts, which is taken and changes nothing
    #[arg(short = 'X', hide = true, global = true)]
    pub trace: bool,
    /// More words, likewise
    #[arg(short = 'V', hide = true, global = true)]
    pub verbose: bool,
}

const WS_NOTES: &str = "\
Examples:
  kubectl ws root:wmw1            go there
  kubectl ws ..                   go one up
  kubectl ws -                    go back to where you were
  kubectl ws .                    say where you are
  kubectl ws                      go to your own workspace
  kubectl ws create team --enter
  kubectl ws ensure root:org:team --enter
  kubectl ws tree";

/// Go from workspace to workspace, as one goes through folders.
///
/// It changes where your kubeconfig points to, as kcp's own plugin does: everything that reads the kubeconfig follows.
/// Your other contexts stay as they are. A path from the root begins with `root` or a colon, any other begins where you
/// are.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = WS_NOTES)]
pub struct WsArguments {
    /// Where to: a path, `..`, `-`, `.` or `~`; nothing leads to your own workspace
    #[arg(value_name = "PATH", allow_hyphen_values = true)]
    pub path: Option<String>,
    /// The center
    #[command(flatten)]
    pub server: ServerFlags,
    /// What else to do
    #[command(subcommand)]
    pub command: Option<WsCommand>,
}

/// What else can be done about workspaces.
#[derive(Clone, Debug, Subcommand)]
pub enum WsCommand {
    /// Go there: the same as the path alone
    Use {
        /// Where to
        #[arg(value_name = "PATH", allow_hyphen_values = true)]
        path: String,
    },
    /// Say where you are
    Current {
        /// Only the path
        #[arg(long)]
        short: bool,
    },
    /// Make a workspace in this one, and wait until it can be used
    Create {
        /// Its name, or its whole path
        #[arg(value_name = "NAME")]
        name: String,
        /// Its type, as name or path:name
        #[arg(long = "type", value_name = "TYPE")]
        type_: Option<String>,
        /// Go there
        #[arg(long)]
        enter: bool,
        /// It is well if there is one already
        #[arg(long)]
        ignore_existing: bool,
    },
    /// Make a workspace and those above it, where they are not there yet
    Ensure {
        /// Its path
        #[arg(value_name = "PATH")]
        path: String,
        /// Go there
        #[arg(long)]
        enter: bool,
    },
    /// Show the workspaces in this one, and those in them
    Tree,
}

/// Make what is described, if it is not there, and put it right if it is.
#[derive(Clone, Debug, Args)]
pub struct EnsureArguments {
    /// What
    #[command(subcommand)]
    pub what: Ensured,
}

const LOCATION_NOTES: &str = "\
Example:
  kubectl mailboat ensure location guilder env=prod rack=7 --imw root:imw1";
const IMW_NOTES: &str = "\
Examples:
  kubectl mailboat ensure imw imw1
  kubectl mailboat ensure imw root:org:imw --kcp-kinds    with SyncTarget of workload.kcp.io and Location of scheduling.kcp.io";
const WMW_NOTES: &str = "\
Examples:
  kubectl mailboat ensure wmw wmw1
  kubectl mailboat ensure wmw wmw1 --with-kube false    without Deployments, Services and their like";

/// What can be ensured.
#[derive(Clone, Debug, Subcommand)]
pub enum Ensured {
    /// An edge in an inventory workspace: a SyncTarget, and a Location that leads to it
    ///
    /// Labels are added to both, and overwritten where they are there; others stay. The workspace gets its binding to our
    /// APIs if it has none.
    #[command(after_long_help = LOCATION_NOTES)]
    Location(LocationArguments),
    /// An inventory workspace: with our APIs, and what the center may do there
    ///
    /// `ensure location` does the same for the workspace that it describes an edge in; this is for those who describe edges
    /// by files, or by kcp's own SyncTarget and Location.
    #[command(after_long_help = IMW_NOTES)]
    Imw(ImwArguments),
    /// A workload management workspace: with our APIs, Kubernetes' kinds, and what the center may do there
    #[command(after_long_help = WMW_NOTES)]
    Wmw(WmwArguments),
}

/// An edge, and the labels that placements choose it by.
#[derive(Clone, Debug, Args)]
pub struct LocationArguments {
    /// The name of the SyncTarget and of the Location
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Labels, as key=value; one at least
    #[arg(value_name = "LABEL", value_parser = super::label)]
    pub labels: Vec<(String, String)>,
    /// The edge's kubeconfig, for the center to install the syncer with: kept in a Secret that the center may read
    #[arg(long, value_name = "FILE")]
    pub edge_kubeconfig: Option<PathBuf>,
    /// Where
    #[command(flatten)]
    pub inventory: InventoryFlags,
}

/// Which inventory workspace.
#[derive(Clone, Debug, Args)]
pub struct InventoryFlags {
    /// The inventory workspace; by default the current one
    #[arg(long, value_name = "PATH")]
    pub imw: Option<String>,
    /// The workspace that offers our APIs, and in which mailboxes stand
    #[arg(long = "provider-workspace", alias = "espw", value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
    /// The center
    #[command(flatten)]
    pub server: ServerFlags,
}

/// An inventory workspace.
#[derive(Clone, Debug, Args)]
pub struct ImwArguments {
    /// Its name below `root`, or its whole path
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Let edges be described by kcp's own kinds too
    #[arg(long)]
    pub kcp_kinds: bool,
    /// The workspace that offers our APIs
    #[arg(long = "provider-workspace", alias = "espw", value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
    /// The center
    #[command(flatten)]
    pub server: ServerFlags,
}

/// A workload management workspace.
#[derive(Clone, Debug, Args)]
pub struct WmwArguments {
    /// Its name below `root`, or its whole path
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Whether it has Deployments, Services and the other kinds of Kubernetes
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub with_kube: bool,
    /// The workspace that offers our APIs
    #[arg(long = "provider-workspace", alias = "espw", value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
    /// The center
    #[command(flatten)]
    pub server: ServerFlags,
}

/// Take away what `ensure` made.
#[derive(Clone, Debug, Args)]
pub struct RemoveArguments {
    /// What
    #[command(subcommand)]
    pub what: Removed,
}

const REMOVE_IMW_NOTES: &str = "\
Examples:
  kubectl mailboat remove imw imw1
  kubectl mailboat remove imw root:org:imw --with-edges";

/// What can be removed.
#[derive(Clone, Debug, Subcommand)]
pub enum Removed {
    /// An edge from its inventory workspace: the Location and the SyncTarget, if they are there
    ///
    /// The center then takes the edge's mailbox away. What was delivered stays at the edge, unless `syncer-remove` was run
    /// before.
    Location {
        /// The name of both
        #[arg(value_name = "NAME")]
        name: String,
        /// Where
        #[command(flatten)]
        inventory: InventoryFlags,
    },
    /// An inventory workspace in which no edges are described any more
    ///
    /// One that still has SyncTargets or Locations is left as it is, unless --with-edges is given: then these go first, each
    /// as by `remove location`, and the center takes the edges' mailboxes away. What was delivered stays at the edges.
    #[command(after_long_help = REMOVE_IMW_NOTES)]
    Imw {
        /// Its name below `root`, or its whole path
        #[arg(value_name = "NAME")]
        name: String,
        /// Remove the edges that it describes too, all of them
        #[arg(long)]
        with_edges: bool,
        /// The center
        #[command(flatten)]
        server: ServerFlags,
    },
    /// A workload management workspace, after all that it placed was withdrawn from the edges
    ///
    /// Its EdgePlacements are deleted, and withdrawals that the center holds because they are many are confirmed. The
    /// workspace itself goes when the last EdgePlacement is gone.
    Wmw {
        /// Its name below `root`, or its whole path
        #[arg(value_name = "NAME")]
        name: String,
        /// The center
        #[command(flatten)]
        server: ServerFlags,
    },
}

/// How something is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// As kubectl lists objects
    Table,
    /// As YAML documents
    Yaml,
    /// As JSON: one object, or a List of several
    Json,
}

const GET_NOTES: &str = "\
Examples:
  kubectl mailboat get placements
  kubectl mailboat get edges --workspace root:imw1
  kubectl mailboat get summary
  kubectl mailboat get summary shops          with its broken copies
  kubectl mailboat get objects --kind policyreports.wgpolicyk8s.io -o yaml
  kubectl mailboat get objects --kind deployments --watch";

/// Show placements, edges, summaries, or one kind of object over all mailboxes
#[derive(Clone, Debug, Args)]
#[command(after_long_help = GET_NOTES)]
pub struct GetArguments {
    /// What
    pub what: Shown,
    /// Only the one of this name; of a summary, its broken copies are shown with it
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The workspace to look into; by default the current one
    #[arg(long, short, value_name = "PATH")]
    pub workspace: Option<String>,
    /// For `objects`: the kind, such as Deployment, deployments or deployments.apps
    #[arg(long, value_name = "KIND", required_if_eq("what", "objects"))]
    pub kind: Option<String>,
    /// The workspace in which mailboxes stand
    #[arg(long = "provider-workspace", alias = "espw", value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
    /// How they are listed
    #[arg(short, long, value_enum, default_value_t = Listing::Table)]
    pub output: Listing,
    /// Go on with what changes, until interrupted
    #[arg(long)]
    pub watch: bool,
    /// One by one, and each that is watched with what became of it
    #[arg(skip)]
    pub one_by_one: bool,
    /// The center
    #[command(flatten)]
    pub server: ServerFlags,
}

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shown {
    /// The EdgePlacements of a workload workspace
    #[value(alias = "placement")]
    Placements,
    /// The SyncTargets of an inventory workspace
    #[value(alias = "edge")]
    Edges,
    /// The StatusSummaries of a workload workspace
    #[value(alias = "summaries")]
    Summary,
    /// All objects of a kind, in all mailboxes
    Objects,
}

impl Shown {
    /// What one of them is.
    pub fn singular(self) -> &'static str {
        match self {
            Self::Placements => "EdgePlacement",
            Self::Edges => "SyncTarget",
            Self::Summary => "StatusSummary",
            Self::Objects => "object",
        }
    }
}

const PREP_NOTES: &str = "\
Examples:
  kubectl mailboat prep-for-syncer guilder --imw root:imw1 --syncer-image IMAGE
  kubectl --context guilder apply -f guilder-syncer.yaml";

/// Wait for an edge's mailbox, register its syncer there, and write the manifest for the cluster.
///
/// The same as `syncer-gen`, for an edge that is known by its SyncTarget alone.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = PREP_NOTES)]
pub struct PrepForSyncerArguments {
    /// The SyncTarget's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The image that the syncer runs from, with its tag or digest
    #[arg(long, value_name = "IMAGE")]
    pub syncer_image: String,
    /// Where the manifest goes; `-`: standard output; by default NAME-syncer.yaml
    #[arg(short, long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// Fewer words, as older scripts ask for; there are few
    #[arg(short, hide = true)]
    pub silent: bool,
    /// The token, and the edge
    #[command(flatten)]
    pub options: SyncerOptions,
    /// Where
    #[command(flatten)]
    pub inventory: InventoryFlags,
}

const PREP_CLUSTER_NOTES: &str = "\
Examples:
  kubectl mailboat prep-for-cluster guilder env=prod --imw root:imw1 --syncer-image IMAGE
  kubectl mailboat prep-for-cluster guilder env=prod --imw root:imw1 --syncer-image IMAGE --server https://center.example:6443";

/// Everything for one more edge: `ensure imw` where that workspace is missing, `ensure location`, then `prep-for-syncer`
#[derive(Clone, Debug, Args)]
#[command(after_long_help = PREP_CLUSTER_NOTES)]
pub struct PrepForClusterArguments {
    /// The syncer
    #[command(flatten)]
    pub syncer: PrepForSyncerArguments,
    /// Labels, as key=value; one at least
    #[arg(value_name = "LABEL", value_parser = super::label)]
    pub edge_labels: Vec<(String, String)>,
}
