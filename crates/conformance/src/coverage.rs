//! What clients rely on, and the cases that show it: each promise in three cases at least, one of them a refusal.

use std::collections::BTreeSet;

use crate::script::{Action, File, Step};

/// How many cases a promise needs, and each line of the checklist.
const CASES_MIN: usize = 3;
/// Of so many requests and watches the answers are to be compared at least, from their code to their last field.
const REQUESTS_MIN: usize = 400;

/// The lines of the checklist of what a server of this protocol has to get right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    /// One version for everything, that only grows; unset, 0, `NotOlderThan`, `Exact`, and what is no number.
    Versions,
    /// How watches begin, what they tell, bookmarks, and how they end.
    Watches,
    /// Pages, `remainingItemCount`, tokens that cannot be gone on with.
    Lists,
    /// JSON, tables, metadata alone, aggregated discovery, and what nobody can answer.
    Accept,
    /// Statuses with reason, details and causes; warnings; `fieldValidation`.
    Statuses,
    /// Create, update, all kinds of patches, dry runs, deletion, generations, subresources.
    Writes,
    /// Kinds of one's own: schemas, rules, columns, names.
    Definitions,
    /// Groups, kinds, OpenAPI, versions.
    Discovery,
    /// Who asks, whether he may, reviews, acting as others.
    Access,
    /// Ready when everything is served, and not before.
    Readiness,
    /// What kcp has beyond Kubernetes.
    Workspaces,
}

impl Line {
    const ALL: [Self; 11] = [
        Self::Versions,
        Self::Watches,
        Self::Lists,
        Self::Accept,
        Self::Statuses,
        Self::Writes,
        Self::Definitions,
        Self::Discovery,
        Self::Access,
        Self::Readiness,
        Self::Workspaces,
    ];
}

/// Something that clients rely on.
struct Promise {
    line: Line,
    what: &'static str,
    /// Cases, as `file: name`, in which it is kept.
    kept: &'static [&'static str],
    /// Cases in which somebody asks for what cannot be, and is told so.
    refused: &'static [&'static str],
}

