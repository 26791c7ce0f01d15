use std::collections::BTreeSet;

use bytes::Bytes;
use courser_base::Ecn;
use proptest::prelude::*;

use super::*;

/// A link and the packets that left it.
struct Bench {
    link: Link,
    arrived: Vec<(Time, Packet)>,
}

impl Bench {
    fn new(spec: &str) -> Self {
        Self::seeded(spec, 1)
    }

    fn seeded(spec: &str, seed: u64) -> Self {
        let spec = spec
            .parse()
            .unwrap_or_else(|error| panic!("{spec}: {error}"));
        Self {
            link: Link::new(&spec, seed),
            arrived: Vec::new(),
        }
    }

    /// Sends `count` packets of 972 bytes (1000 with headers), one each `gap_us`, and waits for
    /// the last to leave.
    fn run(mut self, count: u64, gap_us: u64) -> Self {
        for number in 1..=count {
            let now = Time::from_nanos((number - 1) * gap_us * 1_000);
            self.poll_until(now);
            self.link.send(now, packet(number, Ecn::Ect0));
        }
        self.poll_until(Time::MAX);
        self
    }

    /// Polls at each time that the link announces, up to `now`.
    fn poll_until(&mut self, now: Time) {
        while let Some(next) = self.link.next_time().filter(|next| *next <= now) {
            while let Some((at, packet)) = self.link.poll_with_time(next) {
                assert_eq!(at, next, "left earlier than announced");
                self.arrived.push((at, packet));
            }
        }
    }

    fn numbers(&self) -> Vec<u64> {
        self.arrived
            .iter()
            .map(|(_, packet)| number(packet))
            .collect()
    }

    /// Returns the numbers up to `count` that did not arrive.
    fn missing(&self, count: u64) -> Vec<u64> {
        let seen: BTreeSet<u64> = self.numbers().into_iter().collect();
        (1..=count)
            .filter(|number| !seen.contains(number))
            .collect()
    }
}

fn packet(number: u64, ecn: Ecn) -> Packet {
    let mut payload = vec![0x40; 972];
    payload[964..].copy_from_slice(&number.to_be_bytes());
    Packet {
        source: ([10, 0, 0, 1], 1000).into(),
        destination: ([10, 0, 0, 2], 443).into(),
        ecn,
        payload: payload.into(),
    }
}

fn number(packet: &Packet) -> u64 {
    let end = packet.payload[964..972]
        .try_into()
        .expect("the payload ends with 8 bytes");
    u64::from_be_bytes(end)
}

#[test]
fn link_without_effects_delivers_at_once() {
    let bench = Bench::new("none").run(100, 10);
    assert_eq!(bench.numbers(), (1..=100).collect::<Vec<_>>());
    assert!(
        bench
            .arrived
            .iter()
            .all(|(at, packet)| at.as_nanos() == (number(packet) - 1) * 10_000)
    );
}

#[test]
fn rate_counts_headers_and_is_exact_over_a_long_run() {
    // 1000 bytes at 24 Mbit/s are 333333 1/3 ns.
    let bench = Bench::new("24mbit,40ms,queue=1G").run(90_000, 100);
    let (last, _) = bench.arrived.last().expect("packets have arrived");
    assert_eq!(bench.arrived.len(), 90_000);
    assert_eq!(last.as_nanos(), 30_000_000_000 + 40_000_000);
    let stats = bench.link.stats();
    assert_eq!(stats.wire_bytes_out, 90_000_000);
    assert_eq!(stats.bytes_out, 90_000 * 972);
}

#[test]
fn ipv6_headers_are_twenty_bytes_longer() {
    let mut link = Link::new(&"8mbit".parse().expect("the specification is valid"), 1);
    let end: std::net::SocketAddr = "[2001:db8::1]:1"
        .parse()
        .expect("the specification is valid");
    link.send(
        Time::ZERO,
        Packet {
            source: end,
            destination: end,
            ecn: Ecn::NotEct,
            payload: Bytes::from(vec![0; 952]),
        },
    );
    assert!(link.poll(Time::from_nanos(999_999)).is_none());
    assert_eq!(link.next_time(), Some(Time::from_nanos(1_000_000)));
    assert!(link.poll(Time::from_nanos(1_000_000)).is_some());
    assert_eq!(link.next_time(), None);
}

