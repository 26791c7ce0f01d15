//! The agreement of both ends of a connection, by SETTINGS and transport parameters.

use std::fmt;

use courser_base::Side;
use courser_http3::{Code, Error, Scope};

use crate::config::{Config, H3_DATAGRAM_OF_DRAFTS};
use crate::dialect::Dialect;
use crate::limits::{
    INITIAL_MAX_DATA, INITIAL_MAX_STREAMS_BIDI, INITIAL_MAX_STREAMS_UNI, Limits, value_of,
};

/// The announcements of the peer, known once its SETTINGS have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Peer<'a> {
    /// The settings that [`courser_http3::Connection::peer_other_settings`] returns.
    pub settings: &'a [(u64, u64)],
    /// `SETTINGS_H3_DATAGRAM` (RFC 9297 §2.1.1).
    pub h3_datagram: bool,
    /// `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 9220), which only servers send with a meaning.
    pub extended_connect: bool,
    /// The transport parameter `max_datagram_frame_size` (RFC 9221 §3), 0 if it is absent.
    pub max_datagram_frame_size: u64,
    /// The transport parameter `reset_stream_at`, under its present or its older number.
    pub reset_stream_at: bool,
}

/// The dialect of a connection and the rules that follow from it. They do not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// The newest dialect that both ends have announced and whose requirements both meet.
    pub dialect: Dialect,
    /// True if the capsules and limits of flow control are in force (draft-ietf-webtrans-http3-16 §5.1).
    pub flow_control: bool,
    /// The limits of the peer in each session, without an effect while flow control is off.
    pub local_limits: Limits,
    /// The limits of this end in each session, without an effect while flow control is off.
    pub peer_limits: Limits,
    /// The largest window of a session in bytes.
    pub max_window: u64,
    /// The number of sessions at the same time.
    pub max_sessions: u64,
    /// True if the peer accepts RESET_STREAM_AT, so that a reset can deliver the header of its stream.
    pub reliable_reset: bool,
}

/// The reason why a connection has no sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsupported {
    /// The peer has announced no dialect that this end speaks.
    NotAnnounced,
    /// The peer has announced a dialect, and lacks a requirement.
    Missing(Requirement),
}

/// A requirement of WebTransport (draft-ietf-webtrans-http3-16 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requirement {
    /// The setting of servers that allows extended CONNECT (RFC 9220).
    ExtendedConnect,
    /// The setting of HTTP Datagrams (RFC 9297).
    HttpDatagrams,
    /// The transport parameter `max_datagram_frame_size` (RFC 9221).
    QuicDatagrams,
    /// The transport parameter `reset_stream_at`.
    ReliableReset,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnnounced => f.write_str("the peer has not announced WebTransport"),
            Self::Missing(requirement) => write!(f, "the peer has not announced {requirement}"),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExtendedConnect => "extended CONNECT (SETTINGS_ENABLE_CONNECT_PROTOCOL)",
            Self::HttpDatagrams => "HTTP datagrams (SETTINGS_H3_DATAGRAM)",
            Self::QuicDatagrams => "QUIC datagrams (max_datagram_frame_size)",
            Self::ReliableReset => "RESET_STREAM_AT (reset_stream_at)",
        })
    }
}

impl Agreement {
    /// Chooses the dialect of a connection.
    ///
    /// A dialect whose setting of HTTP Datagrams is missing is passed over in favour of an older one. A client does
    /// the same if the server does not accept RESET_STREAM_AT; a server of the newest dialect refuses the sessions
    /// of such a client instead, as the draft requires.
    ///
    /// # Errors
    ///
    /// Returns a connection error `H3_SETTINGS_ERROR` on a client whose server sends a `SETTINGS_WT_ENABLED` above
    /// 1.
    pub(crate) fn negotiate(
        side: Side,
        config: &Config,
        peer: &Peer<'_>,
    ) -> Result<Result<Self, Unsupported>, Error> {
        if side.is_client() && value_of(peer.settings, Dialect::Draft16.setting()) > 1 {
            return Err(settings_error("SETTINGS_WT_ENABLED above 1"));
        }
        let announced = |dialect: &Dialect| value_of(peer.settings, dialect.setting()) > 0;
        let mut reason = Unsupported::NotAnnounced;
        for dialect in config.dialects.iter().rev().filter(announced) {
            let Some(missing) = missing(side, dialect, peer) else {
                return Ok(Ok(Self::of(side, config, peer, dialect)));
            };
            if reason == Unsupported::NotAnnounced {
                reason = Unsupported::Missing(missing);
            }
            let is_passed_over = match missing {
                Requirement::HttpDatagrams => true,
                Requirement::ReliableReset => side.is_client(),
                Requirement::ExtendedConnect | Requirement::QuicDatagrams => false,
            };
            if !is_passed_over {
                break;
            }
        }
        Ok(Err(reason))
    }

