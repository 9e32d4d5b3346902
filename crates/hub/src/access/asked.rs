//! What is asked for.

/// What a user wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked<'a> {
    /// Something with objects.
    Object {
        /// Such as `get` or `deletecollection`.
        verb: &'a str,
        /// The API group; empty for the core group.
        group: &'a str,
        /// The plural name of the resource.
        resource: &'a str,
        /// The subresource; empty for the object itself.
        subresource: &'a str,
        /// The namespace; empty for what has none, and for all namespaces.
        namespace: &'a str,
        /// The object's name; empty for all of them.
        name: &'a str,
    },
    /// Something with a path that is no object's.
    Path {
        /// Such as `get`.
        verb: &'a str,
        /// Such as `/healthz`.
        path: &'a str,
    },
}

impl Asked<'_> {
    /// The namespace; empty where there is none.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Object { namespace, .. } => namespace,
            Self::Path { .. } => "",
        }
    }

    /// What a 403 says after `is forbidden: `.
    pub fn refusal(&self, user: &str) -> String {
        match self {
            Self::Object { verb, group, resource, subresource, namespace, .. } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let scope = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {namespace:?}")
                };
                format!(
                    "User {user:?} cannot {verb} resource \"{resource}{slash}{subresource}\" in API group {group:?} {scope}"
                )
            }
            Self::Path { verb, path } => format!("User {user:?} cannot {verb} path {path:?}"),
        }
    }
}
