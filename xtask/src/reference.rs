//! `docs/xtask.md` and `docs/cli.md`: the references of this program and of `mailboat`, made from their own flags.

use std::fmt::Write as _;

use clap::CommandFactory;

use crate::Xtask;
use crate::generate::GeneratedFile;

/// How wide the help is set, whatever the terminal of whoever generates it.
const WIDTH: usize = 100;

/// The references as generated files.
pub(crate) fn files() -> [GeneratedFile; 2] {
    [
        file(Xtask::command(), "cargo xtask", "docs/xtask.md"),
        file(mailboat_cli::command(), "mailboat", "docs/cli.md"),
    ]
}

fn file(command: clap::Command, name: &str, path: &str) -> GeneratedFile {
    let mut command = command.term_width(WIDTH);
    command.build();
    let mut text = format!(
        "<!-- Made by `cargo xtask generate` from the program's own help. Do not edit. -->\n\n# {name}\n\n"
    );
    text += &help(&mut command);
    for subcommand in command.get_subcommands_mut() {
        section(subcommand, name, &mut text);
    }
    GeneratedFile { path: path.into(), contents: text }
}

fn section(command: &mut clap::Command, parent: &str, text: &mut String) {
    if command.get_name() == "help" || command.is_hide_set() {
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
        let [own, mailboat] = files().map(|file| file.contents);
        let own_commands = ["test", "e2e", "bench", "sim", "generate", "lint", "testbed build", "testbed up"];
        let own_commands = own_commands.map(|command| (&own, format!("cargo xtask {command}")));
        let commands =
            ["syncer", "syncer-gen", "syncer-remove", "ws", "get", "customize", "link", "completion"];
        let commands = commands.map(|command| (&mailboat, format!("mailboat {command}")));
        for (text, command) in own_commands.into_iter().chain(commands) {
            let heading = format!("\n## {command}\n");
            let (_, section) =
                text.split_once(&heading).unwrap_or_else(|| panic!("no section {command}:\n{text}"));
            let section = section.split("\n## ").next().unwrap();
            assert!(section.contains(&format!("Usage: {command}")), "{section}");
            assert!(section.contains("Example"), "{section}");
        }
        assert!(!mailboat.contains("edge-sync\n"), "an older name has a section of its own");
    }
}
