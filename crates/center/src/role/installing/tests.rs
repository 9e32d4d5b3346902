use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_object::wire::FaultKind;
use mailboat_registration::manifest::EdgeOptions;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{Knowledge, object};

const UID: &str = "f99e773f-3db2-439e-8054-827c4ac55368";

/// One SyncTarget whose syncer the center installs.
struct Scene {
    installing: Installing,
    mailboxes: Mailboxes,
    known: Knowledge,
    calls: u64,
}

impl Scene {
    fn new() -> Self {
        let center = CenterAddress {
            url: "https://127.0.0.1:6443".to_owned(),
            certificate_authority_pem: None,
            tls_server_name: None,
            insecure: false,
        };
        let installs = Installs { center, options: EdgeOptions::of("syncer".to_owned()) };
        let mut known = Knowledge::new();
        for mailbox in ["mailbox", "another"] {
            for kind in ["syncerconfigs.edge.kubestellar.io", "configmaps"] {
                known.list(mailbox, kind, &[]);
            }
        }
        let marks = Arc::new(StandardMarks::new(OwnerId(Name::new("center"))));
        let mut scene = Self {
            installing: Installing::new(Some(Arc::new(installs)), Arc::from("root:espw")),
            mailboxes: Mailboxes::new(ClusterId::new("espw"), "root:espw", marks),
            known,
            calls: 0,
        };
        scene.mailbox("mailbox");
        scene.target(&json!({ "mailboat.dev/kubeconfig-secret": "default/old" }));
        scene
    }

    fn mailbox(&mut self, cluster: &str) {
        let workspace = json!({
            "metadata": { "name": format!("imw-mb-{UID}"),
                "annotations": { annotation::SYNC_TARGET_NAME: "florin" } },
            "spec": { "cluster": cluster }, "status": { "phase": "Ready" },
        });
        let workspace = object("espw", "workspaces.tenancy.kcp.io", &workspace);
        self.mailboxes.observe(&workspace, &mut Vec::new());
        assert_eq!(self.mailboxes.newly_furnished(&self.known.store, &mut Vec::new()).len(), 1);
    }

    fn target(&mut self, annotations: &Value) {
        let target = json!({ "metadata": { "name": "florin", "uid": UID, "annotations": annotations } });
        self.installing.sees_target(&object("imw", "synctargets.edge.kubestellar.io", &target));
    }

    /// What is asked first by a run that begins now, and the name of what is asked for.
    fn begins(&mut self) -> (CallId, String) {
        let (mut orders, calls) = (Vec::new(), &mut self.calls);
        let fresh = || {
            *calls += 1;
            CallId(*calls)
        };
        self.installing.next(Moment(1_000), &self.mailboxes, fresh, &mut orders);
        let asked = orders.into_iter().find_map(|order| match order {
            Order::Call(id, call) => Some((id, call.key.name.to_string())),
            _ => None,
        });
        asked.expect("a run begins")
    }

    /// Whether an answer is taken for one to what is under way.
    fn takes(&mut self, id: CallId) -> bool {
        let now = Now { mono: Moment(2_000), wall_seconds: 2 };
        let answer = Err(Fault::new(FaultKind::NotFound, "it is not there"));
        self.installing.answered(now, id, &answer, || CallId(99), &mut Vec::new())
    }
}

#[test]
fn what_a_former_run_asked_for_is_no_answer_to_one_by_another_kubeconfig() {
    let mut scene = Scene::new();
    let (former, asked) = scene.begins();
    assert_eq!(asked, "old");
    scene.target(&json!({ "mailboat.dev/kubeconfig-secret": "default/new" }));
    let (now, asked) = scene.begins();
    assert_eq!(asked, "new");
    assert!(!scene.takes(former));
    assert_eq!(scene.installing.said(&Uid::parse(UID)), Installed::Unsaid);
    assert!(scene.takes(now));
    assert_ne!(scene.installing.said(&Uid::parse(UID)), Installed::Unsaid);
}

#[test]
fn what_a_former_run_asked_for_is_no_answer_to_one_for_another_mailbox() {
    let mut scene = Scene::new();
    let (former, _) = scene.begins();
    scene.mailbox("another");
    let (now, _) = scene.begins();
    assert!(!scene.takes(former) && scene.takes(now));
}

#[test]
fn nothing_is_answered_to_one_that_is_not_asked_for_any_more_and_is_again() {
    let mut scene = Scene::new();
    let (former, _) = scene.begins();
    scene.target(&json!({}));
    scene.target(&json!({ "mailboat.dev/kubeconfig-secret": "default/new" }));
    scene.begins();
    assert!(!scene.takes(former));
}
