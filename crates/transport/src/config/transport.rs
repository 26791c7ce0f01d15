//! Settings of one connection, the same for both sides.

mod bounds;
mod ranges;

use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use courser_base::Rate;
use courser_recovery::{
    Algorithm, CongestionController, ControllerFactory, LossThresholds, MtuSearch, MtuSearchPace,
    PathSchedule, PathScheduler, PathSchedulerFactory, TIMER_GRANULARITY,
};
use courser_telemetry::SinkFactory;
use courser_wire::PathId;

use self::bounds::MAX_MTU;
pub(crate) use self::bounds::MAX_OPEN_PATHS;
pub use self::ranges::ConfigError;
pub(super) use self::ranges::check;
use super::path_memory::PathMemory;
use crate::datagram::DatagramLimits;
use crate::observed::AddressObservations;
use crate::recovery::ack_request::FixedTerms;
use crate::stream::StreamsConfig;

/// Settings of one connection.
///
/// Set any field freely: [`TransportConfig::validate`], which the endpoint calls before it uses a
/// configuration, checks them all.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Time without packets after which the connection is closed silently; `None` disables our own
    /// limit. Default 30 s, at least 1 ms. The smaller of both sides' values applies (RFC 9000
    /// §10.1).
    pub max_idle_timeout: Option<Duration>,
    /// Sends a PING after this much time without packets. Default off; a third of the idle timeout
    /// is sensible, and zero is refused.
    pub keep_alive_interval: Option<Duration>,
    /// Time limit for the whole handshake. Default 10 s, not zero. A server gives up a client from which no
    /// packet arrives for half of it.
    pub handshake_timeout: Duration,
    /// Probe timeouts in a row without an acknowledgement (RFC 9002 §6.2) after which the connection ends
    /// with [`ConnectionError::PathSilent`](crate::ConnectionError::PathSilent), 3 to 32. It applies
    /// once the handshake is complete. Default `None`: the idle timeout alone decides, so that the
    /// connection survives an outage shorter than that.
    ///
    /// Each timeout is twice as long as the one before, so that six of them take 63 times the first.
    /// Programs that have another path can leave a connection without ending it:
    /// [`Event::PathSilent`](crate::Event::PathSilent) occurs after three.
    pub max_ptos: Option<u32>,
    /// Round-trip time that is assumed before the first sample. Default 333 ms (RFC 9002 §6.2.2).
    pub initial_rtt: Duration,
    /// Packets by which a later one must be acknowledged before a packet counts as lost, 3 to 300. Default 3 (RFC
    /// 9002 §6.1.1). It rises by itself on a path that reorders packets.
    pub packet_threshold: u32,
    /// Round trips after which a packet counts as lost if a later one was acknowledged, above 1 and up to 8. Default
    /// 9/8 (RFC 9002 §6.1.2). It rises by itself on a path that reorders packets.
    pub time_threshold: f32,
    /// Probe timeouts without any acknowledgement after which the congestion window falls to its minimum, 1 to 100.
    /// Default 3 (RFC 9002 §7.6.1).
    pub persistent_congestion_threshold: u32,
    /// Initial UDP payload of full datagrams in bytes, 1200 to 65 507. Default 1200, which every
    /// QUIC path carries (RFC 9000 §14). Raise it only if the path is known.
    pub mtu: u16,
    /// Searches for larger datagrams that the path carries (RFC 8899), and falls back to 1200 bytes
    /// if the path no longer carries the present size. Default on.
    pub mtu_discovery: bool,
    /// Largest UDP payload that the search tries, from `mtu` to 65 507. Default 65 507; the
    /// interface and the peer impose their own limits.
    pub mtu_max: u16,
    /// Time after which the search tries a larger size again. Default 600 s (RFC 8899 §5.1.1), at least 1 ms.
    pub mtu_raise_interval: Duration,
    /// Time without a search after the path was found to drop large datagrams. Default `None`: the first time the
    /// search begins at once, later it waits for 60 s.
    pub mtu_black_hole_delay: Option<Duration>,
    /// Difference in bytes between the largest size that passed and the smallest that did not, with which the search
    /// ends. Default 6, at least 1.
    pub mtu_resolution: u16,
    /// Bidirectional streams that the peer may have open. Default 100, at most 2^60.
    pub max_bidi_streams: u64,
    /// Unidirectional streams that the peer may have open. Default 100, at most 2^60.
    pub max_uni_streams: u64,
    /// Initial flow-control window of a stream in bytes. Default 256 KiB.
    pub stream_receive_window: u64,
    /// Largest window to which a stream grows automatically. Default 128 MiB, which fills 1 Gbit/s
    /// over 600 ms. The growth of all windows of an endpoint is limited by
    /// [`EndpointConfig::receive_budget`](crate::EndpointConfig::receive_budget).
    pub stream_receive_window_max: u64,
    /// Initial flow-control window of the connection in bytes. Default 1 MiB.
    pub receive_window: u64,
    /// Largest window to which the connection grows automatically. Default 128 MiB.
    pub receive_window_max: u64,
    /// Bytes kept for sending and retransmission, over all streams: four congestion windows, but at
    /// least 512 KiB or this value, and at most this value. Default 256 MiB.
    pub send_buffer_max: u64,
    /// Maximum of bytes that a stream accepts from its writer before they can be sent. The limit
    /// follows two congestion windows from 64 KiB up to this value, and never exceeds the credit of
    /// the stream by more than 512 bytes, nor that of the connection by more than a sixteenth of the
    /// limit. Default 256 KiB: more data would leave the caches before it
    /// is sealed.
    pub unsent_limit: u64,
    /// Bytes of received datagrams (RFC 9221) that wait to be read; `None` announces to the peer
    /// that none are accepted. When it is exceeded, the oldest are dropped. Default 256 KiB, at
    /// least 2 bytes.
    pub datagram_receive_buffer_size: Option<usize>,
    /// Maximum count of received datagrams that wait to be read. Default 64.
    pub datagram_receive_queue: usize,
    /// Bytes of datagrams that wait to be sent; 0 disables sending. When it is exceeded, the oldest
    /// are dropped. Default 256 KiB.
    pub datagram_send_buffer_size: usize,
    /// Maximum count of datagrams that wait to be sent. Default 64.
    pub datagram_send_queue: usize,
    /// Delay of datagrams before they are sent that may last, 1 ms to 10 s. If it is exceeded for 100 ms, some of them are
    /// dropped, more with time, so that the programs behind them slow down (CoDel, RFC 8289), and a full queue
    /// drops the newest. For tunnels, whose datagrams carry connections with a congestion control of their own.
    /// Default `None`: a full queue drops the oldest.
    pub datagram_send_delay: Option<Duration>,
    /// The congestion controller. Default CUBIC with HyStart++.
    pub congestion: Algorithm,
    /// Lets NewReno and CUBIC, and Prague while it behaves like CUBIC, search for a larger window
    /// when the capacity of the path has risen since the last congestion event. Otherwise they grow
    /// at the speed of RFC 9002 §7 and RFC 9438. Default on.
    pub capacity_rise: bool,
    /// The first congestion window of a path in bytes, 2400 to 2^30. Default `None`: ten datagrams, as RFC 9002
    /// §7.2 recommends. Custom controllers choose their own.
    pub initial_window: Option<u64>,
    /// Creates custom controllers, which are used instead of `congestion`. Default `None`.
    pub controller_factory: Option<Arc<dyn ControllerFactory>>,
    /// Marks packets ECT(0) while the path is validated to carry ECN. Default on.
    pub ecn: bool,
    /// Longest time for which we delay an acknowledgement. Default 25 ms, below 2^14 ms.
    pub max_ack_delay: Duration,
    /// Lets the peer request how often we acknowledge, and sends such requests to a peer that
    /// supports them (draft-ietf-quic-ack-frequency-12). Default on.
    pub ack_frequency: bool,
    /// Ack-eliciting packets that the peer may receive without acknowledging them, if we send it requests; below 2^62.
    /// 1 acknowledges every second packet. Default `None`: an eighth of a large window, otherwise 1.
    pub ack_threshold: Option<u64>,
    /// Delay of acknowledgements that we request of the peer, below 2^14 ms. The peer has a minimum. Default
    /// `None`: a quarter of the round-trip time, and at most what the peer has announced.
    pub requested_max_ack_delay: Option<Duration>,
    /// Packets out of order after which the peer is asked to acknowledge at once, below 2^62; 0 for none. Default
    /// `None`: as many as [`packet_threshold`](Self::packet_threshold) has at that time.
    pub ack_reordering_threshold: Option<u64>,
    /// Accepts RESET_STREAM_AT frames, with which the peer resets a stream and still delivers its
    /// beginning (draft-ietf-quic-reliable-stream-reset-10). Default on.
    pub reset_stream_at: bool,
    /// Limits the rate at which each path sends, in bytes of UDP payload, on average over some
    /// milliseconds; the first ten datagrams of a path may leave at once. At least two datagrams a
    /// second are sent. Default `None`.
    pub max_send_rate: Option<Rate>,
    /// Shows the round-trip time to observers of the network by the latency spin bit (RFC 9000
    /// §17.4). One in sixteen connections, chosen at random, sends random bits instead. Default off.
    pub spin_bit: bool,
    /// Begins each packet number space with a random number below 2^29 instead of 0, so that packet
    /// numbers do not reveal the age of a connection, and cannot be guessed by a peer that
    /// acknowledges packets which it has not received (RFC 9000 §12.3, §21.4). Default off: packets
    /// grow by up to 3 bytes until the first one is acknowledged, and ACK frames of the peer too.
    pub random_packet_numbers: bool,
    /// Starts connections with the capacity of earlier ones to the same address (Careful Resume,
    /// RFC 9959): once the initial window is acknowledged and the round-trip time is that of the
    /// earlier connection, the congestion window becomes half of what the path carried then. If
    /// packets of this window are lost, the sender goes back to half of what has arrived. BBR sends
    /// at half of the rate instead, and returns to the rate that it has measured. Custom controllers do
    /// not use the memory. Default `None`.
    pub path_memory: Option<Arc<PathMemory>>,
    /// Number of packets after which keys are updated automatically. Default 2^20, at most 2^22.
    pub key_update_after: u64,
    /// Lets streams of one priority take turns. Otherwise a stream sends all that it has before the next one begins,
    /// in the order in which they were written to: small messages are complete earlier, and large ones hold back those
    /// behind them. Default on.
    pub fair_streams: bool,
    /// Pads 1-RTT packets that an acknowledgement answers to the size of full datagrams, so that observers do not learn
    /// the size of messages. Acknowledgements alone are not padded. Costs bandwidth. Default off.
    pub pad_to_mtu: bool,
    /// Bytes of handshake data of one encryption level that are kept until TLS reads them, 4096 (RFC 9000 §7.5) to
    /// 16 MiB (limit K570). A peer with more is refused with CRYPTO_BUFFER_EXCEEDED. Default `None`: 16 KiB, and 64 KiB
    /// for the flight of a server, which has its certificates.
    pub crypto_buffer: Option<u64>,
    /// Gaps that the reassembly of one stream may have, plus one for each 32 KiB of its window.
    /// Default 128.
    pub max_gaps_per_stream: usize,
    /// Gaps over all streams, growing with the window of the connection. Default 512.
    pub max_gaps: usize,
    /// Paths that may be open at once, 1 to 8 (limit K276). Default 1: several paths are not offered to the peer. With
    /// more, each unused path ID costs both ends a connection ID (RFC 10069).
    pub max_paths: u8,
    /// Chooses the path of each batch of data on a connection with several paths. Default
    /// [`PathSchedule::Earliest`]; programs may bring their own.
    pub path_scheduler: PathSchedulerChoice,
    /// Reports of the addresses from which packets arrive (draft-ietf-quic-address-discovery-00). Default
    /// [`AddressObservations::None`].
    pub address_observations: AddressObservations,
    /// Addresses of the peer that may be probed for direct paths, 0 to 8 (limit K285). Default 0: the search for direct paths
    /// is not offered to the peer. It needs several paths (draft-seemann-quic-nat-traversal-02, in the variant of the field).
    pub max_candidates: u8,
    /// Creates a sink for the records of each connection at its start, so that the handshake is
    /// recorded too. Default `None`.
    pub sinks: Option<Arc<dyn SinkFactory>>,
}

