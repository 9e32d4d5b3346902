//! A digest of JSON content that does not change with the order of members or the way a number is written.
//!
//! It stands in marks on delivered objects and is compared by later releases on other machines, so its
//! definition is fixed for ever. `h` is XXH3-64 without seed or secret. `pair(a, b)` is the product of
//! `a ⊕ LEFT` and `b ⊕ RIGHT` on 128 bits, its upper half `⊕` its lower one. `+` and `⊕` are on 64 bits, and
//! `+` wraps. Words in capitals are constants of this file.
//!
//! | value | digest |
//! |---|---|
//! | `null`, `false`, `true` | `NULL`, `FALSE`, `TRUE` |
//! | string | `h(its UTF-8 bytes, unescaped) ⊕ STRING` |
//! | integer in the range of `i64` or `u64` | `pair(magnitude, INTEGER)`; below zero `pair(magnitude, NEGATIVE)` |
//! | any other number | `pair(bits of the nearest f64, FLOAT)` |
//! | array | begins as `ARRAY`; each element makes it `pair(so far, element)` |
//! | map | `pair(sum of all pair(h(key), value), number of members ⊕ MAP)` |
//!
//! A number written with a fraction or an exponent, or too large for 64 bits, is first rounded to the nearest
//! `f64`, as API servers do, and is an integer if that is one in range: `1`, `1.0` and `1e0` are equal.
//! The whole digest is never 0, which means "nothing there": 0 becomes 1.
//!
//! It tells changed from unchanged among objects of one tenant. It is not a cryptographic hash.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::json::Scanner;
use crate::malformed::Malformed;

/// The digest of some JSON content, whatever the order of its members; equal on every platform and release.
/// Written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(u64);

/// The text is not a digest: 16 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a digest is written as 16 lower-case hexadecimal digits")]
pub struct NotADigest;

impl Digest {
    /// Nothing is there to be digested.
    pub const NONE: Self = Self(0);

    /// Whether nothing was there.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The 64 bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The digest with these bits, as [`Digest::bits`] gave them.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The digest of something that is there.
    pub(crate) fn of(raw: u64) -> Self {
        Self(if raw == 0 { 1 } else { raw })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let digits = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !digits {
            return Err(NotADigest);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| NotADigest)
    }
}

/// The digest of one JSON value in its bytes.
pub fn digest_of(json: &[u8]) -> Result<Digest, Malformed> {
    let digested = Scanner::over(json).and_then(|mut scanner| {
        let digest = scanner.digest()?;
        scanner.end()?;
        Ok(digest)
    });
    digested.map(Digest::of).map_err(|flaw| flaw.within(json))
}

/// The digest of one parsed JSON value: the same as that of its bytes.
pub fn digest_of_value(value: &Value) -> Digest {
    Digest::of(of_value(value))
}

fn of_value(value: &Value) -> u64 {
    match value {
        Value::Null => NULL,
        Value::Bool(false) => FALSE,
        Value::Bool(true) => TRUE,
        Value::String(text) => string(text),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(magnitude), _, _) => integer(magnitude, false),
            (None, Some(negative), _) => integer(negative.unsigned_abs(), true),
            (None, None, float) => self::float(float.unwrap_or(f64::NAN)),
        },
        Value::Array(elements) => elements.iter().map(of_value).fold(ARRAY, pair),
        Value::Object(members) => {
            let mut map = MapDigest::default();
            for (key, member) in members {
                map.add(key_hash(key), of_value(member));
            }
            map.finish()
        }
    }
}

// Arbitrary numbers, far apart, that shall never change.
const LEFT: u64 = 0xe703_7ed1_a0b4_28db;
const RIGHT: u64 = 0x8ebc_6af0_9c88_c6e3;
const STRING: u64 = 0x9ae1_6a3b_2f90_404f;
const INTEGER: u64 = 0xc3a5_c85c_97cb_3127;
const NEGATIVE: u64 = 0xb492_b66f_be98_f273;
const FLOAT: u64 = 0x1d8e_4e27_c47d_124f;
const MAP: u64 = 0xeb44_acca_b455_d165;
pub(crate) const ARRAY: u64 = 0x4be9_8134_a5b8_c3d5;
pub(crate) const NULL: u64 = 0x60be_e2be_e120_fc15;
pub(crate) const FALSE: u64 = 0xa3b1_9535_4a39_b70d;
pub(crate) const TRUE: u64 = 0x1b03_738e_66f2_a1c5;

/// A map's digest while its members come by, in any order.
#[derive(Clone, Copy, Default)]
pub(crate) struct MapDigest {
    sum: u64,
    members: u64,
}

impl MapDigest {
    pub(crate) fn add(&mut self, key_hash: u64, value: u64) {
        self.sum = self.sum.wrapping_add(pair(key_hash, value));
        self.members += 1;
    }

    pub(crate) fn is_empty(self) -> bool {
        self.members == 0
    }

    pub(crate) fn finish(self) -> u64 {
        pair(self.sum, self.members ^ MAP)
    }
}

#[inline]
pub(crate) fn key_hash(key: &str) -> u64 {
    xxh3_64(key.as_bytes())
}

#[inline]
pub(crate) fn string(text: &str) -> u64 {
    xxh3_64(text.as_bytes()) ^ STRING
}

#[inline]
pub(crate) fn integer(magnitude: u64, negative: bool) -> u64 {
    pair(magnitude, if negative && magnitude != 0 { NEGATIVE } else { INTEGER })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked just before"
)]
pub(crate) fn float(number: f64) -> u64 {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    const TWO_TO_64: f64 = 2.0 * TWO_TO_63;
    if number.fract() == 0.0 && (-TWO_TO_63..TWO_TO_64).contains(&number) {
        return integer(number.abs() as u64, number < 0.0);
    }
    pair(number.to_bits(), FLOAT)
}

/// Two words mixed into one, the order telling: a multiplication costs a nanosecond, a hash of so few bytes
/// several, and half of all work is here.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of a product are taken apart")]
pub(crate) fn pair(first: u64, second: u64) -> u64 {
    let product = u128::from(first ^ LEFT) * u128::from(second ^ RIGHT);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests;
