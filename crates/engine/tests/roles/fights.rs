//! Other hands that undo what we deliver: it is put right ever more slowly, and nobody else waits for that.

use crate::prelude::*;

/// A copy that was delivered.
fn delivered() -> World {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.servers.get_mut(&copy().cluster).unwrap().user = Some("operator");
    world
}

/// Another hand looks every other second for so long, and undoes what it finds; how often it found something to undo.
fn fight(world: &mut World, milliseconds: u64, undo: impl Fn(&mut World) -> bool) -> usize {
    let (start, mut rounds) = (world.now, 0);
    while world.now < start + milliseconds {
        rounds += usize::from(undo(world));
        world.run_for(1_000);
        world.now += 1_000;
    }
    rounds
}

fn rewrite(world: &mut World) -> bool {
    let mut theirs = world.object(&copy()).unwrap().clone();
    let delivered = theirs["data"]["a"] != "operator";
    theirs["data"]["a"] = json!("operator");
    world.put(&copy(), theirs);
    delivered
}

fn delete(world: &mut World) -> bool {
    let stands = world.object(&copy()).is_some();
    world.remove(&copy());
    stands
}

fn says_with_whom(world: &mut World, part: &str) {
    let notices = world.engine.notices();
    let named = notices.iter().any(|n| {
        n.verdict == Verdict::Waiting(Wait::Contention)
            && n.fault.as_deref().is_some_and(|f| f.contains(part) && f.contains(" times in a row"))
    });
    assert!(named, "{notices:?}");
}

#[test]
fn h24_a_fight_slows_down_and_says_with_whom() {
    let mut world = delivered();
    let rounds = fight(&mut world, 300_000, rewrite);
    assert!((5..20).contains(&rounds), "{rounds} rounds in five minutes");
    says_with_whom(&mut world, "operator");
    // The pauses become no longer than ten minutes, and not short again because they are so long.
    let rounds = fight(&mut world, 7_200_000, rewrite);
    assert!((10..18).contains(&rounds), "{rounds} rounds in two hours more");
}

#[test]
fn h24_a_copy_that_is_deleted_again_and_again_is_made_ever_more_slowly() {
    let mut world = delivered();
    let rounds = fight(&mut world, 300_000, delete);
    assert!((5..20).contains(&rounds), "{rounds} rounds in five minutes");
    says_with_whom(&mut world, "another hand deleted");
    let rounds = fight(&mut world, 7_200_000, delete);
    assert!((10..18).contains(&rounds), "{rounds} rounds in two hours more");
    world.run_for(600_000);
    assert!(world.object(&copy()).is_some(), "{}", explain(&world, &copy()));
    // Nobody fights who deletes it once in a while.
    for _ in 0..20 {
        world.now += 120_000;
        world.remove(&copy());
        world.run_for(1_000);
        assert!(world.object(&copy()).is_some(), "{}", explain(&world, &copy()));
    }
}

#[test]
fn h24_what_a_user_changes_does_not_wait_for_the_end_of_a_fight() {
    for undo in [rewrite, delete] {
        let mut world = delivered();
        fight(&mut world, 300_000, undo);
        assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Waiting(Wait::Contention)));
        let before = world.now;
        world.put(&source(), config_map("2"));
        world.run_for(10);
        let now = world.object(&copy()).map(|copy| copy["data"]["a"].clone());
        assert_eq!(now, Some(json!("2")), "{}", explain(&world, &copy()));
        assert!(world.now - before <= 10, "it waited {} ms", world.now - before);
        // The fight goes on where it was.
        let rounds = fight(&mut world, 300_000, undo);
        assert!((1..4).contains(&rounds), "{rounds} rounds in five minutes more");
    }
}
