//! Scenario `example1`: two workloads, one for every production edge and one for the extended ones, from `kubectl apply` in
//! two workload workspaces to what runs at florin and guilder, and away again.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place};

const THE_ONE: Named<'_> = (EDGE, "SyncerConfig", "", "the-one");
const COMMOND: Named<'_> = ("apps/v1", "ReplicaSet", "commonstuff", "commond");
const SPECIALD: Named<'_> = ("apps/v1", "Deployment", "specialstuff", "speciald");
const COMMON_PAGE: Named<'_> = ("v1", "ConfigMap", "commonstuff", "httpd-htdocs");
const SPECIAL_PAGE: Named<'_> = ("v1", "ConfigMap", "specialstuff", "httpd-htdocs");
const CRON: Named<'_> = ("stable.example.com/v1", "CronTab", "specialstuff", "my-new-cron-object");
const SERVICE: Named<'_> = ("apiregistration.k8s.io/v1", "APIService", "", "v1090.example.my");
const DEFINITION: Named<'_> =
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "crontabs.stable.example.com");
const NAMESPACE: Named<'_> = ("v1", "Namespace", "", "specialstuff");

/// What `the-one` names at florin; at guilder the special ones besides.
const AT_BOTH: [&str; 2] = ["configmaps/commonstuff/httpd-htdocs", "replicasets.apps/commonstuff/commond"];
const AT_GUILDER: [&str; 6] = [
    "apiservices.apiregistration.k8s.io//v1090.example.my",
    "configmaps/specialstuff/httpd-htdocs",
    "crontabs.stable.example.com/specialstuff/my-new-cron-object",
    "customresourcedefinitions.apiextensions.k8s.io//crontabs.stable.example.com",
    "deployments.apps/specialstuff/speciald",
    "namespaces//specialstuff",
];

#[tokio::test]
async fn example1() {
    let fleet = Fleet::board().await;
    let (common, special) = (fleet.workload("wmw-c").await, fleet.workload("wmw-s").await);
    common.apply("example1/common.yaml").await;
    special.apply("example1/crontabs.yaml").await;
    let established =
        ["wait", "--for=condition=Established", "--timeout=60s", "crd/crontabs.stable.example.com"];
    special.kubectl(&established).await.well();
    special.apply("example1/special.yaml").await;

    let inventory = fleet.inventory().await;
    for edge in ["florin", "guilder"] {
        is_ready(&inventory, edge).await;
    }
    goes_to(&common, "edge-placement-c", &["florin", "guilder"]).await;
    goes_to(&special, "edge-placement-s", &["guilder"]).await;
    let (at_florin, at_guilder) = (fleet.mailbox("florin").await, fleet.mailbox("guilder").await);
    told(&at_florin, &AT_BOTH, &["group1.test", "group2.test"]).await;
    told(&at_guilder, &[&AT_BOTH[..], &AT_GUILDER].concat(), &["group1.test", "group2.test", "group3.test"])
        .await;

    let (florin, guilder) = (fleet.edge("florin").await, fleet.edge("guilder").await);
    for (edge, name) in [(&florin, "florin"), (&guilder, "guilder")] {
        page_says(edge, COMMON_PAGE, &["This is a common web site.", &format!("Running in {name}.")]).await;
        runs(edge, COMMOND, "env is prod").await;
    }
    page_says(&guilder, SPECIAL_PAGE, &["This is a special web site.", "Running in guilder."]).await;
    runs(&guilder, SPECIALD, "in prod env").await;
    guilder.until(CRON, "there", |cron| cron["spec"]["cronSpec"] == "* * * * */5").await;
    guilder
        .until(SERVICE, "without a service", |service| service.to_string().contains("ServiceNotFound"))
        .await;
    let marked = |namespace: &Value| {
        namespace["metadata"]["labels"]["special"] == "yes"
            && namespace["metadata"]["annotations"]["just-for"] == "fun"
    };
    guilder.until(NAMESPACE, "with its labels", marked).await;
    for absent in [NAMESPACE, SPECIALD, SERVICE, DEFINITION] {
        assert!(florin.get(absent).await.is_none(), "{absent:?} is at florin");
    }

    // One who is at one edge alone has its status from there; one who is at two has none.
    let counted = |count: &'static str| {
        move |object: &Value| object["metadata"]["annotations"]["kubestellar.io/executing-count"] == count
    };
    let commond = common.until(COMMOND, "counted", counted("2")).await;
    assert!(commond["status"].get("readyReplicas").is_none(), "{commond:#}");
    let one = |object: &Value| counted("1")(object) && object["status"]["readyReplicas"] == 1;
    special.until(SPECIALD, "counted, with status", one).await;
    placement_says(&common, "edge-placement-c", 2).await;
    placement_says(&special, "edge-placement-s", 1).await;

    // The placement goes, and with it what it placed; what others placed stays, and so do namespaces.
    let deployed = guilder.get(SPECIALD).await.unwrap();
    common.kubectl(&["delete", "edgeplacement", "edge-placement-c"]).await.well();
    told(&at_florin, &[], &[]).await;
    told(&at_guilder, &AT_GUILDER, &["group1.test", "group3.test"]).await;
    for edge in [&at_florin, &at_guilder, &florin, &guilder] {
        edge.until_gone(COMMOND).await;
        edge.until_gone(COMMON_PAGE).await;
    }
    assert!(florin.get(("v1", "Namespace", "", "commonstuff")).await.is_some());
    let still = guilder.get(SPECIALD).await.unwrap();
    assert_eq!(still["metadata"]["generation"], deployed["metadata"]["generation"], "it was written again");
    let counted_no_more =
        |object: &Value| object["metadata"]["annotations"].get("kubestellar.io/executing-count").is_none();
    common.until(COMMOND, "counted no more", counted_no_more).await;

    special.kubectl(&["delete", "edgeplacement", "edge-placement-s"]).await.well();
    told(&at_guilder, &[], &[]).await;
    for object in [SPECIALD, SERVICE] {
        guilder.until_gone(object).await;
    }
}

