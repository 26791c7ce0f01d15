//! The reaction of a correct victim to an attack.

use std::collections::BTreeMap;

use crate::attacker::Attacker;

/// What the attacker has to receive, and must not receive, beside the survival of its victim.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    /// The codes with which the victim closes connections, as [`Close::code`](crate::Close::code) names them. Each has to
    /// occur, and no other may. `None` permits all.
    pub closes: Option<&'static [&'static str]>,
    /// The codes of streams that the victim resets or stops. Each has to occur; others may.
    pub streams: &'static [u64],
    /// The statuses of responses. Each has to occur; others may.
    pub statuses: &'static [u16],
    /// No response may have a status of success, and there has to be one.
    pub is_refused: bool,
}

impl Expect {
    /// Every reaction is permitted.
    pub const ANY: Self = Self {
        closes: None,
        streams: &[],
        statuses: &[],
        is_refused: false,
    };

    /// All connections stay open.
    pub const TOLERATED: Self = Self::ANY.closes(&[]);

    /// Permits and requires these codes of closed connections.
    #[must_use]
    pub const fn closes(self, codes: &'static [&'static str]) -> Self {
        Self {
            closes: Some(codes),
            ..self
        }
    }

    /// Requires these codes of streams.
    #[must_use]
    pub const fn streams(self, codes: &'static [u64]) -> Self {
        Self {
            streams: codes,
            ..self
        }
    }

    /// Requires that all requests are refused.
    #[must_use]
    pub const fn refused(self) -> Self {
        Self {
            is_refused: true,
            ..self
        }
    }

    /// Requires these statuses.
    #[must_use]
    pub const fn statuses(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    /// Returns the differences of an attack from this reaction, in one line each.
    pub fn differences(&self, attacker: &Attacker) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(expected) = self.closes {
            let seen = &attacker.counts().closes;
            let missing = expected.iter().filter(|code| !seen.contains_key(**code));
            lines.extend(missing.map(|code| format!("no connection was closed with {code}")));
            let surplus = seen
                .keys()
                .filter(|code| !expected.contains(&code.as_str()));
            lines.extend(surplus.map(|code| format!("connections were closed with {code}")));
        }
        let streams = attacker.stream_codes();
        let missing = self
            .streams
            .iter()
            .filter(|code| !streams.contains_key(*code));
        lines.extend(missing.map(|code| format!("no stream ended with {code:#x}")));
        lines.extend(self.differences_of(&attacker.statuses()));
        lines
    }

    fn differences_of(&self, statuses: &BTreeMap<u16, u64>) -> Vec<String> {
        let missing = self
            .statuses
            .iter()
            .filter(|status| !statuses.contains_key(*status));
        let missing = missing.map(|status| format!("no response had the status {status}"));
        let mut lines: Vec<String> = missing.collect();
        if self.is_refused {
            let accepted = statuses
                .keys()
                .filter(|status| (200..300).contains(*status));
            lines.extend(accepted.map(|status| format!("responses had the status {status}")));
            if statuses.is_empty() {
                lines.push("no request was answered".to_owned());
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests;
