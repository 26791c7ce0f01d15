use super::*;

#[test]
fn last_of_two_simultaneous_changes_applies() {
    let spec: LinkSpec = "8mbit,rate@1s=16mbit,rate@1s=80mbit,rate@2s=8kbit"
        .parse()
        .expect("the specification is valid");
    let mut hop = Hop::new(&spec, 1, 0, Duration::ZERO);
    hop.advance(Time::from_nanos(1_500_000_000));
    let rate = |hop: &Hop| {
        let bottleneck = hop.bottleneck.as_ref().expect("the hop has a rate");
        bottleneck.rate().as_bytes_per_second()
    };
    assert_eq!(rate(&hop), 10_000_000);
    hop.advance(Time::from_nanos(2_000_000_000));
    assert_eq!(rate(&hop), 1_000);
}

#[test]
fn queue_limits_follow_from_rate_and_time() {
    let limit_of = |text: &str| limit(&text.parse().expect(text), Duration::from_millis(50));
    assert_eq!(limit_of("8mbit"), Limit::Bytes(100_000));
    assert_eq!(limit_of("8mbit,queue=64k"), Limit::Bytes(64_000));
    assert_eq!(limit_of("8mbit,queue=64KiB"), Limit::Bytes(65_536));
    assert_eq!(limit_of("8mbit,queue=25p"), Limit::Packets(25));
    assert_eq!(limit_of("8mbit,queue=20ms"), Limit::Bytes(20_000));
    assert_eq!(
        limit_of("8mbit,rtt=80ms,queue=1.5bdp"),
        Limit::Bytes(120_000)
    );
    // The `rtt` argument applies if the specification has only a delay.
    assert_eq!(limit_of("8mbit,1ms,queue=1bdp"), Limit::Bytes(50_000));
}
