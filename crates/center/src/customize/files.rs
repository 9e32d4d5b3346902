//! Customization without a center: what an object would be at a Location, all of it from files.

use std::collections::BTreeMap;

use mailboat_api::names::{annotation, group, label};
use mailboat_object::travel::{annotation_travels, label_travels, metadata_member_travels};
use serde_json::Value;

use super::{Customizer, Uncustomized, customize, expands_value, reference};
use crate::translate::OWN_ANNOTATIONS;

/// Customizers and a Location that were read from files.
#[derive(Clone, Debug, Default)]
pub struct Files {
    customizers: BTreeMap<(String, String), Customizer>,
    /// `None`: no Location was given, so that there are no parameters.
    parameters: Option<BTreeMap<String, String>>,
}

/// An object as it would be sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    /// The object.
    pub object: Value,
    /// Something that its author may not have meant, in a sentence.
    pub note: Option<String>,
}

/// Why a file cannot be used, or an object cannot be customized; a sentence that names the object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unshown(String);

impl Files {
    /// Takes Customizers and, if there is one, a Location.
    pub fn new(customizers: &[Value], location: Option<&Value>) -> Result<Self, Unshown> {
        let mut files = Self::default();
        for value in customizers {
            expect(value, "Customizer")?;
            let customizer = Customizer::parse(value.to_string().as_bytes())
                .map_err(|bad| Unshown(format!("{}: {bad}", described(value))))?;
            if let Some(wrong) = customizer.validate().first() {
                return Err(Unshown(format!("{}: {}: {}", described(value), wrong.path, wrong.message)));
            }
            let name = (text(value, "namespace").to_owned(), text(value, "name").to_owned());
            if files.customizers.insert(name, customizer).is_some() {
                return Err(Unshown(format!("{} is given twice", described(value))));
            }
        }
        if let Some(location) = location {
            expect(location, "Location")?;
            files.parameters = Some(parameters(location));
        }
        Ok(files)
    }

    /// What becomes of an object at the Location.
    pub fn customize(&self, object: &Value) -> Result<Shown, Unshown> {
        let unshown = |why: String| Unshown(format!("{}: {why}", described(object)));
        if !object.is_object() || text(object, "name").is_empty() {
            return Err(unshown("it is no object: it has no metadata.name".to_owned()));
        }
        let (customizer, note) = self.customizer_for(object).map_err(unshown)?;
        let nothing = BTreeMap::new();
        let parameters = self.parameters.as_ref().unwrap_or(&nothing);
        let made = customize(travelling(object).to_string().as_bytes(), customizer, parameters);
        let made = made.map_err(|bad| match (&bad, &self.parameters) {
            (Uncustomized::MissingParameter { path, name }, None) => {
                unshown(format!("{path} asks for the parameter {name:?}, and no Location was given"))
            }
            _ => unshown(bad.to_string()),
        })?;
        let object = serde_json::from_slice(&made).map_err(|bad| unshown(bad.to_string()))?;
        Ok(Shown { object, note })
    }

    /// The Customizer that an object asks for, and a note if it asks for nothing although something is given.
    fn customizer_for(&self, object: &Value) -> Result<(Option<&Customizer>, Option<String>), String> {
        let asked = object["metadata"]["annotations"][annotation::CUSTOMIZER].as_str();
        let Some(asked) = asked else {
            let unused = |what: &str, annotation: &str| {
                format!("{} does not ask for {what}: it has no annotation {annotation}", described(object))
            };
            let note = if !self.customizers.is_empty() {
                Some(unused("a Customizer", annotation::CUSTOMIZER))
            } else if self.parameters.is_some() && !expands_value(object) {
                Some(unused("parameters", annotation::EXPAND_PARAMETERS))
            } else {
                None
            };
            return Ok((None, note));
        };
        let (namespace, name) = reference(asked, text(object, "namespace")).map_err(|bad| bad.to_string())?;
        let found = self.customizers.get(&(namespace.to_owned(), name.to_owned()));
        match found {
            Some(found) => Ok((Some(found), None)),
            None => Err(format!("its Customizer {namespace}/{name} is not among those given")),
        }
    }
}

/// An object without what is only true where it stands, as when it was read from a workspace.
fn travelling(object: &Value) -> Value {
    let mut object = object.clone();
    let Value::Object(members) = &mut object else { return object };
    members.remove("status");
    let Some(Value::Object(metadata)) = members.get_mut("metadata") else { return object };
    metadata.retain(|member, _| metadata_member_travels(member));
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        labels.retain(|key, _| label_travels(key) && key != label::OWNER);
    }
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|key, _| annotation_travels(key) && !OWN_ANNOTATIONS.contains(&key.as_str()));
    }
    object
}

