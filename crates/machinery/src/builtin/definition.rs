//! Definitions of kinds.

mod schema;

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::default;
use crate::kind::NameRule;
use crate::metadata::name_errors;
use crate::schema::{Origin, Schema, rule};
use crate::status::FieldError;

/// What a printed column may hold, and how it may be formatted.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// What a version says of itself, and where real servers hold it when all versions say the same.
const COMMON: [(&str, &str); 4] = [
    ("schema", "spec.validation"),
    ("subresources", "spec.subresources"),
    ("additionalPrinterColumns", "spec.additionalPrinterColumns"),
    ("selectableFields", "spec.selectableFields"),
];
/// A version can be selected by so many fields.
const SELECTABLE_MOST: u64 = 8;
const APPROVED: &str = "api-approved.kubernetes.io";

pub(super) fn default_definition(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    default(spec, "conversion", json!({ "strategy": "None" }));
    default(spec, "names", json!({}));
    let names = &mut spec["names"];
    if let Some(kind) = names["kind"].as_str().map(str::to_owned) {
        default(names, "singular", kind.to_lowercase());
        default(names, "listKind", format!("{kind}List"));
    }
}

/// What a definition says of itself before anybody looked at it: in which versions objects were ever stored.
pub(super) fn prepare_definition(definition: &mut Value, old: Option<&Value>) {
    let stored: Vec<Value> = list(&definition["spec"]["versions"])
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    if old.is_none() {
        definition["status"]["storedVersions"] = stored.into();
        return;
    }
    let known = &mut definition["status"]["storedVersions"];
    let Some(known) = known.as_array_mut() else { return };
    let there: HashSet<&Value> = known.iter().collect();
    let more: Vec<Value> = stored.into_iter().filter(|version| !there.contains(version)).collect();
    known.extend(more);
}

/// So many versions a kind may have: each is compared with all others, and with those in which objects are stored.
const VERSIONS_MAX: u64 = 100;

pub(super) fn check_definition(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, versions) in [
        ("spec.versions", &new["spec"]["versions"]),
        ("status.storedVersions", &new["status"]["storedVersions"]),
    ] {
        let count = list(versions).len() as u64;
        if count > VERSIONS_MAX {
            errors.push(FieldError::too_many(at, count, VERSIONS_MAX));
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    let (name, spec) = (&new["metadata"]["name"], &new["spec"]);
    let group = text(&spec["group"]);
    if text(name) != format!("{}.{group}", text(&spec["names"]["plural"])) {
        let what = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, what));
    }
    check_group(&spec["group"], &mut errors);
    check_word("spec.scope", &spec["scope"], &["Cluster", "Namespaced"], &mut errors);
    check_versions(new, old, &mut errors);
    for member in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"][member]).is_empty() {
            errors.push(FieldError::required(&format!("spec.names.{member}"), ""));
        }
    }
    check_names(&spec["names"], &mut errors);
    check_common(new, old, &mut errors);
    check_conversion(&spec["conversion"], &mut errors);
    if let Some(old) = old {
        check_fixed(new, old, &mut errors);
    }
    check_stored(new, &mut errors);
    check_approval(&new["metadata"], old.map(|old| &old["metadata"]), group, &mut errors);
    let was_open = old.is_some_and(|old| old["spec"]["preserveUnknownFields"] == true);
    if spec["preserveUnknownFields"] == true && !was_open {
        let what = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &Value::Bool(true), what));
    }
    errors
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn check_group(group: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "spec.group";
    let wrong = name_errors(text(group), NameRule::Subdomain);
    if text(group).is_empty() {
        errors.push(FieldError::required(FIELD, ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid(FIELD, group, wrong.join(",")));
    } else if !text(group).contains('.') {
        errors.push(FieldError::invalid(FIELD, group, "should be a domain with at least one dot"));
    }
}

/// One of a few words, which has to be said.
fn check_word(field: &str, word: &Value, known: &[&str], errors: &mut Vec<FieldError>) {
    if text(word).is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !known.contains(&text(word)) {
        let known: Vec<Value> = known.iter().map(|word| json!(word)).collect();
        errors.push(FieldError::unsupported(field, word, &known));
    }
}

fn check_versions(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let versions = list(&new["spec"]["versions"]);
    let at = |index: usize| format!("spec.versions[{index}]");
    for (index, version) in versions.iter().enumerate() {
        if version["schema"].get("openAPIV3Schema").is_none_or(Value::is_null) {
            errors.push(FieldError::required(&format!("{}.schema.openAPIV3Schema", at(index)), ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let wrong = name_errors(text(&version["name"]), NameRule::LetterLabel);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(
                &format!("{}.name", at(index)),
                &version["name"],
                wrong.join(","),
            ));
        }
        check_warning(version, &at(index), errors);
        for (member, _) in COMMON.iter().filter(|(member, _)| !is_common(versions, member)) {
            let place = format!("{}.{member}", at(index));
            check_member(member, version, former(old, version), &place, errors);
        }
    }
    // The first version is the definition's own.
    if let Some(name) = versions.first().map(|version| &version["name"]) {
        let wrong = name_errors(text(name), NameRule::LetterLabel);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid("spec.version", name, wrong.join(",")));
        }
    }
    let names: BTreeSet<&str> = versions.iter().map(|version| text(&version["name"])).collect();
    let mut refuse =
        |what: &str| errors.push(FieldError::invalid("spec.versions", &new["spec"]["versions"], what));
    if names.len() < versions.len() {
        refuse("must contain unique version names");
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
}

/// What all versions say alike is asked of once.
fn check_common(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let versions = list(&new["spec"]["versions"]);
    let Some(first) = versions.first() else { return };
    for (member, place) in COMMON.iter().filter(|(member, _)| is_common(versions, member)) {
        check_member(member, first, former(old, first), place, errors);
    }
}

/// The same version as it was before.
fn former<'o>(old: Option<&'o Value>, version: &Value) -> Option<&'o Value> {
    list(&old?["spec"]["versions"]).iter().find(|former| former["name"] == version["name"])
}

