//! The parts of a URI template (RFC 6570 §2).

use super::invalid::InvalidTemplate;

/// A part of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Literal(String),
    Expression(Expression),
}

/// Variables in braces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Expression {
    /// `?` or `&` for form expansion, `None` for simple expansion.
    pub(super) operator: Option<char>,
    /// At least one.
    pub(super) names: Vec<String>,
}

/// Splits the path of a template into text and expressions.
pub(super) fn parts(path: &str) -> Result<Vec<Part>, InvalidTemplate> {
    let mut parts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (literal, after) = match rest.find(['{', '}']) {
            Some(brace) => rest.split_at(brace),
            None => (rest, ""),
        };
        if literal.contains('#') {
            return Err(InvalidTemplate::Character('#'));
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.to_owned()));
        }
        rest = after;
        if let Some(inner) = rest.strip_prefix('{') {
            let (inner, after) = inner
                .split_once('}')
                .ok_or(InvalidTemplate::Character('{'))?;
            parts.push(Part::Expression(expression(inner)?));
            rest = after;
        } else if !rest.is_empty() {
            return Err(InvalidTemplate::Character('}'));
        }
    }
    Ok(parts)
}

fn expression(inner: &str) -> Result<Expression, InvalidTemplate> {
    let (operator, list) = match inner.chars().next() {
        Some(operator @ ('?' | '&')) => (Some(operator), &inner[1..]),
        _ => (None, inner),
    };
    let names: Vec<_> = list.split(',').map(str::to_owned).collect();
    match names.iter().all(|name| is_name(name)) {
        true => Ok(Expression { operator, names }),
        false => Err(InvalidTemplate::Expression(inner.to_owned())),
    }
}

/// Returns true for the name of a variable. Modifiers (`:3`, `*`) and other operators are no part of one.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
}
