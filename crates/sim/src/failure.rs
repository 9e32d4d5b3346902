//! What went wrong, how to see it again, and the shortest script in which it still does.

use std::fmt::Display;

use crate::Report;

/// What went wrong, and how to see it again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("number {number}, at line {line}: {message}\n{}", .script.join("\n"))]
pub struct Failure {
    /// The seed, or the number among those that are not drawn.
    pub number: u64,
    /// How many lines had been played.
    pub line: usize,
    /// What was seen.
    pub message: String,
    /// The script, shrunk as far as a bounded number of tries allowed.
    pub script: Vec<String>,
    /// All that happened in it, if that was asked for.
    pub log: Vec<String>,
}

/// What failures are told apart by: their sentences without what differs from one object to the next.
const SORTS: [&str; 10] = [
    "deleted wrongly",
    "let go of wrongly",
    "is foreign",
    "is missing",
    "still there",
    "instead of",
    "other content",
    "come back",
    "writes in",
    "to rest",
];

/// Shrinking plays at most so many scripts.
const TRIES: usize = 150;

impl Failure {
    /// Something was seen after so many lines of a script.
    pub fn new<S: Display>(
        number: u64,
        line: usize,
        message: String,
        script: &[(u64, S)],
        log: Vec<String>,
    ) -> Self {
        let script = script.iter().map(|(at, step)| format!("  {at:>8} ms  {step}")).collect();
        Self { number, line, message, script, log }
    }

    fn sort(&self) -> &'static str {
        SORTS.into_iter().find(|sort| self.message.contains(sort)).unwrap_or("another")
    }
}

/// Plays a script, and if that fails, ever fewer of its lines as long as the same sort of thing goes wrong. `play` is also
/// told whether all that happens is to be written down: only the last time, if at all.
pub fn play_and_shrink<L: Clone>(
    lines: &[L],
    log: bool,
    play: impl Fn(&[L], bool) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let failure = match play(lines, false) {
        Ok(report) => return Ok(report),
        Err(failure) => failure,
    };
    // Another failure may be shorter, and is not the one that was found.
    let fails = |lines: &[L]| play(lines, false).err().filter(|other| other.sort() == failure.sort());
    let (lines, shortest) = shrink(lines.to_vec(), failure.clone(), fails);
    Err(if log { play(&lines, true).err().unwrap_or(shortest) } else { shortest })
}

/// Leaves out lines, many at a time and then fewer, as long as the same thing still goes wrong: `fails` plays what is left,
/// and gives the failure if it is of the same sort.
fn shrink<L: Clone, F>(
    mut lines: Vec<L>,
    mut failure: F,
    mut fails: impl FnMut(&[L]) -> Option<F>,
) -> (Vec<L>, F) {
    let mut size = lines.len() / 2;
    let mut tries = 0;
    while size > 0 {
        let mut from = 0;
        while from < lines.len() && tries < TRIES {
            let mut shorter = lines.clone();
            let end = (from + size).min(shorter.len());
            shorter.drain(from..end);
            tries += 1;
            match fails(&shorter) {
                Some(smaller) => (lines, failure) = (shorter, smaller),
                None => from += size,
            }
        }
        size /= 2;
    }
    (lines, failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_nothing_to_do_with_it_is_left_out() {
        let lines: Vec<(u64, u64)> = (0..40).map(|at| (at, at)).collect();
        let play = |lines: &[(u64, u64)], log: bool| {
            let both = [7, 31].iter().all(|wrong| lines.contains(&(*wrong, *wrong)));
            let log = if log { vec!["all of it".to_owned()] } else { Vec::new() };
            let message = if both { "a copy is missing" } else { "nothing comes to rest" };
            if both || lines.is_empty() {
                return Err(Failure::new(3, lines.len(), message.to_owned(), lines, log));
            }
            Ok(Report::default())
        };
        let failure = play_and_shrink(&lines, true, play).unwrap_err();
        let shown = "number 3, at line 2: a copy is missing\n         7 ms  7\n        31 ms  31";
        assert_eq!((failure.to_string().as_str(), failure.log.len()), (shown, 1));
        assert!(play_and_shrink(&lines[..9], false, play).is_ok());
    }
}
