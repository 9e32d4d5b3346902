//! HorizontalPodAutoscalers: kept as `autoscaling/v2`. The first version knows one metric; all that it cannot say is kept in
//! annotations, under Kubernetes' own names and in its own words for metrics.

use serde_json::{Map, Value, json};

use super::default;
use crate::convert::Conversion;
use crate::status::FieldError;

/// How `autoscaling/v1` is kept.
pub(super) const CONVERSION: Conversion = Conversion { show, keep, fields: &[], check: None };

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// The share of the processor that is aimed at where nobody says anything.
const TARGET_UTILIZATION: i64 = 80;

/// Kinds of metrics: the member that holds one, and what the first version calls its values.
struct Source {
    kind: &'static str,
    member: &'static str,
    /// Members that stand in both.
    same: &'static [&'static str],
    /// The metric's name and selector in the first version; none: it is named as its resource is.
    metric: Option<(&'static str, &'static str)>,
    /// Its target or its current values: average utilization, average value, value.
    target: [&'static str; 3],
    current: [&'static str; 3],
}

const SOURCES: [Source; 5] = [
    Source {
        kind: "Resource",
        member: "resource",
        same: &["name"],
        metric: None,
        target: ["targetAverageUtilization", "targetAverageValue", ""],
        current: ["currentAverageUtilization", "currentAverageValue", ""],
    },
    Source {
        kind: "ContainerResource",
        member: "containerResource",
        same: &["name", "container"],
        metric: None,
        target: ["targetAverageUtilization", "targetAverageValue", ""],
        current: ["currentAverageUtilization", "currentAverageValue", ""],
    },
    Source {
        kind: "Pods",
        member: "pods",
        same: &[],
        metric: Some(("metricName", "selector")),
        target: ["", "targetAverageValue", ""],
        current: ["", "currentAverageValue", ""],
    },
    Source {
        kind: "Object",
        member: "object",
        same: &[],
        metric: Some(("metricName", "selector")),
        target: ["", "averageValue", "targetValue"],
        current: ["", "averageValue", "currentValue"],
    },
    Source {
        kind: "External",
        member: "external",
        same: &[],
        metric: Some(("metricName", "metricSelector")),
        target: ["", "targetAverageValue", "targetValue"],
        current: ["", "currentAverageValue", "currentValue"],
    },
];
/// What the second version calls values, and the type of a target that has one.
const VALUES: [(&str, &str); 3] =
    [("averageUtilization", "Utilization"), ("averageValue", "AverageValue"), ("value", "Value")];

pub(super) fn default_autoscaler(autoscaler: &mut Value) {
    default(autoscaler, "spec", json!({}));
    default(autoscaler, "status", json!({}));
    let spec = &mut autoscaler["spec"];
    default(spec, "minReplicas", 1);
    if spec["metrics"].as_array().is_none_or(Vec::is_empty) {
        spec["metrics"] = json!([of_processor(&TARGET_UTILIZATION.into())]);
    }
    for (direction, policies, window) in [
        (
            "scaleUp",
            json!([
                { "type": "Pods", "value": 4, "periodSeconds": 15 },
                { "type": "Percent", "value": 100, "periodSeconds": 15 },
            ]),
            Some(0),
        ),
        ("scaleDown", json!([{ "type": "Percent", "value": 100, "periodSeconds": 15 }]), None),
    ] {
        if spec["behavior"].is_object() {
            default(&mut spec["behavior"], direction, json!({}));
            let rules = &mut spec["behavior"][direction];
            default(rules, "selectPolicy", "Max");
            default(rules, "policies", policies);
            if let Some(window) = window {
                default(rules, "stabilizationWindowSeconds", window);
            }
        }
    }
    let status = &mut autoscaler["status"];
    default(status, "desiredReplicas", 0);
    default(status, "currentMetrics", Value::Null);
}

pub(super) fn check_autoscaler(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &new["spec"];
    let (least, most) =
        (spec["minReplicas"].as_i64().unwrap_or(1), spec["maxReplicas"].as_i64().unwrap_or(0));
    if least < 1 {
        errors.push(FieldError::invalid(
            "spec.minReplicas",
            &least.into(),
            "must be greater than or equal to 1",
        ));
    }
    if most == 0 {
        errors.push(FieldError::required("spec.maxReplicas", "must be set and greater than 0"));
    } else if most < 0 {
        errors.push(FieldError::invalid(
            "spec.maxReplicas",
            &most.into(),
            "must be greater than or equal to 1",
        ));
    }
    if most < least {
        let what = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", &most.into(), what));
    }
    for member in ["kind", "name"] {
        // One that is not there at all is missed by the schema.
        if spec["scaleTargetRef"][member] == "" {
            errors.push(FieldError::required(&format!("spec.scaleTargetRef.{member}"), ""));
        }
    }
    errors
}

fn of_processor(utilization: &Value) -> Value {
    json!({ "type": "Resource", "resource": {
        "name": "cpu", "target": { "type": "Utilization", "averageUtilization": utilization },
    } })
}

fn is_of_processor(metric: &Value, values: &str) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && metric["resource"][values]["averageUtilization"].is_number()
}

