//! Scenario `tenants`: with a syncer's token, or a workload user's, nothing can be reached beyond their own workspace. Every
//! verb is tried.

use mailboat_api::names::export;
use mailboat_center::setup::{INVENTORY_TYPE, WORKLOAD_TYPE};
use serde_json::{Value, json};

use super::{EDGE, Fleet, Named};
use crate::harbor::{delete, put};
use crate::manifest::Answers;

/// What is tried on a collection, on one object in it, and on what is written apart from that.
const VERBS: [(&str, &str, &str); 12] = [
    ("list", "GET", ""),
    ("watch", "GET", ""),
    ("create", "POST", ""),
    ("deletecollection", "DELETE", ""),
    ("get", "GET", "/x"),
    ("update", "PUT", "/x"),
    ("patch", "PATCH", "/x"),
    ("delete", "DELETE", "/x"),
    ("update the status of", "PUT", "/x/status"),
    ("patch the status of", "PATCH", "/x/status"),
    ("patch the scale of", "PATCH", "/x/scale"),
    ("create a token of", "POST", "/x/token"),
];

/// Kinds that hold secrets, data, rights, configuration, and workspaces themselves.
const KINDS: [(&str, &str); 11] = [
    ("/api/v1/namespaces/default", "configmaps"),
    ("/api/v1/namespaces/default", "secrets"),
    ("/api/v1/namespaces/default", "serviceaccounts"),
    ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    ("/apis/apis.kcp.io/v1alpha2", "apibindings"),
    ("/apis/apis.kcp.io/v1alpha2", "apiexports"),
    ("/apis/core.kcp.io/v1alpha1", "logicalclusters"),
    ("/apis/tenancy.kcp.io/v1alpha1", "workspaces"),
    ("/apis/edge.kubestellar.io/v2alpha1", "edgeplacements"),
    ("/apis/edge.kubestellar.io/v2alpha1", "synctargets"),
];

#[tokio::test]
async fn tenants() {
    let fleet = Fleet::board().await;
    let alices = fleet.workload("alices").await;
    let others = fleet.workload("others").await;
    let (alices, others) = (alices.path, others.path);
    fleet.center.make_administrator("alice", &alices).await.unwrap();
    let alice = answers(&fleet, fleet.center.token("alice").unwrap());
    let token = std::fs::read_to_string(fleet.syncer_file("florin").with_file_name("token")).unwrap();
    let syncer = answers(&fleet, token.trim());
    let (florin, guilder) = (&fleet.mailboxes["florin"], &fleet.mailboxes["guilder"]);

    // Each is somebody in their own place.
    assert_eq!(syncer.code(florin, "GET", "/api/v1/configmaps", &Value::Null).await, 200);
    assert_eq!(alice.code(&alices, "GET", "/api/v1/secrets", &Value::Null).await, 200);
    // The syncer reads its mailbox, and writes nothing there but status and what is brought up, whatever that is said to be.
    writes_nothing(&syncer, florin).await;
    let workload = fleet.at(&alices).await;
    put(&workload.client, &hostile()).await;
    let told =
        |found: &Value| found["status"]["validationErrors"].as_array().is_some_and(|told| told.len() == 4);
    workload.until(HOSTILE, "told what does not come up", told).await;
    let role = ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "mailboat-syncer");
    let granted = |found: &Value| found["rules"].to_string().contains("harmless.example");
    fleet.mailbox("florin").await.until(role, "with a right over what may come up", granted).await;
    writes_nothing(&syncer, florin).await;
    for (method, path) in [
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token"),
        ("POST", "/apis/edge.kubestellar.io/v2alpha1/syncerconfigs"),
        ("PUT", "/api/v1/namespaces/default/finalize"),
        ("PATCH", "/api/v1/namespaces/default/status"),
        ("PATCH", "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster/status"),
        ("PATCH", "/apis/apis.kcp.io/v1alpha2/apibindings/bind-edge/status"),
        ("PUT", "/apis/edge.kubestellar.io/v2alpha1/syncerconfigs/the-one/status"),
    ] {
        let code = syncer.code(florin, method, path, &json!({ "metadata": { "name": "x" } })).await;
        assert_eq!(code, 403, "the syncer may {method} {path} in its mailbox");
    }
    delete(&workload.client, HOSTILE).await;

    for (who, is, places) in [
        (&syncer, "the syncer", [guilder, &fleet.provider, &fleet.inventory, &alices, &others]),
        (&alice, "alice", [guilder, &fleet.provider, &fleet.inventory, florin, &others]),
    ] {
        for place in places {
            for (group, kind) in KINDS {
                for (verb, method, named) in VERBS {
                    let code = attempt(who, place, group, kind, verb, method, named).await;
                    assert!(is_refused(code), "{is} may {verb} {kind} in {place}: {code}");
                }
            }
        }
        // All workspaces at once, without a view.
        for (group, kind) in KINDS {
            for (verb, method, named) in VERBS {
                let code = attempt(who, "*", group, kind, verb, method, named).await;
                assert!(is_refused(code), "{is} may {verb} {kind} everywhere: {code}");
            }
        }
        // Workspaces that wait for their types.
        for kind_of_workspace in [INVENTORY_TYPE, WORKLOAD_TYPE] {
            let view = waiting(&fleet, kind_of_workspace).await;
            for (group, kind) in KINDS {
                for (verb, method, named) in VERBS {
                    let at = format!("{view}/clusters/*{group}");
                    let code = attempt(who, "", &at, kind, verb, method, named).await;
                    assert!(is_refused(code), "{is} may {verb} {kind} in {view}: {code}");
                }
            }
        }
        // The views show every workspace at once.
        for view in [export::EDGE, export::COMPUTE, export::DENATURED, export::MAILBOX] {
            let path = format!("/services/apiexport/{}/{view}/clusters/*/api/v1/configmaps", fleet.provider);
            let edge =
                format!("/services/apiexport/{}/{view}/clusters/*/apis/{EDGE}/synctargets", fleet.provider);
            for path in [path, edge] {
                let code = who.code("", "GET", &path, &Value::Null).await;
                assert!(matches!(code, 401 | 403 | 404), "{is} was answered {code} for {path}");
            }
        }
    }

    // Who may bind our kinds may still not bind the claims over mailboxes.
    let bind = |name: &str| {
        json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": "x" },
                "spec": { "reference": { "export": { "path": fleet.provider, "name": name } } } })
    };
    let bindings = "/apis/apis.kcp.io/v1alpha2/apibindings";
    assert_eq!(alice.code(&alices, "POST", bindings, &bind(export::MAILBOX)).await, 403);
    let (kind, dry) = (bind(export::WORKLOAD), format!("{bindings}?dryRun=All"));
    assert_eq!(alice.code(&alices, "POST", &dry, &kind).await, 201);
}