/// A Location's annotations and, before them, its labels.
fn parameters(location: &Value) -> BTreeMap<String, String> {
    let texts = |member: &str| {
        let members = location["metadata"][member].as_object().into_iter().flatten();
        members.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
    };
    texts("annotations").chain(texts("labels")).collect()
}

fn expect(value: &Value, kind: &str) -> Result<(), Unshown> {
    let of_edge = value["apiVersion"].as_str().unwrap_or_default().starts_with(group::EDGE);
    let of_kcp = value["apiVersion"].as_str().unwrap_or_default().starts_with(group::SCHEDULING);
    if value["kind"] == kind && (of_edge || (of_kcp && kind == "Location")) {
        return Ok(());
    }
    Err(Unshown(format!("{} is no {kind} of {}", described(value), group::EDGE)))
}

fn text<'v>(object: &'v Value, member: &str) -> &'v str {
    object["metadata"][member].as_str().unwrap_or_default()
}

fn described(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("an object without a kind");
    match (text(object, "namespace"), text(object, "name")) {
        (_, "") => kind.to_owned(),
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn location() -> Value {
        json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "Location", "metadata": { "name": "florin",
            "labels": { "env": "prod" }, "annotations": { "env": "hidden by the label", "loc": "florin" } } })
    }

    fn customizer(name: &str) -> Value {
        json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "Customizer",
            "metadata": { "namespace": "a", "name": name, "annotations": { annotation::EXPAND_PARAMETERS: "true" } },
            "replacements": [{ "path": "$.data.where", "value": "\"%(loc), %(env)\"" }] })
    }

    fn object(annotations: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "say": "%(env)" },
            "metadata": { "namespace": "a", "name": "page", "annotations": annotations } })
    }

    #[test]
    fn an_object_is_shown_as_it_would_be_sent() {
        let files = Files::new(&[customizer("one"), customizer("two")], Some(&location())).unwrap();
        let asking = json!({ annotation::EXPAND_PARAMETERS: "true", annotation::CUSTOMIZER: "two" });
        let shown = files.customize(&object(&asking)).unwrap();
        assert_eq!(shown.object["data"], json!({ "say": "prod", "where": "florin, prod" }));
        assert_eq!(shown.note, None);
    }

    #[test]
    fn what_is_only_true_in_its_workspace_is_not_shown() {
        let mut read =
            object(&json!({ "kcp.io/cluster": "a1b2", annotation::EXECUTING_COUNT: "2", "mine": "yes" }));
        read["metadata"]["uid"] = json!("u");
        read["metadata"]["resourceVersion"] = json!("7");
        read["status"] = json!({ "ready": true });
        let shown = Files::default().customize(&read).unwrap();
        assert_eq!(shown.object, object(&json!({ "mine": "yes" })));
    }

    #[test]
    fn what_nobody_asked_for_is_noted() {
        let given = Files::new(&[customizer("one")], Some(&location())).unwrap();
        let shown = given.customize(&object(&json!({}))).unwrap();
        assert_eq!(shown.object, object(&json!({})));
        assert!(shown.note.is_some_and(|note| note.contains(annotation::CUSTOMIZER)));
        let none = Files::new(&[], Some(&location())).unwrap();
        let shown = none.customize(&object(&json!({}))).unwrap();
        assert_eq!(shown.object["data"]["say"], "%(env)");
        assert!(shown.note.is_some_and(|note| note.contains(annotation::EXPAND_PARAMETERS)));
    }

    #[test]
    fn what_cannot_be_customized_says_what_is_missing() {
        let expanding = object(&json!({ annotation::EXPAND_PARAMETERS: "true" }));
        let told = |files: &Files, object: &Value| files.customize(object).unwrap_err().to_string();
        let nothing = Files::default();
        assert_eq!(
            told(&nothing, &expanding),
            "ConfigMap a/page: $.data.say asks for the parameter \"env\", and no Location was given"
        );
        let asking = object(&json!({ annotation::CUSTOMIZER: "other/c" }));
        assert_eq!(
            told(&nothing, &asking),
            "ConfigMap a/page: its Customizer other/c is not among those given"
        );
        assert!(told(&nothing, &json!([])).contains("no object"));
        let twice = Files::new(&[customizer("one"), customizer("one")], None).unwrap_err().to_string();
        assert_eq!(twice, "Customizer a/one is given twice");
        let mixed_up = Files::new(&[location()], None).unwrap_err().to_string();
        assert_eq!(mixed_up, "Location florin is no Customizer of edge.kubestellar.io");
        let mut broken = customizer("one");
        broken["metadata"]["annotations"] = json!({});
        broken["replacements"][0]["path"] = json!("data");
        let told = Files::new(&[broken], None).unwrap_err().to_string();
        assert!(told.starts_with("Customizer a/one: replacements[0].path: "), "{told}");
    }
}
