//! Plays schedules on all cores: drawn from seeds (`--seeds N [--from F]`), or all in which everything disappears in some
//! order (`--orders`); or one again, with all that happened if it fails (`--seed S`, `--order O`).
//!
//! Failing scripts go to standard output, shrunk, each with what replays it; progress goes to standard error. Ends with 1
//! if anything failed.

use std::process::ExitCode;

use mailboat_sim::orders::all;
use mailboat_sim::player::{self, Numbers, Player, number};
use mailboat_sim::script::Script;
use mailboat_sim::{Options, Report, run, run_script};

/// Where schedules come from.
enum What {
    Seeds,
    Orders(Vec<Script>),
}

fn main() -> ExitCode {
    player::run(parse, play)
}

fn parse(words: &mut dyn Iterator<Item = String>) -> Result<(What, Numbers), String> {
    let (mut what, mut numbers) = (What::Seeds, Numbers::default());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--orders" => {
                let orders = all();
                numbers = numbers.first(orders.len() as u64);
                what = What::Orders(orders);
            }
            "--order" => {
                let (orders, one) = (all(), number(&word, words)?);
                if one >= orders.len() as u64 {
                    return Err(format!("--order {one} is none of the {} that there are", orders.len()));
                }
                (what, numbers) = (What::Orders(orders), numbers.one(one));
            }
            _ if numbers.take(&word, words)? => {}
            _ => {
                return Err(format!(
                    "{word} is not known; there are --orders, --order O, {}",
                    Numbers::FLAGS
                ));
            }
        }
    }
    Ok((what, numbers))
}

fn play((what, numbers): (What, Numbers)) -> ExitCode {
    let options = |log: bool| Options { log, ..Options::default() };
    match what {
        What::Seeds => {
            let play = |seed, log| run(seed, &options(log));
            Player { what: "schedules", replay: "cargo xtask sim --seed", play: &play }.play(numbers)
        }
        What::Orders(orders) => {
            let play = |number, log| {
                let script = usize::try_from(number).ok().and_then(|index| orders.get(index));
                script
                    .map_or_else(|| Ok(Report::default()), |script| run_script(number, script, &options(log)))
            };
            Player { what: "schedules", replay: "cargo xtask sim --order", play: &play }.play(numbers)
        }
    }
}
