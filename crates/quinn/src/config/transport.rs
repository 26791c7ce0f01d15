//! Settings of connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use courser_quic as quic;

use super::{AckFrequencyConfig, MAX_MTU, MIN_MTU, MtuDiscoveryConfig};
use crate::congestion::{self, ControllerFactory};
use crate::{VarInt, VarIntBoundsExceeded};

/// Settings of connections, with courser's defaults: windows grow automatically until they are set.
#[derive(Clone)]
pub struct TransportConfig {
    inner: quic::TransportConfig,
    /// What has no place there, or not in this form.
    given: Given,
}

/// Settings as the program has given them.
#[derive(Clone)]
struct Given {
    stream_receive_window: Option<VarInt>,
    receive_window: Option<VarInt>,
    send_window: Option<u64>,
    packet_threshold: u32,
    time_threshold: f32,
    initial_mtu: u16,
    min_mtu: u16,
    mtu_discovery_config: Option<MtuDiscoveryConfig>,
    ack_frequency_config: Option<AckFrequencyConfig>,
    persistent_congestion_threshold: u32,
    crypto_buffer_size: usize,
    segmentation_offload: bool,
}

/// Datagrams that wait to be read or to be sent (limit K231). quinn limits their bytes only; so do these
/// queues, unless datagrams are smaller than 80 bytes.
const DATAGRAM_QUEUE: usize = 16_384;

/// The largest window that is granted at once (limit K232). Larger ones are reached by growth, within the
/// budget of the endpoint.
pub(crate) const WINDOW_AT_ONCE: u64 = 128 << 20;

/// The largest queue of datagrams in bytes that courser accepts.
const MAX_DATAGRAM_BYTES: usize = 128 << 20;

impl Default for TransportConfig {
    fn default() -> Self {
        let inner = quic::TransportConfig {
            datagram_receive_buffer_size: Some(1_250_000),
            datagram_receive_queue: DATAGRAM_QUEUE,
            datagram_send_buffer_size: 1 << 20,
            datagram_send_queue: DATAGRAM_QUEUE,
            ..quic::TransportConfig::default()
        };
        let given = Given {
            stream_receive_window: None,
            receive_window: None,
            send_window: None,
            packet_threshold: inner.packet_threshold,
            time_threshold: inner.time_threshold,
            initial_mtu: inner.mtu,
            min_mtu: MIN_MTU,
            mtu_discovery_config: Some(MtuDiscoveryConfig::up_to(inner.mtu_max)),
            ack_frequency_config: Some(AckFrequencyConfig::default()),
            persistent_congestion_threshold: inner.persistent_congestion_threshold,
            crypto_buffer_size: 16 * 1024,
            segmentation_offload: true,
        };
        Self { inner, given }
    }
}

impl TransportConfig {
    /// Sets how many bidirectional streams the peer may have open. Default 100.
    pub fn max_concurrent_bidi_streams(&mut self, value: VarInt) -> &mut Self {
        self.inner.max_bidi_streams = value.into_inner().min(1 << 60);
        self
    }

    /// Sets how many unidirectional streams the peer may have open. Default 100.
    pub fn max_concurrent_uni_streams(&mut self, value: VarInt) -> &mut Self {
        self.inner.max_uni_streams = value.into_inner().min(1 << 60);
        self
    }

    /// Sets the time without packets after which a connection ends; `None` sets no limit. Default 30 s.
    pub fn max_idle_timeout(&mut self, value: Option<IdleTimeout>) -> &mut Self {
        let timeout = value.map(|timeout| Duration::from_millis(timeout.0.into_inner()));
        self.inner.max_idle_timeout = timeout.filter(|timeout| !timeout.is_zero());
        self
    }

    /// Fixes the window of each stream in bytes. Above 128 MiB it begins with that and grows. By default it begins with 256 KiB and grows up to 128 MiB.
    pub fn stream_receive_window(&mut self, value: VarInt) -> &mut Self {
        let (window, max) = window(value);
        self.given.stream_receive_window = Some(value);
        (
            self.inner.stream_receive_window,
            self.inner.stream_receive_window_max,
        ) = (window, max);
        self
    }

    /// Fixes the window of the connection in bytes. Above 128 MiB it begins with that and grows. By default it begins with 1 MiB and grows up to 128 MiB.
    pub fn receive_window(&mut self, value: VarInt) -> &mut Self {
        self.given.receive_window = Some(value);
        (self.inner.receive_window, self.inner.receive_window_max) = window(value);
        self
    }

    /// Sets the maximum of bytes kept for sending, over all streams; at least 4096. By default it follows the
    /// congestion window, up to 256 MiB.
    pub fn send_window(&mut self, value: u64) -> &mut Self {
        let bytes = value.clamp(4096, VarInt::MAX.into_inner());
        self.given.send_window = Some(value);
        self.inner.send_buffer_max = bytes;
        self.inner.unsent_limit = courser_quic::TransportConfig::default()
            .unsent_limit
            .min(bytes);
        self
    }

