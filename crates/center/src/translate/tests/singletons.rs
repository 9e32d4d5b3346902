//! What comes back to the source itself: the status of its only copy, and how many there are.

use super::*;

fn singletons(placements: &[(&Value, &[u32], bool)]) -> Singletons {
    singletons_where(placements, &[])
}

/// The same, where these kinds have no status subresource.
fn singletons_where(placements: &[(&Value, &[u32], bool)], inline: &[&str]) -> Singletons {
    let mut all = Singletons::without_subresource(inline.iter().copied().map(kind).collect());
    for (spec, to, wanted) in placements {
        all.add(what(spec), to.iter().copied().map(DestinationId).collect(), *wanted);
    }
    all
}

#[test]
fn the_count_is_that_of_edges_over_all_placements_that_select_the_object() {
    let (apps, maps) = (
        json!({ "downsync": [{ "apiGroup": "apps" }] }),
        json!({ "downsync": [{ "resources": ["configmaps"] }] }),
    );
    let knowledge = knowledge();
    let view = View::new(&knowledge.store);
    let source = object(WORKSPACE, "replicasets.apps", &commond());
    for (placements, expected) in [
        (&[(&apps, &[1, 2][..], true)][..], Some(2)),
        (&[(&apps, &[1], true)], Some(1)),
        (&[(&apps, &[1], true), (&apps, &[1], false)], Some(1)),
        (&[(&apps, &[1], true), (&apps, &[2], false)], Some(2)),
        (&[(&apps, &[1], false), (&apps, &[2], false)], None),
        (&[(&apps, &[1], false), (&maps, &[2], true)], None),
        (&[(&apps, &[], true)], Some(0)),
        (&[], None),
    ] {
        assert_eq!(singletons(placements).executing_count(&source, &view), Ok(expected), "{placements:?}");
    }
    let namespace = object(WORKSPACE, "namespaces", &json!({ "metadata": { "name": "n" } }));
    let all = json!({ "downsync": [{ "resources": ["namespaces"] }] });
    assert_eq!(singletons(&[(&all, &[1], true)]).executing_count(&namespace, &view), Ok(None));
}

#[test]
fn status_returns_while_there_is_one_edge_only() {
    let apps = json!({ "downsync": [{ "apiGroup": "apps" }] });
    let source = object(WORKSPACE, "replicasets.apps", &commond());
    let status = |edges: &[(u32, Edge)], all: Singletons| {
        let route = translator_to(&apps, edges, all);
        projected(&route, &source, 1, &knowledge()).expect("a copy")[0].policy.status
    };
    let one = [(1, edge("florin"))];
    let two = [(1, edge("florin")), (2, edge("guilder"))];
    assert_eq!(status(&one, singletons(&[(&apps, &[1], true)])), StatusReturn::Subresource);
    let inline = &["replicasets.apps"];
    assert_eq!(status(&one, singletons_where(&[(&apps, &[1], true)], inline)), StatusReturn::Inline);
    assert_eq!(status(&one, singletons_where(&[(&apps, &[1], false)], inline)), StatusReturn::Off);
    assert_eq!(status(&two, singletons(&[(&apps, &[1, 2], true)])), StatusReturn::Off);
    assert_eq!(status(&one, singletons(&[(&apps, &[1], false)])), StatusReturn::Off);
    assert_eq!(status(&one, singletons(&[(&apps, &[1], true), (&apps, &[2], false)])), StatusReturn::Off);
}

