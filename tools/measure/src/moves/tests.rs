use super::*;

fn moves(began: Instant) -> Arc<Moves> {
    Moves::new(MovesTotal::new(began))
}

fn max_stall(report: MovesReport) -> Duration {
    let stall = report.stall.expect("a move that counts");
    Duration::from_secs_f64(stall.max_us / 1e6)
}

#[track_caller]
fn assert_close(found: Duration, millis: u64) {
    let expected = Duration::from_millis(millis);
    assert!(found.abs_diff(expected) < expected / 500, "{found:?}");
}

#[test]
fn stall_is_the_longest_time_without_bytes_in_a_direction() {
    let began = Instant::now();
    let (moves, at) = (moves(began), |millis| began + Duration::from_millis(millis));
    // Before the first move nothing counts.
    moves.on_bytes(Direction::Sent, at(0));
    moves.on_bytes(Direction::Sent, at(500));
    moves.on_move(at(1000));
    moves.on_bytes(Direction::Received, at(1010));
    moves.on_bytes(Direction::Sent, at(1070));
    moves.on_bytes(Direction::Received, at(1040));
    let report = moves.report(at(1500));
    assert_eq!((report.count, report.failed), (1, 0));
    assert_close(max_stall(report), 70);
}

#[test]
fn connection_without_bytes_after_a_move_stalls_until_the_end() {
    let began = Instant::now();
    let moves = moves(began);
    moves.on_move(began);
    moves.on_failure(began);
    let report = moves.report(began + Duration::from_secs(2));
    assert_close(max_stall(report), 2000);
    assert_eq!(report.failed, 1);
}

#[test]
fn moves_before_the_measurement_do_not_count() {
    let began = Instant::now();
    let later = began + Duration::from_secs(1);
    let moves = moves(later);
    moves.on_move(began);
    moves.on_failure(began);
    let report = moves.report(later);
    assert_eq!((report.count, report.failed, report.stall), (0, 0, None));
    moves.on_move(later);
    moves.begin(later);
    let report = moves.report(later);
    assert_eq!((report.count, report.stall), (0, None));
}

#[test]
fn time_between_exchanges_is_not_a_stall() {
    let began = Instant::now();
    let (moves, at) = (moves(began), |millis| began + Duration::from_millis(millis));
    moves.on_busy(at(0));
    moves.on_bytes(Direction::Received, at(10));
    moves.on_move(at(20));
    moves.on_bytes(Direction::Received, at(40));
    moves.on_idle(at(40));
    moves.on_busy(at(900));
    moves.on_bytes(Direction::Received, at(930));
    moves.on_idle(at(931));
    // A window without an exchange has no stall.
    moves.on_move(at(1000));
    let report = moves.report(at(5000));
    assert_eq!(report.count, 2);
    assert_close(max_stall(report), 30);
    let stall = report.stall.expect("of the first move");
    assert!(stall.max_us - stall.min_us < 100.0, "one stall: {stall:?}");
}

#[test]
fn exchange_that_fails_without_bytes_is_a_stall() {
    let began = Instant::now();
    let (moves, at) = (moves(began), |millis| began + Duration::from_millis(millis));
    moves.on_busy(at(0));
    moves.on_move(at(100));
    moves.on_idle(at(400));
    assert_close(max_stall(moves.report(at(9000))), 300);
}

#[test]
fn response_after_a_long_upload_is_not_a_stall() {
    let began = Instant::now();
    let (moves, at) = (moves(began), |millis| began + Duration::from_millis(millis));
    moves.on_busy(at(0));
    moves.on_move(at(100));
    for millis in (105..=900).step_by(5) {
        moves.on_bytes(Direction::Sent, at(millis));
    }
    moves.on_bytes(Direction::Received, at(902));
    moves.on_idle(at(902));
    assert_close(max_stall(moves.report(at(902))), 5);
}

#[test]
fn endpoints_share_one_total() {
    let began = Instant::now();
    let total = MovesTotal::new(began);
    let (one, other) = (Moves::new(total.clone()), Moves::new(total.clone()));
    one.on_move(began);
    other.on_move(began);
    one.on_bytes(Direction::Received, began + Duration::from_millis(5));
    other.on_bytes(Direction::Received, began + Duration::from_millis(50));
    drop((one, other));
    let report = total.report();
    assert_eq!(report.count, 2);
    assert_close(max_stall(report), 50);
}

#[test]
fn line_names_counts_and_stalls() {
    let began = Instant::now();
    let moves = moves(began);
    assert_eq!(moves.report(began).to_string(), "0");
    moves.on_move(began);
    moves.on_failure(began);
    moves.on_bytes(Direction::Sent, began + Duration::from_millis(3));
    assert_eq!(
        moves.report(began).to_string(),
        "1, 1 failed, stalls p50 3.00 ms  p90 3.00 ms  max 3.00 ms"
    );
}
