use super::*;

#[test]
fn two_hundred_seeds_keep_every_promise() {
    let mut total = Report::default();
    for seed in 0..200 {
        let report = run(seed, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
        total.writes += report.writes;
        total.deletions += report.deletions;
        total.starts += report.starts;
    }
    // A world in which nothing happens keeps every promise.
    assert!(total.writes > 2_000 && total.deletions > 200 && total.starts > 400, "{total:?}");
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..20 {
        let [one, other] = [(), ()].map(|()| run(seed, &Options::default()).map_err(|f| f.to_string()));
        assert_eq!(one, other, "seed {seed}");
    }
}

/// What the simulation says about a world that is broken on purpose, within some seeds.
fn caught(mutations: Mutations) -> String {
    let options = Options { mutations, ..Options::default() };
    let play = |seed| world::play(seed, &Script::draw(seed, options.steps), &options).err();
    let failure = (0..300).find_map(play).unwrap_or_else(|| panic!("not noticed: {mutations:?}"));
    failure.message
}

#[test]
fn a_look_that_always_finds_all_in_order_is_caught() {
    let seen = caught(Mutations { look_always_fine: true, ..Mutations::default() });
    assert!(seen.contains("deleted wrongly"), "{seen}");
}

#[test]
fn a_configuration_in_doubt_taken_for_an_empty_one_is_caught() {
    let seen = caught(Mutations { doubt_taken_for_empty: true, ..Mutations::default() });
    assert!(seen.contains("deleted wrongly"), "{seen}");
}

#[test]
fn a_configuration_known_before_its_list_is_complete_is_caught() {
    let seen = caught(Mutations { configuration_known_early: true, ..Mutations::default() });
    assert!(seen.contains("deleted wrongly"), "{seen}");
}

#[test]
fn marks_that_are_not_remembered_are_caught() {
    let seen = caught(Mutations { marks_not_remembered: true, ..Mutations::default() });
    assert!(seen.contains("deleted wrongly"), "{seen}");
}
