//! `mailboat plan`: what would change at which edges if a file were applied.

use std::collections::BTreeSet;

use anyhow::Result;
use mailboat_api::edge::{Customizer, EdgePlacement, Location};
use mailboat_api::names::group;
use mailboat_api::scheduling;
use mailboat_center::rehearse::{Change, Listed, Step, changes};
use mailboat_object::key::{ClusterId, KindId, Uid};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::documents::{self, Format, write_out};
use crate::failure::{WouldChange, refusal};
use crate::flags::{PlanArguments, Wording};
use crate::survey::Survey;
use crate::table::aligned;

/// A kind that can be planned.
struct Plannable {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    resource: &'static str,
    /// Whether its objects stand in workload workspaces.
    in_workload: bool,
    /// Whether an object has its form. What has not would be planned as if it asked for nothing.
    has_form: fn(&Value) -> bool,
}

const PLANNABLE: [Plannable; 4] = [
    ours("EdgePlacement", "edgeplacements", true, |object| EdgePlacement::deserialize(object).is_ok()),
    ours("Customizer", "customizers", true, |object| Customizer::deserialize(object).is_ok()),
    ours("Location", "locations", false, |object| Location::deserialize(object).is_ok()),
    Plannable {
        group: group::SCHEDULING,
        version: group::KCP_VERSION,
        kind: "Location",
        resource: "locations",
        in_workload: false,
        has_form: |object| scheduling::Location::deserialize(object).is_ok(),
    },
];

const fn ours(
    kind: &'static str,
    resource: &'static str,
    in_workload: bool,
    has_form: fn(&Value) -> bool,
) -> Plannable {
    Plannable { group: group::EDGE, version: group::EDGE_VERSION, kind, resource, in_workload, has_form }
}

/// Reads what is needed, works it out with and without the file, and prints the difference.
pub async fn run(arguments: &PlanArguments) -> Result<()> {
    let file = arguments.file().display().to_string();
    let planned: Vec<Planned> = documents::read(arguments.file())?
        .into_iter()
        .map(|object| Planned::of(object, &file))
        .collect::<Result<_>>()?;
    let in_workload = planned.iter().filter(|one| one.kind.in_workload).count();
    if in_workload != 0 && in_workload != planned.len() {
        return Err(refusal(format!(
            "{file} holds objects of workload workspaces and of inventory workspaces; plan them one after the other"
        )));
    }
    let mut survey = Survey::begin(&arguments.survey).await?;
    survey.setting.caution = arguments.caution.threshold();
    let here = survey.cluster.clone();
    let workloads = if in_workload != 0 {
        BTreeSet::from([here.clone()])
    } else {
        survey.workloads().await.map_err(|fault| {
            refusal(format!(
                "a Location concerns the placements of every workspace, and you may not read them all ({fault}); ask \
                 the center's administrator"
            ))
        })?
    };
    let placements: Vec<Value> = planned
        .iter()
        .filter(|one| one.kind.resource == "edgeplacements")
        .map(|one| one.object.clone())
        .collect();
    for workload in &workloads {
        survey.read_workload(workload, &placements).await?;
    }
    survey.read_inventories(&arguments.survey).await?;
    // Which edges are concerned is known only with the file applied, and without it.
    let mut targets: BTreeSet<Uid> = survey.rehearse().targets().into_keys().collect();
    let now = std::mem::take(&mut survey.listed);
    survey.listed = applied(&now, &here, &planned, survey.setting.now);
    targets.extend(survey.rehearse().targets().into_keys());
    survey.listed = now;
    survey.read_mailboxes(&targets, None).await?;

    let before = survey.rehearse();
    survey.listed = applied(&survey.listed, &here, &planned, survey.setting.now);
    let after = survey.rehearse();
    for placement in after.placements() {
        for error in after.validation_errors(placement) {
            say!("warning: EdgePlacement {}: {}: {}", placement.name, error.path, error.message);
        }
    }
    let changes = changes(&before, &after);
    match arguments.survey.output {
        Wording::Text => write_out(&text(&changes))?,
        Wording::Yaml => documents::print(&[json!({ "changes": changes })], Format::Yaml)?,
        Wording::Json => documents::print(&[json!({ "changes": changes })], Format::Json)?,
    }
    if arguments.exit_code && !changes.is_empty() { Err(WouldChange.into()) } else { Ok(()) }
}

