//! Loss recovery and congestion control. RFC 9002.

use std::time::Duration;

use courser_base::Rate;
use courser_wire::packet::PacketKind;

/// What loss recovery and congestion control start from (RFC 9002 appendices A.2 and B.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecoveryParametersSet {
    /// Packets by which an acknowledged one must be newer for an older one to be lost.
    pub reordering_threshold: u64,
    /// The same in time, as a multiple of the round-trip time.
    pub time_threshold: f64,
    /// Shortest time that timers tell apart.
    pub timer_granularity: Duration,
    /// Round-trip time assumed before the first sample.
    pub initial_rtt: Duration,
    /// UDP payload of full datagrams in bytes.
    pub max_datagram_size: u16,
    /// First congestion window in bytes.
    pub initial_congestion_window: u64,
    /// Name of the congestion controller.
    pub controller: &'static str,
}

/// Round-trip time or congestion state changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricsUpdated {
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Latest sample.
    pub latest_rtt: Duration,
    /// Lowest sample.
    pub min_rtt: Duration,
    /// Mean deviation of the samples.
    pub rtt_variance: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes whose fate is open.
    pub bytes_in_flight: u64,
    /// Packets whose fate is open, over all packet number spaces.
    pub packets_in_flight: u64,
    /// Slow-start threshold in bytes, once there is one.
    pub ssthresh: Option<u64>,
    /// How fast packets leave, when the controller says so.
    pub pacing_rate: Option<Rate>,
    /// Probe timeouts in a row.
    pub pto_count: u32,
}

/// The congestion controller behaves differently from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionStateUpdated {
    /// Its state until now, in the words of its specification.
    pub old: Option<&'static str>,
    /// Its state from now on: `slow_start`, `congestion_avoidance`, `recovery`, `probe_bw_up`...
    pub new: &'static str,
    /// What made it change: `persistent_congestion`, `ecn`, `loss`, `spurious_loss`...
    pub trigger: Option<&'static str>,
}

/// Why a packet counts as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossTrigger {
    /// Enough newer packets were acknowledged (RFC 9002 §6.1.1).
    ReorderingThreshold,
    /// It was sent long enough before one that was acknowledged (RFC 9002 §6.1.2).
    TimeThreshold,
    /// A probe timeout gave it up (RFC 9002 §6.2.4).
    ProbeTimeout,
}

/// A packet that we sent counts as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketLost {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Its number.
    pub packet_number: u64,
    /// Bytes on the wire.
    pub len: usize,
    /// Why, when that is known.
    pub trigger: Option<LossTrigger>,
    /// It only asked whether the path carries datagrams of its size: no sign of congestion.
    pub is_mtu_probe: bool,
}

/// A packet that counted as lost was acknowledged after all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpuriousLoss {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Its number.
    pub packet_number: u64,
}

/// Which timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Packets pass the time threshold of loss detection (RFC 9002 §6.1.2).
    LossDetection,
    /// A probe is due (RFC 9002 §6.2).
    Probe,
}

/// A timer ran out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerExpired {
    /// Which one.
    pub timer: Timer,
    /// Packets of the space that it ran for.
    pub kind: PacketKind,
}

/// What keeps a connection from sending more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendLimit {
    /// There is nothing to send.
    Application,
    /// The congestion window is full (RFC 9002 §7).
    CongestionWindow,
    /// The window is open, the pacer is not (RFC 9002 §7.7).
    Pacer,
    /// The peer's credit for the connection is used up (RFC 9000 §4).
    FlowControl,
    /// The peer's credit for each stream with something to send is used up (RFC 9000 §4).
    StreamFlowControl,
    /// The peer's address is not proven and has got all it may get (RFC 9000 §8).
    Amplification,
}

/// The connection stopped sending. Recorded at each stop, so the same limit may be told many
/// times in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendLimited {
    /// What stopped it.
    pub by: SendLimit,
}

/// Where ECN validation stands (RFC 9000 appendix A.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnState {
    /// The first packets are marked, to see what becomes of them.
    Testing,
    /// Nothing is marked until the peer has reported.
    Unknown,
    /// Marks arrive and are reported.
    Capable,
    /// Marks do not arrive or are not reported: none are sent.
    Failed,
}

/// ECN validation came to another result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnStateUpdated {
    /// Where it stood.
    pub old: EcnState,
    /// Where it stands.
    pub new: EcnState,
}
