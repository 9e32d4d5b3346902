//! kubectl has many ways to ask. Each of them is tried, and each is one that is compared with real servers.

use std::fs;

use crate::kubectl::Kubectl;
use crate::served::Served;

const SHOP: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, labels: { tier: front } }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: main, image: 'web:1', ports: [{ containerPort: 80 }] }] }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: prices }
data: { bread: '3' }
";

const BOATS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: boats.sea.example }
spec:
  group: sea.example
  names: { plural: boats, kind: Boat, shortNames: [bt] }
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, properties: { length: { type: integer } } } } } }
";

/// How kubectl says what there is and what may be done.
const LOOKS: [&str; 43] = [
    "version",
    "cluster-info",
    "api-resources",
    "api-resources --namespaced=true -o name",
    "api-versions",
    "explain deployment.spec.template",
    "explain pods --recursive",
    "explain boats.spec",
    "auth can-i create pods",
    "auth can-i get pods/log -n kube-system",
    "auth can-i --list",
    "auth whoami",
    "get all -A",
    "get all",
    "get pods -o wide",
    "get pods -A",
    "get pods -l app=web",
    "get pods --field-selector status.phase=Running",
    "get pods --field-selector metadata.name=none -A",
    "get deploy web -o yaml",
    "get deploy/web cm/prices -o name",
    "get deploy web -o custom-columns=N:.metadata.name",
    "get cm prices -o jsonpath={.data.bread}",
    "get cm --chunk-size=1",
    "get cm --chunk-size=0",
    "get cm --show-managed-fields -o yaml",
    "get cm --ignore-not-found none",
    "get events --sort-by=.lastTimestamp",
    "get nodes",
    "get ns default",
    "get crd boats.sea.example",
    "get bt",
    "get clusterroles -l none=1",
    "get --raw /readyz?verbose",
    "get --raw /apis/apps/v1/namespaces/default/deployments/web/scale",
    "get deploy web --subresource=status",
    "get deploy web --subresource=scale",
    "describe deploy web",
    "describe pods -l app=web",
    "describe ns default",
    "describe cm prices",
    "describe nodes",
    "events",
];

