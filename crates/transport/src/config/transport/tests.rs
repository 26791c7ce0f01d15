use courser_recovery::Controller as _;

use super::*;

#[test]
fn default_is_valid() {
    assert_eq!(TransportConfig::default().validate(), Ok(()));
}

#[test]
fn small_mtu_names_field_value_and_range() {
    let config = TransportConfig {
        mtu: 1199,
        ..TransportConfig::default()
    };
    let error = config.validate().expect_err("1199 is too small");
    assert_eq!(error.to_string(), "mtu: is 1199, allowed is 1200 to 65507");
}

#[test]
fn thresholds_and_windows_outside_their_ranges_are_refused() {
    let valid = TransportConfig {
        packet_threshold: 300,
        time_threshold: 8.0,
        persistent_congestion_threshold: 100,
        initial_window: Some(50_000),
        ..TransportConfig::default()
    };
    assert_eq!(valid.validate(), Ok(()));
    assert_eq!(valid.new_controller(1200, 1).window(), 50_000);
    let thresholds = valid.loss_thresholds();
    assert_eq!((thresholds.packets(), thresholds.round_trips()), (300, 8.0));
    let refused = |change: fn(&mut TransportConfig)| {
        let mut config = valid.clone();
        change(&mut config);
        config.validate().expect_err("out of range").to_string()
    };
    assert_eq!(
        refused(|config| config.packet_threshold = 2),
        "packet_threshold: is 2, allowed is 3 to 300"
    );
    assert_eq!(
        refused(|config| config.time_threshold = 1.0),
        "time_threshold: is 1, allowed is above 1 to 8"
    );
    let nan = refused(|config| config.time_threshold = f32::NAN);
    assert!(nan.contains("is NaN"), "{nan}");
    refused(|config| config.persistent_congestion_threshold = 0);
    refused(|config| config.initial_window = Some(2399));
}

#[test]
fn values_of_the_search_and_of_requests_name_field_value_and_range() {
    type Change = fn(&mut TransportConfig);
    let varint = (1_u64 << 62) - 1;
    let times = format!("allowed is 1000 to {}", u64::MAX);
    let cases: [(Change, String); 7] = [
        (
            |config| config.datagram_send_delay = Some(Duration::ZERO),
            "datagram_send_delay (ms): is 0, allowed is 1 to 10000".to_owned(),
        ),
        (
            |config| config.mtu_raise_interval = Duration::from_micros(999),
            format!("mtu_raise_interval (us): is 999, {times}"),
        ),
        (
            |config| config.mtu_resolution = 0,
            "mtu_resolution: is 0, allowed is 1 to 65535".to_owned(),
        ),
        (
            |config| config.requested_max_ack_delay = Some(Duration::from_millis(1 << 14)),
            "requested_max_ack_delay (us): is 16384000, allowed is 0 to 16383000".to_owned(),
        ),
        (
            |config| config.ack_threshold = Some(1 << 62),
            format!("ack_threshold: is {}, allowed is 0 to {varint}", varint + 1),
        ),
        (
            |config| config.ack_reordering_threshold = Some(u64::MAX),
            format!(
                "ack_reordering_threshold: is {}, allowed is 0 to {varint}",
                u64::MAX
            ),
        ),
        (
            |config| config.crypto_buffer = Some(4095),
            "crypto_buffer: is 4095, allowed is 4096 to 16777216".to_owned(),
        ),
    ];
    for (change, text) in cases {
        let mut config = TransportConfig::default();
        change(&mut config);
        let error = config.validate().expect_err(&text).to_string();
        assert_eq!(error, text);
    }
    let least_and_most = TransportConfig {
        mtu_raise_interval: Duration::from_millis(1),
        mtu_black_hole_delay: Some(Duration::ZERO),
        mtu_resolution: u16::MAX,
        ack_threshold: Some(varint),
        requested_max_ack_delay: Some(Duration::from_millis((1 << 14) - 1)),
        ack_reordering_threshold: Some(0),
        crypto_buffer: Some(16 << 20),
        ..TransportConfig::default()
    };
    assert_eq!(least_and_most.validate(), Ok(()));
    let any_delay = TransportConfig {
        mtu_black_hole_delay: Some(Duration::MAX),
        ..TransportConfig::default()
    };
    assert_eq!(any_delay.validate(), Ok(()), "no delay is too long");
}

#[test]
fn times_of_zero_name_the_field_the_value_and_the_range() {
    let range = format!("is 0, allowed is 1 to {}", u64::MAX);
    let config = TransportConfig {
        handshake_timeout: Duration::ZERO,
        ..TransportConfig::default()
    };
    let error = config.validate().expect_err("no time").to_string();
    assert_eq!(error, format!("handshake_timeout (us): {range}"));
    let config = TransportConfig {
        keep_alive_interval: Some(Duration::ZERO),
        ..TransportConfig::default()
    };
    let error = config
        .validate()
        .expect_err("a PING at every instant")
        .to_string();
    assert_eq!(error, format!("keep_alive_interval (us): {range}"));
    let config = TransportConfig {
        handshake_timeout: Duration::MAX,
        keep_alive_interval: Some(Duration::from_micros(1)),
        ..TransportConfig::default()
    };
    assert_eq!(config.validate(), Ok(()), "the most and the least");
}

#[test]
fn limit_of_probe_timeouts_is_at_least_the_number_that_makes_a_path_silent() {
    let of = |max_ptos| TransportConfig {
        max_ptos: Some(max_ptos),
        ..TransportConfig::default()
    };
    for (limit, is_valid) in [(0, false), (2, false), (3, true), (32, true), (33, false)] {
        let checked = of(limit).validate();
        assert_eq!(checked.is_ok(), is_valid, "{limit}");
    }
    let error = of(2).validate().expect_err("too few").to_string();
    assert_eq!(error, "max_ptos: is 2, allowed is 3 to 32");
}

#[test]
fn window_maximum_below_its_start_is_refused() {
    let config = TransportConfig {
        receive_window_max: 5,
        ..TransportConfig::default()
    };
    assert_eq!(
        config.validate().expect_err("below").field,
        "receive_window_max"
    );
}

#[test]
fn number_of_paths_is_one_to_eight() {
    for (max_paths, is_valid) in [(0, false), (1, true), (8, true), (9, false)] {
        let config = TransportConfig {
            max_paths,
            ..TransportConfig::default()
        };
        assert_eq!(config.validate().is_ok(), is_valid, "{max_paths}");
    }
    let offered = |max_paths| {
        let config = TransportConfig {
            max_paths,
            ..TransportConfig::default()
        };
        config.initial_max_path_id()
    };
    assert_eq!(offered(1), None);
    assert_eq!(offered(3), Some(courser_wire::PathId::new(2)));
}
