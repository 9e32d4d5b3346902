//! The flags of `mailboat up`.

use std::path::PathBuf;

use clap::Args;

const UP_NOTES: &str = "\
Examples:
  mailboat up
  mailboat up --data ~/mailboat
  mailboat up --edges 5
  mailboat up --center-kubeconfig kcp.kubeconfig --edge guilder=guilder.kubeconfig --edges 1";

/// See it work: a center, two edges and an example that travels to them, in this one process, until Ctrl-C.
///
/// Starts an embedded center and two embedded edges, guilder and florin, whose workloads are played and run nowhere; runs
/// the center and the edges' syncers; describes the edges and applies the example of the folder examples/example1. When
/// everything is in place it prints what runs where, how to look at it and what to try. Nothing else need be installed,
/// and only this machine can reach it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = UP_NOTES)]
pub struct UpArguments {
    /// Keep everything in this folder: started again with it, all is as it was, with the same servers. By default nothing is
    /// kept
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// How many edges [default: 2, or as many as the folder has]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub edges: Option<u16>,
    /// A kcp of your own in place of the embedded center, as an administrator of its root workspace
    #[arg(long, value_name = "FILE")]
    pub center_kubeconfig: Option<PathBuf>,
    /// A cluster of your own in place of the embedded edge of this name, or beside them; may be given again
    #[arg(long = "edge", value_name = "NAME=FILE", value_parser = given_edge)]
    pub given: Vec<GivenEdge>,
    /// Which log lines are written to the log file: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "MAILBOAT_LOG")]
    pub log_level: String,
}

/// An edge that somebody has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenEdge {
    /// Its name.
    pub name: String,
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
}

fn given_edge(text: &str) -> Result<GivenEdge, String> {
    let (name, file) = text.split_once('=').ok_or("write it as NAME=FILE")?;
    mailboat_registration::names::check_object_name(name, "an edge").map_err(|bad| bad.to_string())?;
    if file.is_empty() {
        return Err("name the edge's kubeconfig after the equals sign".to_owned());
    }
    Ok(GivenEdge { name: name.to_owned(), kubeconfig: PathBuf::from(file) })
}
