//! Reads text and numbers.

use serde_json::Value;

pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

pub(super) fn uint(value: &Value, key: &str) -> Option<u64> {
    number(value.get(key)?)
}

/// Reads a whole number. JavaScript has no 64-bit integers, so some writers use strings
/// (main-schema §11.3), and some add a fraction.
pub(super) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            // The cast truncates fractions and saturates.
            (float >= 0.0).then_some(float as u64)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