#[test]
fn the_count_is_put_on_the_object_and_nothing_else_of_it_touched() {
    let apps = json!({ "downsync": [{ "apiGroup": "apps" }] });
    let knowledge = knowledge();
    let view = View::new(&knowledge.store);
    let source = object(WORKSPACE, "replicasets.apps", &commond());
    let route = |placements: &[(&Value, &[u32], bool)]| {
        let all = Arc::new(singletons(placements));
        SingletonRoute::new(
            &ClusterId::new(WORKSPACE),
            DestinationId(9),
            all,
            Vec::new(),
            Digest::NONE,
            marks(),
        )
    };
    let counting = route(&[(&apps, &[1, 2], true)]);
    assert_eq!(&*counting.select(&source, &view).expect("decided").to, [DestinationId(9)]);
    let wants = counting.project(&source, &destination(9), &view).expect("a count");
    assert_eq!((&wants[0].slot, wants[0].policy.delivery), (&source.key, Delivery::Overlay));
    assert_eq!(
        body(&wants[0]),
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": { "namespace": "commonstuff", "name": "commond", "annotations": { "kubestellar.io/executing-count": "2" } },
        })
    );
    let zero = route(&[(&apps, &[], true)]).project(&source, &destination(9), &view).expect("a count");
    assert_eq!(body(&zero[0])["metadata"]["annotations"]["kubestellar.io/executing-count"], "0");
    let unasked = route(&[(&apps, &[1], false)]);
    assert!(unasked.select(&source, &view).expect("decided").to.is_empty(), "then the annotation goes");
}

#[test]
fn the_status_of_one_edge_is_taken_away_when_there_is_not_one() {
    let apps = json!({ "downsync": [{ "apiGroup": "apps" }] });
    let knowledge = knowledge();
    let view = View::new(&knowledge.store);
    let saying = |count: &str, status: &Value| {
        let mut json = commond();
        json["metadata"]["annotations"]["kubestellar.io/executing-count"] = json!(count);
        json["status"] = status.clone();
        object(WORKSPACE, "replicasets.apps", &json)
    };
    let (ready, none) = (json!({ "readyReplicas": 2 }), json!({}));
    for (placements, source, count, clears) in [
        (&[(&apps, &[1][..], true)][..], saying("1", &ready), Some("1"), false),
        (&[(&apps, &[1, 2], true)], saying("1", &ready), Some("2"), true),
        (&[(&apps, &[], true)], saying("1", &ready), Some("0"), true),
        // Nobody asks any more, or nothing is placed: first its status goes, then the count.
        (&[(&apps, &[1], false)], saying("1", &ready), Some("0"), true),
        (&[], saying("1", &ready), Some("0"), true),
        (&[(&apps, &[1], false)], saying("1", &none), None, false),
        // What somebody else reports into an object that never had one edge is theirs.
        (&[(&apps, &[1, 2], true)], saying("2", &ready), Some("2"), false),
        (&[], saying("2", &ready), None, false),
    ] {
        for (inline, how) in
            [(&[][..], StatusReturn::Subresource), (&["replicasets.apps"], StatusReturn::Inline)]
        {
            let all = Arc::new(singletons_where(placements, inline));
            let here = ClusterId::new(WORKSPACE);
            let route = SingletonRoute::new(&here, DestinationId(9), all, Vec::new(), Digest::NONE, marks());
            let wants = route.project(&source, &destination(9), &view).expect("decided");
            let returned = wants.first().map_or(StatusReturn::Off, |want| want.policy.status);
            assert_eq!(returned, if clears { how } else { StatusReturn::Off }, "{placements:?} {inline:?}");
        }
        let all = Arc::new(singletons(placements));
        let here = ClusterId::new(WORKSPACE);
        let route = SingletonRoute::new(&here, DestinationId(9), all, Vec::new(), Digest::NONE, marks());
        let wants = route.project(&source, &destination(9), &view).expect("decided");
        let said = wants.first().map(|want| body(want)["metadata"]["annotations"].clone());
        let said = said.map(|said| said["kubestellar.io/executing-count"].clone());
        assert_eq!(said, count.map(Value::from), "{placements:?}");
        let report = route.report(&source, &source, &view).expect("decided");
        assert_eq!(report.map(|body| body.json.to_vec()), clears.then(|| b"null".to_vec()), "{placements:?}");
    }
}
