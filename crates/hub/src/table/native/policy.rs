//! The cells of kinds that say who may do what and how much of it, and of those that few have.

use mailboat_object::timestamp::human_duration;
use serde_json::Value;

use super::Cell;
use super::text::{either, is, list, number, or, or_none, or_unset, selector, text};

pub(super) fn cell(resource: &str, heading: &str) -> Option<Cell> {
    Some(match (resource, heading) {
        ("rolebindings" | "clusterrolebindings", "Role") => {
            |binding, _| pair(&binding["roleRef"], "kind", "name")
        }
        ("rolebindings" | "clusterrolebindings", "Users") => |binding, _| subjects(binding, "User"),
        ("rolebindings" | "clusterrolebindings", "Groups") => |binding, _| subjects(binding, "Group"),
        ("rolebindings" | "clusterrolebindings", "ServiceAccounts") => {
            |binding, _| subjects(binding, "ServiceAccount")
        }
        ("poddisruptionbudgets", "Min Available") => |budget, _| bound(&budget["spec"]["minAvailable"]),
        ("poddisruptionbudgets", "Max Unavailable") => |budget, _| bound(&budget["spec"]["maxUnavailable"]),
        ("poddisruptionbudgets", "Allowed Disruptions") => {
            |budget, _| number(&budget["status"]["disruptionsAllowed"]).into()
        }
        ("certificatesigningrequests", "SignerName") => |request, _| or_none(&request["spec"]["signerName"]),
        ("certificatesigningrequests", "Requestor") => |request, _| text(&request["spec"]["username"]),
        ("certificatesigningrequests", "RequestedDuration") => {
            |request, _| match request["spec"]["expirationSeconds"].as_u64() {
                Some(seconds) => human_duration(seconds).into(),
                None => "<none>".into(),
            }
        }
        ("certificatesigningrequests", "Condition") => |request, _| signing(request).into(),
        ("leases", "Holder") => |lease, _| text(&lease["spec"]["holderIdentity"]),
        ("mutatingwebhookconfigurations" | "validatingwebhookconfigurations", "Webhooks") => {
            |hooks, _| list(&hooks["webhooks"]).len().into()
        }
        ("validatingadmissionpolicies", "Validations") => {
            |policy, _| list(&policy["spec"]["validations"]).len().into()
        }
        ("mutatingadmissionpolicies", "Mutations") => {
            |policy, _| list(&policy["spec"]["mutations"]).len().into()
        }
        ("validatingadmissionpolicies" | "mutatingadmissionpolicies", "ParamKind") => {
            |policy, _| match &policy["spec"]["paramKind"] {
                Value::Null => "<unset>".into(),
                kind => pair(kind, "apiVersion", "kind"),
            }
        }
        ("validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings", "PolicyName") => {
            |binding, _| text(&binding["spec"]["policyName"])
        }
        ("validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings", "ParamRef") => {
            |binding, _| parameters(&binding["spec"]["paramRef"])
        }
        ("priorityclasses", "Value") => |class, _| number(&class["value"]).into(),
        ("priorityclasses", "Global-Default") => |class, _| is(&class["globalDefault"]).into(),
        ("priorityclasses", "PreemptionPolicy") => |class, _| text(&class["preemptionPolicy"]),
        ("runtimeclasses", "Handler") => |class, _| text(&class["handler"]),
        ("flowschemas", "PriorityLevel") => {
            |flow, _| text(&flow["spec"]["priorityLevelConfiguration"]["name"])
        }
        ("flowschemas", "MatchingPrecedence") => |flow, _| number(&flow["spec"]["matchingPrecedence"]).into(),
        ("flowschemas", "DistinguisherMethod") => {
            |flow, _| or_none(&flow["spec"]["distinguisherMethod"]["type"])
        }
        ("flowschemas", "MissingPL") => |flow, _| {
            let dangling =
                list(&flow["status"]["conditions"]).iter().find(|found| found["type"] == "Dangling");
            dangling.map_or_else(|| "?".into(), |found| text(&found["status"]))
        },
        ("prioritylevelconfigurations", "Type") => |level, _| text(&level["spec"]["type"]),
        ("prioritylevelconfigurations", "NominalConcurrencyShares") => {
            |level, _| counted(&level["spec"]["limited"]["nominalConcurrencyShares"])
        }
        ("prioritylevelconfigurations", "Queues") => |level, _| queuing(level, "queues"),
        ("prioritylevelconfigurations", "HandSize") => |level, _| queuing(level, "handSize"),
        ("prioritylevelconfigurations", "QueueLengthLimit") => |level, _| queuing(level, "queueLengthLimit"),
        ("apiservices", "Service") => |service, _| match &service["spec"]["service"] {
            Value::Null => "Local".into(),
            there => pair(there, "namespace", "name"),
        },
        ("apiservices", "Available") => |service, _| available(service),
        ("resourceclaims", "State") => |claim, _| claimed(claim).into(),
        ("resourceslices", "Node") => |slice, _| text(&slice["spec"]["nodeName"]),
        ("resourceslices", "Driver") => |slice, _| text(&slice["spec"]["driver"]),
        ("resourceslices", "Pool") => |slice, _| text(&slice["spec"]["pool"]["name"]),
        _ => return None,
    })
}

