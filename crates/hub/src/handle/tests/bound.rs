//! To what workspaces are bound, who has them bound, and who says so.

use super::tenants::{APIS, JSON, MERGE, TYPES, WORKSPACES, World, user, workspace};
use super::*;

/// A type whose workspaces are bound to an export.
fn binding_type(name: &str, path: &str, export: &str) -> Value {
    json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": { "name": name },
        "spec": { "extend": { "with": [{ "name": "universal", "path": "root" }] },
            "defaultAPIBindings": [{ "path": path, "export": export }] } })
}

#[tokio::test]
async fn nobody_is_bound_by_a_type_to_what_he_may_not_bind() {
    let world = World::of(&["provider", "mine"]).await;
    world.offer("root:provider", "sea.example", "boats", "Boat", json!({})).await;
    let bob = User::authenticated("bob", []);
    world.rule("root:mine", "cluster-admin", &json!([user("bob")])).await;
    let types = format!("/clusters/root:mine{TYPES}");
    let told = |said: &Value| said["message"].as_str().unwrap_or_default().to_owned();
    let no = "no permission to bind to export root:provider:boats";
    // Bob may not bind it, and has nobody bound to it by a type.
    let of = binding_type("bobs", "root:provider", "boats");
    let (code, said) = world.asked(&bob, Method::POST, &types, JSON, &of).await;
    assert!(code == 403 && told(&said).ends_with(no), "{said}");
    let (code, said) =
        world.asked(&bob, Method::POST, &types, JSON, &binding_type("bobs", "root:nowhere", "boats")).await;
    assert_eq!(code, 403, "{said}");
    let mut harmless = of.clone();
    harmless["spec"]["defaultAPIBindings"] = json!([]);
    let (code, said) = world.asked(&bob, Method::POST, &types, JSON, &harmless).await;
    assert_eq!(code, 201, "{said}");
    let patch = json!({ "spec": { "defaultAPIBindings": of["spec"]["defaultAPIBindings"] } });
    let (code, said) = world.asked(&bob, Method::PATCH, &format!("{types}/bobs"), MERGE, &patch).await;
    assert!(code == 403 && told(&said).ends_with(no), "{said}");
    // Alice may, and what she wrote others may change without her rights; but they make no such workspace.
    let (code, said) = world
        .asked(&alice(), Method::POST, &types, JSON, &binding_type("hers", "root:provider", "boats"))
        .await;
    assert_eq!(code, 201, "{said}");
    let patch = json!({ "spec": { "additionalWorkspaceLabels": { "a": "b" } } });
    let (code, said) = world.asked(&bob, Method::PATCH, &format!("{types}/hers"), MERGE, &patch).await;
    assert_eq!(code, 200, "{said}");
    let wider = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": { "name": "wider" },
        "spec": { "extend": { "with": [{ "name": "hers", "path": "root:mine" }] } } });
    world.make("root:mine", TYPES, wider).await;
    let workspaces = format!("/clusters/root:mine{WORKSPACES}");
    for name in ["hers", "wider"] {
        let wanted = workspace(name, &json!({ "type": { "name": name, "path": "root:mine" } }));
        let (code, said) = world.asked(&bob, Method::POST, &workspaces, JSON, &wanted).await;
        assert!(code == 403 && told(&said).ends_with(no), "{name}: {said}");
        let (code, said) = world.asked(&alice(), Method::POST, &workspaces, JSON, &wanted).await;
        assert_eq!(code, 201, "{name}: {said}");
        let at = format!("root:mine:{name}");
        assert_eq!(world.condition(&at, "boats", "Ready").await.0, "True", "{name}");
    }
}

#[tokio::test]
async fn exports_say_where_they_are_and_slices_whose_they_are() {
    let world = World::of(&["provider"]).await;
    world.offer("root:provider", "sea.example", "boats", "Boat", json!({})).await;
    let export = format!("/clusters/root:provider{APIS}/apiexports/boats");
    let (_, said) = world.get(&admin(), &export).await;
    assert_eq!(said["metadata"]["annotations"]["kcp.io/path"], "root:provider", "{said}");
    // It is the server's own, and nobody else's field.
    let patch = json!({ "metadata": { "annotations": { "kcp.io/path": "root:elsewhere" } } });
    let (code, patched) = world.asked(&admin(), Method::PATCH, &export, MERGE, &patch).await;
    assert_eq!((code, &patched["metadata"]["annotations"]), (200, &said["metadata"]["annotations"]));
    let slice = "/clusters/root:provider/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/boats";
    let (_, slice) = world.get(&admin(), slice).await;
    let owner = json!([{ "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "name": "boats",
        "uid": said["metadata"]["uid"] }]);
    assert_eq!(slice["metadata"]["ownerReferences"], owner, "{slice}");
}

