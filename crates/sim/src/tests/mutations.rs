//! What is promised, broken on purpose in one place at a time: the simulation notices each within some seeds.

use mailboat_engine::mutation as engine;
use mailboat_store::mutation as store;

use crate::manners::{Manner, Manners};
use crate::script::Workspace::Workload;
use crate::script::{Script, Step};
use crate::{Mutations, Options, world};

/// So many seeds are tried at most.
const SEEDS: u64 = 200;

/// What the simulation says first about a world in which something is broken.
fn caught(mutations: Mutations) -> String {
    let options = Options { mutations, ..Options::default() };
    first_failure(&options, |seed| Script::draw(seed, options.steps))
}

/// The same, in worlds where this happens and whose seeds draw no more than what the network does. What is drawn leads
/// there as well, within some thousands of seeds.
fn caught_by(mutations: Mutations, steps: &[(u64, Step)]) -> String {
    let options = Options { mutations, ..Options::default() };
    first_failure(&options, |_| scripted(1, steps.to_vec()))
}

/// The same with two edges, and something broken in the engine.
fn caught_at_two_edges(mutation: engine::Mutation, steps: impl Fn(u64) -> Vec<(u64, Step)>) -> String {
    engine::break_on_purpose(Some(mutation));
    let script = |seed| scripted(2, steps(seed));
    let seen = first_failure(&Options::default(), script);
    engine::break_on_purpose(None);
    seen
}

pub(super) fn scripted(edges: u8, lines: Vec<(u64, Step)>) -> Script {
    Script { edges, waits: false, claims: false, heads: false, manners: Manners::default(), lines }
}

/// Eight sources that are placed at two edges, and what happens then.
fn eight_at_two_edges(then: &[(u64, Step)]) -> Vec<(u64, Step)> {
    let put = (0..8).map(|name| (10, Step::Put(Workload, name, 0)));
    put.chain([(11, Step::Place(0, 0, 0b11))]).chain(then.iter().cloned()).collect()
}

fn first_failure(options: &Options, script: impl Fn(u64) -> Script) -> String {
    let play = |seed| world::play(seed, &script(seed), options).err();
    let failure = (0..SEEDS).find_map(play).unwrap_or_else(|| panic!("not noticed: {:?}", options.mutations));
    println!("seed {}: {}", failure.number, failure.message);
    failure.message
}

fn caught_in_engine(mutation: engine::Mutation) -> String {
    engine::break_on_purpose(Some(mutation));
    let seen = caught(Mutations::default());
    engine::break_on_purpose(None);
    seen
}

fn caught_in_store(mutation: store::Mutation) -> String {
    store::break_on_purpose(Some(mutation));
    let seen = caught(Mutations::default());
    store::break_on_purpose(None);
    seen
}

fn says(seen: &str, part: &str) {
    assert!(seen.contains(part), "{seen}");
}

#[test]
fn a_look_that_always_finds_all_in_order_is_caught() {
    says(&caught(Mutations { look_always_fine: true, ..Mutations::default() }), "deleted wrongly");
}

#[test]
fn a_configuration_in_doubt_taken_for_an_empty_one_is_caught() {
    says(&caught(Mutations { doubt_taken_for_empty: true, ..Mutations::default() }), "deleted wrongly");
}

#[test]
fn a_configuration_known_before_its_list_is_complete_is_caught() {
    let mutations = Mutations { configuration_known_early: true, ..Mutations::default() };
    let options = Options { mutations, ..Options::default() };
    // Where sources wait for their copies, it is noticed before that finalizers are written in vain.
    let script = |seed| Script { waits: false, ..Script::draw(seed, options.steps) };
    says(&first_failure(&options, script), "deleted wrongly");
}

#[test]
fn marks_that_are_not_remembered_are_caught() {
    says(&caught(Mutations { marks_not_remembered: true, ..Mutations::default() }), "deleted wrongly");
}

#[test]
fn deletes_without_preconditions_are_caught() {
    // A copy is replaced by another's object, and nobody is told.
    let steps = [
        (10, Step::Put(Workload, 1, 0)),
        (11, Step::Place(0, 0, 1)),
        (20_000, Step::StallStreams(1)),
        (20_001, Step::EdgeDelete(0, "n1".to_owned())),
        (20_002, Step::EdgePut(0, "n1".to_owned())),
        (21_000, Step::Delete(Workload, 1)),
    ];
    let mutations = Mutations { deletes_without_preconditions: true, ..Mutations::default() };
    says(&caught_by(mutations, &steps), "foreign");
}

#[test]
fn a_withdrawal_on_an_event_alone_is_caught() {
    says(&caught_in_engine(engine::Mutation::ActOnTheEvent), "deleted wrongly");
}

#[test]
fn a_mark_taken_off_on_an_event_alone_is_caught() {
    let stays = Manners::all(Manner { leaves: true, ..Manner::default() });
    engine::break_on_purpose(Some(engine::Mutation::ReleaseOnTheEvent));
    let options = Options::default();
    let script = |seed| Script { manners: stays, ..Script::draw(seed, options.steps) };
    says(&first_failure(&options, script), "let go of wrongly");
    engine::break_on_purpose(None);
}

#[test]
fn a_definition_made_anew_and_taken_for_the_one_before_it_is_caught() {
    says(&caught_in_engine(engine::Mutation::AnyDefinition), "deleted wrongly");
}

#[test]
fn a_withdrawal_by_half_a_configuration_is_caught() {
    says(&caught_in_engine(engine::Mutation::HalfAConfiguration), "deleted wrongly");
}

#[test]
fn a_source_of_which_nothing_is_known_taken_for_an_unwanted_one_is_caught() {
    says(&caught_in_engine(engine::Mutation::UnknownIsUnwanted), "deleted wrongly");
}

