//! Records of loss recovery and congestion control. RFC 9002.

use std::time::Duration;

use courser_base::Rate;
use courser_wire::packet::PacketKind;

/// The initial parameters of loss recovery and congestion control (RFC 9002 appendices A.2 and
/// B.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecoveryParametersSet {
    /// Distance in packets to a newer acknowledged packet at which a packet is declared lost.
    pub reordering_threshold: u64,
    /// Age at which a packet sent before an acknowledged one is declared lost, as a multiple of the
    /// round-trip time.
    pub time_threshold: f64,
    /// The smallest time that timers distinguish.
    pub timer_granularity: Duration,
    /// The round-trip time assumed before the first sample.
    pub initial_rtt: Duration,
    /// UDP payload size of full datagrams in bytes.
    pub max_datagram_size: u16,
    /// The initial congestion window in bytes.
    pub initial_congestion_window: u64,
    /// Name of the congestion controller.
    pub controller: &'static str,
}

/// Metrics of the round-trip time or of congestion control changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricsUpdated {
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The latest round-trip time sample.
    pub latest_rtt: Duration,
    /// The smallest round-trip time sample.
    pub min_rtt: Duration,
    /// The mean deviation of the round-trip time samples.
    pub rtt_variance: Duration,
    /// The congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes in flight: sent and neither acknowledged nor declared lost.
    pub bytes_in_flight: u64,
    /// Number of packets that are neither acknowledged nor declared lost, over all packet number
    /// spaces.
    pub packets_in_flight: u64,
    /// The slow start threshold in bytes; `None` while it is infinite.
    pub ssthresh: Option<u64>,
    /// The pacing rate, if the controller sets one.
    pub pacing_rate: Option<Rate>,
    /// Number of consecutive probe timeouts.
    pub pto_count: u32,
}

/// The congestion controller changed its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionStateUpdated {
    /// The previous state, in the terms of the controller's specification.
    pub old: Option<&'static str>,
    /// The new state: `slow_start`, `congestion_avoidance`, `recovery`, `probe_bw_up`...
    pub new: &'static str,
    /// The cause of the change: `persistent_congestion`, `ecn`, `loss`, `spurious_loss`...
    pub trigger: Option<&'static str>,
}

/// The rule by which a packet was declared lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossTrigger {
    /// Enough newer packets were acknowledged (RFC 9002 §6.1.1).
    ReorderingThreshold,
    /// The packet was sent long enough before an acknowledged one (RFC 9002 §6.1.2).
    TimeThreshold,
    /// A probe timeout declared the packet lost (RFC 9002 §6.2.4).
    ProbeTimeout,
}

/// A packet of this end was declared lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketLost {
    /// The kind of packet, as given in its header.
    pub kind: PacketKind,
    /// The packet number, in the packet number space of `kind`.
    pub packet_number: u64,
    /// Size of the packet on the wire in bytes.
    pub len: usize,
    /// The rule that declared it lost, if known.
    pub trigger: Option<LossTrigger>,
    /// True if the packet probed the path MTU, so that its loss does not indicate congestion.
    pub is_mtu_probe: bool,
}

/// A packet that had been declared lost was acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpuriousLoss {
    /// The kind of packet, as given in its header.
    pub kind: PacketKind,
    /// The packet number, in the packet number space of `kind`.
    pub packet_number: u64,
}

/// A timer of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// The timer of time-based loss detection (RFC 9002 §6.1.2).
    LossDetection,
    /// The probe timeout (RFC 9002 §6.2).
    Probe,
}

/// A timer of loss recovery expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerExpired {
    /// The timer that expired.
    pub timer: Timer,
    /// The kind of packets in the packet number space of the timer.
    pub kind: PacketKind,
}

/// A limit that stops a connection from sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendLimit {
    /// The application has no more data to send.
    Application,
    /// The congestion window is full (RFC 9002 §7).
    CongestionWindow,
    /// The pacer delays the next packet although the congestion window has room (RFC 9002 §7.7).
    Pacer,
    /// The peer's flow control credit for the connection is used up (RFC 9000 §4).
    FlowControl,
    /// The peer's flow control credit is used up for each stream that has data to send
    /// (RFC 9000 §4).
    StreamFlowControl,
    /// The anti-amplification limit of an unvalidated address is reached (RFC 9000 §8).
    Amplification,
}

/// The connection stopped sending. Recorded at each stop, so the same limit may repeat many times
/// in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendLimited {
    /// The limit that stopped the connection.
    pub by: SendLimit,
}

/// The state of ECN validation (RFC 9000 appendix A.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnState {
    /// The first packets are marked to test the path.
    Testing,
    /// Packets are not marked until the peer has reported on the first ones.
    Unknown,
    /// Marks arrive and the peer reports them.
    Capable,
    /// Marks do not arrive or the peer does not report them, so packets are not marked.
    Failed,
}

/// The state of ECN validation changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnStateUpdated {
    /// The state before the change.
    pub old: EcnState,
    /// The state after the change.
    pub new: EcnState,
}
