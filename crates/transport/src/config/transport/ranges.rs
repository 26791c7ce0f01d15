//! Ranges of the settings of a connection.

use std::fmt;
use std::time::Duration;

use courser_recovery::{MAX_PACKET_THRESHOLD, PACKET_THRESHOLD};
use courser_wire::packet::MIN_INITIAL_DATAGRAM;

use super::bounds::{MAX_MTU, MAX_OPEN_PATHS};
use super::{SILENT_AFTER, TransportConfig};
use crate::nat::MAX_CANDIDATES;

/// An error for a setting outside its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The name of the field.
    pub field: &'static str,
    /// The value found and the allowed range.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for ConfigError {}

impl TransportConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] contains the first field outside its range, its value and the range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let least = u64::try_from(MIN_INITIAL_DATAGRAM).expect("1200 fits");
        check("mtu", u64::from(self.mtu), least, u64::from(MAX_MTU))?;
        if self.mtu_discovery {
            let most = u64::from(MAX_MTU);
            check(
                "mtu_max",
                u64::from(self.mtu_max),
                u64::from(self.mtu),
                most,
            )?;
        }
        check("max_bidi_streams", self.max_bidi_streams, 0, MAX_STREAMS)?;
        check("max_uni_streams", self.max_uni_streams, 0, MAX_STREAMS)?;
        check(
            "stream_receive_window",
            self.stream_receive_window,
            1,
            MAX_WINDOW,
        )?;
        check("receive_window", self.receive_window, 1, MAX_WINDOW)?;
        let least = self.stream_receive_window;
        check(
            "stream_receive_window_max",
            self.stream_receive_window_max,
            least,
            MAX_WINDOW,
        )?;
        check(
            "receive_window_max",
            self.receive_window_max,
            self.receive_window,
            MAX_WINDOW,
        )?;
        check("send_buffer_max", self.send_buffer_max, 4096, MAX_WINDOW)?;
        check(
            "unsent_limit",
            self.unsent_limit,
            4096,
            self.send_buffer_max,
        )?;
        self.validate_datagrams()?;
        check("key_update_after", self.key_update_after, 1, 1 << 22)?;
        let delay = u64::try_from(self.max_ack_delay.as_millis()).unwrap_or(u64::MAX);
        check("max_ack_delay (ms)", delay, 0, (1 << 14) - 1)?;
        if let Some(idle) = self.max_idle_timeout {
            let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
            check("max_idle_timeout (ms)", idle, 1, MAX_WINDOW)?;
        }
        let handshake = micros(self.handshake_timeout);
        check("handshake_timeout (us)", handshake, 1, u64::MAX)?;
        if let Some(interval) = self.keep_alive_interval {
            check("keep_alive_interval (us)", micros(interval), 1, u64::MAX)?;
        }
        if let Some(ptos) = self.max_ptos {
            let least = u64::from(SILENT_AFTER);
            check("max_ptos", u64::from(ptos), least, MAX_PTOS)?;
        }
        if let Some(bytes) = self.crypto_buffer {
            check("crypto_buffer", bytes, 4096, MAX_CRYPTO_BUFFER)?;
        }
        self.validate_recovery()?;
        self.validate_requests()?;
        check(
            "max_gaps_per_stream",
            self.max_gaps_per_stream as u64,
            1,
            1 << 20,
        )?;
        check("max_gaps", self.max_gaps as u64, 1, 1 << 20)
    }

    fn validate_recovery(&self) -> Result<(), ConfigError> {
        check("initial_rtt (us)", micros(self.initial_rtt), 1, 60_000_000)?;
        let packets = u64::from(self.packet_threshold);
        let most = MAX_PACKET_THRESHOLD;
        check("packet_threshold", packets, PACKET_THRESHOLD, most)?;
        let threshold = self.time_threshold;
        if threshold.is_nan() || threshold <= 1.0 || threshold > MAX_TIME_THRESHOLD {
            return Err(ConfigError {
                field: "time_threshold",
                message: format!("is {threshold}, allowed is above 1 to {MAX_TIME_THRESHOLD}"),
            });
        }
        let timeouts = u64::from(self.persistent_congestion_threshold);
        check("persistent_congestion_threshold", timeouts, 1, 100)?;
        match self.initial_window {
            Some(window) => check("initial_window", window, 2 * 1200, 1 << 30),
            None => Ok(()),
        }
    }

    fn validate_requests(&self) -> Result<(), ConfigError> {
        let most = u64::from(MAX_OPEN_PATHS);
        check("max_paths", u64::from(self.max_paths), 1, most)?;
        let most = u64::from(MAX_CANDIDATES);
        check("max_candidates", u64::from(self.max_candidates), 0, most)?;
        if self.max_candidates > 0 && self.max_paths < 2 {
            return Err(ConfigError {
                field: "max_candidates",
                message: "needs several paths: set max_paths to 2 or more".to_owned(),
            });
        }
        let interval = micros(self.mtu_raise_interval);
        check("mtu_raise_interval (us)", interval, 1000, u64::MAX)?;
        let resolution = u64::from(self.mtu_resolution);
        check("mtu_resolution", resolution, 1, u64::from(u16::MAX))?;
        let delay = self.requested_max_ack_delay.map_or(0, micros);
        let most = 1000 * ((1 << 14) - 1);
        check("requested_max_ack_delay (us)", delay, 0, most)?;
        for (field, count) in [
            ("ack_threshold", self.ack_threshold),
            ("ack_reordering_threshold", self.ack_reordering_threshold),
        ] {
            check(field, count.unwrap_or(0), 0, MAX_VARINT)?;
        }
        Ok(())
    }

    fn validate_datagrams(&self) -> Result<(), ConfigError> {
        let most = MAX_DATAGRAM_BUFFER as u64;
        if let Some(bytes) = self.datagram_receive_buffer_size {
            // An empty datagram takes two bytes of the announced limit.
            check("datagram_receive_buffer_size", bytes as u64, 2, most)?;
        }
        for (field, count) in [
            ("datagram_receive_queue", self.datagram_receive_queue),
            ("datagram_send_queue", self.datagram_send_queue),
        ] {
            check(field, count as u64, 1, MAX_DATAGRAM_QUEUE)?;
        }
        if let Some(delay) = self.datagram_send_delay {
            let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            check("datagram_send_delay (ms)", delay, 1, MAX_DATAGRAM_DELAY_MS)?;
        }
        let bytes = self.datagram_send_buffer_size as u64;
        check("datagram_send_buffer_size", bytes, 0, most)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Checks that a value is in its range.
pub(in crate::config) fn check(
    field: &'static str,
    seen: u64,
    least: u64,
    most: u64,
) -> Result<(), ConfigError> {
    if (least..=most).contains(&seen) {
        return Ok(());
    }
    Err(ConfigError {
        field,
        message: format!("is {seen}, allowed is {least} to {most}"),
    })
}

/// Maximum of bytes in a queue of datagrams: the default maximum of the windows.
const MAX_DATAGRAM_BUFFER: usize = 128 * 1024 * 1024;
/// Largest target for the delay of datagrams in milliseconds.
const MAX_DATAGRAM_DELAY_MS: u64 = 10_000;
/// Maximum of datagrams in a queue.
const MAX_DATAGRAM_QUEUE: u64 = 1 << 20;
/// Largest limit of probe timeouts in a row. The last one is months long.
const MAX_PTOS: u64 = 32;
const MAX_STREAMS: u64 = 1 << 60;
/// Largest buffer of handshake data (limit K570): chains of certificates are a thousand times smaller.
const MAX_CRYPTO_BUFFER: u64 = 16 << 20;
/// Largest time threshold in round trips. Probe timeouts act earlier than such a threshold.
const MAX_TIME_THRESHOLD: f32 = 8.0;
const MAX_WINDOW: u64 = MAX_VARINT;
/// Largest integer that a frame carries (RFC 9000 §16).
const MAX_VARINT: u64 = (1 << 62) - 1;
