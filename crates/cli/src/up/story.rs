//! What `mailboat up` says while it starts, and when everything is in place.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use super::example::WORKLOADS;

/// Says how far it has come, with the time since the beginning.
pub(super) struct Progress {
    begun: Instant,
}

impl Progress {
    pub(super) fn begin() -> Self {
        Self { begun: Instant::now() }
    }

    pub(super) fn say(&self, what: impl AsRef<str>) {
        eprintln!("{:6.1} s  {}", self.begun.elapsed().as_secs_f64(), what.as_ref());
    }
}

/// A place, and what is in it.
pub(super) struct Shown {
    /// Its name, which is also that of its context.
    pub(super) name: String,
    /// Where it is reached.
    pub(super) server: String,
    /// What is there.
    pub(super) holds: String,
}

/// What is there, how to look at it, what to try.
pub(super) fn all(
    state: &str,
    edges: &[Shown],
    center: &str,
    kubeconfig: &Path,
    kept: Option<&Path>,
) -> String {
    let mut text = String::new();
    let width = edges.iter().map(|edge| edge.name.len()).max().unwrap_or_default().max("center".len());
    // Writing to a text does not fail.
    let _ = writeln!(text, "\n{state}. What runs where:\n");
    let _ = writeln!(text, "  {:width$}  {center}", "center");
    let _ = writeln!(text, "  {:width$}    root:imw1   which edges there are", "");
    for workload in &WORKLOADS {
        let _ = writeln!(text, "  {:width$}    root:{}  {}", "", workload.workspace, workload.about);
    }
    for edge in edges {
        let _ = writeln!(text, "  {:width$}  {}\n  {:width$}    {}", edge.name, edge.server, "", edge.holds);
    }
    let first = edges.first().map_or("guilder", |edge| edge.name.as_str());
    let last = edges.last().map_or("florin", |edge| edge.name.as_str());
    let _ = writeln!(text, "\nLook, in another terminal:\n");
    let _ = writeln!(text, "  export KUBECONFIG={}", kubeconfig.display());
    if let Some(folder) = program_folder() {
        let _ = writeln!(text, "  export PATH=\"$PATH:{folder}\"");
    }
    for line in [
        "mailboat get edges --context imw1".to_owned(),
        "mailboat get placements --context wmw-c".to_owned(),
        "mailboat get summary --context wmw-c".to_owned(),
        "mailboat why replicaset/commond -n commonstuff --context wmw-c".to_owned(),
        "mailboat get objects --kind replicasets --context root".to_owned(),
        format!("kubectl --context {last} -n commonstuff get replicasets,pods"),
        format!("kubectl --context {first} -n commonstuff get configmap httpd-htdocs -o yaml"),
    ] {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "\nTry:\n");
    for (line, what) in [
        (
            "kubectl --context wmw-c -n commonstuff scale replicaset commond --replicas 3".to_owned(),
            "three pods at every edge",
        ),
        (
            format!("kubectl --context imw1 label location {last} env=test --overwrite"),
            "everything leaves that edge",
        ),
        (
            format!("kubectl --context {first} -n commonstuff delete replicaset commond"),
            "it is put back at once",
        ),
    ] {
        let _ = writeln!(text, "  {line}\n      {what}");
    }
    let _ = match kept {
        Some(folder) => writeln!(
            text,
            "\nCtrl-C stops everything. It is kept: `mailboat up --data {}` goes on from here.",
            folder.display()
        ),
        None => writeln!(text, "\nCtrl-C stops everything, and nothing of it stays."),
    };
    text
}

/// The folder of this program, if a shell would not find it.
fn program_folder() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|one| one == folder || one.join("mailboat").is_file());
    (!found).then(|| folder.display().to_string())
}
