//! One measured number, what ran beside it, and the bar that it must hold.

use std::fmt;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

/// One measured number, as a benchmark prints it and `cargo xtask bench` reads it.
///
/// ```
/// use mailboat_bench::Measurement;
///
/// let measured = Measurement::new("object", "pods", "live heap per JSON byte")
///     .value(1_200.0, "bytes")
///     .beside("JSON bytes", 1_000.0)
///     .at_most(1.3);
/// assert_eq!(measured.ratio, Some(1.2));
/// assert_eq!(measured.holds, Some(true));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The benchmark's name: that of its program.
    pub bench: String,
    /// The input or situation measured, such as `pods`.
    pub case: String,
    /// What was measured, in words.
    pub metric: String,
    /// Our own number.
    pub value: f64,
    /// The unit of `value`, and of the number beside it.
    pub unit: String,
    /// What ran next to it in the same run.
    pub beside: Option<Beside>,
    /// `value` divided by the number beside it, where that is a finite number.
    pub ratio: Option<f64>,
    /// The bar on the ratio, or on the value where nothing ran beside it.
    pub bar: Option<Bar>,
    /// Whether the bar holds; absent where there is none.
    pub holds: Option<bool>,
}

/// What ran next to the thing measured: a floor or a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Its name.
    pub name: String,
    /// Its number, in the measurement's unit.
    pub value: f64,
}

/// A limit that a measurement must keep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// The number may not be above this.
    AtMost(f64),
    /// The number may not be below this.
    AtLeast(f64),
}

impl Measurement {
    /// Begins a measurement of `metric` in one `case` of a benchmark. Its value is set by [`Self::value`];
    /// until then it is not a number, so that a forgotten value can hold no bar.
    #[must_use]
    pub fn new(bench: &str, case: &str, metric: &str) -> Self {
        Self {
            bench: bench.to_owned(),
            case: case.to_owned(),
            metric: metric.to_owned(),
            value: f64::NAN,
            unit: String::new(),
            beside: None,
            ratio: None,
            bar: None,
            holds: None,
        }
    }

    /// Sets our own number and its unit.
    #[must_use]
    pub fn value(mut self, value: f64, unit: &str) -> Self {
        self.value = value;
        unit.clone_into(&mut self.unit);
        self.judged()
    }

    /// Says what ran next to it and what number that reached.
    #[must_use]
    pub fn beside(mut self, name: &str, value: f64) -> Self {
        self.beside = Some(Beside { name: name.to_owned(), value });
        self.judged()
    }

    /// Sets the bar: the ratio (the value, where nothing ran beside it) is at most this.
    #[must_use]
    pub fn at_most(mut self, limit: f64) -> Self {
        self.bar = Some(Bar::AtMost(limit));
        self.judged()
    }

    /// Sets the bar: the ratio (the value, where nothing ran beside it) is at least this.
    #[must_use]
    pub fn at_least(mut self, limit: f64) -> Self {
        self.bar = Some(Bar::AtLeast(limit));
        self.judged()
    }

    /// Works out `ratio` and `holds` anew from the other fields. Whoever reads a measurement from elsewhere
    /// calls this instead of trusting what the line claims.
    #[must_use]
    pub fn judged(mut self) -> Self {
        self.ratio = self.beside.as_ref().map(|beside| self.value / beside.value).filter(|r| r.is_finite());
        // Something ran beside it but no ratio came out (a division by zero): the bar is on that ratio, so
        // falling back to the bare value would compare apples with pears. It does not hold.
        let judged = if self.beside.is_some() { self.ratio } else { Some(self.value) };
        self.holds = self.bar.map(|bar| judged.is_some_and(|number| bar.holds_for(number)));
        self
    }

    /// Prints the measurement as one line of JSON on standard output.
    pub fn print(&self) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        let mut out = io::stdout().lock();
        out.write_all(&line)?;
        out.flush()
    }
}

impl Bar {
    /// Whether a number keeps this bar. What is not a number keeps none.
    pub fn holds_for(self, number: f64) -> bool {
        match self {
            Self::AtMost(limit) => number <= limit,
            Self::AtLeast(limit) => number >= limit,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => write!(f, "at most {limit}"),
            Self::AtLeast(limit) => write!(f, "at least {limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(value: f64) -> Measurement {
        Measurement::new("object", "pods", "live heap").value(value, "bytes").beside("JSON bytes", 100.0)
    }

    #[test]
    fn a_bar_is_kept_up_to_and_including_its_limit() {
        for (measured, holds) in [
            (heap(129.0).at_most(1.3), true),
            (heap(130.0).at_most(1.3), true),
            (heap(131.0).at_most(1.3), false),
            (heap(301.0).at_least(3.0), true),
            (heap(300.0).at_least(3.0), true),
            (heap(299.0).at_least(3.0), false),
        ] {
            assert_eq!(measured.holds, Some(holds), "{measured:?}");
        }
    }

    #[test]
    fn the_order_of_the_builder_calls_does_not_matter() {
        let other = Measurement::new("object", "pods", "live heap")
            .at_most(1.3)
            .beside("JSON bytes", 100.0)
            .value(120.0, "bytes");
        assert_eq!(other, heap(120.0).at_most(1.3));
    }

    #[test]
    fn without_a_bar_nothing_is_claimed() {
        assert_eq!(heap(1.0).holds, None);
    }

    #[test]
    fn with_nothing_beside_it_the_bar_is_on_the_value() {
        let measured = Measurement::new("world", "start", "ready").value(80.0, "s");
        assert_eq!(measured.clone().at_most(90.0).holds, Some(true));
        assert_eq!(measured.clone().at_most(70.0).holds, Some(false));
        assert_eq!(measured.ratio, None);
    }

    #[test]
    fn a_ratio_to_zero_or_a_missing_value_holds_no_bar() {
        let to_zero = Measurement::new("a", "b", "c").value(1.0, "s").beside("floor", 0.0);
        let missing = Measurement::new("a", "b", "c").beside("floor", 2.0);
        for measured in [to_zero, missing, Measurement::new("a", "b", "c")] {
            assert_eq!(measured.ratio, None, "{measured:?}");
            assert_eq!(measured.clone().at_most(5.0).holds, Some(false), "{measured:?}");
            assert_eq!(measured.clone().at_least(0.0).holds, Some(false), "{measured:?}");
        }
    }

    #[test]
    fn the_line_has_exactly_the_documented_fields_and_reads_back() {
        let measured = heap(120.0).at_most(1.3);
        let line = serde_json::to_string(&measured).unwrap();
        assert_eq!(
            line,
            r#"{"bench":"object","case":"pods","metric":"live heap","value":120.0,"unit":"bytes","beside":{"name":"JSON bytes","value":100.0},"ratio":1.2,"bar":{"at_most":1.3},"holds":true}"#
        );
        assert_eq!(serde_json::from_str::<Measurement>(&line).unwrap(), measured);
    }

    #[test]
    fn judging_anew_corrects_a_line_that_claims_too_much() {
        let claimed = Measurement { holds: Some(true), ratio: Some(0.1), ..heap(200.0).at_most(1.3) };
        let judged = claimed.judged();
        assert_eq!((judged.ratio, judged.holds), (Some(2.0), Some(false)));
    }
}
