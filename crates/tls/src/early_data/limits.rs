//! The limits of a server on which clients rely in early data. RFC 9000 §7.4.1, RFC 9221 §3,
//! draft-ietf-quic-reliable-stream-reset-10 §3.

use courser_base::Side;
use courser_wire::TransportParameters;

/// The transport parameters of a server that must not fall while it accepts early data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct EarlyLimits([u64; COUNT]);

impl EarlyLimits {
    /// Returns the limits in the encoded parameters of a server. The limits of parameters that
    /// cannot be decoded are zero: rustls passes such parameters on, and the client refuses them.
    pub(crate) fn of(parameters: &[u8]) -> Self {
        let Ok(parameters) = TransportParameters::decode(parameters, Side::Server) else {
            return Self::default();
        };
        Self([
            parameters.active_connection_id_limit,
            parameters.initial_max_data,
            parameters.initial_max_stream_data_bidi_local,
            parameters.initial_max_stream_data_bidi_remote,
            parameters.initial_max_stream_data_uni,
            parameters.initial_max_streams_bidi,
            parameters.initial_max_streams_uni,
            parameters.max_datagram_frame_size,
            // Clients also rely on the permission to migrate.
            u64::from(!parameters.disable_active_migration),
            u64::from(parameters.reset_stream_at),
        ])
    }

    /// Returns true if no limit is below that of `remembered`.
    pub(crate) fn cover(&self, remembered: &Self) -> bool {
        let pairs = self.0.iter().zip(&remembered.0);
        pairs.into_iter().all(|(now, then)| now >= then)
    }

    /// Returns the bytes that precede those of rustls in a stored session.
    pub(crate) fn encode(&self) -> [u8; LEN] {
        let mut bytes = [FORMAT; LEN];
        for (place, limit) in bytes[1..].chunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&limit.to_be_bytes());
        }
        bytes
    }

    /// Splits the bytes of a stored session into its limits and the bytes of rustls. Returns `None`
    /// for another format.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = bytes.split_at_checked(LEN)?;
        if head[0] != FORMAT {
            return None;
        }
        let mut limits = Self::default();
        for (limit, place) in limits.0.iter_mut().zip(head[1..].chunks_exact(8)) {
            *limit = u64::from_be_bytes(place.try_into().ok()?);
        }
        Some((limits, rest))
    }
}

const COUNT: usize = 10;
const LEN: usize = 1 + 8 * COUNT;

/// The first byte of a stored session: the format of its limits.
const FORMAT: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut TransportParameters);

    const LIMITS: [(&str, Change); COUNT] = [
        ("active_connection_id_limit", |it| {
            it.active_connection_id_limit -= 1;
        }),
        ("initial_max_data", |it| it.initial_max_data -= 1),
        ("initial_max_stream_data_bidi_local", |it| {
            it.initial_max_stream_data_bidi_local -= 1;
        }),
        ("initial_max_stream_data_bidi_remote", |it| {
            it.initial_max_stream_data_bidi_remote -= 1;
        }),
        ("initial_max_stream_data_uni", |it| {
            it.initial_max_stream_data_uni -= 1;
        }),
        ("initial_max_streams_bidi", |it| {
            it.initial_max_streams_bidi -= 1;
        }),
        ("initial_max_streams_uni", |it| {
            it.initial_max_streams_uni -= 1;
        }),
        ("max_datagram_frame_size", |it| {
            it.max_datagram_frame_size -= 1;
        }),
        ("disable_active_migration", |it| {
            it.disable_active_migration = true;
        }),
        ("reset_stream_at", |it| it.reset_stream_at = false),
    ];

    fn limits(change: impl FnOnce(&mut TransportParameters)) -> EarlyLimits {
        let mut parameters = TransportParameters {
            initial_max_data: 11,
            initial_max_stream_data_bidi_local: 12,
            initial_max_stream_data_bidi_remote: 13,
            initial_max_stream_data_uni: 14,
            initial_max_streams_bidi: 15,
            initial_max_streams_uni: 16,
            active_connection_id_limit: 17,
            max_datagram_frame_size: 18,
            reset_stream_at: true,
            ..TransportParameters::default()
        };
        change(&mut parameters);
        let mut bytes = Vec::new();
        parameters.encode(&mut bytes, None);
        EarlyLimits::of(&bytes)
    }

    #[test]
    fn limits_are_decoded_after_encoding() {
        let limits = limits(|_| {});
        let mut bytes = limits.encode().to_vec();
        bytes.extend_from_slice(b"rest");
        assert_eq!(EarlyLimits::decode(&bytes), Some((limits, &b"rest"[..])));
    }

    #[test]
    fn other_formats_and_truncated_sessions_are_refused() {
        let bytes = limits(|_| {}).encode();
        for len in 0..LEN {
            assert_eq!(EarlyLimits::decode(&bytes[..len]), None, "{len}");
        }
        let mut other = bytes;
        for format in [FORMAT - 1, FORMAT + 1] {
            other[0] = format;
            assert_eq!(EarlyLimits::decode(&other), None, "{format}");
        }
    }

    #[test]
    fn a_single_lower_limit_is_detected() {
        let remembered = limits(|_| {});
        assert!(remembered.cover(&remembered));
        for (name, lower) in LIMITS {
            let lower = limits(lower);
            assert!(!lower.cover(&remembered), "{name}");
            assert!(remembered.cover(&lower), "{name} has risen");
        }
    }
}