fn show(autoscaler: &mut Value) {
    if let Some(Value::Array(metrics)) = remove(autoscaler, "spec", "metrics") {
        let first = metrics.iter().find(|metric| is_of_processor(metric, "target"));
        if let Some(metric) = first {
            let wanted = metric["resource"]["target"]["averageUtilization"].clone();
            autoscaler["spec"]["targetCPUUtilizationPercentage"] = wanted;
        }
        let others = metrics.iter().filter(|metric| !is_of_processor(metric, "target"));
        note(autoscaler, METRICS, others.map(|metric| to_former(metric, "target")).collect());
    }
    if let Some(Value::Array(metrics)) = remove(autoscaler, "status", "currentMetrics") {
        if let Some(metric) = metrics.iter().find(|metric| is_of_processor(metric, "current")) {
            let found = metric["resource"]["current"]["averageUtilization"].clone();
            autoscaler["status"]["currentCPUUtilizationPercentage"] = found;
        }
        note(
            autoscaler,
            CURRENT_METRICS,
            metrics.iter().map(|metric| to_former(metric, "current")).collect(),
        );
    }
    if let Some(behavior @ Value::Object(_)) = remove(autoscaler, "spec", "behavior") {
        // There it is written down as Go calls it.
        write(autoscaler, BEHAVIOR, &respelled(&behavior, str::to_ascii_uppercase));
    }
    if let Some(Value::Array(conditions)) = remove(autoscaler, "status", "conditions") {
        note(autoscaler, CONDITIONS, conditions);
    }
    if autoscaler["status"].is_object() {
        default(&mut autoscaler["status"], "currentReplicas", 0);
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it stands beside conversions that can fail")]
fn keep(autoscaler: &mut Value) -> Result<(), String> {
    let wanted =
        remove(autoscaler, "spec", "targetCPUUtilizationPercentage").filter(|wanted| !wanted.is_null());
    let mut metrics: Vec<Value> = match take(autoscaler, METRICS) {
        Some(Value::Array(others)) => others.iter().map(|metric| to_kept(metric, "target")).collect(),
        _ => Vec::new(),
    };
    metrics.extend(wanted.as_ref().map(of_processor));
    if !metrics.is_empty() {
        autoscaler["spec"]["metrics"] = metrics.into();
    }
    let found =
        remove(autoscaler, "status", "currentCPUUtilizationPercentage").filter(|found| !found.is_null());
    let current: Vec<Value> = match take(autoscaler, CURRENT_METRICS) {
        Some(Value::Array(metrics)) => metrics.iter().map(|metric| to_kept(metric, "current")).collect(),
        _ => found
            .iter()
            .map(|found| {
                json!({ "type": "Resource", "resource": {
            "name": "cpu", "current": { "averageUtilization": found },
        } })
            })
            .collect(),
    };
    if !current.is_empty() {
        autoscaler["status"]["currentMetrics"] = current.into();
    }
    if let Some(behavior @ Value::Object(_)) = take(autoscaler, BEHAVIOR) {
        autoscaler["spec"]["behavior"] = respelled(&behavior, str::to_ascii_lowercase);
    }
    if let Some(conditions @ Value::Array(_)) = take(autoscaler, CONDITIONS) {
        autoscaler["status"]["conditions"] = conditions;
    }
    Ok(())
}

/// A value whose members begin with another letter; those that are null are left out.
fn respelled(value: &Value, letter: fn(&str) -> String) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
                (format!("{}{rest}", letter(first)), respelled(value, letter))
            })
            .collect(),
        Value::Array(elements) => elements.iter().map(|element| respelled(element, letter)).collect(),
        other => other.clone(),
    }
}

impl Source {
    fn of(metric: &Value) -> Option<&'static Self> {
        SOURCES.iter().find(|source| metric["type"] == source.kind)
    }

    /// What the first version calls a metric's values.
    fn values(&self, side: &str) -> impl Iterator<Item = (&'static str, (&'static str, &'static str))> {
        let names = if side == "target" { self.target } else { self.current };
        names.into_iter().zip(VALUES).filter(|(former, _)| !former.is_empty())
    }
}

