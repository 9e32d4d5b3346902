//! What is counted, as a scrape shows it; and that the reference says the same.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use mailboat_cluster::{Served, Verbs};
use mailboat_object::key::{Key, Name};
use mailboat_object::wire::FaultKind;

use super::*;

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

fn config_maps() -> KindId {
    KindId::new("", "configmaps")
}

fn call(cluster: &str, kind: KindId, verb: Verb, part: Part) -> Call {
    let key = Key {
        cluster: ClusterId::new(cluster),
        kind,
        namespace: Name::EMPTY,
        name: Name::new("secret-name"),
    };
    Call { key, verb, part, dry_run: false }
}

fn apply() -> Verb {
    Verb::Apply { body: Arc::from(&b"{}"[..]), manager: Name::new("m"), force: false }
}

/// Metrics in which every series has a value.
fn exercised() -> Metrics {
    let metrics = Metrics::default();
    let heartbeat = KindId::new("edge.kubestellar.io", "syncerconfigs");
    metrics.serves(Serves {
        sync_target: "port".to_owned(),
        workspace: "mailbox".to_owned(),
        center: ClusterId::new("mailbox"),
        heartbeat: heartbeat.clone(),
    });
    let mut catalog = Catalog::default();
    catalog.add(Served {
        kind: config_maps(),
        version: Name::new("v1"),
        kind_name: Name::new("ConfigMap"),
        namespaced: true,
        verbs: Verbs::of(["list", "watch"]),
        singular: Name::EMPTY,
        status: false,
        scale: false,
        short_names: Box::default(),
    });
    metrics.place_serves(&PlaceId::new("edge"), &Arc::new(catalog));
    let took = Duration::from_millis(3);
    let fault = Fault::new(FaultKind::Conflict, "somebody was faster");
    for (cluster, fault) in [("edge", None), ("mailbox", None), ("edge", Some(&fault))] {
        let write = Metrics::write(&call(cluster, config_maps(), apply(), Part::Whole));
        metrics.written(&write.expect("an apply writes"), took, fault);
    }
    metrics.called(&heartbeat, Part::Status, None);
    metrics.called(&heartbeat, Part::Status, Some(&fault));
    metrics.reached(&ClusterId::new("mailbox"), true);
    metrics.delivered_after(took);
    metrics.depth(Depth::default());
    metrics.counts(Counts::default());
    metrics.lists(2, 1);
    metrics.contended();
    metrics.backlog(|| BTreeMap::from([(config_maps(), 3)]), 2);
    metrics
}

#[test]
fn the_reference_lists_every_series_with_its_labels_and_nothing_else() {
    let text = exercised().text();
    let mut rows: BTreeSet<String> = BTreeSet::new();
    for (name, family) in families(&text) {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        rows.insert(format!("| `{name}` | {} | {} | {} |", family.kind, labels.join(", "), family.help));
    }
    let reference = std::fs::read_to_string(REFERENCE).unwrap_or_else(|error| panic!("{REFERENCE}: {error}"));
    let listed: BTreeSet<String> =
        reference.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    let missing: Vec<&String> = rows.difference(&listed).collect();
    let stale: Vec<&String> = listed.difference(&rows).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/metrics.md: missing {missing:#?}, stale {stale:#?}"
    );
}

struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

/// The families in a text, by the names that a query uses.
fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::new();
    let (mut base, mut help, mut kind) = ("", "", "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            (base, help) = rest.split_once(' ').unwrap_or((rest, ""));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            kind = rest.split_once(' ').map_or("", |(_, kind)| kind);
        } else if let Some((sample, _)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) {
            let labels = sample.split_once('{').map_or("", |(_, labels)| labels);
            let labels = labels.split("\",").filter_map(|label| label.split_once('=')).map(|(name, _)| name);
            let labels = labels.filter(|label| *label != "le").map(str::to_owned);
            let name = if kind == "counter" { format!("{base}_total") } else { base.to_owned() };
            let family = families.entry(name).or_insert_with(|| Family {
                kind: kind.to_owned(),
                help: help.trim_end_matches('.').to_owned(),
                labels: BTreeSet::new(),
            });
            family.labels.extend(labels);
        }
    }
    families
}

