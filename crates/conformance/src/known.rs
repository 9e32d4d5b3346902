//! The differences that are known, from the table in `docs/hub.md`.

use std::collections::BTreeSet;

use crate::difference::Difference;
use crate::script::Case;

/// The heading above the table.
const HEADING: &str = "## Known differences";
/// So many may be known.
pub const LIMIT: usize = 20;

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The cases in which it shows, as `file: name` with `*` for anything, and `; ` between several.
    pub cases: String,
    /// The paths at which it shows, with `*` for anything, and `; ` between several.
    pub path: String,
    /// Why it is so.
    pub reason: String,
}

impl Known {
    /// Whether it shows in a case.
    pub fn concerns(&self, case: &Case) -> bool {
        self.names().any(|name| matches(name, &case.to_string()))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.cases.split("; ")
    }

    /// Whether this difference is the known one.
    pub fn covers(&self, case: &Case, difference: &Difference) -> bool {
        self.concerns(case) && self.paths().any(|path| matches(path, &difference.path))
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        self.path.split("; ")
    }

    /// The cases and the paths of it that were not met.
    pub fn idle<'k>(&'k self, met: &'k BTreeSet<(String, String)>) -> impl Iterator<Item = &'k str> {
        let names = self.names().filter(|name| !met.iter().any(|(case, _)| matches(name, case)));
        names.chain(self.paths().filter(|path| !met.iter().any(|(_, found)| matches(path, found))))
    }
}

/// Reads the table.
pub fn read(page: &str) -> Vec<Known> {
    let Some((_, section)) = page.split_once(HEADING) else { return Vec::new() };
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`'));
        Some(Known {
            cases: cells.next()?.to_owned(),
            path: cells.next()?.to_owned(),
            reason: cells.next()?.to_owned(),
        })
    })
    .collect()
}

/// Whether a text is what a pattern says, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => {
            let Some(text) = text.strip_prefix(start) else { return false };
            (0..=text.len()).filter(|&at| text.is_char_boundary(at)).any(|at| matches(rest, &text[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_differences_are_known_than_may_be() {
        let known = crate::run::read_known().unwrap();
        assert!((1..=LIMIT).contains(&known.len()), "{} differences are known, {LIMIT} may be", known.len());
        let files = crate::run::read_files().unwrap();
        let cases = || files.iter().flat_map(|file| &file.cases);
        let idle = known.iter().flat_map(Known::names);
        let idle: Vec<_> =
            idle.filter(|name| !cases().any(|case| matches(name, &case.to_string()))).collect();
        assert!(idle.is_empty(), "there are no such cases: {idle:#?}");
    }

    #[test]
    fn what_was_not_met_is_told_by_case_and_by_path() {
        let text = |text: &str| text.to_owned();
        let row = Known { cases: text("a: b; a: c"), path: text(".code; .body.x*"), reason: String::new() };
        let met = BTreeSet::from([(text("a: b"), text(".body.xy"))]);
        assert_eq!(row.idle(&met).collect::<Vec<_>>(), ["a: c", ".code"]);
    }

    #[test]
    fn nothing_is_known_of_all_that_is_answered() {
        for row in crate::run::read_known().unwrap() {
            assert!(row.paths().all(|path| !["*", ".body*", ".body.*"].contains(&path)), "{row:?}");
        }
    }

    #[test]
    fn rows_are_read_and_matched() {
        let page = "# Hub\n\n## Known differences\n\nWords.\n\n| case | where | why |\n|---|---|---|\n\
                    | `services: *` | `*.spec.clusterIP*` | no addresses |\n\n## After\n\n| `x` | `y` | z |\n";
        let known = read(page);
        assert_eq!(known.len(), 1, "{known:?}");
        let case = |name: &str| Case { file: "services".into(), name: name.to_owned(), steps: Vec::new() };
        let at = |path: &str| Difference { path: path.to_owned(), real: None, hub: None };
        assert!(known[0].covers(&case("one"), &at(".body.spec.clusterIPs[0]")));
        assert!(!known[0].covers(&case("one"), &at(".body.spec.type")));
        assert_eq!(known[0].reason, "no addresses");
        let several = Known { cases: "services: a; services: b *".to_owned(), ..known[0].clone() };
        assert!(
            several.concerns(&case("a")) && several.concerns(&case("b c")) && !several.concerns(&case("c"))
        );
    }
}
