//! Counters of sockets and of QUIC connections.

use courser::{ConnectionStats, Counters, Endpoint};
use courser_units::to_f64;
use serde::{Deserialize, Serialize};

/// Counters of the system calls of sockets.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(default)]
pub struct IoCounters {
    /// System calls that sent datagrams or bytes.
    pub send_calls: u64,
    /// System calls that received datagrams or bytes.
    pub receive_calls: u64,
    /// Bytes passed to the kernel, without UDP, TCP and IP headers.
    pub sent_bytes: u64,
    /// Bytes received from the kernel, without UDP, TCP and IP headers.
    pub received_bytes: u64,
    /// Datagrams sent; `None` over TCP, where the kernel creates the packets.
    pub sent_datagrams: Option<u64>,
    /// Datagrams received; `None` over TCP.
    pub received_datagrams: Option<u64>,
    /// Received datagrams that the kernel dropped before they were read; `None` if it does not report them.
    pub kernel_drops: Option<u64>,
}

impl IoCounters {
    /// Returns the counters of the socket of an endpoint.
    pub fn of_endpoint(endpoint: &Endpoint) -> Self {
        Self {
            kernel_drops: endpoint.receive_overflow(),
            ..endpoint.socket_counters().into()
        }
    }

    /// Returns the differences from earlier counters, which are at least zero.
    pub fn since(&self, before: &Self) -> Self {
        let both = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            send_calls: self.send_calls.saturating_sub(before.send_calls),
            receive_calls: self.receive_calls.saturating_sub(before.receive_calls),
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
            received_bytes: self.received_bytes.saturating_sub(before.received_bytes),
            sent_datagrams: both(self.sent_datagrams, before.sent_datagrams),
            received_datagrams: both(self.received_datagrams, before.received_datagrams),
            kernel_drops: both(self.kernel_drops, before.kernel_drops),
        }
    }

    /// Returns the sums of both.
    pub fn plus(&self, other: &Self) -> Self {
        let both = |one: Option<u64>, two: Option<u64>| Some(one?.saturating_add(two?));
        Self {
            send_calls: self.send_calls.saturating_add(other.send_calls),
            receive_calls: self.receive_calls.saturating_add(other.receive_calls),
            sent_bytes: self.sent_bytes.saturating_add(other.sent_bytes),
            received_bytes: self.received_bytes.saturating_add(other.received_bytes),
            sent_datagrams: both(self.sent_datagrams, other.sent_datagrams),
            received_datagrams: both(self.received_datagrams, other.received_datagrams),
            kernel_drops: both(self.kernel_drops, other.kernel_drops),
        }
    }
}

impl From<Counters> for IoCounters {
    fn from(counters: Counters) -> Self {
        Self {
            send_calls: counters.send_calls,
            receive_calls: counters.receive_calls,
            sent_bytes: counters.sent_bytes,
            received_bytes: counters.received_bytes,
            sent_datagrams: Some(counters.sent_datagrams),
            received_datagrams: Some(counters.received_datagrams),
            kernel_drops: None,
        }
    }
}

/// Counters of QUIC connections, and the state of their paths.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[serde(default)]
pub struct ConnectionCounters {
    /// The number of connections whose counters were added up.
    pub connections: u64,
    /// QUIC packets sent, of all packet number spaces.
    pub packets_sent: u64,
    /// QUIC packets received and decrypted, of all packet number spaces.
    pub packets_received: u64,
    /// Sent packets that were declared lost (RFC 9002 §6.1).
    pub packets_lost: u64,
    /// Bytes of stream data retransmitted.
    pub bytes_retransmitted: u64,
    /// Number of ACK frames sent.
    pub acks_sent: u64,
    /// Number of ACK frames received.
    pub acks_received: u64,
    /// Received packets that must be acknowledged (RFC 9000 §13.2).
    pub ack_eliciting_received: u64,
    /// Reductions of the congestion window.
    pub congestion_events: u64,
    /// Probe timeouts that expired (RFC 9002 §6.2).
    pub ptos: u64,
    /// Key updates by either end (RFC 9001 §6).
    pub key_updates: u64,
    /// Number of times that the connection switched to another path.
    pub path_changes: u64,
    /// Smoothed round-trip time in microseconds; the mean over the connections.
    pub rtt_us: f64,
    /// Lowest round-trip time in microseconds.
    pub min_rtt_us: f64,
    /// Congestion window in bytes; the sum over the connections.
    pub congestion_window: u64,
    /// Smallest UDP payload of full packets.
    pub mtu: u16,
}

impl ConnectionCounters {
    /// Adds the counters of all connections up. Returns `None` without connections.
    pub fn sum(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().reduce(|sum, next| sum.plus(&next))
    }