/// A metric as the first version writes it down.
fn to_former(metric: &Value, side: &str) -> Value {
    let Some(source) = Source::of(metric) else { return metric.clone() };
    let from = &metric[source.member];
    let mut to = Map::new();
    let mut put = |name: &str, value: &Value| {
        if !value.is_null() {
            to.insert(name.to_owned(), value.clone());
        }
    };
    source.same.iter().for_each(|name| put(name, &from[name]));
    put("target", &from["describedObject"]);
    if let Some((name, selector)) = source.metric {
        put(name, &from["metric"]["name"]);
        put(selector, &from["metric"]["selector"]);
    }
    for (former, (value, _)) in source.values(side) {
        put(former, &from[side][value]);
    }
    json!({ "type": source.kind, source.member: to })
}

/// A metric of the first version as it is kept.
fn to_kept(metric: &Value, side: &str) -> Value {
    let Some(source) = Source::of(metric) else { return metric.clone() };
    let from = &metric[source.member];
    let mut to = json!({});
    source.same.iter().for_each(|name| to[name] = from[name].clone());
    if from["target"].is_object() {
        to["describedObject"] = from["target"].clone();
    }
    if let Some((name, selector)) = source.metric {
        to["metric"] = json!({ "name": from[name] });
        if from[selector].is_object() {
            to["metric"]["selector"] = from[selector].clone();
        }
    }
    to[side] = json!({});
    for (former, (value, kind)) in source.values(side) {
        if !from[former].is_null() {
            to[side][value] = from[former].clone();
            if side == "target" {
                to[side]["type"] = kind.into();
            }
        }
    }
    json!({ "type": source.kind, source.member: to })
}

fn remove(autoscaler: &mut Value, part: &str, member: &str) -> Option<Value> {
    autoscaler.get_mut(part)?.as_object_mut()?.remove(member)
}

fn note(autoscaler: &mut Value, annotation: &str, values: Vec<Value>) {
    if !values.is_empty() {
        write(autoscaler, annotation, &values.into());
    }
}

fn write(autoscaler: &mut Value, annotation: &str, value: &Value) {
    if !autoscaler["metadata"]["annotations"].is_object() {
        autoscaler["metadata"]["annotations"] = json!({});
    }
    autoscaler["metadata"]["annotations"][annotation] = value.to_string().into();
}

/// Takes back what was kept in an annotation.
fn take(autoscaler: &mut Value, annotation: &str) -> Option<Value> {
    let annotations = autoscaler.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(annotation)?;
    if annotations.is_empty() {
        remove(autoscaler, "metadata", "annotations");
    }
    serde_json::from_str(text.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_autoscaler_reads_in_both_versions_and_comes_back_whole() {
        let kept = json!({
            "metadata": { "name": "a" },
            "spec": {
                "minReplicas": 2, "maxReplicas": 5,
                "metrics": [
                    { "type": "Pods", "pods": { "metric": { "name": "asked" }, "target": { "type": "AverageValue", "averageValue": "10" } } },
                    { "type": "Object", "object": { "describedObject": { "kind": "Service", "name": "web" },
                        "metric": { "name": "seen", "selector": { "matchLabels": { "a": "b" } } },
                        "target": { "type": "Value", "value": "3" } } },
                    of_processor(&json!(70)),
                ],
                "behavior": { "scaleDown": { "stabilizationWindowSeconds": 60 } },
            },
            "status": { "currentReplicas": 2, "conditions": [{ "type": "AbleToScale", "status": "True" }],
                "currentMetrics": [{ "type": "Resource", "resource": { "name": "cpu",
                    "current": { "averageUtilization": 40, "averageValue": "100m" } } }] },
        });
        let mut former = kept.clone();
        show(&mut former);
        assert_eq!(former["spec"]["targetCPUUtilizationPercentage"], 70);
        assert_eq!(former["status"]["currentCPUUtilizationPercentage"], 40);
        assert!(
            former["spec"].get("metrics").is_none() && former["spec"].get("behavior").is_none(),
            "{former}"
        );
        let metrics = former["metadata"]["annotations"][METRICS].as_str().unwrap();
        assert!(
            metrics.contains(r#""metricName":"asked""#) && metrics.contains(r#""targetValue":"3""#),
            "{metrics}"
        );
        keep(&mut former).unwrap();
        assert_eq!(former, kept);
    }
}
