//! Media types: what a client takes for an answer, and what it sends.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use mailboat_machinery::Status;

use crate::protobuf::PROTOBUF;

/// The media type of nearly everything.
pub(crate) const JSON: &str = "application/json";
/// The media type of aggregated discovery, which clients look for in the answer.
pub(crate) const AGGREGATED_DISCOVERY: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// In which shape objects are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// As they are.
    Whole,
    /// Their metadata alone.
    Metadata,
    /// As rows of a table.
    Table,
}

/// In which form an answer is written, in the order in which servers offer them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Form {
    Json,
    Yaml,
    Protobuf,
}

/// How an answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Accepted {
    pub shape: Shape,
    pub form: Form,
}

/// What is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// Objects, or a watch of them.
    Objects { types: Types, is_watch: bool },
    /// What has one shape: a refusal, an answer to a question, a list of what there is.
    Plain { in_view: bool },
}

/// What a server has types for, which it takes to say anything in protobuf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Types {
    /// Objects.
    All,
    /// Their metadata alone: somebody else defined them.
    Metadata,
    /// Nothing: views hand on what they do not know.
    None,
}

/// What a request's body is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    Json,
    Yaml,
    Protobuf,
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
    Apply,
}

impl Form {
    const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    fn subtype(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Protobuf => "vnd.kubernetes.protobuf",
        }
    }

    /// The form of a refusal: whoever takes none of those that there are is told in JSON.
    pub(crate) fn of_refusal(headers: &HeaderMap, in_view: bool) -> Self {
        Accepted::of(headers, Offer::Plain { in_view }).map_or(Self::Json, |accepted| accepted.form)
    }
}

impl Offer {
    /// The forms that there are at all.
    fn forms(self) -> &'static [Form] {
        match self {
            Self::Objects { types: Types::None, .. } | Self::Plain { in_view: true } => &Form::ALL[..2],
            Self::Objects { .. } | Self::Plain { in_view: false } => &Form::ALL,
        }
    }
}

impl Accepted {
    /// What the client likes best of what we can give. A client that says nothing gets objects as they are.
    pub(crate) fn of(headers: &HeaderMap, offer: Offer) -> Result<Self, Status> {
        let said = accept(headers);
        if said.is_empty() {
            return Ok(Self { shape: Shape::Whole, form: Form::Json });
        }
        let clauses = Clause::all(said);
        let taken = clauses.iter().find_map(|clause| {
            let mut forms = offer.forms().iter().copied().filter(|form| clause.takes(*form));
            forms.find_map(|form| Some(Self { shape: clause.shape(form, offer)?, form }))
        });
        let is_watch = matches!(offer, Offer::Objects { is_watch: true, .. });
        match taken {
            // Nobody can tell where one ends in a stream.
            Some(taken) if is_watch && taken.form == Form::Yaml => Err(not_acceptable(OFFERED_STREAMS)),
            Some(taken) => Ok(taken),
            None if offer.forms().len() < Form::ALL.len() => Err(not_acceptable(OFFERED_IN_VIEWS)),
            None => Err(not_acceptable(OFFERED)),
        }
    }
}

/// Whether a client takes everything at once that there is, in whatever place of what it takes.
pub(crate) fn takes_aggregated_discovery(headers: &HeaderMap) -> bool {
    let asked = |clause: &Clause<'_>| {
        let target = (clause.word("as"), clause.word("g"), clause.word("v"));
        clause.takes(Form::Json)
            && target == (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2"))
    };
    Clause::all(accept(headers)).iter().any(asked)
}

/// Servers look at the first of several headers.
pub(crate) fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|header| header.to_str().ok()).unwrap_or_default()
}

fn not_acceptable(known: &str) -> Status {
    let message = format!("only the following media types are accepted: {known}");
    Status::other(406, "NotAcceptable", message)
}

/// What servers offer by the kind of request; watches are asked for as lists.
const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const OFFERED_IN_VIEWS: &str = "application/json, application/yaml";
const OFFERED_STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// Refuses whoever names nothing that there is. So servers look before they look at what is asked for of kinds of their own:
/// anything at all is taken, but not anything of one type.
pub(crate) fn check_named(headers: &HeaderMap, lists: bool) -> Result<(), Status> {
    let said = accept(headers);
    let is_offered = |named: &str| {
        let named = named.split(';').next().unwrap_or_default().trim_matches(' ');
        named == "*/*" || OFFERED.split(", ").any(|offered| offered == named)
    };
    if said.is_empty() || said.split(',').any(is_offered) {
        return Ok(());
    }
    let streams = if lists { format!(", {OFFERED_STREAMS}") } else { String::new() };
    let message = format!("406: Not Acceptable\n\nAvailable representations: {OFFERED}{streams}");
    Err(Status::other(406, "NotAcceptable", message).without_details())
}

