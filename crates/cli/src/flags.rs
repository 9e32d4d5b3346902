//! The one table of commands and flags. Help, completion and `docs/cli.md` are made from it.

mod api;
mod asking;
mod caution;
mod center;
mod customize;
mod hub;
mod kubestellar;
mod syncer;
mod up;
mod workspaces;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use mailboat_api::names::object::PROVIDER_WORKSPACE;
use mailboat_registration::lifetime::Lifetime;
use mailboat_registration::rights::EdgeAccessArgument;

pub use api::{ApiArguments, ApiCommand, ImportArguments};
pub use asking::{PlanArguments, SurveyFlags, WhyArguments, Wording};
pub use center::{CenterArguments, CenterCommand, InitArguments, KcpFlags};
pub use customize::CustomizeArguments;
pub use hub::{HubArguments, HubCommand, HubMode, Simulation};
pub use kubestellar::{Kubestellar, KubestellarInit, ListSyncingObjects, LogFolder, VersionPart};
pub use syncer::{BadSyncerFlags, LogFormat, MailboatSyncer, SyncerArguments};
pub use up::{GivenEdge, UpArguments};
pub use workspaces::{
    EnsureArguments, Ensured, GetArguments, ImwArguments, InventoryFlags, Listing, LocationArguments,
    PrepForClusterArguments, PrepForSyncerArguments, RemoveArguments, Removed, ServerFlags, Shown,
    WmwArguments, WsArguments, WsCommand,
};

/// Carry workloads from one center to many edge clusters, and bring back what they report
#[derive(Debug, Parser)]
#[command(name = "mailboat", version, disable_help_subcommand = true, max_term_width = 100, after_long_help = MAILBOAT_NOTES)]
pub struct Mailboat {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const MAILBOAT_NOTES: &str = "\
Exit codes: 0 done, 1 failed, 2 not as it should be called (then nothing was changed).
Every `kubectl mailboat X` is also `mailboat X`; `mailboat link` makes the names that kubectl looks for.";

/// The commands. Those with arguments are described where their arguments are.
#[derive(Debug, Subcommand)]
#[allow(missing_docs, reason = "a description here would take the place of the arguments' own, longer one")]
pub enum Command {
    Up(UpArguments),
    Center(CenterArguments),
    Syncer(SyncerArguments),
    SyncerGen(SyncerGenArguments),
    SyncerRemove(SyncerRemoveArguments),
    /// Older names of commands
    #[command(subcommand, hide = true)]
    Workload(Workload),
    /// KubeStellar's own commands
    #[command(subcommand, hide = true)]
    Kubestellar(Kubestellar),
    Ws(WsArguments),
    Ensure(EnsureArguments),
    Remove(RemoveArguments),
    PrepForSyncer(PrepForSyncerArguments),
    PrepForCluster(PrepForClusterArguments),
    Get(GetArguments),
    Why(WhyArguments),
    Plan(PlanArguments),
    Api(ApiArguments),
    Customize(CustomizeArguments),
    Hub(HubArguments),
    Link(LinkArguments),
    Completion(CompletionArguments),
    /// Say what could be typed next, as kubectl asks for it
    #[command(hide = true, disable_help_flag = true)]
    Complete {
        /// The words so far, the unfinished one last
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Print the version
    Version,
}

/// `kubectl kcp workload …`, as the first edge syncers were registered.
#[derive(Debug, Subcommand)]
#[allow(missing_docs, reason = "as above")]
pub enum Workload {
    EdgeSync(SyncerGenArguments),
}

/// Which center, and as whom.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The center")]
pub struct CenterFlags {
    /// The kubeconfig of the center; by default the files in KUBECONFIG, else ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; by default its current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The mailbox: its name, or its whole path such as root:espw:1a2b-mb-3c4d; by default the current workspace
    #[arg(long, value_name = "WORKSPACE")]
    pub mailbox: Option<String>,
    /// The workspace in which mailboxes stand, for a mailbox that is given by its name alone
    #[arg(long, value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
    /// The namespace of the syncer's account in the mailbox
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub kcp_namespace: String,
}

const SYNCER_GEN_NOTES: &str = "\
Examples:
  kubectl ws root:espw:1a2b-mb-3c4d
  kubectl mailboat syncer-gen guilder --syncer-image IMAGE -o guilder-syncer.yaml
  kubectl --context guilder apply -f guilder-syncer.yaml

