//! Times, sizes and rates in TOML.

use std::fmt;
use std::time::Duration;

use courser_base::Rate;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use courser_link::quantity::{parse_bytes, parse_duration, parse_rate};

/// A time such as `"30s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TimeValue(pub(super) Duration);

/// A size such as `"64k"`, or a number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SizeValue(pub(super) u64);

/// A rate such as `"20mbit"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RateValue(pub(super) Rate);

/// A number such as 8, or `"8"` from a variable of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CountValue(pub(super) u64);

struct Text<T> {
    what: &'static str,
    parse: fn(&str) -> Option<T>,
    count: fn(u64) -> Option<T>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let wrong = || E::custom(format!("'{text}' is not {}", self.what));
        (self.parse)(text.trim()).ok_or_else(wrong)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let wrong = || E::custom(format!("{number} is not {}", self.what));
        let number = u64::try_from(number).map_err(|_| wrong())?;
        (self.count)(number).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for TimeValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            what: "a time with its unit, such as \"250us\", \"40ms\" or \"1.5s\"",
            parse: |text| parse_duration(text).map(Self),
            count: |number| (number == 0).then_some(Self(Duration::ZERO)),
        })
    }
}

impl<'de> Deserialize<'de> for SizeValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            what: "a size, such as 1200, \"64k\" or \"1MiB\"",
            parse: |text| parse_bytes(text).map(Self),
            count: |number| Some(Self(number)),
        })
    }
}

impl<'de> Deserialize<'de> for CountValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            what: "a number, such as 8",
            parse: |text| text.parse().ok().map(Self),
            count: |number| Some(Self(number)),
        })
    }
}

impl<'de> Deserialize<'de> for RateValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            what: "a rate, such as \"20mbit\" or \"1.5gbit\"",
            parse: |text| parse_rate(text).map(Self),
            count: |_| None,
        })
    }
}
