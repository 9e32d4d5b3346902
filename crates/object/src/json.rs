//! One pass over JSON bytes: checks them, and hashes them on the way if asked.
//!
//! Nothing is built. A value is a span of the text; [`Raw`] looks into such a span when somebody asks. What
//! is valid here is exactly what `serde_json` reads into a `Value`, except that members may not repeat where
//! content is digested.

mod path;
mod raw;
mod scan;
mod shell;
mod text;

pub(crate) use path::path_at;
pub use raw::{Elements, Members, Raw};
pub(crate) use scan::{Limited, Member, Scanner, Span};
pub(crate) use shell::{Shell, skip_unchecked};
pub use text::write_string;
pub(crate) use text::{escape, unescape};

/// The deepest nesting that is ever read, whatever limit is given: one level less than `serde_json` refuses,
/// so that any span can also become a `Value`.
pub const DEEPEST: u32 = 127;

#[cfg(test)]
mod tests;
