//! What real servers say of their kinds, fetched anew: the OpenAPI documents that the compute schemas are made from, and the
//! columns of tables.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use mailboat_api::generate::{openapi_sources, trim_openapi};
use mailboat_testkit::{ADMIN, EdgeSpec, World};

use super::{GeneratedFile, columns};
use crate::progress::Progress;
use crate::testbed::BackgroundBuild;

/// The name of the cluster that is asked.
const EDGE: &str = "openapi";

/// Starts a kube-apiserver and a kcp, asks for every document and table, and trims them to what is kept.
pub(super) fn fetch(root: &Path, progress: &Progress) -> Result<Vec<GeneratedFile>> {
    BackgroundBuild::begin(progress)?.finish()?;
    progress.say("starting a kube-apiserver and a kcp …");
    tokio::runtime::Runtime::new().context("no async runtime can be started")?.block_on(async {
        let world = World::builder().center().edge_with(EdgeSpec::bare(EDGE)).start().await?;
        let client = world.edge(EDGE).client(ADMIN).await?;
        let mut files = Vec::new();
        for source in openapi_sources() {
            let request = http::Request::get(&source.server_path).body(Vec::new())?;
            let raw = client
                .request_text(request)
                .await
                .with_context(|| format!("{} cannot be fetched", source.server_path))?;
            files.push(GeneratedFile {
                path: PathBuf::from(&source.file_path),
                contents: trim_openapi(&raw)?,
            });
        }
        progress.say(format!("{} documents fetched", files.len()));
        let kcp = world.center().client(ADMIN, "root").await?;
        files.push(columns::record(root, &client, &kcp).await?);
        Ok(files)
    })
}
