//! `docs/xtask.md`: the reference of this program, made from its own flags.

use std::fmt::Write as _;

use clap::CommandFactory;

use crate::Xtask;
use crate::generate::GeneratedFile;

/// How wide the help is set, whatever the terminal of whoever generates it.
const WIDTH: usize = 100;

/// The reference as a generated file.
pub(crate) fn file() -> GeneratedFile {
    let mut command = Xtask::command().term_width(WIDTH);
    command.build();
    let mut text = String::from(
        "<!-- Made by `cargo xtask generate` from the program's own help. Do not edit. -->\n\n# cargo xtask\n\n",
    );
    text += &help(&mut command);
    for subcommand in command.get_subcommands_mut() {
        section(subcommand, "cargo xtask", &mut text);
    }
    GeneratedFile { path: "docs/xtask.md".into(), contents: text }
}

fn section(command: &mut clap::Command, parent: &str, text: &mut String) {
    if command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let _ = write!(text, "\n## {name}\n\n{}", help(command));
    for subcommand in command.get_subcommands_mut() {
        section(subcommand, &name, text);
    }
}

fn help(command: &mut clap::Command) -> String {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_section_with_its_usage_and_an_example() {
        let text = file().contents;
        for command in ["test", "e2e", "bench", "sim", "generate", "lint", "testbed build", "testbed up"] {
            let heading = format!("\n## cargo xtask {command}\n");
            let (_, section) =
                text.split_once(&heading).unwrap_or_else(|| panic!("no section {command}:\n{text}"));
            let section = section.split("\n## ").next().unwrap();
            assert!(section.contains(&format!("Usage: cargo xtask {command}")), "{section}");
            assert!(section.contains("Example"), "{section}");
        }
    }
}