/// Waits until an edge is said to be ready, which is when its syncer was heard of.
async fn is_ready(inventory: &Place, edge: &str) {
    let ready = |target: &Value| {
        let mut conditions = target["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    inventory.until((EDGE, "SyncTarget", "", edge), "ready", ready).await;
    let counted = |location: &Value| {
        location["status"]["instances"] == 1 && location["status"]["availableInstances"] == 1
    };
    inventory.until((EDGE, "Location", "", edge), "counted", counted).await;
}

/// Waits until a placement's slice names these edges.
async fn goes_to(workload: &Place, placement: &str, edges: &[&str]) {
    let slice = (EDGE, "SinglePlacementSlice", "", placement);
    let goes = |slice: &Value| {
        let to = slice["destinations"].as_array().into_iter().flatten();
        to.map(|one| one["syncTargetName"].as_str().unwrap()).collect::<BTreeSet<_>>()
            == edges.iter().copied().collect()
    };
    workload.until(slice, &format!("to {edges:?}"), goes).await;
}

/// Waits until `the-one` names these objects and brings up from these groups, and nothing else.
async fn told(mailbox: &Place, objects: &[&str], upsync: &[&str]) {
    let wanted: BTreeSet<String> = objects.iter().map(|&object| object.to_owned()).collect();
    let groups: Vec<Value> = upsync.iter().map(|group| json!(group)).collect();
    let says = |the_one: &Value| {
        let brings = the_one["spec"]["upsync"].as_array().into_iter().flatten();
        named_by(the_one) == wanted && brings.map(|set| set["apiGroup"].clone()).collect::<Vec<_>>() == groups
    };
    mailbox.until(THE_ONE, &format!("naming {wanted:?} and bringing up {upsync:?}"), says).await;
}

/// All objects that a SyncerConfig names, as kind, namespace and name.
fn named_by(config: &Value) -> BTreeSet<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = |entry: &Value| match text(&entry["group"]).as_str() {
        "" => text(&entry["resource"]),
        group => format!("{}.{group}", text(&entry["resource"])),
    };
    let mut named = BTreeSet::new();
    for entry in list(&config["spec"]["namespacedObjects"]) {
        for place in list(&entry["objectsByNamespace"]) {
            let name =
                |name: &Value| format!("{}/{}/{}", kind(&entry), text(&place["namespace"]), text(name));
            named.extend(list(&place["names"]).iter().map(name));
        }
    }
    for entry in list(&config["spec"]["clusterScope"]) {
        named.extend(list(&entry["objects"]).iter().map(|name| format!("{}//{}", kind(&entry), text(name))));
    }
    named
}

async fn page_says(edge: &Place, page: Named<'_>, lines: &[&str]) {
    let found = edge.until(page, "delivered", |_| true).await;
    let text = found["data"]["index.html"].as_str().unwrap();
    for line in lines {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
}

/// Waits until one replica is ready, and checks what its container's environment says.
async fn runs(edge: &Place, workload: Named<'_>, environment: &str) {
    let found = edge.until(workload, "ready", |found| found["status"]["readyReplicas"] == 1).await;
    let said = &found["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"];
    assert_eq!(said, environment, "{found:#}");
}

/// Waits until a placement's status says how many edges it goes to, and that nothing is held.
async fn placement_says(workload: &Place, placement: &str, edges: u64) {
    let placement = (EDGE, "EdgePlacement", "", placement);
    let says = |found: &Value| {
        let status = &found["status"];
        status["specGeneration"] == found["metadata"]["generation"]
            && status["destinationCount"] == edges
            && status.get("held").is_none()
    };
    workload.until(placement, "with its status", says).await;
}