  mailboat syncer-gen guilder --mailbox 1a2b-mb-3c4d --syncer-image IMAGE -o - | kubectl apply -f -
  mailboat syncer-gen guilder --syncer-image IMAGE -o f.yaml --edge-access namespaces=till,kitchen
  mailboat syncer-gen guilder --syncer-image IMAGE -o f.yaml --rotate

Older forms: kubectl kubestellar syncer-gen, kubectl-kubestellar-syncer_gen,
kubectl kcp workload edge-sync NAME --image IMAGE -o FILE.";

/// Register an edge cluster's syncer in its mailbox, and write the manifest for the cluster.
///
/// In the mailbox (the current workspace, or --mailbox) it makes a ServiceAccount that may read that mailbox, report
/// into it and renew its own token, and nothing else anywhere; and an empty EdgeSyncConfig named like the SyncTarget,
/// if there is none. The manifest holds all that the edge cluster needs: one `kubectl apply` there, and the syncer
/// runs.
///
/// Everything is checked first: outside a mailbox, without the rights or with a bad name, nothing is made. Run it again
/// and nothing changes, and the manifest is the same to the byte: it remembers the token in a Secret of the mailbox. A
/// new token is made with --rotate. Rights to bring objects up follow what the mailbox's configurations say when it is
/// run.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = SYNCER_GEN_NOTES)]
pub struct SyncerGenArguments {
    /// The SyncTarget's name
    pub name: String,
    /// The image that the syncer runs from, with its tag or digest
    #[arg(long, value_name = "IMAGE", alias = "image")]
    pub syncer_image: String,
    /// Where the manifest goes; `-`: standard output. It holds a token, so only its owner may read the file
    #[arg(short, long, value_name = "FILE")]
    pub output_file: PathBuf,
    /// The token, and the edge
    #[command(flatten)]
    pub options: SyncerOptions,
    /// The center
    #[command(flatten)]
    pub center: CenterFlags,
}

/// What a syncer is registered with, whoever asks for it.
#[derive(Clone, Debug, Args)]
pub struct SyncerOptions {
    /// How long the token lives, such as 30d or 720h; the syncer renews it from half of that on
    #[arg(long, value_name = "TIME", default_value_t = Lifetime::DEFAULT)]
    pub lifetime: Lifetime,
    /// Make a new token. The old one works until its end, so the running syncer is not cut off before it has the new
    #[arg(long)]
    pub rotate: bool,
    /// The center's URL as the edge reaches it, if that is not the kubeconfig's own
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// What the syncer may touch at the edge: `all`; `namespaces=a,b`, which must be there already; or `rules=FILE`, a
    /// list of RBAC rules or a ClusterRole
    #[arg(long, value_name = "ACCESS", default_value = "all", help_heading = "The edge")]
    pub edge_access: EdgeAccessArgument,
    /// The namespace at the edge; by default one of the syncer's own
    #[arg(short, long, value_name = "NAME", help_heading = "The edge")]
    pub namespace: Option<String>,
    /// How many syncers run: 1, or 0 to begin later
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1), help_heading = "The edge")]
    pub replicas: u8,
    /// Requests per second that the syncer makes to either side; 0: as many as the servers take
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, value_parser = rate, help_heading = "The edge")]
    pub qps: f64,
    /// Requests at once after a quiet time, where --qps limits them
    #[arg(long, value_name = "NUMBER", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..), help_heading = "The edge")]
    pub burst: u32,
    /// The port in the Pod for health and metrics
    #[arg(long, value_name = "NUMBER", default_value_t = 8080, value_parser = clap::value_parser!(u16).range(1024..), help_heading = "The edge")]
    pub port: u16,
    /// More labels for everything at the edge, as key=value; separated by commas or given again
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = label, help_heading = "The edge")]
    pub labels: Vec<(String, String)>,
}

