use proptest::prelude::*;
use serde_json::{Value, json};

use mailboat_object::key::Uid;

use super::*;
use crate::fixtures::{key, object};

const WORKSPACE: &str = "wmw";

fn now(seconds: u64) -> Now {
    Now { mono: Moment(seconds * 1_000), wall_seconds: 1_000_000 + seconds }
}

fn placement_key(name: &str) -> Key {
    key(WORKSPACE, "edgeplacements.edge.kubestellar.io", "", name)
}

fn placement(name: &str, labels: &Value) -> Arc<Object> {
    let uid = format!("uid-of-{name}");
    let placement = json!({ "metadata": { "name": name, "uid": uid, "labels": labels } });
    object(WORKSPACE, "edgeplacements.edge.kubestellar.io", &placement)
}

fn summarizer(name: &str, generation: u32, spec: &Value) -> Arc<Object> {
    let summarizer = json!({ "metadata": { "name": name, "generation": generation }, "spec": spec });
    object(WORKSPACE, "summarizers.edge.kubestellar.io", &summarizer)
}

fn summarizer_key(name: &str) -> Key {
    key(WORKSPACE, "summarizers.edge.kubestellar.io", "", name)
}

fn copy_id(edge: usize, kind_text: &str, name: &str) -> CopyId {
    let key = key("", kind_text, "shop", name);
    CopyId {
        edge: edge_id(edge),
        object: ObjectId { kind: key.kind, namespace: key.namespace, name: key.name },
    }
}

fn edge_id(edge: usize) -> EdgeId {
    Uid::parse(&format!("edge-{edge}"))
}

fn facts(edge: usize, labels: &[(&str, &str)]) -> EdgeFacts {
    EdgeFacts {
        location: format!("loc-{edge}"),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        annotations: BTreeMap::new(),
    }
}

/// A copy of a Deployment of which so many of two replicas are ready, or which gave up.
fn deployment(ready: u32, given_up: bool) -> Arc<Object> {
    let reason = if given_up { "ProgressDeadlineExceeded" } else { "NewReplicaSetAvailable" };
    let copy = json!({ "metadata": { "name": "web", "namespace": "shop", "resourceVersion": "5" }, "spec": { "replicas": 2 },
        "status": { "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready, "availableReplicas": ready, "conditions": [
            { "type": "Available", "status": "True" }, { "type": "Progressing", "status": "True", "reason": reason } ] } });
    object("mailbox", "deployments.apps", &copy)
}

/// A delivery of which the syncer said that it is done, or nothing.
fn delivery(copy: &Object, id: &CopyId, done: bool) -> Delivery {
    let the_one = json!({ "metadata": { "name": "the-one" },
        "status": { "deliveredResourceVersion": if done { "9" } else { "1" } } });
    let report = Report::of(&object("mailbox", "syncerconfigs.edge.kubestellar.io", &the_one));
    Delivery::default().judged(&id.object, copy, report.as_ref(), Named::Unsure)
}

fn told(copy: Option<Arc<Object>>, delivery: Delivery) -> Told {
    Told { copy, form: None, delivery }
}

/// Everything that one placement's default summary says now.
fn shown(summaries: &Summaries, placement: &str, summarizer: &str) -> Value {
    let placement = summaries.placements.get(&placement_key(placement)).expect("the placement");
    let summary = placement.summaries.get(summarizer).expect("the summary");
    without_time(show::status(&summary.board, &summaries.edges))
}

fn wanted(summaries: &Summaries) -> Vec<String> {
    summaries.wanted(&placement_key("ep")).iter().map(|(key, _)| key.name.to_string()).collect()
}

fn counts(status: &Value) -> [i64; 6] {
    ["wanted", "delivered", "current", "stale", "healthy", "broken"]
        .map(|member| status[member].as_i64().unwrap_or(-1))
}

