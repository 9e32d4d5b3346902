//! What is served in many workspaces, written once: ten thousand mailboxes serve the same kinds, and whoever writes there asks
//! each of them which.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mailboat_machinery::Kinds;

use crate::discovery::{Discovery, Keeper};

/// How many answers are remembered. Mailboxes pass through as many sets of kinds as they have bindings.
const REMEMBERED: usize = 32;

/// The last answers.
#[derive(Debug, Default)]
pub(crate) struct Discovered(Mutex<VecDeque<Answered>>);

#[derive(Debug)]
struct Answered {
    /// Held, so that no other map of kinds can come to stand where this one does.
    kinds: Arc<Kinds>,
    core: bool,
    content: Bytes,
}

impl Discovered {
    /// What is served where these kinds are, in one document; that of the core group, or of all others.
    pub(crate) fn aggregated(&self, kinds: &Arc<Kinds>, core: bool) -> Bytes {
        let same = |known: &&Answered| known.core == core && Arc::ptr_eq(&known.kinds, kinds);
        let found = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().find(same).map(|known| known.content.clone())
        };
        found.unwrap_or_else(|| {
            // This form does not say how objects are kept.
            let document = Discovery::of(kinds.values(), Keeper::Cluster).aggregated(core);
            let content = Bytes::from(serde_json::to_vec(&document).unwrap_or_default());
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= REMEMBERED {
                known.pop_front();
            }
            known.push_back(Answered { kinds: Arc::clone(kinds), core, content: content.clone() });
            content
        })
    }
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::builtin::kind_without_schema;
    use mailboat_object::KindId;

    use super::*;

    fn kinds(resources: &[&str]) -> Arc<Kinds> {
        let kind = |resource: &&str| {
            let id = KindId::new("example.dev", resource);
            (id.clone(), Arc::new(kind_without_schema(id, "v1", "Boat", true)))
        };
        Arc::new(resources.iter().map(kind).collect())
    }

    #[test]
    fn each_set_of_kinds_is_told_as_it_is_and_written_once() {
        let discovered = Discovered::default();
        let told = |kinds: &Arc<Kinds>, core: bool| discovered.aggregated(kinds, core);
        let (few, many) = (kinds(&["boats"]), kinds(&["boats", "ships"]));
        for all in [&few, &many, &few] {
            let fresh =
                serde_json::to_vec(&Discovery::of(all.values(), Keeper::Cluster).aggregated(false)).unwrap();
            assert_eq!(told(all, false), fresh);
        }
        assert_ne!(told(&few, false), told(&few, true));
        assert_eq!(told(&few, false).as_ptr(), told(&few, false).as_ptr(), "it was written again");
        for _ in 0..REMEMBERED {
            told(&kinds(&["boats"]), false);
        }
        assert_eq!(discovered.0.lock().unwrap().len(), REMEMBERED);
        assert_eq!(
            told(&many, true),
            serde_json::to_vec(&Discovery::of(many.values(), Keeper::Cluster).aggregated(true)).unwrap()
        );
    }
}
