//! Reads numbers of documents and of code.

use std::fmt;

/// A count, or a duration in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Count(u128),
    Nanos(u128),
    /// No number: `None` in the code, `none` in a document.
    Absent,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Nanos(nanos) => write!(f, "{nanos} ns"),
            Self::Absent => f.write_str("none"),
        }
    }
}

/// Reads `16` with `KiB`, `10 000` with `packets`, `2^20`, or `none`.
pub(super) fn with_unit(number: &str, unit: &str) -> Option<Value> {
    if number == "none" {
        return Some(Value::Absent);
    }
    let digits = number.replace(' ', "");
    let number: u128 = match digits.split_once('^') {
        Some((base, exponent)) => {
            let base: u128 = base.parse().ok()?;
            base.checked_pow(exponent.parse().ok()?)?
        }
        None => digits.parse().ok()?,
    };
    let scaled = |factor: u128| number.checked_mul(factor);
    let value = match unit {
        "KiB" => Value::Count(scaled(1 << 10)?),
        "MiB" => Value::Count(scaled(1 << 20)?),
        "GiB" => Value::Count(scaled(1 << 30)?),
        "µs" => Value::Nanos(scaled(MICROSECOND)?),
        "ms" => Value::Nanos(scaled(MILLISECOND)?),
        "s" => Value::Nanos(scaled(SECOND)?),
        "min" => Value::Nanos(scaled(60 * SECOND)?),
        "h" => Value::Nanos(scaled(3600 * SECOND)?),
        "d" => Value::Nanos(scaled(86_400 * SECOND)?),
        _ => Value::Count(number),
    };
    Some(value)
}

/// Evaluates an expression of integers and durations. `resolve` returns the value of a constant.
pub(super) fn evaluate(expression: &str, resolve: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    let tokens = tokens(expression)?;
    let mut parser = Parser {
        tokens: &tokens,
        resolve,
    };
    let value = parser.shift()?;
    parser.tokens.is_empty().then_some(value)
}

fn tokens(expression: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if first.is_ascii_alphanumeric() || first == '_' {
            let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            rest.find(|c| !is_in_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("<<") {
            2
        } else if "()*/+-".contains(first) {
            1
        } else {
            return None;
        };
        found.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    Some(found)
}

/// A recursive descent parser. Its methods are ordered by precedence, lowest first.
struct Parser<'a> {
    tokens: &'a [&'a str],
    resolve: &'a dyn Fn(&str) -> Option<Value>,
}

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        let is_next = self.tokens.first() == Some(&token);
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }

    fn shift(&mut self) -> Option<Value> {
        let mut left = self.sum()?;
        while self.take("<<") {
            let by = u32::try_from(count(self.sum()?)?).ok()?;
            left = Value::Count(count(left)?.checked_mul(1_u128.checked_shl(by)?)?);
        }
        Some(left)
    }

    fn sum(&mut self) -> Option<Value> {
        let mut left = self.product()?;
        loop {
            if self.take("+") {
                let right = count(self.product()?)?;
                left = Value::Count(count(left)?.checked_add(right)?);
            } else if self.take("-") {
                let right = count(self.product()?)?;
                left = Value::Count(count(left)?.checked_sub(right)?);
            } else {
                return Some(left);
            }
        }
    }

    fn product(&mut self) -> Option<Value> {
        let mut left = self.atom()?;
        loop {
            if self.take("*") {
                let right = count(self.atom()?)?;
                left = Value::Count(count(left)?.checked_mul(right)?);
            } else if self.take("/") {
                let right = count(self.atom()?)?;
                left = Value::Count(count(left)?.checked_div(right)?);
            } else if self.take("as") {
                self.tokens = self.tokens.get(1..)?;
            } else {
                return Some(left);
            }
        }
    }

    fn atom(&mut self) -> Option<Value> {
        let (&token, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        if token == "(" {
            let inner = self.shift()?;
            return self.take(")").then_some(inner);
        }
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            return literal(token);
        }
        if token == "None" {
            return Some(Value::Absent);
        }
        if self.take("(") {
            let inner = self.shift()?;
            if !self.take(")") {
                return None;
            }
            return call(token, inner);
        }
        (self.resolve)(token)
    }
}

fn literal(token: &str) -> Option<Value> {
    let digits: String = token
        .chars()
        .filter(|&c| c != '_')
        .take_while(char::is_ascii_digit)
        .collect();
    let suffix = token.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
    let is_integer = suffix.is_empty() || suffix.starts_with(['u', 'i']);
    is_integer.then_some(Value::Count(digits.parse().ok()?))
}

fn call(function: &str, argument: Value) -> Option<Value> {
    let factor = match function {
        "Some" => return Some(argument),
        "Duration::from_nanos" => 1,
        "Duration::from_micros" => MICROSECOND,
        "Duration::from_millis" => MILLISECOND,
        "Duration::from_secs" => SECOND,
        _ => return None,
    };
    Some(Value::Nanos(count(argument)?.checked_mul(factor)?))
}

fn count(value: Value) -> Option<u128> {
    match value {
        Value::Count(count) => Some(count),
        Value::Nanos(_) | Value::Absent => None,
    }
}

const MICROSECOND: u128 = 1_000;
const MILLISECOND: u128 = 1_000_000;
const SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expression: &str) -> Option<Value> {
        evaluate(expression, &|name| {
            (name == "SETS").then_some(Value::Count(1024))
        })
    }

    #[test]
    fn expressions_have_the_values_that_rust_gives_them() {
        assert_eq!(value("16 * 1024"), Some(Value::Count(16_384)));
        assert_eq!(value("1 << 20"), Some(Value::Count(1 << 20)));
        assert_eq!(value("(1 << 10) - 1"), Some(Value::Count(1023)));
        assert_eq!(value("1 << 3 + 1"), Some(Value::Count(16)));
        assert_eq!(value("20 - 2 * 5 / 2"), Some(Value::Count(15)));
        assert_eq!(value("2 * SETS as usize"), Some(Value::Count(2048)));
        assert_eq!(value("10_000_u64"), Some(Value::Count(10_000)));
        assert_eq!(
            value("Some(Duration::from_secs(24 * 60))"),
            Some(Value::Nanos(1440 * SECOND))
        );
        assert_eq!(value("None"), Some(Value::Absent));
    }

    #[test]
    fn other_expressions_have_no_value() {
        for expression in [
            "", "usize", "1.5", "\"a\"", "1 +", "(1", "f(1)", "1 2", "0x10",
        ] {
            assert_eq!(value(expression), None, "{expression}");
        }
    }

    #[test]
    fn stated_numbers_take_their_unit() {
        assert_eq!(with_unit("16", "KiB"), Some(Value::Count(16_384)));
        assert_eq!(with_unit("10 000", "packets"), Some(Value::Count(10_000)));
        assert_eq!(with_unit("2^20", "packets"), Some(Value::Count(1 << 20)));
        assert_eq!(
            with_unit("250", "ms"),
            Some(Value::Nanos(250 * MILLISECOND))
        );
        assert_eq!(with_unit("none", "s"), Some(Value::Absent));
        assert_eq!(with_unit("a few", "packets"), None);
        assert_eq!(with_unit("2^200", "packets"), None);
    }
}
