use mailboat_engine::mark::{MARK_ANNOTATION, OWNER_LABEL, OwnerId, StandardMarks};
use mailboat_engine::route::View;
use mailboat_object::catalog::{Served, Verbs};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{kind, object};

const UID: &str = "f99e773f-3db2-439e-8054-827c4ac55368";
const CONFIGS: &str = "edgesyncconfigs.edge.kubestellar.io";

/// One mailbox, whose syncer is told what to carry.
struct Scene {
    mailboxes: Mailboxes,
    workspace: Arc<Object>,
    catalog: Arc<Catalog>,
}

impl Scene {
    fn new() -> Self {
        let marks: Arc<dyn Marks> = Arc::new(StandardMarks::new(OwnerId(Name::new("center"))));
        let mut mailboxes = Mailboxes::new(ClusterId::new("espw"), "root:espw", marks);
        let workspace = object(
            "espw",
            "workspaces.tenancy.kcp.io",
            &json!({
                "metadata": { "name": format!("imw-mb-{UID}"), "annotations": { annotation::SYNC_TARGET_NAME: "florin" } },
                "spec": { "cluster": "mailbox" }, "status": { "phase": "Ready" },
            }),
        );
        mailboxes.observe(&workspace, &mut Vec::new());
        mailboxes.tell(&Store::new());
        let mut catalog = Catalog::default();
        catalog.add(Served {
            kind: kind("policyreports.wgpolicyk8s.io"),
            version: Name::new("v1alpha2"),
            kind_name: Name::new("PolicyReport"),
            singular: Name::new("policyreport"),
            namespaced: true,
            status: false,
            scale: false,
            verbs: Verbs::of(["list", "watch"]),
            short_names: Box::default(),
        });
        Self { mailboxes, workspace, catalog: Arc::new(catalog) }
    }

    /// The rules of the syncer's role, if the mailbox's route was made anew since this was last asked.
    fn rules(&mut self) -> Option<Value> {
        let mut orders = Vec::new();
        self.mailboxes.configure(&[&self.catalog], &mut orders);
        let route = orders.into_iter().find_map(|order| match order {
            Order::Configure(_, route) => route,
            _ => None,
        })?;
        let (to, store) = (Destination { id: HERE, cluster: ClusterId::new("espw") }, Store::new());
        let wants = route.project(&self.workspace, &to, &View::new(&store)).unwrap();
        let role = wants.iter().find(|want| want.slot.kind.resource() == "clusterroles").unwrap();
        let role: Value = serde_json::from_slice(&role.body.json).unwrap();
        Some(role["rules"].clone())
    }
}

/// An EdgeSyncConfig in the mailbox, placed from a workspace.
fn config(from: &str) -> Arc<Object> {
    let mark = json!({
        "on": format!("{CONFIGS}//reports"), "cluster": from, "uid": "u", "version": 1,
        "intent": Digest::NONE.to_string(),
    });
    object(
        "mailbox",
        CONFIGS,
        &json!({
            "metadata": { "name": "reports", "labels": { OWNER_LABEL: "center" },
                "annotations": { MARK_ANNOTATION: mark.to_string() } },
            "spec": { "upSyncedResources": [{ "group": "wgpolicyk8s.io", "kind": "PolicyReport", "name": "*" }] },
        }),
    )
}

fn may_write_reports(rules: &Value) -> bool {
    let writes = |rule: &Value| {
        let has =
            |member: &str, word: &str| rule[member].as_array().is_some_and(|all| all.contains(&json!(word)));
        has("apiGroups", "wgpolicyk8s.io") && has("resources", "policyreports") && has("verbs", "create")
    };
    rules.as_array().is_some_and(|rules| rules.iter().any(writes))
}

#[test]
fn what_a_placed_edge_sync_config_brings_up_its_syncer_may_write_until_it_goes() {
    let mut scene = Scene::new();
    let rules = scene.rules().unwrap();
    assert!(!may_write_reports(&rules), "{rules}");
    let config = config("shop");
    scene.mailboxes.sees_config(&config.key, Some(&config));
    let rules = scene.rules().unwrap();
    assert!(may_write_reports(&rules), "{rules}");
    scene.mailboxes.sees_config(&config.key, Some(&config));
    assert!(scene.rules().is_none(), "nothing else is brought up than before");
    scene.mailboxes.sees_config(&config.key, None);
    let rules = scene.rules().unwrap();
    assert!(!may_write_reports(&rules), "{rules}");
}

#[test]
fn a_config_that_nobody_placed_gives_no_rights() {
    let mut scene = Scene::new();
    scene.rules();
    let config = config("espw");
    scene.mailboxes.sees_config(&config.key, Some(&config));
    assert!(scene.rules().is_none());
}

/// `the-one` as another center left it, which had reports brought up.
fn told_before() -> Arc<Object> {
    let kind = "syncerconfigs.edge.kubestellar.io";
    let mark = json!({
        "on": format!("{kind}//the-one"), "cluster": "espw", "uid": "u", "version": 1,
        "intent": Digest::NONE.to_string(),
    });
    let set = |resource: &str| json!({ "apiGroup": "", "resources": [resource], "namespaces": ["*"], "names": ["*"] });
    object(
        "mailbox",
        kind,
        &json!({
            "metadata": { "name": "the-one", "labels": { OWNER_LABEL: "center" },
                "annotations": { MARK_ANNOTATION: mark.to_string() } },
            "spec": { "upsync": [set("pods"), set("events")] },
        }),
    )
}

#[test]
fn what_was_brought_up_is_brought_up_until_all_are_known_who_may_ask_for_it() {
    let mut scene = Scene::new();
    let uid = Uid::parse(UID);
    scene.mailboxes.told = false;
    let the_one = told_before();
    scene.mailboxes.sees_config(&the_one.key, Some(&the_one));
    scene.mailboxes.tell(&Store::new());
    let set = |resource: &str| UpsyncSet {
        api_group: String::new(),
        resources: vec![resource.to_owned()],
        namespaces: vec!["*".to_owned()],
        names: vec!["*".to_owned()],
    };
    let brought = |scene: &Scene| -> Vec<String> {
        let mailbox = &scene.mailboxes.all[&uid];
        let all: BTreeSet<String> = mailbox.upsync.all().flat_map(|set| set.resources.clone()).collect();
        all.into_iter().collect()
    };
    // One placement that asked is known, and another is not.
    scene.mailboxes.set_upsync(&uid, BTreeSet::from([set("pods")]));
    assert_eq!(brought(&scene), ["events", "pods"]);
    // What is known to be asked for follows who asks.
    scene.mailboxes.set_upsync(&uid, BTreeSet::from([set("jobs")]));
    assert_eq!(brought(&scene), ["events", "jobs"]);
    scene.mailboxes.forget_brought(|_| false);
    assert_eq!(brought(&scene), ["events", "jobs"]);
    scene.rules();
    scene.mailboxes.forget_brought(|_| true);
    assert_eq!(brought(&scene), ["jobs"]);
    let rules = scene.rules().expect("its rights follow").to_string();
    assert!(rules.contains("jobs") && !rules.contains("events"), "{rules}");
}
