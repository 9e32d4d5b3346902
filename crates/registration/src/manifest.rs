//! The edge's half of a registration: one file for `kubectl apply`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mailboat_api::generate::yaml;
use serde_json::{Value, json};

use crate::account::Registration;
use crate::names::{BadName, REGISTRATION_LABEL, check_label, check_namespace};
use crate::rights::{EdgeAccess, Rule};
use crate::token::Token;

/// Where the Deployment finds the mailbox's kubeconfig, as in the first syncers.
pub const MOUNT: &str = "/kcp";
/// The key of the Secret that holds the kubeconfig.
pub const KUBECONFIG_KEY: &str = "kubeconfig";
/// The key of the Secret that holds the token. It stands by itself, so that a renewed one replaces it alone; the
/// kubeconfig refers to it as a file.
pub const TOKEN_KEY: &str = "token";
/// The user and group that the syncer runs as: `nonroot` of distroless images.
const USER: u32 = 65532;
const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// What an edge's cluster is given.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Whose it is.
    pub registration: Registration,
    /// The token for the mailbox.
    pub token: Token,
    /// How the edge reaches the center.
    pub center: CenterAddress,
    /// How the syncer is run there.
    pub options: EdgeOptions,
}

/// How an edge reaches the center.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CenterAddress {
    /// The server's URL, without any workspace.
    pub url: String,
    /// The certificates of the authority that signed the server's, as PEM; `None`: those that the system trusts.
    pub certificate_authority_pem: Option<String>,
    /// The name that the server's certificate bears, if it is not the URL's.
    pub tls_server_name: Option<String>,
    /// Whether the server's certificate is not checked at all.
    pub insecure: bool,
}

/// How the syncer is run at the edge.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeOptions {
    /// The syncer's image.
    pub image: String,
    /// The namespace at the edge; `None`: one named after the syncer.
    pub namespace: Option<String>,
    /// 1, or 0 to begin later.
    pub replicas: u8,
    /// Requests per second to either side.
    pub qps: f64,
    /// Requests at once to either side after a quiet time.
    pub burst: u32,
    /// The port for health and metrics in the Pod.
    pub port: u16,
    /// More labels for every object.
    pub labels: BTreeMap<String, String>,
    /// What the syncer may touch.
    pub access: EdgeAccess,
}

impl EdgeOptions {
    /// One syncer from this image, everything else as usual.
    pub fn of(image: String) -> Self {
        Self {
            image,
            namespace: None,
            replicas: 1,
            qps: 0.0,
            burst: 30,
            port: 8080,
            labels: BTreeMap::new(),
            access: EdgeAccess::All,
        }
    }

    /// Checks what API servers would refuse.
    pub fn check(&self) -> Result<(), BadName> {
        self.namespace.as_deref().map_or(Ok(()), check_namespace)?;
        self.labels.iter().try_for_each(|(key, value)| check_label(key, value))
    }
}

impl Manifest {
    /// The namespace at the edge.
    pub fn namespace(&self) -> &str {
        self.options.namespace.as_deref().unwrap_or(self.registration.id.as_str())
    }

    /// The file: a comment for whoever opens it, then one document after the other. The same input gives the same
    /// bytes.
    pub fn text(&self) -> String {
        let registration = &self.registration;
        let mut text = format!(
            "# The syncer of SyncTarget {} ({}), for its edge cluster:\n#   kubectl apply -f THIS-FILE\n# It serves \
             the mailbox {}. The token in here is a secret;\n# it ends at {} and is renewed by the syncer from half \
             of its life.\n",
            registration.sync_target_name,
            registration.mailbox.sync_target_uid,
            registration.mailbox.path,
            self.token.expires_at,
        );
        for document in self.documents() {
            text += "---\n";
            text += &yaml(&document);
        }
        text
    }

    /// The objects, in the order in which they are to be applied.
    pub fn documents(&self) -> Vec<Value> {
        let id = self.registration.id.as_str();
        let mut documents =
            vec![self.namespace_object(), self.object("v1", "ServiceAccount", id, Scope::Own, json!({}))];
        documents.extend(self.role("Role", id, Scope::Own, &own_namespace(id)));
        documents.extend(self.role("ClusterRole", id, Scope::Cluster, &self.options.access.everywhere()));
        if let Some((namespaces, rules)) = self.options.access.in_namespaces() {
            let name = format!("{id}-namespaced");
            documents.push(self.object(
                RBAC,
                "ClusterRole",
                &name,
                Scope::Cluster,
                json!({ "rules": rules }),
            ));
            documents.extend(namespaces.iter().map(|namespace| {
                let binding = self.binding("ClusterRole", &name);
                self.object(RBAC, "RoleBinding", &name, Scope::Namespace(namespace), binding)
            }));
        }
        documents.push(self.secret());
        documents.push(self.deployment());
        documents
    }

    fn namespace_object(&self) -> Value {
        let mut namespace = self.object("v1", "Namespace", self.namespace(), Scope::Cluster, json!({}));
        // The syncer asks for nothing that the strictest profile forbids, and nothing else belongs here. A namespace
        // that others use as well is theirs to police.
        if self.options.namespace.is_none() {
            namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted".into();
        }
        namespace
    }

