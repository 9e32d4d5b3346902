//! The cells of what makes Pods, and of what scales it.

use mailboat_object::timestamp::unix_seconds;
use serde_json::Value;

use super::Cell;
use super::text::{holds, joined, list, number, or_none, pairs, selector, since, text};

pub(super) fn cell(resource: &str, heading: &str) -> Option<Cell> {
    let shared = match heading {
        "Containers" => Some(containers as Cell),
        "Images" => Some(images as Cell),
        _ => None,
    };
    if shared.is_some() {
        return shared;
    }
    match resource {
        "deployments" => deployment(heading),
        "replicasets" | "replicationcontrollers" => replica_set(resource, heading),
        "daemonsets" => daemon_set(heading),
        "jobs" => job(heading),
        "cronjobs" => cron_job(heading),
        "horizontalpodautoscalers" => autoscaler(heading),
        _ => other(resource, heading),
    }
}

/// The Pods that an object makes.
fn template(object: &Value) -> &Value {
    let spec = &object["spec"];
    let [direct, jobs, own] =
        [&spec["template"], &spec["jobTemplate"]["spec"]["template"], &object["template"]];
    [direct, jobs].into_iter().find(|template| !template.is_null()).unwrap_or(own)
}

fn containers(object: &Value, _: u64) -> Value {
    joined(&template(object)["spec"]["containers"], "name").into()
}

fn images(object: &Value, _: u64) -> Value {
    joined(&template(object)["spec"]["containers"], "image").into()
}

fn deployment(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Ready" => |deployment, _| ready(deployment),
        "Up-to-date" => |deployment, _| number(&deployment["status"]["updatedReplicas"]).into(),
        "Available" => |deployment, _| number(&deployment["status"]["availableReplicas"]).into(),
        "Selector" => |deployment, _| selector(&deployment["spec"]["selector"]).into(),
        _ => return None,
    })
}

fn ready(object: &Value) -> Value {
    format!("{}/{}", number(&object["status"]["readyReplicas"]), number(&object["spec"]["replicas"])).into()
}

fn replica_set(resource: &str, heading: &str) -> Option<Cell> {
    Some(match heading {
        "Desired" => |set, _| number(&set["spec"]["replicas"]).into(),
        "Current" => |set, _| number(&set["status"]["replicas"]).into(),
        "Ready" => |set, _| number(&set["status"]["readyReplicas"]).into(),
        // The older kind selects by labels alone.
        "Selector" if resource == "replicationcontrollers" => |set, _| pairs(&set["spec"]["selector"]).into(),
        "Selector" => |set, _| selector(&set["spec"]["selector"]).into(),
        _ => return None,
    })
}

fn daemon_set(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Desired" => |set, _| number(&set["status"]["desiredNumberScheduled"]).into(),
        "Current" => |set, _| number(&set["status"]["currentNumberScheduled"]).into(),
        "Ready" => |set, _| number(&set["status"]["numberReady"]).into(),
        "Up-to-date" => |set, _| number(&set["status"]["updatedNumberScheduled"]).into(),
        "Available" => |set, _| number(&set["status"]["numberAvailable"]).into(),
        "Node Selector" => |set, _| pairs(&template(set)["spec"]["nodeSelector"]).into(),
        "Selector" => |set, _| selector(&set["spec"]["selector"]).into(),
        _ => return None,
    })
}

fn job(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Status" => |job, _| {
            const BEFORE: [&str; 2] = ["Complete", "Failed"];
            const AFTER: [&str; 3] = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
            let goes = !job["metadata"]["deletionTimestamp"].is_null();
            let found = |states: &[&'static str]| states.iter().copied().find(|state| holds(job, state));
            let state = found(&BEFORE).or(goes.then_some("Terminating")).or_else(|| found(&AFTER));
            state.unwrap_or("Running").into()
        },
        "Completions" => |job, _| {
            let (done, together) = (number(&job["status"]["succeeded"]), number(&job["spec"]["parallelism"]));
            match job["spec"]["completions"].as_i64() {
                Some(wanted) => format!("{done}/{wanted}").into(),
                None if together > 1 => format!("{done}/1 of {together}").into(),
                None => format!("{done}/1").into(),
            }
        },
        "Duration" => |job, now| match (&job["status"]["startTime"], &job["status"]["completionTime"]) {
            (Value::Null, _) => "".into(),
            (start, Value::String(end)) => since(start, unix_seconds(end).unwrap_or(now)),
            (start, _) => since(start, now),
        },
        "Selector" => |job, _| selector(&job["spec"]["selector"]).into(),
        _ => return None,
    })
}

