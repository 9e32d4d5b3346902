//! The flags of commands about APIs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ServerFlags;

/// Offer APIs in a workspace.
#[derive(Clone, Debug, Args)]
pub struct ApiArguments {
    /// What to do
    #[command(subcommand)]
    pub command: ApiCommand,
}

/// What can be done about APIs.
#[derive(Clone, Debug, Subcommand)]
#[allow(missing_docs, reason = "a description here would take the place of the arguments' own, longer one")]
pub enum ApiCommand {
    Import(ImportArguments),
}

const IMPORT_NOTES: &str = "\
Examples:
  kubectl mailboat api import -f widgets-crd.yaml
  kubectl --context cluster get crd widgets.example.com -o yaml | kubectl mailboat api import -f - --bind
  kubectl mailboat api import --from-kubeconfig cluster.kubeconfig widgets.example.com gears.example.com
  kubectl mailboat api import -f widgets-crd.yaml --dry-run";

/// Offer kinds in a workspace of kcp: CustomResourceDefinitions become APIResourceSchemas and an APIExport.
///
/// The definitions come from a file, or from a cluster that has them. A cluster's kinds are those that it has by a
/// CustomResourceDefinition; its aggregated API servers' have none, and those of Kubernetes itself are offered by the
/// export `kubernetes` of the provider workspace. A schema's name begins with a hash of its content:
/// run again with the same definition, nothing changes; with another one, a new schema is made, and the export offers it in
/// the place of the former, so that objects of the kind stay. All else that the export offers stays as well.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = IMPORT_NOTES)]
pub struct ImportArguments {
    /// A file with CustomResourceDefinitions, as YAML or JSON; `-`: standard input
    #[arg(
        long,
        short,
        value_name = "FILE",
        required_unless_present = "from_kubeconfig",
        conflicts_with = "from_kubeconfig"
    )]
    pub filename: Option<PathBuf>,
    /// The kubeconfig of a cluster that has the kinds by CustomResourceDefinitions
    #[arg(long, value_name = "FILE", requires = "kinds")]
    pub from_kubeconfig: Option<PathBuf>,
    /// The context in it; by default its current one
    #[arg(long, value_name = "NAME", requires = "from_kubeconfig")]
    pub from_context: Option<String>,
    /// The CustomResourceDefinitions of that cluster, such as widgets.example.com
    #[arg(value_name = "KIND", requires = "from_kubeconfig", conflicts_with = "filename")]
    pub kinds: Vec<String>,
    /// The APIExport; by default it is named after the API group, one for each
    #[arg(long, value_name = "NAME")]
    pub export: Option<String>,
    /// The workspace; by default the current one
    #[arg(long, short, value_name = "PATH")]
    pub workspace: Option<String>,
    /// Bind the workspace itself to the export, so that it has the kinds at once
    #[arg(long)]
    pub bind: bool,
    /// Print what would be made, and make nothing
    #[arg(long, conflicts_with = "bind")]
    pub dry_run: bool,
    /// The center
    #[command(flatten)]
    pub server: ServerFlags,
}