impl Default for TransportConfig {
    fn default() -> Self {
        let search = MtuSearchPace::default();
        Self {
            max_idle_timeout: Some(Duration::from_secs(30)),
            keep_alive_interval: None,
            handshake_timeout: Duration::from_secs(10),
            max_ptos: None,
            initial_rtt: Duration::from_millis(333),
            packet_threshold: 3,
            time_threshold: 9.0 / 8.0,
            persistent_congestion_threshold: 3,
            mtu: 1200,
            mtu_discovery: true,
            mtu_max: MAX_MTU,
            mtu_raise_interval: search.raise_interval,
            mtu_black_hole_delay: search.black_hole_delay,
            mtu_resolution: search.resolution,
            max_bidi_streams: 100,
            max_uni_streams: 100,
            stream_receive_window: 256 * 1024,
            stream_receive_window_max: 128 * 1024 * 1024,
            receive_window: 1024 * 1024,
            receive_window_max: 128 * 1024 * 1024,
            send_buffer_max: 256 * 1024 * 1024,
            unsent_limit: 256 * 1024,
            datagram_receive_buffer_size: Some(256 * 1024),
            datagram_receive_queue: 64,
            datagram_send_buffer_size: 256 * 1024,
            datagram_send_queue: 64,
            datagram_send_delay: None,
            congestion: Algorithm::Cubic,
            capacity_rise: true,
            initial_window: None,
            controller_factory: None,
            ecn: true,
            max_ack_delay: Duration::from_millis(25),
            ack_frequency: true,
            ack_threshold: None,
            requested_max_ack_delay: None,
            ack_reordering_threshold: None,
            reset_stream_at: true,
            max_send_rate: None,
            spin_bit: false,
            random_packet_numbers: false,
            path_memory: None,
            key_update_after: 1 << 20,
            fair_streams: true,
            pad_to_mtu: false,
            crypto_buffer: None,
            max_gaps_per_stream: 128,
            max_gaps: 512,
            max_paths: 1,
            path_scheduler: PathSchedulerChoice::default(),
            address_observations: AddressObservations::None,
            max_candidates: 0,
            sinks: None,
        }
    }
}

