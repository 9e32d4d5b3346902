//! Fresh looks: what one finds says something of what it was asked about, and of nothing that came after.

use mailboat_engine::look::Serving;

use crate::prelude::*;

#[test]
fn what_a_look_found_says_nothing_of_what_went_after_it() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.remove(&source());
    // Before the answer is read, the source is made anew, and goes once more: with its binding.
    world.run_until_found(|world| {
        world.put(&source(), config_map("1"));
        world.run_for(10);
        world.kind = Serving::Nothing;
        world.remove(&source());
        world.run_for(10);
    });
    world.run_for(600_000);
    assert!(world.object(&copy()).is_some(), "deleted by a look at the source before");
    world.kind = Serving::Itself;
    world.run_for(600_000);
    assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
}
