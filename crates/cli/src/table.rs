//! Tables as kubectl prints them.

use jiff::Timestamp;
use mailboat_object::timestamp::human_duration;
use serde_json::Value;

/// A column: its heading, and what stands in it for an object.
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    pub(crate) cell: fn(&Value, Timestamp) -> String,
}

/// Sets rows in columns, three spaces apart; none gives a sentence instead.
pub(crate) fn set(columns: &[Column], objects: &[Value], now: Timestamp) -> String {
    let headings: Vec<String> = columns.iter().map(|column| column.heading.to_owned()).collect();
    let rows = objects.iter().map(|object| columns.iter().map(|column| (column.cell)(object, now)).collect());
    let rows: Vec<Vec<String>> = std::iter::once(headings).chain(rows).collect();
    aligned(&rows)
}

/// One more row below a table that was printed: its columns are as wide as those of the objects that stood there.
pub(crate) fn row(columns: &[Column], above: &[Value], object: &Value, now: Timestamp) -> String {
    let mut objects = above.to_vec();
    objects.push(object.clone());
    let all = set(columns, &objects, now);
    all.lines().last().map(|line| format!("{line}\n")).unwrap_or_default()
}

/// Rows in columns, three spaces apart.
pub(crate) fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |index: usize| {
        rows.iter()
            .filter_map(|row| row.as_ref().get(index))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.as_ref().iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text += cells.collect::<Vec<_>>().join("   ").trim_end();
        text.push('\n');
    }
    text
}

/// What stands under a path of members, as text; empty if there is nothing.
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The status of a condition; empty if it is not there.
pub(crate) fn condition(object: &Value, type_: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found =
        conditions.filter(|condition| condition["type"] == type_).find_map(|found| found["status"].as_str());
    found.unwrap_or_default().to_owned()
}

/// How long ago a time is, as kubectl says it.
pub(crate) fn age(object: &Value, pointer: &str, now: Timestamp) -> String {
    let Some(time) = object.pointer(pointer).and_then(Value::as_str) else { return String::new() };
    let Ok(time) = time.parse::<Timestamp>() else { return "<invalid>".to_owned() };
    human_duration(u64::try_from(now.as_second() - time.as_second()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let columns = [
            Column { heading: "NAME", cell: |object, _| text(object, "/metadata/name") },
            Column { heading: "READY", cell: |object, _| condition(object, "Ready") },
            Column { heading: "AGE", cell: |object, now| age(object, "/metadata/creationTimestamp", now) },
        ];
        let now = Timestamp::from_second(1_000_000).unwrap();
        let objects = [
            json!({ "metadata": { "name": "a-long-name", "creationTimestamp": Timestamp::from_second(999_990).unwrap().to_string() },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }),
            json!({ "metadata": { "name": "b" } }),
        ];
        assert_eq!(set(&columns, &objects, now), "NAME          READY   AGE\na-long-name   True    10s\nb\n");
    }
}
