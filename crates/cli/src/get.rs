//! `mailboat get`: placements, edges and summaries of a workspace, and one kind of object over all mailboxes.

mod edges;
mod mailboxes;
mod watch;

use std::cell::RefCell;
use std::sync::Arc;

use anyhow::Result;
use jiff::Timestamp;
use mailboat_api::generate::yaml;
use mailboat_api::names::group;
use mailboat_object::key::KindId;
use mailboat_object::wire::FaultKind;
use serde_json::{Value, json};

use crate::documents::{self, Format, write_out};
use crate::failure::{before_writing, refusal};
use crate::flags::{GetArguments, Listing, Shown};
use crate::place::list_and_version;
use crate::site::Site;
use crate::table::{self, Column, age, condition, text};
use edges::Inventory;
use mailboxes::Coming;
use watch::Followed;

/// Under which name the mailbox and the edge of an object are kept beside it while it is listed.
const EDGE: &str = "mailboat.dev/edge";

/// Prints objects as kubectl does: one that is asked for by its name as it is, those that are watched one by one, and all
/// others as a list, however many there are.
fn print(objects: &[Value], format: Format, arguments: &GetArguments) -> Result<()> {
    let one_by_one =
        arguments.watch || arguments.one_by_one || (arguments.name.is_some() && objects.len() == 1);
    match format {
        Format::Yaml if one_by_one => documents::print(objects, format),
        Format::Json if one_by_one => {
            objects.iter().try_for_each(|object| documents::print(std::slice::from_ref(object), format))
        }
        _ => documents::print(&[json!({ "apiVersion": "v1", "kind": "List", "items": objects })], format),
    }
}

/// Shows what is asked for.
pub async fn run(arguments: &GetArguments) -> Result<()> {
    let site = Arc::new(Site::reach(&arguments.server).await?);
    let (mut found, columns) = match arguments.what {
        Shown::Placements => {
            let kinds = [KindId::new(group::EDGE, "edgeplacements")];
            (of_workspace(&site, arguments, &kinds).await?, placement_columns())
        }
        // An inventory may be described by kcp's own kinds as well.
        Shown::Edges => {
            let kinds = edges::kinds().map(|(targets, _)| targets);
            (of_workspace(&site, arguments, &kinds).await?, edge_columns())
        }
        Shown::Summary => {
            let kinds = [KindId::new(group::EDGE, "statussummaries")];
            (of_workspace(&site, arguments, &kinds).await?, summary_columns())
        }
        Shown::Objects => (mailboxes::all(&site, arguments).await?, object_columns()),
    };
    let named =
        |object: &Value| arguments.name.as_ref().is_none_or(|name| text(object, "/metadata/name") == *name);
    let acted = |mut object: Value, action: &str| {
        if arguments.one_by_one && arguments.watch {
            object["Action"] = Value::from(action);
        }
        object
    };
    let asked = found.objects.into_iter().filter(|object| named(object)).map(tidy);
    let mut objects: Vec<Value> = asked.map(|object| acted(object, "add")).collect();
    if let (Some(name), true) = (&arguments.name, objects.is_empty() && !arguments.watch) {
        return Err(refusal(format!(
            "there is no {} called {name:?} in {}; without a name, all are shown",
            found.what, found.place
        )));
    }
    // A table of edges shows what leads to them; as data they are as they are.
    let mut inventory = Inventory::default();
    if arguments.what == Shown::Edges && arguments.output == Listing::Table {
        let kinds = edges::kinds().map(|(_, locations)| locations);
        let leading = listed(&site, arguments, &kinds).await?;
        for location in leading.objects {
            inventory.take(location, false);
        }
        objects = objects.into_iter().flat_map(|edge| inventory.take(edge, false)).collect();
        found.followed.extend(leading.followed);
    }
    match arguments.output {
        Listing::Yaml => print(&objects, Format::Yaml, arguments)?,
        Listing::Json => print(&objects, Format::Json, arguments)?,
        Listing::Table if objects.is_empty() => {
            let here = arguments.workspace.is_none() && arguments.what != Shown::Objects;
            let hint = if here { "; --workspace names another" } else { "" };
            say!("none: there is no {} in {}{hint}", found.what, found.place);
        }
        Listing::Table => write_out(&table::set(&columns, &objects, Timestamp::now()))?,
    }
    if let ([summary], Shown::Summary, Listing::Table, Some(_)) =
        (&objects[..], arguments.what, arguments.output, &arguments.name)
    {
        write_out(&broken(summary, Timestamp::now()))?;
    }
    if !arguments.watch {
        return Ok(());
    }
    let inventory = RefCell::new(inventory);
    let shown = |object: Value, action: &str| match (arguments.output, arguments.what) {
        (Listing::Table, Shown::Edges) => {
            let concerned = inventory.borrow_mut().take(object, action == "delete");
            let rows = concerned.iter().filter(|edge| named(edge));
            let rows = rows.map(|edge| table::row(&columns, &objects, edge, Timestamp::now()));
            write_out(&rows.collect::<String>())
        }
        _ if !named(&object) => Ok(()),
        (Listing::Yaml, _) => write_out(&format!("---\n{}", yaml(&acted(tidy(object), action)))),
        (Listing::Json, _) => write_out(&format!("{:#}\n", acted(tidy(object), action))),
        (Listing::Table, _) => write_out(&table::row(&columns, &objects, &object, Timestamp::now())),
    };
    watch::follow(found.followed, found.coming, shown).await
}