/// Two edges with a Deployment each: one well, the other given up.
fn two_edges() -> Summaries {
    let mut summaries = Summaries::new(now(0));
    summaries.placement(&placement_key("ep"), Some(&placement("ep", &json!({ "team": "shop" }))));
    for edge in 0..2 {
        summaries.edge(&edge_id(edge), Some(facts(edge, &[("env", ["prod", "dev"][edge])])));
        summaries.heard(&edge_id(edge), now(0).wall_seconds);
        let (id, copy) = (copy_id(edge, "deployments.apps", "web"), deployment(2, edge == 1));
        let delivery = delivery(&copy, &id, true);
        summaries.copy(&placement_key("ep"), &id, Some(told(Some(copy), delivery)));
    }
    let empty = json!({ "metadata": { "name": "ep" }, "spec": { "placementName": "ep" } });
    summaries.found(&object(WORKSPACE, "statussummaries.edge.kubestellar.io", &empty));
    summaries.start(now(0));
    summaries
}

#[test]
fn copies_are_counted_for_each_object_kind_and_label() {
    let summaries = two_edges();
    let status = shown(&summaries, "ep", "");
    assert_eq!(counts(&status["totals"]), [2, 2, 2, 0, 1, 1]);
    assert_eq!(counts(&status["kinds"][0]), [2, 2, 2, 0, 1, 1]);
    assert_eq!(
        (&status["kinds"][0]["resource"], &status["objects"][0]["name"]),
        (&json!("deployments"), &json!("web"))
    );
    let labels: Vec<(&Value, [i64; 6])> =
        status["labels"].as_array().unwrap().iter().map(|label| (&label["value"], counts(label))).collect();
    assert_eq!(labels, [(&json!("dev"), [1, 1, 1, 0, 0, 1]), (&json!("prod"), [1, 1, 1, 0, 1, 0])]);
    assert_eq!(status["broken"].as_array().unwrap().len(), 1);
    let broken = &status["broken"][0];
    assert_eq!((&broken["edge"], &broken["reason"]), (&json!("loc-1"), &json!("ProgressDeadlineExceeded")));
}

#[test]
fn what_the_center_holds_or_the_edge_refuses_is_broken_with_its_reason() {
    let mut summaries = two_edges();
    let cause = health::Cause::new("MissingParameter", "no x");
    let id = copy_id(0, "configmaps", "page");
    summaries.copy(&placement_key("ep"), &id, Some(told(None, Delivery::held(cause))));
    let status = shown(&summaries, "ep", "");
    assert_eq!(counts(&status["totals"]), [3, 2, 2, 0, 1, 2]);
    assert_eq!(status["broken"][0]["reason"], "MissingParameter");
    // The objects with broken copies come first.
    assert_eq!(status["objects"][0]["name"], "page");
    summaries.copy(&placement_key("ep"), &id, None);
    assert_eq!(counts(&shown(&summaries, "ep", "")["totals"]), [2, 2, 2, 0, 1, 1]);
}

#[test]
fn an_edge_falls_silent_and_is_heard_again() {
    let mut summaries = two_edges();
    let (_, wake) = summaries.next(now(1));
    assert_eq!(wake, Some(now(90).mono));
    summaries.heard(&edge_id(0), now(60).wall_seconds);
    summaries.next(now(89));
    assert_eq!(counts(&shown(&summaries, "ep", "")["totals"])[3], 0);
    let (writes, wake) = summaries.next(now(90));
    assert_eq!((writes.len(), wake), (1, Some(now(150).mono)));
    assert_eq!(
        counts(&shown(&summaries, "ep", "")["totals"]),
        [2, 2, 2, 1, 1, 1],
        "what it reported last stays"
    );
    summaries.heard(&edge_id(1), now(100).wall_seconds);
    assert_eq!(counts(&shown(&summaries, "ep", "")["totals"])[3], 0);
}

#[test]
fn a_summary_is_written_once_a_second_at_most_and_only_with_something_new() {
    let mut summaries = two_edges();
    let (writes, _) = summaries.next(now(1));
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].key.to_string(), "wmw|statussummaries.edge.kubestellar.io ep");
    assert!(summaries.next(now(1)).0.is_empty(), "nothing is new");
    let change = |summaries: &mut Summaries, ready: u32| {
        let (id, copy) = (copy_id(0, "deployments.apps", "web"), deployment(ready, false));
        let delivery = delivery(&copy, &id, true);
        summaries.copy(&placement_key("ep"), &id, Some(told(Some(copy), delivery)));
    };
    change(&mut summaries, 1);
    let soon = Now { mono: Moment(1_500), ..now(1) };
    let (writes, wake) = summaries.next(soon);
    assert!(writes.is_empty() && wake == Some(Moment(2_000)), "{wake:?}");
    // It is as before when its time comes: nothing is written.
    change(&mut summaries, 2);
    assert!(summaries.next(now(2)).0.is_empty());
    change(&mut summaries, 0);
    assert_eq!(summaries.next(now(3)).0.len(), 1);
}

