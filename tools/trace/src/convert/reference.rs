//! The reference time of a trace, from which its times count: main-schema §7.1.

use std::time::{Duration, UNIX_EPOCH};

use courser_units::rfc3339_millis;
use serde_json::{Map, Value, json};

/// Copies the common fields of a trace to those of its copy. `first` is the time of the first event in
/// seconds. Returns the seconds to add to times that count from the first event.
///
/// Up to main-schema-03 `reference_time` is a number of milliseconds since 1970, and later an object.
/// Without it, times have no meaning outside of the trace, and the copy begins at zero.
pub(super) fn copy_common_fields(common: &Map<String, Value>, first: f64, copy: &mut Value) -> f64 {
    for (key, value) in common {
        if !KNOWN.contains(&key.as_str()) {
            copy[key.as_str()] = value.clone();
        }
    }
    let reference = match common.get("reference_time") {
        Some(Value::Object(reference)) => Value::Object(reference.clone()),
        Some(Value::Number(millis)) => system(millis.as_f64()),
        // Some writers put numbers into strings.
        Some(Value::String(text)) => system(text.parse().ok()),
        _ => return 0.0,
    };
    if reference.is_null() {
        return 0.0;
    }
    copy["reference_time"] = reference;
    first
}

/// Converts milliseconds since 1970 to a reference time. Returns null if they are out of range.
fn system(millis: Option<f64>) -> Value {
    let millis = millis.filter(|millis| (0.0..MAX_MILLIS).contains(millis));
    millis.map_or(Value::Null, |millis| {
        json!({"clock_type": "system", "epoch": "unknown", "wall_clock_time": rfc3339_millis(UNIX_EPOCH + Duration::from_millis(millis as u64))})
    })
}

/// Fields that other code writes to the copy.
const KNOWN: [&str; 4] = ["time_format", "reference_time", "group_id", "ODCID"];
/// The end of the year 9999.
const MAX_MILLIS: f64 = 253_402_300_800_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_dates() {
        for (millis, text) in [
            (0.0, "1970-01-01T00:00:00.000Z"),
            (1_577_836_799_999.0, "2019-12-31T23:59:59.999Z"),
            (253_402_300_799_999.0, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(system(Some(millis))["wall_clock_time"], text);
        }
    }

    #[test]
    fn invalid_references_are_left_out() {
        for reference in [
            json!("soon"),
            json!(-5),
            json!(1e300),
            json!(null),
            json!([1]),
        ] {
            let common = json!({"reference_time": reference});
            let mut copy = json!({"reference_time": "own"});
            let common = common.as_object().expect("an object");
            assert_eq!(copy_common_fields(common, 5.0, &mut copy), 0.0);
            assert_eq!(copy["reference_time"], "own");
        }
    }
}
