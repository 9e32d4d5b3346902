use mailboat_object::digest::digest_of_value;
use mailboat_object::key::KindId;
use serde_json::json;

use super::*;
use crate::warrant::WholeConfiguration;

fn scope(name: &str) -> ScopeId {
    ScopeId(Name::new(name))
}

fn slot(cluster: &str, number: usize) -> Key {
    Key {
        cluster: ClusterId::new(cluster),
        kind: KindId::new("", "configmaps"),
        namespace: Name::new("till"),
        name: Name::new(&format!("c{number:03}")),
    }
}

/// The object that first stood in a slot of this number.
fn object(number: usize) -> Uid {
    Uid::parse(&format!("00000000-0000-4000-8000-{number:012}"))
}

fn deselected() -> Evidence {
    Evidence::Deselected(WholeConfiguration::known(1).does_not_select())
}

fn edition(number: u64) -> Digest {
    digest_of_value(&json!(number))
}

/// A scope with so many copies in a cluster, of which the first so many would go.
fn propose(breaker: &mut Breaker, scope: &ScopeId, cluster: &str, delivered: usize, losses: usize) {
    for _ in 0..delivered {
        breaker.delivered(scope);
    }
    for number in 0..losses {
        breaker.propose(scope, &slot(cluster, number), &object(number), &deselected());
    }
    breaker.evaluated(scope, false);
}

fn held(breaker: &Breaker) -> Vec<(String, ChangeId, usize)> {
    breaker.held().map(|(scope, change, count)| (scope.0.to_string(), change, count)).collect()
}

fn is_held(breaker: &Breaker, scope: &ScopeId, slot: &Key) -> bool {
    matches!(breaker.permit(scope, slot), Permit::Held(_))
}

#[test]
fn what_is_much_is_held_and_less_goes() {
    // Delivered, to go, expected soon, expected whenever: what becomes of those that are to go.
    let table = [
        ((9, 9, 0, 0), "goes"),
        ((10, 10, 0, 0), "asks"),
        ((20, 10, 0, 0), "goes"),
        ((19, 10, 0, 0), "asks"),
        ((21, 11, 0, 0), "asks"),
        ((22, 11, 0, 0), "goes"),
        ((1_000, 500, 0, 0), "goes"),
        ((1_000, 501, 0, 0), "asks"),
        // What is undecided counts as if it went.
        ((18, 9, 0, 9), "asks"),
        ((30, 1, 0, 14), "goes"),
        ((30, 1, 0, 15), "asks"),
        // What is decided in a moment is waited for, and nobody asked.
        ((18, 9, 9, 0), "waits"),
        ((30, 10, 10, 10), "asks"),
        ((30, 8, 1, 0), "goes"),
        // Where nothing is to go, nothing is asked about what may.
        ((30, 0, 0, 30), "nothing"),
    ];
    for ((delivered, losses, soon, whenever), becomes) in table {
        let mut breaker = Breaker::default();
        let p = scope("p");
        propose(&mut breaker, &p, "florin", delivered, losses);
        for number in 0..soon + whenever {
            let when = if number < soon { Expected::Soon } else { Expected::Whenever };
            breaker.expect(&p, &slot("florin", 100 + number), &object(100 + number), when);
        }
        let asked = held(&breaker);
        let found = match breaker.permit(&p, &slot("florin", 0)) {
            _ if losses == 0 && asked.is_empty() => "nothing",
            Permit::Open => "goes",
            Permit::Pending => "waits",
            Permit::Held(_) => "asks",
        };
        let case = (delivered, losses, soon, whenever);
        assert_eq!(found, becomes, "{case:?}");
        let all = losses + soon + whenever;
        assert_eq!(
            asked.iter().map(|(.., count)| *count).collect::<Vec<_>>(),
            if becomes == "asks" { vec![all] } else { vec![] },
            "{case:?}"
        );
    }
}

#[test]
fn nothing_goes_before_all_was_evaluated() {
    let mut breaker = Breaker::default();
    let p = scope("p");
    propose(&mut breaker, &p, "florin", 20, 1);
    assert_eq!(breaker.permit(&p, &slot("florin", 0)), Permit::Open);
    assert_eq!(breaker.reopen(&p, edition(2)), [slot("florin", 0)], "it is to be settled again");
    breaker.propose(&p, &slot("florin", 0), &object(0), &deselected());
    assert_eq!(breaker.permit(&p, &slot("florin", 0)), Permit::Pending);
    breaker.evaluated(&p, false);
    assert_eq!(breaker.permit(&p, &slot("florin", 0)), Permit::Open);
}

