//! What defines a kind goes along with it.

use super::*;

#[test]
fn a_definition_travels_as_data_with_a_binding_beside_it() {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "crontabs.stable.example.com" },
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced",
            "names": { "plural": "crontabs", "kind": "CronTab" },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
    });
    let spec = json!({ "downsync": [{ "apiGroup": "stable.example.com" }] });
    let crd = object(WORKSPACE, CRDS, &crd);
    let wants = projected(&translator(&spec), &crd, 1, &knowledge()).expect("a copy");
    let [copy, binding, schema, export] = wants.as_slice() else { panic!("{} wants", wants.len()) };
    assert_eq!(copy.slot, key("mailbox-1", &format!("{CRDS}.denatured"), "", "crontabs.stable.example.com"));
    assert_eq!(
        binding.slot,
        key("mailbox-1", "apibindings.apis.kcp.io", "", "crd-crontabs.stable.example.com")
    );
    assert_eq!(
        body(binding)["spec"]["reference"]["export"],
        json!({ "path": "root:espw", "name": "crontabs.stable.example.com" })
    );
    assert_eq!(export.slot, key("espw", "apiexports.apis.kcp.io", "", "crontabs.stable.example.com"));
    assert_eq!(body(export)["spec"]["resources"][0]["schema"], schema.slot.name.as_str());
    assert_eq!(schema.slot.cluster, ClusterId::new("espw"));
    for stays in [binding, schema, export] {
        assert_eq!(
            stays.policy.withdrawal,
            Withdrawal::Leave,
            "with {} go all objects of a kind",
            stays.slot
        );
    }
    for offered in [schema, export] {
        assert_eq!(offered.policy.adopt, Adopt::Never, "{} may be somebody else's", offered.slot);
    }
    assert!(translator(&spec).varies(&crd), "what is wanted in one cluster alone is not the same for all");
}

fn api_binding(name: &str, path: &str, export: &str) -> Arc<Object> {
    let json = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": name },
        "spec": {
            "reference": { "export": { "path": path, "name": export } },
            "permissionClaims": [{ "resource": "secrets", "state": "Accepted" }],
        },
        "status": { "boundResources": [{ "group": "wgpolicyk8s.io", "resource": "policyreports" }] },
    });
    object(WORKSPACE, "apibindings.apis.kcp.io", &json)
}

#[test]
fn a_binding_goes_along_to_the_same_export_without_the_rights_it_gave_away() {
    let upsync = json!({ "upsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"], "namespaces": ["*"], "names": ["*"] }] });
    let (route, knowledge) = (translator(&upsync), knowledge());
    for (name, path, expected_path) in
        [("policy-report", "root:policies", "root:policies"), ("policy-report", "", WORKSPACE)]
    {
        let source = api_binding(name, path, "policy-report");
        let selected = route.select(&source, &View::new(&knowledge.store)).expect("decided");
        assert_eq!(selected.by.as_str(), "spec.upsync (which names policyreports.wgpolicyk8s.io)");
        let wants = projected(&route, &source, 1, &knowledge).expect("a copy");
        let found = body(&wants[0]);
        assert_eq!(
            found["spec"],
            json!({ "reference": { "export": { "path": expected_path, "name": "policy-report" } } })
        );
        assert_eq!((wants.len(), wants[0].slot.name.as_str()), (1, "policy-report"));
    }
    // A name that the mailbox's own bindings have does not collide with them.
    let wants = projected(&route, &api_binding("bind-edge", "root:policies", "policy-report"), 1, &knowledge);
    assert_ne!(wants.expect("a copy")[0].slot.name.as_str(), "bind-edge");
    // Mailboxes are bound to the provider's exports in any case.
    let ours = api_binding("bind-kube", "root:espw", "kubernetes");
    assert!(route.select(&ours, &View::new(&knowledge.store)).expect("decided").to.is_empty());
}

