//! Those who carry in `hop` and `syncer`: the engine and the bare loop, in a program of their own.
//!
//! What it has resident is theirs alone; as part of a benchmark it would be counted with all that starts real servers and
//! looks at what came of it.

use std::path::Path;

use anyhow::{Result, bail};
use mailboat_bench::hop::{engine, floor, side};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, from, to] = &*arguments else { bail!("it is told a role and two kubeconfigs") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (from, to) = (side::reach(Path::new(from)).await?, side::reach(Path::new(to)).await?);
        match role.as_str() {
            "engine" => engine::carry(&from, &to).await,
            "floor" => floor::carry(&from, &to).await,
            _ => bail!("nobody carries as {role}"),
        }
    })
}
