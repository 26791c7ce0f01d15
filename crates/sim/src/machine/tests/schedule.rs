use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use courser::runtime::{Elapsed, JoinError, now, sleep, sleep_until, spawn, timeout};

use super::*;

/// Runs a machine without a network until no event is left.
fn run(machine: &Machine) {
    let mut node = machine.clone();
    while let Some(now) = node.next_timeout() {
        node.run(now);
    }
}

fn alone(seed: u64) -> Machine {
    Machine::new([CLIENT], seed)
}

async fn yield_now() {
    let mut is_first = true;
    std::future::poll_fn(|cx| {
        if !std::mem::replace(&mut is_first, false) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns the order in which ten tasks that never wait for time were polled.
fn order(seed: u64) -> (Vec<usize>, u64) {
    let machine = alone(seed);
    let polled = Arc::new(Mutex::new(Vec::new()));
    for task in 0..10 {
        let polled = polled.clone();
        machine.spawn(async move {
            for _ in 0..5 {
                polled.lock().expect("the lock is not poisoned").push(task);
                yield_now().await;
            }
        });
    }
    run(&machine);
    assert!(machine.pending_tasks().is_empty());
    let polled = polled.lock().expect("the lock is not poisoned").clone();
    assert_eq!(polled.len(), 50);
    (polled, machine.fingerprint())
}

#[test]
fn seed_decides_the_order_of_polls() {
    assert_eq!(order(1), order(1));
    let (one, one_print) = order(1);
    let (two, two_print) = order(2);
    assert_ne!(one, two);
    assert_ne!(one_print, two_print);
    let mut first_turns: Vec<usize> = one[..10].to_vec();
    first_turns.sort_unstable();
    first_turns.dedup();
    assert!(first_turns.len() < 10, "the order is not that of spawning");
}

#[test]
fn machines_with_the_same_seed_have_different_random_numbers() {
    let draw = |address| {
        let machine = Machine::new([address], 7);
        machine.enter(|| courser::runtime::random_seed().expect("a random seed is available"))
    };
    assert_eq!(draw(CLIENT), draw(CLIENT));
    assert_ne!(draw(CLIENT), draw(SERVER));
}

#[test]
fn sleep_is_exact_to_the_nanosecond() {
    let machine = alone(1);
    let mut handle = machine.spawn(async {
        let begin = now();
        sleep(Duration::from_nanos(1)).await;
        let first = now() - begin;
        sleep_until(begin + Duration::new(86_400 * 400, 999_999_999)).await;
        (first, now() - begin, courser::runtime::unix_time())
    });
    run(&machine);
    let (first, all, unix) = result_of(&mut handle)
        .expect("the task has ended")
        .expect("the task was not aborted");
    assert_eq!(first, Duration::from_nanos(1));
    assert_eq!(all, Duration::new(86_400 * 400, 999_999_999));
    assert_eq!(unix, Duration::from_secs(1_767_225_600) + all);
    assert_eq!(machine.time().as_nanos(), 34_560_000_999_999_999);
}

#[test]
fn timeout_fires_on_time_and_cancels_its_timer() {
    let machine = alone(1);
    let mut handle = machine.spawn(async {
        let late = timeout(ms(20), sleep(ms(21))).await;
        let in_time = timeout(ms(20), sleep(ms(20) - Duration::from_nanos(1))).await;
        (late, in_time)
    });
    run(&machine);
    let results = result_of(&mut handle)
        .expect("the task has ended")
        .expect("the task was not aborted");
    assert_eq!(results, (Err(Elapsed), Ok(())));
    // A timer left behind would have advanced the clock further.
    assert_eq!(machine.time().as_nanos(), 39_999_999);
}

#[test]
fn timers_fire_in_order_of_their_deadlines() {
    let machine = alone(3);
    let fired = Arc::new(Mutex::new(Vec::new()));
    for delay in [50, 10, 40, 20, 30] {
        let fired = fired.clone();
        machine.spawn(async move {
            sleep(ms(delay)).await;
            fired.lock().expect("the lock is not poisoned").push(delay);
        });
    }
    run(&machine);
    assert_eq!(
        *fired.lock().expect("the lock is not poisoned"),
        [10, 20, 30, 40, 50]
    );
}

#[test]
fn endless_sleep_sets_no_timer() {
    let machine = alone(1);
    let mut handle = machine.spawn(async { timeout(ms(5), sleep(Duration::MAX)).await });
    run(&machine);
    let result = result_of(&mut handle)
        .expect("the task has ended")
        .expect("the task was not aborted");
    assert_eq!(result, Err(Elapsed));
}

#[test]
fn channels_of_other_crates_work() {
    let machine = alone(5);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(2);
    machine.spawn(async move {
        for number in 0..10u32 {
            sender.send(number).await.expect("the receiver exists");
        }
    });
    let mut handle = machine.spawn(async move {
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            tokio::select! {
                () = sleep(ms(1)) => sum += number,
                () = pending() => unreachable!("the future is never ready"),
            }
        }
        sum
    });
    run(&machine);
    assert_eq!(result_of(&mut handle), Some(Ok(45)));
    assert_eq!(machine.time(), Time::ZERO + ms(10));
}

#[test]
fn aborted_task_drops_its_values_and_is_cancelled() {
    let machine = alone(1);
    let held = Arc::new(());
    let copy = held.clone();
    let mut outer = machine.spawn(async move {
        let inner = spawn(async move {
            pending::<()>().await;
            drop(copy);
        });
        sleep(ms(1)).await;
        inner.abort();
        inner.await
    });
    run(&machine);
    assert_eq!(result_of(&mut outer), Some(Ok(Err(JoinError::Cancelled))));
    assert_eq!(Arc::strong_count(&held), 1);
}

fn panic_of(machine: &Machine) -> String {
    let payload = catch_unwind(AssertUnwindSafe(|| run(machine))).expect_err("the machine panics");
    let text = payload.downcast_ref::<String>();
    text.expect("the panic has a message").clone()
}

#[test]
fn panic_of_a_task_names_task_time_and_seed() {
    let machine = alone(0xabc);
    machine.spawn(async {
        spawn(async {
            sleep(ms(1500)).await;
            assert_eq!(1 + 1, 3, "arithmetic");
        });
    });
    let message = panic_of(&machine);
    for part in [
        "task 2 (",
        "schedule.rs:",
        "10.0.0.1 at 1.5s",
        "seed 0xabc",
        "arithmetic",
    ] {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
}

#[test]
fn panic_contains_the_replay_hint() {
    let machine = alone(1).with_replay_hint("World::new(7)");
    machine.spawn(async { panic!("oh") });
    assert!(panic_of(&machine).contains("World::new(7)"));
}

#[test]
fn tasks_that_wake_each_other_endlessly_are_reported() {
    let machine = alone(0xdef);
    machine.spawn(async {
        loop {
            yield_now().await;
        }
    });
    let message = panic_of(&machine);
    assert!(message.contains("without time passing"), "{message}");
    assert!(message.contains("seed 0xdef"), "{message}");
    assert!(message.contains("schedule.rs:"), "{message}");
}

#[test]
fn task_that_never_wakes_is_listed_and_no_event_is_due() {
    let machine = alone(1);
    machine.spawn(pending::<()>());
    let line = line!() - 1;
    run(&machine);
    assert_eq!(machine.next_timeout(), None);
    let tasks = machine.pending_tasks();
    assert_eq!(tasks.len(), 1);
    assert_eq!((tasks[0].origin.line(), tasks[0].polls), (line, 1));
}

#[test]
fn dropping_the_last_handle_drops_the_tasks() {
    let held = Arc::new(());
    let copy = held.clone();
    let machine = alone(1);
    let mut handle = machine.spawn(async move {
        let _endpoint = client_endpoint();
        let _copy = copy;
        pending::<()>().await;
    });
    run(&machine);
    assert_eq!(Arc::strong_count(&held), 2);
    drop(machine);
    assert_eq!(Arc::strong_count(&held), 1);
    assert_eq!(result_of(&mut handle), Some(Err(JoinError::Cancelled)));
}
