//! Invariants of every controller for any events in any order.

use super::super::window::MAX_WINDOW;
use super::*;

#[derive(Clone, Copy, Debug)]
enum Event {
    Send {
        bytes: u64,
    },
    Ack {
        sent_ago: u64,
        spread: u64,
        bytes: u64,
        app_limited: bool,
        sample: u64,
        in_flight: u64,
        marks: (u64, u64),
    },
    Congestion {
        sent_ago: u64,
        persistent: bool,
        is_ecn: bool,
        bytes: u64,
        in_flight: u64,
    },
    Spurious {
        bytes: u64,
        lost_ago: u64,
    },
    Mtu(u16),
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let long = prop_oneof![9 => 0u64..1_000_000_000, 1 => any::<u64>()];
    let bytes = prop_oneof![9 => 0u64..500_000, 1 => any::<u64>()];
    let marks = prop_oneof![
        Just((0u64, 0u64)),
        (0u64..50, 0u64..50),
        (any::<u64>(), any::<u64>())
    ];
    let ack = (
        (long.clone(), long.clone(), long.clone()),
        (bytes.clone(), bytes.clone()),
        any::<bool>(),
        marks,
    );
    let congestion = (
        long.clone(),
        prop::bool::weighted(0.2),
        any::<bool>(),
        bytes.clone(),
        bytes.clone(),
    );
    prop_oneof![
        4 => bytes.clone().prop_map(|bytes| Event::Send { bytes }),
        8 => ack.prop_map(
            |((sent_ago, spread, sample), (bytes, in_flight), app_limited, marks)| Event::Ack {
                sent_ago, spread, bytes, app_limited, sample, in_flight, marks,
            }),
        3 => congestion.prop_map(
            |(sent_ago, persistent, is_ecn, bytes, in_flight)| Event::Congestion {
                sent_ago, persistent: persistent && !is_ecn, is_ecn, bytes, in_flight,
            }),
        2 => (bytes, long.clone()).prop_map(
            |(bytes, lost_ago)| Event::Spurious { bytes, lost_ago }),
        1 => (1200u16..=9000).prop_map(Event::Mtu),
        5 => long.prop_map(Event::Wait),
    ]
}

/// A controller and the state that events depend on.
struct Bench {
    controller: CongestionController,
    rtt: RttEstimator,
    now: Time,
    pn: u64,
    mtu: u16,
}

impl Bench {
    fn new(controller: CongestionController) -> Self {
        Self {
            controller,
            rtt: RttEstimator::default(),
            now: Time::ZERO + ms(10_000),
            pn: 0,
            mtu: MTU,
        }
    }

    fn ago(&self, nanos: u64) -> Time {
        self.now.saturating_sub(Duration::from_nanos(nanos))
    }

    fn apply(&mut self, event: &Event) {
        let now = self.now;
        match *event {
            Event::Send { bytes } => {
                self.pn += 1;
                self.controller.on_sent(now, bytes, self.pn, bytes);
            }
            Event::Ack {
                sent_ago,
                spread,
                bytes,
                app_limited,
                sample,
                in_flight,
                marks,
            } => {
                let sample = Duration::from_nanos(sample);
                self.rtt.on_sample(now, sample, Duration::ZERO, None);
                let sent = self.ago(sent_ago);
                self.controller.on_ack(&AckSample {
                    now,
                    acked_bytes: bytes,
                    largest_acked: self.pn,
                    largest_acked_sent: sent,
                    earliest_acked_sent: sent.saturating_sub(Duration::from_nanos(spread)),
                    rtt: &self.rtt,
                    rtt_sample: Some(sample),
                    app_limited,
                    bytes_in_flight_before: in_flight.saturating_add(bytes),
                    bytes_in_flight: in_flight,
                    lost_bytes: 0,
                    delivered: 0,
                    rate: None,
                    ecn_capable_packets: marks.0,
                    ce_packets: marks.1,
                });
            }
            Event::Congestion {
                sent_ago,
                persistent,
                is_ecn,
                bytes,
                in_flight,
            } => self.controller.on_congestion(&LossSample {
                now,
                lost_bytes: if is_ecn { 0 } else { bytes },
                largest_lost_sent: self.ago(sent_ago),
                persistent,
                is_ecn,
                bytes_in_flight: in_flight,
                packets: &[],
            }),
            Event::Spurious { bytes, lost_ago } => {
                self.controller.on_spurious_loss(&SpuriousLoss {
                    now,
                    bytes,
                    sent: Time::ZERO,
                    lost_at: self.ago(lost_ago),
                });
            }
            Event::Mtu(mtu) => {
                self.mtu = mtu;
                self.controller.on_mtu_update(mtu);
            }
            Event::Wait(nanos) => self.now += Duration::from_nanos(nanos),
        }
    }
}

/// The time of the last reduction, as far as it is visible from outside.
#[derive(Clone, Copy, Debug)]
enum Reduced {
    Never,
    At(Time),
    /// The reduction may have been undone.
    Unknown,
}