/// One of the things that a client takes.
pub(crate) struct Clause<'h> {
    pub(crate) kind: &'h str,
    pub(crate) subtype: &'h str,
    quality: f64,
    words: Vec<(&'h str, &'h str)>,
}

impl<'h> Clause<'h> {
    /// All of them, as real servers read and order them: not quite as they should, but clients have come to rely on it.
    pub(crate) fn all(header: &'h str) -> Vec<Self> {
        let mut clauses: Vec<Self> = header.split(',').filter_map(Self::read).collect();
        for end in 1..clauses.len() {
            for at in (1..=end).rev() {
                if !clauses[at].comes_before(&clauses[at - 1]) {
                    break;
                }
                clauses.swap(at, at - 1);
            }
        }
        clauses
    }

    fn read(text: &'h str) -> Option<Self> {
        let mut parts = text.trim_matches(' ').split(';');
        let (kind, subtype) = match parts.next()?.split_once('/') {
            Some((_, subtype)) if subtype.contains('/') => return None,
            Some((kind, subtype)) if !subtype.is_empty() => {
                (kind.trim_matches(' '), subtype.trim_matches(' '))
            }
            found => match found.map_or(text, |(kind, _)| kind).split(';').next()?.trim_matches(' ') {
                "*" => ("*", "*"),
                _ => return None,
            },
        };
        let mut clause = Self { kind, subtype, quality: 1.0, words: Vec::new() };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim_matches(' ') {
                _ if value.is_empty() || value.contains('=') => {}
                "q" => clause.quality = value.parse().unwrap_or_default(),
                name => clause.words.push((name, value.trim_matches(' '))),
            }
        }
        Some(clause)
    }

    fn comes_before(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }

    fn takes(&self, form: Form) -> bool {
        match self.kind {
            "*" => self.subtype == "*",
            kind => kind == "application" && (self.subtype == "*" || self.subtype == form.subtype()),
        }
    }

    fn word(&self, name: &str) -> Option<&'h str> {
        self.words.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The shape that is asked for, if there is such in this form.
    fn shape(&self, form: Form, offer: Offer) -> Option<Shape> {
        let streams = form != Form::Yaml;
        if self.word("stream").is_some_and(|stream| !streams || stream != "watch") {
            return None;
        }
        let version = self.word("sv");
        match (self.word("as"), self.word("g"), self.word("v")) {
            (None, None, None) => {
                let can_be_said = match offer {
                    Offer::Plain { .. } => version.is_none(),
                    Offer::Objects { types, .. } => {
                        (types == Types::All || form != Form::Protobuf)
                            && version.is_none_or(|version| version == "v1")
                    }
                };
                can_be_said.then_some(Shape::Whole)
            }
            _ if matches!(offer, Offer::Plain { .. }) => None,
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => {
                (form != Form::Protobuf).then_some(Shape::Table)
            }
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
            ) => Some(Shape::Metadata),
            _ => None,
        }
    }
}

impl Sent {
    /// What the body of a create, update or delete is.
    pub(crate) fn object(headers: &HeaderMap) -> Result<Self, Status> {
        match media_type(headers) {
            "" | "application/json" | "*/*" => Ok(Self::Json),
            "application/yaml" => Ok(Self::Yaml),
            PROTOBUF => Ok(Self::Protobuf),
            _ => Err(unsupported("application/json, application/yaml, application/vnd.kubernetes.protobuf")),
        }
    }

    /// What the body of a patch is.
    pub(crate) fn patch(headers: &HeaderMap) -> Result<Self, Status> {
        match media_type(headers) {
            "application/json-patch+json" => Ok(Self::JsonPatch),
            "application/merge-patch+json" => Ok(Self::MergePatch),
            "application/strategic-merge-patch+json" => Ok(Self::StrategicMergePatch),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => Err(unsupported_patch()),
        }
    }
}

