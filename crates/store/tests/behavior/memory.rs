//! What an object costs beside its JSON.

use mailboat_object::object::Keep;
use mailboat_store::{Filter, Input};

use crate::rig::{Mode, Rig, definition};

const OBJECTS: usize = 10_000;
const HEAD_BYTES: usize = 512;
const LIMIT_BYTES: usize = 8 * 1024 * 1024;

#[test]
fn ten_thousand_heads_of_half_a_kilobyte_take_less_than_eight_megabytes() {
    let mut rig = Rig::new(Mode::Whole);
    let mut out = Vec::new();
    let heads = mailboat_store::Definition { keep: Keep::Head, ..definition(Filter::All) };
    rig.wires[0].follower.redefine(heads, &mut rig.store, &mut out).unwrap();
    rig.hear(out);
    rig.wires[0].follower.next(rig.now);
    let items: Vec<String> = (0..OBJECTS)
        .map(|n| {
            let head = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"workload-{n}","namespace":"till","uid":"{n:032x}","resourceVersion":"{n}","annotations":{{"mailboat.dev/mark":""#
            );
            let padding = HEAD_BYTES - head.len() - 4;
            format!(r#"{head}{}"}}}},"data":{{"body":"{}"}}}}"#, n.to_string().repeat(padding).get(..padding).unwrap_or_default(), "b".repeat(400))
        })
        .collect();
    let page = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"99999"}},"items":[{}]}}"#,
        items.join(",")
    );
    rig.feed(0, Input::Page(page.as_bytes()));
    assert_eq!(rig.store.len(), OBJECTS);
    let json: usize =
        rig.store.across(&crate::rig::place(), &crate::server::configmaps()).map(|o| o.json().len()).sum();
    let kept = json / OBJECTS;
    let beside = 150;
    assert!((HEAD_BYTES - beside..HEAD_BYTES).contains(&kept), "{kept} bytes of JSON are kept of each");
    let bytes = rig.store.footprint_bytes();
    println!("{bytes} bytes for {OBJECTS} objects, {} beside the JSON of each", (bytes - json) / OBJECTS);
    assert!(bytes < LIMIT_BYTES, "{bytes} bytes");
}
