//! The paths of a connection and their identifiers: quic-events §5.6.

use std::collections::VecDeque;

use courser_base::FourTuple;
use courser_telemetry::{PathState, PathUpdated};

use super::connectivity::ends;
use super::events::Events;

/// The paths that have an identifier. The path on which the connection began has the empty one,
/// which events without the field `tuple` belong to. A trace that begins later does not know that
/// path, and does not assign its identifier to another one.
#[derive(Debug, Default)]
pub(super) struct Tuples {
    known: VecDeque<(FourTuple, u64)>,
    /// The number that was assigned last.
    last: u64,
}

impl Tuples {
    /// Writes `tuple_assigned` for the path on which the connection begins.
    pub(super) fn on_started(&mut self, events: &mut Events<'_>, path: FourTuple) {
        self.assign(events, path, FIRST);
    }

    /// Returns the identifier of a path. Writes `tuple_assigned` for a new one, and for the oldest if
    /// there are too many.
    pub(super) fn id_of(&mut self, events: &mut Events<'_>, path: FourTuple) -> String {
        if let Some(&(_, number)) = self.known.iter().find(|(known, _)| *known == path) {
            return id(number);
        }
        self.last += 1;
        self.assign(events, path, self.last);
        id(self.last)
    }

    fn assign(&mut self, events: &mut Events<'_>, path: FourTuple, number: u64) {
        if self.known.len() == MAX_KNOWN
            && let Some((_, oldest)) = self.known.pop_front()
        {
            assigned(events, oldest, None);
        }
        self.known.push_back((path, number));
        assigned(events, number, Some(path));
    }

    /// Writes that a path has no identifier any more after its last event. The path of
    /// `migration_abandoned` is the one that is in use again.
    pub(super) fn on_updated(&mut self, events: &mut Events<'_>, updated: &PathUpdated) {
        if updated.state != PathState::ProbingAbandoned {
            return;
        }
        let place = self
            .known
            .iter()
            .position(|(path, _)| *path == updated.path);
        if let Some((_, number)) = place.and_then(|place| self.known.remove(place)) {
            assigned(events, number, None);
        }
    }
}

/// Writes the addresses of an identifier, or that it is abandoned.
fn assigned(events: &mut Events<'_>, number: u64, path: Option<FourTuple>) {
    events.event("quic:tuple_assigned", |data| {
        data.text("tuple_id", &id(number));
        if let Some(path) = path {
            ends(data, path);
        }
    });
}

fn id(number: u64) -> String {
    match number {
        FIRST => String::new(),
        number => number.to_string(),
    }
}

/// The number of the path on which the connection began.
const FIRST: u64 = 0;

/// The paths that are known at a time (limit K253). A connection has four, and peers may change
/// their address as often as they like.
const MAX_KNOWN: usize = 16;

#[cfg(test)]
mod tests {
    use courser_base::Time;
    use courser_telemetry::{ConnectionStarted, Record};
    use courser_wire::ConnectionId;

    use crate::encode::Encoder;

    use super::*;

    fn path(port: u16) -> FourTuple {
        FourTuple {
            peer: ([192, 0, 2, 1], port).into(),
            local: None,
        }
    }

    fn update(state: PathState, port: u16) -> Record {
        let path = path(port);
        Record::PathUpdated(PathUpdated { state, path })
    }

    fn lines(encoder: &mut Encoder, record: &Record) -> Vec<String> {
        let mut out = Vec::new();
        encoder.encode(&mut out, Time::ZERO, record);
        let text = String::from_utf8(out).expect("the output is UTF-8");
        let lines = text.lines().map(|line| {
            let name = line
                .split_once("\"name\":")
                .expect("the event has a name")
                .1;
            name.trim_end_matches('}').to_owned()
        });
        lines.collect()
    }

    /// One link-local address is two hosts in two zones.
    #[test]
    fn addresses_have_their_zones() {
        let mut encoder = Encoder::default();
        let started = Record::ConnectionStarted(ConnectionStarted {
            path: FourTuple {
                peer: "[fe80::1%3]:1".parse().expect("the address is valid"),
                local: "fe80::2".parse().ok(),
            },
            local_id: ConnectionId::EMPTY,
            peer_id: ConnectionId::EMPTY,
        });
        let lines = lines(&mut encoder, &started).join("\n");
        assert_eq!(
            lines.matches(r#""ip_v6":"fe80::1%3","port_v6":1"#).count(),
            2,
            "{lines}"
        );
        assert_eq!(
            lines.matches(r#""ip_v6":"fe80::2%3""#).count(),
            2,
            "{lines}"
        );
    }

    #[test]
    fn paths_have_identifiers_that_are_given_up_with_them() {
        let mut encoder = Encoder::default();
        let started = Record::ConnectionStarted(ConnectionStarted {
            path: path(1),
            local_id: ConnectionId::EMPTY,
            peer_id: ConnectionId::EMPTY,
        });
        let first = lines(&mut encoder, &started);
        assert_eq!(
            first[1],
            r#""quic:tuple_assigned","data":{"tuple_id":"","tuple_remote":{"ip_v4":"192.0.2.1","port_v4":1"#
        );
        let probing = lines(&mut encoder, &update(PathState::ProbingStarted, 2));
        assert_eq!(
            probing,
            [
                r#""quic:tuple_assigned","data":{"tuple_id":"1","tuple_remote":{"ip_v4":"192.0.2.1","port_v4":2"#,
                r#""quic:migration_state_updated","data":{"new":"probing_started","tuple_id":"1","tuple_remote":{"ip_v4":"192.0.2.1","port_v4":2"#,
            ]
        );
        let back = lines(&mut encoder, &update(PathState::MigrationStarted, 1));
        assert_eq!(back.len(), 1);
        assert!(back[0].contains(r#""tuple_id":"","#), "{back:?}");
        let abandoned = lines(&mut encoder, &update(PathState::ProbingAbandoned, 2));
        assert_eq!(abandoned.len(), 2);
        assert_eq!(
            abandoned[1],
            r#""quic:tuple_assigned","data":{"tuple_id":"1""#
        );
        let returned = lines(&mut encoder, &update(PathState::MigrationAbandoned, 1));
        assert_eq!(returned.len(), 1, "it keeps its identifier: {returned:?}");
        let again = lines(&mut encoder, &update(PathState::ProbingStarted, 2));
        assert!(again[0].contains(r#""tuple_id":"2""#), "{again:?}");
    }

    #[test]
    fn trace_that_begins_later_gives_no_path_the_empty_identifier() {
        let mut encoder = Encoder::default();
        let probing = lines(&mut encoder, &update(PathState::ProbingStarted, 2));
        assert_eq!(probing.len(), 2, "{probing:?}");
        for line in &probing {
            assert!(line.contains(r#""tuple_id":"1","#), "{line}");
        }
    }

    #[test]
    fn known_paths_are_bounded() {
        let mut encoder = Encoder::default();
        for port in 0..1000 {
            lines(&mut encoder, &update(PathState::ProbingStarted, port));
        }
        let next = lines(&mut encoder, &update(PathState::ProbingStarted, 1000));
        assert_eq!(next.len(), 3, "{next:?}");
        assert_eq!(next[0], r#""quic:tuple_assigned","data":{"tuple_id":"985""#);
        assert_eq!(encoder.tuples.known.len(), MAX_KNOWN);
    }
}
