//! A schema swapped inside an export, in the view and in the workspace itself.

use std::time::Instant;

use kube::api::{Patch, PatchParams};
use mailboat_testkit::{ADMIN, wait_until};
use serde_json::json;

use crate::harbor::{BOUND, Harbor, bindings, boats};
use crate::rig::{Rig, SOON, connect};

#[tokio::test]
async fn after_a_schema_is_swapped_the_new_fields_are_seen_in_the_view_and_in_the_workspace() {
    let harbor = Harbor::build(&[]).await;
    let (one, other) = (harbor.consumer().await, harbor.consumer().await);
    let keys = [one.boat("oak", "oak").await, other.boat("elm", "elm").await];
    let view = harbor.rig(&[boats()]).await;
    let own = Rig::new();
    let connection = connect(&harbor.center.access(ADMIN, &one.workspace.cluster).unwrap()).await;
    own.follow_whole(&one.workspace.cluster, connection.cluster(), &[bindings(), boats()]).await;
    let everywhere = [(one.cluster(), one.all_boats()), (other.cluster(), other.all_boats())];
    view.assert_faithful(&boats(), &everywhere).await;
    own.assert_faithful(&boats(), &everywhere[..1]).await;
    view.exists(&keys);
    own.exists(&keys[..1]);

    harbor.add_schema("second", &["hull", "sail"]).await;
    let swapped = Instant::now();
    harbor.swap_schema("second").await;

    // From the first moment that a workspace keeps the new field, it is to be seen everywhere.
    wait_until("the new field kept", BOUND, || async {
        let patch = Patch::Merge(json!({ "spec": { "sail": "red" } }));
        let patched = one.boats().patch("oak", &PatchParams::default(), &patch).await;
        let patched = patched.map_err(|error| error.to_string())?;
        if patched.data["spec"]["sail"] == "red" { Ok(()) } else { Err(patched.data["spec"].to_string()) }
    })
    .await
    .unwrap();
    println!("the workspace kept the new field {:.1?} after the swap", swapped.elapsed());
    for rig in [&view, &own] {
        rig.until_present(&keys[0], "with the new field", |boat| boat.get(&["spec", "sail"]).is_some()).await;
    }
    println!("the followers had seen it {:.1?} after the swap", swapped.elapsed());
    // What is written later comes by watches that know the new schema.
    let patch = Patch::Merge(json!({ "spec": { "sail": "blue" } }));
    wait_until("the new field kept in the other workspace", SOON, || async {
        let patched = other.boats().patch("elm", &PatchParams::default(), &patch).await;
        let patched = patched.map_err(|error| error.to_string())?;
        if patched.data["spec"]["sail"] == "blue" { Ok(()) } else { Err(patched.data["spec"].to_string()) }
    })
    .await
    .unwrap();
    view.until_present(&keys[1], "with the new field", |boat| boat.get(&["spec", "sail"]).is_some()).await;
    view.assert_faithful(&boats(), &everywhere).await;
    own.assert_faithful(&boats(), &everywhere[..1]).await;
}
