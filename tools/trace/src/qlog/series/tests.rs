use super::*;

const TRACE: &str = concat!(
    "\u{1e}{\"trace\":{}}\n",
    "\u{1e}{\"time\":0,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":",
    "\"1RTT\",\"packet_number\":0},\"raw\":{\"length\":100},\"frames\":[{\"frame_type\":\"ping\"}]}}\n",
    "\u{1e}{\"time\":5,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":",
    "\"1RTT\",\"packet_number\":1},\"raw\":{\"length\":200},\"frames\":[{\"frame_type\":\"ping\"}]}}\n",
    "\u{1e}{\"time\":20,\"name\":\"quic:packet_received\",\"data\":{\"header\":{\"packet_type\":",
    "\"1RTT\",\"packet_number\":9},\"raw\":{\"length\":30},\"frames\":[{\"frame_type\":\"ack\",",
    "\"acked_ranges\":[[1]]}]}}\n",
    "\u{1e}{\"time\":20,\"name\":\"quic:packet_lost\",\"data\":{\"header\":{\"packet_type\":",
    "\"1RTT\",\"packet_number\":0}}}\n",
    "\u{1e}{\"time\":20,\"name\":\"recovery:metrics_updated\",\"data\":{\"congestion_window\":12000,",
    "\"latest_rtt\":15,\"min_rtt\":0}}\n",
);

#[test]
fn packets_are_plotted_at_the_bytes_sent_so_far() {
    let (series, summary) = Series::of(&mut Reader::new(TRACE.as_bytes()).expect("a header"), 0.01);
    assert_eq!(series.sent.as_slice(), [(0.0, 100.0), (0.005, 300.0)]);
    assert_eq!(series.acked.as_slice(), [(0.02, 300.0)]);
    assert_eq!(series.lost.as_slice(), [(0.02, 100.0)]);
    assert_eq!(series.losses.as_slice(), [0.02]);
    assert_eq!(series.congestion_window.as_slice(), [(0.02, 12_000.0)]);
    assert_eq!(series.latest_rtt.as_slice(), [(0.02, 0.015)]);
    assert!(series.min_rtt.as_slice().is_empty(), "zero is not a sample");
    assert_eq!(series.send_rate.as_slice(), [(0.01, 240_000.0)]);
    assert_eq!(summary.lost.packets, 1);
}