#[test]
fn a_restart_with_nothing_changed_writes_nothing_and_remembers_since_when() {
    let mut before = two_edges();
    let (writes, _) = before.next(now(5));
    // As a server keeps it: what a merge patch sets to null is not there.
    let mut status = writes[0].patch["status"].clone();
    status.as_object_mut().unwrap().retain(|_, member| !member.is_null());
    let mut stands =
        json!({ "metadata": { "name": "ep" }, "spec": { "placementName": "ep" }, "status": status });
    let mut after = Summaries::new(now(40));
    after.placement(&placement_key("ep"), Some(&placement("ep", &json!({ "team": "shop" }))));
    after.found(&object(WORKSPACE, "statussummaries.edge.kubestellar.io", &stands));
    for edge in 0..2 {
        after.edge(&edge_id(edge), Some(facts(edge, &[("env", ["prod", "dev"][edge])])));
        after.heard(&edge_id(edge), now(40).wall_seconds);
        let (id, copy) = (copy_id(edge, "deployments.apps", "web"), deployment(2, edge == 1));
        let delivery = delivery(&copy, &id, true);
        after.copy(&placement_key("ep"), &id, Some(told(Some(copy), delivery)));
    }
    assert!(after.next(now(41)).0.is_empty(), "it is not begun");
    after.start(now(41));
    assert!(after.next(now(41)).0.is_empty(), "{:?}", after.next(now(42)));
    // Somebody else wrote into it.
    stands["status"]["totals"]["broken"] = json!(77);
    after.found(&object(WORKSPACE, "statussummaries.edge.kubestellar.io", &stands));
    assert_eq!(after.next(now(43)).0[0].patch["status"]["totals"]["broken"], 1);
}

#[test]
fn a_summarizer_adds_groups_and_aggregates_and_its_mistakes_harm_nothing_else() {
    let mut summaries = two_edges();
    let spec = json!({
        "placementSelector": { "matchLabels": { "team": "shop" } },
        "subjects": [{ "apiGroup": "apps", "resources": ["*"] }],
        "groupers": [
            { "name": "by-env", "groupBy": [{ "name": "env", "def": "edge.labels['env']" }], "aggregators": [
                { "name": "copies", "type": "COUNT" },
                { "name": "ready", "type": "SUM", "subject": "status.readyReplicas" },
                { "name": "worst", "type": "MIN", "subject": "object.spec.replicas - status.readyReplicas" },
                { "name": "bad", "type": "MAX", "subject": "status.readyReplicas +" } ] },
            { "name": "all", "aggregators": [
                { "name": "mean", "type": "AVG", "subject": "status.readyReplicas" },
                { "name": "text", "type": "MAX", "subject": "edge.name" } ] },
        ],
        "broken": [{ "all": [{ "part": "status.readyReplicas < 2" }] }],
        "stalenessThresholdSecs": 10,
    });
    summaries.summarizer(&summarizer_key("own"), Some(&summarizer("own", 1, &spec)));
    let (id, copy) = (copy_id(1, "deployments.apps", "web"), deployment(1, true));
    let done = delivery(&copy, &id, true);
    summaries.copy(&placement_key("ep"), &id, Some(told(Some(copy), done)));
    let status = shown(&summaries, "ep", "own");
    let group = |env: &str, values: [&str; 4]| {
        json!({ "groupedBy": [{ "name": "env", "value": env }], "aggregates": [
            { "name": "copies", "value": values[0] }, { "name": "ready", "value": values[1] },
            { "name": "worst", "value": values[2] }, { "name": "bad", "value": values[3] } ] })
    };
    let expected = json!([group("dev", ["1", "1", "1", ""]), group("prod", ["1", "2", "0", ""])]);
    let without_empty = |value: &Value| value.to_string().replace(",\"value\":\"\"", "");
    assert_eq!(without_empty(&status["groupings"][0]["groups"]), without_empty(&expected));
    assert_eq!(
        status["groupings"][1]["groups"][0]["aggregates"][0],
        json!({ "name": "mean", "value": "1.5" })
    );
    assert_eq!(status["broken"][0]["reason"], "BrokenByRule");
    assert_eq!(status["broken"].as_array().unwrap().len(), 1);

    let (writes, _) = summaries.next(now(10));
    let report =
        writes.iter().find(|write| write.key == summarizer_key("own")).expect("a word on the Summarizer");
    let report = &report.patch["status"];
    assert_eq!((&report["placementCount"], &report["observedGeneration"]), (&json!(1), &json!(1)));
    let errors = report["validationErrors"].as_array().unwrap();
    assert_eq!(errors[0]["path"], "spec.groupers[0].aggregators[3].subject");
    assert_eq!(errors[1]["path"], "spec.groupers[1].aggregators[1].subject");
    assert_eq!(errors[1]["message"], "for 2 copies: it gives no number");
    assert_eq!(report["conditions"][0]["status"], "False");
    // Its own threshold, and everybody's.
    assert_eq!(counts(&shown(&summaries, "ep", "own")["totals"])[3], 2);
    assert_eq!(counts(&shown(&summaries, "ep", "")["totals"])[3], 0);
    let names: Vec<String> = wanted(&summaries);
    assert!(names.len() == 2 && names[0] == "ep" && names[1].starts_with("ep-own-"), "{names:?}");

    summaries.summarizer(&summarizer_key("own"), None);
    assert_eq!(wanted(&summaries), ["ep"]);
    assert_eq!(counts(&shown(&summaries, "ep", "")["totals"])[0], 2);
}

