//! `managedFields`, read for who wrote and then forgotten: they are often more than half of an object.

use std::borrow::Cow;

use crate::digest::Digest;
use crate::json::{Raw, Scanner, Span};
use crate::key::Name;
use crate::malformed::{Flaw, What};
use crate::object::{Hands, Operation, Writer};
use crate::timestamp::unix_seconds;

/// What one entry says, as far as it matters here.
#[derive(Default)]
struct Entry<'a> {
    manager: Cow<'a, str>,
    operation: Cow<'a, str>,
    subresource: Cow<'a, str>,
    time: Cow<'a, str>,
    fields: Option<Span>,
}

/// The last other writer so far, still in the body's own text.
struct Latest<'a> {
    entry: Entry<'a>,
    at_seconds: u64,
}

/// Passes the value of `managedFields`. `manager` is our own.
pub(super) fn read(scanner: &mut Scanner<'_>, manager: &str) -> Result<Hands, Flaw> {
    if scanner.peek() == Some(b'n') {
        return scanner.skip().map(|_| Hands::default());
    }
    if scanner.peek() != Some(b'[') {
        return Err(Flaw::new(scanner.at(), What::Expected("an array")));
    }
    let mut ours: Option<u64> = None;
    let mut ours_at_seconds = 0;
    let mut latest: Option<Latest<'_>> = None;
    scanner.array(|scanner| {
        let entry = read_entry(scanner)?;
        if entry.manager == manager && !manager.is_empty() {
            if entry.subresource.is_empty() {
                ours_at_seconds = unix_seconds(&entry.time).unwrap_or_default().max(ours_at_seconds);
            }
            if entry.operation == "Apply"
                && entry.subresource.is_empty()
                && let Some(fields) = entry.fields
            {
                // Several entries of ours differ in apiVersion; their order is the server's, so it does not count.
                let after = scanner.at();
                scanner.rewind(fields.start);
                ours = Some(ours.unwrap_or(0).wrapping_add(scanner.digest()?));
                scanner.rewind(after);
            }
            return Ok(());
        }
        if entry.subresource == "status" {
            // It did not touch the content, and would hide who did: controllers write status all the time.
            return Ok(());
        }
        // Servers sort by operation, time and name; times are whole seconds. Among equal ones the last counts.
        let at_seconds = unix_seconds(&entry.time).unwrap_or_default();
        if latest.as_ref().is_none_or(|latest| latest.at_seconds <= at_seconds) {
            latest = Some(Latest { entry, at_seconds });
        }
        Ok(())
    })?;
    let other = latest.map(|Latest { entry, at_seconds }| Writer {
        manager: Name::new(&entry.manager),
        at_seconds,
        operation: if entry.operation == "Apply" { Operation::Apply } else { Operation::Update },
        subresource: Name::new(&entry.subresource),
    });
    Ok(Hands { ours: ours.map_or(Digest::NONE, Digest::of), ours_at_seconds, other })
}

fn read_entry<'a>(scanner: &mut Scanner<'a>) -> Result<Entry<'a>, Flaw> {
    if scanner.peek() != Some(b'{') {
        return Err(Flaw::new(scanner.at(), What::Expected("an object")));
    }
    let mut entry = Entry::default();
    scanner.map::<false>(|scanner, member| {
        let field = match scanner.slice(member.key.inner) {
            "manager" => &mut entry.manager,
            "operation" => &mut entry.operation,
            "subresource" => &mut entry.subresource,
            "time" => &mut entry.time,
            "fieldsV1" => {
                entry.fields = Some(scanner.skip()?);
                return Ok(());
            }
            _ => return scanner.skip().map(|_| ()),
        };
        let value = scanner.skip()?;
        *field = Raw::trusted(scanner.slice(value)).as_str().unwrap_or_default();
        Ok(())
    })?;
    Ok(entry)
}
