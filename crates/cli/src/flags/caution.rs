//! When somebody is asked before something is withdrawn.

use clap::Args;
use mailboat_engine::breaker::Threshold;

/// How much may be withdrawn at once without a question.
#[derive(Clone, Copy, Debug, Args)]
pub struct CautionFlags {
    /// Ask before so many objects or more are withdrawn at once, if they are a large share; fewer always go
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub confirm_from: u32,
    /// The share of what was delivered, in percent, that counts as large: more than this is asked about
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(..=100))]
    pub confirm_over: u8,
}

impl CautionFlags {
    /// When a withdrawal is too large to go unasked.
    pub fn threshold(self) -> Threshold {
        let at_least = usize::try_from(self.confirm_from).unwrap_or(usize::MAX);
        Threshold { at_least, over_percent: usize::from(self.confirm_over) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        caution: CautionFlags,
    }

    fn parse(flags: &str) -> Result<Threshold, String> {
        let words = std::iter::once("program").chain(flags.split_whitespace());
        Program::try_parse_from(words)
            .map(|program| program.caution.threshold())
            .map_err(|told| told.to_string())
    }

    #[test]
    fn caution_is_as_usual_unless_it_is_said_otherwise() {
        assert_eq!(parse(""), Ok(Threshold::default()));
        let careful = Threshold { at_least: 1, over_percent: 0 };
        assert_eq!(parse("--confirm-from=1 --confirm-over=0"), Ok(careful), "everything is asked about");
        for bad in ["--confirm-from=0", "--confirm-over=101", "--confirm-over=-1", "--confirm-from=many"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
