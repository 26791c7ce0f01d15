//! The early data of a handshake: offered, accepted or rejected. RFC 9001 §4.6, RFC 9000 §7.4.1.

use courser_crypto::Secret;
use courser_wire::TransportErrorCode;
use courser_wire::transport_parameters::TransportParameters;

use crate::error::TransportError;

/// The state of the early data (0-RTT) of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EarlyData {
    /// The connection has no early data. On a client, no ticket permits it or it is off; a server
    /// was not offered any, or has refused it.
    #[default]
    None,
    /// The client may send early data; the server has not accepted or rejected it yet.
    Offered,
    /// The server accepts the early data.
    Accepted,
    /// The server has rejected the early data. All streams that the client opened before are removed.
    Rejected,
}

/// The early data of a handshake.
#[derive(Debug, Default)]
pub(super) struct Early {
    state: EarlyData,
    /// True once TLS was asked for the secret.
    was_asked: bool,
    /// True once a client has sent its first ClientHello.
    has_sent_hello: bool,
    /// The limits that a client assumes until the server's are known.
    remembered: Option<Box<TransportParameters>>,
    /// Bytes of 0-RTT packets that a server still accepts.
    budget: u64,
}

impl Early {
    /// Creates the state of a server that accepts `budget` bytes of 0-RTT packets.
    pub(super) fn of_server(budget: u64) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    pub(super) fn state(&self) -> EarlyData {
        self.state
    }

    /// Returns true once TLS was asked for the secret.
    pub(super) fn was_asked(&self) -> bool {
        self.was_asked
    }

    /// Records that TLS was asked and has no secret.
    pub(super) fn on_none(&mut self) {
        self.was_asked = true;
    }

    /// Records that this server accepts early data.
    pub(super) fn on_accepted(&mut self) {
        self.was_asked = true;
        self.state = EarlyData::Accepted;
    }

    /// Records that this client sends early data, within the remembered limits of the server.
    pub(super) fn on_offered(&mut self, remembered: Box<TransportParameters>) {
        self.was_asked = true;
        self.state = EarlyData::Offered;
        self.remembered = Some(remembered);
    }

    /// Records that a client sends a ClientHello. Returns true for the second one after an offer: it follows a
    /// HelloRetryRequest, which rejects the early data (RFC 8446 §4.1.2).
    pub(super) fn on_client_hello(&mut self) -> bool {
        std::mem::replace(&mut self.has_sent_hello, true) && self.state == EarlyData::Offered
    }

    /// Decides the state when the server's parameters are known. Returns it if early data was offered.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when the server accepts and lowers a limit (RFC 9000 §7.4.1, RFC 9221 §3) or
    /// no longer accepts RESET_STREAM_AT (draft-ietf-quic-reliable-stream-reset-10 §3), attack A62.
    /// TRANSPORT_PARAMETER_ERROR when it accepts and changes address_discovery
    /// (draft-ietf-quic-address-discovery-00 §3).
    pub(super) fn settle(
        &mut self,
        is_accepted: bool,
        parameters: &TransportParameters,
    ) -> Result<Option<EarlyData>, TransportError> {
        let Some(remembered) = self.remembered.take() else {
            return Ok(None);
        };
        self.state = match is_accepted {
            true => EarlyData::Accepted,
            false => EarlyData::Rejected,
        };
        if is_accepted && let Some(name) = lowered(&remembered, parameters) {
            let reason = format!("{name} is lower than in the session that was resumed");
            return Err(TransportError::protocol_violation(reason));
        }
        if is_accepted && remembered.address_discovery != parameters.address_discovery {
            let reason = "address_discovery differs from the session that was resumed";
            let code = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
            return Err(TransportError::new(code, reason));
        }
        Ok(Some(self.state))
    }

    /// Subtracts `len` bytes for a 0-RTT packet. Returns false when the budget is used up (limit K153).
    pub(super) fn take_budget(&mut self, len: usize) -> bool {
        let left = self.budget.checked_sub(len as u64);
        self.budget = left.unwrap_or(0);
        left.is_some()
    }
}

/// Returns the limits of a server that a client may assume in early data. Parameters that
/// apply only to the past connection have their defaults (RFC 9000 §7.4.1).
pub(super) fn remember(bytes: &[u8]) -> Option<Box<TransportParameters>> {
    let all = TransportParameters::decode(bytes, courser_base::Side::Server).ok()?;
    Some(Box::new(TransportParameters {
        max_idle_timeout: all.max_idle_timeout,
        max_udp_payload_size: all.max_udp_payload_size,
        initial_max_data: all.initial_max_data,
        initial_max_stream_data_bidi_local: all.initial_max_stream_data_bidi_local,
        initial_max_stream_data_bidi_remote: all.initial_max_stream_data_bidi_remote,
        initial_max_stream_data_uni: all.initial_max_stream_data_uni,
        initial_max_streams_bidi: all.initial_max_streams_bidi,
        initial_max_streams_uni: all.initial_max_streams_uni,
        disable_active_migration: all.disable_active_migration,
        active_connection_id_limit: all.active_connection_id_limit,
        max_datagram_frame_size: all.max_datagram_frame_size,
        reset_stream_at: all.reset_stream_at,
        address_discovery: all.address_discovery,
        ..TransportParameters::default()
    }))
}