/// An object of the file.
struct Planned {
    kind: &'static Plannable,
    object: Value,
}

impl Planned {
    fn of(mut object: Value, file: &str) -> Result<Self> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let is_meant = |known: &&Plannable| {
            known.kind == kind && api_version.split_once('/') == Some((known.group, known.version))
        };
        let Some(known) = PLANNABLE.iter().find(is_meant) else {
            return Err(refusal(format!(
                "{file} holds a {kind:?} of {api_version:?}; only EdgePlacements, Customizers and Locations of {}/{}, and \
                 Locations of {}/{}, can be planned",
                group::EDGE,
                group::EDGE_VERSION,
                group::SCHEDULING,
                group::KCP_VERSION
            )));
        };
        if !(known.has_form)(&object) {
            return Err(refusal(format!(
                "{file} holds a {kind} that has not the form of one; `kubectl apply --dry-run=server -f {file}` says where"
            )));
        }
        if object["metadata"]["name"].as_str().is_none_or(str::is_empty) {
            return Err(refusal(format!("{file} holds a {kind} without metadata.name")));
        }
        if known.resource == "customizers" && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!("default");
        }
        Ok(Self { kind: known, object })
    }
}

/// What would be read if the file were applied.
fn applied(listed: &[Listed], here: &ClusterId, planned: &[Planned], now: u64) -> Vec<Listed> {
    let mut listed = listed.to_vec();
    for one in planned {
        let kind = KindId::new(one.kind.group, one.kind.resource);
        let at = listed.iter().position(|list| list.cluster == *here && list.kind == kind);
        let at = at.unwrap_or_else(|| {
            let text = |member: &str| one.object[member].as_str().unwrap_or_default().to_owned();
            let (api_version, kind_name) = (text("apiVersion"), text("kind"));
            listed.push(Listed {
                cluster: here.clone(),
                kind: kind.clone(),
                api_version,
                kind_name,
                items: Vec::new(),
            });
            listed.len() - 1
        });
        put(&mut listed[at].items, &one.object, now);
    }
    listed
}

/// What a file does not say of an object that is there already.
const KEPT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Puts an object in the place of its namesake, as a server that applies it would.
fn put(items: &mut Vec<Value>, object: &Value, now: u64) {
    let name = |item: &Value| (item["metadata"]["namespace"].clone(), item["metadata"]["name"].clone());
    let found = items.iter_mut().find(|item| name(item) == name(object));
    if let Some(found) = found {
        // A Customizer has no `spec`: what it replaces stands beside its metadata.
        if let (Some(found), Some(object)) = (found.as_object_mut(), object.as_object()) {
            found.retain(|member, _| KEPT.contains(&member.as_str()));
            let own = object.iter().filter(|(member, _)| !KEPT.contains(&member.as_str()));
            found.extend(own.map(|(member, value)| (member.clone(), value.clone())));
        }
        // Others may have put annotations there; labels are the file's own.
        if object["metadata"]["labels"].is_object() {
            found["metadata"]["labels"] = object["metadata"]["labels"].clone();
        }
        for (key, value) in object["metadata"]["annotations"].as_object().into_iter().flatten() {
            found["metadata"]["annotations"][key] = value.clone();
        }
        return;
    }
    let mut new = object.clone();
    let created = jiff::Timestamp::from_second(i64::try_from(now).unwrap_or_default()).unwrap_or_default();
    new["metadata"]["uid"] = json!("not-made-yet");
    new["metadata"]["resourceVersion"] = json!("1");
    new["metadata"]["creationTimestamp"] = json!(created.to_string());
    items.push(new);
}

