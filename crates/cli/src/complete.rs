//! Completion for kubectl: `kubectl_complete-mailboat` is asked what could be typed next.
//!
//! kubectl hands over the words that were typed, the unfinished one last, and reads one suggestion per line, then a colon
//! with a number: 4 for no file names, 0 where a file is meant.

use clap::{Arg, Command, ValueHint};

/// What could be typed next, and whether a file name could be.
pub(crate) struct Suggestions {
    words: Vec<(String, String)>,
    files: bool,
}

impl std::fmt::Display for Suggestions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (word, about) in &self.words {
            if about.is_empty() { writeln!(f, "{word}")? } else { writeln!(f, "{word}\t{about}")? }
        }
        writeln!(f, ":{}", if self.files { 0 } else { 4 })
    }
}

/// Suggests what could follow words that were typed after the program's own name.
pub(crate) fn suggest(root: &Command, typed: &[String]) -> Suggestions {
    let (unfinished, before) =
        typed.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut command = root;
    let (mut positional, mut awaited) = (0, None);
    for word in before {
        if awaited.take().is_some() {
            continue;
        }
        if let Some(flag) = flag_called(command, root, word) {
            awaited = Some(flag).filter(|_| !word.contains('=') && flag.get_action().takes_values());
        } else if let Some(found) = command.find_subcommand(word) {
            (command, positional) = (found, 0);
        } else {
            positional += 1;
        }
    }
    let mut words = Vec::new();
    let mut files = false;
    if let Some(flag) = awaited {
        files = means_file(flag);
        words.extend(values(flag));
    } else if unfinished.starts_with('-') {
        let shown = command.get_arguments().filter(|flag| !flag.is_hide_set());
        words.extend(
            shown.filter_map(|flag| Some((format!("--{}", flag.get_long()?), about(flag.get_help())))),
        );
    } else {
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        words.extend(shown.map(|one| (one.get_name().to_owned(), about(one.get_about()))));
        if let Some(argument) = command.get_positionals().nth(positional) {
            files = means_file(argument);
            words.extend(values(argument));
        }
    }
    words.retain(|(word, _)| word.starts_with(unfinished));
    Suggestions { words, files }
}

/// The flag that a word is; flags of the whole program count everywhere.
fn flag_called<'c>(command: &'c Command, root: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or_default();
    let all = command.get_arguments().chain(root.get_arguments());
    all.into_iter().find(|flag| match (name.strip_prefix("--"), name.strip_prefix('-')) {
        (Some(long), _) => {
            flag.get_long() == Some(long) || flag.get_all_aliases().is_some_and(|all| all.contains(&long))
        }
        (None, Some(short)) => flag.get_short().is_some_and(|known| short == known.to_string()),
        (None, None) => false,
    })
}

fn values(of: &Arg) -> Vec<(String, String)> {
    let shown = of.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    shown.map(|value| (value.get_name().to_owned(), about(value.get_help()))).collect()
}

fn means_file(of: &Arg) -> bool {
    matches!(of.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath)
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(line: &str) -> Vec<String> {
        let typed: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let told = suggest(&crate::command(), &typed).to_string();
        told.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn commands_flags_values_and_files_are_suggested() {
        for (line, expected) in [
            ("ge", &["get", ":4"][..]),
            ("get p", &["placements", ":4"]),
            ("get placements --out", &["--output", ":4"]),
            ("get placements -o j", &["json", ":4"]),
            ("get placements --output=json --wor", &["--workspace", ":4"]),
            ("plan -f ", &[":0"]),
            ("customize ", &[":0"]),
            ("ensure w", &["wmw", ":4"]),
            ("completion f", &["fish", ":4"]),
            ("nonsense", &[":4"]),
        ] {
            assert_eq!(suggested(line), expected, "{line:?}");
        }
        assert!(suggested("").contains(&"why".to_owned()));
        assert!(!suggested("").contains(&"workload".to_owned()), "what is hidden stays so");
    }
}
