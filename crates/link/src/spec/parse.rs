//! Parses specifications.

use std::str::FromStr;

use super::check::finish;
use super::error::shortened;
use super::fields::{self, Draft, Field, STEPPED, read_change};
use super::{DuplexSpec, LinkSpec, NatSpec, SpecError, Step};
use crate::quantity::{is_number, parse_duration, parse_probability, parse_rate};
use crate::suggest::nearest;

impl FromStr for LinkSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (spec, nat) = parse_hops(text)?;
        match nat {
            None => Ok(spec),
            Some(_) => Err(not_on_one_direction()),
        }
    }
}

impl FromStr for DuplexSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (forward, back) = match text.split_once(';') {
            Some((forward, back)) => (forward, Some(back)),
            None => (text, None),
        };
        if back.is_some_and(|back| back.contains(';')) {
            let problem = "more than one ';': a link has two directions, write FORWARD;BACK";
            return Err(SpecError::new("", problem));
        }
        let (forward, nat) = parse_hops(forward)?;
        let back = match back {
            Some(back) => back.parse()?,
            None => forward.clone(),
        };
        Ok(Self { forward, back, nat })
    }
}

/// Parses hops: `a | b | c`.
fn parse_hops(text: &str) -> Result<(LinkSpec, Option<NatSpec>), SpecError> {
    let mut nat = None;
    let mut hops = Vec::new();
    for hop in text.split('|') {
        if hops.len() == MAX_HOPS {
            let problem = format!("more than {MAX_HOPS} hops: remove some");
            return Err(SpecError::new("|", problem));
        }
        let mut draft = Reader::default();
        for token in tokens(hop) {
            draft.token(&token)?;
        }
        let (spec, found) = draft.finish()?;
        nat = nat.or(found);
        hops.push(spec);
    }
    Ok((chained(hops), nat))
}

/// Links each hop to the next.
fn chained(hops: Vec<LinkSpec>) -> LinkSpec {
    let mut chain: Option<LinkSpec> = None;
    for mut hop in hops.into_iter().rev() {
        hop.then = chain.take().map(Box::new);
        chain = Some(hop);
    }
    chain.unwrap_or_default()
}

/// Splits text at commas into fields. Numbers without a name belong to the list before them.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let continues = part.split('-').all(is_number);
        match tokens.last_mut() {
            Some(list) if continues && list.starts_with("drop") => {
                list.push(',');
                list.push_str(part);
            }
            _ => tokens.push(part.to_owned()),
        }
    }
    // Empty text specifies a link without effects. A comma at the end is allowed.
    tokens.retain(|token| !token.is_empty() && token != "none");
    tokens
}

/// A parser of one hop, field by field.
#[derive(Debug, Default)]
pub(super) struct Reader {
    draft: Draft,
    seen: Vec<&'static str>,
}

impl Reader {
    /// Parses a field with or without its name.
    fn token(&mut self, token: &str) -> Result<(), SpecError> {
        match token.split_once('=') {
            Some((name, value)) => self.field(name.trim(), value.trim()),
            None => self.field(bare_name(token)?, token),
        }
    }

    /// Parses the value of the field with this name.
    pub(super) fn field(&mut self, name: &str, value: &str) -> Result<(), SpecError> {
        if let Some((stepped, at)) = name.split_once('@') {
            return self.step(name, stepped.trim(), at.trim(), value);
        }
        let field = known(name)?;
        if self.seen.contains(&field.name) {
            return Err(SpecError::new(field.name, "is given twice: remove one"));
        }
        self.seen.push(field.name);
        (field.read)(value, &mut self.draft)
            .ok_or_else(|| SpecError::value(field.name, value, field.allowed))
    }

    fn step(&mut self, name: &str, stepped: &str, at: &str, value: &str) -> Result<(), SpecError> {
        let field = known(stepped)?;
        if !STEPPED.contains(&field.name) {
            let allowed = STEPPED.join(", ");
            let problem = format!("cannot change at a time: NAME@TIME works with {allowed}");
            return Err(SpecError::new(field.name, problem));
        }
        let at = parse_duration(at).ok_or_else(|| SpecError::value(name, at, fields::DURATION))?;
        let change = read_change(field.name, value)
            .ok_or_else(|| SpecError::value(name, value, field.allowed))?;
        let steps = &mut self.draft.spec.steps;
        if steps.len() == MAX_STEPS {
            return Err(SpecError::new(
                name,
                format!("more than {MAX_STEPS} changes: remove some"),
            ));
        }
        steps.push(Step { at, change });
        // The sort is stable: changes at the same time stay in the order of the text.
        steps.sort_by_key(|step| step.at);
        Ok(())
    }

    /// Checks the fields that depend on each other, and returns the specification.
    pub(super) fn finish(self) -> Result<(LinkSpec, Option<NatSpec>), SpecError> {
        finish(self.draft)
    }

    pub(super) fn chain(&mut self, then: LinkSpec) {
        self.draft.spec.then = Some(Box::new(then));
    }
}

/// Returns the field with this name.
pub(super) fn known(name: &str) -> Result<&'static Field, SpecError> {
    fields::find(name).ok_or_else(|| {
        let names = || fields::FIELDS.iter().map(|field| field.name);
        let shown = shortened(name);
        let problem = match nearest(name, names()) {
            Some(meant) => format!("unknown field '{shown}', did you mean '{meant}'?"),
            None => {
                let all: Vec<&str> = names().collect();
                format!("unknown field '{shown}': use one of {}", all.join(", "))
            }
        };
        SpecError::new("", problem)
    })
}

/// Returns the name of the field to which a value without a name belongs.
fn bare_name(token: &str) -> Result<&'static str, SpecError> {
    let share = token.split_once(':').map_or(token, |(share, _)| share);
    if parse_rate(token).is_some() {
        Ok("rate")
    } else if !is_number(token) && parse_duration(token).is_some() {
        Ok("delay")
    } else if share.ends_with('%') && parse_probability(share).is_some() {
        Ok("loss")
    } else if fields::parse_aqm(token).is_some() {
        Ok("aqm")
    } else {
        let token = shortened(token);
        let problem = format!(
            "'{token}' is not a rate (20mbit), delay (40ms), loss (1%) or queue discipline (codel): \
             write other fields as NAME=VALUE, such as queue=64k"
        );
        Err(SpecError::new("", problem))
    }
}

pub(super) fn not_on_one_direction() -> SpecError {
    let problem = "applies to both directions: put it before the ';', or beside forward and back";
    SpecError::new("rebind", problem)
}

/// Maximum number of hops. Each hop costs time for every packet.
pub(super) const MAX_HOPS: usize = 16;

/// Maximum number of scheduled changes, enough to replay the trace of a measured link for some
/// time.
const MAX_STEPS: usize = 10_000;