/// Whether all versions say the same there.
fn is_common(versions: &[Value], member: &str) -> bool {
    versions.iter().all(|version| version[member] == versions[0][member])
}

/// One of the members of a version that all may have in common.
fn check_member(
    member: &str,
    version: &Value,
    former: Option<&Value>,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    match member {
        "schema" => {
            // What is there already stays, whatever is asked of new ones.
            let is_new = former.is_none_or(|former| former["schema"] != version["schema"]);
            let given = version["schema"].get("openAPIV3Schema");
            if let Some(given) = given.filter(|given| given.is_object() && is_new) {
                check_schema(given, version, &format!("{at}.openAPIV3Schema"), errors);
            }
        }
        "subresources" => check_scale(&version["subresources"]["scale"], at, errors),
        "additionalPrinterColumns" => {
            for (index, column) in list(&version["additionalPrinterColumns"]).iter().enumerate() {
                check_column(column, &format!("{at}[{index}]"), errors);
            }
        }
        _ => check_selectable(list(&version["selectableFields"]), at, errors),
    }
}

fn check_selectable(fields: &[Value], at: &str, errors: &mut Vec<FieldError>) {
    let mut paths = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let place = format!("{at}[{index}].jsonPath");
        let path = &field["jsonPath"];
        if text(path).is_empty() {
            errors.push(FieldError::required(&place, ""));
        } else if text(path).trim_start_matches('.').split('.').next() == Some("metadata") {
            errors.push(FieldError::invalid(&place, path, "must not point to fields in metadata"));
        } else if !paths.insert(path) {
            errors.push(FieldError::duplicate(&place, path));
        }
    }
    if fields.len() as u64 > SELECTABLE_MOST {
        errors.push(FieldError::too_many(at, fields.len() as u64, SELECTABLE_MOST));
    }
}

