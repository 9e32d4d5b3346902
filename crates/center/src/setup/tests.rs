use mailboat_api::names::export;

use super::*;

fn all() -> Vec<Piece> {
    let mut drawn = 0;
    pieces("root:espw", &Offer::all().expect("generated"), || {
        drawn += 1;
        format!("key {drawn}")
    })
}

fn one<'p>(pieces: &'p [Piece], resource: &str, name: &str) -> &'p Piece {
    let fits = |piece: &&Piece| piece.kind.resource() == resource && piece.name.as_str() == name;
    pieces.iter().find(fits).unwrap_or_else(|| panic!("no {resource} {name}"))
}

#[test]
fn what_is_there_as_wanted_is_left_alone() {
    for piece in all() {
        assert_eq!(piece.missing_from(None), Some(Missing::All), "{}", piece.name);
        let mut found = piece.object.clone();
        found["metadata"]["resourceVersion"] = "7".into();
        found["status"]["phase"] = "whatever".into();
        assert_eq!(piece.missing_from(Some(&found)), None, "{}", piece.name);
    }
}

#[test]
fn an_export_keeps_the_identity_that_it_has_whatever_else_changes() {
    let pieces = all();
    let wanted = one(&pieces, "apiexports", export::EDGE);
    let mut found = wanted.object.clone();
    found["spec"]["identity"]["secretRef"]["name"] = "older".into();
    assert_eq!(wanted.missing_from(Some(&found)), None);
    found["spec"]["resources"].as_array_mut().expect("resources").pop();
    let Some(Missing::Written(written)) = wanted.missing_from(Some(&found)) else {
        panic!("nothing is written")
    };
    assert_eq!(written["spec"]["identity"]["secretRef"]["name"], "older");
    assert_eq!(written["spec"]["resources"], wanted.object["spec"]["resources"]);
}

#[test]
fn a_secret_key_is_drawn_for_each_export_and_never_written_again() {
    let pieces = all();
    let secrets: Vec<&Piece> = pieces.iter().filter(|piece| piece.kind.resource() == "secrets").collect();
    let keys: BTreeSet<&str> =
        secrets.iter().map(|secret| secret.object["stringData"]["key"].as_str().expect("a key")).collect();
    assert_eq!(keys.len(), 6, "each of the six exports has a key of its own");
    for secret in secrets {
        let found = serde_json::json!({ "data": { "key": "b2xkZXI=" } });
        assert_eq!(secret.missing_from(Some(&found)), None);
    }
}

#[test]
fn anybody_may_bind_our_apis_and_only_the_center_the_claims_over_mailboxes() {
    let pieces = all();
    let users = &one(&pieces, "clusterroles", "mailboat:users").object["rules"][0]["resourceNames"];
    let users: Vec<&str> = users.as_array().expect("names").iter().filter_map(Value::as_str).collect();
    for (name, _) in Offer::all().expect("generated").exports {
        assert_eq!(users.contains(&name), name != export::MAILBOX, "{name}");
    }
}

#[test]
fn a_new_workspace_of_our_types_grants_no_claims_and_waits_for_the_center() {
    let (pieces, offer) = (all(), Offer::all().expect("generated"));
    for name in [INVENTORY_TYPE, WORKLOAD_TYPE] {
        let spec = &one(&pieces, "workspacetypes", name).object["spec"];
        assert_eq!(spec["initializer"], true, "{name}");
        for binding in spec["defaultAPIBindings"].as_array().expect("bindings") {
            // kcp lets default bindings accept all that their exports claim.
            let export = &offer.exports[binding["export"].as_str().expect("an export")];
            let claims = export["spec"]["permissionClaims"].as_array().map_or(0, Vec::len);
            assert_eq!(claims, 0, "{name} would let the center see more in users' workspaces");
        }
    }
}

#[test]
fn every_schema_that_an_export_names_is_made_before_the_export() {
    let pieces = all();
    let at = |resource: &str, name: &str| {
        pieces.iter().position(|piece| piece.kind.resource() == resource && piece.name.as_str() == name)
    };
    for (index, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.kind.resource() == "apiexports")
    {
        for resource in piece.object["spec"]["resources"].as_array().into_iter().flatten() {
            let schema = resource["schema"].as_str().expect("a schema");
            assert!(at("apiresourceschemas", schema).is_some_and(|schema| schema < index), "{schema}");
        }
        assert!(at("secrets", &piece.name).is_some_and(|secret| secret < index), "{}", piece.name);
    }
}

#[test]
fn an_offer_can_be_narrowed_to_some_kinds() {
    let offer =
        Offer::all().expect("generated").narrowed(&[export::COMPUTE], &BTreeSet::from(["deployments"]));
    assert_eq!(offer.schemas[export::COMPUTE].len(), 1);
    assert_eq!(offer.exports[export::COMPUTE]["spec"]["resources"].as_array().map(Vec::len), Some(1));
    assert!(offer.schemas[export::EDGE].len() > 5, "another export was narrowed");
}
