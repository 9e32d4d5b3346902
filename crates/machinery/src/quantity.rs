//! Quantities such as `1000m` and `1.5Gi`, in the one form in which servers store them.

/// The one form of a quantity. None: it is none, or too large to say.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let end = digits.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let form = Form::of(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    // Everything is counted in thousand-millionths, the smallest part that a quantity has; the rest rounds up.
    let scaled = form.scale(mantissa)?;
    let divisor = 10_i128.checked_pow(places)?;
    let nanos = scaled / divisor + i128::from(scaled % divisor != 0);
    let shown = form.show(nanos);
    Some(if negative && nanos != 0 { format!("-{shown}") } else { shown })
}

const NANO: i128 = 1_000_000_000;

/// How a quantity was written, which is how it stays.
#[derive(Clone, Copy)]
enum Form {
    /// With a power of ten as a letter.
    Decimal(i32),
    /// With a power of 1024.
    Binary(u32),
    /// With a power of ten as a number.
    Exponent(i32),
}

impl Form {
    fn of(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(1),
            "Mi" => Self::Binary(2),
            "Gi" => Self::Binary(3),
            "Ti" => Self::Binary(4),
            "Pi" => Self::Binary(5),
            "Ei" => Self::Binary(6),
            other => Self::Exponent(other.strip_prefix(['e', 'E'])?.parse().ok()?),
        })
    }

    /// So many of its units, in thousand-millionths.
    fn scale(self, mantissa: i128) -> Option<i128> {
        match self {
            Self::Decimal(power) | Self::Exponent(power) => {
                let power = u32::try_from(power + 9).ok()?;
                mantissa.checked_mul(10_i128.checked_pow(power)?)
            }
            Self::Binary(power) => mantissa.checked_mul(1024_i128.pow(power))?.checked_mul(NANO),
        }
    }

    fn show(self, nanos: i128) -> String {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        if nanos == 0 {
            return "0".to_owned();
        }
        if matches!(self, Self::Binary(_)) && nanos >= 1024 * NANO && nanos % NANO == 0 {
            let (mut number, mut power) = (nanos / NANO, 0);
            while number % 1024 == 0 && power + 1 < BINARY.len() {
                number /= 1024;
                power += 1;
            }
            return format!("{number}{}", BINARY[power]);
        }
        let (mut number, mut power) = (nanos, 0);
        while number % 1000 == 0 && power + 1 < DECIMAL.len() {
            number /= 1000;
            power += 1;
        }
        match (self, power) {
            (Self::Exponent(_), 3) => number.to_string(),
            (Self::Exponent(_), power) => format!("{number}e{}", i64::try_from(power).unwrap_or(0) * 3 - 9),
            (_, power) => format!("{number}{}", DECIMAL[power]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_one_form() {
        for (written, stored) in [
            ("1000m", "1"),
            ("1", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("100000", "100k"),
            ("2000M", "2G"),
            ("1e3", "1e3"),
            ("1500e0", "1500"),
            ("-1000m", "-1"),
            ("0", "0"),
            ("0Gi", "0"),
            ("0.0000000001", "1n"),
        ] {
            assert_eq!(canonical(written).as_deref(), Some(stored), "{written}");
        }
        for bad in ["", "m", "1x", "1 Gi", "--1", "1..2", "e3"] {
            assert_eq!(canonical(bad), None, "{bad}");
        }
    }
}
