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
        .mtu_discovery_config(Some(MtuDiscoveryConfig { upper_bound: 0 }))
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
