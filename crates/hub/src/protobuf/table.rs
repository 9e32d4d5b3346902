//! Which messages there are.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// A message: its fields by their numbers.
pub(super) type Message = BTreeMap<u64, Field>;

#[derive(Clone, Copy)]
pub(super) struct Field {
    /// Its name in JSON.
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// The type of one value.
    pub(super) of: &'static str,
    /// Its members stand among those of its parent in JSON.
    pub(super) inline: bool,
    /// JSON does not say zeros.
    pub(super) omit_zero: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    Map,
}

pub(super) static MESSAGES: LazyLock<HashMap<&'static str, Message>> = LazyLock::new(|| {
    let mut messages: HashMap<&'static str, Message> = HashMap::new();
    let mut current = "";
    for line in include_str!("../../data/kubernetes.protobuf").lines() {
        let Some(field) = line.strip_prefix(' ') else {
            current = line;
            messages.entry(current).or_default();
            continue;
        };
        let mut words = field.split(' ');
        let (Some(number), Some(name), Some(of)) =
            (words.next().and_then(|number| number.parse().ok()), words.next(), words.next())
        else {
            continue;
        };
        let option = words.next();
        let (shape, of) = match (of.strip_prefix("list:"), of.strip_prefix("map:")) {
            (Some(of), _) => (Shape::List, of),
            (_, Some(of)) => (Shape::Map, of),
            _ => (Shape::One, of),
        };
        let (inline, omit_zero) = (option == Some("inline"), option == Some("omitzero"));
        messages.entry(current).or_default().insert(number, Field { name, shape, of, inline, omit_zero });
    }
    messages
});

/// What every server says of itself and of objects, whatever version it is asked in.
const META: &str = "~apis.meta.v1.";

/// The message of a kind: groups are named by their first word.
pub(super) fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let package = match group {
        // The one group whose directory is not the first word of its name.
        "flowcontrol.apiserver.k8s.io" => "flowcontrol",
        group => group.split('.').next()?,
    };
    let is_meta = matches!(api_version, "" | "v1" | "meta.k8s.io/v1") || kind == "DeleteOptions";
    let meta = || MESSAGES.get(format!("{META}{kind}").as_str()).filter(|_| is_meta);
    MESSAGES.get(format!("{package}.{version}.{kind}").as_str()).or_else(meta)
}

/// The message of the items of a list; none if there is no such list.
pub(super) fn items_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    message_of(api_version, kind.strip_suffix("List")?)
}

/// Whether a message is a list in JSON, and a message only because lists of lists cannot be said.
pub(super) fn is_list(message: &str) -> bool {
    message.ends_with(".ExtraValue") || message.ends_with(".Verbs")
}