/// The scheduler of the paths of a connection.
#[derive(Clone, Debug)]
pub enum PathSchedulerChoice {
    /// One of those in `courser-recovery`.
    Builtin(PathSchedule),
    /// One of the program.
    Custom(Arc<dyn PathSchedulerFactory>),
}

impl Default for PathSchedulerChoice {
    fn default() -> Self {
        Self::Builtin(PathSchedule::default())
    }
}

impl PathSchedulerChoice {
    pub(crate) fn make(&self) -> Box<dyn PathScheduler> {
        match self {
            Self::Builtin(schedule) => schedule.make(),
            Self::Custom(factory) => factory.make(),
        }
    }
}

impl TransportConfig {
    /// Returns the largest path ID that the peer may use at first, if several paths are offered.
    pub(crate) fn initial_max_path_id(&self) -> Option<PathId> {
        let last = self.max_paths.checked_sub(1).filter(|last| *last > 0)?;
        Some(PathId::new(last.into()))
    }

    /// Returns the number of candidates that are accepted, if the search for direct paths is offered.
    pub(crate) fn candidate_limit(&self) -> Option<NonZeroU8> {
        NonZeroU8::new(self.max_candidates)
    }

    /// Creates the controller of a new path.
    pub(crate) fn new_controller(&self, mtu: u16, seed: u64) -> CongestionController {
        match &self.controller_factory {
            Some(factory) => CongestionController::custom(factory.make(mtu, seed)),
            None => {
                let algorithm = self.congestion;
                let mut controller = match self.initial_window {
                    None => CongestionController::new(algorithm, mtu, seed),
                    Some(window) => CongestionController::with_window(algorithm, mtu, seed, window),
                };
                if !self.capacity_rise {
                    controller.ignore_capacity_rise();
                }
                controller
            }
        }
    }

