//! Random settings of a connection, each within its range.

use std::time::Duration;

use courser_recovery::Algorithm;
use courser_transport::TransportConfig;

use crate::common::random::SeededRandom;

/// Not `Algorithm::ALL`: with another order, the seeds would draw other settings.
const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::NewReno,
    Algorithm::Cubic,
    Algorithm::Prague,
    Algorithm::Bbr,
];

/// Draws settings for paths that carry full datagrams of `mtu` bytes.
pub fn settings(random: &mut SeededRandom, mtu: u16) -> TransportConfig {
    let stream_window = random.pick(&[700, 5_000, 60_000, 256 << 10, 4 << 20]);
    let window = random.pick(&[700, 5_000, 60_000, 1 << 20, 16 << 20]);
    let buffer = random.pick(&[4096, 64 << 10, 16 << 20]);
    let streams = [0, 1, 2, 5, 100, 100];
    TransportConfig {
        max_idle_timeout: Some(Duration::from_millis(
            random.pick(&[1000, 2000, 5000, 10_000, 30_000]),
        )),
        keep_alive_interval: random.percent(20).then(|| random.millis(100, 5000)),
        initial_rtt: random.pick(&[5, 100, 333, 333].map(Duration::from_millis)),
        mtu,
        mtu_discovery: random.percent(70),
        mtu_max: random.pick(&[1500, 9000, 65_507]),
        max_bidi_streams: random.pick(&streams),
        max_uni_streams: random.pick(&streams),
        stream_receive_window: stream_window,
        stream_receive_window_max: stream_window * random.pick(&[1, 64]),
        receive_window: window,
        receive_window_max: window * random.pick(&[1, 64]),
        send_buffer_max: buffer,
        unsent_limit: random.pick(&[4096, 256 << 10]).min(buffer),
        congestion: random.pick(&ALGORITHMS),
        ecn: random.percent(70),
        max_ack_delay: random.pick(&[0, 1, 25, 25, 200].map(Duration::from_millis)),
        ack_frequency: random.percent(70),
        key_update_after: random.pick(&[1, 10, 100, 1 << 20, 1 << 20]),
        max_gaps_per_stream: random.pick(&[1, 4, 128]),
        max_gaps: random.pick(&[1, 16, 512]),
        ..TransportConfig::default()
    }
}
