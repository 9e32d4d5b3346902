//! JSON whose members are watched: one that is there twice is a mistake that servers tell.

use std::cell::RefCell;
use std::fmt;

use mailboat_machinery::schema::At;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// So many repeated members are told, and of names that are this long one; more say nothing new.
const TOLD_LIMIT: usize = 16;
const TOLD_LIMIT_BYTES: usize = 16 << 10;

/// Reads JSON, and names the members that are there more than once; the last one counts.
pub(crate) fn read(body: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let again = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = Watched { at: At::ROOT, again: &again }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, again.into_inner()))
}

/// A value on its way in, and where it stands.
#[derive(Clone, Copy)]
struct Watched<'w> {
    at: At<'w>,
    again: &'w RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Watched<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Watched<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            match elements.next_element_seed(Watched { at: self.at.element(list.len()), ..self })? {
                Some(element) => list.push(element),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let at = self.at.member(&name);
            let value = members.next_value_seed(Watched { at, again: self.again })?;
            if map.contains_key(&name) {
                note(self.again, at);
            }
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

/// Notes a member that is there again.
fn note(again: &RefCell<Vec<String>>, at: At<'_>) {
    let mut again = again.borrow_mut();
    let bytes: usize = again.iter().map(String::len).sum();
    if again.len() < TOLD_LIMIT && bytes < TOLD_LIMIT_BYTES {
        again.push(at.to_string());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_are_there_twice_are_named_and_the_last_counts() {
        let text = r#"{"a":{"b":1,"b":2},"c":[{"d":true},{"d":null,"d":"x"}],"e":-1.5}"#;
        let (value, again) = read(text.as_bytes()).unwrap();
        assert_eq!(value, json!({ "a": { "b": 2 }, "c": [{ "d": true }, { "d": "x" }], "e": -1.5 }));
        assert_eq!(again, ["a.b", "c[1].d"]);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in ["", "{", "{} {}", "[1,]"] {
            assert!(read(bad.as_bytes()).is_err(), "{bad}");
        }
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        assert!(read(deep.as_bytes()).is_err(), "the depth is limited");
    }
}