#[test]
fn random_loss_matches_its_probability() {
    for (text, low, high) in [
        ("0.1%", 60, 145),
        ("1%", 880, 1_120),
        ("30%", 29_500, 30_500),
    ] {
        let stats = Bench::new(text).run(100_000, 1).link.stats();
        assert!(
            (low..high).contains(&stats.dropped.loss),
            "{text}: {}",
            stats.dropped.loss
        );
        assert_eq!(stats.packets_out + stats.dropped.total(), 100_000);
    }
}

#[test]
fn listed_packets_are_lost_and_no_others() {
    let bench = Bench::new("drop=1,3,7-9").run(20, 1);
    assert_eq!(bench.missing(20), [1, 3, 7, 8, 9]);
    assert_eq!(Bench::new("first=3").run(20, 1).missing(20), [1, 2, 3]);
    assert_eq!(Bench::new("mask=0xa0").run(20, 1).missing(20), [6, 8]);
    assert_eq!(Bench::new("every=6").run(20, 1).missing(20), [6, 12, 18]);
}

#[test]
fn additional_effect_leaves_decisions_of_others_unchanged() {
    let lost = |spec: &str| Bench::new(spec).run(5_000, 1).missing(5_000);
    let alone = lost("5%");
    assert_eq!(
        lost("5%,corrupt=10%,duplicate=10%,20ms,jitter=3ms,reorder=5%:5ms"),
        alone
    );
}

#[test]
fn runs_replay_from_their_seed() {
    let spec = "20mbit,10ms,2%,jitter=2ms,reorder=3%:5ms,duplicate=2%,corrupt=2%,truncate=1%,\
                extend=1%,gilbert=1%:30%,queue=30p,codel-ecn | 15mbit,5ms,queue=20k,loss=1%";
    let run = |seed| {
        let mut bench = Bench::seeded(spec, seed);
        for number in 1..=5_000 {
            let now = Time::from_nanos(number * 400_000);
            bench.poll_until(now);
            bench.link.send(now, packet(number, Ecn::Ect0));
        }
        bench.poll_until(Time::MAX);
        (bench.arrived, bench.link.stats())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).1, run(6).1);
}

#[test]
fn late_polls_do_not_change_departures() {
    let spec = "20mbit,10ms,2%,reorder=3%:5ms,queue=30p,codel | 15mbit,5ms,queue=20k";
    let prompt = Bench::new(spec).run(3_000, 400);
    let mut late = Bench::new(spec);
    for number in 1..=3_000 {
        late.link.send(
            Time::from_nanos((number - 1) * 400_000),
            packet(number, Ecn::Ect0),
        );
    }
    while let Some(arrival) = late.link.poll_with_time(Time::MAX) {
        late.arrived.push(arrival);
    }
    assert_eq!(late.arrived, prompt.arrived);
    assert_eq!(late.link.stats(), prompt.link.stats());
}

#[test]
fn duplicates_are_complete_and_match_their_probability() {
    let bench = Bench::new("duplicate=10%").run(20_000, 1);
    let stats = bench.link.stats();
    assert!(
        (1_850..2_150).contains(&stats.duplicated),
        "{}",
        stats.duplicated
    );
    assert_eq!(stats.packets_out, 20_000 + stats.duplicated);
    assert!(bench.missing(20_000).is_empty());
}

#[test]
fn corruption_changes_its_share_but_never_version_negotiation() {
    let bench = Bench::new("corrupt=30%:3").run(10_000, 1);
    let damaged = |(_, packet): &&(Time, Packet)| packet.payload[..50].iter().any(|&b| b != 0x40);
    let count = bench.arrived.iter().filter(damaged).count() as u64;
    assert_eq!(count, bench.link.stats().corrupted);
    assert!((2_800..3_050).contains(&count), "{count}");

    let mut link = Link::new(
        &"corrupt=100%".parse().expect("the specification is valid"),
        1,
    );
    let mut negotiation = packet(1, Ecn::NotEct);
    negotiation.payload = Bytes::from_static(&[0xc0, 0, 0, 0, 0, 1, 2, 3]);
    link.send(Time::ZERO, negotiation.clone());
    assert_eq!(link.poll(Time::ZERO), Some(negotiation));
    assert_eq!(link.stats().corrupted, 0);
}

