use proptest::prelude::*;

use super::*;

fn hash(key: u32) -> u64 {
    u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn set(keys: impl IntoIterator<Item = u32>, limit: usize) -> Shards<u32, u32> {
    let mut shards = Shards::new(limit);
    for key in keys {
        shards.insert(key, hash(key), 1, key);
    }
    shards
}

fn content(shards: &Shards<u32, u32>) -> Vec<(Shard, Vec<u32>)> {
    let part = |shard| shards.part(shard).expect("a part").map(|(key, _)| *key).collect();
    shards.parts().into_iter().map(|shard| (shard, part(shard))).collect()
}

#[test]
fn a_small_set_is_one_part_and_an_empty_one_too() {
    assert_eq!(content(&set([], 3)), [(Shard::FIRST, vec![])]);
    assert_eq!(content(&set([3, 1, 2], 3)), [(Shard::FIRST, vec![1, 2, 3])]);
}

#[test]
fn a_change_touches_one_part() {
    let mut shards = set(0..10_000, 500);
    assert!(shards.parts().len() >= 20, "{} parts", shards.parts().len());
    shards.take_changed();
    shards.remove(&77, hash(77));
    assert_eq!(shards.take_changed().len(), 1);
    shards.insert(77, hash(77), 1, 78);
    assert_eq!(shards.take_changed().len(), 1);
    shards.insert(77, hash(77), 1, 78);
    assert!(shards.take_changed().is_empty(), "nothing changed");
    assert_eq!(shards.len(), 10_000);
}

#[test]
fn one_heavy_entry_is_a_part_of_its_own() {
    let mut shards = Shards::new(10);
    for key in 0..4_u32 {
        shards.insert(key, hash(key), if key == 2 { 100 } else { 1 }, key);
    }
    let with_two = content(&shards).into_iter().find(|(_, keys)| keys.contains(&2)).expect("it is there");
    assert_eq!(with_two.1, [2]);
}

#[test]
fn the_first_part_is_first_however_deep() {
    let parts = set(0..5_000, 50).parts();
    assert_eq!(parts.iter().filter(|shard| shard.is_first()).count(), 1);
    assert!(parts[0].is_first() && parts[0].to_string().chars().all(|bit| bit == '0'), "{}", parts[0]);
}

proptest! {
    #[test]
    fn parts_depend_on_what_is_in_the_set_alone(
        keep in prop::collection::btree_set(0..400_u32, 0..80),
        passing in prop::collection::vec(0..400_u32, 0..200),
        limit in 1..12_usize,
    ) {
        let straight = set(keep.iter().copied(), limit);
        let mut roundabout = set(passing.iter().copied().chain(keep.iter().rev().copied()), limit);
        for key in passing.iter().filter(|key| !keep.contains(key)) {
            roundabout.remove(key, hash(*key));
        }
        prop_assert_eq!(content(&straight), content(&roundabout));
        for (shard, keys) in content(&straight) {
            prop_assert!(keys.len() <= limit.max(1), "{shard}: {keys:?}");
        }
    }

    #[test]
    fn what_changed_is_told(
        steps in prop::collection::vec((0..60_u32, any::<bool>()), 1..80),
        limit in 1..6_usize,
    ) {
        let mut shards = set([], limit);
        let mut written: BTreeMap<Shard, Vec<u32>> = BTreeMap::new();
        for (key, present) in steps {
            if present { shards.insert(key, hash(key), 1, key) } else { shards.remove(&key, hash(key)) }
            for shard in shards.take_changed() {
                match shards.part(shard) {
                    Some(entries) => drop(written.insert(shard, entries.map(|(key, _)| *key).collect())),
                    None => drop(written.remove(&shard)),
                }
            }
            prop_assert_eq!(written.clone().into_iter().collect::<BTreeMap<_, _>>(), content(&shards).into_iter().collect());
        }
    }
}
