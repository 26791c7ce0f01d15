use std::net::Ipv4Addr;

use super::super::window_budget::WindowBudget;
use super::*;

const RTT: Duration = Duration::from_millis(10);

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

#[test]
fn fast_consumption_doubles_up_to_the_maximum() {
    let mut tune = Autotune::new(100, 350);
    tune.on_received(at(0));
    {
        let step = tune.step();
        tune.on_consumed(at(19), RTT, step, false);
    }
    assert_eq!(tune.window(), 200);
    {
        let step = tune.step();
        tune.on_consumed(at(30), RTT, step, false);
    }
    assert_eq!(tune.window(), 350);
    {
        let step = tune.step();
        tune.on_consumed(at(31), RTT, step, false);
    }
    assert_eq!(tune.window(), 350);
}

#[test]
fn slow_consumption_leaves_the_window_alone() {
    let mut tune = Autotune::new(100, 400);
    tune.on_received(at(0));
    {
        let step = tune.step();
        tune.on_consumed(at(20), RTT, step, false);
    }
    assert_eq!(tune.window(), 100);
    {
        let step = tune.step();
        tune.on_consumed(at(40), RTT, step, false);
    }
    assert_eq!(tune.window(), 100);
}

#[test]
fn first_data_starts_the_clock_once() {
    let mut tune = Autotune::new(100, 400);
    tune.on_received(at(0));
    tune.on_received(at(100));
    {
        let step = tune.step();
        tune.on_consumed(at(101), RTT, step, false);
    }
    assert_eq!(tune.window(), 100);
}

#[test]
fn maximum_below_the_start_keeps_the_start() {
    let mut tune = Autotune::new(100, 10);
    tune.on_received(at(0));
    {
        let step = tune.step();
        tune.on_consumed(at(1), RTT, step, false);
    }
    assert_eq!(tune.window(), 100);
}

/// Consumes half a window instantly, again and again.
fn grow(tune: &mut Autotune, times: usize) {
    let now = Time::ZERO;
    tune.on_received(now);
    for _ in 0..times {
        {
            let step = tune.step();
            tune.on_consumed(now, Duration::from_millis(10), step, false);
        }
    }
}

#[test]
fn windows_together_grow_by_their_budget_and_no_more() {
    let budget = WindowBudget::new(1000);
    let mut tunes: Vec<_> = (0..5).map(|_| Autotune::new(100, 10_000)).collect();
    for tune in &mut tunes {
        tune.draw_from(Draw::new(budget.clone(), Ipv4Addr::LOCALHOST));
        grow(tune, 20);
    }
    let grown: u64 = tunes.iter().map(|tune| tune.window() - 100).sum();
    // The first takes no more than an eighth, and each later one an eighth of the rest.
    assert_eq!(grown, 1000 - budget.left(), "limit K16");
    assert!(tunes[0].window() - 100 <= 125);
    assert!(grown >= 300, "{grown} of 1000");
    drop(tunes);
    assert_eq!(budget.left(), 1000, "a dropped window returns its bytes");
}

/// Windows that have drawn all they may leave bytes for later ones.
#[test]
fn later_window_grows_too() {
    let budget = WindowBudget::new(1 << 30);
    let tune = || {
        let mut tune = Autotune::new(1 << 20, 128 << 20);
        tune.draw_from(Draw::new(budget.clone(), Ipv4Addr::LOCALHOST));
        grow(&mut tune, 100);
        tune
    };
    let greedy: Vec<_> = (0..8).map(|_| tune()).collect();
    assert_eq!(
        greedy[0].window(),
        128 << 20,
        "the largest window by default"
    );
    assert!(tune().window() >= 16 << 20, "after eight others");
}

#[test]
fn large_window_is_announced_in_eighths_and_measured_in_halves() {
    let mut tune = Autotune::new(4 << 20, 16 << 20);
    assert_eq!(tune.step(), 512 << 10);
    tune.on_received(at(0));
    for ms in [0, 0, 0, 19] {
        assert_eq!(tune.window(), 4 << 20);
        tune.on_consumed(at(ms), RTT, 512 << 10, false);
    }
    assert_eq!(tune.window(), 8 << 20, "half in less than two round trips");
    tune.on_consumed(at(39), RTT, 4 << 20, false);
    assert_eq!(tune.window(), 8 << 20, "half in two is slow");
}

/// Lets `bytes` arrive evenly within `time`, in ten pieces.
fn arrive(tune: &mut Autotune, start: Time, bytes: u64, time: Duration) {
    tune.on_arrived(start, 0);
    for piece in 1..=10 {
        tune.on_arrived(start + time * piece / 10, bytes / 10);
    }
}

/// Bytes consumed since the last step are an average over a doubling.
#[test]
fn eighth_within_half_a_round_trip_doubles_window() {
    for (time, keeps_up, window) in [(4, true, 1600), (4, false, 800), (6, true, 800)] {
        let mut tune = Autotune::new(800, 10_000);
        tune.on_received(at(0));
        arrive(&mut tune, at(100), 100, Duration::from_millis(time));
        tune.on_consumed(at(120), RTT, 400, keeps_up);
        assert_eq!(tune.window(), window, "{time} ms, keeps up: {keeps_up}");
        tune.on_consumed(at(300), RTT, 400, true);
        assert_eq!(tune.window(), window, "an eighth counts once");
    }
}

#[test]
fn stalled_window_grows_at_an_eighth_per_round_trip() {
    for (time, window) in [(9, 1600), (10, 800)] {
        let mut tune = Autotune::new(800, 10_000);
        assert!(!tune.has_measured());
        arrive(&mut tune, at(0), 100, Duration::from_millis(time));
        assert!(tune.has_measured());
        tune.on_stalled(at(0), RTT);
        assert_eq!(tune.window(), window, "an eighth in {time} ms");
        assert!(!tune.has_measured());
        tune.on_stalled(at(0), RTT);
        assert_eq!(tune.window(), window);
    }
}

#[test]
fn window_at_its_maximum_measures_nothing() {
    let mut tune = Autotune::new(800, 800);
    arrive(&mut tune, at(0), 800, Duration::ZERO);
    assert!(!tune.has_measured());
}

#[test]
fn huge_window_is_announced_in_sixteenths() {
    assert_eq!(Autotune::new(16 << 20, 32 << 20).step(), 1 << 20);
}

#[test]
fn window_falls_back_after_it_was_idle_and_others_needed_its_growth() {
    let budget = WindowBudget::new(800);
    let mut tune = Autotune::new(100, 10_000);
    tune.draw_from(Draw::new(budget.clone(), Ipv4Addr::LOCALHOST));
    grow(&mut tune, 20);
    assert_eq!(tune.window(), 200);
    let mut other = Draw::new(budget.clone(), Ipv4Addr::new(192, 0, 2, 1));
    assert!(other.take(at(11_000), 500) > 0);
    assert_eq!(tune.window(), 200, "until it is used");
    tune.on_consumed(at(12_000), RTT, 100, false);
    assert_eq!(tune.window(), 100);
    grow(&mut tune, 20);
    assert!(tune.window() > 100, "it may grow again");
}
