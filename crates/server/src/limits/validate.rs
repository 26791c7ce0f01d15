//! Validation of limits before a server starts.

use std::time::Duration;

use courser_quic::ConfigError;

use super::Limits;

impl Limits {
    /// Checks that each limit is in its range, as [`Server::bind`](crate::Server::bind) does.
    ///
    /// # Errors
    /// [`ConfigError::Limits`] with the field, its value and the allowed range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let connections = self.max_connections as u64;
        check("max_connections", connections, u64::MAX)?;
        if let Some(share) = self.max_connections_per_address {
            check("max_connections_per_address", share as u64, connections)?;
        }
        for (field, rate) in [
            ("connection_rate", self.connection_rate),
            ("loaded_connection_rate", self.loaded_connection_rate),
        ] {
            if let Some(rate) = rate {
                check(field, rate.into(), MAX_CONNECTION_RATE)?;
            }
        }
        for (field, time) in [
            ("handshake_timeout (ms)", Some(self.handshake_timeout)),
            ("header_read_timeout (ms)", Some(self.header_read_timeout)),
            ("idle_timeout (ms)", Some(self.idle_timeout)),
            ("write_timeout (ms)", self.write_timeout),
            ("handler_timeout (ms)", self.handler_timeout),
            (
                "read_rate.grace (ms)",
                self.read_rate.map(|rate| rate.grace),
            ),
            (
                "body_rate.grace (ms)",
                self.body_rate.map(|rate| rate.grace),
            ),
        ] {
            if let Some(time) = time {
                check(field, millis(time), u64::MAX)?;
            }
        }
        let read_rate = self.read_rate.map(|rate| rate.bytes_per_second);
        let body_rate = self.body_rate.map(|rate| rate.bytes_per_second);
        for (field, rate) in [
            ("read_rate.bytes_per_second", read_rate),
            ("body_rate.bytes_per_second", body_rate),
        ] {
            if let Some(rate) = rate {
                check(field, rate.into(), u32::MAX.into())?;
            }
        }
        let bytes = self.max_header_bytes.into();
        check("max_header_bytes", bytes, u32::MAX.into())?;
        let fields = self.max_header_fields.into();
        check("max_header_fields", fields, MAX_FIELDS)?;
        let streams = self.max_http2_streams.into();
        check("max_http2_streams", streams, u32::MAX.into())
    }
}

/// Largest number of fields that the representation of header sections allows.
const MAX_FIELDS: u64 = 24_000;

/// Checks the limits of a server and those of its HTTP/3 connections.
pub(crate) fn check_all(
    limits: &Limits,
    http3: &courser_http3_tokio::Config,
) -> Result<(), ConfigError> {
    limits.validate()?;
    http3.validate().map_err(|error| {
        ConfigError::Limits(courser_transport::ConfigError {
            field: error.field,
            message: error.message,
        })
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns an error if a limit is zero or too large.
fn check(field: &'static str, seen: u64, most: u64) -> Result<(), ConfigError> {
    if (1..=most).contains(&seen) {
        return Ok(());
    }
    let allowed = match most {
        u64::MAX => "at least 1".to_owned(),
        most => format!("1 to {most}"),
    };
    Err(ConfigError::Limits(courser_transport::ConfigError {
        field,
        message: format!("is {seen}, allowed is {allowed}"),
    }))
}

/// Highest allowed rate: more than a machine can accept.
const MAX_CONNECTION_RATE: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::pace::BodyRate;
    use crate::limits::read_monitor::ReadRate;

    fn refused(change: impl FnOnce(&mut Limits)) -> String {
        let mut limits = Limits::default();
        change(&mut limits);
        limits.validate().expect_err("refused").to_string()
    }

    fn slow(bytes_per_second: u32, grace: u64) -> ReadRate {
        let grace = Duration::from_secs(grace);
        ReadRate {
            bytes_per_second,
            grace,
        }
    }

    fn late(bytes_per_second: u32, grace: u64) -> BodyRate {
        let grace = Duration::from_secs(grace);
        BodyRate {
            bytes_per_second,
            grace,
        }
    }

    #[test]
    fn rates_may_be_off_or_as_low_as_one() {
        let mut limits = Limits {
            read_rate: None,
            body_rate: None,
            ..Limits::default()
        };
        assert_eq!(limits.validate(), Ok(()));
        limits.read_rate = Some(slow(1, 1));
        limits.body_rate = Some(late(1, 1));
        assert_eq!(limits.validate(), Ok(()));
    }

    #[test]
    fn defaults_are_valid() {
        assert_eq!(Limits::default().validate(), Ok(()));
    }

    #[test]
    fn limits_of_zero_are_reported() {
        let zero = Duration::ZERO;
        for (field, error) in [
            ("max_connections", refused(|it| it.max_connections = 0)),
            (
                "connection_rate",
                refused(|it| it.connection_rate = Some(0)),
            ),
            (
                "loaded_connection_rate",
                refused(|it| it.loaded_connection_rate = Some(0)),
            ),
            (
                "handshake_timeout",
                refused(|it| it.handshake_timeout = zero),
            ),
            ("write_timeout", refused(|it| it.write_timeout = Some(zero))),
            ("max_http2_streams", refused(|it| it.max_http2_streams = 0)),
            ("max_header_fields", refused(|it| it.max_header_fields = 0)),
            (
                "read_rate.bytes_per_second",
                refused(|it| it.read_rate = Some(slow(0, 60))),
            ),
            (
                "read_rate.grace",
                refused(|it| it.read_rate = Some(slow(240, 0))),
            ),
            (
                "body_rate.bytes_per_second",
                refused(|it| it.body_rate = Some(late(0, 30))),
            ),
            (
                "body_rate.grace",
                refused(|it| it.body_rate = Some(late(240, 0))),
            ),
        ] {
            let expected = format!("limits: {field}");
            let names_all = error.starts_with(&expected) && error.contains("is 0, allowed is");
            assert!(names_all, "{field}: {error}");
        }
    }

    #[test]
    fn limits_of_http3_are_checked_too() {
        let mut limits = Limits::default();
        let mut http3 = courser_http3_tokio::Config::new(courser_quic::Side::Server);
        assert_eq!(check_all(&limits, &http3), Ok(()));
        http3.limits.lines = 0;
        let error = check_all(&limits, &http3).expect_err("no fields");
        let message = error.to_string();
        let expected = "limits: limits.lines: is 0, allowed is ";
        assert!(message.starts_with(expected), "{message}");
        limits.max_connections = 0;
        let error = check_all(&limits, &http3).expect_err("no connections");
        assert!(error.to_string().contains("max_connections"), "{error}");
    }

    #[test]
    fn share_above_the_total_is_refused() {
        let error = refused(|it| {
            it.max_connections = 100;
            it.max_connections_per_address = Some(101);
        });
        let expected = "limits: max_connections_per_address: is 101, allowed is 1 to 100";
        assert_eq!(error, expected);
    }
}