#[test]
fn a_word_is_on_one_change_and_outlives_another_configuration() {
    let mut breaker = Breaker::default();
    let p = scope("p");
    propose(&mut breaker, &p, "florin", 20, 20);
    let [(_, change, 20)] = held(&breaker)[..] else { panic!("{:?}", held(&breaker)) };
    breaker.recall(&p, &slot("florin", 19));
    assert!(!breaker.confirm(&p, change), "one of them is wanted again");
    let [(_, change, 19)] = held(&breaker)[..] else { panic!("{:?}", held(&breaker)) };
    assert!(breaker.confirm(&p, change));
    assert!(!breaker.confirm(&p, change), "once");
    assert_eq!(held(&breaker), []);
    // Its cluster may be away for long, and the configuration change meanwhile.
    assert_eq!(breaker.reopen(&p, edition(2)), []);
    propose(&mut breaker, &p, "florin", 0, 19);
    assert_eq!((held(&breaker), breaker.permit(&p, &slot("florin", 0))), (vec![], Permit::Open));
    // What could not be decided for a moment is confirmed all the same.
    breaker.doubt(&p, &slot("florin", 0));
    breaker.propose(&p, &slot("florin", 0), &object(0), &deselected());
    assert_eq!(breaker.permit(&p, &slot("florin", 0)), Permit::Open);
    // What was wanted again meanwhile is asked about once more.
    for number in 0..19 {
        breaker.recall(&p, &slot("florin", number));
    }
    propose(&mut breaker, &p, "florin", 0, 19);
    assert!(is_held(&breaker, &p, &slot("florin", 0)));
}

#[test]
fn a_word_is_on_the_objects_that_were_asked_about() {
    let mut breaker = Breaker::default();
    let p = scope("p");
    propose(&mut breaker, &p, "florin", 20, 19);
    breaker.expect(&p, &slot("florin", 19), &object(19), Expected::Whenever);
    let [(_, change, 20)] = held(&breaker)[..] else { panic!("{:?}", held(&breaker)) };
    // Another object stands where one of them stood: one that would go, or one that may.
    breaker.propose(&p, &slot("florin", 0), &object(100), &deselected());
    let [(_, one, 20)] = held(&breaker)[..] else { panic!("{:?}", held(&breaker)) };
    breaker.expect(&p, &slot("florin", 19), &object(119), Expected::Whenever);
    let [(_, both, 20)] = held(&breaker)[..] else { panic!("{:?}", held(&breaker)) };
    assert!(change != one && one != both && change != both);
    assert!(!breaker.confirm(&p, change) && !breaker.confirm(&p, one));
    // What is decided about it besides is no other question.
    breaker.propose(&p, &slot("florin", 19), &object(119), &deselected());
    assert!(breaker.confirm(&p, both));
    assert_eq!(breaker.permit(&p, &slot("florin", 0)), Permit::Open);
    // A word holds as long as they stand, and of none that comes after them.
    propose(&mut breaker, &p, "florin", 0, 19);
    assert!(breaker.misses(&p, &slot("florin", 0), &object(100), &deselected()));
    assert_eq!(held(&breaker), [], "one alone is not much");
    for number in 0..20 {
        breaker.propose(&p, &slot("florin", number), &object(200 + number), &deselected());
    }
    assert!(is_held(&breaker, &p, &slot("florin", 0)));
    assert!(!breaker.confirm(&p, both));
}

#[test]
fn what_is_recalled_makes_the_rest_small() {
    let mut breaker = Breaker::default();
    let p = scope("p");
    propose(&mut breaker, &p, "florin", 11, 11);
    assert_eq!(breaker.take_misinformed(), []);
    assert!(is_held(&breaker, &p, &slot("florin", 9)));
    for number in 0..2 {
        breaker.recall(&p, &slot("florin", number));
    }
    assert_eq!(breaker.permit(&p, &slot("florin", 9)), Permit::Open);
    assert_eq!(breaker.take_misinformed().len(), 9, "they were told to wait");
    assert!(!breaker.is_stirred() && breaker.take_misinformed().is_empty());
}

#[test]
fn what_may_go_is_forgotten_when_nothing_is_to_go() {
    let mut breaker = Breaker::default();
    let p = scope("p");
    propose(&mut breaker, &p, "florin", 30, 1);
    for number in 1..20 {
        breaker.expect(&p, &slot("florin", number), &object(number), Expected::Whenever);
    }
    assert!(is_held(&breaker, &p, &slot("florin", 0)));
    breaker.recall(&p, &slot("florin", 0));
    assert_eq!(held(&breaker), []);
    propose(&mut breaker, &p, "florin", 0, 1);
    assert_eq!(breaker.permit(&p, &slot("florin", 0)), Permit::Open);
}

