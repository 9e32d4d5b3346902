//! How a server is, check by check, in the words of real ones.
//!
//! All that is served is there before anybody can ask, so that every check that is asked for is passed. Those of one cluster have
//! the names that kube-apiserver has for them: who waits for `poststarthook/rbac/bootstrap-roles` waits for the roles that every
//! cluster has, and they are there. Of a part that a hub does not have nothing is left to begin.

use std::collections::BTreeSet;

use crate::hub::Serving;
use crate::query::Query;

/// Whether only those who ask whether it is ready are told, or only the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    All,
    Ready,
    Alive,
}

/// The checks that every hub has.
const EVERYWHERE: [&str; 3] = ["ping", "log", "etcd"];
/// Those of kube-apiserver, in its order.
const CHECKS: [(&str, Told); 37] = [
    ("ping", Told::All),
    ("log", Told::All),
    ("loopback-serving-certificate", Told::Alive),
    ("etcd", Told::All),
    ("etcd-readiness", Told::Ready),
    ("informer-sync", Told::Ready),
    ("poststarthook/start-apiserver-admission-initializer", Told::All),
    ("poststarthook/generic-apiserver-start-informers", Told::All),
    ("poststarthook/priority-and-fairness-config-consumer", Told::All),
    ("poststarthook/priority-and-fairness-filter", Told::All),
    ("poststarthook/storage-object-count-tracker-hook", Told::All),
    ("poststarthook/start-apiextensions-informers", Told::All),
    ("poststarthook/start-apiextensions-controllers", Told::All),
    ("poststarthook/crd-informer-synced", Told::All),
    ("poststarthook/start-system-namespaces-controller", Told::All),
    ("poststarthook/peer-endpoint-reconciler-controller", Told::All),
    ("poststarthook/start-cluster-authentication-info-controller", Told::All),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", Told::All),
    ("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", Told::All),
    ("poststarthook/storage-readiness", Told::All),
    ("poststarthook/start-legacy-token-tracking-controller", Told::All),
    ("poststarthook/start-service-ip-repair-controllers", Told::All),
    ("poststarthook/rbac/bootstrap-roles", Told::All),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", Told::All),
    ("poststarthook/priority-and-fairness-config-producer", Told::All),
    ("poststarthook/bootstrap-controller", Told::All),
    ("poststarthook/start-kubernetes-service-cidr-controller", Told::All),
    ("poststarthook/start-kube-aggregator-informers", Told::All),
    ("poststarthook/apiservice-status-local-available-controller", Told::All),
    ("poststarthook/apiservice-status-remote-available-controller", Told::All),
    ("poststarthook/apiservice-registration-controller", Told::All),
    ("poststarthook/apiservice-discovery-controller", Told::All),
    ("poststarthook/kube-apiserver-autoregistration", Told::All),
    ("autoregister-completion", Told::All),
    ("poststarthook/apiservice-openapi-controller", Told::All),
    ("poststarthook/apiservice-openapiv3-controller", Told::All),
    ("shutdown", Told::Ready),
];

/// The name of a path that asks how a server is.
pub(crate) fn asked(part: &str) -> Option<&'static str> {
    ["healthz", "livez", "readyz"].into_iter().find(|name| *name == part)
}

/// Whether there is such a check among those of a path.
pub(crate) fn has(path: &str, check: &str) -> bool {
    checks(path).any(|one| one == check)
}

fn checks(path: &str) -> impl Iterator<Item = &'static str> {
    let other = if path == "readyz" { Told::Alive } else { Told::Ready };
    CHECKS.into_iter().filter(move |(_, told)| *told != other).map(|(check, _)| check)
}

/// What is said at one of these paths.
pub(crate) fn told(path: &str, serving: &Serving, query: &Query) -> String {
    if !query.has("verbose") {
        return "ok".to_owned();
    }
    let mut unknown: BTreeSet<&str> = query.all("exclude").collect();
    let mut said = String::new();
    let is_told = |check: &&str| matches!(serving, Serving::Cluster(_)) || EVERYWHERE.contains(check);
    for check in checks(path).filter(is_told) {
        said.push_str("[+]");
        said.push_str(check);
        said.push_str(if unknown.remove(check) { " excluded: ok\n" } else { " ok\n" });
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.into_iter().map(|name| format!("{name:?}")).collect();
        said.push_str("warn: some health checks cannot be excluded: no matches for ");
        said.push_str(&names.join(", "));
        said.push('\n');
    }
    said.push_str(path);
    said.push_str(" check passed\n");
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_its_own_checks_and_tells_which_cannot_be_left_out() {
        assert!(has("readyz", "poststarthook/rbac/bootstrap-roles") && has("livez", "etcd"));
        assert!(has("readyz", "shutdown") && !has("livez", "shutdown") && !has("healthz", "informer-sync"));
        assert!(!has("readyz", "loopback-serving-certificate") && !has("readyz", "nothing"));
        let query = Query::read(Some("verbose&exclude=etcd&exclude=nothing")).unwrap();
        let workspaces = crate::workspaces::Workspaces::new(String::new()).unwrap();
        let said = told("livez", &Serving::Workspaces(workspaces), &query);
        let expected = "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n\
            warn: some health checks cannot be excluded: no matches for \"nothing\"\nlivez check passed\n";
        assert_eq!(said, expected);
        assert_eq!(
            told("livez", &Serving::Cluster(mailboat_object::ClusterId::new("cluster")), &Query::default()),
            "ok"
        );
    }
}
