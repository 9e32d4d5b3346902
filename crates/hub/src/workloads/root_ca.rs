//! Whom pods trust: every namespace has the certificate by which its pods know the API server.

use mailboat_machinery::ROOT_CA;
use mailboat_object::{Key, KindId, Name};
use serde_json::json;

use super::hand::Hand;

/// The namespace that a certificate stands in.
pub(super) fn namespace_of(certificate: &Key) -> Key {
    Key {
        kind: KindId::new("", "namespaces"),
        namespace: Name::EMPTY,
        name: certificate.namespace.clone(),
        cluster: certificate.cluster.clone(),
    }
}

/// Puts the certificate into a namespace, or puts it right.
pub(super) fn look(hand: &mut Hand<'_>, namespace: &Key, pem: &str) {
    let Some(found) = hand.get(namespace).filter(|found| !found.is_deleting() && !pem.is_empty()) else {
        return;
    };
    let certificate = Key {
        kind: KindId::new("", "configmaps"),
        namespace: found.key.name.clone(),
        name: Name::new(ROOT_CA),
        cluster: found.key.cluster.clone(),
    };
    let data = json!({ "ca.crt": pem });
    match hand.get(&certificate) {
        Some(present) if present.body()["data"] == data => {}
        Some(_) => hand.merge(&certificate, &json!({ "data": data })),
        None => {
            let metadata = json!({ "name": ROOT_CA, "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when \
                    using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage \
                    is guaranteed across distributions of Kubernetes clusters." } });
            let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data });
            hand.create("", "configmaps", &found.key.name, body);
        }
    }
}