#[tokio::test]
async fn nobody_says_to_what_he_is_bound_or_by_what_he_is_known_but_the_server() {
    let world = World::of(&["provider", "mine"]).await;
    world.offer("root:provider", "sea.example", "boats", "Boat", json!({})).await;
    let binding = json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": "boats" },
        "spec": { "reference": { "export": { "name": "absent" } } } });
    world.make("root:mine", &format!("{APIS}/apibindings"), binding).await;
    let provider = world.id("root:provider");
    let of = |resource: &str, name: &str| format!("/clusters/root:mine{APIS}/{resource}/{name}");
    let forged = json!({ "status": { "phase": "Bound", "apiExportClusterName": *provider.0,
        "boundResources": [{ "group": "", "resource": "secrets",
            "schema": { "name": "a", "UID": "b", "identityHash": "c" } }] } });
    let path = of("apibindings", "boats");
    let (code, said) = world.asked(&alice(), Method::PATCH, &format!("{path}/status"), MERGE, &forged).await;
    assert_eq!(code, 200, "{said}");
    for said in [said, world.get(&alice(), &path).await.1] {
        let status = &said["status"];
        assert_eq!(
            (&status["phase"], &status["boundResources"]),
            (&json!("Binding"), &Value::Null),
            "{said}"
        );
        assert!(status["apiExportClusterName"].is_null(), "{said}");
    }
    let (code, said) = world
        .get(&alice(), &format!("/services/apiexport/root:provider/boats/clusters/*{APIS}/apibindings"))
        .await;
    assert_eq!((code, said["items"].as_array().map(Vec::len)), (200, Some(0)), "{said}");
    let export = json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": "mine" },
        "spec": { "identity": { "secretRef": { "namespace": "default", "name": "absent" } } } });
    world.make("root:mine", &format!("{APIS}/apiexports"), export).await;
    let path = of("apiexports", "mine");
    let forged = json!({ "status": { "identityHash": "of another" } });
    let (code, said) = world.asked(&alice(), Method::PATCH, &format!("{path}/status"), MERGE, &forged).await;
    assert_eq!((code, &said["status"]["identityHash"]), (200, &Value::Null), "{said}");
}

const BOATS: &str = "/apis/sea.example/v1/namespaces/default/boats";

fn boat(name: &str) -> Value {
    json!({ "apiVersion": "sea.example/v1", "kind": "Boat", "metadata": { "name": name } })
}

