//! The settings and streams of WebTransport in the configuration of HTTP/3.

use courser_base::Side;
use courser_http3_tokio::{self as h3, ClaimError};
use courser_webtransport::{Config, StreamHeader, code};

use crate::monitor::Monitor;

/// Announces WebTransport in the settings of HTTP/3, in all dialects of `config`, and claims its streams.
///
/// It turns on HTTP Datagrams and, on a server, extended CONNECT, and lets the peer open 1024 streams in each direction
/// (limit K593), because browsers fail to open a stream instead of waiting.
///
/// The [`Monitor`] counts the sessions of all connections that get this configuration.
///
/// # Errors
/// Returns an error if other extensions of `http3` claim the same numbers, or are too many.
pub fn enable(http3: &mut h3::Config, side: Side, config: Config) -> Result<Monitor, ClaimError> {
    let monitor = Monitor::new(config.max_all_sessions);
    let mut group = h3::Extensions::new().named(NAME);
    for (id, value) in config.settings(side) {
        group = group.setting(id, value)?;
    }
    for dialect in config.dialects.iter() {
        group = group.announced_by(dialect.setting());
    }
    let group = group
        .unidirectional_stream(StreamHeader::UNIDIRECTIONAL)?
        .bidirectional_stream(StreamHeader::BIDIRECTIONAL)?
        .by_session(h3::SessionCodes {
            unknown: code::BUFFERED_STREAM_REJECTED,
            over: code::SESSION_GONE,
        })
        .grant_streams(STREAMS, STREAMS)
        .with_value(Enabled {
            config,
            monitor: monitor.clone(),
        });
    http3.extensions = std::mem::take(&mut http3.extensions).and(group)?;
    http3.datagrams = true;
    if side.is_server() {
        http3.extended_connect = true;
    }
    Ok(monitor)
}

/// What all connections of a configuration share.
#[derive(Debug)]
pub(crate) struct Enabled {
    pub(crate) config: Config,
    pub(crate) monitor: Monitor,
}

/// The name of the group of extensions.
pub(crate) const NAME: &str = "webtransport";
/// Streams in each direction that the peer may have open on the connection (limit K593).
const STREAMS: u64 = 1024;
