//! Label selectors.

use std::fmt;
use std::str::FromStr;

use super::{BadSelector, Labels, parse};
use crate::json::Raw;

/// A label selector: all its requirements must hold, so that the empty one selects everything.
///
/// Requirements are sorted and without repetition; selectors that were written differently but ask the same
/// are equal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// What a selector asks of one label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// How a label's value is compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operator {
    /// It has one of the values.
    In,
    /// It has none of the values, or the label is missing.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// It is a whole number above the value.
    GreaterThan,
    /// It is a whole number below the value.
    LessThan,
}

impl LabelSelector {
    /// The selector that selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector of these requirements.
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort();
        requirements.dedup();
        Self { requirements }
    }

    /// Reads `matchLabels` and `matchExpressions`. A selector that is missing altogether is the caller's
    /// business: some APIs take it for everything, others for nothing.
    pub fn from_json(selector: Raw<'_>) -> Result<Self, BadSelector> {
        if !selector.is_map() {
            return Err(BadSelector::new("selector", "it must be an object"));
        }
        let mut requirements = Vec::new();
        if let Some(labels) = selector.member("matchLabels").filter(|labels| !labels.is_null()) {
            if !labels.is_map() {
                return Err(BadSelector::new("matchLabels", "it must be a map of strings"));
            }
            for (key, value) in labels.members() {
                let path = format!("matchLabels.{key}");
                let value = value.as_str().ok_or_else(|| BadSelector::new(&path, "it must be a string"))?;
                let requirement = Requirement::new(&key, Operator::In, [value.into_owned()]);
                requirements.push(requirement.map_err(|error| BadSelector { path, ..error })?);
            }
        }
        if let Some(expressions) = selector.member("matchExpressions").filter(|list| !list.is_null()) {
            if !expressions.is_array() {
                return Err(BadSelector::new("matchExpressions", "it must be a list"));
            }
            for (index, expression) in expressions.elements().enumerate() {
                let path = format!("matchExpressions[{index}]");
                requirements.push(Requirement::from_json(expression).map_err(|error| error.within(&path))?);
            }
        }
        Ok(Self::new(requirements))
    }

    /// What it asks, sorted.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether it selects something with these labels.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(labels))
    }

    /// As the value of the query parameter `labelSelector`, not yet percent-encoded.
    pub fn to_query(&self) -> String {
        self.to_string()
    }
}

impl Requirement {
    /// A requirement whose key, operator and values fit together.
    pub fn new(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = String>,
    ) -> Result<Self, BadSelector> {
        parse::check_key(key).map_err(|what| BadSelector::new("key", what))?;
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort();
        values.dedup();
        for value in &values {
            parse::check_value(value).map_err(|what| BadSelector::new("values", what))?;
        }
        let what = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("In and NotIn need at least one value")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("Exists and DoesNotExist take no values")
            }
            Operator::GreaterThan | Operator::LessThan
                if values.len() != 1 || values.iter().any(|value| value.parse::<i64>().is_err()) =>
            {
                Some("a comparison needs exactly one whole number")
            }
            _ => None,
        };
        match what {
            Some(what) => Err(BadSelector::new("values", what)),
            None => Ok(Self { key: key.to_owned(), operator, values }),
        }
    }

    fn from_json(expression: Raw<'_>) -> Result<Self, BadSelector> {
        let text = |member: &str| {
            let value = expression.member(member).and_then(Raw::as_str);
            value.ok_or_else(|| BadSelector::new(member, "it is missing or not a string"))
        };
        let operator = match &*text("operator")? {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return Err(BadSelector::new("operator", "it must be In, NotIn, Exists or DoesNotExist")),
        };
        let mut values = Vec::new();
        if let Some(list) = expression.member("values").filter(|list| !list.is_null()) {
            if !list.is_array() {
                return Err(BadSelector::new("values", "it must be a list of strings"));
            }
            for value in list.elements() {
                let value = value.as_str();
                values.push(
                    value.ok_or_else(|| BadSelector::new("values", "it must be a list of strings"))?.into(),
                );
            }
        }
        Self::new(&text("key")?, operator, values)
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it is compared.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// With what, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether it holds for something with these labels.
    pub fn holds(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let value = labels.label_value(&self.key);
        let number = |text: &str| text.parse::<i64>().ok();
        let compared = || Some((number(value.as_deref()?)?, number(self.values.first()?)?));
        match self.operator {
            Operator::In => value.is_some_and(|value| self.lists(&value)),
            Operator::NotIn => value.is_none_or(|value| !self.lists(&value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => compared().is_some_and(|(label, bound)| label > bound),
            Operator::LessThan => compared().is_some_and(|(label, bound)| label < bound),
        }
    }

    fn lists(&self, value: &str) -> bool {
        self.values.iter().any(|listed| listed == value)
    }
}

impl FromStr for LabelSelector {
    type Err = BadSelector;

    /// Reads the form of queries: `a=b,c!=d,x in (y,z),w notin (v),e,!n,m>1`.
    fn from_str(query: &str) -> Result<Self, BadSelector> {
        parse::label_query(query).map(Self::new)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match (self.operator, self.values.len()) {
            (Operator::In, 1) => write!(f, "{key}={values}"),
            (Operator::In, _) => write!(f, "{key} in ({values})"),
            (Operator::NotIn, 1) => write!(f, "{key}!={values}"),
            (Operator::NotIn, _) => write!(f, "{key} notin ({values})"),
            (Operator::Exists, _) => f.write_str(key),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            (Operator::GreaterThan, _) => write!(f, "{key}>{values}"),
            (Operator::LessThan, _) => write!(f, "{key}<{values}"),
        }
    }
}
