//! Scripts: what is done to one object, one step after the other.

use std::fmt;

use mailboat_object::wire::Propagation;
use serde_json::{Value, json};

use crate::draw::Draw;
use crate::subjects::Subject;

#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub steps: Vec<Step>,
}

/// One request. What it holds of versions and uids is said in words, since they differ between servers.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create {
        body: Value,
        manager: &'static str,
    },
    /// Replaces the object with its present state, this merged into it.
    Update {
        change: Value,
        version: Which,
        status: bool,
        manager: &'static str,
    },
    Apply {
        intent: Value,
        force: bool,
        version: Which,
        status: bool,
        manager: &'static str,
    },
    Merge {
        patch: Value,
        status: bool,
        manager: &'static str,
    },
    Json {
        patch: Value,
        manager: &'static str,
    },
    Delete {
        uid: Which,
        version: Which,
        propagation: Option<Propagation>,
    },
}

/// Which version or uid a request names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    None,
    Right,
    Wrong,
}

const MANAGERS: [&str; 3] = ["alice", "bob", "carol"];
const STEPS: usize = 14;

impl Script {
    pub(crate) fn drawn(subject: &Subject, seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let steps = (0..2 + draw.below(STEPS)).map(|index| Step::drawn(subject, &mut draw, index)).collect();
        Self { steps }
    }
}

impl Step {
    fn drawn(subject: &Subject, draw: &mut Draw, index: usize) -> Self {
        let manager = draw.one(&MANAGERS);
        let status = subject.kind.rules.status.is_some() && draw.chance(25);
        let content = |draw: &mut Draw| if status { subject.status(draw) } else { subject.content(draw) };
        match draw.below(if index == 0 { 40 } else { 100 }) {
            0..20 => Self::Create { body: subject.whole(draw), manager },
            20..50 if index > 0 && draw.chance(40) => {
                let version = Self::which(draw, 70);
                Self::Update { change: content(draw), version, status, manager }
            }
            20..65 => Self::Apply {
                intent: subject.named(content(draw)),
                force: draw.chance(50),
                version: if draw.chance(90) { Which::None } else { Self::which(draw, 50) },
                status: status && index > 0,
                manager,
            },
            65..78 => Self::Merge { patch: nulled(content(draw), draw), status, manager },
            78..88 => Self::Json { patch: json_patch(subject, draw), manager },
            _ => Self::Delete {
                uid: Self::which(draw, 30),
                version: Self::which(draw, 20),
                propagation: [
                    None,
                    None,
                    Some(Propagation::Background),
                    Some(Propagation::Foreground),
                    Some(Propagation::Orphan),
                ][draw.below(5)],
            },
        }
    }

    fn which(draw: &mut Draw, right: usize) -> Which {
        match draw.below(100) {
            chance if chance < right => Which::Right,
            chance if chance >= 88 => Which::Wrong,
            _ => Which::None,
        }
    }
}

/// A patch in which some members are to be removed.
fn nulled(mut patch: Value, draw: &mut Draw) -> Value {
    if let Value::Object(members) = &mut patch {
        for (_, member) in members.iter_mut() {
            *member = if draw.chance(15) { Value::Null } else { nulled(member.take(), draw) };
        }
    }
    patch
}

fn json_patch(subject: &Subject, draw: &mut Draw) -> Value {
    let operation = |draw: &mut Draw| {
        let (path, value) = subject.pointed(draw);
        match draw.below(10) {
            0..5 => json!({ "op": "add", "path": path, "value": value }),
            5..7 => json!({ "op": "replace", "path": path, "value": value }),
            7..9 => json!({ "op": "remove", "path": path }),
            _ => json!({ "op": "test", "path": path, "value": value }),
        }
    };
    let count = 1 + draw.below(2);
    (0..count).map(|_| operation(draw)).collect()
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().enumerate().try_for_each(|(index, step)| writeln!(f, "  {index}: {step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { body, manager } => write!(f, "{manager} creates {body}"),
            Self::Update { change, version, status, manager } => {
                write!(f, "{manager} updates with {change}, version {version:?}, status {status}")
            }
            Self::Apply { intent, force, version, status, manager } => {
                write!(f, "{manager} applies {intent}, force {force}, version {version:?}, status {status}")
            }
            Self::Merge { patch, status, manager } => write!(f, "{manager} merges {patch}, status {status}"),
            Self::Json { patch, manager } => write!(f, "{manager} patches {patch}"),
            Self::Delete { uid, version, propagation } => {
                write!(f, "delete, uid {uid:?}, version {version:?}, {propagation:?}")
            }
        }
    }
}
