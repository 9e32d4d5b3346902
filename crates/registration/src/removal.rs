//! The way back: what of an edge's cluster goes with its registration, in which order, and what never does.

use mailboat_engine::mark::{Marked, Marks as _, OWNER_LABEL, OwnerId, StandardMarks};
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Object;

use crate::account::Registration;
use crate::names::REGISTRATION_LABEL;

const RBAC: &str = "rbac.authorization.k8s.io";

/// The kind that is removed first, and waited for: what is delivered must not be delivered again while it goes.
pub fn syncer_kind() -> KindId {
    KindId::new("apps", "deployments")
}

/// All other kinds of the manifest, in the order in which their objects go: the rights last, so that a run that was
/// broken off can be taken up again by whoever is left with them.
pub fn manifest_kinds() -> Vec<KindId> {
    [
        ("", "secrets"),
        ("", "serviceaccounts"),
        (RBAC, "rolebindings"),
        (RBAC, "roles"),
        (RBAC, "clusterrolebindings"),
        (RBAC, "clusterroles"),
        ("", "namespaces"),
    ]
    .map(|(group, resource)| KindId::new(group, resource))
    .into()
}

impl Registration {
    /// The label selector of everything that the manifest made.
    pub fn selector(&self) -> String {
        format!("{REGISTRATION_LABEL}={}", self.id)
    }

    /// The label selector of everything that the syncer delivered.
    pub fn delivered_selector(&self) -> String {
        format!("{OWNER_LABEL}={}", self.owner().0)
    }

    /// Whether an object of the manifest goes. A namespace that was chosen by hand may have been there before and may
    /// hold more: it stays.
    pub fn goes(&self, kind: &KindId, name: &str) -> bool {
        *kind != KindId::new("", "namespaces") || name == self.id.as_str()
    }

    /// The edge's cluster as its syncer names it, and so do the marks on what it delivered.
    pub fn edge(&self) -> ClusterId {
        ClusterId::new(&mailboat_api::names::edge_cluster(&self.mailbox.sync_target_uid))
    }

    /// Whether an object at the edge is one that this syncer delivered and that goes with it. The label alone is not
    /// enough: controllers copy labels along to what they make. What was delivered to stay, stays, and so does a namespace,
    /// with what others put into it.
    pub fn delivered(&self, object: &Object) -> bool {
        match StandardMarks::new(self.owner()).read(object) {
            Marked::Ours(mark) => !mark.stays(&object.key),
            Marked::Others(_) | Marked::Nobodys => false,
        }
    }

    /// The commands that remove the manifest's objects, for whoever has the edge's kubeconfig.
    pub fn commands(&self) -> Vec<String> {
        let names = |kinds: &[KindId]| kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let kinds = manifest_kinds();
        let namespace = KindId::new("", "namespaces");
        let kinds: Vec<KindId> = kinds.into_iter().filter(|kind| *kind != namespace).collect();
        let selector = self.selector();
        vec![
            format!("kubectl delete --all-namespaces -l {selector} {}", syncer_kind()),
            format!("kubectl delete --all-namespaces -l {selector} {}", names(&kinds)),
            format!("kubectl delete --ignore-not-found namespace {}", self.id),
        ]
    }

    /// Whose mark the syncer's copies bear.
    fn owner(&self) -> OwnerId {
        OwnerId(Name::new(&format!("syncer.{}", self.mailbox.sync_target_uid)))
    }
}

/// Where delivered objects of a kind stand in the order of their removal: first what lives in others, then what others
/// live by.
pub fn rank(kind: &KindId) -> u8 {
    let defines = kind.group() == "apiextensions.k8s.io" && kind.resource() == "customresourcedefinitions";
    u8::from(defines)
}

#[cfg(test)]
mod tests {
    use mailboat_object::object::{ClusterOf, Keep, Limits, Place};
    use serde_json::{Value, json};

    use super::*;
    use crate::mailbox::Mailbox;

    const UID: &str = "123e4567-e89b-12d3-a456-426614174000";

    fn registration() -> Registration {
        let mailbox = Mailbox {
            path: format!("root:espw:a-mb-{UID}"),
            cluster: "2sxa8riw5xha32po".to_owned(),
            sync_target_uid: UID.to_owned(),
        };
        Registration::new(mailbox, "guilder", "default").unwrap()
    }

