//! Reads text and numbers.

use serde_json::Value;

pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

pub(super) fn uint(value: &Value, key: &str) -> Option<u64> {
    number(value.get(key)?)
}

/// Reads the size of a packet, frame or datagram in bytes. Reduces it to [`MAX_SIZE`], so that sums do
/// not overflow.
pub(super) fn size(value: &Value, key: &str) -> Option<u64> {
    uint(value, key).map(|size| size.min(MAX_SIZE))
}

/// Reads a whole number, and reduces it to [`MAX_NUMBER`]. JavaScript has no 64-bit integers, so some
/// writers use strings (main-schema §11.3), and some add a fraction.
pub(super) fn number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            // The cast truncates fractions and saturates.
            (float >= 0.0).then_some(float as u64)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.map(|number| number.min(MAX_NUMBER))
}

/// The largest number: that of a variable-length integer (RFC 9000 §16).
pub(super) const MAX_NUMBER: u64 = (1 << 62) - 1;
/// The largest size of a packet, frame or datagram. Even batches that a writer counts as one are smaller.
const MAX_SIZE: u64 = 1 << 32;