/// What was found, and where it goes on.
struct Found {
    /// What it is, and where it was looked for, for people.
    what: String,
    place: String,
    objects: Vec<Value>,
    followed: Vec<Followed>,
    /// Where more of it may come from.
    coming: Option<Coming>,
}

/// Who wrote which field is for servers; kubectl leaves it out as well.
fn tidy(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

async fn of_workspace(site: &Site, arguments: &GetArguments, kinds: &[KindId]) -> Result<Found> {
    let found = listed(site, arguments, kinds).await?;
    if found.followed.is_empty() {
        let what = kinds.first().map_or("such kind", |kind| kind.resource());
        return Err(refusal(format!(
            "{} has no {what}: it has no APIBinding to {}; `ensure location` and `ensure wmw` make one, and --workspace \
             names another workspace",
            found.place,
            group::EDGE
        )));
    }
    Ok(found)
}

/// Objects of these kinds in the workspace that is meant, as far as it serves them.
async fn listed(site: &Site, arguments: &GetArguments, kinds: &[KindId]) -> Result<Found> {
    let (path, cluster) = site.named(arguments.workspace.as_deref()).await?;
    let (mut objects, mut followed) = (Vec::new(), Vec::new());
    for kind in kinds {
        match list_and_version(&cluster, kind, "").await {
            Ok((found, from)) => {
                objects.extend(found);
                followed.push(Followed { cluster: site.at(&path), kind: kind.clone(), from, edge: None });
            }
            Err(fault) if fault.kind == FaultKind::Unserved => {}
            Err(fault) => {
                return Err(before_writing(&format!("{kind} in {path} cannot be listed"), &fault));
            }
        }
    }
    let singular = arguments.what.singular().to_owned();
    Ok(Found { what: singular, place: format!("the workspace {path}"), objects, followed, coming: None })
}

/// Notes on an object at which edge it is, for as long as it is shown.
fn at_edge(mut object: Value, edge: Option<&str>) -> Value {
    if let Some(edge) = edge {
        object["metadata"]["annotations"][EDGE] = Value::from(edge);
    }
    object
}

fn edge_of(object: &Value) -> String {
    object["metadata"]["annotations"][EDGE].as_str().unwrap_or_default().to_owned()
}

fn name(object: &Value, _: Timestamp) -> String {
    text(object, "/metadata/name")
}

fn created(object: &Value, now: Timestamp) -> String {
    age(object, "/metadata/creationTimestamp", now)
}

fn placement_columns() -> Vec<Column> {
    vec![
        Column { heading: "NAME", cell: name },
        Column { heading: "EDGES", cell: |object, _| text(object, "/status/destinationCount") },
        Column { heading: "OBJECTS", cell: |object, _| text(object, "/status/matchedObjectCount") },
        Column { heading: "READY", cell: |object, _| condition(object, "Ready") },
        Column {
            heading: "HELD",
            cell: |object, _| text(object, "/status/awaitingConfirmation/withdrawals"),
        },
        Column { heading: "AGE", cell: created },
    ]
}

fn edge_columns() -> Vec<Column> {
    vec![
        Column { heading: "NAME", cell: name },
        Column { heading: "READY", cell: |object, _| condition(object, "Ready") },
        Column { heading: "CORDONED", cell: |object, _| text(object, "/spec/unschedulable") },
        Column { heading: "SILENT FOR", cell: silence },
        Column { heading: "LOCATIONS", cell: |edge, _| edges::locations(edge) },
        Column { heading: "LABELS", cell: |edge, _| edges::labels(edge) },
        Column { heading: "AGE", cell: created },
    ]
}

/// How long nothing was heard of an edge that is not heard of any more. The center writes down only now and then when it
/// last heard of one that is.
fn silence(edge: &Value, now: Timestamp) -> String {
    if condition(edge, "Ready") == "True" {
        return String::new();
    }
    age(edge, "/status/lastSyncerHeartbeatTime", now)
}

fn summary_columns() -> Vec<Column> {
    vec![
        Column { heading: "NAME", cell: name },
        Column { heading: "PLACEMENT", cell: |object, _| text(object, "/spec/placementName") },
        Column { heading: "WANTED", cell: |object, _| text(object, "/status/totals/wanted") },
        Column { heading: "DELIVERED", cell: |object, _| text(object, "/status/totals/delivered") },
        Column { heading: "CURRENT", cell: |object, _| text(object, "/status/totals/current") },
        Column { heading: "HEALTHY", cell: |object, _| text(object, "/status/totals/healthy") },
        Column { heading: "BROKEN", cell: |object, _| text(object, "/status/totals/broken") },
        Column { heading: "STALE", cell: |object, _| text(object, "/status/totals/stale") },
        Column { heading: "AGE", cell: created },
    ]
}

/// The broken copies that a summary lists, and how many it leaves out.
fn broken(summary: &Value, now: Timestamp) -> String {
    let listed = summary["status"]["broken"].as_array().cloned().unwrap_or_default();
    if listed.is_empty() {
        return String::new();
    }
    let columns = [
        Column { heading: "EDGE", cell: |copy, _| text(copy, "/edge") },
        Column {
            heading: "OBJECT",
            cell: |copy, _| {
                let (group, namespace) = (text(copy, "/group"), text(copy, "/namespace"));
                let group = if group.is_empty() { group } else { format!(".{group}") };
                let namespace = if namespace.is_empty() { namespace } else { format!("{namespace}/") };
                format!("{}{group} {namespace}{}", text(copy, "/resource"), text(copy, "/name"))
            },
        },
        Column { heading: "REASON", cell: |copy, _| text(copy, "/reason") },
        Column { heading: "SINCE", cell: |copy, now| age(copy, "/since", now) },
        Column { heading: "MESSAGE", cell: |copy, _| text(copy, "/message") },
    ];
    let omitted = summary["status"]["brokenOmitted"].as_i64().map(|more| format!("and {more} more\n"));
    format!("\n{}{}", table::set(&columns, &listed, now), omitted.unwrap_or_default())
}

fn object_columns() -> Vec<Column> {
    vec![
        Column { heading: "EDGE", cell: |object, _| edge_of(object) },
        Column { heading: "NAMESPACE", cell: |object, _| text(object, "/metadata/namespace") },
        Column { heading: "NAME", cell: name },
        Column { heading: "AGE", cell: created },
    ]
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn broken_copies_are_listed_with_what_is_left_out() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let since = Timestamp::from_second(999_940).unwrap().to_string();
        let summary = json!({ "status": { "brokenOmitted": 3, "broken": [{ "group": "apps", "resource": "deployments",
            "namespace": "shop", "name": "web", "edge": "florin", "reason": "Stalled", "since": since, "message": "no" }] } });
        assert_eq!(
            broken(&summary, now),
            "\nEDGE     OBJECT                      REASON    SINCE   MESSAGE\n\
             florin   deployments.apps shop/web   Stalled   60s     no\nand 3 more\n"
        );
        assert_eq!(broken(&json!({}), now), "");
    }
}
