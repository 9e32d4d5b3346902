//! The floor: lists, watches and applies with the same client and as many requests in flight, and does nothing else. It
//! keeps nothing, knows no restart, deletes nothing and looks at no answer.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures::stream::FuturesUnordered;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use mailboat_cluster::{Cluster, ReadMode, Transport as _};
use mailboat_object::wire::{Call, Part, Verb};
use mailboat_object::{ClusterId, Key, Name};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::watch::{self, Watch, config_maps};
use super::{IN_FLIGHT, NAMESPACE};

/// As many as a follower asks for.
const PAGE: u32 = 500;

/// Carries until it is killed.
pub async fn carry(from: &Cluster, to: &Cluster) -> Result<()> {
    let mut read = std::pin::pin!(calls(from));
    let mut waiting = VecDeque::new();
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < IN_FLIGHT
            && let Some(call) = waiting.pop_front()
        {
            under_way.push(to.call(call));
        }
        tokio::select! {
            Some(answer) = under_way.next(), if !under_way.is_empty() => drop(answer?),
            read = read.try_next() => waiting.extend(read?.context("the watch has ended")?),
        }
    }
}

/// What is to be applied: of all pages of a list, then of each line of a watch.
fn calls(from: &Cluster) -> impl stream::Stream<Item = Result<Vec<Call>>> {
    enum Next {
        Page(Option<String>),
        Line(Box<Watch>),
    }
    stream::try_unfold(Next::Page(None), async |next| match next {
        Next::Page(continue_token) => {
            let body = from.fetch(watch::read(ReadMode::Page { limit: PAGE, continue_token })).await?;
            let body = body.whole().await?;
            let page: Page<'_> = serde_json::from_slice(&body)?;
            let calls = page.items.iter().map(apply).collect();
            if let Some(token) = page.metadata.continue_token.filter(|token| !token.is_empty()) {
                return Ok(Some((calls, Next::Page(Some(token)))));
            }
            let version = watch::version(&page.metadata.version)?;
            Ok(Some((calls, Next::Line(Box::new(Watch::from(from.clone(), version))))))
        }
        Next::Line(mut watch) => {
            let line = watch.next().await?;
            let line: Line<'_> = serde_json::from_slice(&line)?;
            let calls = if line.event == "ADDED" { vec![apply(&line.object)] } else { Vec::new() };
            Ok(Some((calls, Next::Line(watch))))
        }
    })
}

fn apply(map: &Map<'_>) -> Call {
    let (name, data) = (&map.metadata.name, map.data.map_or("{}", RawValue::get));
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"{NAMESPACE}"}},"data":{data}}}"#
    );
    let key = Key {
        cluster: ClusterId::new("target"),
        kind: config_maps(),
        namespace: Name::new(NAMESPACE),
        name: Name::new(name),
    };
    let verb = Verb::Apply { body: Arc::from(body.into_bytes()), manager: Name::new("floor"), force: false };
    Call { key, verb, part: Part::Whole, dry_run: false }
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMetadata,
    #[serde(borrow)]
    items: Vec<Map<'a>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "resourceVersion")]
    version: String,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    event: &'a str,
    #[serde(borrow)]
    object: Map<'a>,
}

#[derive(Deserialize)]
struct Map<'a> {
    metadata: MapMetadata,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MapMetadata {
    #[serde(default)]
    name: String,
}