    /// Lets streams of the same priority take turns. Otherwise each sends all that it has, in the order in which they
    /// were written to. Default on.
    pub fn send_fairness(&mut self, value: bool) -> &mut Self {
        self.inner.fair_streams = value;
        self
    }

    /// Sets the packets by which a later one must be acknowledged before a packet counts as lost, 3 to 300. Default
    /// 3. On a path that reorders packets the threshold rises by itself.
    pub fn packet_threshold(&mut self, value: u32) -> &mut Self {
        self.given.packet_threshold = value;
        self.inner.packet_threshold = value.clamp(3, 300);
        self
    }

    /// Sets the round trips after which a packet counts as lost if a later one was acknowledged, above 1 and up to 8.
    /// Default 9/8. On a path that reorders packets the threshold rises by itself.
    pub fn time_threshold(&mut self, value: f32) -> &mut Self {
        self.given.time_threshold = value;
        if !value.is_nan() {
            self.inner.time_threshold = value.clamp(1.0 + 1.0 / 64.0, 8.0);
        }
        self
    }

    /// Sets the round-trip time assumed before the first sample, up to 60 s. Default 333 ms.
    pub fn initial_rtt(&mut self, value: Duration) -> &mut Self {
        let (least, most) = (Duration::from_micros(1), Duration::from_secs(60));
        self.inner.initial_rtt = value.clamp(least, most);
        self
    }

    /// Sets the payload of datagrams before the search for the path MTU, at least 1200 bytes, the default.
    pub fn initial_mtu(&mut self, value: u16) -> &mut Self {
        self.given.initial_mtu = value;
        self
    }

    /// Sets a payload of datagrams that every path carries, at least 1200 bytes, the default: connections begin with
    /// it if `initial_mtu` is smaller. courser returns to 1200 bytes if a path carries no more.
    pub fn min_mtu(&mut self, value: u16) -> &mut Self {
        self.given.min_mtu = value;
        self
    }

    /// Sets the search for the path MTU; `None` disables it. By default it has no upper bound but the
    /// interface and the peer.
    pub fn mtu_discovery_config(&mut self, value: Option<MtuDiscoveryConfig>) -> &mut Self {
        self.inner.mtu_discovery = value.is_some();
        if let Some(config) = &value {
            config.apply(&mut self.inner);
        }
        self.given.mtu_discovery_config = value;
        self
    }

    /// Pads datagrams with application data to their full size, so that observers do not learn the size of messages.
    /// Default off.
    pub fn pad_to_mtu(&mut self, value: bool) -> &mut Self {
        self.inner.pad_to_mtu = value;
        self
    }

    /// Enables or disables requests to the peer to acknowledge less often. Default on.
    pub fn ack_frequency_config(&mut self, value: Option<AckFrequencyConfig>) -> &mut Self {
        self.inner.ack_frequency = value.is_some();
        if let Some(config) = &value {
            config.apply(&mut self.inner);
        }
        self.given.ack_frequency_config = value;
        self
    }

    /// Sets the probe timeouts without any acknowledgement after which the congestion window falls to its minimum, 1
    /// to 100. Default 3.
    pub fn persistent_congestion_threshold(&mut self, value: u32) -> &mut Self {
        self.given.persistent_congestion_threshold = value;
        self.inner.persistent_congestion_threshold = value.clamp(1, 100);
        self
    }

    /// Sends a PING after this much time without packets. Default off.
    pub fn keep_alive_interval(&mut self, value: Option<Duration>) -> &mut Self {
        self.inner.keep_alive_interval = value;
        self
    }

    /// Sets the bytes of handshake data that are kept until TLS reads them, 4096 to 16 MiB. Unless it is set, 16 KiB,
    /// and 64 KiB for the certificates of a server.
    pub fn crypto_buffer_size(&mut self, value: usize) -> &mut Self {
        self.given.crypto_buffer_size = value;
        self.inner.crypto_buffer = Some((value as u64).clamp(4096, 16 << 20));
        self
    }

    /// Shows the round-trip time to the network by the spin bit. Default off.
    pub fn allow_spin(&mut self, value: bool) -> &mut Self {
        self.inner.spin_bit = value;
        self
    }

    /// Sets the bytes of datagrams that wait to be read; `None` accepts no datagrams. Default 1.25 MB.
    pub fn datagram_receive_buffer_size(&mut self, value: Option<usize>) -> &mut Self {
        let bytes = value.map(|bytes| bytes.clamp(2, MAX_DATAGRAM_BYTES));
        self.inner.datagram_receive_buffer_size = bytes;
        self
    }

    /// Sets the bytes of datagrams that wait to be sent; 0 disables sending. Default 1 MiB.
    pub fn datagram_send_buffer_size(&mut self, value: usize) -> &mut Self {
        self.inner.datagram_send_buffer_size = value.min(MAX_DATAGRAM_BYTES);
        self
    }