fn check_warning(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    const LONGEST: usize = 256;
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let what = match warning {
        _ if version["deprecated"] != true => "can only be set for deprecated versions",
        "" => "must not be an empty string",
        long if long.len() > LONGEST => "must be <= 256 characters long",
        _ => return,
    };
    errors.push(FieldError::invalid(&format!("{at}.deprecationWarning"), &warning.into(), what));
}

fn check_schema(given: &Value, version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let before = errors.len();
    if version["subresources"]["status"].is_object() && given["type"].is_string() && given["type"] != "object"
    {
        let what = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(&format!("{at}.type"), &given["type"], what));
    }
    if given["nullable"] == true {
        errors.push(FieldError::forbidden(&format!("{at}.nullable"), "nullable cannot be true at the root"));
    }
    errors.extend(schema::errors(given, at));
    if errors.len() > before {
        return;
    }
    if let Err(bad) = Schema::from_openapi(given, &Value::Null, Origin::Custom) {
        errors.push(FieldError::invalid(&format!("{at}{}", bad.path), &"".into(), bad.what));
    }
    for (path, why) in rule::no_expressions(given) {
        errors.push(FieldError::invalid(
            &format!("{at}{path}"),
            &Value::Null,
            format!("compilation failed: {why}"),
        ));
    }
}

/// A path of members, such as `.spec.replicas`.
fn check_path(path: &Value, at: &str, errors: &mut Vec<FieldError>) -> bool {
    let plain = text(path).starts_with('.');
    if !plain {
        errors.push(FieldError::invalid(at, path, "must be a simple json path starting with ."));
    }
    plain
}

fn check_scale(scale: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if !scale.is_object() {
        return;
    }
    for (member, below) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let (place, path) = (format!("{at}.scale.{member}"), &scale[member]);
        if text(path).is_empty() {
            errors.push(FieldError::required(&place, ""));
        } else if check_path(path, &place, errors) && !text(path).starts_with(&format!("{below}.")) {
            errors.push(FieldError::invalid(&place, path, format!("should be a json path under {below}")));
        }
    }
    let (place, path) = (format!("{at}.scale.labelSelectorPath"), &scale["labelSelectorPath"]);
    let known = |path: &str| path.starts_with(".spec.") || path.starts_with(".status.");
    if !text(path).is_empty() && check_path(path, &place, errors) && !known(text(path)) {
        errors.push(FieldError::invalid(&place, path, "should be a json path under either .spec or .status"));
    }
}

fn check_column(column: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if text(&column["name"]).is_empty() {
        errors.push(FieldError::required(&format!("{at}.name"), ""));
    }
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    match text(&column["type"]) {
        "" => errors.push(FieldError::required(&format!("{at}.type"), &types)),
        other if COLUMN_TYPES.contains(&other) => {}
        _ => errors.push(FieldError::invalid(&format!("{at}.type"), &column["type"], types)),
    }
    let format = text(&column["format"]);
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let what = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(&format!("{at}.format"), &column["format"], what));
    }
    let place = format!("{at}.JSONPath");
    if text(&column["jsonPath"]).is_empty() {
        errors.push(FieldError::required(&place, ""));
    } else {
        check_path(&column["jsonPath"], &place, errors);
    }
}

fn check_names(names: &Value, errors: &mut Vec<FieldError>) {
    let label = |name: &str| name_errors(name, NameRule::LetterLabel).join(",");
    let mut refuse = |field: String, name: &Value, what: String| {
        if !text(name).is_empty() && !what.is_empty() {
            errors.push(FieldError::invalid(&format!("spec.names.{field}"), name, what));
        }
    };
    for member in ["plural", "singular"] {
        refuse(member.to_owned(), &names[member], label(text(&names[member])));
    }
    for member in ["kind", "listKind"] {
        let wrong = label(&text(&names[member]).to_lowercase());
        let mixed = "may have mixed case, but should otherwise match: ";
        let wrong = if wrong.is_empty() { wrong } else { format!("{mixed}{wrong}") };
        refuse(member.to_owned(), &names[member], wrong);
    }
    let each = |member: &str, refuse: &mut dyn FnMut(String, &Value, String)| {
        for (index, name) in list(&names[member]).iter().enumerate() {
            refuse(format!("{member}[{index}]"), name, label(text(name)));
        }
    };
    each("shortNames", &mut refuse);
    if names["kind"] == names["listKind"] {
        refuse("listKind".to_owned(), &names["listKind"], "kind and listKind may not be the same".to_owned());
    }
    each("categories", &mut refuse);
}

