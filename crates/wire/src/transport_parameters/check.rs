//! Checks of transport parameters: ranges, and rules for each end. RFC 9000 §7.4, §18.2.

use courser_base::Side;

use super::{MIN_ACTIVE_CONNECTION_ID_LIMIT, ParameterError, TransportParameters, id};
use crate::connection_id::ConnectionId;
use crate::stream_id::MAX_STREAMS;

/// Checks all rules that do not depend on the state of the connection.
pub(super) fn check(parameters: &TransportParameters, sent_by: Side) -> Result<(), ParameterError> {
    check_ranges(parameters)?;
    match sent_by {
        Side::Client => check_client(parameters),
        Side::Server => check_server(parameters),
    }
}

fn check_ranges(parameters: &TransportParameters) -> Result<(), ParameterError> {
    let rules = [
        (
            id::MAX_UDP_PAYLOAD_SIZE,
            parameters.max_udp_payload_size >= MIN_MAX_UDP_PAYLOAD_SIZE,
            "is below 1200",
        ),
        (
            id::INITIAL_MAX_STREAMS_BIDI,
            parameters.initial_max_streams_bidi <= MAX_STREAMS,
            "is above 2^60",
        ),
        (
            id::INITIAL_MAX_STREAMS_UNI,
            parameters.initial_max_streams_uni <= MAX_STREAMS,
            "is above 2^60",
        ),
        (
            id::ACK_DELAY_EXPONENT,
            parameters.ack_delay_exponent <= MAX_ACK_DELAY_EXPONENT,
            "is above 20",
        ),
        (
            id::MAX_ACK_DELAY,
            parameters.max_ack_delay < MAX_ACK_DELAY_END_MS,
            "is not below 2^14",
        ),
        (
            id::ACTIVE_CONNECTION_ID_LIMIT,
            parameters.active_connection_id_limit >= MIN_ACTIVE_CONNECTION_ID_LIMIT,
            "is below 2",
        ),
        (
            id::MIN_ACK_DELAY,
            parameters
                .min_ack_delay
                .is_none_or(|least| least <= parameters.max_ack_delay.saturating_mul(1000)),
            "is above max_ack_delay",
        ),
    ];
    all_hold(&rules)
}

/// Checks that the four parameters that only servers may send are absent, and that the client
/// supports the version that it chose (RFC 9368 §4).
fn check_client(parameters: &TransportParameters) -> Result<(), ParameterError> {
    let reason = "was sent by a client";
    let rules = [
        (
            id::ORIGINAL_DESTINATION_CONNECTION_ID,
            parameters.original_destination_connection_id.is_none(),
            reason,
        ),
        (
            id::STATELESS_RESET_TOKEN,
            parameters.stateless_reset_token.is_none(),
            reason,
        ),
        (
            id::PREFERRED_ADDRESS,
            parameters.preferred_address.is_none(),
            reason,
        ),
        (
            id::RETRY_SOURCE_CONNECTION_ID,
            parameters.retry_source_connection_id.is_none(),
            reason,
        ),
        (
            id::VERSION_INFORMATION,
            parameters
                .version_information
                .is_none_or(|versions| versions.is_chosen_available()),
            "lacks the chosen version among the available ones",
        ),
    ];
    all_hold(&rules)
}

/// Checks that a server without connection IDs offers no preferred address. It could not
/// distinguish a client that migrates there from a new one.
fn check_server(parameters: &TransportParameters) -> Result<(), ParameterError> {
    let uses_no_ids = parameters
        .initial_source_connection_id
        .as_ref()
        .is_some_and(ConnectionId::is_empty);
    let is_allowed = parameters.preferred_address.is_none() || !uses_no_ids;
    all_hold(&[(
        id::PREFERRED_ADDRESS,
        is_allowed,
        "was sent by a server with an empty connection id",
    )])
}

fn all_hold(rules: &[(u64, bool, &'static str)]) -> Result<(), ParameterError> {
    match rules.iter().find(|(_, holds, _)| !holds) {
        None => Ok(()),
        Some(&(parameter, _, reason)) => Err(ParameterError { parameter, reason }),
    }
}

/// Every path must carry datagrams of this size. RFC 9000 §14.
const MIN_MAX_UDP_PAYLOAD_SIZE: u64 = 1200;
const MAX_ACK_DELAY_EXPONENT: u64 = 20;
const MAX_ACK_DELAY_END_MS: u64 = 1 << 14;