fn cron_job(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Schedule" => |job, _| text(&job["spec"]["schedule"]),
        "Timezone" => |job, _| or_none(&job["spec"]["timeZone"]),
        "Suspend" => |job, _| match job["spec"]["suspend"].as_bool() {
            Some(true) => "True".into(),
            Some(false) => "False".into(),
            None => "<unset>".into(),
        },
        "Active" => |job, _| list(&job["status"]["active"]).len().into(),
        "Last Schedule" => |job, now| match &job["status"]["lastScheduleTime"] {
            Value::Null => "<none>".into(),
            time => since(time, now),
        },
        "Selector" => |job, _| selector(&job["spec"]["jobTemplate"]["spec"]["selector"]).into(),
        _ => return None,
    })
}

fn other(resource: &str, heading: &str) -> Option<Cell> {
    Some(match (resource, heading) {
        ("statefulsets", "Ready") => |set, _| ready(set),
        ("podtemplates", "Pod Labels") => |object, _| pairs(&template(object)["metadata"]["labels"]).into(),
        ("controllerrevisions", "Controller") => |revision, _| controller(revision).into(),
        ("controllerrevisions", "Revision") => |revision, _| number(&revision["revision"]).into(),
        _ => return None,
    })
}

/// Which object keeps this one: kind, group and name.
fn controller(object: &Value) -> String {
    let owners = list(&object["metadata"]["ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return "<none>".to_owned();
    };
    let told = |member: &str| owner[member].as_str().unwrap_or_default();
    let group = told("apiVersion").split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
    format!("{}/{}", format!("{}{group}", told("kind")).to_lowercase(), told("name"))
}

fn autoscaler(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Reference" => |scaler, _| {
            let told = |member: &str| scaler["spec"]["scaleTargetRef"][member].as_str().unwrap_or_default();
            format!("{}/{}", told("kind"), told("name")).into()
        },
        "Targets" => |scaler, _| targets(scaler).into(),
        "MinPods" => |scaler, _| match scaler["spec"]["minReplicas"].as_i64() {
            Some(least) => least.to_string().into(),
            None => "<unset>".into(),
        },
        "MaxPods" => |scaler, _| number(&scaler["spec"]["maxReplicas"]).into(),
        "Replicas" => |scaler, _| number(&scaler["status"]["currentReplicas"]).into(),
        _ => return None,
    })
}

/// What an autoscaler aims at, and how far it is.
fn targets(scaler: &Value) -> String {
    let all = list(&scaler["spec"]["metrics"]);
    if all.is_empty() {
        return "<none>".to_owned();
    }
    let told = |(index, metric): (usize, &Value)| {
        let member = match metric["type"].as_str().unwrap_or_default() {
            "Resource" => "resource",
            "ContainerResource" => "containerResource",
            "Pods" => "pods",
            "Object" => "object",
            "External" => "external",
            _ => return "<unknown type>".to_owned(),
        };
        let (wanted, found) =
            (&metric[member]["target"], &scaler["status"]["currentMetrics"][index][member]["current"]);
        let value = |of: &Value| match (&of["averageUtilization"], &of["averageValue"], &of["value"]) {
            (Value::Number(share), _, _) => Some(format!("{share}%")),
            (_, Value::String(average), _) => Some(average.clone()),
            (_, _, Value::String(value)) => Some(value.clone()),
            _ => None,
        };
        let is_average = wanted["averageValue"].is_string();
        let (found, wanted) = (value(found).unwrap_or_else(|| "<unknown>".to_owned()), value(wanted));
        let name = metric[member]["name"].as_str().map(|name| format!("{name}: ")).unwrap_or_default();
        let average = if matches!(member, "object" | "external") && is_average { " (avg)" } else { "" };
        format!("{name}{found}/{}{average}", wanted.unwrap_or_else(|| "<auto>".to_owned()))
    };
    let first: Vec<String> = all.iter().enumerate().take(2).map(told).collect();
    match all.len() {
        0..=2 => first.join(", "),
        more => format!("{} + {} more...", first.join(", "), more - 2),
    }
}
