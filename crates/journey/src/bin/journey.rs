//! Plays journeys on all cores (`--seeds N [--from F]`), or one again, with all that happened if it fails (`--seed S`);
//! `--unshrunk` leaves failing scripts as long as they are, which is much faster.
//!
//! Failing scripts go to standard output, shrunk, each with what replays it. Ends with 1 if anything failed.

use std::process::ExitCode;

use mailboat_journey::{Options, run};
use mailboat_sim::player::{self, Numbers, Player};

fn main() -> ExitCode {
    player::run(parse, play)
}

fn parse(words: &mut dyn Iterator<Item = String>) -> Result<(bool, Numbers), String> {
    let (mut shrink, mut numbers) = (true, Numbers::default());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--unshrunk" => shrink = false,
            _ if numbers.take(&word, words)? => {}
            _ => return Err(format!("{word} is not known; there are --unshrunk, {}", Numbers::FLAGS)),
        }
    }
    Ok((shrink, numbers))
}

fn play((shrink, numbers): (bool, Numbers)) -> ExitCode {
    let player = Player {
        what: "journeys",
        replay: "cargo xtask sim --journey",
        play: &|seed, log| run(seed, &Options { log, shrink, ..Options::default() }),
    };
    player.play(numbers)
}
