//! A board as the status of a StatusSummary, small whatever the number of edges.
//!
//! Every list has a limit, and says how many it leaves out. Where long names make the whole too large all the same,
//! lists give way by halves: first labels, then objects, then the groups of Summarizers, then broken copies, and
//! kinds last. Totals always stay.

use std::collections::BTreeMap;

use mailboat_api::Time;
use mailboat_api::edge::{
    Aggregate, BrokenCopy, Group, GroupedBy, Grouping, KindSummary, LabelSummary, ObjectSummary,
    StatusSummaryStatus,
};

use super::EdgeId;
use super::board::Board;
use super::edge::Edge;

/// The most bytes of a status as JSON.
pub const LIMIT_BYTES: usize = 60 << 10;
const MOST_KINDS: usize = 64;
const MOST_OBJECTS: usize = 128;
const MOST_LABELS: usize = 64;
const MOST_GROUPS: usize = 64;
const LONGEST_MESSAGE: usize = 256;

/// How long each list may be.
#[derive(Clone, Copy)]
struct Room {
    kinds: usize,
    objects: usize,
    labels: usize,
    groups: usize,
    broken: usize,
}

/// The status that a board gives, without the time.
pub(super) fn status(board: &Board, edges: &BTreeMap<EdgeId, Edge>) -> StatusSummaryStatus {
    let broken = board.rules.broken_listed;
    let mut room =
        Room { kinds: MOST_KINDS, objects: MOST_OBJECTS, labels: MOST_LABELS, groups: MOST_GROUPS, broken };
    loop {
        let status = within(board, edges, room);
        let bytes = serde_json::to_vec(&status).map_or(0, |json| json.len());
        if bytes <= LIMIT_BYTES || !room.halve() {
            return status;
        }
    }
}

impl Room {
    /// Makes the next list shorter; false if none is left to be.
    fn halve(&mut self) -> bool {
        let lists =
            [&mut self.labels, &mut self.objects, &mut self.groups, &mut self.broken, &mut self.kinds];
        for list in lists {
            if *list > 0 {
                *list /= 2;
                return true;
            }
        }
        false
    }
}

fn within(board: &Board, edges: &BTreeMap<EdgeId, Edge>, room: Room) -> StatusSummaryStatus {
    let kinds = board.kinds.iter().take(room.kinds).map(|(kind, counts)| KindSummary {
        group: kind.group().to_owned(),
        resource: kind.resource().to_owned(),
        counts: counts.shown(),
    });
    let (objects, labels) = (objects(board, room.objects), labels(board, room.labels));
    let values: usize = board.labels.values().map(BTreeMap::len).sum();
    let groupings = board.rules.groupers.iter().zip(&board.groupings);
    let groupings = groupings.map(|(grouper, groups)| Grouping {
        name: grouper.name.clone(),
        groups: groups
            .iter()
            .take(room.groups)
            .map(|(by, group)| Group {
                grouped_by: grouper
                    .by
                    .iter()
                    .zip(by)
                    .map(|((name, _), value)| GroupedBy { name: name.clone(), value: value.clone() })
                    .collect(),
                aggregates: grouper
                    .aggregates
                    .iter()
                    .zip(&group.numbers)
                    .map(|(aggregate, numbers)| Aggregate {
                        name: aggregate.name.clone(),
                        value: numbers.aggregate(aggregate.type_, group.copies),
                    })
                    .collect(),
            })
            .collect(),
        groups_omitted: omitted(groups.len(), room.groups),
    });
    let broken = board.broken.iter().take(room.broken).map(|(id, broken)| BrokenCopy {
        object: id.object.reference(),
        edge: edges.get(&id.edge).map(|edge| edge.facts.location.clone()).unwrap_or_default(),
        reason: broken.cause.reason.clone(),
        message: shortened(&broken.cause.message),
        since: time(broken.since),
    });
    StatusSummaryStatus {
        last_update_time: None,
        totals: Some(board.totals.shown()),
        kinds: kinds.collect(),
        kinds_omitted: omitted(board.kinds.len(), room.kinds),
        objects_omitted: omitted(board.objects.len(), objects.len()),
        objects,
        labels_omitted: omitted(values, labels.len()),
        labels,
        groupings: groupings.collect(),
        broken: broken.collect(),
        broken_omitted: omitted(board.broken.len(), room.broken),
        conditions: Vec::new(),
    }
}

/// Those with the most broken copies first, then those with the most that are not where they should be.
fn objects(board: &Board, room: usize) -> Vec<ObjectSummary> {
    let mut objects: Vec<_> = board.objects.iter().collect();
    objects.sort_by_key(|(_, counts)| (-counts.broken, -counts.behind()));
    let shown = objects.into_iter().take(room);
    shown.map(|(id, counts)| ObjectSummary { object: id.reference(), counts: counts.shown() }).collect()
}

/// Keys with few values first: they sort edges into groups. A key is shown with all its values or not at all.
fn labels(board: &Board, room: usize) -> Vec<LabelSummary> {
    let mut keys: Vec<_> = board.labels.iter().collect();
    keys.sort_by_key(|(_, values)| values.len());
    let mut shown = Vec::new();
    for (key, values) in keys {
        if shown.len() + values.len() > room {
            break;
        }
        shown.extend(values.iter().map(|(value, counts)| LabelSummary {
            key: key.to_string(),
            value: value.to_string(),
            counts: counts.shown(),
        }));
    }
    shown.sort_by(|one, other| (&one.key, &one.value).cmp(&(&other.key, &other.value)));
    shown
}

fn omitted(all: usize, room: usize) -> Option<i64> {
    all.checked_sub(room).filter(|left| *left > 0).and_then(|left| i64::try_from(left).ok())
}

fn shortened(message: &str) -> String {
    message.chars().take(LONGEST_MESSAGE).collect()
}

pub(super) fn time(seconds: u64) -> Option<Time> {
    jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok().map(Time)
}
