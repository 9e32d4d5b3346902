//! Names made from other names, within the limits that servers set.

use mailboat_object::digest::digest_of_value;
use serde_json::json;

/// The longest name of most objects.
const LONGEST_NAME: usize = 253;
/// The longest value of a label.
const LONGEST_LABEL_VALUE: usize = 63;

/// The name of a further object beside the one called `name`: readable, and with a hash because nothing keeps a
/// user from calling an object of their own almost anything.
pub fn numbered(name: &str, number: &str) -> String {
    let suffix = format!("-{number}-{:08x}", short_hash(&[name, number]));
    format!("{}{suffix}", shortened(name, LONGEST_NAME - suffix.len()))
}

/// A name as the value of a label. Most fit; a longer one is cut and gets a hash.
pub fn label_value(name: &str) -> String {
    if name.len() <= LONGEST_LABEL_VALUE {
        return name.to_owned();
    }
    let suffix = format!("-{:08x}", short_hash(&[name]));
    format!("{}{suffix}", shortened(name, LONGEST_LABEL_VALUE - suffix.len()))
}

fn short_hash(parts: &[&str]) -> u64 {
    digest_of_value(&json!(parts)).bits() & 0xffff_ffff
}

fn shortened(name: &str, length: usize) -> &str {
    let mut end = length.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_limits_and_apart() {
        let long = "a".repeat(253);
        let (one, other) = (numbered(&long, "01"), numbered(&long, "10"));
        assert!(one.len() <= 253 && one != other, "{one}");
        assert_eq!(numbered("ep", "01"), numbered("ep", "01"));
        assert!(numbered("ep", "01").starts_with("ep-01-"), "{}", numbered("ep", "01"));
        // A placement called as another's slice would be without the hash.
        assert_ne!(numbered("ep", "01"), "ep-01");
    }

    #[test]
    fn a_label_value_is_the_name_where_it_fits() {
        assert_eq!(label_value("edge-placement-c"), "edge-placement-c");
        let (one, other) = (label_value(&"a".repeat(64)), label_value(&"a".repeat(65)));
        assert!(one.len() == 63 && one != other, "{one} {other}");
    }
}