    fn secret(&self) -> Value {
        let kubeconfig = yaml(&self.kubeconfig());
        let content = json!({ "type": "Opaque", "data": {
            KUBECONFIG_KEY: STANDARD.encode(kubeconfig),
            TOKEN_KEY: STANDARD.encode(self.token.text()),
        } });
        self.object("v1", "Secret", self.registration.id.as_str(), Scope::Own, content)
    }

    /// The kubeconfig for the mailbox. It names the mailbox by its cluster id, which is never given to another
    /// workspace, and the token by its file, which is read again when it is replaced.
    fn kubeconfig(&self) -> Value {
        let center = &self.center;
        let server =
            format!("{}/clusters/{}", center.url.trim_end_matches('/'), self.registration.mailbox.cluster);
        let mut cluster = json!({ "server": server });
        if let Some(pem) = &center.certificate_authority_pem {
            cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
        }
        if let Some(name) = &center.tls_server_name {
            cluster["tls-server-name"] = name.as_str().into();
        }
        if center.insecure {
            cluster["insecure-skip-tls-verify"] = true.into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "default-cluster", "cluster": cluster }],
            "users": [{ "name": "default-user", "user": { "tokenFile": format!("{MOUNT}/{TOKEN_KEY}") } }],
            "contexts": [{ "name": "default-context", "context": {
                "cluster": "default-cluster",
                "user": "default-user",
                "namespace": self.registration.account_namespace,
            } }],
            "current-context": "default-context",
        })
    }

    fn deployment(&self) -> Value {
        let id = self.registration.id.as_str();
        let mut template_labels = self.labels();
        template_labels["app"] = id.into();
        let content = json!({ "spec": {
            "replicas": self.options.replicas,
            // Two syncers of one edge would undo each other's work.
            "strategy": { "type": "Recreate" },
            "selector": { "matchLabels": { "app": id } },
            "template": {
                "metadata": { "labels": template_labels },
                "spec": {
                    "serviceAccountName": id,
                    "enableServiceLinks": false,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "fsGroup": USER,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [self.container()],
                    "volumes": [{ "name": "kcp-config", "secret": { "secretName": id, "defaultMode": 0o440 } }],
                },
            },
        } });
        self.object("apps/v1", "Deployment", id, Scope::Own, content)
    }

    fn container(&self) -> Value {
        let (registration, options) = (&self.registration, &self.options);
        let probe = |path: &str, period: u32| json!({ "httpGet": { "path": path, "port": "health" }, "periodSeconds": period, "timeoutSeconds": 5 });
        // No command: the image says what it runs.
        json!({
            "name": "syncer",
            "image": options.image,
            "imagePullPolicy": "IfNotPresent",
            "args": [
                format!("--from-kubeconfig={MOUNT}/{KUBECONFIG_KEY}"),
                format!("--sync-target-name={}", registration.sync_target_name),
                format!("--sync-target-uid={}", registration.mailbox.sync_target_uid),
                format!("--qps={}", options.qps),
                format!("--burst={}", options.burst),
                format!("--credential-secret={}", registration.id),
                format!("--listen=:{}", options.port),
                "--log-format=json",
            ],
            "env": [{ "name": "NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } }],
            "ports": [{ "name": "health", "containerPort": options.port }],
            "livenessProbe": probe("/livez", 20),
            "readinessProbe": probe("/readyz", 10),
            "resources": { "requests": { "cpu": "10m", "memory": "32Mi" } },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": { "drop": ["ALL"] },
                "readOnlyRootFilesystem": true,
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{ "name": "kcp-config", "mountPath": format!("{MOUNT}/"), "readOnly": true }],
        })
    }

    /// A role and what binds it to the syncer's account, both of the same name and scope.
    fn role(&self, kind: &str, name: &str, scope: Scope<'_>, rules: &[Rule]) -> [Value; 2] {
        let role = self.object(RBAC, kind, name, scope, json!({ "rules": rules }));
        [role, self.object(RBAC, &format!("{kind}Binding"), name, scope, self.binding(kind, name))]
    }

    fn binding(&self, role_kind: &str, role: &str) -> Value {
        json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role },
            "subjects": [{
                "kind": "ServiceAccount",
                "namespace": self.namespace(),
                "name": self.registration.id.as_str(),
            }],
        })
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, scope: Scope<'_>, mut body: Value) -> Value {
        body["apiVersion"] = api_version.into();
        body["kind"] = kind.into();
        body["metadata"] = json!({ "name": name, "labels": self.labels() });
        let namespace = match scope {
            Scope::Cluster => return body,
            Scope::Own => self.namespace(),
            Scope::Namespace(namespace) => namespace,
        };
        body["metadata"]["namespace"] = namespace.into();
        body
    }

    fn labels(&self) -> Value {
        let mut labels = json!(self.options.labels);
        labels[REGISTRATION_LABEL] = self.registration.id.as_str().into();
        labels
    }
}

#[derive(Clone, Copy)]
enum Scope<'a> {
    Cluster,
    Own,
    Namespace(&'a str),
}

