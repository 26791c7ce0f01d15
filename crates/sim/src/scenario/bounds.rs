//! Bounds of the measures of runs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use super::ScenarioError;
use crate::report::{MEASURES, Measure, RunReport, Unit, quantile};
use courser_link::quantity::{parse_duration, parse_rate};
use courser_link::suggest::nearest;

/// A bound of one measure: `>=0.95`, `<2ms`, `<1.5rtt`, `all <1%`, `90% <20ms`.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The measure that is compared with the limit.
    pub measure: &'static Measure,
    /// The runs that have to satisfy the bound.
    pub quantifier: Quantifier,
    relation: Relation,
    limit: Limit,
    text: String,
}

/// The runs that have to satisfy a bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Quantifier {
    /// The median of the runs, which is the default unless the measure is a count.
    Median,
    /// Every run, which is the default for counts such as failures.
    All,
    /// At least this share of the runs.
    Share(f64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    AtLeast,
    AtMost,
    MoreThan,
    LessThan,
    Equal,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    /// A value in the unit of the measure.
    Plain(f64),
    /// A multiple of the round-trip time of the empty link.
    Rtts(f64),
}

/// The result of a comparison with a bound.
#[derive(Clone, PartialEq, Debug)]
pub struct BoundResult {
    /// True if the bound holds.
    pub holds: bool,
    /// The value that was compared: the median, or that of the worst run that has to satisfy the
    /// bound.
    pub value: Option<f64>,
    /// The seed of the worst run that violates the bound; `None` if all runs satisfy it.
    pub worst_seed: Option<u64>,
}

impl Bound {
    /// Parses a bound of a measure.
    ///
    /// # Errors
    /// A message with the text and the form of a bound.
    pub fn parse(measure: &'static Measure, text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            let example = example(measure.unit);
            format!("'{text}' is not a bound: {why}; write it as in \"{example}\"")
        };
        let start = text
            .find(['<', '>', '='])
            .ok_or_else(|| wrong("there is no <, <=, >, >= or =="))?;
        let (quantifier, rest) = text.split_at(start);
        let quantifier = match quantifier.trim() {
            "" if measure.unit == Unit::Count => Quantifier::All,
            "" | "median" => Quantifier::Median,
            "all" => Quantifier::All,
            share => parse_share(share).map(Quantifier::Share).ok_or_else(|| {
                wrong("it must start with median, all or a percentage, or the relation")
            })?,
        };
        let (relation, limit) = split_relation(rest).ok_or_else(|| wrong("the relation"))?;
        let limit = parse_limit(measure.unit, limit.trim())
            .ok_or_else(|| wrong(&format!("'{}' is not {}", limit.trim(), kind(measure.unit))))?;
        Ok(Self {
            measure,
            quantifier,
            relation,
            limit,
            text: text.trim().to_owned(),
        })
    }

    /// Compares with runs of one scenario, whose empty link has this round-trip time. A run without
    /// the measure violates the bound.
    pub fn check(&self, runs: &[RunReport], rtt: Duration) -> BoundResult {
        let limit = match self.limit {
            Limit::Plain(limit) => limit,
            Limit::Rtts(count) => count * rtt.as_secs_f64(),
        };
        let values: Vec<(Option<f64>, u64)> = runs
            .iter()
            .map(|run| ((self.measure.of)(&run.measures), run.seed))
            .collect();
        let fails = |value: &Option<f64>| !value.is_some_and(|it| self.relation.holds(it, limit));
        let distance = |value: &Option<f64>| value.map_or(f64::INFINITY, |it| (it - limit).abs());
        let worst = values
            .iter()
            .filter(|(value, _)| fails(value))
            .max_by(|(a, _), (b, _)| distance(a).total_cmp(&distance(b)));
        let known: Vec<f64> = values.iter().filter_map(|(value, _)| *value).collect();
        let failing = values.iter().filter(|(value, _)| fails(value)).count();
        #[expect(clippy::cast_precision_loss, reason = "counts of runs")]
        let holding = (values.len() - failing) as f64 / (values.len().max(1)) as f64;
        let median = quantile(&known, 0.5);
        let (holds, value) = match self.quantifier {
            Quantifier::Median => (known.len() == values.len() && !fails(&median), median),
            Quantifier::All => (failing == 0, worst.map_or(median, |(value, _)| *value)),
            Quantifier::Share(share) => (holding >= share, median),
        };
        BoundResult {
            holds: holds && !values.is_empty(),
            value,
            worst_seed: worst.map(|(_, seed)| *seed),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.measure.name, self.text)
    }
}

