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

/// Consumes a half window in no time, over and over.
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
        tune.draw_from(budget.clone());
        grow(tune, 20);
    }
    let grown: u64 = tunes.iter().map(|tune| tune.window() - 100).sum();
    assert_eq!((grown, budget.left()), (1000, 0), "limit K16");
    drop(tunes);
    assert_eq!(
        budget.left(),
        1000,
        "a window that goes gives back what it drew"
    );
}

#[test]
fn a_large_window_moves_in_quarters() {
    let mut tune = Autotune::new(4 << 20, 16 << 20);
    assert_eq!(tune.step(), 1 << 20);
    tune.on_received(at(0));
    {
        let step = tune.step();
        tune.on_consumed(at(9), RTT, step, false);
    }
    assert_eq!(tune.window(), 8 << 20);
    {
        let step = tune.step();
        tune.on_consumed(at(19), RTT, step, false);
    }
    assert_eq!(tune.window(), 8 << 20, "a quarter in a round trip is slow");
}
