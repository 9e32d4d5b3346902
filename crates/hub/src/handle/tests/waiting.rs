//! Workspaces that wait to be prepared, as whoever prepares them sees them, and as nobody else does.

use super::tenants::{CLUSTER, JSON, MERGE, RBAC, TYPES, WORKSPACES, World, user, workspace};
use super::*;

/// A workspace of alice's, `root:mine:new`, that waits for those who may prepare workspaces of the type `held`, of whom carol is
/// one; and the view through which they do so.
async fn waiting() -> (World, String) {
    let world = World::of(&["provider", "mine"]).await;
    let of = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": { "name": "held" },
        "spec": { "initializer": true, "extend": { "with": [{ "name": "universal", "path": "root" }] } } });
    world.make("root:provider", TYPES, of).await;
    let rule = json!({ "apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"], "resourceNames": ["held"],
        "verbs": ["initialize"] });
    let role = json!({ "metadata": { "name": "preparer" }, "rules": [rule] });
    world.make("root:provider", &format!("{RBAC}/clusterroles"), role).await;
    world.rule("root:provider", "preparer", &json!([user("carol")])).await;
    let wanted = workspace("new", &json!({ "type": { "name": "held", "path": "root:provider" } }));
    let path = format!("/clusters/root:mine{WORKSPACES}");
    let (code, said) = world.asked(&alice(), Method::POST, &path, JSON, &wanted).await;
    assert_eq!(code, 201, "{said}");
    let (_, of) = world.get(&admin(), &format!("/clusters/root:provider{TYPES}/held")).await;
    let url = of["status"]["virtualWorkspaces"][0]["url"].as_str().expect("an address").to_owned();
    let view = url.strip_prefix("https://127.0.0.1:6443").expect("it is here").to_owned();
    assert_eq!(view, format!("/services/initializingworkspaces/{}:held", world.id("root:provider").0));
    (world, view)
}

fn carol() -> User {
    User::authenticated("carol", [])
}

fn all_in(view: &str) -> String {
    format!("{view}/clusters/*{}", CLUSTER.trim_end_matches("/cluster"))
}

#[tokio::test]
async fn a_workspace_is_prepared_in_its_owners_name_and_let_go() {
    let (world, view) = waiting().await;
    let id = world.id("root:mine:new");
    let (code, said) = world.get(&carol(), &all_in(&view)).await;
    assert_eq!(code, 200, "{said}");
    let items = said["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "one waits: {said}");
    assert_eq!(items[0]["metadata"]["annotations"]["kcp.io/cluster"], *id.0);
    let at = format!("{view}/clusters/{}", id.0);
    let role = json!({ "metadata": { "name": "captain" },
        "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }] });
    let roles = format!("{RBAC}/clusterroles");
    let (code, said) = world.asked(&carol(), Method::POST, &format!("{at}{roles}"), JSON, &role).await;
    assert_eq!(code, 201, "alice may give it, so carol may in her name: {said}");
    assert_eq!(world.get(&alice(), &format!("/clusters/{}{roles}/captain", id.0)).await.0, 200);
    // Only her own name, and nothing else, she may take off.
    let status = format!("{at}{CLUSTER}/status");
    for (path, patch, expected) in [
        (format!("{at}{CLUSTER}"), json!({ "metadata": { "labels": { "a": "b" } } }), 405),
        (status.clone(), json!({ "status": { "conditions": [] } }), 422),
        (status.clone(), json!({ "status": { "phase": "Ready" } }), 403),
        (status.clone(), json!({ "status": { "initializers": [] } }), 200),
    ] {
        let (code, said) = world.asked(&carol(), Method::PATCH, &path, MERGE, &patch).await;
        assert_eq!(code, expected, "{patch}: {said}");
    }
    let (_, said) = world.get(&alice(), &format!("/clusters/root:mine{WORKSPACES}/new")).await;
    assert_eq!(said["status"]["phase"], "Ready", "{said}");
    let (code, said) = world.get(&carol(), &all_in(&view)).await;
    assert_eq!((code, said["items"].as_array().map(Vec::len)), (200, Some(0)), "{said}");
    // From now on it is none of hers.
    assert_eq!(world.get(&carol(), &format!("{at}{roles}/captain")).await.0, 403);
    assert_eq!(world.get(&carol(), &format!("{at}{CLUSTER}")).await.0, 404);
}

#[tokio::test]
async fn nobody_enters_a_waiting_workspace_who_may_not_prepare_it() {
    let (world, view) = waiting().await;
    let id = world.id("root:mine:new");
    let at = format!("{view}/clusters/{}", id.0);
    let bob = User::authenticated("bob", []);
    for path in [all_in(&view), format!("{at}{CLUSTER}"), format!("{at}{MAPS}")] {
        let (code, said) = world.get(&bob, &path).await;
        assert_eq!(code, 403, "{path}: {said}");
    }
    // Who may prepare is nobody there otherwise, and nowhere else by it.
    for path in [
        format!("/clusters/{}{MAPS}", id.0),
        format!("{view}/clusters/{}{MAPS}", world.id("root:mine").0),
        format!("{view}/clusters/{}{CLUSTER}", world.id("root:mine").0).replace(":held/", ":other/"),
        format!("{view}/clusters/*{MAPS}").replace(":held/", "/"),
    ] {
        let (code, said) = world.get(&carol(), &path).await;
        assert_eq!(code, 403, "{path}: {said}");
    }
    assert_eq!(world.get(&carol(), &format!("{view}/clusters/*/api/v1/configmaps")).await.0, 404);
    let request = Request::builder().uri(format!("{at}{MAPS}")).header("impersonate-user", "admin");
    let request = request.header("impersonate-group", "system:masters").body(Full::new(Bytes::new()));
    let (code, said) = answered_to(&world.hub, &carol(), request.unwrap()).await;
    assert_eq!(code, 200, "she acts as alice, whatever else she asks for: {said}");
}

#[tokio::test]
async fn whoever_prepares_a_masters_workspace_is_no_master_there() {
    let (world, view) = waiting().await;
    let wanted = workspace("masters", &json!({ "type": { "name": "held", "path": "root:provider" } }));
    world.make("root:mine", WORKSPACES, wanted).await;
    let id = world.id("root:mine:masters");
    let at = format!("{view}/clusters/{}", id.0);
    let (code, said) = world.get(&carol(), &format!("{at}{MAPS}")).await;
    assert_eq!(code, 200, "its owner rules it by name: {said}");
    let path = format!("/clusters/{}{RBAC}/clusterrolebindings/workspace-admin", id.0);
    let (code, said) = world.asked(&admin(), Method::DELETE, &path, JSON, &Value::Null).await;
    assert_eq!(code, 200, "{said}");
    let (code, said) = world.get(&carol(), &format!("{at}{MAPS}")).await;
    assert_eq!(code, 403, "and by nothing that he is elsewhere: {said}");
}
