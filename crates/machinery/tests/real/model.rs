//! The machinery, asked the same.

use std::sync::Arc;

use mailboat_machinery::{
    DeleteOptions, Machine, Moment, Patch, Seeded, Settings, Status, WriteOptions, Written,
};
use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, Key, Name, Uid, Version};
use serde_json::Value;

use crate::answer::{Answer, normalized, refusal};
use crate::script::{Step, Which};
use crate::subjects::{Subject, with_name};

pub(crate) struct Model<'m> {
    machine: Machine,
    subject: &'m Subject,
    key: Key,
    seconds: u64,
    chance: Seeded,
    live: Value,
}

impl<'m> Model<'m> {
    pub(crate) fn new(subject: &'m Subject, name: &str) -> Self {
        let cluster = ClusterId::new("guilder");
        let mut machine = Machine::new(Settings::default());
        machine.serve(&cluster, [Arc::clone(&subject.kind)]);
        let key = Key {
            cluster,
            kind: subject.kind.id.clone(),
            namespace: Name::new("default"),
            name: Name::new(name),
        };
        Self { machine, subject, key, seconds: 1_700_000_000, chance: Seeded(7), live: Value::Null }
    }

    pub(crate) fn step(&mut self, step: &Step) -> Answer {
        self.seconds += 1;
        let answered = self.ask(step);
        let before = self.live["metadata"]["resourceVersion"].clone();
        self.live = self.machine.get(&self.key).map_or(Value::Null, |object| object.to_value());
        let bumped = before != self.live["metadata"]["resourceVersion"];
        let (code, body, (reason, causes, message)) = match answered {
            Ok((code, body)) => (code, body, Default::default()),
            Err(status) => (status.code(), Value::Null, refusal(&status.to_json())),
        };
        Answer {
            code,
            reason,
            causes,
            message,
            bumped,
            body: normalized(body, &self.key.name),
            stored: normalized(self.live.clone(), &self.key.name),
        }
    }

    fn ask(&mut self, step: &Step) -> Result<(u16, Value), Status> {
        let options = |manager: &str, status: bool| WriteOptions {
            manager: Name::new(manager),
            part: if status { Part::Status } else { Part::Whole },
            ..WriteOptions::default()
        };
        let name = self.key.name.to_string();
        let moment = &mut Moment { now_seconds: self.seconds, random: &mut self.chance };
        let written = match step {
            Step::Create { body, manager } => {
                let body = with_name(body.clone(), &name);
                self.machine.create(&self.key, body, &options(manager, false), moment)
            }
            Step::Update { change, version, status, manager } => {
                let body = self.subject.updated(&self.live, change, *version, &name);
                self.machine.update(&self.key, body, &options(manager, *status), moment)
            }
            Step::Apply { intent, force, version, status, manager } => {
                let intent = Subject::intended(&self.live, intent, *version, &name);
                let patch = Patch::Apply { intent: &intent, force: *force };
                self.machine.patch(&self.key, patch, &options(manager, *status), moment)
            }
            Step::Merge { patch, status, manager } => {
                self.machine.patch(&self.key, Patch::Merge(patch), &options(manager, *status), moment)
            }
            Step::Json { patch, manager } => {
                self.machine.patch(&self.key, Patch::Json(patch), &options(manager, false), moment)
            }
            Step::Delete { uid, version, propagation } => {
                let metadata = &self.live["metadata"];
                let text = |member: &str| metadata[member].as_str().map(str::to_owned);
                let options = DeleteOptions {
                    uid: match uid {
                        Which::None => None,
                        Which::Right => text("uid").map(|uid| Uid::parse(&uid)),
                        Which::Wrong => Some(Uid::parse("00000000-0000-4000-8000-000000000000")),
                    },
                    version: match version {
                        Which::None => None,
                        Which::Right => text("resourceVersion").and_then(|version| Version::parse(&version)),
                        Which::Wrong => Some(Version(1)),
                    },
                    propagation: *propagation,
                    ..DeleteOptions::default()
                };
                let deleted = self.machine.delete(&self.key, &options, moment)?;
                let body = deleted.to_json(&self.subject.kind);
                return Ok((200, if body["kind"] == "Status" { Value::Null } else { body }));
            }
        };
        written.map(|Written { object, created, .. }| (if created { 201 } else { 200 }, object.to_value()))
    }
}