/// What the syncer may in its own namespace: put a renewed token into its Secret, keep its records, and be heard.
fn own_namespace(id: &str) -> Vec<Rule> {
    let keeps = ["get", "list", "watch", "create", "update", "patch"];
    vec![
        Rule::new(&[""], &["secrets"], &["get", "patch"]).named(id),
        Rule::new(&[""], &["configmaps"], &keeps),
        Rule::new(&["", "events.k8s.io"], &["events"], &["create", "patch"]),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::mailbox::Mailbox;
    use crate::token::made_up;

    const EXPECTED: &str = include_str!("../fixtures/manifest.yaml");

    fn registration() -> Registration {
        let mailbox = Mailbox {
            path: "root:espw:niqdko2g2pwoadfb-mb-123e4567-e89b-12d3-a456-426614174000".to_owned(),
            cluster: "2sxa8riw5xha32po".to_owned(),
            sync_target_uid: "123e4567-e89b-12d3-a456-426614174000".to_owned(),
        };
        Registration::new(mailbox, "guilder", "default").unwrap()
    }

    fn options(access: EdgeAccess) -> EdgeOptions {
        EdgeOptions {
            image: "example.org/mailboat-syncer:v1".to_owned(),
            namespace: None,
            replicas: 1,
            qps: 20.0,
            burst: 30,
            port: 8080,
            labels: BTreeMap::from([("env".to_owned(), "prod".to_owned())]),
            access,
        }
    }

    fn center() -> CenterAddress {
        CenterAddress {
            url: "https://kcp.example.org:6443/".to_owned(),
            certificate_authority_pem: Some("PEM".to_owned()),
            tls_server_name: None,
            insecure: false,
        }
    }

    fn manifest(options: EdgeOptions) -> Manifest {
        let token = Token::read(&made_up(0, 2_592_000)).unwrap();
        Manifest { registration: registration(), token, center: center(), options }
    }

    #[test]
    fn the_manifest_is_as_it_was_reviewed() {
        let text = manifest(options(EdgeAccess::All)).text();
        assert_eq!(text, EXPECTED, "if this is meant, fixtures/manifest.yaml should be:\n{text}");
    }

    #[test]
    fn every_document_is_marked_and_has_the_asked_for_labels() {
        let access = EdgeAccess::Namespaces(BTreeSet::from(["till".to_owned(), "bar".to_owned()]));
        for document in manifest(options(access)).documents() {
            let labels = &document["metadata"]["labels"];
            assert_eq!(labels[REGISTRATION_LABEL], "kubestellar-syncer-guilder-co8kev4q", "{document}");
            assert_eq!(labels["env"], "prod", "{document}");
        }
    }

    #[test]
    fn an_access_to_namespaces_is_bound_in_them_and_makes_none() {
        let access = EdgeAccess::Namespaces(BTreeSet::from(["till".to_owned(), "bar".to_owned()]));
        let documents = manifest(options(access)).documents();
        let of_kind =
            |kind: &str| documents.iter().filter(|document| document["kind"] == kind).collect::<Vec<_>>();
        let bound: Vec<&str> = of_kind("RoleBinding")
            .iter()
            .filter_map(|binding| binding["metadata"]["namespace"].as_str())
            .collect();
        assert_eq!(bound, ["kubestellar-syncer-guilder-co8kev4q", "bar", "till"]);
        // Deleting the manifest must not delete a namespace that was there before it.
        assert_eq!(of_kind("Namespace").len(), 1, "{documents:#?}");
    }

    #[test]
    fn only_a_namespace_of_its_own_is_held_to_the_strictest_profile() {
        let profile = "pod-security.kubernetes.io/enforce";
        let mut shared = options(EdgeAccess::All);
        shared.namespace = Some("shared".to_owned());
        let documents = manifest(shared).documents();
        assert_eq!(documents[0]["metadata"]["name"], "shared");
        assert!(documents[0]["metadata"]["labels"][profile].is_null());
        let own = manifest(options(EdgeAccess::All)).documents();
        assert_eq!(own[0]["metadata"]["labels"][profile], "restricted");
    }

    #[test]
    fn the_center_is_reached_as_it_was_given() {
        let mut odd = manifest(options(EdgeAccess::All));
        odd.center.certificate_authority_pem = None;
        odd.center.tls_server_name = Some("kcp".to_owned());
        odd.center.insecure = true;
        assert_eq!(
            odd.kubeconfig()["clusters"][0]["cluster"],
            json!({ "server": "https://kcp.example.org:6443/clusters/2sxa8riw5xha32po", "tls-server-name": "kcp",
                    "insecure-skip-tls-verify": true })
        );
    }

    #[test]
    fn what_a_server_would_refuse_is_refused_here() {
        let mut bad = options(EdgeAccess::All);
        bad.namespace = Some("Shared".to_owned());
        assert!(bad.check().is_err());
        bad.namespace = None;
        assert_eq!(bad.check(), Ok(()));
        bad.labels.insert("-x".to_owned(), String::new());
        assert!(bad.check().is_err());
    }
}