const PROMISES: [Promise; 24] = [
    Promise {
        line: Line::Accept,
        what: "protobuf",
        kept: &[
            "protobuf: objects are sent and answered",
            "protobuf: what is of many types in one",
            "protobuf: a watch tells what happens",
            "protobuf: what there is",
        ],
        refused: &[
            "protobuf: what is taken for an answer is found as servers find it",
            "protobuf: of a kind that somebody defined it is found in another way",
        ],
    },
    Promise {
        line: Line::Readiness,
        what: "health",
        kept: &[
            "discovery: it says how it is",
            "discovery: it says how it is, check by check",
            "discovery: the server says which version it is",
        ],
        refused: &["discovery: what it is not asked for it does not say"],
    },
    Promise {
        line: Line::Writes,
        what: "one object under two names or in two versions",
        kept: &[
            "forms: recorders of both groups see each other's Events",
            "forms: a watch under one name tells what is written under the other",
            "forms: an autoscaler of the first version reads in the second",
        ],
        refused: &[
            "forms: Events that make no sense are refused, by the newer name for more reasons",
            "forms: what the other name calls a field is not selected by",
            "forms: autoscalers that make no sense",
        ],
    },
    Promise {
        line: Line::Versions,
        what: "versions of objects and lists",
        kept: &["lists: versions of a list", "lists: versions of an object"],
        refused: &[
            "lists: versions of a list that make no sense",
            "lists: a version that has not come yet is waited for, in vain",
        ],
    },
    Promise {
        line: Line::Watches,
        what: "watches tell what happens",
        kept: &[
            "watches: a watch tells what happens",
            "watches: a watch goes on from a version",
            "watches: a write that changes nothing is no event",
            "watches: finalizers make a deletion two events",
        ],
        refused: &[
            "watches: a version that is no number is refused",
            "watches: a watch of a kind that is not served",
        ],
    },
    Promise {
        line: Line::Watches,
        what: "watches begin with what is there",
        kept: &[
            "watches: a watch without a version begins with what is there",
            "watches: a watch from version 0 begins with what is there",
            "watches: initial events end with a bookmark",
        ],
        refused: &["watches: initial events need what they need"],
    },
    Promise {
        line: Line::Versions,
        what: "what is forgotten is said to be",
        kept: &[
            "expired: initial events are told, however old the version",
            "expired: a page that is forgotten can be gone on with as things are now",
        ],
        refused: &[
            "expired: a watch from what is forgotten ends with an error of its own",
            "expired: a list of what is forgotten is refused",
            "expired: a table of what is forgotten is refused",
        ],
    },
    Promise {
        line: Line::Writes,
        what: "Pods are bound and evicted",
        kept: &["places: a pod is bound to a node", "places: a pod is evicted"],
        refused: &["places: a budget holds pods back", "places: a pod that is nowhere says nothing"],
    },
    Promise {
        line: Line::Discovery,
        what: "what a client has already is not sent again",
        kept: &[
            "discovery: what is known already is not sent again",
            "discovery: what is known of all groups is not sent again",
        ],
        refused: &["discovery: schemas for those who explain"],
    },
    Promise {
        line: Line::Lists,
        what: "selectors, in lists and watches",
        kept: &[
            "lists: labels select",
            "lists: fields select by name and namespace",
            "watches: what begins to be selected is added, and what ceases to be is deleted",
        ],
        refused: &[
            "lists: a label selector that cannot be read is refused",
            "lists: a field that cannot be selected by is refused",
        ],
    },
    Promise {
        line: Line::Lists,
        what: "pages",
        kept: &["lists: pages go on where the last one ended", "lists: an empty list"],
        refused: &["lists: a page that cannot be continued is refused"],
    },
    Promise {
        line: Line::Accept,
        what: "shapes of answers: tables, metadata, YAML",
        kept: &[
            "lists: tables show what kubectl prints",
            "lists: metadata alone",
            "lists: YAML is answered to those who ask for it",
        ],
        refused: &["lists: what no server can answer is refused"],
    },
    Promise {
        line: Line::Statuses,
        what: "statuses with reason, details and causes",
        kept: &["deletion: what is deleted at once is told as a Status", "places: paths that lead nowhere"],
        refused: &[
            "objects: what is there already cannot be created",
            "objects: an update from an old version is a conflict",
            "definitions: each limit of a schema has its words",
        ],
    },
    Promise {
        line: Line::Statuses,
        what: "unknown fields: dropped, told or refused",
        kept: &[
            "patches: fields that nobody knows are dropped, told or refused",
            "definitions: what its schema does not know is dropped, told or refused",
        ],
        refused: &[
            "apply: a field that nobody knows is refused by apply",
            "patches: a member given twice is refused when asked strictly",
        ],
    },
    Promise {
        line: Line::Writes,
        what: "create and update",
        kept: &[
            "objects: a name is made from generateName",
            "objects: an update replaces the whole object",
            "objects: an update without a version is unconditional for a ConfigMap",
        ],
        refused: &[
            "definitions: an update needs a version",
            "objects: an update with another uid is a conflict",
        ],
    },
    Promise {
        line: Line::Writes,
        what: "JSON, merge and strategic patches",
        kept: &[
            "patches: a JSON patch adds, replaces, tests, copies, moves and removes",
            "patches: a merge patch sets, and removes with null",
            "patches: a strategic patch deletes and replaces with directives",
        ],
        refused: &[
            "patches: a JSON patch whose test fails changes nothing",
            "patches: a strategic patch without its merge key is refused",
            "patches: a patch of an unknown type is refused with the known ones",
        ],
    },
    Promise {
        line: Line::Writes,
        what: "server-side apply",
        kept: &[
            "apply: apply creates, owns, and takes away what it no longer says",
            "apply: equal values are shared",
            "apply: containers are owned by name",
        ],
        refused: &[
            "apply: a conflict names the manager and the fields",
            "apply: apply needs a manager, a kind and the right name",
        ],
    },
    Promise {
        line: Line::Writes,
        what: "dry runs",
        kept: &[
            "places: a dry run stores nothing",
            "apply: a dry run of an apply shows what would be, and is nothing",
            "deletion: a dry run deletes nothing",
        ],
        refused: &["deletion: options that make no sense"],
    },
    Promise {
        line: Line::Writes,
        what: "deletion: finalizers, policies, preconditions, collections",
        kept: &[
            "deletion: a finalizer holds an object",
            "deletion: dependents are orphaned, or kept in the foreground",
            "deletion: a collection is deleted as it is selected",
        ],
        refused: &["deletion: preconditions by uid", "deletion: preconditions by version"],
    },
    Promise {
        line: Line::Writes,
        what: "subresources and generations",
        kept: &[
            "places: status is written by itself",
            "places: scale of a Deployment",
            "definitions: generation grows with content, not with status or metadata",
        ],
        refused: &["places: methods that are not for that"],
    },
    Promise {
        line: Line::Definitions,
        what: "kinds of one's own",
        kept: &[
            "definitions: a definition from beginning to end",
            "definitions: its columns are printed",
            "definitions: null and empty values",
        ],
        refused: &[
            "malformed: definitions that cannot be",
            "malformed: definitions whose schemas say too little or too much",
            "definitions: rules in CEL are enforced",
        ],
    },
    Promise {
        line: Line::Discovery,
        what: "discovery and schemas",
        kept: &[
            "discovery: the resources of a version",
            "discovery: aggregated discovery",
            "forms: both names and both versions are told",
        ],
        refused: &["discovery: groups and versions", "discovery: schemas for those who explain"],
    },
    Promise {
        line: Line::Access,
        what: "users, rights, reviews and acting as others",
        kept: &[
            "rights: a role gives rights in its namespace",
            "rights: reviews of oneself",
            "rights: a service account gets a token and comes in with it",
        ],
        refused: &[
            "rights: nobody is let in without a name",
            "rights: nobody gives away more than he has",
            "rights: acting as somebody else",
            "rights: whoever may change what is there need not make anything",
            "rights: whoever may see one object may list and watch that one",
        ],
    },
    Promise {
        line: Line::Workspaces,
        what: "workspaces, exports, bindings and views",
        kept: &[
            "workspaces: a workspace of one's own",
            "workspaces: bound kinds are served like any other",
            "workspaces: the view shows bound objects of all workspaces",
        ],
        refused: &[
            "workspaces: workspaces are entered by those who may",
            "workspaces: a binding to what is not there is refused",
            "workspaces: a workspace's type has to be there and to fit its parent's",
            "workspaces: a claim is good for the verbs that both sides name",
        ],
    },
];