/// How it changes something, in an order that makes sense.
const CHANGES: [&str; 71] = [
    "label deploy web a=b",
    "label deploy web a=c --overwrite",
    "label deploy web a-",
    "label pods -l app=web seen=yes",
    "annotate deploy web note=one",
    "annotate cm --all note=two",
    "patch deploy web -p {\"spec\":{\"revisionHistoryLimit\":3}}",
    "patch deploy web --type=merge -p {\"spec\":{\"revisionHistoryLimit\":4}}",
    "patch deploy web --type=json -p [{\"op\":\"remove\",\"path\":\"/spec/revisionHistoryLimit\"}]",
    "patch deploy web --subresource=scale --type=merge -p {\"spec\":{\"replicas\":3}}",
    "set image deploy/web main=web:2",
    "set env deploy/web SEA=north",
    "set resources deploy web --limits=cpu=1",
    "scale deploy web --replicas=2",
    "scale deploy web --current-replicas=2 --replicas=1",
    "autoscale deploy web --max=3",
    "expose deploy web --port=80",
    "rollout status deploy/web --timeout=60s",
    "rollout history deploy/web",
    "rollout restart deploy/web",
    "rollout status deploy/web --timeout=60s",
    "rollout pause deploy/web",
    "rollout resume deploy/web",
    "rollout undo deploy/web",
    "wait deploy/web --for=condition=Available --timeout=60s",
    "wait deploy/web --for=jsonpath={.spec.replicas}=1 --timeout=60s",
    "create namespace till",
    "create cm c --from-literal=a=b -n till",
    "create secret generic s --from-literal=a=b -n till",
    "create sa robot -n till",
    "create token robot -n till",
    "create token robot -n till --duration=1h --audience=sea",
    "create role r --verb=get --resource=pods -n till",
    "create rolebinding r --role=r --serviceaccount=till:robot -n till",
    "create clusterrole r --verb=get --resource=nodes",
    "create clusterrolebinding r --clusterrole=r --user=bob",
    "create job j --image=i -n till",
    "create cronjob cj --image=i --schedule=0_0_*_*_* -n till",
    "create job j2 --from=cronjob/cj -n till",
    "create ingress i --rule=web.example/*=web:80 -n till",
    "create pdb b --selector=app=none --min-available=1 -n till",
    "create quota q --hard=pods=3 -n till",
    "create priorityclass p --value=7",
    "create service clusterip v --tcp=80:8080 -n till",
    "create deployment d --image=i --replicas=0 -n till --dry-run=server",
    "create deployment d --image=i --replicas=0 -n till",
    "run lone --image=i -n till --labels=app=lone",
    "wait pods -l app=lone -n till --for=condition=Ready --timeout=60s",
    "cordon NODE",
    "uncordon NODE",
    "taint nodes NODE sea=rough:NoSchedule",
    "taint nodes NODE sea-",
    "drain NODE --force --ignore-daemonsets --timeout=60s",
    "uncordon NODE",
    "auth reconcile -f ROLE",
    "delete pod lone -n till --grace-period=0 --force",
    "delete cm -l none=1",
    "delete deploy d -n till --cascade=orphan",
    "delete job j -n till --cascade=foreground",
    "delete cronjob cj -n till --wait=false",
    "delete cm --all -n till",
    "delete role,rolebinding --all -n till",
    "delete clusterrole r",
    "delete clusterrolebinding r",
    "delete priorityclass p --now",
    "delete hpa,svc web",
    "delete namespace till",
    "wait ns/till --for=delete --timeout=60s",
    "delete -f SHOP --dry-run=server",
    "delete -f SHOP",
    "delete crd boats.sea.example",
];

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_asks_in_no_way_that_is_not_compared() {
    let served = Served::playing().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    let file = |name: &str, content: &str| {
        let path = served.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let shop = file("shop.yaml", SHOP);
    let boats = file("boats.yaml", BOATS);
    let role = file(
        "role.yaml",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: more}, rules: []}",
    );
    for words in [
        &["create", "-f", &boats][..],
        &["wait", "--for=condition=Established", "crd/boats.sea.example", "--timeout=60s"],
        &["apply", "-f", &shop, "--dry-run=server"],
        &["apply", "-f", &shop],
        &["apply", "-f", &shop],
        &["apply", "view-last-applied", "deploy/web"],
        &["apply", "set-last-applied", "-f", &shop],
        &["apply", "--server-side", "--force-conflicts", "-f", &shop],
        &["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", &shop],
        &["diff", "-f", &shop],
        &["diff", "--server-side", "--force-conflicts", "-f", &shop],
        &["replace", "-f", &shop],
        &["replace", "--force", "-f", &shop],
    ] {
        kubectl.well(words).await;
    }
    kubectl.well(&["rollout", "status", "deploy/web", "--timeout=60s"]).await;
    // All are tried, so that one look shows everything that does not work.
    let mut failed = Vec::new();
    for line in LOOKS {
        let said = kubectl.run(&line.split(' ').collect::<Vec<_>>()).await;
        if !said.well {
            failed.push(format!("{line}: {said:?}"));
        }
    }
    let said = kubectl.run(&["auth", "can-i", "list", "secrets", "--as=bob", "--as-group=sailors"]).await;
    assert_eq!((said.well, said.out.trim()), (false, "no"), "{said:?}");
    let node = kubectl.well(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]).await;
    for line in CHANGES {
        let words: Vec<String> = line
            .split(' ')
            .map(|word| match word {
                "NODE" => node.clone(),
                "SHOP" => shop.clone(),
                "ROLE" => role.clone(),
                word => word.replace("0_0_*_*_*", "0 0 * * *"),
            })
            .collect();
        let said = kubectl.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).await;
        if !said.well {
            failed.push(format!("{line}: {said:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // What a server without machines cannot do, it says.
    for line in ["logs none", "exec none -- ls", "top nodes", "get nothing"] {
        let said = kubectl.run(&line.split(' ').collect::<Vec<_>>()).await;
        assert!(!said.well && said.err.to_lowercase().contains("error"), "{line}: {said:?}");
    }
    served.check_record();
}