const HOSTILE: Named<'_> = (EDGE, "EdgePlacement", "", "hostile");

/// A placement that asks for rights over a mailbox in the name of what comes up, and for one that it may have.
fn hostile() -> Value {
    let upsync = |group: &str, resource: &str| json!({ "apiGroup": group, "resources": [resource], "namespaces": ["*"], "names": ["*"] });
    json!({
        "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": "hostile" },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "loc-name": "florin" } }],
            "upsync": [
                upsync("*", "*"),
                upsync("*", "clusterrolebindings"),
                upsync("edge.kubestellar.io", "syncerconfigs"),
                upsync("", "serviceaccounts/token"),
                upsync("harmless.example", "things"),
            ],
        },
    })
}

async fn writes_nothing(syncer: &Answers<'_>, mailbox: &str) {
    for (group, kind) in KINDS {
        for (verb, method, named) in
            VERBS.iter().filter(|(verb, ..)| !matches!(*verb, "list" | "watch" | "get"))
        {
            let code = attempt(syncer, mailbox, group, kind, verb, method, named).await;
            assert!(is_refused(code), "the syncer may {verb} {kind} in its mailbox: {code}");
        }
    }
}

/// Whether that was refused. "Not found" is what somebody is told who may; what there is not for anybody may be refused as that.
fn is_refused(code: u16) -> bool {
    matches!(code, 401 | 403 | 405)
}

/// Where workspaces of a type are shown that wait for the center, without the host.
async fn waiting(fleet: &Fleet, kind_of_workspace: &str) -> String {
    let of_type = ("tenancy.kcp.io/v1alpha1", "WorkspaceType", "", kind_of_workspace);
    let published = |found: &Value| {
        found["status"]["virtualWorkspaces"][0]["url"].as_str().is_some_and(|url| !url.is_empty())
    };
    let found = fleet.at(&fleet.provider).await.until(of_type, "with a view", published).await;
    let url = found["status"]["virtualWorkspaces"][0]["url"].as_str().unwrap();
    let at = url.find("/services/").expect("it is a view's address");
    url[at..].to_owned()
}

fn answers<'a>(fleet: &Fleet, token: &str) -> Answers<'a> {
    Answers { center: fleet.center, token: token.to_owned() }
}

/// What the server answers to a verb.
async fn attempt(
    who: &Answers<'_>,
    place: &str,
    group: &str,
    kind: &str,
    verb: &str,
    method: &str,
    named: &str,
) -> u16 {
    let object = json!({ "metadata": { "name": "x" } });
    let path = match verb {
        "watch" => format!("{group}/{kind}?watch=true&timeoutSeconds=1"),
        _ => format!("{group}/{kind}{named}"),
    };
    let body = if matches!(method, "POST" | "PUT" | "PATCH") { &object } else { &Value::Null };
    who.code(place, method, &path, body).await
}