/// What a workspace has from somebody else's export is seen in mailboxes by a claim on it, of that identity and no other.
#[test]
fn a_binding_to_what_is_sent_brings_along_what_lets_the_center_see_it() {
    let sends = json!({ "downsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"] }] });
    let (route, mut knowledge) = (translator(&sends), knowledge());
    let reports = "policyreports.wgpolicyk8s.io";
    let report = json!({ "metadata": { "namespace": "till", "name": "r" } });
    knowledge.list(WORKSPACE, reports, std::slice::from_ref(&report));
    let bound = |identity: Value| {
        let binding = api_binding("policy-report", "root:policies", "policy-report");
        let mut json: Value = serde_json::from_slice(binding.json()).expect("JSON");
        json["status"]["boundResources"][0]["schema"] = identity;
        object(WORKSPACE, "apibindings.apis.kcp.io", &json)
    };
    let source = bound(json!({ "identityHash": "0123456789abcdef" }));
    assert!(route.varies(&source), "what is wanted in one cluster alone is not the same for all");
    let wants = projected(&route, &source, 1, &knowledge).expect("wants");
    let [copy, export, claim] = wants.as_slice() else { panic!("{} wants", wants.len()) };
    assert_eq!(copy.slot.name.as_str(), "policy-report");
    let claimed = &body(export)["spec"]["permissionClaims"][0];
    assert_eq!(
        *claimed,
        json!({ "group": "wgpolicyk8s.io", "resource": "policyreports", "identityHash": "0123456789abcdef", "verbs": ["get", "list", "watch"] })
    );
    assert_eq!(export.slot.cluster, ClusterId::new("espw"));
    assert_eq!(claim.slot, key("mailbox-1", "apibindings.apis.kcp.io", "", &format!("claim-{reports}")));
    let accepted = &body(claim)["spec"];
    assert_eq!(accepted["reference"]["export"], json!({ "path": "root:espw", "name": *export.slot.name }));
    let mut without_answer = accepted["permissionClaims"][0].clone();
    let answer =
        without_answer.as_object_mut().map(|claim| (claim.remove("state"), claim.remove("selector")));
    assert_eq!(answer, Some((Some(json!("Accepted")), Some(json!({ "matchAll": true })))));
    assert_eq!(without_answer, *claimed, "kcp compares the two as a whole");
    for stays in &wants {
        assert_eq!(stays.policy.withdrawal, Withdrawal::Leave, "without {} copies are not seen", stays.slot);
    }
    // Under another identity are other objects: another export, and the mailbox's one binding is contended for.
    let other = projected(&route, &bound(json!({ "identityHash": "fedcba9876543210" })), 1, &knowledge);
    let other = other.expect("wants");
    assert!(other[1].slot != export.slot && other[2].slot == claim.slot);
    // One that does not say it yet is waited for, and nothing of it is withdrawn.
    let held = projected(&route, &bound(json!({})), 1, &knowledge).err().expect("a hold");
    assert_eq!(held, "it does not say by which identity policyreports.wgpolicyk8s.io is known");
    // Where nothing of it is sent, nothing is claimed.
    knowledge.event(WORKSPACE, reports, "DELETED", &report);
    assert_eq!(projected(&route, &source, 1, &knowledge).expect("wants").len(), 1);
}

#[test]
fn a_second_export_of_a_kind_is_told_and_the_first_stays() {
    const BINDINGS: &str = "apibindings.apis.kcp.io";
    let upsync = json!({ "upsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["*"], "namespaces": ["*"], "names": ["*"] }] });
    let (route, mut knowledge) = (translator(&upsync), knowledge());
    let source = |name: &str, identity: &str| {
        let binding = api_binding(name, "root:policies", "policy-report");
        let mut json: Value = serde_json::from_slice(binding.json()).expect("JSON");
        json["status"]["boundResources"][0]["schema"] = json!({ "identityHash": identity });
        object(WORKSPACE, BINDINGS, &json)
    };
    let (first, second) = (source("first", "0123456789abcdef"), source("second", "fedcba9876543210"));
    let of = |source: &Object, knowledge: &Knowledge| projected(&route, source, 1, knowledge);
    let copy = |source: &Object, knowledge: &Knowledge, created: &str| {
        let mut copy = body(&of(source, knowledge).expect("wants")[0]);
        copy["metadata"]["creationTimestamp"] = json!(created);
        copy
    };
    knowledge.list("mailbox-1", BINDINGS, &[]);
    let (early, late) = ("2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z");
    let (one, other) = (copy(&first, &knowledge, early), copy(&second, &knowledge, late));
    knowledge.event("mailbox-1", BINDINGS, "ADDED", &one);
    assert!(of(&first, &knowledge).is_ok());
    let told = of(&second, &knowledge).err().expect("a hold");
    assert!(told.starts_with("policyreports.wgpolicyk8s.io come to the mailbox from another"), "{told}");
    assert!(told.contains("APIBinding first"), "{told}");
    // Made in one moment, both are there: the first one stays so.
    knowledge.event("mailbox-1", BINDINGS, "ADDED", &other);
    assert!(of(&first, &knowledge).is_ok() && of(&second, &knowledge).is_err());
    // The same export under another name brings the same.
    assert!(of(&source("third", "0123456789abcdef"), &knowledge).is_ok());
    knowledge.event("mailbox-1", BINDINGS, "DELETED", &one);
    assert!(of(&second, &knowledge).is_ok());
}
