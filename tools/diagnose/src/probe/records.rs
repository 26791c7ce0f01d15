//! Collects the telemetry records of a connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use courser::Side;
use courser::telemetry::{EcnState, FrameRecord, Record, Sink, SinkFactory};
use courser_wire::ConnectionId;
use courser_wire::transport_parameters::TransportParameters;

/// The state of one connection, according to its records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    /// The transport parameters of the server.
    pub(crate) parameters: Option<TransportParameters>,
    /// The last state of ECN validation.
    pub(crate) ecn: Option<EcnState>,
    /// Number of PATH_CHALLENGE frames received.
    pub(crate) challenges: u64,
    /// Number of NEW_CONNECTION_ID frames received, each with a spare connection ID.
    pub(crate) spare_ids: u64,
    /// Number of NEW_TOKEN frames received, each with a token for a later connection.
    pub(crate) tokens: u64,
    /// True once the search for the path MTU is complete.
    pub(crate) mtu_done: bool,
    /// Bytes received on each request stream, by stream ID.
    pub(crate) streams: BTreeMap<u64, u64>,
    /// Request streams in the order in which their ends arrived.
    pub(crate) finished: Vec<u64>,
    /// Number of key updates by either end.
    pub(crate) key_updates: u64,
}

impl Observed {
    fn on(&mut self, record: &Record) {
        match record {
            Record::TransportParametersSet(set) if set.by_peer => {
                self.parameters = Some((*set.parameters).clone());
            }
            Record::EcnStateUpdated(updated) => self.ecn = Some(updated.new),
            Record::MtuUpdated(updated) => self.mtu_done |= updated.done,
            Record::KeyUpdated(_) => self.key_updates += 1,
            Record::PacketReceived(packet) => packet.frames.iter().for_each(|it| self.on_frame(it)),
            _ => {}
        }
    }

    fn on_frame(&mut self, frame: &FrameRecord) {
        match frame {
            FrameRecord::PathChallenge { .. } => self.challenges += 1,
            FrameRecord::NewConnectionId { .. } => self.spare_ids += 1,
            FrameRecord::NewToken { .. } => self.tokens += 1,
            FrameRecord::Stream {
                id,
                offset,
                len,
                fin,
            } => {
                let id = id.value();
                // Counts request streams only, and only as many as this probe opens.
                if id % 4 != 0
                    || (self.streams.len() == MAX_STREAMS && !self.streams.contains_key(&id))
                {
                    return;
                }
                let end = offset.saturating_add(*len as u64);
                let known = self.streams.entry(id).or_default();
                *known = end.max(*known);
                if *fin && !self.finished.contains(&id) {
                    self.finished.push(id);
                }
            }
            _ => {}
        }
    }
}

/// Collects the records of the next connection. Clones share the records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collector(Arc<Mutex<Observed>>);

impl Collector {
    /// Returns a copy of the collected observations.
    pub(crate) fn observed(&self) -> Observed {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl SinkFactory for Collector {
    fn sink(&self, _: &ConnectionId, _: Side) -> Option<Box<dyn Sink>> {
        let observed = self.0.clone();
        Some(Box::new(move |_, record: &Record| {
            observed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .on(record);
        }))
    }
}

/// The largest number of streams whose bytes are counted: more than this probe opens on a connection (K238).
const MAX_STREAMS: usize = 16;

#[cfg(test)]
mod tests {
    use courser_wire::StreamId;

    use super::*;

    fn stream(id: u64, offset: u64, len: usize, fin: bool) -> FrameRecord {
        let id = StreamId::from_value(id);
        FrameRecord::Stream {
            id,
            offset,
            len,
            fin,
        }
    }

    #[test]
    fn lengths_and_order_of_responses_are_recorded() {
        let mut observed = Observed::default();
        for frame in [
            stream(4, 0, 10, true),
            stream(3, 0, 99, false),
            stream(0, 5, 7, true),
            stream(0, 0, 5, false),
        ] {
            observed.on_frame(&frame);
        }
        assert_eq!(observed.streams, BTreeMap::from([(0, 12), (4, 10)]));
        assert_eq!(observed.finished, [4, 0]);
    }

    #[test]
    fn number_of_recorded_streams_is_bounded() {
        let mut observed = Observed::default();
        for index in 0..1000 {
            observed.on_frame(&stream(index * 4, u64::MAX, 1, true));
        }
        assert_eq!(
            (observed.streams.len(), observed.finished.len()),
            (MAX_STREAMS, MAX_STREAMS)
        );
    }
}