/// The names of the boats that the provider's view shows.
async fn seen(world: &World, query: &str) -> (u16, Vec<String>) {
    let view = "/services/apiexport/root:provider/boats/clusters/*/apis/sea.example/v1/boats";
    let (code, said) = world.get(&admin(), &format!("{view}?{query}")).await;
    let names = said["items"].as_array().into_iter().flatten();
    (code, names.map(|boat| boat["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect())
}

#[tokio::test]
async fn a_second_binding_to_an_export_hides_nothing_of_the_first() {
    let world = World::of(&["provider", "mine"]).await;
    world.offer("root:provider", "sea.example", "boats", "Boat", json!({})).await;
    world.bind("root:mine", "first", "root:provider", "boats", json!([])).await;
    world.make("root:mine", BOATS, boat("one")).await;
    // Both before and after the first by name.
    for second in ["another", "second"] {
        world.bind("root:mine", second, "root:provider", "boats", json!([])).await;
        assert_eq!(world.condition("root:mine", second, "Ready").await.1, "NamingConflicts");
        assert_eq!(seen(&world, "").await, (200, vec!["one".to_owned()]), "{second}");
        let own =
            format!("/services/apiexport/root:provider/boats/clusters/{}{BOATS}", world.id("root:mine").0);
        let named = format!("of-{second}");
        let (code, said) = world.asked(&admin(), Method::POST, &own, JSON, &boat(&named)).await;
        assert_eq!(code, 201, "{said}");
        let binding = format!("/clusters/root:mine{APIS}/apibindings/{second}");
        assert_eq!(world.asked(&admin(), Method::DELETE, &binding, "", &Value::Null).await.0, 200);
        world.tidy(&world.id("root:mine")).await;
        assert_eq!(world.get(&admin(), &binding).await.0, 404);
        assert_eq!(seen(&world, "").await, (200, vec![named.clone(), "one".to_owned()]), "{second} is gone");
        let named = format!("{own}/{named}");
        assert_eq!(world.asked(&admin(), Method::DELETE, &named, "", &Value::Null).await.0, 200);
    }
    assert_eq!(world.condition("root:mine", "first", "Ready").await.0, "True");
}

#[tokio::test]
async fn a_view_shows_nothing_of_the_time_before_a_kind_was_bound() {
    let world = World::of(&["provider", "mine"]).await;
    world.offer("root:provider", "sea.example", "boats", "Boat", json!({})).await;
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.sea.example" },
        "spec": { "group": "sea.example", "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }] } });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.make("root:mine", definitions, definition).await;
    world.make("root:mine", BOATS, boat("private")).await;
    let before = world.hub.peek(|machine| machine.version().0);
    // The loser of a conflict, which goes again, was never bound.
    world.bind("root:mine", "loser", "root:provider", "boats", json!([])).await;
    assert_eq!(world.condition("root:mine", "loser", "Ready").await.1, "NamingConflicts");
    let loser = format!("/clusters/root:mine{APIS}/apibindings/loser");
    assert_eq!(world.asked(&admin(), Method::DELETE, &loser, "", &Value::Null).await.0, 200);
    world.tidy(&world.id("root:mine")).await;
    let at = |version: u64| format!("resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(seen(&world, &at(before)).await, (200, vec![]));
    let own = format!("/clusters/root:mine{definitions}/boats.sea.example");
    assert_eq!(world.asked(&admin(), Method::DELETE, &own, "", &Value::Null).await.0, 200);
    world.tidy(&world.id("root:mine")).await;
    assert_eq!(world.get(&admin(), &own).await.0, 404);
    world.bind("root:mine", "boats", "root:provider", "boats", json!([])).await;
    assert_eq!(world.condition("root:mine", "boats", "Ready").await.0, "True");
    world.make("root:mine", BOATS, boat("shown")).await;
    let shown = world.hub.peek(|machine| machine.version().0);
    assert_eq!(seen(&world, &at(before)).await, (200, vec![]), "it was another's kind");
    assert_eq!(seen(&world, &at(shown)).await, (200, vec!["shown".to_owned()]));
    let view = "/services/apiexport/root:provider/boats/clusters/*/apis/sea.example/v1/boats";
    let watched = ask(
        Method::GET,
        &format!("{view}?watch=true&timeoutSeconds=1&resourceVersion={before}"),
        "",
        String::new(),
    );
    let answer = handle(Arc::clone(&world.hub), Some(&admin()), watched).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains("shown") && !text.contains("private"), "{text}");
}

#[tokio::test]
async fn whoever_may_not_bind_an_export_learns_nothing_of_it_by_a_slice() {
    let world = World::of(&["provider", "mine"]).await;
    world.offer("root:provider", "sea.example", "boats", "Boat", json!({})).await;
    let bob = User::authenticated("bob", []);
    world.rule("root:mine", "cluster-admin", &json!([user("bob")])).await;
    let slices = "/clusters/root:mine/apis/apis.kcp.io/v1alpha1/apiexportendpointslices";
    let slice = |path: &str, name: &str| {
        json!({ "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice", "metadata": { "name": "s" },
            "spec": { "export": { "path": path, "name": name } } })
    };
    for (path, name) in [("root:provider", "boats"), ("root:provider", "absent"), ("root:absent", "boats")] {
        let (code, said) = world.asked(&bob, Method::POST, slices, JSON, &slice(path, name)).await;
        assert_eq!(code, 403, "{said}");
        let why = format!("no permission to bind to export {path}:{name}");
        assert!(said["message"].as_str().unwrap_or_default().ends_with(&why), "{said}");
    }
    let (code, said) =
        world.asked(&admin(), Method::POST, slices, JSON, &slice("root:provider", "boats")).await;
    assert_eq!(code, 201, "{said}");
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    let (code, said) = world.asked(&bob, Method::PATCH, &format!("{slices}/s"), MERGE, &patch).await;
    assert_eq!(code, 200, "what it is of stays: {said}");
}
