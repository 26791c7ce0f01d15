//! Validation of a configuration.

use thiserror::Error;

use crate::connection::Config;

/// The error of a setting outside its range.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{field}: {message}")]
pub struct ConfigError {
    /// The name of the field in [`Config`].
    pub field: &'static str,
    /// The value and the allowed range.
    pub message: String,
}

impl Config {
    /// Checks that no limit is zero, unless zero disables the feature, and that the size limit fits into a
    /// setting. [`Connection::new`](crate::Connection::new) does not check this.
    ///
    /// # Errors
    /// [`ConfigError`] with the field, its value and the allowed range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check("limits.size", self.limits.size, MAX_VARINT)?;
        for (field, limit) in [
            ("limits.lines", self.limits.lines),
            ("limits.name", self.limits.name),
            ("limits.value", self.limits.value),
        ] {
            check(field, limit as u64, usize::MAX as u64)?;
        }
        // Without a dynamic table or blocked streams, no section can be blocked.
        if self.decoder.max_table_capacity > 0 && self.decoder.max_blocked_streams > 0 {
            let bytes = self.blocked_bytes as u64;
            check("blocked_bytes", bytes, usize::MAX as u64)?;
        }
        Ok(())
    }
}

fn check(field: &'static str, seen: u64, most: u64) -> Result<(), ConfigError> {
    if (1..=most).contains(&seen) {
        return Ok(());
    }
    let message = format!("is {seen}, allowed is 1 to {most}");
    Err(ConfigError { field, message })
}

/// Largest value of a setting (RFC 9000 §16).
const MAX_VARINT: u64 = (1 << 62) - 1;

#[cfg(test)]
mod tests {
    use courser_base::Side;

    use super::*;

    fn refused(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::new(Side::Server);
        change(&mut config);
        config.validate().expect_err("refused").to_string()
    }

    #[test]
    fn defaults_are_valid() {
        for side in [Side::Client, Side::Server] {
            assert_eq!(Config::new(side).validate(), Ok(()));
        }
    }

    #[test]
    fn limits_of_zero_are_reported() {
        for (field, error) in [
            ("limits.size", refused(|it| it.limits.size = 0)),
            ("limits.lines", refused(|it| it.limits.lines = 0)),
            ("limits.name", refused(|it| it.limits.name = 0)),
            ("limits.value", refused(|it| it.limits.value = 0)),
            ("blocked_bytes", refused(|it| it.blocked_bytes = 0)),
        ] {
            let expected = format!("{field}: is 0, allowed is 1 to ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn size_that_no_setting_can_carry_is_refused() {
        let error = refused(|it| it.limits.size = 1 << 62);
        let range = "allowed is 1 to 4611686018427387903";
        assert_eq!(
            error,
            format!("limits.size: is 4611686018427387904, {range}")
        );
    }

    #[test]
    fn limits_may_be_turned_off() {
        let mut config = Config::new(Side::Server);
        config.limits.lines = usize::MAX;
        config.limits.name = usize::MAX;
        config.limits.value = usize::MAX;
        config.blocked_bytes = usize::MAX;
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn blocked_bytes_may_be_zero_without_blocked_streams() {
        let off: [fn(&mut Config); 2] = [
            |it| it.decoder.max_blocked_streams = 0,
            |it| it.decoder.max_table_capacity = 0,
        ];
        for turn_off in off {
            let mut config = Config::new(Side::Client);
            turn_off(&mut config);
            config.blocked_bytes = 0;
            assert_eq!(config.validate(), Ok(()));
        }
    }
}