impl Relation {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::AtLeast => value >= limit,
            Self::AtMost => value <= limit,
            Self::MoreThan => value > limit,
            Self::LessThan => value < limit,
            Self::Equal => (value - limit).abs() < f64::EPSILON,
        }
    }
}

fn split_relation(text: &str) -> Option<(Relation, &str)> {
    let table = [
        (">=", Relation::AtLeast),
        ("<=", Relation::AtMost),
        ("==", Relation::Equal),
        (">", Relation::MoreThan),
        ("<", Relation::LessThan),
        ("=", Relation::Equal),
    ];
    table
        .iter()
        .find_map(|(sign, relation)| Some((*relation, text.strip_prefix(sign)?)))
}

fn parse_share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

fn parse_limit(unit: Unit, text: &str) -> Option<Limit> {
    if let Some(count) = text.strip_suffix("rtt").filter(|_| unit == Unit::Seconds) {
        let count: f64 = count.trim().parse().ok()?;
        return (count.is_finite() && count >= 0.0).then_some(Limit::Rtts(count));
    }
    let limit = match unit {
        Unit::Share => parse_share(text)?,
        Unit::Seconds => parse_duration(text)?.as_secs_f64(),
        #[expect(
            clippy::cast_precision_loss,
            reason = "rates have fewer than 15 digits"
        )]
        Unit::BitsPerSecond => parse_rate(text)?.as_bytes_per_second() as f64 * 8.0,
        Unit::Count => f64::from(text.parse::<u32>().ok()?),
        Unit::Ratio => text.parse().ok().filter(|it: &f64| it.is_finite())?,
    };
    Some(Limit::Plain(limit))
}

fn kind(unit: Unit) -> &'static str {
    match unit {
        Unit::Share => "a share from 0 to 1 or from 0% to 100%",
        Unit::Seconds => "a time such as 2ms or 1.5rtt",
        Unit::BitsPerSecond => "a rate such as 95mbit",
        Unit::Count => "a number",
        Unit::Ratio => "a number such as 0.9",
    }
}

fn example(unit: Unit) -> &'static str {
    match unit {
        Unit::Share => ">=0.95",
        Unit::Seconds => "<2ms",
        Unit::BitsPerSecond => ">=95mbit",
        Unit::Count => "==0",
        Unit::Ratio => ">=0.9",
    }
}

/// A table of bounds, as in a scenario or a file of bounds.
#[derive(Clone, Debug, Default)]
pub(super) struct BoundsTable(pub(super) Vec<Bound>);

struct TableVisitor;
struct Name;
struct Text(&'static Measure);

impl<'de> Deserialize<'de> for BoundsTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor)
    }
}

impl<'de> Visitor<'de> for TableVisitor {
    type Value = BoundsTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of bounds such as goodput_share = \">=0.95\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BoundsTable, A::Error> {
        let mut bounds = Vec::new();
        while let Some(measure) = map.next_key_seed(Name)? {
            bounds.push(map.next_value_seed(Text(measure))?);
        }
        Ok(BoundsTable(bounds))
    }
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static Measure;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        Measure::named(&name).ok_or_else(|| {
            let known: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
            let hyphenated: Vec<String> = known.iter().map(|it| it.replace('_', "-")).collect();
            let near = nearest(&name, hyphenated.iter().map(String::as_str));
            let near = near.map(|near| near.replace('-', "_"));
            D::Error::custom(match near {
                Some(near) => format!("unknown measure `{name}`, did you mean `{near}`?"),
                None => format!("unknown measure `{name}`, known are {}", known.join(", ")),
            })
        })
    }
}

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Bound;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Bound, D::Error> {
        let text = String::deserialize(deserializer)?;
        Bound::parse(self.0, &text).map_err(D::Error::custom)
    }
}

/// The bounds of several scenarios: a table for each, by the name of the scenario.
#[derive(Clone, Debug, Default)]
pub struct BoundsFile(BTreeMap<String, BoundsTable>);

impl BoundsFile {
    /// Parses a file of bounds.
    ///
    /// # Errors
    /// As for [`Scenario::parse`](super::Scenario::parse).
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text)
            .map(Self)
            .map_err(|error| ScenarioError::from_toml(text, &error))
    }

    /// Replaces the bounds of a scenario for the measures that the file contains. Returns true if
    /// there are any.
    pub fn apply(&self, scenario: &str, bounds: &mut Vec<Bound>) -> bool {
        let Some(BoundsTable(new)) = self.0.get(scenario) else {
            return false;
        };
        bounds.retain(|old| new.iter().all(|it| it.measure.name != old.measure.name));
        bounds.extend(new.iter().cloned());
        true
    }
}
