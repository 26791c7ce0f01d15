//! Encodes records as qlog events.

mod acked;
mod addresses;
mod connectivity;
mod events;
mod frames;
mod http3;
mod multipath;
mod qpack;
mod recovery;
mod transport;
mod tuples;

use courser_base::Time;
use courser_telemetry::{MetricsUpdated, Record, SendLimit};

use crate::outcome::Dropped;
use crate::schema::Dialect;

use self::events::Events;
pub(crate) use self::events::RECORD_SEPARATOR;
use self::tuples::Tuples;

/// Encodes records as JSON-SEQ events, and remembers values that need not be repeated.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub(crate) dialect: Dialect,
    metrics: Option<MetricsUpdated>,
    limit: Option<SendLimit>,
    /// Updates of the 1-RTT keys so far: qlog counts them, while the wire carries a single bit.
    key_phase: u64,
    tuples: Tuples,
}

impl Encoder {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            ..Self::default()
        }
    }

    /// Appends an event that marks a gap. Values written before may be lost in the gap, so that
    /// the next records repeat them.
    pub(crate) fn gap(&mut self, out: &mut Vec<u8>, now: Time, dropped: Dropped) {
        self.metrics = None;
        self.limit = None;
        let mut events = Events { out, now };
        events.event("courser:records_dropped", |data| {
            data.uint("records", dropped.records);
            data.uint("bytes", dropped.bytes);
        });
    }

    /// Appends the events of a record: usually one, sometimes none or two.
    pub(crate) fn encode(&mut self, out: &mut Vec<u8>, now: Time, record: &Record) {
        let mut events = Events { out, now };
        let dialect = self.dialect;
        match record {
            Record::PacketSent(it) => transport::packet_sent(&mut events, it, dialect),
            Record::PacketReceived(it) => transport::packet_received(&mut events, it, dialect),
            Record::PacketDropped(it) => transport::packet_dropped(&mut events, it, dialect),
            Record::PacketBuffered(it) => transport::packet_buffered(&mut events, it),
            Record::VersionChosen(it) => transport::version_information(&mut events, it),
            Record::ProtocolChosen(it) => transport::alpn_information(&mut events, it),
            Record::TransportParametersSet(it) => transport::parameters_set(&mut events, it),
            Record::KeyInstalled(it) => transport::key_installed(&mut events, it),
            Record::KeyDiscarded(it) => transport::key_discarded(&mut events, it, dialect),
            Record::KeyUpdated(it) => {
                self.key_phase += 1;
                transport::key_updated(&mut events, it, self.key_phase);
            }
            Record::ConnectionStarted(it) => {
                connectivity::started(&mut events, it);
                self.tuples.on_started(&mut events, it.path);
            }
            Record::ConnectionClosed(it) => connectivity::closed(&mut events, it, dialect),
            Record::ConnectionIdUpdated(it) => connectivity::id_updated(&mut events, it),
            Record::StateChanged(it) => connectivity::state_updated(&mut events, it, dialect),
            Record::PathUpdated(it) => {
                let tuple = self.tuples.id_of(&mut events, it.path);
                connectivity::path_updated(&mut events, it, &tuple);
                self.tuples.on_updated(&mut events, it);
            }
            Record::PathSilenceUpdated(it) => connectivity::path_silence_updated(&mut events, it),
            Record::MtuUpdated(it) => connectivity::mtu_updated(&mut events, it),
            Record::PathFeatureUpdated(it) => {
                connectivity::path_feature_updated(&mut events, it);
            }
            Record::RecoveryParametersSet(it) => recovery::parameters_set(&mut events, it),
            Record::MetricsUpdated(it) => {
                let before = self.metrics.replace(*it);
                recovery::metrics_updated(&mut events, it, before.as_ref());
            }
            Record::CongestionStateUpdated(it) => {
                recovery::congestion_state_updated(&mut events, it, dialect);
            }
            Record::PacketLost(it) => recovery::packet_lost(&mut events, it),
            Record::SpuriousLoss(it) => recovery::spurious_loss(&mut events, it),
            Record::TimerExpired(it) => recovery::timer_expired(&mut events, it),
            Record::SendLimited(it) if self.limit.replace(it.by) != Some(it.by) => {
                recovery::blocked_updated(&mut events, it.by);
            }
            Record::EcnStateUpdated(it) => recovery::ecn_state_updated(&mut events, it),
            Record::Http3(it) => http3::record(&mut events, it, dialect),
            Record::Qpack(it) => qpack::record(&mut events, it),
            Record::RecordsMissed(it) => events.event("courser:records_dropped", |data| {
                data.uint("records", it.count);
            }),
            // A kind of record newer than this encoder: no event is better than a wrong one.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
