//! Go writes an empty list or map that was never set as `null`, and so do API servers.

use serde::{Deserialize, Deserializer};

/// Reads `null` as the empty value. Together with `default`, which is for members that are missing.
pub(crate) fn null_is_empty<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