#[test]
fn a_source_behind_a_lost_link_taken_for_a_current_one_is_caught() {
    // Nobody is told that a source gets another label, and then that another placement selects it.
    let steps = [
        (10, Step::Put(Workload, 1, 1)),
        (11, Step::Place(0, 0, 1)),
        (12, Step::Place(1, 1, 1)),
        (20_000, Step::Partition(0)),
        (20_001, Step::CloseStreams(0)),
        (21_000, Step::Relabel(Workload, 1, 0)),
        (22_000, Step::Place(1, 2, 1)),
        (40_000, Step::Heal(0)),
    ];
    engine::break_on_purpose(Some(engine::Mutation::BehindIsCurrent));
    says(&caught_by(Mutations::default(), &steps), "deleted wrongly");
    engine::break_on_purpose(None);
}

#[test]
fn a_forced_first_delivery_is_caught() {
    // Somebody else's object with a field that we would write is there first, and nobody is told.
    let steps = [
        (10, Step::Place(0, 0, 1)),
        (20_000, Step::StallStreams(1)),
        (20_001, Step::EdgePut(0, "n1".to_owned())),
        (21_000, Step::Put(Workload, 1, 0)),
    ];
    engine::break_on_purpose(Some(engine::Mutation::ForceTheFirst));
    says(&caught_by(Mutations::default(), &steps), "foreign");
    engine::break_on_purpose(None);
}

#[test]
fn what_a_first_delivery_met_and_kept_is_caught() {
    // Somebody else's object is there first, and nobody is told.
    let steps = [
        (10, Step::Place(0, 0, 1)),
        (20_000, Step::StallStreams(1)),
        (20_001, Step::EdgePut(0, "n2".to_owned())),
        (20_002, Step::EdgePut(0, "n1".to_owned())),
        (21_000, Step::Put(Workload, 1, 0)),
        (22_000, Step::Put(Workload, 1, 0)),
    ];
    engine::break_on_purpose(Some(engine::Mutation::KeepWhatWasMet));
    says(&caught_by(Mutations::default(), &steps), "foreign");
    engine::break_on_purpose(None);
}

#[test]
fn a_breaker_that_counts_what_is_gone_is_caught() {
    let all = |step: fn(u8) -> Step| (0..14).map(step);
    let put = || all(|name| Step::Put(Workload, name, 0));
    // All of them are deleted one by one, which nobody is asked about, and made anew; then the placement goes.
    let steps: Vec<_> = put()
        .chain([Step::Place(0, 0, 1)])
        .map(|step| (10, step))
        .chain(all(|name| Step::Delete(Workload, name)).map(|step| (20_000, step)))
        .chain(put().map(|step| (60_000, step)))
        .chain([(90_000, Step::Displace(0))])
        .collect();
    engine::break_on_purpose(Some(engine::Mutation::CountTheGone));
    says(&caught_by(Mutations::default(), &steps), "went unasked");
    engine::break_on_purpose(None);
}

#[test]
fn a_breaker_that_lets_all_go_is_caught() {
    says(&caught_in_engine(engine::Mutation::LetAllGo), "went unasked");
}

#[test]
fn a_scope_that_is_withdrawn_part_by_part_is_caught() {
    let steps: Vec<_> = (0..14)
        .map(|name| Step::Put(Workload, name, 0))
        .chain([Step::Place(0, 0, 1)])
        .map(|step| (10, step))
        .chain([(20_000, Step::Displace(0))])
        .collect();
    engine::break_on_purpose(Some(engine::Mutation::PartByPart));
    says(&caught_by(Mutations::default(), &steps), "went unasked");
    engine::break_on_purpose(None);
}

#[test]
fn a_word_that_holds_of_whatever_comes_later_is_caught() {
    // Somebody confirms that a placement goes, makes it anew, and takes it away once more.
    let steps: Vec<_> = (0..14)
        .map(|name| (10, Step::Put(Workload, name, 0)))
        .chain([
            (11, Step::Place(0, 0, 1)),
            (20_000, Step::Displace(0)),
            (40_000, Step::Confirm),
            (60_000, Step::Place(0, 0, 1)),
            (90_000, Step::Displace(0)),
        ])
        .collect();
    engine::break_on_purpose(Some(engine::Mutation::AnyCopy));
    says(&caught_by(Mutations::default(), &steps), "went unasked");
    engine::break_on_purpose(None);
}

#[test]
fn a_withdrawal_that_is_decided_edge_by_edge_and_counted_so_is_caught() {
    // The process starts again, and the second edge falls silent while it is listed, sooner or later; then the placement
    // goes. (Whether a copy goes that was listed before is decided as it was last shown, however its link is.)
    let steps = |seed: u64| {
        let then = [
            (30_000, Step::Crash(5_000)),
            (35_010 + 5 * (seed % 40), Step::Partition(2)),
            (45_000, Step::Displace(0)),
            (90_000, Step::Heal(2)),
        ];
        eight_at_two_edges(&then)
    };
    says(&caught_at_two_edges(engine::Mutation::DecidedAlone, steps), "went unasked");
}

#[test]
fn what_nobody_claims_counted_cluster_by_cluster_is_caught() {
    let steps = eight_at_two_edges(&[(30_000, Step::Crash(5_000)), (31_000, Step::Displace(0))]);
    says(&caught_at_two_edges(engine::Mutation::ClusterByCluster, |_| steps.clone()), "went unasked");
}

#[test]
fn the_first_page_taken_for_the_whole_list_is_caught() {
    says(&caught_in_store(store::Mutation::HalfAList), "edge");
}

#[test]
fn a_server_in_the_past_believed_like_any_other_is_caught() {
    says(&caught_in_store(store::Mutation::PastIsPresent), "deleted wrongly");
}