/// Checks the effect of a single event.
fn check_step(
    event: &Event,
    bench: &Bench,
    before: u64,
    reduced: Reduced,
) -> Result<(), TestCaseError> {
    let (window, mtu) = (bench.controller.window(), bench.mtu);
    match *event {
        Event::Send { .. } | Event::Wait(_) => prop_assert_eq!(window, before),
        Event::Ack {
            bytes, app_limited, ..
        } => {
            prop_assert!(window >= before);
            prop_assert!(window - before <= bytes.saturating_add(u64::from(mtu)));
            prop_assert!(!app_limited || window == before);
        }
        Event::Congestion {
            sent_ago,
            persistent,
            ..
        } => {
            let minimum = minimum_window(mtu);
            let is_reduced = (before / 2..=before.max(minimum)).contains(&window);
            match reduced {
                _ if persistent => prop_assert_eq!(window, minimum),
                Reduced::At(at) if bench.ago(sent_ago) <= at => prop_assert_eq!(window, before),
                _ => prop_assert!(is_reduced, "{before} to {window}"),
            }
        }
        Event::Spurious { .. } => prop_assert!(window >= before),
        Event::Mtu(_) => {}
    }
    Ok(())
}

fn check(controller: CongestionController, events: &[Event]) -> Result<(), TestCaseError> {
    let is_prague = controller.name() == "prague";
    let mut bench = Bench::new(controller);
    let mut reduced = Reduced::Never;
    for event in events {
        let before = bench.controller.window();
        bench.apply(event);
        // Prague responds to marks by a different law, which has its own tests.
        if !is_prague {
            check_step(event, &bench, before, reduced)?;
        }
        reduced = match (*event, reduced) {
            (Event::Spurious { .. }, _) => Reduced::Unknown,
            (
                Event::Congestion {
                    sent_ago,
                    persistent,
                    ..
                },
                Reduced::At(at),
            ) if persistent || bench.ago(sent_ago) > at && bench.controller.window() != before => {
                Reduced::At(bench.now)
            }
            (Event::Congestion { .. }, Reduced::Never) => Reduced::At(bench.now),
            (Event::Congestion { .. }, Reduced::Unknown) if bench.controller.window() != before => {
                Reduced::At(bench.now)
            }
            (_, reduced) => reduced,
        };
        check_always(&bench)?;
    }
    Ok(())
}

fn check_always(bench: &Bench) -> Result<(), TestCaseError> {
    let controller = &bench.controller;
    prop_assert!(controller.window() >= minimum_window(bench.mtu));
    prop_assert!(controller.window() <= MAX_WINDOW);
    prop_assert!(controller.pacing_rate(&bench.rtt).is_some());
    prop_assert!(
        controller
            .send_quantum()
            .is_none_or(|bytes| bytes >= u64::from(bench.mtu))
    );
    // No controller blocks: with nothing in flight, a datagram may be sent.
    prop_assert!(controller.room(0) >= u64::from(bench.mtu));
    prop_assert!(controller.room(0) <= MAX_WINDOW);
    if controller.state() != "recovery" {
        let window = controller.window();
        // With Prague, the bytes that a receiver withholds may be in flight in addition.
        let most = match controller.name() {
            "prague" => window + window / 4 + 1,
            _ => window,
        };
        prop_assert!((window..=most).contains(&controller.room(0)));
        prop_assert_eq!(controller.room(most), 0);
    }
    Ok(())
}

/// Acknowledges full windows at a steady pace.
fn grow(bench: &mut Bench, rounds: u64) {
    bench.now += ms(100);
    for _ in 0..rounds {
        bench.apply(&Event::Send { bytes: 1200 });
        bench.now += ms(20);
        bench.apply(&Event::Ack {
            sent_ago: 20_000_000,
            spread: 0,
            bytes: bench.controller.window(),
            app_limited: false,
            sample: 20_000_000,
            in_flight: 0,
            marks: (10, 0),
        });
    }
}

proptest! {
    #[test]
    fn invariants_hold_for_any_events(events in prop::collection::vec(event(), 1..200)) {
        for controller in all() {
            check(controller, &events)?;
        }
    }

    /// BBR responds to losses by a model of the path, which has its own tests.
    #[test]
    fn bbr_keeps_its_bounds_for_any_events(events in prop::collection::vec(event(), 1..200)) {
        let mut bench = Bench::new(CongestionController::new(Algorithm::Bbr, MTU, 1));
        for event in &events {
            // BBR adds up bytes that were actually sent.
            let is_possible = match *event {
                Event::Send { bytes } | Event::Spurious { bytes, .. } => bytes < 1 << 40,
                Event::Ack { bytes, in_flight, .. }
                | Event::Congestion { bytes, in_flight, .. } => bytes.max(in_flight) < 1 << 40,
                Event::Mtu(_) | Event::Wait(_) => true,
            };
            if is_possible {
                bench.apply(event);
                check_always(&bench)?;
            }
        }
    }

    /// After any events, a good network makes the window grow again.
    #[test]
    fn controllers_recover_after_any_events(events in prop::collection::vec(event(), 1..100)) {
        for controller in all() {
            let mut bench = Bench::new(controller);
            for event in &events {
                // The clock must not reach its end.
                match event {
                    Event::Wait(nanos) => bench.apply(&Event::Wait(nanos % (1 << 40))),
                    event => bench.apply(event),
                }
            }
            bench.rtt = RttEstimator::default();
            grow(&mut bench, 2);
            let before = bench.controller.window();
            // After a round-trip time of a minute CUBIC may be far ahead of its curve, which must
            // catch up first. With the largest windows that takes some minutes.
            for _ in 0..500 {
                if bench.controller.window() > before {
                    break;
                }
                grow(&mut bench, 100);
            }
            let has_grown = bench.controller.window() > before || before == MAX_WINDOW;
            prop_assert!(has_grown, "{before} {:?}", bench.controller);
            prop_assert_ne!(bench.controller.state(), "recovery");
        }
    }
}