#[test]
fn what_is_carried_is_counted_under_the_names_that_syncers_always_had() {
    let text = exercised().text();
    let labels = r#"sync_target="port",workspace="mailbox",gvk="/v1, Kind=ConfigMap""#;
    for line in [
        format!("syncer_resources_synced_total{{{labels},direction=\"kcp-to-cluster\"}} 1"),
        format!("syncer_resources_synced_total{{{labels},direction=\"cluster-to-kcp\"}} 1"),
        format!("syncer_sync_errors_total{{{labels},error_type=\"conflict\"}} 1"),
        format!("syncer_sync_duration_seconds_count{{{labels},operation=\"sync\"}} 2"),
        format!("syncer_sync_duration_seconds_count{{{labels},operation=\"sync_error\"}} 1"),
        "syncer_heartbeat_total 1".to_owned(),
        "syncer_heartbeat_errors_total 1".to_owned(),
        r#"syncer_connection_status{sync_target="port",workspace="mailbox",target="kcp"} 1"#.to_owned(),
        format!("syncer_sync_backlog_size{{{labels}}} 3"),
        "syncer_resource_controllers 2".to_owned(),
        r#"mailboat_writes_total{verb="apply",part="object",result="ok"} 2"#.to_owned(),
        r#"mailboat_writes_total{verb="apply",part="object",result="conflict"} 1"#.to_owned(),
    ] {
        assert!(text.lines().any(|seen| seen == line), "no line {line}:\n{text}");
    }
    assert!(!text.contains("secret-name"), "an object's name is a label:\n{text}");
}

#[test]
fn a_read_and_a_dry_run_are_no_writes() {
    assert!(Metrics::write(&call("edge", config_maps(), Verb::Get, Part::Whole)).is_none());
    let dry = Call { dry_run: true, ..call("edge", config_maps(), apply(), Part::Whole) };
    assert!(Metrics::write(&dry).is_none());
}

#[test]
fn h29_series_grow_with_kinds_and_not_with_objects_namespaces_or_workspaces() {
    let metrics = Metrics::default();
    let count = || metrics.text().lines().filter(|line| !line.starts_with('#')).count();
    let write = |number: usize| {
        let mut call = call(&format!("workspace-{number}"), config_maps(), apply(), Part::Whole);
        call.key.namespace = Name::new(&format!("namespace-{number}"));
        call.key.name = Name::new(&format!("object-{number}"));
        metrics.written(&Metrics::write(&call).expect("an apply writes"), Duration::ZERO, None);
    };
    write(0);
    let before = count();
    (1..1_000).for_each(write);
    assert_eq!(count(), before);
}

#[test]
fn h29_kinds_that_come_and_go_share_a_series_beyond_a_limit_and_are_forgotten_with_their_place() {
    let metrics = exercised();
    let count = || metrics.text().lines().filter(|line| !line.starts_with('#')).count();
    let place = |number: usize| PlaceId::new(&format!("place-{number}"));
    let carry = |number: usize| {
        let kind = KindId::new("example.org", &format!("boats{number}"));
        let mut catalog = Catalog::default();
        catalog.add(Served {
            kind: kind.clone(),
            version: Name::new("v1"),
            kind_name: Name::new(&format!("Boat{number}")),
            namespaced: true,
            verbs: Verbs::of(["list", "watch"]),
            singular: Name::EMPTY,
            status: false,
            scale: false,
            short_names: Box::default(),
        });
        metrics.place_serves(&place(number), &Arc::new(catalog));
        let call = call("edge", kind.clone(), apply(), Part::Whole);
        metrics.written(&Metrics::write(&call).expect("an apply writes"), Duration::ZERO, None);
        metrics.backlog(|| BTreeMap::from([(kind, 1)]), 1);
        metrics.place_closed(&place(number));
    };
    (0..KINDS).for_each(carry);
    let before = count();
    (KINDS..10_000).for_each(carry);
    assert_eq!(count(), before, "series are as many as kinds ever were");
    assert_eq!(locked(&metrics.served).len(), 1, "what closed places served is kept");
    assert!(locked(&metrics.named).len() <= KINDS && locked(&metrics.in_backlog).len() <= 1);
    let text = metrics.text();
    let others = r#"syncer_sync_backlog_size{sync_target="port",workspace="mailbox",gvk="others"} 1"#;
    assert!(text.lines().any(|line| line == others), "{text}");
    let over = r#"syncer_sync_backlog_size{sync_target="port",workspace="mailbox",gvk="example.org/v1, Kind=Boat7"} 0"#;
    assert!(text.lines().any(|line| line == over), "{text}");
}

#[test]
fn a_process_that_serves_many_has_no_series_of_one() {
    let text = Metrics::default().text();
    assert!(!text.contains("syncer_") && text.contains("mailboat_leader"), "{text}");
    let resident = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    assert!(
        resident.and_then(|bytes| bytes.parse().ok()).is_some_and(|bytes: u64| bytes > 100_000),
        "{text}"
    );
}
