//! The decision about a client that begins a connection.

use courser_wire::TransportErrorCode;

use super::fair_shares::Claimant;
use super::tokens::address_token::AddressProof;

/// The decision about a first Initial packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The client may wait to be accepted, with the result of checking its token.
    Wait(AddressProof),
    /// The client gets a Retry, and no state is stored.
    Retry,
    /// The client gets a CONNECTION_CLOSE, and no state is stored.
    Refuse {
        code: TransportErrorCode,
        reason: &'static str,
    },
    /// The client gets no answer.
    Ignore,
    /// The packet does not open, so it begins no connection.
    Drop,
}

impl Verdict {
    /// Refuses a client with CONNECTION_REFUSED.
    pub fn refuse(reason: &'static str) -> Self {
        Self::Refuse {
            code: TransportErrorCode::CONNECTION_REFUSED,
            reason,
        }
    }

    /// Refuses a client because of its source. A client without a token is ignored instead, because its
    /// address may be forged.
    pub fn refuse_source(claimant: Claimant, reason: &'static str) -> Self {
        match claimant.is_validated {
            true => Self::refuse(reason),
            false => Self::Ignore,
        }
    }
}