fn text(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing would change at any edge\n".to_owned();
    }
    let mut rows = vec![["EDGE", "STEP", "OBJECT", "WHY"].map(str::to_owned)];
    rows.extend(changes.iter().map(|change| {
        let object = &change.object;
        let group = if object.group.is_empty() { String::new() } else { format!(".{}", object.group) };
        let namespace =
            if object.namespace.is_empty() { String::new() } else { format!("{}/", object.namespace) };
        let named = format!("{}{group} {namespace}{}", object.resource, object.name);
        [change.edge.clone(), word(change.step).to_owned(), named, change.why.clone()]
    }));
    let text = aligned(&rows);
    let edges = changes.iter().map(|change| &change.edge).collect::<BTreeSet<_>>().len();
    let count = |step: Step| changes.iter().filter(|change| change.step == step).count();
    text + &format!(
        "at {edges} {}: {} to create, {} to change, {} to delete\n",
        if edges == 1 { "edge" } else { "edges" },
        count(Step::Create),
        count(Step::Change),
        count(Step::Delete)
    )
}

fn word(step: Step) -> &'static str {
    match step {
        Step::Create => "create",
        Step::Change => "change",
        Step::Delete => "delete",
        Step::Leave => "leave",
        Step::AwaitConfirmation => "await confirmation",
        Step::Hold => "hold",
        Step::Conflict => "conflict",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Refusal;

    fn one(kind: &str, more: &Value) -> Value {
        let mut object = json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": kind,
            "metadata": { "name": "one" } });
        for (member, value) in more.as_object().unwrap() {
            object[member] = value.clone();
        }
        object
    }

    #[test]
    fn a_customizer_that_is_there_becomes_what_the_file_says() {
        let mut there = one("Customizer", &json!({ "replacements": [{ "path": "$.a", "value": "1" }] }));
        there["metadata"]["uid"] = json!("u");
        let mut items = vec![there];
        let wanted = json!([{ "path": "$.a", "value": "2" }]);
        put(&mut items, &one("Customizer", &json!({ "replacements": wanted })), 0);
        assert_eq!(items.len(), 1);
        assert_eq!((&items[0]["replacements"], &items[0]["metadata"]["uid"]), (&wanted, &json!("u")));
        put(&mut items, &one("Customizer", &json!({})), 0);
        assert!(items[0]["replacements"].is_null(), "what the file leaves out is not there any more");
    }

    #[test]
    fn locations_of_either_group_are_planned_beside_each_other() {
        let location = |group: &str, version: &str| {
            let spec = json!({ "resource": {
                "group": "workload.kcp.io", "version": version, "resource": "synctargets" } });
            let mut location = one("Location", &json!({ "spec": spec }));
            location["apiVersion"] = json!(format!("{group}/{version}"));
            Planned::of(location, "f").unwrap()
        };
        let planned =
            [location("scheduling.kcp.io", "v1alpha1"), location("edge.kubestellar.io", "v2alpha1")];
        let listed = applied(&[], &ClusterId::new("imw"), &planned, 0);
        let kinds: Vec<String> = listed.iter().map(|list| list.kind.to_string()).collect();
        assert_eq!(kinds, ["locations.scheduling.kcp.io", "locations.edge.kubestellar.io"]);
    }

    #[test]
    fn what_no_server_would_take_is_not_planned() {
        assert!(Planned::of(one("EdgePlacement", &json!({ "spec": { "downsync": [] } })), "f").is_ok());
        for bad in [
            one("EdgePlacement", &json!({ "spec": { "downsync": 3 } })),
            one("Customizer", &json!({ "replacements": {} })),
            one("Location", &json!({ "spec": "florin" })),
            one("EdgePlacement", &json!({ "apiVersion": "edge.kubestellar.io/v9" })),
            one("SyncTarget", &json!({})),
        ] {
            let refused = Planned::of(bad.clone(), "f").err().unwrap_or_else(|| panic!("{bad}"));
            assert!(refused.is::<Refusal>() && refused.to_string().contains("f holds a"), "{refused}");
        }
    }
}
