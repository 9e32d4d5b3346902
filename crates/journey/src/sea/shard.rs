//! A second shard of the center, which nobody reaches.

use mailboat_machinery::{ListRequest, Machine, Moment, Patch, Settings};
use mailboat_object::key::KindId;
use mailboat_object::wire::Part;
use mailboat_sim::answer;
use serde_json::{Value, json};

use super::{CENTER, Sea};

/// How it would be reached.
pub(crate) const SHARD_URL: &str = "https://shard";

impl Sea {
    /// From now on every view has a second endpoint, at a server that does not answer.
    pub(crate) fn add_shard(&mut self) {
        let shard = self.add(Machine::new(Settings::default()));
        self.waters[shard].partitioned = true;
        self.shard = Some(shard);
        let slices = KindId::new("apis.kcp.io", "apiexportendpointslices");
        let request =
            ListRequest { cluster: self.truth.provider.clone(), kind: slices, ..ListRequest::default() };
        let now_seconds = self.seconds();
        let center = &mut self.machines[CENTER];
        let found = center.list(&request).map(|list| list.items).unwrap_or_default();
        let mut moment = Moment { now_seconds, random: &mut self.chance };
        for slice in found {
            let mut endpoints = slice.body()["status"]["endpoints"].as_array().cloned().unwrap_or_default();
            let first = endpoints.first().and_then(|first| first["url"].as_str());
            let Some((_, path)) = first.and_then(|url| url.split_once("/services/")) else { continue };
            endpoints.push(json!({ "url": format!("{SHARD_URL}/services/{path}") }));
            let status: Value = json!({ "status": { "endpoints": endpoints } });
            let by = answer::by("kcp", Part::Status, false);
            // Nobody follows up on this: whoever looks after slices here knows one server alone.
            if let Err(status) = center.patch(&slice.key, Patch::Merge(&status), &by, &mut moment) {
                self.failure.get_or_insert(format!("{}: {status}", slice.key));
            }
        }
        self.bells[CENTER].ring();
    }
}
