//! Replacing the one place that a plain path names, by copying spans.

use std::ops::Range;

use mailboat_object::json::Raw;

/// A path of names and indices alone, such as `$.spec.template.spec.containers.0.image`: what people write,
/// and what needs no tree of the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PlainPath {
    steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    Name(String),
    Index(usize),
}

impl PlainPath {
    /// Takes a path that was found to be valid; `None` if it is not a plain one.
    pub(super) fn of(path: &str) -> Option<Self> {
        let mut steps = Vec::new();
        for segment in path.strip_prefix("$.")?.split('.') {
            let (name, indices) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
            let plain =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            steps.push(match name.parse::<usize>() {
                Ok(index) if plain => Step::Index(index),
                Err(_) if plain => Step::Name(name.to_owned()),
                _ => return None,
            });
            for index in indices.split_inclusive(']') {
                let digits = index.strip_prefix('[')?.strip_suffix(']')?;
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                steps.push(Step::Index(digits.parse().ok()?));
            }
        }
        Some(Self { steps })
    }

    /// The top-level member that it leads into.
    pub(super) fn member(&self) -> Option<&str> {
        match self.steps.first()? {
            Step::Name(name) => Some(name),
            Step::Index(_) => None,
        }
    }

    /// `json` with `value`, which is JSON too, at this place. The last name may be new; an error is the part of
    /// the path that is missing.
    pub(super) fn replace(&self, json: Raw<'_>, value: &str) -> Result<String, String> {
        let text = json.json();
        let mut at = json;
        for (level, step) in self.steps.iter().enumerate() {
            let below = match step {
                Step::Name(name) => at.member(name),
                Step::Index(index) => at.elements().nth(*index),
            };
            at = match (below, step) {
                (Some(below), _) => below,
                (None, Step::Name(name)) if level + 1 == self.steps.len() && at.is_map() => {
                    let start = span_of(at, text).start + 1;
                    let comma = if at.members().next().is_some() { "," } else { "" };
                    return Ok(spliced(text, start..start, &["\"", name, "\":", value, comma]));
                }
                (None, _) => return Err(self.written(level + 1)),
            };
        }
        Ok(spliced(text, span_of(at, text), &[value]))
    }

    fn written(&self, levels: usize) -> String {
        let steps = self.steps.iter().take(levels).map(|step| match step {
            Step::Name(name) => format!(".{name}"),
            Step::Index(index) => format!("[{index}]"),
        });
        std::iter::once("$".to_owned()).chain(steps).collect()
    }
}

/// Where a value stands in the JSON that it was found in.
pub(super) fn span_of(inner: Raw<'_>, json: &str) -> Range<usize> {
    let start = inner.json().as_ptr().addr().wrapping_sub(json.as_ptr().addr());
    start..start + inner.json().len()
}

fn spliced(text: &str, span: Range<usize>, middle: &[&str]) -> String {
    let length: usize = middle.iter().map(|part| part.len()).sum();
    let mut json = String::with_capacity(text.len() - span.len() + length);
    json.push_str(text.get(..span.start).unwrap_or_default());
    json.extend(middle.iter().copied());
    json.push_str(text.get(span.end..).unwrap_or_default());
    json
}
