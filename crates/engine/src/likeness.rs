//! Whether a copy is what was intended, without writing to find out.

use mailboat_object::json::Raw;

/// Whether every field of an intent is in a copy with the same value. The copy may have more: what the server
/// defaulted, and what others put there.
///
/// Lists are compared by place: an element of the copy may have more fields than that of the intent, but the
/// list may not have more elements, because an element that we took out must be seen to be still there.
pub fn covers(copy: Raw<'_>, intent: Raw<'_>) -> bool {
    if intent.is_map() {
        return copy.is_map()
            && intent.members().all(|(key, wanted)| match copy.member(&key) {
                Some(found) => covers(found, wanted),
                // An empty value that the server did not keep is the same as none.
                None => is_empty(wanted),
            });
    }
    if intent.is_array() {
        let mut found = copy.elements();
        return copy.is_array()
            && intent.elements().all(|wanted| found.next().is_some_and(|found| covers(found, wanted)))
            && found.next().is_none();
    }
    copy.same_scalar(intent)
}

fn is_empty(value: Raw<'_>) -> bool {
    value.is_null()
        || (value.is_map() && value.members().next().is_none())
        || (value.is_array() && value.elements().next().is_none())
}

trait Scalar {
    fn same_scalar(self, other: Self) -> bool;
}

impl Scalar for Raw<'_> {
    /// Equal text, or equal once escapes are resolved and numbers read.
    fn same_scalar(self, other: Self) -> bool {
        if self.json() == other.json() {
            return true;
        }
        if self.is_map() || self.is_array() {
            return false;
        }
        match (self.as_str(), other.as_str()) {
            (Some(mine), Some(theirs)) => mine == theirs,
            (None, None) => self.to_value() == other.to_value(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(copy: &str, intent: &str) -> bool {
        covers(Raw::parse(copy.as_bytes()).unwrap(), Raw::parse(intent.as_bytes()).unwrap())
    }

    #[test]
    fn a_copy_may_have_more_than_was_intended_but_nothing_else() {
        let table = [
            (r#"{"a":1,"b":{"c":"x","d":2}}"#, r#"{"b":{"c":"x"}}"#, true),
            (r#"{"a":1}"#, r#"{"a":2}"#, false),
            (r#"{"a":1}"#, r#"{"b":1}"#, false),
            (r#"{"a":1}"#, r#"{"a":1,"b":{}}"#, true),
            (r#"{"a":1}"#, r#"{"a":1,"b":null,"c":[]}"#, true),
            (r#"{"a":{}}"#, r#"{"a":"x"}"#, false),
            (r#"[{"name":"c","image":"i","pullPolicy":"Always"}]"#, r#"[{"name":"c","image":"i"}]"#, true),
            (r"[1,2]", r"[1]", false),
            (r"[1]", r"[1,2]", false),
            (r#"{"a":"é"}"#, r#"{"a":"\u00e9"}"#, true),
            (r#"{"a":1.0}"#, r#"{"a":1.00}"#, true),
            (r#"{"a":"1"}"#, r#"{"a":1}"#, false),
            (r#"{"cpu":"1"}"#, r#"{"cpu":"1000m"}"#, false),
        ];
        for (copy, intent, expected) in table {
            assert_eq!(check(copy, intent), expected, "copy {copy}, intent {intent}");
        }
    }
}