    /// Returns the values of requests for an ACK frequency that do not follow the path.
    pub(crate) fn fixed_ack_terms(&self) -> FixedTerms {
        FixedTerms {
            threshold: self.ack_threshold,
            delay: self.requested_max_ack_delay,
            reordering: self.ack_reordering_threshold,
        }
    }

    /// Returns the thresholds with which loss detection starts.
    pub(crate) fn loss_thresholds(&self) -> LossThresholds {
        LossThresholds::new(u64::from(self.packet_threshold), self.time_threshold)
    }

    /// Returns the settings for datagrams.
    pub(crate) fn datagrams(&self) -> DatagramLimits {
        DatagramLimits {
            send_bytes: self.datagram_send_buffer_size,
            send_count: self.datagram_send_queue,
            send_delay: self.datagram_send_delay,
            receive_bytes: self.datagram_receive_buffer_size.unwrap_or(0),
            receive_count: self.datagram_receive_queue,
        }
    }

    /// Returns the shortest acknowledgement delay that we offer: timers are no finer.
    pub(crate) fn min_ack_delay(&self) -> Duration {
        TIMER_GRANULARITY.min(self.max_ack_delay)
    }

    /// Creates the search for the datagram size of a new path.
    pub(crate) fn mtu_search(&self) -> MtuSearch {
        if self.mtu_discovery {
            MtuSearch::new(self.mtu, self.mtu_max).with_pace(MtuSearchPace {
                raise_interval: self.mtu_raise_interval,
                black_hole_delay: self.mtu_black_hole_delay,
                resolution: self.mtu_resolution,
            })
        } else {
            MtuSearch::disabled(self.mtu)
        }
    }

    /// Returns the settings for streams.
    pub(crate) fn streams(&self) -> StreamsConfig {
        StreamsConfig {
            max_bidi: self.max_bidi_streams,
            max_uni: self.max_uni_streams,
            stream_receive_window: self.stream_receive_window,
            stream_receive_window_max: self.stream_receive_window_max,
            receive_window: self.receive_window,
            receive_window_max: self.receive_window_max,
            unsent_limit: self.unsent_limit,
            send_buffer_max: self.send_buffer_max,
            max_gaps_per_stream: self.max_gaps_per_stream,
            max_gaps: self.max_gaps,
            reset_stream_at: self.reset_stream_at,
            are_fair: self.fair_streams,
        }
    }
}

/// Probe timeouts in a row after which a path counts as silent (limit K286). One or two happen on paths
/// that lose packets: at a loss of a tenth both probes of a timeout are lost once in a hundred times.
pub(crate) const SILENT_AFTER: u32 = 3;

#[cfg(test)]
mod tests;