    /// Sets the congestion controller. Default [`congestion::CubicConfig`].
    pub fn congestion_controller_factory(
        &mut self,
        factory: Arc<dyn ControllerFactory + Send + Sync + 'static>,
    ) -> &mut Self {
        match factory.builtin() {
            Some(builtin) => {
                let window = builtin.initial_window;
                self.inner.congestion = builtin.algorithm;
                self.inner.initial_window = window.map(|bytes| bytes.clamp(2400, 1 << 30));
                self.inner.controller_factory = None;
            }
            None => self.inner.controller_factory = Some(congestion::custom(factory)),
        }
        self
    }

    /// `false` sends each datagram with a system call of its own, on all connections of an endpoint whose
    /// configuration this is.
    pub fn enable_segmentation_offload(&mut self, enabled: bool) -> &mut Self {
        self.given.segmentation_offload = enabled;
        self
    }

    /// Records the first connection that begins with these settings; `None` records none.
    #[cfg(feature = "qlog")]
    pub fn qlog_stream(&mut self, stream: Option<super::QlogStream>) -> &mut Self {
        self.inner.sinks = stream.map(|stream| stream.sinks());
        self
    }

    /// Returns true if batches may be split by the system.
    pub(crate) fn has_segmentation_offload(&self) -> bool {
        self.given.segmentation_offload
    }

    /// Returns the settings for courser, which are valid together.
    pub(crate) fn build(&self) -> quic::TransportConfig {
        let mut config = self.inner.clone();
        let mtu = self.given.initial_mtu.max(self.given.min_mtu);
        config.mtu = mtu.clamp(MIN_MTU, MAX_MTU);
        config.mtu_max = config.mtu_max.max(config.mtu);
        config
    }
}

/// The default window of a stream in quinn.
const STREAM_WINDOW: u64 = 1_250_000;

/// Returns the size of a window at first, and the largest one, for a fixed size.
fn window(value: VarInt) -> (u64, u64) {
    let size = value.into_inner().max(1);
    (size.min(WINDOW_AT_ONCE), size)
}

impl fmt::Debug for TransportConfig {
    /// Shows quinn's names. Windows that the program has not set have quinn's defaults, because courser has no single
    /// value for them. Other settings that it has not changed have the values of courser.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inner, given } = self;
        let stream_window = given.stream_receive_window;
        let stream_window = stream_window.map_or(STREAM_WINDOW, VarInt::into_inner);
        let window = given.receive_window.unwrap_or(VarInt::MAX);
        let send_window = given.send_window.unwrap_or(8 * STREAM_WINDOW);
        let idle = inner.max_idle_timeout.map(|timeout| timeout.as_millis());
        let mut fields = f.debug_struct("TransportConfig");
        fields
            .field("max_concurrent_bidi_streams", &inner.max_bidi_streams)
            .field("max_concurrent_uni_streams", &inner.max_uni_streams)
            .field("max_idle_timeout", &idle)
            .field("stream_receive_window", &stream_window)
            .field("receive_window", &window)
            .field("send_window", &send_window)
            .field("send_fairness", &inner.fair_streams)
            .field("packet_threshold", &given.packet_threshold)
            .field("time_threshold", &given.time_threshold)
            .field("initial_rtt", &inner.initial_rtt)
            .field("initial_mtu", &given.initial_mtu)
            .field("min_mtu", &given.min_mtu)
            .field("mtu_discovery_config", &given.mtu_discovery_config)
            .field("pad_to_mtu", &inner.pad_to_mtu)
            .field("ack_frequency_config", &given.ack_frequency_config)
            .field(
                "persistent_congestion_threshold",
                &given.persistent_congestion_threshold,
            )
            .field("keep_alive_interval", &inner.keep_alive_interval)
            .field("crypto_buffer_size", &given.crypto_buffer_size)
            .field("allow_spin", &inner.spin_bit)
            .field(
                "datagram_receive_buffer_size",
                &inner.datagram_receive_buffer_size,
            )
            .field(
                "datagram_send_buffer_size",
                &inner.datagram_send_buffer_size,
            )
            .field("enable_segmentation_offload", &given.segmentation_offload);
        if cfg!(feature = "qlog") {
            fields.field("qlog_stream", &inner.sinks.is_some());
        }
        fields.finish_non_exhaustive()
    }
}

/// A time without packets, in whole milliseconds below 2^62. 0 sets no limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct IdleTimeout(VarInt);

impl From<VarInt> for IdleTimeout {
    fn from(milliseconds: VarInt) -> Self {
        Self(milliseconds)
    }
}

impl TryFrom<Duration> for IdleTimeout {
    type Error = VarIntBoundsExceeded;
    fn try_from(timeout: Duration) -> Result<Self, VarIntBoundsExceeded> {
        timeout.as_millis().try_into().map(Self)
    }
}

impl fmt::Debug for IdleTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
