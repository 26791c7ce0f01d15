//! Reads numbers of documents and of code.

use std::fmt;

use syn::{BinOp, Expr, ExprCall, ExprLit, Lit};

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
pub(super) fn evaluate(
    expression: &Expr,
    resolve: &dyn Fn(&str) -> Option<Value>,
) -> Option<Value> {
    let evaluate = |expression: &Expr| evaluate(expression, resolve);
    match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => Some(Value::Count(number.base10_parse().ok()?)),
        Expr::Paren(inner) => evaluate(&inner.expr),
        Expr::Cast(cast) => evaluate(&cast.expr),
        Expr::Binary(operation) => {
            let left = count(evaluate(&operation.left)?)?;
            let right = count(evaluate(&operation.right)?)?;
            let value = match operation.op {
                BinOp::Add(_) => left.checked_add(right),
                BinOp::Sub(_) => left.checked_sub(right),
                BinOp::Mul(_) => left.checked_mul(right),
                BinOp::Div(_) => left.checked_div(right),
                BinOp::Shl(_) => left.checked_mul(1_u128.checked_shl(right.try_into().ok()?)?),
                _ => None,
            };
            value.map(Value::Count)
        }
        Expr::Call(called) => call(called, evaluate(called.args.first()?)?),
        Expr::Path(path) if path.path.is_ident("None") => Some(Value::Absent),
        Expr::Path(path) => resolve(&path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

fn call(called: &ExprCall, argument: Value) -> Option<Value> {
    let Expr::Path(function) = called.func.as_ref() else {
        return None;
    };
    let name = function.path.segments.last()?.ident.to_string();
    let factor = match name.as_str() {
        "Some" => return Some(argument),
        "from_nanos" => 1,
        "from_micros" => MICROSECOND,
        "from_millis" => MILLISECOND,
        "from_secs" => SECOND,
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
        let expression = syn::parse_str(expression).ok()?;
        evaluate(&expression, &|name| {
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
            "usize", "1.5", "\"a\"", "f(1)", "1 % 2", "[1]", "1 - 2", "1 / 0",
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
