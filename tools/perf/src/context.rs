//! State that all connections of a server share.

use courser_measure::CpuClock;

use crate::datagram;
use crate::event::Events;
use crate::server_report::ServerReport;

/// State that all connections of a server share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) clock: CpuClock,
    pub(crate) events: Events,
    /// True if early data is accepted.
    pub(crate) early_data: bool,
}

impl Context {
    /// Returns the counters of the process, without those of a protocol.
    pub(crate) fn report(&self) -> ServerReport {
        ServerReport {
            courser: env!("CARGO_PKG_VERSION").to_owned(),
            cpu_seconds: self.clock.seconds(),
            datagrams: datagram::VERSION,
            ..ServerReport::default()
        }
    }
}
