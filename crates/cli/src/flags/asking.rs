//! The flags of commands that ask a center what it makes of something.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use mailboat_api::names::object::PROVIDER_WORKSPACE;

use super::ServerFlags;
use super::caution::CautionFlags;

/// How an answer is worded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wording {
    /// In sentences
    Text,
    /// As YAML
    Yaml,
    /// As JSON
    Json,
}

/// What is read for an answer.
#[derive(Clone, Debug, Args)]
pub struct SurveyFlags {
    /// The workspace that it is about; by default the current one
    #[arg(long, short, value_name = "PATH")]
    pub workspace: Option<String>,
    /// An inventory workspace to read besides those that are found; may be given again
    #[arg(long, value_name = "PATH")]
    pub imw: Vec<String>,
    /// The workspace that offers our APIs, and in which mailboxes stand
    #[arg(long = "provider-workspace", alias = "espw", value_name = "PATH", default_value = PROVIDER_WORKSPACE)]
    pub provider_workspace: String,
    /// How it is answered
    #[arg(short, long, value_enum, default_value_t = Wording::Text)]
    pub output: Wording,
    /// The center
    #[command(flatten)]
    pub server: ServerFlags,
}

const WHY_NOTES: &str = "\
Examples:
  kubectl mailboat why deployment/web -n shop
  kubectl mailboat why configmap page -n shop --edge guilder
  kubectl mailboat why clusterrole/reader -o yaml
  kubectl mailboat why deploy/web -n shop --workspace root:wmw1";

/// Say why an object is at its edges, or why it is not.
///
/// For each EdgePlacement of the object's workspace: whether it selects the object and by which of its entries, to which
/// edges it goes, how it is customized there, how far it came (its mailbox, its edge), how long that took, and what holds
/// it. The answer comes from the center's own code, run once more over what you may read; nothing is written, and it does
/// not matter whether a center runs. What you may not read is named.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = WHY_NOTES)]
pub struct WhyArguments {
    /// The object, as TYPE/NAME or TYPE NAME
    #[arg(value_name = "OBJECT", required = true, num_args = 1..=2)]
    pub object: Vec<String>,
    /// The namespace of the object
    #[arg(long, short, value_name = "NAME", default_value = "default")]
    pub namespace: String,
    /// Only at this edge, by the name of its Location or of its SyncTarget
    #[arg(long, value_name = "NAME")]
    pub edge: Option<String>,
    /// What is read
    #[command(flatten)]
    pub survey: SurveyFlags,
}

const PLAN_NOTES: &str = "\
Examples:
  kubectl mailboat plan placement.yaml
  kubectl mailboat plan -f customizer.yaml --workspace root:wmw1
  kubectl mailboat plan -f location.yaml --workspace root:imw1
  kubectl mailboat plan -f placement.yaml --exit-code || echo it would change something

Exit codes: 0 done, 1 failed, 2 not as it should be called; with --exit-code also 3: something would change.";

/// Say what would change at which edges if a file were applied.
///
/// The file holds EdgePlacements and Customizers of a workload workspace, or Locations of an inventory workspace, ours or kcp's. What
/// would be created, changed and deleted is worked out by the center's own code over what you may read; nothing is
/// written. What is on its way anyway is left out. What the center would ask about first is told by --confirm-from and
/// --confirm-over: give those that it was started with. For a Location the placements of every workspace are read, which takes
/// the rights of the center's administrator.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = PLAN_NOTES)]
pub struct PlanArguments {
    /// The file, as YAML or JSON; `-`: standard input
    #[arg(value_name = "FILE", required_unless_present = "filename", conflicts_with = "filename")]
    file: Option<PathBuf>,
    /// The same, as kubectl takes files
    #[arg(long, short, value_name = "FILE")]
    filename: Option<PathBuf>,
    /// End with 3 if anything would change
    #[arg(long)]
    pub exit_code: bool,
    /// What the center was started with
    #[command(flatten)]
    pub caution: CautionFlags,
    /// What is read
    #[command(flatten)]
    pub survey: SurveyFlags,
}

impl PlanArguments {
    /// The file, by whichever of the two it was named.
    pub fn file(&self) -> &Path {
        self.file.as_deref().or(self.filename.as_deref()).unwrap_or_else(|| Path::new("-"))
    }
}
