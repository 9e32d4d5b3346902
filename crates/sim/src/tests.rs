use super::*;

mod mutations;

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
