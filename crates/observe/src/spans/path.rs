//! The spans of paths.

use std::collections::VecDeque;

use courser_base::FourTuple;
use courser_telemetry::{PathState, Record};
use tracing::field::{Empty, display};
use tracing::{Span, debug, debug_span};

use super::targets::PATH;
use crate::names;

/// The spans of a connection's paths, newest last.
#[derive(Debug, Default)]
pub(super) struct PathSpans {
    spans: VecDeque<(FourTuple, Span)>,
    active: Option<FourTuple>,
}

impl PathSpans {
    /// Opens the span of a connection's first path.
    pub(super) fn begin(&mut self, connection: &Span, path: FourTuple) {
        self.active = Some(path);
        self.span(connection, path);
    }

    /// Returns the span of the active path, or that of its connection.
    pub(super) fn active_or<'a>(&'a self, connection: &'a Span) -> &'a Span {
        let active = self.active.and_then(|path| self.find(path));
        // Below the level debug, paths have no spans.
        active
            .filter(|span| !span.is_disabled())
            .unwrap_or(connection)
    }

    pub(super) fn record(&mut self, connection: &Span, record: &Record) {
        match record {
            Record::PathUpdated(update) => {
                let span = self.span(connection, update.path).clone();
                let state = names::path(update.state);
                debug!(target: PATH, parent: &span, state, "path changed");
                match update.state {
                    PathState::MigrationStarted | PathState::MigrationAbandoned => {
                        self.active = Some(update.path);
                    }
                    PathState::ProbingAbandoned => {
                        self.spans.retain(|(path, _)| *path != update.path);
                    }
                    _ => {}
                }
            }
            Record::PathSilenceUpdated(update) => {
                let silence = names::silence(update.is_silent);
                let probe_timeouts = update.probe_timeouts;
                let span = self.active_or(connection);
                debug!(target: PATH, parent: span, silence, probe_timeouts, "path silence changed");
            }
            Record::MtuUpdated(update) => {
                let (old, new) = (update.old, update.new);
                let span = self.active_or(connection);
                debug!(target: PATH, parent: span, old, new, "datagram size changed");
            }
            Record::PathFeatureUpdated(update) => {
                let (feature, used) = (names::path_feature(update.feature), update.is_used);
                let span = self.active_or(connection);
                debug!(target: PATH, parent: span, feature, used, "packet feature changed");
            }
            Record::EcnStateUpdated(update) => {
                let (old, new) = (names::ecn(update.old), names::ecn(update.new));
                let span = self.active_or(connection);
                debug!(target: PATH, parent: span, old, new, "ECN state changed");
            }
            _ => {}
        }
    }

    fn find(&self, path: FourTuple) -> Option<&Span> {
        let found = self.spans.iter().find(|(known, _)| *known == path);
        found.map(|(_, span)| span)
    }

    /// Returns the span of a path, opening it if necessary. Closes the oldest span at the limit, because a peer
    /// may use any number of addresses.
    fn span(&mut self, connection: &Span, path: FourTuple) -> &Span {
        if self.find(path).is_none() {
            if self.spans.len() == MAX_PATHS {
                self.spans.pop_front();
            }
            let span = debug_span!(
                target: PATH,
                parent: connection,
                "path",
                peer = %path.peer,
                local = Empty,
            );
            if let Some(local) = path.local {
                span.record("local", display(local));
            }
            self.spans.push_back((path, span));
        }
        self.find(path).unwrap_or(const { &Span::none() })
    }
}

/// Largest number of open path spans of a connection.
const MAX_PATHS: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use courser_telemetry::PathUpdated;

    use super::*;

    fn update(state: PathState, port: u16) -> Record {
        let path = FourTuple::to(SocketAddr::from(([192, 0, 2, 1], port)));
        Record::PathUpdated(PathUpdated { state, path })
    }

    #[test]
    fn connection_that_returns_to_a_path_reuses_its_span() {
        let mut paths = PathSpans::default();
        let port = |paths: &PathSpans| paths.active.map(|path| path.peer.port());
        paths.begin(
            &Span::none(),
            FourTuple::to(SocketAddr::from(([192, 0, 2, 1], 1))),
        );
        paths.record(&Span::none(), &update(PathState::MigrationStarted, 2));
        assert_eq!(port(&paths), Some(2));
        paths.record(&Span::none(), &update(PathState::ProbingAbandoned, 2));
        paths.record(&Span::none(), &update(PathState::MigrationAbandoned, 1));
        assert_eq!(port(&paths), Some(1), "the record names it");
        let spans: Vec<_> = paths
            .spans
            .iter()
            .map(|(path, _)| path.peer.port())
            .collect();
        assert_eq!(spans, [1]);
    }

    #[test]
    fn spans_of_paths_are_bounded() {
        let mut paths = PathSpans::default();
        let path = |port| FourTuple::to(SocketAddr::from(([192, 0, 2, 1], port)));
        for port in 1..=1000 {
            let state = PathState::ProbingStarted;
            let path = path(port);
            paths.record(
                &Span::none(),
                &Record::PathUpdated(PathUpdated { state, path }),
            );
        }
        assert_eq!(paths.spans.len(), MAX_PATHS);
        assert!(paths.find(path(1000)).is_some());
        let state = PathState::ProbingAbandoned;
        let path = path(1000);
        let abandoned = Record::PathUpdated(PathUpdated { state, path });
        paths.record(&Span::none(), &abandoned);
        assert_eq!(paths.spans.len(), MAX_PATHS - 1);
    }
}
