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
fn fairness_padding_and_handshake_buffer_reach_courser() {
    let mut config = TransportConfig::default();
    let built = config.build();
    assert!(built.fair_streams && !built.pad_to_mtu);
    assert_eq!(built.crypto_buffer, None);
    config.send_fairness(false).pad_to_mtu(true);
    for (given, bytes) in [(0, 4096), (100_000, 100_000), (usize::MAX, 16 << 20)] {
        config.crypto_buffer_size(given);
        let built = config.build();
        assert_eq!(built.validate(), Ok(()));
        assert!(!built.fair_streams && built.pad_to_mtu);
        assert_eq!(built.crypto_buffer, Some(bytes), "{given}");
    }
}

#[test]
fn values_of_the_search_and_of_ack_frequency_reach_courser() {
    let mut config = TransportConfig::default();
    let (mut search, mut acks) = (MtuDiscoveryConfig::default(), AckFrequencyConfig::default());
    config.ack_frequency_config(Some(acks.clone()));
    config.mtu_discovery_config(Some(search.clone()));
    let (built, own) = (config.build(), quic::TransportConfig::default());
    assert_eq!(built.mtu_max, 1452);
    assert_eq!(built.mtu_raise_interval, own.mtu_raise_interval);
    assert_eq!(built.mtu_resolution, own.mtu_resolution);
    assert_eq!(
        (built.ack_threshold, built.mtu_black_hole_delay),
        (None, None)
    );

    let second = Duration::from_secs(1);
    search
        .interval(second)
        .black_hole_cooldown(second * 2)
        .minimum_change(30);
    acks.ack_eliciting_threshold(VarInt::from_u32(10))
        .max_ack_delay(Some(second))
        .reordering_threshold(VarInt::from_u32(5));
    config.ack_frequency_config(Some(acks.clone()));
    config.mtu_discovery_config(Some(search.clone()));
    let built = config.build();
    assert_eq!(built.mtu_raise_interval, second);
    assert_eq!(built.mtu_black_hole_delay, Some(second * 2));
    assert_eq!(built.mtu_resolution, 30);
    assert_eq!(built.ack_threshold, Some(10));
    assert_eq!(built.requested_max_ack_delay, Some(second));
    assert_eq!(built.ack_reordering_threshold, Some(5));

    for (time, size, count) in [
        (Duration::ZERO, 0, VarInt::from_u32(0)),
        (Duration::MAX, u16::MAX, VarInt::MAX),
    ] {
        search
            .interval(time)
            .black_hole_cooldown(time)
            .minimum_change(size);
        acks.ack_eliciting_threshold(count)
            .max_ack_delay(Some(time))
            .reordering_threshold(count);
        config.ack_frequency_config(Some(acks.clone()));
        config.mtu_discovery_config(Some(search.clone()));
        assert_eq!(config.build().validate(), Ok(()), "{config:?}");
    }
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
    assert_eq!(
        format!("{:?}", AckFrequencyConfig::default()),
        "AckFrequencyConfig { ack_eliciting_threshold: 1, max_ack_delay: None, reordering_threshold: 2 }"
    );
    assert_eq!(
        format!("{:?}", MtuDiscoveryConfig::default()),
        "MtuDiscoveryConfig { interval: 600s, upper_bound: 1452, minimum_change: 20, black_hole_cooldown: 60s }"
    );
    let mut cubic = congestion::CubicConfig::default();
    assert_eq!(
        format!("{cubic:?}"),
        "CubicConfig { initial_window: 12000 }"
    );
    cubic.initial_window(1000);
    assert_eq!(format!("{cubic:?}"), "CubicConfig { initial_window: 1000 }");
}