/// Returns the name of the first limit that is lower than before.
fn lowered(then: &TransportParameters, now: &TransportParameters) -> Option<&'static str> {
    let limits = |it: &TransportParameters| {
        [
            ("active_connection_id_limit", it.active_connection_id_limit),
            ("initial_max_data", it.initial_max_data),
            (
                "initial_max_stream_data_bidi_local",
                it.initial_max_stream_data_bidi_local,
            ),
            (
                "initial_max_stream_data_bidi_remote",
                it.initial_max_stream_data_bidi_remote,
            ),
            (
                "initial_max_stream_data_uni",
                it.initial_max_stream_data_uni,
            ),
            ("initial_max_streams_bidi", it.initial_max_streams_bidi),
            ("initial_max_streams_uni", it.initial_max_streams_uni),
            ("max_datagram_frame_size", it.max_datagram_frame_size),
            ("reset_stream_at", u64::from(it.reset_stream_at)),
        ]
    };
    let pairs = limits(then).into_iter().zip(limits(now));
    pairs
        .into_iter()
        .find(|((_, then), (_, now))| now < then)
        .map(|((name, _), _)| name)
}

/// The secret of 0-RTT packets, for the parts that send or receive them.
#[derive(Debug)]
pub(crate) struct EarlyKeys {
    pub(crate) secret: Secret,
    /// The limits within which a client may send. `None` on a server.
    pub(crate) remembered: Option<Box<TransportParameters>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut TransportParameters);

    const LIMITS: [(&str, Change); 9] = [
        ("active_connection_id_limit", |it| {
            it.active_connection_id_limit -= 1
        }),
        ("initial_max_data", |it| it.initial_max_data -= 1),
        ("initial_max_stream_data_bidi_local", |it| {
            it.initial_max_stream_data_bidi_local -= 1;
        }),
        ("initial_max_stream_data_bidi_remote", |it| {
            it.initial_max_stream_data_bidi_remote -= 1;
        }),
        ("initial_max_stream_data_uni", |it| {
            it.initial_max_stream_data_uni -= 1
        }),
        ("initial_max_streams_bidi", |it| {
            it.initial_max_streams_bidi -= 1
        }),
        ("initial_max_streams_uni", |it| {
            it.initial_max_streams_uni -= 1
        }),
        ("max_datagram_frame_size", |it| {
            it.max_datagram_frame_size -= 1
        }),
        ("reset_stream_at", |it| it.reset_stream_at = false),
    ];

    fn parameters() -> TransportParameters {
        TransportParameters {
            initial_max_data: 10,
            initial_max_stream_data_bidi_local: 10,
            initial_max_stream_data_bidi_remote: 10,
            initial_max_stream_data_uni: 10,
            initial_max_streams_bidi: 10,
            initial_max_streams_uni: 10,
            active_connection_id_limit: 10,
            max_datagram_frame_size: 10,
            reset_stream_at: true,
            ..TransportParameters::default()
        }
    }

    fn offered() -> Early {
        let mut early = Early::default();
        early.on_offered(Box::new(parameters()));
        early
    }

    #[test]
    fn each_limit_that_falls_is_an_error_if_early_data_was_accepted() {
        for (name, lower) in LIMITS {
            let mut fallen = parameters();
            lower(&mut fallen);
            let error = offered().settle(true, &fallen).unwrap_err();
            assert_eq!(error.code.value(), 0x0a, "{name}");
            assert!(error.reason.contains(name), "{name}: {}", error.reason);
            let rejected = offered().settle(false, &fallen);
            assert_eq!(rejected, Ok(Some(EarlyData::Rejected)), "{name}");
        }
        let mut risen = parameters();
        risen.initial_max_data += 1;
        assert_eq!(
            offered().settle(true, &risen),
            Ok(Some(EarlyData::Accepted))
        );
    }

    #[test]
    fn address_discovery_must_stay_as_it_was_remembered() {
        let mut changed = parameters();
        changed.address_discovery = Some(courser_wire::AddressDiscovery::Provides);
        let error = offered().settle(true, &changed).unwrap_err();
        assert_eq!(error.code.value(), 0x08);
        let rejected = offered().settle(false, &changed);
        assert_eq!(rejected, Ok(Some(EarlyData::Rejected)));
        let mut bytes = Vec::new();
        changed.encode(&mut bytes, None);
        let remembered = remember(&bytes).expect("valid");
        assert_eq!(remembered.address_discovery, changed.address_discovery);
    }

    #[test]
    fn without_offer_no_state_is_returned() {
        let mut early = Early::default();
        assert_eq!(early.settle(true, &parameters()), Ok(None));
        assert_eq!(early.state(), EarlyData::None);
    }

    #[test]
    fn second_client_hello_ends_offer() {
        let mut early = offered();
        assert!(!early.on_client_hello());
        assert!(early.on_client_hello());
        let mut none = Early::default();
        assert!(!none.on_client_hello());
        assert!(!none.on_client_hello());
    }

    #[test]
    fn parameters_of_the_past_connection_are_not_remembered() {
        let mut sent = parameters();
        sent.max_ack_delay = 100;
        sent.ack_delay_exponent = 10;
        sent.min_ack_delay = Some(5);
        sent.stateless_reset_token = Some([7; 16]);
        let mut bytes = Vec::new();
        sent.encode(&mut bytes, None);
        assert_eq!(remember(&bytes), Some(Box::new(parameters())));
        assert_eq!(remember(b"not parameters"), None);
    }

    #[test]
    fn used_budget_does_not_return() {
        let mut early = Early::of_server(100);
        assert!(early.take_budget(60));
        assert!(early.take_budget(40), "at the limit");
        assert!(!early.take_budget(1), "one above the limit");
        let mut early = Early::of_server(100);
        assert!(early.take_budget(60));
        assert!(!early.take_budget(41));
        assert!(!early.take_budget(1), "a packet too large ends it");
    }
}
