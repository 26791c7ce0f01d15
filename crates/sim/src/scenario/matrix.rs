//! Families of scenarios in one file.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::ScenarioError;

/// The part of a file that is parsed first.
#[derive(Deserialize, Debug)]
struct Family {
    #[serde(default)]
    matrix: Vec<Spanned<BTreeMap<Spanned<String>, Values>>>,
}

/// The type of a variable.
#[derive(Deserialize, Clone, Debug)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum Values {
    One(String),
    Many(Vec<String>),
}

impl Values {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// A member of a family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Variant {
    /// The file with its variables replaced.
    pub(super) text: String,
    /// The values of the variables: `rate = 10mbit, rtt = 50ms`; empty in a file without a matrix.
    pub(super) values: String,
}

/// Returns all members. The last variable changes fastest. A file without a matrix has one member.
///
/// # Errors
/// If a variable has no value or is not used, or if there are too many members.
pub(super) fn expand(text: &str) -> Result<Vec<Variant>, ScenarioError> {
    let family: Family =
        toml::from_str(text).map_err(|error| ScenarioError::from_toml(text, &error))?;
    if family.matrix.is_empty() {
        return Ok(vec![Variant {
            text: text.to_owned(),
            values: String::new(),
        }]);
    }
    let used = variables(text);
    let mut all = Vec::new();
    for table in &family.matrix {
        check(text, &used, table)?;
        let mut keys: Vec<_> = table.get_ref().iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let count: usize = keys.iter().fold(1, |product: usize, (_, values)| {
            product.saturating_mul(values.as_slice().len())
        });
        if all.len().saturating_add(count) > MAX_VARIANTS {
            let message = format!("more than {MAX_VARIANTS} scenarios in one file");
            return Err(ScenarioError::at(text, &table.span(), message));
        }
        all.extend((0..count).map(|index| variant(text, &keys, index)));
    }
    Ok(all)
}

/// Returns the member with this index, counted like the digits of a number.
fn variant(text: &str, keys: &[(&Spanned<String>, &Values)], index: usize) -> Variant {
    let (mut text, mut rest) = (text.to_owned(), index);
    let mut values = Vec::new();
    for (key, choices) in keys.iter().rev() {
        let choices = choices.as_slice();
        let value = &choices[rest % choices.len()];
        rest /= choices.len();
        text = text.replace(&format!("{{{}}}", key.get_ref()), value);
        values.push(format!("{} = {value}", key.get_ref()));
    }
    values.reverse();
    Variant {
        text,
        values: values.join(", "),
    }
}

fn check(
    text: &str,
    used: &[(&str, Range<usize>)],
    table: &Spanned<BTreeMap<Spanned<String>, Values>>,
) -> Result<(), ScenarioError> {
    for (key, values) in table.get_ref() {
        let name = key.get_ref().as_str();
        if values.as_slice().is_empty() {
            let message = format!("{name} has no value, allowed is one or more");
            return Err(ScenarioError::at(text, &key.span(), message));
        }
        if used.iter().all(|(used, _)| *used != name) {
            let message = format!("{name} is not used, write {{{name}}} where its value belongs");
            return Err(ScenarioError::at(text, &key.span(), message));
        }
    }
    let is_known = |name: &str| table.get_ref().keys().any(|key| key.get_ref() == name);
    match used.iter().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, span)) => {
            let names = table.get_ref().keys().map(|key| key.get_ref().as_str());
            let names: Vec<&str> = names.collect();
            let message = format!(
                "the matrix has no {name}, it has {}",
                if names.is_empty() {
                    "nothing".to_owned()
                } else {
                    names.join(", ")
                }
            );
            Err(ScenarioError::at(text, span, message))
        }
    }
}

/// Returns names in braces without blanks, which are never inline tables of TOML, with their
/// places. Comments are ignored.
fn variables(text: &str) -> Vec<(&str, Range<usize>)> {
    let mut found = Vec::new();
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim_start().starts_with('#') {
            for (at, _) in line.match_indices('{') {
                let inside = &line[at + 1..];
                let Some((name, _)) = inside.split_once('}') else {
                    continue;
                };
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if !name.is_empty() && name.chars().all(is_name) {
                    let start = line_start + at;
                    found.push((name, start..start + name.len() + 2));
                }
            }
        }
        line_start += line.len();
    }
    found
}

/// The largest number of members. More are a typing error, or should be several files.
const MAX_VARIANTS: usize = 1000;

#[cfg(test)]
mod tests;
