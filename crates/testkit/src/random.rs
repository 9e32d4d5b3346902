//! Random names and tokens: fresh in each run, so that no test can come to depend on one.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::{Doing, Result};

/// A bearer token with 192 random bits.
pub(crate) fn token() -> Result<String> {
    hex::<24>()
}

/// A short suffix that makes a name its own.
pub(crate) fn suffix() -> Result<String> {
    hex::<4>()
}

/// A number below `bound`; its quality does not matter, only that two processes rarely draw the same.
pub(crate) fn below(bound: u16) -> u16 {
    use std::hash::{BuildHasher as _, RandomState};
    let drawn = RandomState::new().hash_one(std::process::id()) % u64::from(bound.max(1));
    u16::try_from(drawn).unwrap_or(0)
}

fn hex<const BYTES: usize>() -> Result<String> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0_u8; BYTES];
    File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).doing("reading", source)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
