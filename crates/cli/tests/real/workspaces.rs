//! From an empty center to described edges and a workload workspace, by the commands alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mailboat_testkit::{ADMIN, World, wait_until};
use serde_json::Value;

use crate::mailbox::Provider;
use crate::program::{kubectl, mailboat};

/// A center on a fresh provider workspace knows within this what there is, on a machine with other things to do.
const CENTER_BEGINS: Duration = Duration::from_mins(3);

#[tokio::test]
async fn workspaces() {
    let shared = World::shared().await.unwrap();
    let center = shared.center();
    let provider = Provider::make(center).await;
    let folder = tempfile::tempdir().unwrap();
    let scene =
        Scene { kubeconfig: folder.path().join("config"), home: center.workspace("ws").await.unwrap().path };
    fs::copy(center.kubeconfig(ADMIN, &scene.home).unwrap(), &scene.kubeconfig).unwrap();

    scene.one_goes_through_workspaces_as_through_folders().await;
    scene.what_is_not_there_is_not_entered().await;
    scene.an_edge_is_described_once_however_often_it_is_done(&provider.workspace.path).await;
    scene.a_kind_is_offered_and_its_objects_can_be_made().await;
    scene.what_a_placement_would_do_is_told_before_and_why_after(&provider).await;
    scene.an_inventory_goes_without_edges_or_with_them_by_word(&provider.workspace.path).await;
    scene.a_workload_workspace_is_made_and_removed(&provider.workspace.path).await;
    scene.older_commands_set_up_a_center_and_run_it(&folder.path().join("logs")).await;
}

struct Scene {
    kubeconfig: PathBuf,
    /// The workspace that all this happens in.
    home: String,
}

impl Scene {
    fn file(&self) -> &Path {
        &self.kubeconfig
    }

    async fn current(&self) -> String {
        mailboat(self.file(), &["ws", "current", "--short"]).await.well().out.trim().to_owned()
    }

    async fn one_goes_through_workspaces_as_through_folders(&self) {
        let home = &self.home;
        assert_eq!(self.current().await, *home);
        let said = mailboat(self.file(), &["ws", "create", "a", "--enter"]).await.well();
        assert_eq!(said.out, format!("Current workspace is '{home}:a'.\n"));
        // kubectl follows: it is the same kubeconfig.
        let seen = kubectl(
            self.file(),
            &["get", "logicalcluster", "cluster", "-o", "jsonpath={.metadata.annotations.kcp\\.io/path}"],
        )
        .await
        .well();
        assert_eq!(seen.out, format!("{home}:a"));
        mailboat(self.file(), &["ws", ".."]).await.well();
        assert_eq!(self.current().await, *home);
        mailboat(self.file(), &["ws", "-"]).await.well();
        assert_eq!(self.current().await, format!("{home}:a"));
        mailboat(self.file(), &["ws", &format!(":{home}")]).await.well();
        mailboat(self.file(), &["ws", "ensure", "b:c"]).await.well();
        mailboat(self.file(), &["ws", "ensure", "b:c"]).await.well();
        assert_eq!(self.current().await, *home, "it was not asked to enter");
        let tree = mailboat(self.file(), &["ws", "tree"]).await.well();
        assert_eq!(tree.out, format!("{home}\n├── a\n└── b\n    └── c\n"));
    }

    async fn what_is_not_there_is_not_entered(&self) {
        let before = fs::read_to_string(self.file()).unwrap();
        mailboat(self.file(), &["ws", "missing"]).await.refused_with(&["missing", "ws tree"]);
        mailboat(self.file(), &["ws", "Not a path"]).await.refused_with(&["small letters"]);
        mailboat(self.file(), &["ws", "create", "a"]).await.refused_with(&["--ignore-existing"]);
        mailboat(self.file(), &["get", "placements"]).await.refused_with(&["edgeplacements", "ensure wmw"]);
        assert_eq!(fs::read_to_string(self.file()).unwrap(), before, "the kubeconfig was changed");
    }

