//! Parts of tests.

use std::time::Duration;

use courser_base::{Side, Time};
use courser_http3::Protocol;
use http::{Method, Request};

use crate::agreement::{Agreement, Peer};
use crate::config::Config;
use crate::dialect::Dialect;
use crate::limits::Limits;
use crate::session_id::SessionId;

pub(crate) const NOW: Time = Time::from_nanos(1_000_000_000_000);

pub(crate) fn after(millis: u64) -> Time {
    NOW + Duration::from_millis(millis)
}

/// Returns the session of the request with this index.
pub(crate) fn session(index: u64) -> SessionId {
    SessionId::new(4 * index).expect("a session ID")
}

/// Returns a peer that meets all requirements.
pub(crate) const fn peer<'a>(settings: &'a [(u64, u64)]) -> Peer<'a> {
    Peer {
        settings,
        h3_datagram: true,
        extended_connect: true,
        max_datagram_frame_size: 65_535,
        reset_stream_at: true,
    }
}

/// Returns the settings that Chromium and Firefox send: those of draft 02.
pub(crate) fn browser() -> Vec<(u64, u64)> {
    vec![(0xff_d277, 1), (0x2b60_3742, 1)]
}

/// Returns the request of a client of this dialect.
pub(crate) fn request(dialect: Dialect) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = "https://example.org/chat".parse().expect("a URI");
    let protocol = Protocol::new(dialect.token()).expect("a token");
    request.extensions_mut().insert(protocol);
    request
}

/// Returns the agreement of two ends of the newest dialect, each with these limits for the other.
pub(crate) fn agreement(limits: Limits) -> Agreement {
    let config = Config {
        limits,
        ..Config::new()
    };
    let settings = config.settings(Side::Client);
    Agreement::negotiate(Side::Server, &config, &peer(&settings))
        .expect("valid settings")
        .expect("all requirements are met")
}
