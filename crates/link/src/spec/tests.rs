use std::time::Duration;

use courser_base::Rate;
use proptest::prelude::*;

use super::*;
use crate::probability::Probability;

fn link(text: &str) -> LinkSpec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn duplex(text: &str) -> DuplexSpec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error_of(text: &str) -> String {
    let parsed = text.parse::<DuplexSpec>();
    let error = parsed.expect_err(text).to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn rate_delay_and_loss_are_recognized_without_names() {
    let spec = link("20mbit,40ms,1%,queue=64k");
    assert_eq!(spec.rate, Some(Rate::from_bytes_per_second(2_500_000)));
    assert_eq!(spec.delay, Some(Duration::from_millis(40)));
    let one_percent = Repeated::independent(Probability::from_percent(1));
    assert_eq!(spec.loss, Some(one_percent));
    assert_eq!(spec.queue, Some(QueueLimit::Bytes(64_000)));
    assert_eq!(link(" 40ms , queue=64k, 1% , 20Mbit/s, "), spec);
    assert_eq!(link("rate=20mbit,delay=40ms,loss=0.01,queue=64kB"), spec);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table with a row for each field")]
fn every_field_is_parsed() {
    let spec = link(
        "1.5gbit,250us,rtt=1s,jitter=5ms,30%:3,gilbert=0.5%:20%:90%:1%,drop=1,3,7-9,first=2,\
         mask=0b100000,every=100,reorder=5%:25ms,aggregate=10ms,duplicate=1%,corrupt=2%:3,truncate=3%,extend=4%,\
         queue=1.5bdp,l4s,target=6ms,interval=70ms,step=2ms,policer=10mbit:64k,ecn=ce:5%@1s,\
         mtu=1280,blackhole=5s:2s:30s,rate@10s=5mbit,delay@3s=1ms,loss@4s=2%,mtu@5s=1400,\
         jitter@6s=0",
    );
    let share = Probability::from_percent;
    let expected = LinkSpec {
        rate: Some(Rate::from_bytes_per_second(187_500_000)),
        delay: Some(Duration::from_micros(250)),
        rtt: Some(Duration::from_secs(1)),
        jitter: Duration::from_millis(5),
        loss: Some(Repeated {
            probability: share(30),
            burst: Some(3),
        }),
        gilbert: Some(Gilbert {
            to_bad: Probability::from_parts_per_billion(5_000_000),
            to_good: share(20),
            loss_in_bad: share(90),
            loss_in_good: share(1),
        }),
        drop: [1, 2, 3, 6, 7, 8, 9].into_iter().collect(),
        every: Some(100),
        reorder: Some(Reorder {
            probability: share(5),
            by: Duration::from_millis(25),
        }),
        aggregate: Some(Duration::from_millis(10)),
        duplicate: share(1),
        corrupt: Some(Repeated {
            probability: share(2),
            burst: Some(3),
        }),
        truncate: share(3),
        extend: share(4),
        queue: Some(QueueLimit::Bdp { thousandths: 1500 }),
        aqm: Aqm::L4s {
            step: Duration::from_millis(2),
            target: Duration::from_millis(6),
            interval: Duration::from_millis(70),
        },
        policer: Some(Policer {
            rate: Rate::from_bytes_per_second(1_250_000),
            burst: 64_000,
        }),
        ecn: Some(Remark {
            to: RemarkTo::Ce,
            probability: share(5),
            from: Duration::from_secs(1),
        }),
        mtu: Some(Mtu::silent(1280)),
        blackhole: Some(Blackhole {
            from: Duration::from_secs(5),
            lasts: Duration::from_secs(2),
            every: Some(Duration::from_secs(30)),
        }),
        steps: vec![
            Step {
                at: Duration::from_secs(3),
                change: Change::Delay(Duration::from_millis(1)),
            },
            Step {
                at: Duration::from_secs(4),
                change: Change::Loss(Repeated::independent(share(2))),
            },
            Step {
                at: Duration::from_secs(5),
                change: Change::Mtu(Mtu::silent(1400)),
            },
            Step {
                at: Duration::from_secs(6),
                change: Change::Jitter(Duration::ZERO),
            },
            Step {
                at: Duration::from_secs(10),
                change: Change::Rate(Rate::from_bytes_per_second(625_000)),
            },
        ],
        then: None,
    };
    assert_eq!(spec, expected);
    assert_eq!(link(&spec.to_string()), spec);
}

#[test]
fn empty_text_is_a_link_without_effects() {
    for text in ["", " ", "none", "none,"] {
        assert_eq!(link(text), LinkSpec::default(), "{text:?}");
    }
    assert_eq!(LinkSpec::default().to_string(), "none");
}

#[test]
fn hops_are_parsed_in_order() {
    let spec = link("100mbit,1ms | 20mbit,40ms,codel|2%");
    assert_eq!(spec.hops().count(), 3);
    assert_eq!(spec.total_delay(), Duration::from_millis(41));
    assert_eq!(
        spec.to_string(),
        "rate=100mbit,delay=1ms | rate=20mbit,delay=40ms,aqm=codel | loss=2%"
    );
    assert!(error_of(&"1ms|".repeat(17)).contains("more than 16"));
}

#[test]
fn one_specification_applies_to_both_directions() {
    let same = duplex("20mbit,40ms");
    assert_eq!(same.forward, same.back);
    assert_eq!(same.base_rtt(), Duration::from_millis(80));
    let apart = duplex("20mbit,40ms,rebind=addr:1s:5s;1mbit,10ms");
    assert_eq!(apart.back, link("1mbit,10ms"));
    let nat = NatSpec {
        first: Duration::from_secs(1),
        every: Some(Duration::from_secs(5)),
        address: true,
        idle: None,
    };
    assert_eq!(apart.nat, Some(nat));
    assert_eq!(duplex(&apart.to_string()), apart);
    assert_eq!(
        duplex("rebind=5s").nat,
        Some(NatSpec::every(Duration::from_secs(5)))
    );
    assert_eq!(
        duplex("rebind=1s:never").nat.expect("the NAT is set").every,
        None
    );
    assert_eq!(
        duplex("rebind=idle:30s").nat,
        Some(NatSpec::idle(Duration::from_secs(30)))
    );
}

#[test]
fn round_trip_time_is_halved_unless_a_delay_is_given() {
    assert_eq!(link("rtt=80ms").one_way_delay(), Duration::from_millis(40));
    assert_eq!(
        link("rtt=80ms,10ms").one_way_delay(),
        Duration::from_millis(10)
    );
    assert_eq!(duplex("rtt=80ms").base_rtt(), Duration::from_millis(80));
}

#[test]
fn errors_name_the_field_its_value_and_the_allowed_values() {
    let cases = [
        ("rate=fast", "rate: 'fast' is not a rate of whole bytes"),
        ("rate=0mbit", "rate: '0mbit' is not"),
        ("rate=20mbps", "rate: '20mbps' is not"),
        (
            "rate=1001bit",
            "rate: '1001bit' is not a rate of whole bytes",
        ),
        ("delay=40", "delay: '40' is not a time with its unit"),
        ("40", "'40' is not a rate (20mbit), delay (40ms), loss (1%)"),
        (
            "loss=101%",
            "loss: '101%' is not a probability from 0% to 100%",
        ),
        ("loss=1%:0", "loss: '1%:0' is not"),
        ("lss=1%", "unknown field 'lss', did you mean 'loss'?"),
        (
            "bandwidth=1mbit",
            "unknown field 'bandwidth': use one of rate, delay,",
        ),
        (
            "queue=64x,1mbit",
            "queue: '64x' is not a size: bytes (64k, 64KiB), packets (25p)",
        ),
        ("queue=64k", "queue: needs a rate"),
        ("codel", "aqm: needs a rate"),
        (
            "1mbit,queue=1bdp",
            "queue: in bdp needs the round-trip time: add rtt=50ms",
        ),
        (
            "1mbit,aqm=red",
            "aqm: 'red' is not droptail, codel, codel-ecn or l4s",
        ),
        ("1mbit,codel,step=1ms", "step: works with aqm=l4s only"),
        ("1mbit,target=1ms", "target: works with aqm=codel"),
        ("1ms,delay=2ms", "delay: is given twice"),
        ("drop=0", "drop: '0' is not packet numbers from 1"),
        ("drop=5-3", "drop: '5-3' is not"),
        ("every=0", "every: '0' is not a number of packets from 1"),
        ("gilbert=1%:0%", "gilbert: '1%:0%' is not TO_BAD:TO_GOOD"),
        ("aggregate=0ms", "aggregate: '0ms' is not a time above zero"),
        ("reorder=5%", "reorder: '5%' is not PROBABILITY:TIME"),
        ("mtu=10", "mtu: '10' is not a length of IP packets from 29"),
        (
            "blackhole=5s:2s:1s",
            "blackhole: '5s:2s:1s' is not FROM:FOR[:EVERY]",
        ),
        (
            "ecn=clear",
            "ecn: 'clear' is not bleach, ect0, ect1, ce or swap",
        ),
        ("rebind=0ms", "rebind: '0ms' is not"),
        (
            "queue@5s=3p",
            "queue: cannot change at a time: NAME@TIME works with rate, delay, jitter, loss",
        ),
        ("rate@now=3mbit", "rate@now: 'now' is not a time"),
        ("1ms;2ms;3ms", "more than one ';'"),
        ("1ms;2ms,rebind=1s", "rebind: applies to both directions"),
        ("delay=200000min", "delay: '200000min' is not"),
    ];
    for (text, expected) in cases {
        let error = error_of(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn very_long_errors_are_shortened() {
    assert!(error_of(&"x".repeat(100_000)).len() < 400);
    assert!(error_of(&format!("loss={}", "9".repeat(100_000))).len() < 400);
}

#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct File {
    link: DuplexSpec,
}

fn file(text: &str) -> DuplexSpec {
    let parsed: Result<File, _> = toml::from_str(text);
    parsed
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .link
}

#[test]
fn toml_accepts_text_and_tables() {
    let expected = duplex("20mbit,40ms,0.5%,drop=1,3,7-9,every=10,rate@10s=5mbit");
    assert_eq!(
        file("link = '20mbit,40ms,0.5%,drop=1,3,7-9,every=10,rate@10s=5mbit'"),
        expected
    );
    let table = "[link]\nrate = '20mbit'\ndelay = '40ms'\nloss = 0.005\ndrop = [1, 3, '7-9']\n\
                 every = 10\n'rate@10s' = '5mbit'";
    assert_eq!(file(table), expected);
    let apart = "[link]\nrebind = '5s'\nforward = '20mbit,40ms'\nback = { delay = '1ms' }";
    assert_eq!(file(apart), duplex("20mbit,40ms,rebind=5s;1ms"));
    let chained = "[link]\ndelay = '1ms'\nthen = { rate = '1mbit', then = '2%' }";
    assert_eq!(file(chained), duplex("1ms|1mbit|2%"));
}

#[test]
fn toml_errors_have_line_and_column() {
    let cases = [
        (
            "[link]\nrate = '20mbit'\ndelai = '40ms'",
            "line 3, column 1",
            "did you mean 'delay'?",
        ),
        (
            "[link]\nrate = '20mbit'\ndelay = 40",
            "line 3, column 9",
            "with its unit",
        ),
        (
            "[link]\nforwrd = '20mbit'",
            "line 2, column 1",
            "did you mean 'forward'?",
        ),
        ("[link]\n\nloss = true", "line 3, column 8", "a probability"),
        ("link = '1ms,x=2'", "line 1, column 8", "unknown field 'x'"),
        (
            "[link]\nforward = '1ms'\nloss = '1%'",
            "line 1",
            "put them into forward and back",
        ),
        (
            "[link]\nforward = { rebind = '1s' }",
            "line 2",
            "rebind: applies to",
        ),
    ];
    for (text, place, expected) in cases {
        let error = toml::from_str::<File>(text).expect_err(text).to_string();
        assert!(
            error.contains(place) && error.contains(expected),
            "{text}: {error}"
        );
    }
}

fn durations() -> impl Strategy<Value = Duration> {
    let nanos = prop_oneof![
        0..2_000_000_000_u64,
        (0..100_000_u64).prop_map(|millis| millis * 1_000_000)
    ];
    nanos.prop_map(Duration::from_nanos)
}

fn probabilities() -> impl Strategy<Value = Probability> {
    (0..=1_000_000_000_u32).prop_map(Probability::from_parts_per_billion)
}

fn rates() -> impl Strategy<Value = Rate> {
    (1..1_250_000_000_000_u64).prop_map(Rate::from_bytes_per_second)
}

fn repeated() -> impl Strategy<Value = Repeated> {
    let burst = proptest::option::of(1..100_u32);
    (probabilities(), burst).prop_map(|(probability, burst)| Repeated { probability, burst })
}

fn queues() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0..10_000_000_000_u64).prop_map(QueueLimit::Bytes),
        (0..u64::MAX).prop_map(QueueLimit::Packets),
        durations().prop_map(QueueLimit::Time),
        (1..=1_000_000_u32).prop_map(|thousandths| QueueLimit::Bdp { thousandths }),
    ]
}

fn aqms() -> impl Strategy<Value = Aqm> {
    let interval = (1_000..100_000_000_000_u64).prop_map(Duration::from_nanos);
    (0..3, durations(), durations(), interval, any::<bool>()).prop_map(
        |(kind, step, target, interval, ecn)| match kind {
            0 => Aqm::DropTail,
            1 => Aqm::CoDel {
                target,
                interval,
                ecn,
            },
            _ => Aqm::L4s {
                step,
                target,
                interval,
            },
        },
    )
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        rates().prop_map(Change::Rate),
        durations().prop_map(Change::Delay),
        durations().prop_map(Change::Jitter),
        repeated().prop_map(Change::Loss),
        (29..=65_575_u32, any::<bool>())
            .prop_map(|(bytes, answers)| Change::Mtu(Mtu { bytes, answers })),
        (rates(), 1..10_000_000_000_u64)
            .prop_map(|(rate, burst)| Change::Policer(Policer { rate, burst })),
    ]
}