fn media_type(headers: &HeaderMap) -> &str {
    let header = headers.get(CONTENT_TYPE).and_then(|header| header.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim()
}

/// 415 for a patch: real servers do not say which there are.
pub(crate) fn unsupported_patch() -> Status {
    Status::other(415, "UnsupportedMediaType", "415: Unsupported Media Type").without_details()
}

/// 415: clients that tried CBOR go on in JSON when they read this; those that tried protobuf do not.
pub(crate) fn unsupported(known: &str) -> Status {
    let message =
        format!("the body of the request was in an unknown format - accepted media types include: {known}");
    Status::other(415, "UnsupportedMediaType", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(accept: &str, offer: Offer) -> Option<(Shape, Form)> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Accepted::of(&headers, offer).ok().map(|accepted| (accepted.shape, accepted.form))
    }

    const TYPED: Offer = Offer::Objects { types: Types::All, is_watch: false };
    const CUSTOM: Offer = Offer::Objects { types: Types::Metadata, is_watch: false };
    const WATCH: Offer = Offer::Objects { types: Types::All, is_watch: true };
    const VIEW: Offer = Offer::Objects { types: Types::None, is_watch: false };
    const PLAIN: Offer = Offer::Plain { in_view: false };

    #[test]
    fn the_first_form_that_we_can_give_is_taken() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let go = "application/vnd.kubernetes.protobuf,application/json";
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/yaml;as=Table;g=meta.k8s.io;v=v1";
        for (accept, offer, expected) in [
            (kubectl, TYPED, Some((Shape::Table, Form::Json))),
            (kubectl, PLAIN, Some((Shape::Whole, Form::Json))),
            (
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                TYPED,
                Some((Shape::Whole, Form::Json)),
            ),
            (go, TYPED, Some((Shape::Whole, Form::Protobuf))),
            (go, WATCH, Some((Shape::Whole, Form::Protobuf))),
            (go, CUSTOM, Some((Shape::Whole, Form::Json))),
            (go, PLAIN, Some((Shape::Whole, Form::Protobuf))),
            (metadata, VIEW, Some((Shape::Whole, Form::Json))),
            (go, Offer::Plain { in_view: true }, Some((Shape::Whole, Form::Json))),
            (metadata, CUSTOM, Some((Shape::Metadata, Form::Protobuf))),
            (table, TYPED, Some((Shape::Table, Form::Yaml))),
            ("application/vnd.kubernetes.protobuf", CUSTOM, None),
            ("application/vnd.kubernetes.protobuf;stream=watch", WATCH, Some((Shape::Whole, Form::Protobuf))),
            ("application/vnd.kubernetes.protobuf;stream=all", WATCH, None),
            ("application/yaml", TYPED, Some((Shape::Whole, Form::Yaml))),
            ("application/yaml, application/json", WATCH, None),
            ("application/cbor", TYPED, None),
            ("text/html", TYPED, None),
            ("*/*", TYPED, Some((Shape::Whole, Form::Json))),
            ("*", TYPED, Some((Shape::Whole, Form::Json))),
            ("application/*", TYPED, Some((Shape::Whole, Form::Json))),
            ("application/*, application/yaml", TYPED, Some((Shape::Whole, Form::Yaml))),
            ("application/json;q=0.5, application/yaml", TYPED, Some((Shape::Whole, Form::Yaml))),
            ("application", TYPED, None),
            (",", TYPED, None),
            ("", TYPED, Some((Shape::Whole, Form::Json))),
        ] {
            assert_eq!(taken(accept, offer), expected, "{accept} of {offer:?}");
        }
    }

    #[test]
    fn everything_at_once_is_told_to_whoever_takes_it() {
        let takes = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            takes_aggregated_discovery(&headers)
        };
        assert!(takes(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        ));
        assert!(takes(
            "application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        ));
        assert!(!takes(
            "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json"
        ));
        assert!(!takes("application/json"));
    }

    #[test]
    fn of_its_own_kinds_a_server_wants_to_be_asked_for_what_it_has() {
        let named = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            check_named(&headers, true).is_ok()
        };
        for accept in [
            "",
            "*/*",
            "text/html, */*;q=0.8",
            "application/json;as=Chart",
            "application/*, application/yaml",
        ] {
            assert!(named(accept), "{accept}");
        }
        for accept in ["*", "application/*", "text/html", "application/cbor"] {
            assert!(!named(accept), "{accept}");
        }
    }
}
