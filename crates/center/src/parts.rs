//! The parts of a center, which can run in one process or in several.
//!
//! Every process reads and plans all of it, as a standby does, and writes only what belongs to its own parts. So no part
//! has to be told what another decided, and what one leaves to another looks to it like what is not written yet.

use std::collections::BTreeSet;

use mailboat_api::names::{export, group};
use mailboat_object::key::Key;
use mailboat_registration::install::is_edge_cluster;
use mailboat_registration::preparation::is_waiting_cluster;

use crate::mailbox::{COMPUTE_BINDING, DENATURED_BINDING, MAILBOX_BINDING};

/// A part of the center.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// A mailbox for each SyncTarget, what stands in it, and what the SyncTarget says of its syncer; and the center's rights in
    /// new workspaces of our types.
    MailboxController,
    /// Where placements go: SinglePlacementSlices, and how many edges a Location leads to.
    Scheduler,
    /// Copies in mailboxes, what their syncers are told, and what EdgePlacements say of them.
    Translator,
    /// StatusSummaries.
    Summarizer,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::MailboxController, Self::Scheduler, Self::Translator, Self::Summarizer];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::MailboxController => "mailbox-controller",
            Self::Scheduler => "scheduler",
            Self::Translator => "translator",
            Self::Summarizer => "summarizer",
        }
    }

    /// Whose an object is to write, wherever it stands. Each has one part, so that no two processes ever want to write the
    /// same.
    pub fn of(key: &Key) -> Self {
        match (key.kind.group(), key.kind.resource()) {
            _ if is_edge_cluster(&key.cluster) || is_waiting_cluster(&key.cluster) => Self::MailboxController,
            ("tenancy.kcp.io", "workspaces") | (group::EDGE | group::WORKLOAD, "synctargets") => {
                Self::MailboxController
            }
            (group::EDGE | group::SCHEDULING, "locations") | (group::EDGE, "singleplacementslices") => {
                Self::Scheduler
            }
            (group::EDGE, "statussummaries" | "summarizers") => Self::Summarizer,
            ("apis.kcp.io", "apibindings") if is_in_every_mailbox(key.name.as_str()) => {
                Self::MailboxController
            }
            // Copies of such are denatured: whatever has its nature is a right in a mailbox or in an inventory.
            ("rbac.authorization.k8s.io", _) | ("", "serviceaccounts") => Self::MailboxController,
            _ => Self::Translator,
        }
    }
}

fn is_in_every_mailbox(binding: &str) -> bool {
    [export::BINDING_IN_MAILBOX, COMPUTE_BINDING, DENATURED_BINDING, MAILBOX_BINDING].contains(&binding)
}

/// The parts that one process runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts(BTreeSet<Part>);

impl Default for Parts {
    fn default() -> Self {
        Self(Part::ALL.into())
    }
}

impl FromIterator<Part> for Parts {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        Self(parts.into_iter().collect())
    }
}

impl Parts {
    /// Whether these are all that there are.
    pub fn are_all(&self) -> bool {
        self.0.len() == Part::ALL.len()
    }

    /// Whether an object is theirs to write.
    pub fn write(&self, key: &Key) -> bool {
        self.0.contains(&Part::of(key))
    }

    /// What is added to the name of the Lease of those who run these and no others.
    pub fn suffix(&self) -> String {
        if self.are_all() {
            return String::new();
        }
        self.0.iter().flat_map(|part| ["-", part.name()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::key;

    #[test]
    fn every_object_is_written_by_one_part() {
        use Part::{MailboxController, Scheduler, Summarizer, Translator};
        for ((cluster, kind, namespace, name), part) in [
            (("provider", "workspaces.tenancy.kcp.io", "", "a-mb-b"), MailboxController),
            (("imw", "synctargets.workload.kcp.io", "", "florin"), MailboxController),
            (("imw", "synctargets.edge.kubestellar.io", "", "florin"), MailboxController),
            (("box", "apibindings.apis.kcp.io", "", "bind-edge"), MailboxController),
            (("box", "clusterroles.rbac.authorization.k8s.io", "", "mailboat-syncer"), MailboxController),
            (("box", "serviceaccounts", "default", "mailboat-syncer"), MailboxController),
            (("edge/u-1", "deployments.apps", "syncer", "syncer"), MailboxController),
            (("waiting/p:t/new", "logicalclusters.core.kcp.io", "", "cluster"), MailboxController),
            (("imw", "locations.scheduling.kcp.io", "", "florin"), Scheduler),
            (("wmw", "singleplacementslices.edge.kubestellar.io", "", "shops"), Scheduler),
            (("wmw", "edgeplacements.edge.kubestellar.io", "", "shops"), Translator),
            (("box", "syncerconfigs.edge.kubestellar.io", "", "the-one"), Translator),
            (("box", "apibindings.apis.kcp.io", "", "h1-things.example.org"), Translator),
            (("box", "clusterroles.rbac.authorization.k8s.io.denatured", "", "mailboat-syncer"), Translator),
            (("box", "serviceaccounts.core.denatured", "shop", "mailboat-syncer"), Translator),
            (("box", "configmaps", "shop", "prices"), Translator),
            (("provider", "apiexports.apis.kcp.io", "", "things.example.org"), Translator),
            (("wmw", "statussummaries.edge.kubestellar.io", "", "shops"), Summarizer),
        ] {
            assert_eq!(Part::of(&key(cluster, kind, namespace, name)), part, "{kind} {name}");
        }
    }

    #[test]
    fn only_those_who_run_the_same_parts_seek_the_same_lease() {
        assert_eq!(Parts::default().suffix(), "");
        let some: Parts = [Part::Summarizer, Part::Scheduler].into_iter().collect();
        assert_eq!(some.suffix(), "-scheduler-summarizer");
        assert!(
            !some.are_all()
                && some.write(&key("wmw", "singleplacementslices.edge.kubestellar.io", "", "shops"))
        );
        assert!(!some.write(&key("box", "configmaps", "shop", "prices")));
    }
}