prop_compose! {
    fn losses()(
        loss in proptest::option::of(repeated()),
        gilbert in proptest::option::of((
            probabilities(), 1..=1_000_000_000_u32, probabilities(), probabilities()
        )),
        drop in proptest::collection::vec(1..1_000_u64, 0..8),
        every in proptest::option::of(1..u64::MAX),
        mtu in proptest::option::of((29..=65_575_u32, any::<bool>())),
        blackhole in proptest::option::of((durations(), 1..1_000_000_u64, proptest::option::of(1..9_u64))),
    ) -> LinkSpec {
        LinkSpec {
            loss,
            gilbert: gilbert.map(|(to_bad, to_good, loss_in_bad, loss_in_good)| Gilbert {
                to_bad,
                to_good: Probability::from_parts_per_billion(to_good),
                loss_in_bad,
                loss_in_good,
            }),
            drop: drop.into_iter().collect(),
            every,
            mtu: mtu.map(|(bytes, answers)| Mtu { bytes, answers }),
            blackhole: blackhole.map(|(from, lasts, more)| Blackhole {
                from,
                lasts: Duration::from_nanos(lasts),
                every: more.map(|more| Duration::from_nanos(lasts + more)),
            }),
            ..LinkSpec::default()
        }
    }
}

prop_compose! {
    fn alterations()(
        base in losses(),
        duplicate in probabilities(),
        corrupt in proptest::option::of(repeated()),
        truncate in probabilities(),
        extend in probabilities(),
        reorder in proptest::option::of((probabilities(), 1..1_000_000_u64)),
        aggregate in proptest::option::of(1..1_000_000_000_u64),
        ecn in proptest::option::of((0..5_usize, probabilities(), durations())),
        policer in proptest::option::of((rates(), 1..10_000_000_000_u64)),
    ) -> LinkSpec {
        const TO: [RemarkTo; 5] = [
            RemarkTo::NotEct, RemarkTo::Ect0, RemarkTo::Ect1, RemarkTo::Ce, RemarkTo::Swapped,
        ];
        LinkSpec {
            duplicate,
            corrupt,
            truncate,
            extend,
            reorder: reorder.map(|(probability, by)| Reorder {
                probability,
                by: Duration::from_nanos(by),
            }),
            aggregate: aggregate.map(Duration::from_nanos),
            ecn: ecn.map(|(to, probability, from)| Remark { to: TO[to], probability, from }),
            policer: policer.map(|(rate, burst)| Policer { rate, burst }),
            ..base
        }
    }
}

