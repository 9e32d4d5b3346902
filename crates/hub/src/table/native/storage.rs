//! The cells of volumes, and of what makes them.

use serde_json::Value;

use super::Cell;
use super::text::{is, joined, list, or, or_none, or_unset, text, texts};

/// How volumes may be mounted, and in how few letters that is said.
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];
/// Where older objects name their class.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub(super) fn cell(resource: &str, heading: &str) -> Option<Cell> {
    Some(match (resource, heading) {
        ("persistentvolumes", "Capacity") => |volume, _| or(&volume["spec"]["capacity"]["storage"], "0"),
        ("persistentvolumes", "Access Modes") => |volume, _| modes(&volume["spec"]["accessModes"]),
        ("persistentvolumes", "Reclaim Policy") => {
            |volume, _| text(&volume["spec"]["persistentVolumeReclaimPolicy"])
        }
        ("persistentvolumes" | "persistentvolumeclaims", "Status") => |object, _| {
            let goes = !object["metadata"]["deletionTimestamp"].is_null();
            if goes { "Terminating".into() } else { text(&object["status"]["phase"]) }
        },
        ("persistentvolumes", "Claim") => |volume, _| match &volume["spec"]["claimRef"] {
            Value::Object(claim) => {
                let told = |member: &str| claim.get(member).and_then(Value::as_str).unwrap_or_default();
                format!("{}/{}", told("namespace"), told("name")).into()
            }
            _ => "".into(),
        },
        ("persistentvolumes" | "persistentvolumeclaims", "StorageClass") => |object, _| {
            let old = &object["metadata"]["annotations"][OLD_CLASS];
            text(if old.is_string() { old } else { &object["spec"]["storageClassName"] })
        },
        ("persistentvolumes" | "persistentvolumeclaims", "VolumeAttributesClass") => {
            |object, _| or_unset(&object["spec"]["volumeAttributesClassName"])
        }
        ("persistentvolumes" | "persistentvolumeclaims", "VolumeMode") => {
            |object, _| or_unset(&object["spec"]["volumeMode"])
        }
        ("persistentvolumes", "Reason") => |volume, _| text(&volume["status"]["reason"]),
        ("persistentvolumeclaims", "Volume") => |claim, _| text(&claim["spec"]["volumeName"]),
        ("persistentvolumeclaims", "Capacity") => |claim, _| {
            if is_bound(claim) { or(&claim["status"]["capacity"]["storage"], "0") } else { "".into() }
        },
        ("persistentvolumeclaims", "Access Modes") => {
            |claim, _| if is_bound(claim) { modes(&claim["status"]["accessModes"]) } else { "".into() }
        }
        ("storageclasses", "Name") => |class, _| {
            let is = |name: &&str| class["metadata"]["annotations"][*name] == "true";
            named(class, DEFAULT.iter().any(is))
        },
        ("storageclasses", "Provisioner") => |class, _| text(&class["provisioner"]),
        ("storageclasses", "ReclaimPolicy") => |class, _| or(&class["reclaimPolicy"], "Delete"),
        ("storageclasses", "VolumeBindingMode") => |class, _| or(&class["volumeBindingMode"], "Immediate"),
        ("storageclasses", "AllowVolumeExpansion") => |class, _| is(&class["allowVolumeExpansion"]).into(),
        ("volumeattributesclasses", "DriverName") => |class, _| text(&class["driverName"]),
        ("volumeattachments", "Attacher") => |attachment, _| text(&attachment["spec"]["attacher"]),
        ("volumeattachments", "PV") => {
            |attachment, _| text(&attachment["spec"]["source"]["persistentVolumeName"])
        }
        ("volumeattachments", "Node") => |attachment, _| text(&attachment["spec"]["nodeName"]),
        ("volumeattachments", "Attached") => |attachment, _| is(&attachment["status"]["attached"]).into(),
        ("csinodes", "Drivers") => |node, _| list(&node["spec"]["drivers"]).len().into(),
        ("csidrivers", "AttachRequired") => {
            |driver, _| driver["spec"]["attachRequired"].as_bool().unwrap_or(true).into()
        }
        ("csidrivers", "PodInfoOnMount") => |driver, _| is(&driver["spec"]["podInfoOnMount"]).into(),
        ("csidrivers", "StorageCapacity") => |driver, _| is(&driver["spec"]["storageCapacity"]).into(),
        ("csidrivers", "RequiresRepublish") => |driver, _| is(&driver["spec"]["requiresRepublish"]).into(),
        ("csidrivers", "TokenRequests") => |driver, _| match &driver["spec"]["tokenRequests"] {
            Value::Null => "<unset>".into(),
            asked => joined(asked, "audience").into(),
        },
        ("csidrivers", "Modes") => {
            |driver, _| or_none(&texts(&driver["spec"]["volumeLifecycleModes"]).into())
        }
        ("csistoragecapacities", "StorageClassName") => |capacity, _| text(&capacity["storageClassName"]),
        ("csistoragecapacities", "Capacity") => |capacity, _| or_unset(&capacity["capacity"]),
        _ => return None,
    })
}

/// A name, with a word for the one that is taken where none is named.
pub(super) fn named(object: &Value, is_default: bool) -> Value {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if is_default { format!("{name} (default)").into() } else { name.into() }
}

fn is_bound(claim: &Value) -> bool {
    claim["spec"]["volumeName"].as_str().is_some_and(|name| !name.is_empty())
}

fn modes(given: &Value) -> Value {
    let given = list(given);
    let these = MODES.iter().filter(|(mode, _)| given.iter().any(|found| found == mode));
    these.map(|(_, letters)| *letters).collect::<Vec<_>>().join(",").into()
}