fn pair(of: &Value, first: &str, second: &str) -> Value {
    let told = |member: &str| of[member].as_str().unwrap_or_default();
    format!("{}/{}", told(first), told(second)).into()
}

fn bound(value: &Value) -> Value {
    either(value).unwrap_or_else(|| "N/A".to_owned()).into()
}

fn counted(value: &Value) -> Value {
    if value.is_null() { "<none>".into() } else { value.clone() }
}

fn queuing(level: &Value, member: &str) -> Value {
    counted(&level["spec"]["limited"]["limitResponse"]["queuing"][member])
}

/// Those of one kind whom a binding names.
fn subjects(binding: &Value, kind: &str) -> Value {
    let told = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let these = list(&binding["subjects"]).iter().filter(|subject| subject["kind"] == kind);
    let names = these.map(|subject| match subject["namespace"].as_str() {
        Some(namespace) if kind == "ServiceAccount" => format!("{namespace}/{}", told(&subject["name"])),
        _ => told(&subject["name"]),
    });
    names.collect::<Vec<_>>().join(", ").into()
}

/// What was decided on a request for a certificate, and what came of it.
fn signing(request: &Value) -> String {
    let has = |what: &str| list(&request["status"]["conditions"]).iter().any(|found| found["type"] == what);
    let decided = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let is_issued = request["status"]["certificate"].as_str().is_some_and(|found| !found.is_empty());
    format!("{decided}{failed}{}", if is_issued { ",Issued" } else { "" })
}

fn parameters(reference: &Value) -> Value {
    let told = |member: &str| reference[member].as_str().filter(|text| !text.is_empty());
    match (told("namespace"), told("name")) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}").into(),
        (None, Some(name)) => format!("*/{name}").into(),
        (_, None) if reference["selector"].is_object() => selector(&reference["selector"]).into(),
        (_, None) => or_unset(&Value::Null),
    }
}

fn available(service: &Value) -> Value {
    let found = list(&service["status"]["conditions"]).iter().find(|found| found["type"] == "Available");
    let Some(found) = found else { return "Unknown".into() };
    let status = or(&found["status"], "Unknown");
    match found["reason"].as_str().filter(|reason| !reason.is_empty() && status != "True") {
        Some(reason) => format!("{} ({reason})", status.as_str().unwrap_or_default()).into(),
        None => status,
    }
}

fn claimed(claim: &Value) -> String {
    let goes = !claim["metadata"]["deletionTimestamp"].is_null();
    let mut states = Vec::new();
    if goes {
        states.push("deleted");
    }
    if claim["status"]["allocation"].is_null() {
        if !goes {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        if !list(&claim["status"]["reservedFor"]).is_empty() {
            states.push("reserved");
        }
    }
    states.join(",")
}
