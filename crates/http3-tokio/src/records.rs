//! HTTP/3 records for the sinks of a connection.

use courser_quic::Connection;
use courser_quic::hooks::ConnectionHooks;
use courser_quic::telemetry::{Detail, Http3Record, Record, Watch};

/// Passes records to the sinks of a connection, if there are any.
#[derive(Debug)]
pub(super) struct Records {
    watch: Option<Watch>,
}

impl Records {
    /// Starts to watch the sinks of a connection.
    pub(super) fn of(quic: &Connection) -> Self {
        Self {
            watch: quic.with_tap(|tap, _| tap.watch()),
        }
    }

    /// Returns true while a sink receives HTTP/3 records. Costs a branch.
    #[inline]
    pub(super) fn are_recorded(&self) -> bool {
        let watch = self.watch.as_ref();
        watch.is_some_and(|watch| watch.wants(Detail::Messages))
    }

    /// Passes records to the sinks. Locks the endpoint, like any call of `quic`.
    pub(super) fn pass(quic: &Connection, records: Vec<Record>) {
        if records.is_empty() {
            return;
        }
        quic.with_tap(|tap, now| {
            for record in records {
                tap.record_at(Detail::Messages, now, || record);
            }
        });
    }

    /// Passes the record that `make` builds to the sinks. It is not built if no sink receives it.
    #[inline]
    pub(super) fn record(&self, quic: &Connection, make: impl FnOnce() -> Http3Record) {
        if self.are_recorded() {
            Self::pass(quic, vec![Record::Http3(make())]);
        }
    }
}
