//! Aggregates that give the same result however copies came and went: a number taken away leaves no trace, neither
//! of rounding nor as a least or greatest that is there no more.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use mailboat_api::edge::AggregatorType;

/// A finite number. Whole numbers stay exact.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// A whole number.
    Whole(i64),
    /// Any other.
    Broken(f64),
}

impl Number {
    /// The number that a text holds, if it holds one and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.parse::<i64>() {
            Ok(whole) => Some(Self::Whole(whole)),
            Err(_) => Self::of(text.parse().ok()?),
        }
    }

    /// A floating-point number, unless it is infinite or none at all.
    pub fn of(number: f64) -> Option<Self> {
        // Two zeros that are equal would be two groups.
        number.is_finite().then_some(Self::Broken(if number == 0.0 { 0.0 } else { number }))
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "beyond 2^53 the exact number decides the order, see `cmp`"
    )]
    fn rounded(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Broken(broken) => broken,
        }
    }

    fn exact(self) -> i64 {
        match self {
            Self::Whole(whole) => whole,
            Self::Broken(_) => 0,
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let form = |number: &Self| matches!(number, Self::Broken(_));
        let (one, two) = (self.rounded(), other.rounded());
        one.total_cmp(&two).then(self.exact().cmp(&other.exact())).then(form(self).cmp(&form(other)))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => whole.fmt(f),
            Self::Broken(broken) => broken.fmt(f),
        }
    }
}

/// The numbers of one group's copies, each with how often it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(BTreeMap<Number, u64>);

impl Numbers {
    /// One more copy has this number.
    pub fn add(&mut self, number: Number) {
        *self.0.entry(number).or_default() += 1;
    }

    /// One copy has it no more.
    pub fn remove(&mut self, number: Number) {
        if let Some(count) = self.0.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&number);
            }
        }
    }

    /// The aggregate over a group of this many copies, in decimal; empty if no copy has a number.
    pub fn aggregate(&self, type_: AggregatorType, copies: u64) -> String {
        let text = |number: Option<Number>| number.map(|number| number.to_string()).unwrap_or_default();
        match type_ {
            AggregatorType::Count => copies.to_string(),
            AggregatorType::Min => text(self.0.keys().next().copied()),
            AggregatorType::Max => text(self.0.keys().next_back().copied()),
            AggregatorType::Sum => self.sum().map(|sum| sum.to_string()).unwrap_or_default(),
            AggregatorType::Avg => self.mean().map(|mean| mean.to_string()).unwrap_or_default(),
        }
    }

    /// Summed up in the order of the numbers, so that it does not matter in which they came.
    fn sum(&self) -> Option<Sum> {
        if self.0.is_empty() {
            return None;
        }
        let mut sum = Sum { whole: 0, broken: 0.0 };
        for (number, count) in &self.0 {
            match number {
                Number::Whole(whole) => sum.whole += i128::from(*whole) * i128::from(*count),
                Number::Broken(broken) => sum.broken += broken * wide(i128::from(*count)),
            }
        }
        Some(sum)
    }

    fn mean(&self) -> Option<f64> {
        let count: u64 = self.0.values().sum();
        self.sum().map(|sum| (wide(sum.whole) + sum.broken) / wide(i128::from(count)))
    }
}

struct Sum {
    whole: i128,
    broken: f64,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.broken == 0.0 { self.whole.fmt(f) } else { (wide(self.whole) + self.broken).fmt(f) }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a mean or a sum with fractions is rounded anyway")]
fn wide(number: i128) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [AggregatorType; 5] = [
        AggregatorType::Count,
        AggregatorType::Sum,
        AggregatorType::Min,
        AggregatorType::Max,
        AggregatorType::Avg,
    ];

    fn aggregates(numbers: &[Number]) -> [String; 5] {
        let mut all = Numbers::default();
        for number in numbers {
            all.add(*number);
        }
        ALL.map(|type_| all.aggregate(type_, numbers.len() as u64))
    }

    #[test]
    fn each_aggregate_is_what_its_name_says() {
        let (whole, broken) = (Number::Whole, Number::Broken);
        for (numbers, expected) in [
            (&[][..], ["0", "", "", "", ""]),
            (&[whole(3)], ["1", "3", "3", "3", "3"]),
            (&[whole(1), whole(2), whole(2)], ["3", "5", "1", "2", "1.6666666666666667"]),
            (&[whole(-1), broken(0.5)], ["2", "-0.5", "-1", "0.5", "-0.25"]),
            (
                &[whole(i64::MAX), whole(i64::MAX)],
                [
                    "2",
                    "18446744073709551614",
                    "9223372036854775807",
                    "9223372036854775807",
                    "9223372036854775807",
                ],
            ),
        ] {
            let expected = expected.map(str::to_owned);
            let found = aggregates(numbers);
            assert_eq!(found[..4], expected[..4], "{numbers:?}");
            if numbers.iter().all(|number| number.rounded().abs() < 1e15) {
                assert_eq!(found[4], expected[4], "{numbers:?}");
            }
        }
    }

    #[test]
    fn text_that_holds_a_number_is_one() {
        for (text, expected) in [
            ("3", Some("3")),
            (" -7 ", Some("-7")),
            ("2.50", Some("2.5")),
            ("1e3", Some("1000")),
            ("9007199254740993", Some("9007199254740993")),
            ("three", None),
            ("", None),
            ("NaN", None),
            ("inf", None),
        ] {
            assert_eq!(Number::parse(text).map(|number| number.to_string()).as_deref(), expected, "{text:?}");
        }
    }

    fn number() -> impl Strategy<Value = Number> {
        prop_oneof![
            (-5_i64..5).prop_map(Number::Whole),
            any::<i64>().prop_map(Number::Whole),
            (-5_i32..5).prop_map(|half| Number::Broken(f64::from(half) / 2.0)),
            any::<f64>().prop_filter_map("finite", Number::of),
        ]
    }

    proptest! {
        #[test]
        fn what_was_taken_away_leaves_no_trace(
            stay in prop::collection::vec(number(), 0..12),
            go in prop::collection::vec(number(), 0..12),
        ) {
            let mut numbers = Numbers::default();
            for number in go.iter().chain(&stay) {
                numbers.add(*number);
            }
            for number in &go {
                numbers.remove(*number);
            }
            let found = ALL.map(|type_| numbers.aggregate(type_, stay.len() as u64));
            prop_assert_eq!(found, aggregates(&stay));
        }
    }
}
