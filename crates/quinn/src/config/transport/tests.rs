use super::*;

#[test]
fn queues_of_datagrams_are_bounded_by_count_too() {
    let mut config = TransportConfig::default();
    config
        .datagram_receive_buffer_size(Some(usize::MAX))
        .datagram_send_buffer_size(usize::MAX);
    let built = config.build();
    assert_eq!(built.validate(), Ok(()));
    assert_eq!(built.datagram_receive_queue, 16_384);
    assert_eq!(built.datagram_send_queue, 16_384);
    let bytes = built.datagram_receive_buffer_size;
    assert_eq!(bytes, Some(128 << 20));
}

#[test]
fn huge_window_begins_with_a_part() {
    let mut config = TransportConfig::default();
    config.receive_window(VarInt::MAX);
    let built = config.build();
    assert_eq!(built.validate(), Ok(()));
    let window = (built.receive_window, built.receive_window_max);
    assert_eq!(window, (128 << 20, VarInt::MAX.into_inner()));
    config.receive_window(VarInt::from_u32(37));
    let built = config.build();
    assert_eq!((built.receive_window, built.receive_window_max), (37, 37));
}

#[test]
fn every_extreme_of_the_setters_is_valid() {
    let mut config = TransportConfig::default();
    let most = VarInt::MAX;
    config
        .max_concurrent_bidi_streams(most)
        .max_concurrent_uni_streams(most)
        .max_idle_timeout(Some(VarInt::from_u32(0).into()))
        .stream_receive_window(VarInt::from_u32(0))
        .send_window(0)
        .initial_rtt(Duration::ZERO)
        .initial_mtu(0)
        .mtu_discovery_config(Some(MtuDiscoveryConfig::up_to(0)))
        .datagram_receive_buffer_size(Some(0));
    let built = config.build();
    assert_eq!(built.validate(), Ok(()));
    assert_eq!(built.max_idle_timeout, None);
    config
        .send_window(u64::MAX)
        .initial_rtt(Duration::MAX)
        .initial_mtu(u16::MAX)
        .max_idle_timeout(Some(most.into()))
        .datagram_receive_buffer_size(None);
    assert_eq!(config.build().validate(), Ok(()));
}

#[test]
fn thresholds_and_windows_reach_courser_within_its_bounds() {
    let mut config = TransportConfig::default();
    let mut cubic = congestion::CubicConfig::default();
    cubic.initial_window(100_000);
    config
        .packet_threshold(10)
        .time_threshold(2.5)
        .persistent_congestion_threshold(5)
        .min_mtu(1300)
        .congestion_controller_factory(Arc::new(cubic.clone()));
    let built = config.build();
    assert_eq!(built.validate(), Ok(()));
    assert_eq!(built.packet_threshold, 10);
    assert_eq!(built.time_threshold.to_bits(), 2.5_f32.to_bits());
    assert_eq!(built.persistent_congestion_threshold, 5);
    assert_eq!(built.mtu, 1300);
    assert_eq!(built.initial_window, Some(100_000));
    let extremes = [
        (0, 0.0, 0, 0, 0),
        (u32::MAX, f32::INFINITY, u32::MAX, u16::MAX, u64::MAX),
    ];
    for (packets, time, timeouts, mtu, window) in extremes {
        cubic.initial_window(window);
        config
            .packet_threshold(packets)
            .time_threshold(time)
            .persistent_congestion_threshold(timeouts)
            .min_mtu(mtu)
            .congestion_controller_factory(Arc::new(cubic.clone()));
        assert_eq!(config.build().validate(), Ok(()), "{config:?}");
    }
    config.time_threshold(f32::NAN);
    assert_eq!(config.build().validate(), Ok(()));
}

#[test]
fn debug_shows_the_names_and_values_of_quinn() {
    let mut config = TransportConfig::default();
    config
        .send_window(1_000)
        .packet_threshold(7)
        .max_concurrent_bidi_streams(VarInt::from_u32(3))
        .max_idle_timeout(Some(VarInt::from_u32(1500).into()))
        .receive_window(VarInt::MAX);
    let text = format!("{config:?}");
    let expected = [
        "TransportConfig { max_concurrent_bidi_streams: 3, max_concurrent_uni_streams: 100",
        "max_idle_timeout: Some(1500)",
        "receive_window: 4611686018427387903",
        "send_window: 1000",
        "stream_receive_window: 1250000",
        "packet_threshold: 7, time_threshold: 1.125, initial_rtt: 333ms, initial_mtu: 1200, min_mtu: 1200",
        "datagram_send_buffer_size: 1048576, enable_segmentation_offload: true",
    ];
    for part in expected {
        assert!(text.contains(part), "{part} in {text}");
    }
    let mut cubic = congestion::CubicConfig::default();
    assert_eq!(
        format!("{cubic:?}"),
        "CubicConfig { initial_window: 12000 }"
    );
    cubic.initial_window(1000);
    assert_eq!(format!("{cubic:?}"), "CubicConfig { initial_window: 1000 }");
}
