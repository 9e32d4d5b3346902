//! How fields are written and read, whatever they mean.

use super::BadProtobuf;

const NUMBER: u64 = 0;
const FIXED: u64 = 1;
const BYTES: u64 = 2;

/// Writes a field whose content tells how long it is only when it is written.
pub(crate) fn within(
    number: u64,
    out: &mut Vec<u8>,
    content: impl FnOnce(&mut Vec<u8>) -> Result<(), BadProtobuf>,
) -> Result<(), BadProtobuf> {
    put_tag(number, BYTES, out);
    let from = out.len();
    content(out)?;
    let (length, bytes) = varint((out.len() - from) as u64);
    out.splice(from..from, bytes.into_iter().take(length));
    Ok(())
}

pub(crate) fn put_bytes(number: u64, content: &[u8], out: &mut Vec<u8>) {
    put_tag(number, BYTES, out);
    put_varint(content.len() as u64, out);
    out.extend_from_slice(content);
}

pub(crate) fn put_double(number: u64, value: f64, out: &mut Vec<u8>) {
    put_tag(number, FIXED, out);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_number(number: u64, value: u64, out: &mut Vec<u8>) {
    put_tag(number, NUMBER, out);
    put_varint(value, out);
}

fn put_tag(number: u64, wire: u64, out: &mut Vec<u8>) {
    put_varint(number << 3 | wire, out);
}

fn put_varint(number: u64, out: &mut Vec<u8>) {
    let (length, bytes) = varint(number);
    out.extend(bytes.into_iter().take(length));
}

/// A number in as few bytes as it takes, seven bits in each; and how many these are.
fn varint(mut number: u64) -> (usize, [u8; 10]) {
    let (mut bytes, mut length) = ([0; 10], 0);
    for byte in &mut bytes {
        length += 1;
        *byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            break;
        }
        *byte |= 0x80;
    }
    (length, bytes)
}

/// A field's content, by how it is written.
#[derive(Clone, Copy)]
pub(crate) enum Wire<'b> {
    Number(u64),
    Fixed(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message, in order.
pub(crate) fn fields(mut rest: &[u8]) -> impl Iterator<Item = Result<(u64, Wire<'_>), BadProtobuf>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next_field(&mut rest).ok_or(BadProtobuf::Damaged);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn next_field<'b>(rest: &mut &'b [u8]) -> Option<(u64, Wire<'b>)> {
    let tag = read_varint(rest)?;
    let wire = match tag & 7 {
        0 => Wire::Number(read_varint(rest)?),
        1 => Wire::Fixed(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?)),
        2 => {
            let length = usize::try_from(read_varint(rest)?).ok()?;
            Wire::Bytes(take(rest, length)?)
        }
        5 => Wire::Fixed(u64::from(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))),
        _ => return None,
    };
    Some((tag >> 3, wire))
}

fn take<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