    fn of(side: Side, config: &Config, peer: &Peer<'_>, dialect: Dialect) -> Self {
        let peer_limits = Limits::in_settings(peer.settings);
        let local_sessions = config.announced(side, dialect);
        let peer_sessions = value_of(peer.settings, dialect.setting());
        let wants = |limits: &Limits, sessions| match dialect {
            Dialect::Draft02 => false,
            Dialect::Draft07 | Dialect::Draft16 => limits.is_any(),
            Dialect::Draft14 => limits.is_any() || sessions > 1,
        };
        let flow_control =
            wants(&config.limits, local_sessions) && wants(&peer_limits, peer_sessions);
        let own = config.max_sessions.max(1);
        let max_sessions = match (dialect, side) {
            // Drafts before 13 allow several sessions without flow control. In draft 02 a server announces no
            // number, and some servers serve one session only.
            (Dialect::Draft02, Side::Client) => 1,
            (Dialect::Draft02 | Dialect::Draft07, Side::Server) => own,
            (Dialect::Draft07, Side::Client) => own.min(peer_sessions),
            (Dialect::Draft14 | Dialect::Draft16, _) if !flow_control => 1,
            (Dialect::Draft14, Side::Client) => own.min(peer_sessions),
            (Dialect::Draft14 | Dialect::Draft16, _) => own,
        };
        Self {
            dialect,
            flow_control,
            local_limits: config.limits,
            peer_limits,
            max_window: config.max_window.max(config.limits.max_data),
            max_sessions,
            reliable_reset: peer.reset_stream_at,
        }
    }
}

/// Returns true if a limit of WebTransport in `now` is below its value in `earlier`: settings of the connection of
/// a session ticket. A server that accepts early data must not reduce them, and
/// [`check_remembered`] is the check of the client (draft-ietf-webtrans-http3-16 §3.2).
pub fn is_reduced(earlier: &[(u64, u64)], now: &[(u64, u64)]) -> bool {
    REMEMBERED
        .iter()
        .any(|&id| value_of(now, id) < value_of(earlier, id))
}

/// Compares the settings of a resumed connection with those that the client has remembered.
///
/// # Errors
///
/// Returns a connection error `H3_SETTINGS_ERROR` if the server has reduced a limit of WebTransport
/// (draft-ietf-webtrans-http3-16 §3.2).
pub fn check_remembered(earlier: &[(u64, u64)], now: &[(u64, u64)]) -> Result<(), Error> {
    match is_reduced(earlier, now) {
        true => Err(settings_error(
            "a limit of WebTransport below the remembered one",
        )),
        false => Ok(()),
    }
}

/// The settings that a client remembers with a session ticket, and that a server does not reduce while it accepts
/// early data: the limits of sessions and the numbers of sessions.
pub const REMEMBERED: [u64; 5] = [
    INITIAL_MAX_DATA,
    INITIAL_MAX_STREAMS_UNI,
    INITIAL_MAX_STREAMS_BIDI,
    Dialect::Draft14.setting(),
    Dialect::Draft07.setting(),
];

/// Returns the first requirement of a dialect that the peer lacks.
fn missing(side: Side, dialect: Dialect, peer: &Peer<'_>) -> Option<Requirement> {
    if side.is_client() && !peer.extended_connect {
        return Some(Requirement::ExtendedConnect);
    }
    let has_datagrams = peer.h3_datagram
        || !dialect.requires_registered_datagrams() && has_datagrams_of_drafts(peer.settings);
    if !has_datagrams {
        return Some(Requirement::HttpDatagrams);
    }
    if peer.max_datagram_frame_size == 0 {
        return Some(Requirement::QuicDatagrams);
    }
    if dialect.requires_reliable_reset() && !peer.reset_stream_at {
        return Some(Requirement::ReliableReset);
    }
    None
}

fn has_datagrams_of_drafts(settings: &[(u64, u64)]) -> bool {
    value_of(settings, H3_DATAGRAM_OF_DRAFTS) == 1
}

const fn settings_error(reason: &'static str) -> Error {
    Error {
        code: Code::SETTINGS_ERROR,
        scope: Scope::Connection,
        reason,
    }
}

#[cfg(test)]
mod tests;
