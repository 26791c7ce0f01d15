//! Spans and events for the crate `tracing`.

mod connection;
mod frames;
mod path;
mod recovery;
mod stream;
mod targets;

use courser_base::{Side, Time};
use courser_telemetry::{Detail, Record, Sink, SinkFactory};
use courser_wire::ConnectionId;
use tracing::{Level, enabled, span_enabled};

use self::connection::ConnectionSpan;
use self::path::PathSpans;
use self::stream::StreamSpans;
use self::targets::{CONNECTION, PACKET, PATH, RECOVERY, STREAM};

/// Opens a span for each connection, each path and each stream, and emits events in them.
///
/// | target | span | events |
/// |---|---|---|
/// | `courser::connection` | `connection` (info): `id`, `side`, `peer`, `version`, `alpn` | info: established, closed with the cause; debug: parameters, keys, IDs |
/// | `courser::path` | `path` (debug): `peer`, `local` | debug: validation, migration, datagram size, ECN |
/// | `courser::stream` | `stream` (debug): `id`, `sent`, `received` in bytes | debug: finished, reset, stopped |
/// | `courser::recovery` | | debug: losses, timers, states of the controller; trace: round-trip times and windows, limits on sending |
/// | `courser::packet` | | debug: dropped packets; trace: sent and received packets with their frames |
///
/// `id` is the Destination Connection ID of the client's first packet, which is the same at both ends and in
/// qlog traces. The span of a connection is a child of the span in which it is started or accepted.
///
/// **Cost.** Levels are queried once, when a connection starts. If none of these targets is enabled, the
/// connection has no sink and nothing is computed. At the level info, nothing is computed for packets. Streams
/// (debug) and packets (trace) require the frames of each packet to be decoded for the record.
///
/// **Do not block.** Subscribers run under the lock of the endpoint, so a subscriber that writes to a disk or a
/// terminal delays all its connections. Use a queue, for example that of `tracing_appender::non_blocking`.
///
/// ```
/// use std::sync::Arc;
///
/// use courser_observe::TracingSinks;
/// # use courser_quic::{Identity, ServerConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let identity = Identity::dev()?;
/// let config = ServerConfig::with_identity(&identity)?
///     .alpn(["greeting"])
///     .sinks(Arc::new(TracingSinks::new()));
/// # let _ = config;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingSinks(());

impl TracingSinks {
    /// Creates a factory. Its sinks emit through the subscriber of the thread that runs the endpoint, usually
    /// the global one.
    pub const fn new() -> Self {
        Self(())
    }
}

impl SinkFactory for TracingSinks {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let detail = detail()?;
        let connection = ConnectionSpan::new(original_destination, side);
        Some(Box::new(Spans {
            detail,
            streams: StreamSpans::new(side),
            paths: PathSpans::default(),
            connection,
        }))
    }
}

/// Returns the detail that the enabled levels require, or `None` if no event is enabled.
fn detail() -> Option<Detail> {
    if enabled!(target: PACKET, Level::TRACE) || span_enabled!(target: STREAM, Level::DEBUG) {
        return Some(Detail::Packets);
    }
    if enabled!(target: RECOVERY, Level::TRACE) {
        return Some(Detail::Metrics);
    }
    let is_any = enabled!(target: CONNECTION, Level::INFO)
        || enabled!(target: PATH, Level::DEBUG)
        || enabled!(target: RECOVERY, Level::DEBUG)
        || enabled!(target: PACKET, Level::DEBUG);
    is_any.then_some(Detail::Events)
}

/// The spans of one connection. The order of the fields is that in which spans close.
#[derive(Debug)]
struct Spans {
    detail: Detail,
    streams: StreamSpans,
    paths: PathSpans,
    connection: ConnectionSpan,
}

impl Sink for Spans {
    fn record(&mut self, now: Time, record: &Record) {
        let span = self.connection.span();
        match record {
            Record::PathUpdated(_)
            | Record::PathSilenceUpdated(_)
            | Record::MtuUpdated(_)
            | Record::PathFeatureUpdated(_)
            | Record::EcnStateUpdated(_) => {
                self.paths.record(span, record);
            }
            Record::PacketSent(packet) => {
                frames::sent(span, packet);
                self.streams.record(span, &packet.frames, true);
            }
            Record::PacketReceived(packet) => {
                frames::received(span, packet);
                self.streams.record(span, &packet.frames, false);
            }
            Record::PacketDropped(packet) => frames::dropped(span, packet),
            Record::PacketBuffered(packet) => frames::buffered(span, packet),
            Record::RecoveryParametersSet(_)
            | Record::MetricsUpdated(_)
            | Record::CongestionStateUpdated(_)
            | Record::PacketLost(_)
            | Record::SpuriousLoss(_)
            | Record::TimerExpired(_)
            | Record::SendLimited(_) => recovery::record(self.paths.active_or(span), record),
            Record::ConnectionStarted(started) => {
                self.connection.on_start(now, started);
                self.paths.begin(self.connection.span(), started.path);
            }
            _ => self.connection.record(now, record),
        }
    }

    fn detail(&self) -> Detail {
        self.detail
    }
}