#[test]
fn where_nobody_knows_how_much_there_is_somebody_is_asked_about_anything() {
    let mut breaker = Breaker::default();
    let florin = ScopeId::unclaimed(&ClusterId::new("florin"));
    propose(&mut breaker, &florin, "florin", 100, 1);
    breaker.evaluated(&florin, true);
    assert!(is_held(&breaker, &florin, &slot("florin", 0)));
    breaker.evaluated(&florin, false);
    assert_eq!(breaker.permit(&florin, &slot("florin", 0)), Permit::Open);
}

/// Nine copies that nobody claims in each of so many clusters.
fn nine_in_each(clusters: &[&str]) -> Breaker {
    let mut breaker = Breaker::default();
    for cluster in clusters {
        propose(&mut breaker, &unclaimed(cluster), cluster, 9, 9);
    }
    breaker
}

fn unclaimed(cluster: &str) -> ScopeId {
    ScopeId::unclaimed(&ClusterId::new(cluster))
}

#[test]
fn what_nobody_claims_is_a_share_of_all_clusters() {
    let breaker = nine_in_each(&["florin"]);
    assert_eq!(
        (held(&breaker), breaker.permit(&unclaimed("florin"), &slot("florin", 0))),
        (vec![], Permit::Open)
    );
    let mut breaker = nine_in_each(&["florin", "guilder"]);
    let scopes: Vec<_> = held(&breaker).into_iter().map(|(scope, _, count)| (scope, count)).collect();
    let asked = [("unclaimed/florin", 9), ("unclaimed/guilder", 9), ("unclaimed", 18)];
    assert_eq!(scopes, asked.map(|(scope, count)| (scope.to_owned(), count)));
    // All that is ours is what it is a share of.
    for _ in 0..18 {
        breaker.delivered(&unclaimed("tenant"));
    }
    assert_eq!(held(&breaker), []);
    breaker.departed(&unclaimed("tenant"));
    assert_eq!(held(&breaker).len(), 3);
    // A scope of a configuration is none of this.
    let p = scope("p");
    propose(&mut breaker, &p, "tenant", 9, 9);
    assert_eq!(breaker.permit(&p, &slot("tenant", 0)), Permit::Open);
}

#[test]
fn a_word_on_one_cluster_leaves_the_others_asking() {
    let mut breaker = nine_in_each(&["florin", "guilder"]);
    let [(_, florin, _), (_, guilder, _), _] = held(&breaker)[..] else { panic!("{:?}", held(&breaker)) };
    assert!(breaker.confirm(&unclaimed("florin"), florin));
    for number in 0..9 {
        breaker.recall(&unclaimed("florin"), &slot("florin", number));
        breaker.departed(&unclaimed("florin"));
    }
    let [(_, asked, 9), (_, all, 9)] = held(&breaker)[..] else { panic!("{:?}", held(&breaker)) };
    assert_eq!(asked, guilder);
    assert_ne!(all, guilder, "where there is nobody to ask about the one cluster, all can be let go");
    assert!(is_held(&breaker, &unclaimed("guilder"), &slot("guilder", 0)));
    assert!(breaker.confirm(&unclaimed("guilder"), guilder));
    assert_eq!(breaker.permit(&unclaimed("guilder"), &slot("guilder", 0)), Permit::Open);
}

#[test]
fn what_is_counted_apart_is_neither_a_part_of_all_nor_held_with_it() {
    let mut breaker = Breaker::default().apart_from(&[ClusterId::new("espw")]);
    propose(&mut breaker, &unclaimed("espw"), "espw", 9, 9);
    propose(&mut breaker, &unclaimed("florin"), "florin", 9, 9);
    assert_eq!(held(&breaker), []);
    propose(&mut breaker, &unclaimed("guilder"), "guilder", 9, 9);
    assert_eq!(held(&breaker).len(), 3);
    assert_eq!(breaker.permit(&unclaimed("espw"), &slot("espw", 0)), Permit::Open);
}

#[test]
fn one_word_lets_all_go_that_nobody_claims() {
    let mut breaker = nine_in_each(&["florin", "guilder"]);
    let change = held(&breaker)[2].1;
    assert!(!breaker.confirm(&ScopeId::unclaimed_anywhere(), ChangeId(change.0 ^ 1)));
    assert!(breaker.confirm(&ScopeId::unclaimed_anywhere(), change));
    assert_eq!(held(&breaker), []);
    for cluster in ["florin", "guilder"] {
        assert_eq!(breaker.permit(&unclaimed(cluster), &slot(cluster, 0)), Permit::Open);
    }
}
