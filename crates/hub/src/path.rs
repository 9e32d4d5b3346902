//! What a request's path asks for.

use mailboat_object::Name;

use crate::{access, health};

/// What a path asks for, the place left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// `/`: the paths that there are.
    Paths,
    /// `/healthz`, `/livez`, `/readyz`, and the checks below them that a hub has.
    Health {
        /// Which of the three.
        name: &'static str,
        /// One check alone.
        check: Option<String>,
    },
    /// `/version`.
    Version,
    /// `/api`: the versions of the core group.
    CoreVersions,
    /// `/apis`: the groups.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/VERSION` or `/apis/GROUP/VERSION`: the kinds of one version.
    Kinds {
        /// The group; empty for the core group.
        group: String,
        /// The version.
        version: String,
    },
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`: which documents there are.
    OpenApiIndex,
    /// `/openapi/v3/apis/GROUP/VERSION` or `/openapi/v3/api/VERSION`.
    OpenApi {
        /// The group; empty for the core group.
        group: String,
        /// The version.
        version: String,
    },
    /// Objects.
    Objects(ObjectPath),
}

/// A path to objects, or to one of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ObjectPath {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace; empty: all of them, or a kind that has none.
    pub namespace: Name,
    /// The resource.
    pub resource: String,
    /// The name; empty: all objects.
    pub name: Name,
    /// The subresource; empty: the object itself.
    pub subresource: String,
    /// It is to be watched: an old way to say so, which some clients still know.
    pub watched: bool,
}

impl ObjectPath {
    /// What somebody asks for who wants to do this there.
    pub(crate) fn asked<'p>(&'p self, verb: &'p str) -> access::Asked<'p> {
        access::Asked::Object {
            verb,
            group: &self.group,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
        }
    }
}

impl Asked {
    /// Reads a path without its place. None: there is nothing there.
    pub(crate) fn read(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        Some(match parts.as_slice() {
            [] => Self::Paths,
            [first] if health::asked(first).is_some() => {
                Self::Health { name: health::asked(first)?, check: None }
            }
            [first, check @ ..]
                if health::asked(first).is_some_and(|path| health::has(path, &check.join("/"))) =>
            {
                Self::Health { name: health::asked(first)?, check: Some(check.join("/")) }
            }
            ["version"] => Self::Version,
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::Kinds { group: String::new(), version: (*version).to_owned() },
            ["apis", group, version] => {
                Self::Kinds { group: (*group).to_owned(), version: (*version).to_owned() }
            }
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", "api", version] => {
                Self::OpenApi { group: String::new(), version: (*version).to_owned() }
            }
            ["openapi", "v3", "apis", group, version] => {
                Self::OpenApi { group: (*group).to_owned(), version: (*version).to_owned() }
            }
            ["api", version, rest @ ..] => Self::Objects(ObjectPath::read("", version, rest)?),
            ["apis", group, version, rest @ ..] => Self::Objects(ObjectPath::read(group, version, rest)?),
            _ => return None,
        })
    }
}

impl ObjectPath {
    fn read(group: &str, version: &str, rest: &[&str]) -> Option<Self> {
        if let ["watch", rest @ ..] = rest
            && !rest.is_empty()
        {
            return Some(Self { watched: true, ..Self::read(group, version, rest)? });
        }
        let (namespace, rest) = match rest {
            // Namespaces have subresources of their own, and none of them is a kind.
            ["namespaces", _, "status" | "finalize"] | ["namespaces"] | ["namespaces", _] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            rest => ("", rest),
        };
        let (resource, name, subresource) = match rest {
            [resource] => (*resource, "", ""),
            [resource, name] => (*resource, *name, ""),
            [resource, name, subresource] => (*resource, *name, *subresource),
            // What stands behind is for the machine that it is handed on to.
            [resource, name, "proxy", ..] => (*resource, *name, "proxy"),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: Name::new(&decoded(namespace)?),
            resource: resource.to_owned(),
            name: Name::new(&decoded(name)?),
            subresource: subresource.to_owned(),
            watched: false,
        })
    }
}

/// A part of a path or a query without its percent signs. None: it is not text.
pub(crate) fn decoded(part: &str) -> Option<String> {
    if !part.contains('%') {
        return Some(part.to_owned());
    }
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                bytes.push(digit(high)? * 16 + digit(low)?);
                rest = after;
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(path: &str) -> ObjectPath {
        match Asked::read(path) {
            Some(Asked::Objects(objects)) => objects,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_are_read_as_servers_read_them() {
        let all = objects("/api/v1/pods");
        assert_eq!((&*all.resource, &*all.namespace, &*all.name), ("pods", "", ""));
        let one = objects("/apis/apps/v1/namespaces/till/deployments/web/scale");
        assert_eq!((&*one.group, &*one.version, &*one.namespace), ("apps", "v1", "till"));
        assert_eq!((&*one.resource, &*one.name, &*one.subresource), ("deployments", "web", "scale"));
        let namespace = objects("/api/v1/namespaces/till");
        assert_eq!(
            (&*namespace.resource, &*namespace.name, &*namespace.namespace),
            ("namespaces", "till", "")
        );
        let status = objects("/api/v1/namespaces/till/status");
        assert_eq!(
            (&*status.resource, &*status.name, &*status.subresource),
            ("namespaces", "till", "status")
        );
        let inside = objects("/api/v1/namespaces/till/configmaps");
        assert_eq!((&*inside.resource, &*inside.namespace), ("configmaps", "till"));
        let colon = objects("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode");
        assert_eq!(&*colon.name, "system:node");
    }

    #[test]
    fn what_is_no_path_is_none() {
        for path in [
            "/api/v1/a/b/c/d",
            "/apis/g/v/namespaces/n/a/b/c/d",
            "/nowhere",
            "/openapi/v4",
            "/readyz/nothing",
            "/api/v1/pods/%zz",
        ] {
            assert_eq!(Asked::read(path), None, "{path}");
        }
    }
}