    /// Returns the differences from earlier counters, with the current state of the paths.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            packets_sent: self.packets_sent.saturating_sub(before.packets_sent),
            packets_received: self
                .packets_received
                .saturating_sub(before.packets_received),
            packets_lost: self.packets_lost.saturating_sub(before.packets_lost),
            bytes_retransmitted: self
                .bytes_retransmitted
                .saturating_sub(before.bytes_retransmitted),
            acks_sent: self.acks_sent.saturating_sub(before.acks_sent),
            acks_received: self.acks_received.saturating_sub(before.acks_received),
            ack_eliciting_received: self
                .ack_eliciting_received
                .saturating_sub(before.ack_eliciting_received),
            congestion_events: self
                .congestion_events
                .saturating_sub(before.congestion_events),
            ptos: self.ptos.saturating_sub(before.ptos),
            key_updates: self.key_updates.saturating_sub(before.key_updates),
            path_changes: self.path_changes.saturating_sub(before.path_changes),
            ..*self
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let (here, there) = (to_f64(self.connections), to_f64(other.connections));
        let mean = (self.rtt_us * here + other.rtt_us * there) / (here + there).max(1.0);
        Self {
            connections: self.connections.saturating_add(other.connections),
            packets_sent: self.packets_sent.saturating_add(other.packets_sent),
            packets_received: self.packets_received.saturating_add(other.packets_received),
            packets_lost: self.packets_lost.saturating_add(other.packets_lost),
            bytes_retransmitted: self
                .bytes_retransmitted
                .saturating_add(other.bytes_retransmitted),
            acks_sent: self.acks_sent.saturating_add(other.acks_sent),
            acks_received: self.acks_received.saturating_add(other.acks_received),
            ack_eliciting_received: self
                .ack_eliciting_received
                .saturating_add(other.ack_eliciting_received),
            congestion_events: self
                .congestion_events
                .saturating_add(other.congestion_events),
            ptos: self.ptos.saturating_add(other.ptos),
            key_updates: self.key_updates.saturating_add(other.key_updates),
            path_changes: self.path_changes.saturating_add(other.path_changes),
            rtt_us: mean,
            min_rtt_us: self.min_rtt_us.min(other.min_rtt_us),
            congestion_window: self
                .congestion_window
                .saturating_add(other.congestion_window),
            mtu: self.mtu.min(other.mtu),
        }
    }
}

impl From<ConnectionStats> for ConnectionCounters {
    fn from(stats: ConnectionStats) -> Self {
        Self {
            connections: 1,
            packets_sent: stats.packets_sent,
            packets_received: stats.packets_received,
            packets_lost: stats.packets_lost,
            bytes_retransmitted: stats.data_retransmitted,
            acks_sent: stats.acks_sent,
            acks_received: stats.acks_received,
            ack_eliciting_received: stats.ack_eliciting_received,
            congestion_events: stats.congestion_events,
            ptos: stats.ptos,
            key_updates: stats.key_updates,
            path_changes: stats.path_changes,
            rtt_us: stats.path.rtt.as_secs_f64() * 1e6,
            min_rtt_us: stats.path.min_rtt.as_secs_f64() * 1e6,
            congestion_window: stats.path.congestion_window,
            mtu: stats.path.mtu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_go_below_zero() {
        let small = IoCounters {
            send_calls: 1,
            ..IoCounters::default()
        };
        let large = IoCounters {
            send_calls: 5,
            ..IoCounters::default()
        };
        assert_eq!(large.since(&small).send_calls, 4);
        assert_eq!(small.since(&large).send_calls, 0);
    }

    #[test]
    fn connections_add_up_while_round_trips_average() {
        let one = ConnectionCounters {
            connections: 1,
            packets_sent: 2,
            rtt_us: 10.0,
            min_rtt_us: 5.0,
            ..Default::default()
        };
        let other = ConnectionCounters {
            packets_sent: 3,
            rtt_us: 30.0,
            min_rtt_us: 7.0,
            ..one
        };
        let sum = ConnectionCounters::sum([one, other]).expect("two");
        assert_eq!((sum.connections, sum.packets_sent), (2, 5));
        assert!((sum.rtt_us - 20.0).abs() < 1e-9 && (sum.min_rtt_us - 5.0).abs() < 1e-9);
    }

    #[test]
    fn counters_of_a_warm_up_are_subtracted_and_the_state_of_paths_stays() {
        let before = ConnectionCounters {
            connections: 2,
            packets_sent: 10,
            packets_lost: 3,
            congestion_window: 5000,
            rtt_us: 9.0,
            ..Default::default()
        };
        let after = ConnectionCounters {
            packets_sent: 17,
            packets_lost: 4,
            congestion_window: 7000,
            rtt_us: 8.0,
            ..before
        };
        let since = after.since(&before);
        assert_eq!((since.packets_sent, since.packets_lost), (7, 1));
        assert_eq!((since.connections, since.congestion_window), (2, 7000));
        assert!((since.rtt_us - 8.0).abs() < 1e-9);
        // Counters that a peer reports may also decrease.
        assert_eq!(before.since(&after).packets_sent, 0);
    }
}