prop_compose! {
    fn specs()(
        base in alterations(),
        rate in rates(),
        has_rate: bool,
        delay in proptest::option::of(durations()),
        rtt in proptest::option::of(durations()),
        jitter in durations(),
        queue in proptest::option::of(queues()),
        aqm in aqms(),
        steps in proptest::collection::vec((durations(), changes()), 0..4),
    ) -> LinkSpec {
        let mut steps: Vec<Step> =
            steps.into_iter().map(|(at, change)| Step { at, change }).collect();
        steps.sort_by_key(|step| step.at);
        let is_bdp = matches!(queue, Some(QueueLimit::Bdp { .. }));
        LinkSpec {
            rate: has_rate.then_some(rate),
            delay,
            rtt: if is_bdp { Some(rtt.unwrap_or_default()) } else { rtt },
            jitter,
            queue: queue.filter(|_| has_rate),
            aqm: if has_rate { aqm } else { Aqm::DropTail },
            steps,
            ..base
        }
    }
}

proptest! {
    #[test]
    fn text_of_one_direction_parses_back(first in specs(), second in proptest::option::of(specs())) {
        let mut spec = first;
        spec.then = second.map(Box::new);
        let text = spec.to_string();
        let parsed: Result<LinkSpec, SpecError> = text.parse();
        prop_assert_eq!(parsed.as_ref(), Ok(&spec), "{}", text);
    }

    #[test]
    fn text_of_both_directions_parses_back(
        forward in specs(),
        back in specs(),
        first in 1..100_000_u64,
        every in proptest::option::of(1..100_000_u64),
        address: bool,
        expires: bool,
    ) {
        let nat = NatSpec {
            first: Duration::from_millis(first),
            every: every.map(Duration::from_millis),
            address,
            idle: None,
        };
        let nat = match expires {
            true => NatSpec { address, ..NatSpec::idle(nat.first) },
            false => nat,
        };
        let spec = DuplexSpec { forward, back, nat: Some(nat) };
        let parsed: Result<DuplexSpec, SpecError> = spec.to_string().parse();
        prop_assert_eq!(parsed, Ok(spec));
    }

    #[test]
    fn any_text_is_refused_or_parsed_without_panic(text in "[ -~µ]{0,60}") {
        if let Ok(spec) = text.parse::<DuplexSpec>() {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }

    #[test]
    fn similar_text_is_refused_or_parsed_without_panic(text in "([0-9.]{1,3}(mbit|ms|s|%|k|p|bdp)?[,=:@|;]|rate|loss|queue|drop|rebind|ecn|ce|codel){0,8}") {
        if let Ok(spec) = text.parse::<DuplexSpec>() {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }
}

#[test]
fn mtu_is_silent_or_reports() {
    let mtu = |text: &str| text.parse::<LinkSpec>().map(|spec| spec.mtu);
    assert_eq!(mtu("mtu=1400/icmp"), Ok(Some(Mtu::with_answer(1400))));
    assert_eq!(mtu("mtu=1400"), Ok(Some(Mtu::silent(1400))));
    for wrong in ["mtu=1400/udp", "mtu=/icmp", "mtu=1400/", "mtu@1s=10/icmp"] {
        let error = mtu(wrong).expect_err(wrong).to_string();
        assert!(
            error.contains("is not a length of IP packets from 29"),
            "{error}"
        );
    }
}
