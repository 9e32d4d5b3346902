//! Objects in files, read from YAML or JSON and printed the same way.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use mailboat_api::generate::yaml;
use serde_json::{Value, json};

use crate::failure::refusal;

/// The largest file that is read.
const LIMIT_BYTES: u64 = 16 << 20;

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// As YAML documents
    Yaml,
    /// As JSON: one object, or a List of several
    Json,
}

/// Reads all objects of a file; `-` is standard input. Empty documents are left out, Lists are taken apart.
pub(crate) fn read(path: &Path) -> Result<Vec<Value>> {
    let unusable = |why: String| refusal(format!("{} cannot be used: {why}", path.display()));
    let mut text = String::new();
    let opened: Result<Box<dyn std::io::Read>, _> = if path == Path::new("-") {
        Ok(Box::new(std::io::stdin().lock()))
    } else {
        fs::File::open(path).map(|file| Box::new(file) as Box<dyn std::io::Read>)
    };
    let read = opened.and_then(|source| source.take(LIMIT_BYTES + 1).read_to_string(&mut text));
    let length = read.map_err(|error| unusable(error.to_string()))?;
    if length as u64 > LIMIT_BYTES {
        return Err(unusable(format!("it is larger than {} MiB", LIMIT_BYTES >> 20)));
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|bad| unusable(place_of(&bad)))?;
    let mut objects = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(mut map) if is_list(&map) => match map.remove("items") {
                Some(Value::Array(items)) => objects.extend(items),
                _ => return Err(unusable("it has a List without items".to_owned())),
            },
            Value::Object(_) => objects.push(document),
            _ => return Err(unusable("it holds something that is no object".to_owned())),
        }
    }
    if objects.is_empty() {
        return Err(unusable("it holds no object".to_owned()));
    }
    Ok(objects)
}

/// Prints objects to standard output.
pub(crate) fn print(objects: &[Value], format: Format) -> Result<()> {
    write_out(&text(objects, format))
}

/// Writes text to standard output; a reader that has gone is no failure of ours.
pub(crate) fn write_out(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output cannot be written"),
    }
}

fn text(objects: &[Value], format: Format) -> String {
    match (format, objects) {
        (Format::Yaml, _) => objects.iter().map(yaml).collect::<Vec<_>>().join("---\n"),
        (Format::Json, [object]) => format!("{object:#}\n"),
        (Format::Json, _) => {
            format!("{:#}\n", json!({ "apiVersion": "v1", "kind": "List", "items": objects }))
        }
    }
}

fn is_list(map: &serde_json::Map<String, Value>) -> bool {
    map.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && map.contains_key("items")
}

/// Where a file is malformed, without quoting it.
fn place_of(error: &serde_saphyr::Error) -> String {
    match error.location() {
        Some(at) => format!("it is no YAML or JSON (line {}, column {})", at.line(), at.column()),
        None => "it is no YAML or JSON".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Refusal;

    fn read_text(text: &str) -> Result<Vec<Value>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(file.path())
    }

    #[test]
    fn every_form_of_a_file_gives_its_objects() {
        let one = json!({ "kind": "A" });
        for (text, count) in [
            ("kind: A\n", 1),
            ("---\nkind: A\n---\n---\nkind: A\n", 2),
            ("{\"kind\": \"A\"}", 1),
            ("kind: List\nitems:\n- kind: A\n- kind: A\n", 2),
            ("kind: DeploymentList\nitems: [{kind: A}]\n", 1),
        ] {
            assert_eq!(read_text(text).unwrap(), vec![one.clone(); count], "{text}");
        }
    }

    #[test]
    fn what_holds_no_objects_is_refused_in_a_sentence() {
        for text in ["", "---\n", "- a\n", "text", "a: [", "kind: List\nitems: 3\n"] {
            let error = read_text(text).expect_err(text);
            assert!(error.is::<Refusal>() && error.to_string().lines().count() == 1, "{text:?}: {error}");
        }
        assert!(read(Path::new("/nowhere/f.yaml")).unwrap_err().to_string().contains("/nowhere/f.yaml"));
    }

    #[test]
    fn what_is_printed_can_be_read_again() {
        let objects = vec![json!({ "kind": "A", "data": { "x": "3" } }), json!({ "kind": "B" })];
        for format in [Format::Yaml, Format::Json] {
            assert_eq!(read_text(&text(&objects, format)).unwrap(), objects, "{format:?}");
        }
    }
}
