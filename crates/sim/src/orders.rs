//! Schedules that are not drawn: everything that an object rests on disappears, in every order.

use crate::manners::Manners;
use crate::script::{Script, Step, Workspace};

/// When the first thing disappears, in milliseconds: by then everything was delivered.
const BEGIN: u64 = 60_000;
/// How long after one thing the next one disappears: before anybody can have heard, while they are at it, long after.
const GAPS: [u64; 3] = [20, 2_000, 45_000];

/// All of them: for each sort of workspace, each order of what can disappear there, and each gap; and at one gap once more with
/// sources that wait for their copies, and with the way to the source in place of its configuration.
pub fn all() -> Vec<Script> {
    let mut scripts = Vec::new();
    for workspace in [Workspace::Workload, Workspace::Mailbox, Workspace::Bound(0)] {
        for order in permutations(&disappearing(workspace, configuration(workspace))) {
            scripts.extend(GAPS.iter().map(|gap| script(workspace, &order, *gap)));
            if !matches!(workspace, Workspace::Bound(_)) {
                scripts.push(Script { waits: true, ..script(workspace, &order, GAPS[1]) });
            }
        }
        for order in way(workspace).iter().flat_map(|way| permutations(&disappearing(workspace, way.clone())))
        {
            scripts.push(script(workspace, &order, GAPS[1]));
        }
    }
    scripts
}

/// What can disappear from under a delivered object; the process that knows of it, too, and something besides.
fn disappearing(workspace: Workspace, besides: Step) -> Vec<Step> {
    vec![
        Step::Delete(workspace, 1),
        Step::DropNamespace(workspace, 1),
        Step::DropKind(workspace),
        Step::DropWorkspace(workspace),
        Step::Crash(1_500),
        besides,
    ]
}

/// What tells that it is to be delivered.
fn configuration(workspace: Workspace) -> Step {
    match workspace {
        Workspace::Workload => Step::Displace(0),
        Workspace::Mailbox | Workspace::Bound(_) => Step::Unconfigure(workspace),
    }
}

/// By which its source is read, where that is not the way by which the configuration is.
fn way(workspace: Workspace) -> Option<Step> {
    match workspace {
        Workspace::Workload => None,
        Workspace::Mailbox => Some(Step::Partition(0)),
        Workspace::Bound(_) => Some(Step::LoseUrl),
    }
}

fn script(workspace: Workspace, order: &[Step], gap: u64) -> Script {
    let mut lines: Vec<_> = (0..3).map(|name| (u64::from(name), Step::Put(workspace, name, 0))).collect();
    lines.push((5, Step::Place(0, 0, 0b11)));
    lines.extend((0..).map(|at| BEGIN + at * gap).zip(order.iter().cloned()));
    Script { edges: 2, waits: false, claims: false, heads: false, manners: Manners::default(), lines }
}

/// Every order of some things.
fn permutations(things: &[Step]) -> Vec<Vec<Step>> {
    let Some((first, rest)) = things.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for shorter in permutations(rest) {
        for at in 0..=shorter.len() {
            let mut longer = shorter.clone();
            longer.insert(at, first.clone());
            all.push(longer);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_order_is_there_once() {
        let orders = permutations(&disappearing(Workspace::Mailbox, configuration(Workspace::Mailbox)));
        let different: BTreeSet<String> = orders.iter().map(|order| format!("{order:?}")).collect();
        assert_eq!((orders.len(), different.len()), (720, 720));
        assert_eq!(all().len(), 3 * 720 * GAPS.len() + 2 * 720 + 2 * 720);
    }
}
