//! A copy whose server does not take an apply that leaves a map or a list of it empty: see [`emptied`](crate::emptied).

use std::sync::Arc;

use mailboat_object::json::Raw;
use mailboat_object::key::{Key, Uid, Version};
use mailboat_object::object::Keep;
use mailboat_object::wire::{Call, Part, Verb};
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;
use serde_json::Value;

use super::Engine;
use super::answers::{decode, written};
use super::carry::Work;
use super::sight::WantedHere;
use crate::emptied::{leftovers, removal};
use crate::mark::Marked;
use crate::plan::Proof;
use crate::slots::{SlotId, Written};

impl Engine {
    /// A copy that was refused was read, whole and with who owns what in it. What the apply would leave empty is taken out first,
    /// if there is such a thing: at the version that was read, and only as long as the copy is ours and the same is wanted.
    pub(super) fn looked_within(&mut self, store: &Store, id: SlotId, body: &[u8]) -> Option<(Work, Call)> {
        let refused = self.slots.get(id)?.passing.rests;
        let sight = self.look_at(store, id)?;
        let (WantedHere::By(want), Seen::Present(target)) = (&sight.wanted, &sight.target) else {
            return None;
        };
        let ours = matches!(sight.marked, Marked::Ours(_)) && sight.proof == Proof::Ours;
        let (uid, version) = written(body)?;
        if !ours || uid != target.uid || refused != Some(want.body.digest) {
            return None;
        }
        let patch = removal(Raw::parse(body).ok()?, &self.manager, Raw::parse(&want.body.json).ok()?)?;
        let key = self.slots.get(id)?.key.clone();
        Some((Work::TakeOut, self.taking_out(key, patch, &uid, version)))
    }

    /// What an apply left in a copy, if it left nulls that nobody wants: they are taken out, at the version that it made.
    pub(super) fn clean_up(&self, id: SlotId, body: &[u8]) -> Option<(Work, Call)> {
        let key = self.slots.get(id)?.key.clone();
        let patch = leftovers(&key.kind, body)?;
        let (uid, version) = written(body)?;
        // In an object of another's, on which we only put fields, nothing is tidied.
        let copy = decode(&key, &self.manager, body, Keep::Head)?;
        self.our_mark_on(&copy).filter(|mark| !mark.overlay)?;
        Some((Work::TakeOut, self.taking_out(key, patch, &uid, version)))
    }

    fn taking_out(&self, key: Key, mut patch: Value, uid: &Uid, version: Version) -> Call {
        patch["metadata"]["uid"] = Value::from(uid.to_string());
        patch["metadata"]["resourceVersion"] = Value::from(version.to_string());
        let (body, manager) = (Arc::from(patch.to_string().into_bytes()), self.manager.clone());
        Call { key, verb: Verb::Merge { body, manager }, part: Part::Whole, dry_run: false }
    }

    /// It was taken out: what is wanted is applied as soon as that is shown. If it is refused once more, it rests for longer.
    pub(super) fn has_taken_out(&mut self, id: SlotId, body: &[u8]) -> Option<(Work, Call)> {
        let (_, version) = written(body)?;
        let passing = &mut *self.slots.get_mut(id)?.passing;
        if passing.rejected {
            (passing.rest_until, passing.rests, passing.rejected) = (0, None, false);
        }
        passing.written = Some(Written::At(version));
        None
    }
}