    async fn an_edge_is_described_once_however_often_it_is_done(&self, provider: &str) {
        let imw = format!("{}:a", self.home);
        let ensure = |labels: &'static [&'static str]| {
            let words = ["ensure", "location", "--imw", &imw, "--espw", provider, "guilder"];
            let words: Vec<String> = words.iter().chain(labels).map(|word| (*word).to_owned()).collect();
            async move {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                mailboat(self.file(), &words).await
            }
        };
        ensure(&[]).await.refused_with(&["label"]);
        ensure(&["id=x"]).await.refused_with(&["id"]);
        let said = ensure(&["env=prod"]).await.well();
        assert!(
            said.err.contains("SyncTarget guilder: made") && said.err.contains("Location guilder: made"),
            "{said:?}"
        );
        let said = ensure(&["env=prod"]).await.well();
        assert!(said.err.contains("SyncTarget guilder: unchanged"), "{said:?}");
        ensure(&["env=dev", "rack=7"]).await.well();
        let edges = mailboat(self.file(), &["get", "edges", "-w", &imw, "-o", "json"]).await.well();
        let edges: Value = serde_json::from_str(&edges.out).unwrap();
        assert_eq!(
            edges["items"][0]["metadata"]["labels"],
            serde_json::json!({ "id": "guilder", "env": "dev", "rack": "7" })
        );
        let table = mailboat(self.file(), &["get", "edges", "-w", &imw]).await.well();
        let lines: Vec<&str> = table.out.lines().collect();
        assert!(
            lines.len() == 2 && lines[0].starts_with("NAME") && lines[1].contains("env=dev,rack=7"),
            "{table:?}"
        );
        let remove = ["remove", "location", "guilder", "--imw", &imw];
        mailboat(self.file(), &remove).await.well();
        let said = mailboat(self.file(), &remove).await.well();
        assert!(said.err.contains("SyncTarget guilder: not there"), "{said:?}");
    }

    async fn a_kind_is_offered_and_its_objects_can_be_made(&self) {
        let at = format!("{}:b", self.home);
        let file = self.kubeconfig.with_file_name("crd.yaml");
        let crd = |field: &str| {
            format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.example.com}}\n\
                 spec:\n  group: example.com\n  scope: Namespaced\n  names: {{plural: widgets, kind: Widget}}\n  versions:\n  \
                 - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
                 properties: {{spec: {{type: object, properties: {{{field}: {{type: string}}}}}}}}\n"
            )
        };
        fs::write(&file, crd("color")).unwrap();
        let import = ["api", "import", "-f", file.to_str().unwrap(), "--workspace", &at, "--bind"];
        let said = mailboat(self.file(), &import).await.well();
        assert!(said.out.contains("apiexport.apis.kcp.io/example.com created"), "{said:?}");
        let again = mailboat(self.file(), &import).await.well();
        assert!(
            again.out.lines().count() == 3 && again.out.lines().all(|line| line.ends_with("unchanged")),
            "{again:?}"
        );
        let widget = self.kubeconfig.with_file_name("widget.yaml");
        fs::write(&widget, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one, namespace: default}\nspec: {color: red}\n")
            .unwrap();
        mailboat(self.file(), &["ws", &format!(":{at}")]).await.well();
        kubectl(self.file(), &["apply", "-f", widget.to_str().unwrap()]).await.well();
        // Another definition takes the place of the first, and what was made stays.
        fs::write(&file, crd("shape")).unwrap();
        let said = mailboat(self.file(), &import).await.well();
        assert!(said.out.contains("apiexport.apis.kcp.io/example.com changed"), "{said:?}");
        kubectl(self.file(), &["get", "widgets", "one", "-n", "default"]).await.well();
        fs::write(&file, "kind: ConfigMap\napiVersion: v1\n").unwrap();
        mailboat(self.file(), &import).await.refused_with(&["CustomResourceDefinition"]);
        mailboat(self.file(), &["ws", &format!(":{}", self.home)]).await.well();
    }

    async fn what_a_placement_would_do_is_told_before_and_why_after(&self, provider: &Provider<'_>) {
        let (wmw, espw, imw) =
            (format!("{}:asked", self.home), &provider.workspace.path, &provider.inventory.path);
        provider.mailbox("florin").await;
        mailboat(
            self.file(),
            &["ensure", "location", "florin", "env=prod", "city=capital", "--imw", imw, "--espw", espw],
        )
        .await
        .well();
        mailboat(self.file(), &["ensure", "wmw", &wmw, "--with-kube", "false", "--espw", espw]).await.well();
        mailboat(self.file(), &["ws", &format!(":{wmw}")]).await.well();
        let page = self.kubeconfig.with_file_name("page.yaml");
        let shop = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n";
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: page\n  namespace: shop\n  labels: {app: shop}\n  \
             annotations: {edge.kubestellar.io/expand-parameters: \"true\"}\ndata: {at: \"%(city)\"}\n";
        fs::write(&page, format!("{shop}{map}")).unwrap();
        kubectl(self.file(), &["apply", "-f", page.to_str().unwrap()]).await.well();
        let placement = self.kubeconfig.with_file_name("shops.yaml");
        let text = |env: &str| {
            format!(
                "apiVersion: edge.kubestellar.io/v2alpha1\nkind: EdgePlacement\nmetadata: {{name: shops}}\nspec:\n  \
                 locationSelectors: [{{matchLabels: {{env: {env}}}}}]\n  downsync:\n  - apiGroup: \"\"\n    resources: [configmaps]\n    \
                 labelSelectors: [{{matchLabels: {{app: shop}}}}]\n"
            )
        };
        fs::write(&placement, text("prod")).unwrap();
        let plan = ["plan", "-f", placement.to_str().unwrap(), "--espw", espw, "--imw", imw];
        let planned = mailboat(self.file(), &plan).await.well();
        let line =
            planned.out.lines().nth(1).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line, "florin create configmaps shop/page", "{planned:?}");
        // A file without a flag is the same file.
        let bare = mailboat(self.file(), &[&["plan"], &plan[2..]].concat()).await.well();
        assert_eq!(bare.out, planned.out);
        let counted = mailboat(self.file(), &[&plan[..], &["--exit-code"]].concat()).await;
        assert_eq!(counted.code, Some(3), "{counted:?}");
        fs::write(&placement, text("nowhere")).unwrap();
        let nothing = mailboat(self.file(), &[&plan[..], &["--exit-code"]].concat()).await.well();
        assert!(nothing.out.contains("nothing would change"), "{nothing:?}");

        fs::write(&placement, text("prod")).unwrap();
        kubectl(self.file(), &["apply", "-f", placement.to_str().unwrap()]).await.well();
        let why = ["why", "configmap/page", "-n", "shop", "--espw", espw, "--imw", imw];
        let told = mailboat(self.file(), &why).await.well();
        for words in ["selected by spec.downsync[0]", "edge florin", ".data.at", "nothing stands there"] {
            assert!(told.out.contains(words), "{words:?} is not said: {told:?}");
        }
        let data = mailboat(self.file(), &[&why[..], &["-o", "json"]].concat()).await.well();
        let data: Value = serde_json::from_str(&data.out).unwrap();
        assert_eq!(data["placements"][0]["edges"][0]["location"], "florin", "{data}");
        mailboat(self.file(), &["why", "configmap/missing", "-n", "shop", "--espw", espw])
            .await
            .refused_with(&["missing"]);
        mailboat(self.file(), &["ws", &format!(":{}", self.home)]).await.well();
    }

    async fn an_inventory_goes_without_edges_or_with_them_by_word(&self, provider: &str) {
        let imw = format!("{}:imw", self.home);
        let remove = ["remove", "imw", &imw];
        let ensure = ["ensure", "imw", &imw, "--kcp-kinds", "--espw", provider];
        mailboat(self.file(), &ensure).await.well();
        let said = mailboat(self.file(), &remove).await.well();
        assert!(said.err.contains(&format!("workspace {imw}: removed")), "{said:?}");
        let again = mailboat(self.file(), &remove).await.well();
        assert!(again.err.contains("not there"), "{again:?}");

        mailboat(self.file(), &ensure).await.well();
        let edge = ["ensure", "location", "guilder", "env=prod", "--imw", &imw, "--espw", provider];
        mailboat(self.file(), &edge).await.well();
        // Kinds of kcp's own describe edges as well.
        mailboat(self.file(), &["ws", &format!(":{imw}")]).await.well();
        let old = self.kubeconfig.with_file_name("old.yaml");
        let text =
            "apiVersion: workload.kcp.io/v1alpha1\nkind: SyncTarget\nmetadata: {name: old}\nspec: {}\n";
        fs::write(&old, text).unwrap();
        kubectl(self.file(), &["apply", "-f", old.to_str().unwrap()]).await.well();
        mailboat(self.file(), &["ws", &format!(":{}", self.home)]).await.well();
        let words = ["SyncTargets: 2, Locations: 1", "remove location", "--with-edges"];
        mailboat(self.file(), &remove).await.refused_with(&words);
        let edges = mailboat(self.file(), &["get", "edges", "-w", &imw]).await.well();
        assert_eq!(edges.out.lines().count(), 3, "a refusal took edges along: {edges:?}");
        let said = mailboat(self.file(), &[&remove[..], &["--with-edges"]].concat()).await.well();
        for line in ["SyncTarget guilder: removed", "SyncTarget old: removed", "Location guilder: removed"] {
            assert!(said.err.contains(line), "{line:?} is not said: {said:?}");
        }
        assert!(said.err.ends_with(&format!("workspace {imw}: removed\n")), "{said:?}");
    }

    async fn a_workload_workspace_is_made_and_removed(&self, provider: &str) {
        let path = format!("{}:wmw", self.home);
        let ensure = ["ensure", "wmw", &path, "--with-kube", "false", "--espw", provider];
        mailboat(self.file(), &ensure).await.well();
        let said = mailboat(self.file(), &ensure).await.well();
        assert!(said.err.contains("bind-espw: unchanged"), "{said:?}");
        mailboat(self.file(), &["ws", &format!(":{path}")]).await.well();
        let bound = kubectl(self.file(), &["get", "clusterrolebinding", "mailboat:center", "-o", "name"])
            .await
            .well();
        assert!(bound.out.contains("mailboat:center"), "{bound:?}");
        let placement = self.kubeconfig.with_file_name("placement.yaml");
        fs::write(
            &placement,
            "apiVersion: edge.kubestellar.io/v2alpha1\nkind: EdgePlacement\nmetadata: {name: ep}\nspec:\n  \
            locationSelectors: [{matchLabels: {env: prod}}]\n",
        )
        .unwrap();
        kubectl(self.file(), &["apply", "-f", placement.to_str().unwrap()]).await.well();
        let table = mailboat(self.file(), &["get", "placements"]).await.well();
        assert!(table.out.lines().nth(1).is_some_and(|line| line.starts_with("ep")), "{table:?}");
        let none = mailboat(self.file(), &["get", "summary"]).await.well();
        assert!(none.out.is_empty() && none.err.contains("none"), "{none:?}");
        mailboat(self.file(), &["ws", &format!(":{}", self.home)]).await.well();
        let said = mailboat(self.file(), &["remove", "wmw", &path]).await.well();
        assert!(said.err.contains("withdrawing") && said.err.contains("removed"), "{said:?}");
        let again = mailboat(self.file(), &["remove", "wmw", &path]).await;
        assert_eq!(again.code, Some(0), "{again:?}");
    }

    /// As KubeStellar's own scripts call them.
    async fn older_commands_set_up_a_center_and_run_it(&self, logs: &Path) {
        let at = |name: &str| format!("{}:{name}", self.home);
        let (provider, inventory, workload) = (at("ks-espw"), at("ks-imw"), at("ks-wmw"));
        let logs = logs.to_str().unwrap();
        let words = ["kubestellar", "start", "-V", "--log-folder", logs, "--espw", &provider];
        let more = ["--ensure-imw", &inventory, "--ensure-wmw", &workload];
        let started = mailboat(self.file(), &[&words[..], &more[..]].concat()).await.well();
        assert!(started.err.contains("the center runs as process"), "{started:#?}");
        let number = fs::read_to_string(Path::new(logs).join("center.pid")).unwrap();
        let prep = ["ensure", "location", "old", "env=prod", "-X", "--imw", &inventory, "--espw", &provider];
        mailboat(self.file(), &prep).await.well();
        let log = || fs::read_to_string(Path::new(logs).join("center-log.txt")).unwrap();
        let sails = wait_until("the center at work", CENTER_BEGINS, async || {
            let log = log();
            if log.contains("the center knows its placements and edges") { Ok(()) } else { Err(log) }
        });
        sails.await.unwrap_or_else(|late| panic!("{late}"));
        let stopped = mailboat(self.file(), &["kubestellar", "stop", "--log-folder", logs]).await.well();
        assert!(stopped.err.contains(&format!("process {number}, has ended")), "{stopped:#?}");
        mailboat(self.file(), &["kubestellar", "stop", "--log-folder", logs]).await.well();
        let asked = mailboat(self.file(), &["kubestellar", "version", "platform"]).await.well();
        assert!(asked.out.contains('/'), "{asked:#?}");
    }
}
