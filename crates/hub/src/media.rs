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
    /// All groups and kinds at once.
    AggregatedDiscovery,
}

/// How an answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Accepted {
    pub shape: Shape,
    pub yaml: bool,
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

impl Accepted {
    /// The first of what the client takes that we can give. A client that says nothing gets objects as they are.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Status> {
        let mut said = false;
        for header in headers.get_all(ACCEPT) {
            for range in header.to_str().unwrap_or_default().split(',') {
                said |= !range.trim().is_empty();
                if let Some(accepted) = Self::range(range) {
                    return Ok(accepted);
                }
            }
        }
        if said {
            let message = "only the following media types are accepted: application/json, application/yaml";
            return Err(Status::other(406, "NotAcceptable", message).without_details());
        }
        Ok(Self { shape: Shape::Whole, yaml: false })
    }

    fn range(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        let yaml = match parts.next()? {
            "application/json" | "*/*" => false,
            "application/yaml" => true,
            _ => return None,
        };
        let (mut form, mut group, mut version) = ("", "", "");
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "as" => form = value.trim(),
                "g" => group = value.trim(),
                "v" => version = value.trim(),
                _ => {}
            }
        }
        let shape = match (form, group, version) {
            ("", ..) => Shape::Whole,
            ("Table", "meta.k8s.io", "v1") => Shape::Table,
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => Shape::Metadata,
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Shape::AggregatedDiscovery,
            _ => return None,
        };
        Some(Self { shape, yaml })
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

    fn accepted(accept: &str) -> Option<Accepted> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Accepted::of(&headers).ok()
    }

    #[test]
    fn the_first_form_that_we_can_give_is_taken() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accepted(kubectl), Some(Accepted { shape: Shape::Table, yaml: false }));
        let old = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accepted(old), Some(Accepted { shape: Shape::Whole, yaml: false }));
        let binary = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(accepted(binary), Some(Accepted { shape: Shape::Whole, yaml: false }));
        assert_eq!(accepted("application/yaml"), Some(Accepted { shape: Shape::Whole, yaml: true }));
        assert_eq!(accepted("application/vnd.kubernetes.protobuf"), None);
        let discovery =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(accepted(discovery).unwrap().shape, Shape::AggregatedDiscovery);
    }
}