#[test]
fn ages_grow_by_themselves() {
    let mut summaries = two_edges();
    let spec = json!({ "placementSelector": {}, "groupers": [{ "name": "age", "aggregators": [
        { "name": "oldest", "type": "MAX", "subject": "age" } ] }] });
    summaries.summarizer(&summarizer_key("own"), Some(&summarizer("own", 1, &spec)));
    let oldest = |summaries: &Summaries| {
        shown(summaries, "ep", "own")["groupings"][0]["groups"][0]["aggregates"][0]["value"].clone()
    };
    summaries.next(now(10));
    let (_, wake) = summaries.next(now(35));
    assert!(wake.is_some_and(|wake| wake <= now(65).mono), "{wake:?}");
    summaries.next(now(70));
    assert_eq!(oldest(&summaries), "70");
    summaries.heard(&edge_id(0), now(70).wall_seconds);
    summaries.heard(&edge_id(1), now(70).wall_seconds);
    assert_eq!(oldest(&summaries), "0");
}

#[test]
fn it_stays_small_whatever_the_number_of_edges_and_the_length_of_names() {
    let mut summaries = Summaries::new(now(0));
    let long = |text: &str, number: usize| format!("{number:0>8}-{}", text.repeat(220));
    summaries.placement(&placement_key("ep"), Some(&placement("ep", &json!({}))));
    for edge in 0..300 {
        let labels =
            [("site".to_owned(), format!("{edge:x>60}")), ("env".to_owned(), format!("e{}", edge % 3))];
        let facts = EdgeFacts { location: long("l", edge), labels: labels.into(), ..EdgeFacts::default() };
        summaries.edge(&edge_id(edge), Some(facts));
        let cause = health::Cause::new("Refused", "m".repeat(900));
        let id = copy_id(edge, &format!("{}.example.com", long("k", edge)), &long("n", edge));
        summaries.copy(&placement_key("ep"), &id, Some(told(None, Delivery::held(cause))));
    }
    let status = shown(&summaries, "ep", "");
    let bytes = status.to_string().len();
    assert!(bytes <= LIMIT_BYTES, "{bytes} bytes");
    assert_eq!(counts(&status["totals"]), [300, 0, 0, 300, 0, 300]);
    for (list, omitted) in
        [("kinds", "kindsOmitted"), ("objects", "objectsOmitted"), ("broken", "brokenOmitted")]
    {
        let listed = status[list].as_array().map_or(0, Vec::len);
        assert_eq!(status[omitted], json!(300 - listed), "{list}");
    }
    assert!(
        status["broken"].as_array().is_some_and(|listed| listed.len() == 20),
        "broken copies give way late"
    );
}

