//! What is promised, broken on purpose in what ships: the journey notices each.

use mailboat_engine::mutation::{Mutation, break_on_purpose};

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::{Options, Who, world};

/// Asks worlds in which this is broken and that happens, until one says this of it. How soon answers come decides whether
/// it does harm, and which, so a few worlds are asked.
fn caught(mutation: Mutation, center: bool, steps: &[Line], part: &str) {
    let site = if center { Site::Workload } else { Site::Mailbox(0) };
    let mut lines: Vec<Line> =
        (0..4).map(|name| (u64::from(name), Step::Put(site, Cargo::ConfigMap, name, 0))).collect();
    lines.push((10, if center { Step::Place(0, 0, 0) } else { Step::Tell(0, 0, 0xf) }));
    lines.extend(steps.iter().cloned());
    let script = Script { center, bound: false, edges: 1, lines };
    let mut said = Vec::new();
    for seed in 0..WORLDS {
        break_on_purpose(None);
        let well = world::play(seed, &script, &Options::default());
        break_on_purpose(Some(mutation));
        let failure = world::play(seed, &script, &Options::default()).err();
        break_on_purpose(None);
        assert!(well.is_ok(), "nothing is broken: {well:?}");
        said.extend(failure.map(|failure| failure.message));
        if said.last().is_some_and(|said| said.contains(part)) {
            return println!("{}", said.join("\n"));
        }
    }
    panic!("{mutation:?} was not noticed, but for {said:?}");
}

/// In so many worlds.
const WORLDS: u64 = 6;

fn says(seen: &str, part: &str) {
    println!("{seen}");
    assert!(seen.contains(part), "{seen}");
}

#[test]
fn a_syncer_that_believes_an_empty_mailbox_is_caught() {
    let steps = [
        (60_000, Step::DropBinding(Site::Mailbox(0))),
        (70_000, Step::Rebind(Site::Mailbox(0))),
        (80_000, Step::Noise(0)),
    ];
    caught(Mutation::BelieveEmptyLists, false, &steps, "deleted wrongly by Syncer(0)");
}

#[test]
fn a_syncer_that_takes_half_a_configuration_for_whole_is_caught() {
    let steps = [(60_000, Step::Crash(Who::Syncer(0), 1_000))];
    caught(Mutation::DoubtIsWhole, false, &steps, "deleted wrongly by Syncer(0)");
}

#[test]
fn a_center_that_takes_the_placements_that_it_sees_for_all_is_caught() {
    // A placement that is made while the binding of its kind goes is shown to nobody, and selects what another lets go.
    let steps = [
        (60_000, Step::DropBinding(Site::Workload)),
        (74_990, Step::Place(1, 1, 0)),
        (75_000, Step::Relabel(Cargo::ConfigMap, 0, 1)),
    ];
    caught(Mutation::UnseenIsUnselected, true, &steps, "deleted wrongly by Center");
}

#[test]
fn a_center_that_decides_before_it_has_read_is_caught() {
    // It deletes nothing: what nobody claims since a start waits until everything in its cluster was listed. But it writes.
    let steps = [(60_000, Step::Crash(Who::Center, 1_000))];
    caught(Mutation::StartTooEarly, true, &steps, "writes in a restart");
}

#[test]
fn a_server_in_the_past_that_is_believed_is_caught() {
    mailboat_store::mutation::break_on_purpose(Some(mailboat_store::mutation::Mutation::PastIsPresent));
    let failure = world::play(1, &super::restored(false), &Options::default()).err();
    mailboat_store::mutation::break_on_purpose(None);
    says(&failure.expect("not noticed").message, "deleted wrongly by Syncer(0)");
}

#[test]
fn a_syncer_that_does_not_remember_which_configuration_there_was_is_caught() {
    let steps = [
        (60_000, Step::Crash(Who::Syncer(0), 20_000)),
        (61_000, Step::DropBinding(Site::Mailbox(0))),
        (70_000, Step::Rebind(Site::Mailbox(0))),
    ];
    caught(Mutation::ForgetWhatWasThere, false, &steps, "deleted wrongly by Syncer(0)");
}

#[test]
fn a_center_that_does_not_remember_where_placements_went_is_caught() {
    let steps = [
        (60_000, Step::Crash(Who::Center, 20_000)),
        (61_000, Step::DropBinding(Site::Inventory)),
        (70_000, Step::Rebind(Site::Inventory)),
    ];
    caught(Mutation::ForgetWhatWasThere, true, &steps, "deleted wrongly");
}

#[test]
fn a_syncer_that_deletes_a_namespace_which_is_not_asked_for_any_more_is_caught() {
    let steps = [(20_000, Step::TellSpaces(0, 0b11)), (60_000, Step::TellSpaces(0, 0b10))];
    caught(Mutation::NamespacesGo, false, &steps, "a namespace was deleted");
}
