//! The links of the machine that --via names, and the schedulers of --scheduler.

use std::convert::Infallible;
use std::str::FromStr;

use courser::{PathSchedule, Via};

/// A link that transfers may use: `wlan0`, `192.0.2.7`, `wwan0,backup`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) via: Via,
    /// True if it is used only while no other one works.
    pub(crate) is_backup: bool,
}

impl FromStr for Link {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (place, is_backup) = match text.strip_suffix(",backup") {
            Some(place) => (place, true),
            None => (text, false),
        };
        Ok(Self {
            via: place.parse()?,
            is_backup,
        })
    }
}

/// Parses the name of a scheduler.
pub(crate) fn scheduler(name: &str) -> Result<PathSchedule, String> {
    match name {
        "earliest" => Ok(PathSchedule::Earliest),
        "fastest" => Ok(PathSchedule::Fastest),
        _ => Err("the schedulers are earliest and fastest".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_interfaces_or_addresses_and_may_be_backups() {
        let cases = [
            ("wlan0", Via::Interface("wlan0".to_owned()), false),
            ("wwan0,backup", Via::Interface("wwan0".to_owned()), true),
            (
                "192.0.2.7,backup",
                Via::Address([192, 0, 2, 7].into()),
                true,
            ),
        ];
        for (text, via, is_backup) in cases {
            assert_eq!(text.parse(), Ok(Link { via, is_backup }), "{text}");
        }
    }

    #[test]
    fn unknown_schedulers_are_answered_with_the_known_ones() {
        let error = scheduler("minrtt").expect_err("unknown");
        assert!(error.contains("earliest"), "{error}");
    }
}
