//! The flags of `mailboat customize`.

use std::path::PathBuf;

use clap::Args;

use crate::documents::Format;

const NOTES: &str = "\
Examples:
  mailboat customize deployment.yaml --location florin.yaml
  mailboat customize page.yaml --customizer customizer.yaml --location florin.yaml -o json
  kubectl get location florin -o yaml | mailboat customize page.yaml --location -

Older form: emc-customize --customizer-filename CUSTOMIZER.yaml OBJECT.yaml LOCATION.yaml";

/// Show what an object becomes at a Location, from files alone
///
/// Parameters come from the labels and annotations of the Location, replacements from the Customizer that the object
/// asks for: the same as the center does for every edge. Nothing is read from a server and nothing is sent. What the
/// center would hold is refused here, with the same reason.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = NOTES)]
pub struct CustomizeArguments {
    /// The object, as YAML or JSON; a file may hold several; `-`: standard input
    #[arg(value_name = "OBJECT")]
    pub object: PathBuf,
    /// A file with the Customizers that may be asked for
    #[arg(long, value_name = "FILE", alias = "customizer-filename")]
    pub customizer: Vec<PathBuf>,
    /// A file with the Location
    #[arg(long, value_name = "FILE")]
    pub location: Option<PathBuf>,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    pub output: Format,
}