    /// A copy with the mark of an earlier release, which names no cluster.
    fn copy(owner: &str, on: &str, leave: bool) -> Object {
        let mark = json!({ "on": on, "cluster": "c", "kind": "configmaps", "namespace": "till", "name": "menu",
            "uid": "u", "version": 1, "intent": mailboat_object::digest::Digest::NONE.to_string(), "leave": leave });
        marked(owner, &mark.to_string())
    }

    fn marked(owner: &str, mark: &str) -> Object {
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "menu", "namespace": "till",
            "uid": "u", "resourceVersion": "7", "labels": { "mailboat.dev/owner": owner },
            "annotations": { "mailboat.dev/mark": mark } } });
        decoded("configmaps", &body)
    }

    fn decoded(resource: &str, body: &Value) -> Object {
        let (cluster, kind) = (registration().edge(), KindId::new("", resource));
        let place = Place {
            cluster: ClusterOf::One(&cluster),
            kind: &kind,
            api_version: "v1",
            kind_name: "Thing",
            manager: "",
            keep: Keep::Head,
            limits: Limits::default(),
        };
        Object::decode(body.to_string().as_bytes(), &place).unwrap()
    }

    #[test]
    fn only_what_this_syncer_delivered_to_go_goes() {
        let registration = registration();
        let (ours, here) = (format!("syncer.{UID}"), "configmaps/till/menu");
        assert!(registration.delivered(&copy(&ours, here, false)));
        for (owner, on, leave, why) in [
            (ours.as_str(), here, true, "it was delivered to stay"),
            (&ours, "configmaps/till/other", false, "its mark was copied from another"),
            ("syncer.another", here, false, "another syncer delivered it"),
        ] {
            assert!(!registration.delivered(&copy(owner, on, leave)), "{why}");
        }
    }

    #[test]
    fn a_namespace_that_was_delivered_stays_with_what_others_put_into_it() {
        let registration = registration();
        let mark = format!("namespaces//till,c,u,1,{}", mailboat_object::digest::Digest::NONE);
        let namespace = decoded(
            "namespaces",
            &json!({ "metadata": { "name": "till", "uid": "u", "resourceVersion": "7",
            "labels": { "mailboat.dev/owner": format!("syncer.{UID}") }, "annotations": { "mailboat.dev/mark": mark } } }),
        );
        let read = StandardMarks::new(registration.owner()).read(&namespace);
        assert!(matches!(&read, Marked::Ours(mark) if !mark.leave), "{read:?}");
        assert!(!registration.delivered(&namespace));
    }

    #[test]
    fn what_was_copied_from_another_edge_stays() {
        let registration = registration();
        let ours = format!("syncer.{UID}");
        let none = mailboat_object::digest::Digest::NONE;
        let put_in = |edge: &str| marked(&ours, &format!("configmaps/till/menu,c,u,1,{none},in={edge}"));
        assert!(registration.delivered(&put_in(&format!("edge-{UID}"))));
        assert!(!registration.delivered(&put_in("edge-another")));
    }

    #[test]
    fn a_namespace_chosen_by_hand_stays() {
        let registration = registration();
        let namespaces = KindId::new("", "namespaces");
        assert!(registration.goes(&namespaces, "kubestellar-syncer-guilder-co8kev4q"));
        assert!(!registration.goes(&namespaces, "shared"));
        assert!(registration.goes(&KindId::new("", "secrets"), "shared"));
    }

    #[test]
    fn the_printed_commands_stop_the_syncer_first_and_name_no_namespace_but_its_own() {
        let commands = registration().commands();
        assert!(commands[0].ends_with("deployments.apps"), "{commands:#?}");
        assert!(commands[1].ends_with(",clusterroles.rbac.authorization.k8s.io"), "{commands:#?}");
        assert!(commands[2].ends_with("namespace kubestellar-syncer-guilder-co8kev4q"), "{commands:#?}");
    }

    #[test]
    fn what_others_live_in_goes_last() {
        let rank = |group, resource| super::rank(&KindId::new(group, resource));
        assert!(rank("", "configmaps") < rank("apiextensions.k8s.io", "customresourcedefinitions"));
    }
}