impl SyncerOptions {
    /// The labels by key; of one given twice the last counts.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().cloned().collect()
    }
}

const SYNCER_REMOVE_NOTES: &str = "\
Examples:
  mailboat syncer-remove guilder --mailbox 1a2b-mb-3c4d --edge-kubeconfig guilder.kubeconfig
  mailboat syncer-remove guilder --keep-objects --edge-kubeconfig guilder.kubeconfig
  mailboat syncer-remove guilder        in the mailbox alone; prints what to run at the edge";

/// Undo what `syncer-gen` did.
///
/// At the edge, if --edge-kubeconfig is given: the syncer is stopped, what it delivered from this mailbox is deleted
/// (unless --keep-objects), and then all that the manifest made. Otherwise the commands that do it are printed, and what
/// was delivered stays. In the mailbox: the account goes with its rights, and its tokens with it, at once. The default
/// EdgeSyncConfig goes if it is still empty; all else in the mailbox stays.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = SYNCER_REMOVE_NOTES)]
pub struct SyncerRemoveArguments {
    /// The SyncTarget's name
    pub name: String,
    /// Leave at the edge what was delivered there, with its marks, so that a later syncer of the same SyncTarget takes
    /// it up again
    #[arg(long)]
    pub keep_objects: bool,
    /// The kubeconfig of the edge cluster, to remove the syncer there as well
    #[arg(long, value_name = "FILE", help_heading = "The edge")]
    pub edge_kubeconfig: Option<PathBuf>,
    /// The context in it; by default its current one
    #[arg(long, value_name = "NAME", requires = "edge_kubeconfig", help_heading = "The edge")]
    pub edge_context: Option<String>,
    /// The center
    #[command(flatten)]
    pub center: CenterFlags,
}

/// Make this program's other names in a folder, as symbolic links.
///
/// kubectl finds plugins by their names: with `kubectl-mailboat` on the path, `kubectl mailboat X` runs `mailboat X`.
/// Prints the links. What is there and not a link is left alone.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Example:\n  mailboat link ~/.local/bin")]
pub struct LinkArguments {
    /// The folder; it should be on the path
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

const COMPLETION_NOTES: &str = "\
Examples:
  source <(mailboat completion bash)
  mailboat completion zsh > \"${fpath[1]}/_mailboat\"
  mailboat completion fish > ~/.config/fish/completions/mailboat.fish
  mailboat completion powershell | Out-String | Invoke-Expression

For `kubectl mailboat`, kubectl's own completion asks `kubectl_complete-mailboat`, which `mailboat link` makes.";

/// Print a script that completes commands and flags in a shell
#[derive(Clone, Debug, Args)]
#[command(after_long_help = COMPLETION_NOTES)]
pub struct CompletionArguments {
    /// The shell
    pub shell: clap_complete::Shell,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate),
        _ => Err("it must be a number, and not below 0".to_owned()),
    }
}

/// A server's URL, without any workspace.
pub(crate) fn server_url(text: &str) -> Result<String, String> {
    let url = text.parse::<http::Uri>().ok().filter(|url| {
        matches!(url.scheme_str(), Some("https" | "http")) && url.host().is_some() && url.query().is_none()
    });
    match url {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("{text:?} is no server's URL; write it as https://host:port")),
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as key=value")?;
    mailboat_registration::names::check_label(key, value).map_err(|bad| bad.to_string())?;
    Ok((key.to_owned(), value.to_owned()))
}
