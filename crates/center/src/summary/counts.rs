//! How one copy counts, and how many of a group count so.

use mailboat_api::edge::CopyCounts;

/// How one wanted copy counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is counted by itself")]
pub(super) struct Standing {
    pub(super) delivered: bool,
    pub(super) current: bool,
    pub(super) stale: bool,
    pub(super) healthy: bool,
    pub(super) broken: bool,
}

/// How many copies count so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) wanted: i64,
    delivered: i64,
    current: i64,
    stale: i64,
    healthy: i64,
    pub(super) broken: i64,
}

impl Counts {
    pub(super) fn add(&mut self, standing: Standing) {
        self.change(standing, 1);
    }

    pub(super) fn remove(&mut self, standing: Standing) {
        self.change(standing, -1);
    }

    fn change(&mut self, standing: Standing, by: i64) {
        self.wanted += by;
        self.delivered += if standing.delivered { by } else { 0 };
        self.current += if standing.current { by } else { 0 };
        self.stale += if standing.stale { by } else { 0 };
        self.healthy += if standing.healthy { by } else { 0 };
        self.broken += if standing.broken { by } else { 0 };
    }

    /// How many are not at their edges as they should be.
    pub(super) fn behind(self) -> i64 {
        self.wanted - self.current
    }

    pub(super) fn shown(self) -> CopyCounts {
        CopyCounts {
            wanted: Some(self.wanted),
            delivered: Some(self.delivered),
            current: Some(self.current),
            stale: Some(self.stale),
            healthy: Some(self.healthy),
            broken: Some(self.broken),
        }
    }
}
