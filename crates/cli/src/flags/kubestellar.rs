//! Commands that KubeStellar has under names of its own, with its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use mailboat_api::names::object::PROVIDER_WORKSPACE;

use super::ServerFlags;

/// What `kubestellar`, `kubestellar-…` and `emc-customize` do.
#[derive(Clone, Debug, Subcommand)]
pub enum Kubestellar {
    /// Set up the provider workspace, and workspaces for edges and for workloads
    Init(KubestellarInit),
    /// The same, and then run the center in the background
    Start(KubestellarInit),
    /// End the center that `start` runs
    Stop(LogFolder),
    /// Print all objects of a kind in all mailboxes, one after the other
    ListSyncingObjects(ListSyncingObjects),
    /// Print what this program is
    Version {
        /// Only this of it
        part: Option<VersionPart>,
    },
    /// Print the version alone
    Release,
    /// Show what an object becomes at a Location, from files alone
    Customize {
        /// A file with the Customizer
        #[arg(long, value_name = "FILE")]
        customizer_filename: Option<PathBuf>,
        /// The object
        #[arg(value_name = "OBJECT")]
        object: PathBuf,
        /// The Location
        #[arg(value_name = "LOCATION")]
        location: Option<PathBuf>,
    },
}

/// Where the background center is looked after.
#[derive(Clone, Debug, Args)]
pub struct LogFolder {
    /// The folder with its log and its process number
    #[arg(long, value_name = "FOLDER", default_value = "kubestellar-logs")]
    pub log_folder: PathBuf,
    /// Whether kcp runs on this machine: taken for the sake of older scripts, and of no matter
    #[arg(long, value_name = "BOOL", hide = true, action = clap::ArgAction::Set)]
    pub local_kcp: Option<bool>,
    /// The center
    #[command(flatten)]
    pub server: ServerFlags,
}

/// What is set up.
#[derive(Clone, Debug, Args)]
pub struct KubestellarInit {
    /// Inventory workspaces that are to be there, separated by commas
    #[arg(long, value_name = "PATHS", value_delimiter = ',', default_value = "root:imw1")]
    pub ensure_imw: Vec<String>,
    /// Workload workspaces that are to be there, separated by commas
    #[arg(long, value_name = "PATHS", value_delimiter = ',', default_value = "root:wmw1")]
    pub ensure_wmw: Vec<String>,
    /// The workspace that offers our APIs, and in which mailboxes stand
    #[arg(long = "provider-workspace", alias = "espw", value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
    /// Where the background center is looked after, and how its kcp is reached
    #[command(flatten)]
    pub folder: LogFolder,
}

/// Which objects are listed.
#[derive(Clone, Debug, Args)]
pub struct ListSyncingObjects {
    /// The kind, such as Deployment
    #[arg(long, value_name = "KIND")]
    pub api_kind: String,
    /// Its group; by default whichever has the kind
    #[arg(long, value_name = "GROUP", default_value = "")]
    pub api_group: String,
    /// Its version; whichever is preferred is read
    #[arg(long, value_name = "VERSION", hide = true)]
    pub api_version: Option<String>,
    /// Its plural, in place of the kind
    #[arg(long, value_name = "PLURAL")]
    pub api_resource: Option<String>,
    /// Go on with what changes, until interrupted; each object then says by `Action` what became of it
    #[arg(long)]
    pub watch: bool,
    /// As JSON, not as YAML
    #[arg(long)]
    pub json: bool,
    /// The workspace in which mailboxes stand
    #[arg(long = "provider-workspace", alias = "espw", value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
    /// The kubeconfig; by default the files in KUBECONFIG, else ~/.kube/config
    #[arg(long, value_name = "FILE", visible_alias = "parent-kubeconfig")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; by default its current one
    #[arg(long, value_name = "NAME", visible_alias = "parent-context")]
    pub context: Option<String>,
    /// A kubeconfig for all workspaces, which is not needed
    #[arg(long, hide = true, value_name = "FILE")]
    pub all_kubeconfig: Option<PathBuf>,
    /// A context for all workspaces, which is not needed
    #[arg(long, hide = true, value_name = "NAME")]
    pub all_context: Option<String>,
}

/// What can be asked of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub enum VersionPart {
    /// When it was built
    BuildDate,
    /// From which commit
    GitCommit,
    /// Whether all of that was committed
    GitTreeState,
    /// For which machines
    Platform,
}