#[test]
fn truncated_and_extended_packets_are_counted() {
    let stats = Bench::new("truncate=10%,extend=20%");
    let mut bench = stats;
    let (mut shorter, mut longer) = (0, 0);
    for number in 1..=10_000 {
        bench.link.send(Time::ZERO, packet(number, Ecn::NotEct));
        let len = bench
            .link
            .poll(Time::ZERO)
            .expect("the packet passes")
            .payload
            .len();
        shorter += u64::from(len < 972);
        longer += u64::from(len > 972);
    }
    let stats = bench.link.stats();
    assert!(
        (900..1_100).contains(&stats.truncated),
        "{}",
        stats.truncated
    );
    assert!(
        (1_850..2_150).contains(&stats.extended),
        "{}",
        stats.extended
    );
    assert!(shorter >= stats.truncated * 9 / 10 && longer >= stats.extended * 8 / 10);
}

#[test]
fn packets_above_a_reduced_mtu_are_dropped() {
    assert_eq!(Bench::new("mtu=1000").run(10, 1).missing(10), [0_u64; 0]);
    assert_eq!(
        Bench::new("mtu=999").run(10, 1).link.stats().dropped.mtu,
        10
    );
    let bench = Bench::new("mtu@5ms=999,mtu@8ms=1500").run(10, 1_000);
    assert_eq!(bench.missing(10), [6, 7, 8]);
}

/// Returns all reports to senders, with the times of their arrival.
fn reports(link: &mut Link) -> Vec<(Time, TooBig)> {
    let mut all = Vec::new();
    while let Some(next) = link.next_time() {
        while link.poll(next).is_some() {}
        while let Some(report) = link.poll_report(next) {
            all.push((next, report));
        }
    }
    all
}

#[test]
fn reports_reach_the_sender_after_the_delay_from_their_hop() {
    let spec = "20ms | 5ms | 1ms,mtu=999/icmp"
        .parse()
        .expect("the specification is valid");
    let mut link = Link::new(&spec, 1);
    link.send(Time::ZERO, packet(1, Ecn::Ect0));
    let all = reports(&mut link);
    let [(at, report)] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(*at, Time::ZERO + Duration::from_millis(50));
    assert_eq!((report.mtu, &report.packet), (999, &packet(1, Ecn::Ect0)));
    assert_eq!(report.quote(), &report.packet.payload[..TooBig::QUOTE_LEN]);
    let stats = link.stats();
    assert_eq!((stats.answered, stats.dropped.mtu), (1, 1));
}

#[test]
fn silent_mtu_and_other_losses_are_not_reported() {
    for spec in ["mtu=999", "mtu=1000/icmp", "mtu=999/icmp,blackhole=0s:1s"] {
        let mut link = Link::new(&spec.parse().expect("the specification is valid"), 1);
        link.send(Time::ZERO, packet(1, Ecn::Ect0));
        assert!(reports(&mut link).is_empty(), "{spec}");
        assert_eq!(link.stats().answered, 0, "{spec}");
    }
}

#[test]
fn reports_in_flight_are_bounded() {
    let spec = "20ms | mtu=999/icmp"
        .parse()
        .expect("the specification is valid");
    let mut link = Link::new(&spec, 1);
    for number in 0..1_000 {
        link.send(Time::ZERO, packet(number, Ecn::Ect0));
    }
    assert_eq!(reports(&mut link).len(), Link::MAX_REPORTS);
    assert_eq!(link.stats().dropped.mtu, 1_000);
    link.send(Time::from_nanos(1_000_000_000), packet(1, Ecn::Ect0));
    assert_eq!(reports(&mut link).len(), 1, "reports are sent again");
}

/// A link with a delay and no rate has no queue that limits packets.
#[test]
fn bytes_in_flight_are_bounded_and_the_excess_is_counted() {
    for spec in ["10s", "8kbit,10s,queue=1000000p"] {
        let mut link = Link::new(&spec.parse().expect("the specification is valid"), 1);
        link.set_max_bytes(972 * 5);
        for number in 0..20 {
            link.send(Time::ZERO, packet(number, Ecn::Ect0));
        }
        let inside = 20 - link.stats().dropped.overflow;
        assert!((4..=5).contains(&inside), "{spec}: {inside}");
        assert_eq!(link.stats().dropped.total(), 20 - inside, "{spec}");
        let mut out = 0;
        while let Some(next) = link.next_time() {
            out += std::iter::from_fn(|| link.poll(next)).count() as u64;
        }
        assert_eq!(out, inside, "{spec}");
        let now = Time::from_nanos(100_000_000_000);
        link.send(now, packet(1, Ecn::Ect0));
        assert_eq!(link.stats().dropped.overflow, 20 - inside, "{spec}");
    }
}

