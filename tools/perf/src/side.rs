//! The cost of a measurement at one end.

use courser_measure::{ConnectionCounters, IoCounters};
use courser_units::{per_gigabyte, ratio, to_f64};
use serde::Serialize;

/// The work of one end during a measurement, and its cost.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Side {
    /// CPU time of the end, in user space and in the kernel.
    pub cpu_seconds: f64,
    /// CPU seconds per 10^9 bytes; `None` in the scenario mixed, where bytes are only a part of the work.
    pub cpu_seconds_per_gb: Option<f64>,
    /// Mbit/s of both directions together per percent of a busy core; `None` in the scenario mixed.
    pub mbits_per_second_per_cpu_percent: Option<f64>,
    /// CPU time in microseconds per request, handshake, datagram or close.
    pub cpu_us_each: Option<f64>,
    /// Mean number of datagrams sent in one system call.
    pub datagrams_per_send_call: Option<f64>,
    /// Mean number of datagrams received in one system call.
    pub datagrams_per_receive_call: Option<f64>,
    /// ACK frames sent per ack-eliciting packet received.
    pub acks_per_data_packet: Option<f64>,
    /// Counters of the sockets.
    pub io: IoCounters,
    /// Counters of the QUIC connections.
    pub connection: Option<ConnectionCounters>,
}

/// The work of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
}

impl Side {
    pub(crate) fn new(
        cpu_seconds: f64,
        io: IoCounters,
        connection: Option<ConnectionCounters>,
        done: Done,
    ) -> Self {
        let acks = connection
            .and_then(|connection| ratio(connection.acks_sent, connection.ack_eliciting_received));
        let per_call = |datagrams: Option<u64>, calls| ratio(datagrams?, calls);
        Self {
            cpu_seconds,
            cpu_seconds_per_gb: per_gigabyte(cpu_seconds, done.bytes),
            mbits_per_second_per_cpu_percent: mbits_per_cpu_percent(cpu_seconds, done.bytes),
            cpu_us_each: (done.count > 0).then(|| cpu_seconds * 1e6 / to_f64(done.count)),
            datagrams_per_send_call: per_call(io.sent_datagrams, io.send_calls),
            datagrams_per_receive_call: per_call(io.received_datagrams, io.receive_calls),
            acks_per_data_packet: acks,
            io,
            connection,
        }
    }
}

/// Returns Mbit/s per percent of a core. The duration of the measurement cancels out.
fn mbits_per_cpu_percent(cpu_seconds: f64, bytes: u64) -> Option<f64> {
    let mbits = to_f64(bytes) * 8.0 / 1e6;
    (bytes > 0 && cpu_seconds > 0.0).then(|| mbits / (cpu_seconds * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_divided_by_the_work() {
        let io = IoCounters {
            send_calls: 2,
            sent_datagrams: Some(90),
            ..IoCounters::default()
        };
        let side = Side::new(
            0.5,
            io,
            None,
            Done {
                bytes: 2_000_000_000,
                count: 1000,
            },
        );
        assert_eq!(side.cpu_seconds_per_gb, Some(0.25));
        // 16 Gbit in any time: 16 Gbit/s at 50 % of a core in one second.
        assert_eq!(side.mbits_per_second_per_cpu_percent, Some(320.0));
        assert_eq!(side.cpu_us_each, Some(500.0));
        assert_eq!(side.datagrams_per_send_call, Some(45.0));
        assert_eq!(side.datagrams_per_receive_call, None);
    }
}
