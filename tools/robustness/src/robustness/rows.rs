//! All measurements.

use super::figure::Figure;
use super::ledger::Ledger;
use super::setup::Setup;
use super::{attacks, flood, memory, overload, storm};
use crate::soak;

/// A measurement that can be selected separately.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) measure: fn(&Setup, &mut Ledger) -> Result<Vec<Figure>, String>,
}

/// All measurements, in the order of the document.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "memory-half-open",
        summary: "memory of an incomplete handshake",
        measure: |setup, _| memory::half_open(setup),
    },
    Row {
        name: "memory-idle",
        summary: "memory of an idle connection",
        measure: |setup, _| memory::idle(setup),
    },
    Row {
        name: "memory-unread",
        summary: "memory of a client that reads nothing",
        measure: |setup, _| memory::unread(setup),
    },
    Row {
        name: "attacks",
        summary: "each attack at full speed: CPU per datagram, and service for honest clients",
        measure: attacks::measure,
    },
    Row {
        name: "storm-1000",
        summary: "1000 clients at once from one address against an idle server",
        measure: |setup, _| storm::measure(setup, 1000),
    },
    Row {
        name: "storm-10000",
        summary: "10 000 clients at once from one address against an idle server",
        measure: |setup, _| storm::measure(setup, 10_000),
    },
    Row {
        name: "overload-handshakes",
        summary: "twice the handshakes that can be served",
        measure: |setup, _| overload::handshakes(setup),
    },
    Row {
        name: "overload-requests",
        summary: "twice the requests that can be served",
        measure: |setup, _| overload::requests(setup),
    },
    Row {
        name: "flood",
        summary: "attacks in turn until servers have read 1e8 hostile datagrams",
        measure: flood::measure,
    },
    // The last row, because it takes over Ctrl-C.
    Row {
        name: "soak",
        summary: "servers, 2000 honest connections, faults, restarts and attacks for an hour",
        measure: |setup, ledger| {
            let connections = if setup.is_quick { 200 } else { 2000 };
            soak::measure(&setup.courser, setup.soak_time, connections, ledger)
        },
    },
];
