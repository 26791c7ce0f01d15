use super::*;

fn budgets() -> (Budgets, Refusing) {
    let refusing = Refusing::default();
    (Budgets::new(refusing.clone()), refusing)
}

/// Repeats a step until the connection must be closed, and returns the number of repetitions.
fn until_exhausted(budgets: &mut Budgets, mut step: impl FnMut(&mut Budgets)) -> usize {
    let steps = (0..100_000).take_while(|_| {
        step(budgets);
        !budgets.is_exhausted()
    });
    steps.count()
}

/// K270, K320: the client is slowed down, then refused, then disconnected.
#[tokio::test(start_paused = true)]
async fn cancelled_requests_cause_pauses_then_refusals_then_the_close() {
    let (mut budgets, refusing) = budgets();
    for _ in 0..1000 {
        budgets.on_request();
        budgets.on_cancelled();
        assert_eq!(budgets.take_pause(), None);
    }
    for _ in 1000..1999 {
        budgets.on_cancelled();
        assert!(!refusing.is_on() && !budgets.is_exhausted());
        assert_eq!(budgets.take_pause(), Some(PAUSE));
    }
    for _ in 1999..2300 {
        budgets.on_cancelled();
        assert!(refusing.is_on() && !budgets.is_exhausted());
    }
    assert_eq!(budgets.take_pause(), Some(LONGEST_PAUSE));
    budgets.on_cancelled();
    assert!(budgets.is_exhausted());
}

/// K270: the budget recovers with time, so that a client that stops in time may continue.
#[tokio::test(start_paused = true)]
async fn refused_clients_are_accepted_again_after_a_while() {
    let (mut budgets, refusing) = budgets();
    (0..2000).for_each(|_| budgets.on_cancelled());
    budgets.on_time();
    assert!(refusing.is_on());
    tokio::time::advance(Duration::from_millis(20)).await;
    budgets.on_time();
    assert!(!refusing.is_on());
    budgets.on_cancelled();
    assert!(refusing.is_on());
}

/// K270: a gateway whose users cancel four of five requests.
#[tokio::test(start_paused = true)]
async fn completed_requests_offset_cancelled_ones() {
    let (mut budgets, refusing) = budgets();
    for _ in 0..10_000 {
        (0..5).for_each(|_| budgets.on_request());
        budgets.on_answered();
        (0..4).for_each(|_| budgets.on_cancelled());
    }
    assert!(!refusing.is_on() && !budgets.is_exhausted());
    assert_eq!(budgets.take_pause(), None);
}

/// K17, K320.
#[tokio::test(start_paused = true)]
async fn content_offsets_frames_without_progress() {
    let (mut fresh, _) = budgets();
    assert_eq!(until_exhausted(&mut fresh, Budgets::on_frame), 500);
    let (mut active, _) = budgets();
    (0..10).for_each(|_| active.on_request());
    (0..10).for_each(|_| active.on_answered());
    assert_eq!(until_exhausted(&mut active, Budgets::on_frame), 580);
    let (mut reading, _) = budgets();
    (0..10).for_each(|_| reading.on_content(16_384));
    reading.on_content(0);
    assert_eq!(until_exhausted(&mut reading, Budgets::on_frame), 860);
    let (mut ranking, _) = budgets();
    (0..10).for_each(|_| ranking.on_request());
    let updates = until_exhausted(&mut ranking, Budgets::on_priority);
    assert_eq!(updates, 256 + 80 + 500 + 40);
}