#[test]
fn a_label_with_a_value_for_each_edge_makes_no_groups() {
    let mut summaries = Summaries::new(now(0));
    summaries.placement(&placement_key("ep"), Some(&placement("ep", &json!({}))));
    for edge in 0..100 {
        let id = edge.to_string();
        summaries.edge(&edge_id(edge), Some(facts(edge, &[("id", &id), ("env", ["a", "b"][edge % 2])])));
        let done = Delivery::default();
        summaries.copy(&placement_key("ep"), &copy_id(edge, "configmaps", "c"), Some(told(None, done)));
    }
    let status = shown(&summaries, "ep", "");
    let keys: BTreeSet<&str> =
        status["labels"].as_array().unwrap().iter().filter_map(|label| label["key"].as_str()).collect();
    assert_eq!((keys, &status["labelsOmitted"]), (BTreeSet::from(["env"]), &json!(100)));
}

#[test]
fn summaries_may_move_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<Summaries>();
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    Edge(usize, Option<(usize, bool)>),
    Heard(usize),
    Copy { placement: usize, edge: usize, object: usize, state: Option<(u32, bool, bool)> },
    Placement(usize, Option<bool>),
    Summarizer(Option<usize>),
    Time(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let edge = 0_usize..4;
    prop_oneof![
        2 => (edge.clone(), prop::option::weighted(0.8, (0_usize..3, any::<bool>()))).prop_map(|(id, facts)| Event::Edge(id, facts)),
        2 => edge.clone().prop_map(Event::Heard),
        8 => (0_usize..2, edge, 0_usize..3, prop::option::weighted(0.8, (0_u32..3, any::<bool>(), any::<bool>())))
            .prop_map(|(placement, edge, object, state)| Event::Copy { placement, edge, object, state }),
        1 => (0_usize..2, prop::option::weighted(0.8, any::<bool>())).prop_map(|(id, labels)| Event::Placement(id, labels)),
        1 => prop::option::weighted(0.7, 0_usize..2).prop_map(Event::Summarizer),
        2 => (1_u64..60).prop_map(Event::Time),
    ]
}

/// The state that events lead to, and the same told to a [`Summaries`] from nothing.
#[derive(Default)]
struct Model {
    edges: BTreeMap<usize, EdgeFacts>,
    heard: BTreeMap<usize, u64>,
    placements: BTreeMap<usize, bool>,
    copies: BTreeMap<(usize, CopyId), Told>,
    summarizer: Option<usize>,
    seconds: u64,
}

const PLACEMENTS: [&str; 2] = ["ep-a", "ep-b"];

fn specs(number: usize) -> Value {
    [
        json!({ "placementSelector": { "matchLabels": { "team": "shop" } }, "stalenessThresholdSecs": 20, "groupers": [
            { "name": "g", "groupBy": [{ "name": "env", "def": "edge.labels.env" }, { "name": "s", "def": "syncerStatus.stale" }],
              "aggregators": [{ "name": "n", "type": "COUNT" }, { "name": "min", "type": "MIN", "subject": "status.readyReplicas" },
                { "name": "max", "type": "MAX", "subject": "status.readyReplicas" },
                { "name": "avg", "type": "AVG", "subject": "double(status.readyReplicas) / 3.0" }] }] }),
        json!({ "placementSelector": {}, "subjects": [{ "apiGroup": "", "resources": ["configmaps"] }],
            "broken": [{ "all": [{ "part": "status.readyReplicas", "value": 1 }, { "part": "edge.labels.env", "value": "prod", "negate": true }] }] }),
    ][number].clone()
}

