//! How an object is written down: the pieces that it rests as, each with its length before it.
//!
//! A start reads everything that is stored. In JSON it would have to look for the end of each piece, and several times over
//! for what managers own, which is most of it. Here it is told.

use std::sync::Arc;

use mailboat_object::{Name, Operation, Uid, Version};

use super::{Packed, PackedManager, Texts};

/// The first byte of a record. What begins with a brace is JSON, as objects were written before.
pub(crate) const RECORD: u8 = 1;

const DELETING: u8 = 1;
const OWNED: u8 = 2;
/// Seven bits of a number are in each byte; this one says that there are more.
const MORE: u8 = 0x80;

impl Packed {
    /// An object as it is written down.
    pub(crate) fn to_record(&self, uid: &Uid, version: Version) -> Vec<u8> {
        let texts = self.members.iter().map(|(_, text)| text.len());
        let fields = self.managers.iter().map(|manager| manager.fields.len() + 96);
        let mut out = Vec::with_capacity(texts.chain(fields).sum::<usize>() + 128);
        out.push(RECORD);
        put_number(&mut out, version.0);
        put_text(&mut out, &uid.to_string());
        out.push(if self.deleting { DELETING } else { 0 } | if self.owned { OWNED } else { 0 });
        put_length(&mut out, self.members.len());
        for (name, text) in &self.members {
            put_text(&mut out, name);
            put_text(&mut out, text);
        }
        put_length(&mut out, self.managers.len());
        for manager in &self.managers {
            put_text(&mut out, &manager.name);
            out.push(u8::from(manager.operation == Operation::Apply));
            put_text(&mut out, &manager.api_version);
            put_text(&mut out, &manager.subresource);
            put_number(&mut out, manager.time_seconds.map_or(0, |seconds| seconds.saturating_add(1)));
            put_text(&mut out, &manager.fields);
        }
        out
    }

    /// Reads an object back. That it is what was written is checked by whoever kept it.
    pub(crate) fn from_record(record: &[u8], texts: &mut Texts) -> Option<(Self, Uid, Version)> {
        let mut reading = Reading { rest: record };
        if reading.byte()? != RECORD {
            return None;
        }
        let version = Version(reading.number()?);
        let uid = Uid::parse(reading.text()?);
        let flags = reading.byte()?;
        let members = reading.each(|reading| {
            let (name, text) = (Name::new(reading.text()?), reading.text()?);
            // Metadata is never the same.
            let text = if &*name == "metadata" { Arc::from(text) } else { texts.share(text) };
            Some((name, text))
        })?;
        let managers = reading.each(|reading| {
            Some(PackedManager {
                name: Name::new(reading.text()?),
                operation: if reading.byte()? == 0 { Operation::Update } else { Operation::Apply },
                api_version: Name::new(reading.text()?),
                subresource: Name::new(reading.text()?),
                time_seconds: reading.number()?.checked_sub(1),
                fields: texts.share(reading.text()?),
            })
        })?;
        let packed = Self { members, managers, deleting: flags & DELETING != 0, owned: flags & OWNED != 0 };
        reading.rest.is_empty().then_some((packed, uid, version))
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    // Nothing that is in memory is longer.
    put_number(out, u64::try_from(length).unwrap_or(u64::MAX));
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low & !MORE);
        }
        out.push(low | MORE);
    }
}

/// What is left to read of a record. None: it ends too early, or makes no sense.
struct Reading<'r> {
    rest: &'r [u8],
}

impl<'r> Reading<'r> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & !MORE) << shift;
            if byte & MORE == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'r str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        std::str::from_utf8(text).ok()
    }

    /// So many as stand before them.
    fn each<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Box<[T]>> {
        let count = self.number()?;
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed() -> Packed {
        let manager = |name: &str, operation, time_seconds| PackedManager {
            name: Name::new(name),
            operation,
            api_version: Name::new("v1"),
            subresource: Name::EMPTY,
            time_seconds,
            fields: Arc::from(r#"{"f:data":{}}"#),
        };
        Packed {
            members: [("metadata", r#"{"name":"a"}"#), ("data", r#"{"k":"é"}"#)]
                .map(|(name, text)| (Name::new(name), Arc::from(text)))
                .into(),
            managers: [
                manager("alice", Operation::Apply, Some(1_790_000_000)),
                manager("", Operation::Update, None),
            ]
            .into(),
            deleting: true,
            owned: false,
        }
    }

    #[test]
    fn what_is_written_reads_back_and_what_is_cut_off_does_not() {
        let (uid, version) = (Uid::parse("6ab3e4a2-44d2-4fb6-8d2e-000000000001"), Version(u64::MAX));
        let record = packed().to_record(&uid, version);
        let (read, read_uid, read_version) = Packed::from_record(&record, &mut Texts::default()).unwrap();
        assert_eq!((read_uid, read_version, read.deleting, read.owned), (uid.clone(), version, true, false));
        assert_eq!(read.to_record(&uid, version), record);
        assert_eq!(read.members[1].1, packed().members[1].1);
        assert_eq!(read.managers[0].time_seconds, Some(1_790_000_000));
        for end in 0..record.len() {
            assert!(Packed::from_record(&record[..end], &mut Texts::default()).is_none(), "{end}");
        }
        let longer = [&record[..], b"x"].concat();
        assert!(Packed::from_record(&longer, &mut Texts::default()).is_none());
    }

    #[test]
    fn what_is_deeper_than_readers_read_is_not_taken_for_nothing() {
        let deep = (0..300).fold(serde_json::json!({}), |value, _| serde_json::json!({ "a": value }));
        let body = serde_json::json!({ "metadata": { "name": "a" }, "spec": deep });
        let managed = crate::managed::ManagedFields::default();
        let packed = Packed::of(&body, &managed, &mut |text| Arc::from(text));
        assert!(packed.body() == body, "it is as it was");
    }

    #[test]
    fn numbers_of_every_length_read_back() {
        for number in
            (0..64).map(|bits| 1_u64 << bits).flat_map(|number| [number - 1, number]).chain([u64::MAX])
        {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(Reading { rest: &out }.number(), Some(number));
        }
        assert_eq!(Reading { rest: &[0xff; 11] }.number(), None);
    }
}
