//! How a server is, check by check, in the words of real ones.
//!
//! All that is served is there before anybody can ask, so that of the checks only those of the storage can fail. Those of one
//! cluster have the names that kube-apiserver has for them: who waits for `poststarthook/rbac/bootstrap-roles` waits for the roles
//! that every cluster has, and they are there. Of a part that a hub does not have nothing is left to begin.

use std::collections::BTreeSet;

use http::StatusCode;

use crate::Hub;
use crate::answer::{self, Answer};
use crate::hub::Serving;
use crate::query::Query;
use crate::storage::Refused;

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

/// What is answered at one of these paths.
pub(crate) fn answer(hub: &Hub, path: &str, check: Option<&str>, query: &Query) -> Answer {
    let told = match check {
        Some(check) => told_of(check, hub.stopped()),
        None => told(path, hub.serving(), query, hub.stopped()),
    };
    let is_whole = check.is_none() || told.is_err();
    let answer = match told {
        Ok(said) => answer::text(StatusCode::OK, said),
        Err(said) => answer::text(StatusCode::INTERNAL_SERVER_ERROR, said),
    };
    if is_whole { answer::as_it_is(answer) } else { answer }
}

/// What is said at one of these paths. Whoever watches over the server starts it again where it cannot store what it is given:
/// that is said of its being alive as well, as real servers say it of etcd.
fn told(path: &str, serving: &Serving, query: &Query, stopped: Option<&Refused>) -> Result<String, String> {
    let mut unknown: BTreeSet<&str> = query.all("exclude").collect();
    let (mut said, mut failed) = (String::new(), false);
    let is_told = |check: &&str| matches!(serving, Serving::Cluster(_)) || EVERYWHERE.contains(check);
    for check in checks(path).filter(is_told) {
        let (sign, how) = match unknown.remove(check) {
            true => ('+', " excluded: ok"),
            false if fails(check, stopped).is_none() => ('+', " ok"),
            // Why is for those who read the log: everybody may ask.
            false => ('-', " failed: reason withheld"),
        };
        failed |= sign == '-';
        said.extend(["[", sign.encode_utf8(&mut [0; 4]), "]", check, how, "\n"]);
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.into_iter().map(|name| format!("{name:?}")).collect();
        said.push_str("warn: some health checks cannot be excluded: no matches for ");
        said.push_str(&names.join(", "));
        said.push('\n');
    }
    said.push_str(path);
    if failed {
        return Err(format!("{said} check failed\n"));
    }
    said.push_str(" check passed\n");
    Ok(if query.has("verbose") { said } else { "ok".to_owned() })
}

/// What is said of one check.
fn told_of(check: &str, stopped: Option<&Refused>) -> Result<String, String> {
    match fails(check, stopped) {
        None => Ok("ok".to_owned()),
        Some(_) => Err("internal server error: nothing is stored any more: restart the hub\n".to_owned()),
    }
}

/// Why a check is not passed.
fn fails<'r>(check: &str, stopped: Option<&'r Refused>) -> Option<&'r Refused> {
    stopped.filter(|_| matches!(check, "etcd" | "etcd-readiness"))
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
        let said = told("livez", &Serving::Workspaces(workspaces), &query, None).unwrap();
        let expected = "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n\
            warn: some health checks cannot be excluded: no matches for \"nothing\"\nlivez check passed\n";
        assert_eq!(said, expected);
        let cluster = Serving::Cluster(mailboat_object::ClusterId::new("cluster"));
        assert_eq!(told("livez", &cluster, &Query::default(), None).unwrap(), "ok");
    }
}