fn check_conversion(conversion: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "spec.conversion";
    if !conversion.is_object() {
        return;
    }
    check_word(&format!("{FIELD}.strategy"), &conversion["strategy"], &["None", "Webhook"], errors);
    let (webhook, versions) =
        (&conversion["webhook"]["clientConfig"], &conversion["webhook"]["conversionReviewVersions"]);
    let (client, reviews) =
        (format!("{FIELD}.webhookClientConfig"), format!("{FIELD}.conversionReviewVersions"));
    if conversion["strategy"] != "Webhook" {
        const UNUSED: &str = "should not be set when strategy is not set to Webhook";
        if webhook.is_object() {
            errors.push(FieldError::forbidden(&client, UNUSED));
        }
        if !list(versions).is_empty() {
            errors.push(FieldError::forbidden(&reviews, UNUSED));
        }
        return;
    }
    if !webhook.is_object() {
        errors.push(FieldError::required(&client, "required when strategy is set to Webhook"));
    } else if webhook["url"].is_null() == webhook["service"].is_null() {
        errors.push(FieldError::required(&client, "exactly one of url or service is required"));
    }
    if list(versions).is_empty() {
        errors.push(FieldError::required(&reviews, ""));
    } else if !list(versions).iter().any(|version| matches!(text(version), "v1" | "v1beta1")) {
        errors.push(FieldError::invalid(&reviews, versions, "must include at least one of v1, v1beta1"));
    }
}

/// What objects are stored by never changes.
fn check_fixed(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let is_established = list(&old["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let fixed: [(&str, &str, bool); 4] = [
        ("scope", "/scope", is_established),
        ("names.kind", "/names/kind", is_established),
        ("group", "/group", true),
        ("names.plural", "/names/plural", true),
    ];
    for (field, at, _) in fixed.into_iter().filter(|(.., is_fixed)| *is_fixed) {
        let value = |of: &Value| of["spec"].pointer(at).cloned().unwrap_or_default();
        if value(new) != value(old) {
            errors.push(FieldError::invalid(&format!("spec.{field}"), &value(new), "field is immutable"));
        }
    }
}

/// A version in which objects were stored cannot go.
fn check_stored(new: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "status.storedVersions";
    let stored = &new["status"]["storedVersions"];
    let versions = list(&new["spec"]["versions"]);
    if list(stored).is_empty() {
        errors.push(FieldError::invalid(FIELD, stored, "must have at least one stored version"));
        return;
    }
    for version in versions.iter().filter(|version| version["storage"] == true) {
        if !list(stored).contains(&version["name"]) {
            let what = format!("must have the storage version {}", text(&version["name"]));
            errors.push(FieldError::invalid(FIELD, stored, what));
        }
    }
    for (index, gone) in list(stored).iter().enumerate() {
        if versions.iter().all(|version| version["name"] != *gone) {
            let name = text(gone);
            let what = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.push(FieldError::invalid(&format!("{FIELD}[{index}]"), gone, what));
        }
    }
}

/// Groups of the community need its approval, which is not asked for again.
fn check_approval(metadata: &Value, old: Option<&Value>, group: &str, errors: &mut Vec<FieldError>) {
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let approved = |metadata: &Value| metadata["annotations"].get(APPROVED).is_some();
    if !protected || approved(metadata) || old.is_some_and(|old| !approved(old)) {
        return;
    }
    let what = format!(
        "protected groups must have approval annotation {APPROVED:?}, see \
         https://github.com/kubernetes/enhancements/pull/1111"
    );
    errors.push(FieldError::required(&format!("metadata.annotations[{APPROVED}]"), &what));
}