impl Model {
    fn apply(&mut self, event: &Event, summaries: &mut Summaries) {
        match event {
            Event::Edge(id, None) => {
                self.edges.remove(id);
                self.heard.remove(id);
                self.copies.retain(|(_, copy), _| copy.edge != edge_id(*id));
                summaries.edge(&edge_id(*id), None);
            }
            Event::Edge(id, Some((env, extra))) => {
                let mut labels = vec![("env", ["prod", "dev", "test"][*env])];
                labels.extend(extra.then_some(("extra", "yes")));
                let facts = facts(*id, &labels);
                self.edges.insert(*id, facts.clone());
                summaries.edge(&edge_id(*id), Some(facts));
            }
            Event::Heard(id) => {
                if self.edges.contains_key(id) {
                    self.heard.insert(*id, now(self.seconds).wall_seconds);
                    summaries.heard(&edge_id(*id), now(self.seconds).wall_seconds);
                }
            }
            Event::Copy { placement, edge, object, state } => {
                if !self.placements.contains_key(placement) || !self.edges.contains_key(edge) {
                    return;
                }
                let id = copy_id(*edge, ["deployments.apps", "configmaps", "services"][*object], "web");
                let told = state.map(|(ready, given_up, done)| {
                    let copy = deployment(ready, given_up);
                    let delivery = delivery(&copy, &id, done);
                    self::told(Some(copy), delivery)
                });
                match &told {
                    Some(told) => drop(self.copies.insert((*placement, id.clone()), told.clone())),
                    None => drop(self.copies.remove(&(*placement, id.clone()))),
                }
                summaries.copy(&placement_key(PLACEMENTS[*placement]), &id, told);
            }
            Event::Placement(id, None) => {
                self.placements.remove(id);
                self.copies.retain(|(placement, _), _| placement != id);
                summaries.placement(&placement_key(PLACEMENTS[*id]), None);
            }
            Event::Placement(id, Some(labelled)) => {
                self.placements.insert(*id, *labelled);
                tell_placement(summaries, *id, *labelled);
            }
            Event::Summarizer(spec) => {
                self.summarizer = *spec;
                tell_summarizer(summaries, *spec);
            }
            Event::Time(seconds) => {
                self.seconds += seconds;
                summaries.next(now(self.seconds));
            }
        }
    }

    fn counted_anew(&self) -> Summaries {
        let mut summaries = Summaries::new(now(0));
        tell_summarizer(&mut summaries, self.summarizer);
        for (id, labelled) in &self.placements {
            tell_placement(&mut summaries, *id, *labelled);
        }
        for ((placement, id), told) in &self.copies {
            summaries.copy(&placement_key(PLACEMENTS[*placement]), id, Some(told.clone()));
        }
        for (id, facts) in &self.edges {
            summaries.edge(&edge_id(*id), Some(facts.clone()));
        }
        for (id, heard) in &self.heard {
            summaries.heard(&edge_id(*id), *heard);
        }
        summaries.start(now(self.seconds));
        summaries.next(now(self.seconds));
        summaries
    }
}

fn tell_placement(summaries: &mut Summaries, id: usize, labelled: bool) {
    let labels = if labelled { json!({ "team": "shop" }) } else { json!({}) };
    summaries.placement(&placement_key(PLACEMENTS[id]), Some(&placement(PLACEMENTS[id], &labels)));
}

fn tell_summarizer(summaries: &mut Summaries, spec: Option<usize>) {
    let object =
        spec.map(|number| summarizer("own", u32::try_from(number).unwrap_or_default() + 1, &specs(number)));
    summaries.summarizer(&summarizer_key("own"), object.as_deref());
}

/// All that all summaries say, but for since when copies are broken.
fn all_shown(summaries: &Summaries) -> BTreeMap<(Key, Name), Value> {
    let mut all = BTreeMap::new();
    for (key, placement) in &summaries.placements {
        for (name, summary) in &placement.summaries {
            let mut status = without_time(show::status(&summary.board, &summaries.edges));
            for broken in status["broken"].as_array_mut().into_iter().flatten() {
                broken["since"] = Value::Null;
            }
            all.insert((key.clone(), name.clone()), status);
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn increments_lead_where_counting_anew_would(events in prop::collection::vec(event(), 0..60)) {
        let mut summaries = Summaries::new(now(0));
        summaries.start(now(0));
        let mut model = Model::default();
        for event in &events {
            model.apply(event, &mut summaries);
        }
        summaries.next(now(model.seconds));
        prop_assert_eq!(all_shown(&summaries), all_shown(&model.counted_anew()));
    }
}