#[test]
fn blackhole_drops_arrivals_but_not_packets_in_flight() {
    let bench = Bench::new("20ms,blackhole=5ms:3ms").run(12, 1_000);
    assert_eq!(bench.missing(12), [6, 7, 8]);
    assert_eq!(bench.link.stats().dropped.blackhole, 3);
}

#[test]
fn rate_steps_change_transmission_times() {
    // 1 ms for each of the first packets, 4 ms for those that begin at 10 ms or later.
    let bench = Bench::new("8mbit,queue=1M,rate@10ms=2mbit").run(20, 1);
    let times: Vec<u64> = bench
        .arrived
        .iter()
        .map(|(at, _)| at.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(times[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(times[10..], [14, 18, 22, 26, 30, 34, 38, 42, 46, 50]);
}

#[test]
fn queue_limit_holds_in_every_unit() {
    for (queue, waiting) in [("10k", 10), ("10p", 10), ("10ms", 10), ("0.5bdp", 20)] {
        let mut bench = Bench::new(&format!("8mbit,rtt=40ms,queue={queue}"));
        for number in 1..=100 {
            bench.link.send(Time::ZERO, packet(number, Ecn::NotEct));
        }
        let state = bench.link.queue();
        assert_eq!(
            (state.packets, state.bytes),
            (waiting, waiting * 1_000),
            "{queue}"
        );
        assert_eq!(state.delay, Duration::from_millis(waiting + 1), "{queue}");
        bench.poll_until(Time::MAX);
        let stats = bench.link.stats();
        assert_eq!(stats.dropped.queue_full, 99 - waiting, "{queue}");
        assert_eq!(stats.max_queue_packets, waiting, "{queue}");
    }
}

#[test]
fn queue_delays_can_be_taken_by_period() {
    let mut bench = Bench::new("8mbit,queue=100p");
    for number in 1..=50 {
        bench.link.send(Time::ZERO, packet(number, Ecn::NotEct));
    }
    bench.poll_until(Time::MAX);
    let burst = bench.link.take_queue_delays();
    assert_eq!(
        (burst.count(), burst.max()),
        (50, Duration::from_millis(49))
    );
    assert!((Duration::from_millis(24)..Duration::from_millis(26)).contains(&burst.median()));
    bench
        .link
        .send(Time::from_nanos(1_000_000_000), packet(51, Ecn::NotEct));
    bench.poll_until(Time::MAX);
    assert_eq!(bench.link.queue_delays().max(), Duration::ZERO);
}

#[test]
fn policer_admits_its_burst_and_then_its_rate() {
    // One packet each 100 us is 80 Mbit/s; 8 Mbit/s pass.
    let bench = Bench::new("policer=8mbit:20k").run(10_000, 100);
    let stats = bench.link.stats();
    assert_eq!(stats.packets_out, 20 + 999);
    assert_eq!(stats.dropped.policer, 10_000 - stats.packets_out);
    assert!(bench.missing(20).is_empty());
}

#[test]
fn policer_can_be_enabled_later() {
    // Half a second without one, then a full bucket and half a second at its rate.
    let bench = Bench::new("policer@500ms=8mbit:20k").run(10_000, 100);
    let stats = bench.link.stats();
    assert_eq!(stats.packets_out, 5_000 + 20 + 499);
    assert_eq!(stats.dropped.policer, 10_000 - stats.packets_out);
}

#[test]
fn ecn_marks_change_as_specified() {
    let bench = Bench::new("ecn=bleach@5ms").run(10, 1_000);
    let marks: Vec<Ecn> = bench.arrived.iter().map(|(_, packet)| packet.ecn).collect();
    assert_eq!(marks[..5], [Ecn::Ect0; 5]);
    assert_eq!(marks[5..], [Ecn::NotEct; 5]);
    assert_eq!(bench.link.stats().remarked, 5);
}

#[test]
fn second_hop_receives_what_the_first_forwards() {
    let bench = Bench::new("drop=2,10ms | drop=2,8mbit,10ms,queue=1M").run(5, 1_000);
    // The second packet of the second hop is the third of the first.
    assert_eq!(bench.missing(5), [2, 3]);
    assert_eq!(bench.link.stats().dropped.listed, 2);
    assert_eq!(bench.arrived[0].0.as_nanos(), 21_000_000);
}

#[test]
fn new_specification_keeps_packets_in_flight() {
    let mut bench = Bench::new("8mbit,10ms,queue=1M");
    for number in 1..=10 {
        bench.link.send(Time::ZERO, packet(number, Ecn::NotEct));
    }
    let now = Time::from_nanos(5_000_000);
    bench.poll_until(now);
    let faster: LinkSpec = "80mbit,1ms,queue=1M | 2ms"
        .parse()
        .expect("the specification is valid");
    bench.link.set_spec(now, &faster);
    bench.poll_until(Time::MAX);
    assert_eq!(bench.numbers(), (1..=10).collect::<Vec<_>>());
    // Packets in flight keep their arrival, so none overtakes. The sixth left at 6 ms.
    let (last, _) = bench.arrived[9];
    assert_eq!(last.as_nanos(), 18_000_000);

    bench.link.set_spec(last, &LinkSpec::default());
    bench.link.send(last, packet(11, Ecn::NotEct));
    assert!(bench.link.poll(last + Duration::from_nanos(100)).is_some());
}

#[test]
fn rate_can_be_set_while_packets_wait() {
    let mut bench = Bench::new("8mbit,queue=1M");
    for number in 1..=10 {
        bench.link.send(Time::ZERO, packet(number, Ecn::NotEct));
    }
    bench
        .link
        .set_rate(Time::from_nanos(1), Rate::from_bytes_per_second(10_000_000));
    bench.poll_until(Time::MAX);
    let (last, _) = bench.arrived[9];
    assert_eq!(last.as_nanos(), 1_000_000 + 9 * 100_000);
}

#[test]
fn directions_decide_separately_and_bdp_queues_count_both_delays() {
    let spec: DuplexSpec = "8mbit,10ms,50%,queue=1bdp;8mbit,30ms,50%"
        .parse()
        .expect("the specification is valid");
    let (mut forward, mut back) = spec.links(1);
    for number in 1..=200 {
        forward.send(Time::ZERO, packet(number, Ecn::NotEct));
        back.send(Time::ZERO, packet(number, Ecn::NotEct));
    }
    assert_ne!(forward.stats().dropped.loss, 0);
    assert_ne!(forward.stats().dropped, back.stats().dropped);
    // 40 ms at 8 Mbit/s.
    assert_eq!(forward.stats().max_queue_bytes, 40_000);
}

#[test]
fn packets_inside_are_bounded() {
    let mut link = Link::new(&"10s".parse().expect("the specification is valid"), 1);
    let packet = packet(1, Ecn::NotEct);
    for _ in 0..Link::MAX_PACKETS + 5 {
        link.send(Time::ZERO, packet.clone());
    }
    assert_eq!(link.stats().dropped.overflow, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn packet_counters_add_up(
        seed: u64,
        count in 1..400_u64,
        gap_us in 0..2_000_u64,
        effects in proptest::sample::subsequence(vec![
            "5mbit,queue=20p", "10ms", "jitter=5ms", "5%", "gilbert=2%:30%", "every=17",
            "reorder=10%:8ms", "duplicate=10%", "corrupt=10%", "policer=4mbit:9k", "mtu=1000",
            "blackhole=50ms:20ms:100ms", "loss@80ms=50%", "ecn=swap:50%",
        ], 0..14),
    ) {
        let bench = Bench::seeded(&effects.join(","), seed).run(count, gap_us);
        let stats = bench.link.stats();
        prop_assert_eq!(stats.packets_in, count);
        prop_assert_eq!(stats.packets_out, bench.arrived.len() as u64);
        prop_assert_eq!(
            stats.packets_in + stats.duplicated,
            stats.packets_out + stats.dropped.total()
        );
        prop_assert!(bench.arrived.is_sorted_by_key(|(at, _)| *at));
        prop_assert_eq!(bench.link.queue().packets, 0);
        prop_assert_eq!(bench.link.next_time(), None);
    }
}