/// What is promised and not shown, in words.
pub fn gaps(files: &[File]) -> Vec<String> {
    let cases: Vec<String> = files.iter().flat_map(|file| &file.cases).map(ToString::to_string).collect();
    let mut gaps = Vec::new();
    for promise in &PROMISES {
        let all = || promise.kept.iter().chain(promise.refused);
        let missing = all().filter(|name| !cases.iter().any(|case| case == *name));
        gaps.extend(missing.map(|name| format!("{}: there is no case `{name}`", promise.what)));
        if all().count() < CASES_MIN || promise.refused.is_empty() {
            gaps.push(format!("{}: {CASES_MIN} cases are needed, one of them a refusal", promise.what));
        }
    }
    for line in Line::ALL {
        let promises = || PROMISES.iter().filter(|promise| promise.line == line);
        let cases: BTreeSet<_> =
            promises().flat_map(|promise| promise.kept.iter().chain(promise.refused)).collect();
        if cases.len() < CASES_MIN || promises().all(|promise| promise.refused.is_empty()) {
            gaps.push(format!("{line:?}: {CASES_MIN} cases are needed, one of them a refusal"));
        }
    }
    let requests = requests(files);
    if requests < REQUESTS_MIN {
        gaps.push(format!("{requests} requests and watches are compared whole, {REQUESTS_MIN} are needed"));
    }
    gaps
}

/// Whether a case is said to show a refusal. Its answers have to hold one.
pub fn is_refused(case: &str) -> bool {
    PROMISES.iter().any(|promise| promise.refused.contains(&case))
}

/// How many requests and watches are sent, and their answers compared whole.
fn requests(files: &[File]) -> usize {
    let steps = files.iter().flat_map(|file| &file.cases).flat_map(|case| &case.steps);
    let is_whole = |step: &&Step| match &step.action {
        Action::Ask(ask) | Action::Until { ask, .. } | Action::Watch { ask, .. } => ask.only.is_empty(),
        Action::Let { .. } | Action::Events { .. } | Action::Rest { .. } => false,
    };
    steps.filter(is_whole).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_is_shown() {
        let files = crate::run::read_files().unwrap();
        let gaps = gaps(&files);
        println!("{} requests and watches", requests(&files));
        assert!(gaps.is_empty(), "{}", gaps.join("\n"));
    }

    #[test]
    fn too_few_requests_are_missed() {
        let mut files = crate::run::read_files().unwrap();
        for file in &mut files {
            file.cases.clear();
        }
        let gaps = gaps(&files);
        assert!(gaps.iter().any(|gap| gap.starts_with("0 requests and watches")), "{gaps:?}");
    }

    #[test]
    fn a_case_that_is_gone_is_missed() {
        let mut files = crate::run::read_files().unwrap();
        for file in &mut files {
            file.cases.retain(|case| case.name != "its columns are printed");
        }
        let gaps = gaps(&files);
        assert_eq!(gaps, ["kinds of one's own: there is no case `definitions: its columns are printed`"]);
    }
}
