//! `mailboat why`: where an object is on its way, and what holds it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;
use mailboat_center::rehearse::{AtEdge, ByPlacement, Why};
use mailboat_object::catalog::Served;
use mailboat_object::key::{Key, Name, Uid};
use mailboat_object::timestamp::human_duration;

use crate::documents::{self, Format, write_out};
use crate::failure::refusal;
use crate::flags::{WhyArguments, Wording};
use crate::survey::Survey;

/// Reads what is needed, and says it.
pub async fn run(arguments: &WhyArguments) -> Result<()> {
    let (type_, name) = named(&arguments.object)?;
    let mut survey = Survey::begin(&arguments.survey).await?;
    let served = survey.catalog.find_word(&type_).cloned();
    let served: Served = served.ok_or_else(|| {
        refusal(format!(
            "the workspace {} serves no kind called {type_:?}; `kubectl api-resources` shows them",
            survey.path
        ))
    })?;
    let cluster = survey.cluster.clone();
    survey.read_workload(&cluster, &[]).await?;
    survey.read_kind(&served.kind).await?;
    survey.read_inventories(&arguments.survey).await?;
    let namespace = if served.namespaced { arguments.namespace.as_str() } else { "" };
    let key =
        Key { cluster, kind: served.kind.clone(), namespace: Name::new(namespace), name: Name::new(&name) };
    let first = survey.rehearse();
    let meant = |name: &Name| arguments.edge.as_ref().is_none_or(|edge| name.as_str() == edge);
    let targets = first.targets().into_iter();
    let targets: BTreeSet<Uid> = targets
        .filter(|(_, leads)| meant(&leads.location.name) || meant(&leads.target.name))
        .map(|(uid, _)| uid)
        .collect();
    if targets.is_empty()
        && let Some(edge) = &arguments.edge
    {
        if survey.knows_edge(edge) == Some(false) {
            return Err(refusal(format!(
                "no inventory has an edge called {edge:?}; `kubectl mailboat get edges --workspace` with an inventory \
                 workspace shows those that there are"
            )));
        }
        say!("note: no placement of {} goes to an edge called {edge:?}", survey.path);
    }
    if first.object(&key).is_none() {
        let of = if namespace.is_empty() { String::new() } else { format!("the namespace {namespace} of ") };
        return Err(refusal(format!("{} {name:?} is not in {of}{}", served.kind, survey.path)));
    }
    survey.read_mailboxes(&targets, Some(&served.kind)).await?;
    let Some(why) = survey.rehearse().why(&key, arguments.edge.as_deref()) else {
        return Err(refusal(format!("{key} is gone meanwhile")));
    };
    match arguments.survey.output {
        Wording::Text => write_out(&text(&why, &survey.path.to_string(), survey.setting.now)),
        Wording::Yaml => documents::print(&[serde_json::to_value(&why)?], Format::Yaml),
        Wording::Json => documents::print(&[serde_json::to_value(&why)?], Format::Json),
    }
}

/// A type and a name, from one word or two.
fn named(words: &[String]) -> Result<(String, String)> {
    let pair = match words {
        [one] => one.split_once('/').map(|(type_, name)| (type_.to_owned(), name.to_owned())),
        [type_, name] => Some((type_.clone(), name.clone())),
        _ => None,
    };
    let pair = pair.filter(|(type_, name)| !type_.is_empty() && !name.is_empty());
    pair.ok_or_else(|| refusal("name the object as TYPE/NAME or TYPE NAME, such as deployment/web"))
}

fn text(why: &Why, workspace: &str, now: u64) -> String {
    let object = &why.object;
    let group = if object.group.is_empty() { String::new() } else { format!(".{}", object.group) };
    let namespace =
        if object.namespace.is_empty() { String::new() } else { format!("{}/", object.namespace) };
    let mut text = format!("{}{group} {namespace}{} in {workspace}", object.resource, object.name);
    if let Some(changed) = why.changed {
        let _ = write!(text, ", changed {} ago", since(changed, now));
    }
    text.push('\n');
    if let Some(excluded) = &why.excluded {
        let _ = writeln!(text, "it is never sent to edges: {excluded}");
    } else if why.placements.is_empty() {
        text.push_str("there is no EdgePlacement in its workspace, so it goes nowhere\n");
    }
    for placement in &why.placements {
        tell_placement(&mut text, placement, now);
    }
    text
}

fn tell_placement(text: &mut String, told: &ByPlacement, now: u64) {
    let name = &told.placement;
    let _ = match (&told.selected_by, &told.undecided) {
        (_, Some(why)) => writeln!(text, "EdgePlacement {name}: not decided, and so left as it is: {why}"),
        (Some(by), None) if told.edges.is_empty() => {
            writeln!(text, "EdgePlacement {name}: selected by {by}; it goes to no edge that is asked about")
        }
        (Some(by), None) => writeln!(text, "EdgePlacement {name}: selected by {by}"),
        (None, None) => writeln!(text, "EdgePlacement {name}: no entry of spec.downsync selects it"),
    };
    for edge in &told.edges {
        tell_edge(text, edge, now);
    }
}

fn tell_edge(text: &mut String, edge: &AtEdge, now: u64) {
    let _ = writeln!(text, "  edge {} (SyncTarget {})", edge.location, edge.sync_target);
    if let Some(how) = &edge.customized {
        let expanded = how.expands_parameters.then(|| "its parameters are expanded".to_owned());
        let customizer = how.customizer.as_ref().map(|name| format!("the Customizer {name} is applied"));
        let differs = (!how.paths.is_empty()).then(|| format!("it differs at {}", how.paths.join(", ")));
        let how: Vec<String> = [expanded, customizer, differs].into_iter().flatten().collect();
        let _ = writeln!(text, "    customized: {}", how.join("; "));
    }
    for hop in &edge.hops {
        let sign = if hop.done { "✓" } else { "…" };
        let _ = write!(text, "    {sign} {}: {}", hop.to, hop.state);
        match (hop.took_seconds, hop.at) {
            (Some(took), Some(at)) => {
                let _ = write!(text, " ({} ago, after {took}s)", since(at, now));
            }
            (None, Some(at)) => {
                let _ = write!(text, " ({} ago)", since(at, now));
            }
            _ => {}
        }
        text.push('\n');
    }
    if let Some(held) = &edge.held {
        let _ = writeln!(text, "    held: {held}");
    }
}

fn since(at: u64, now: u64) -> String {
    human_duration(now.saturating_sub(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Refusal;

    #[test]
    fn an_object_is_named_by_one_word_or_two() {
        let words = |words: &[&str]| named(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        for good in [&["deployment/web"][..], &["deployment", "web"]] {
            assert_eq!(words(good).unwrap(), ("deployment".to_owned(), "web".to_owned()));
        }
        for bad in [&["web"][..], &["/web"], &["deployment/"]] {
            assert!(words(bad).unwrap_err().is::<Refusal>(), "{bad:?}");
        }
    }
}
