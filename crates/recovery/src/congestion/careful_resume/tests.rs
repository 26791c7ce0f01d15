use super::*;
use crate::congestion::{CongestionController, Cubic};

const MTU: u16 = 1200;
const RTT: Duration = Duration::from_millis(100);

/// The time one round trip before.
fn earlier(now: Time) -> Time {
    Time::ZERO + ((now - Time::ZERO) - RTT)
}

/// A controller and its path.
struct Path {
    controller: CarefulResume,
    rtt: RttEstimator,
    now: Time,
    next: u64,
    in_flight: u64,
    app_limited: bool,
}

impl Path {
    fn new(window: u64, min_rtt: Duration) -> Self {
        let inner = Box::new(Cubic::new(MTU));
        let saved = SavedPath { window, min_rtt };
        Self {
            controller: CarefulResume::new(inner, Algorithm::Cubic, MTU, saved),
            rtt: RttEstimator::new(Duration::from_millis(333)),
            now: Time::ZERO + Duration::from_secs(1),
            next: 0,
            in_flight: 0,
            app_limited: false,
        }
    }

    /// Sends as much as the window allows, and returns the last number.
    fn fill(&mut self) -> u64 {
        while self.controller.room(self.in_flight) >= u64::from(MTU) {
            self.in_flight += u64::from(MTU);
            let (bytes, number) = (u64::from(MTU), self.next);
            self.controller
                .on_sent(self.now, bytes, number, self.in_flight);
            self.next += 1;
        }
        self.next - 1
    }

    /// Acknowledges `packets` packets, up to `largest`, a round trip after they were sent.
    fn ack(&mut self, packets: u64, largest: u64) {
        let bytes = packets * u64::from(MTU);
        let (before, sent) = (self.in_flight, earlier(self.now));
        self.in_flight -= bytes;
        self.rtt.on_sample(self.now, RTT, Duration::ZERO, None);
        let sample = AckSample {
            now: self.now,
            acked_bytes: bytes,
            largest_acked: largest,
            largest_acked_sent: sent,
            earliest_acked_sent: sent,
            rtt: &self.rtt,
            rtt_sample: Some(RTT),
            app_limited: self.app_limited,
            bytes_in_flight_before: before,
            bytes_in_flight: self.in_flight,
            lost_bytes: 0,
            delivered: 0,
            rate: None,
            ecn_capable_packets: 0,
            ce_packets: 0,
        };
        self.controller.on_ack(&sample);
    }

    fn lose(&mut self, packets: u64, persistent: bool, is_ecn: bool) {
        let bytes = packets * u64::from(MTU);
        self.in_flight -= bytes;
        self.controller.on_congestion(&LossSample {
            now: self.now,
            lost_bytes: bytes,
            largest_lost_sent: earlier(self.now),
            persistent,
            is_ecn,
            bytes_in_flight: self.in_flight,
            packets: &[],
        });
    }

    /// Sends the initial window and acknowledges it except for `left` packets.
    fn acknowledge_initial_window(&mut self, left: u64) {
        let last = self.fill();
        self.now += RTT;
        self.ack(last + 1 - left, last - left);
    }
}

fn state(path: &Path) -> &'static str {
    path.controller.state()
}

#[test]
fn half_of_the_saved_window_is_used_and_validated() {
    let mut path = Path::new(1_200_000, RTT);
    path.acknowledge_initial_window(0);
    assert_eq!(state(&path), "careful_resume_unvalidated");
    assert_eq!(path.controller.window(), 600_000);
    let rate = path
        .controller
        .pacing_rate(&path.rtt)
        .expect("the jump is paced");
    assert_eq!(rate, Rate::from_bytes_in(600_000, path.rtt.smoothed()));
    let first = path.next;
    let last = path.fill();
    assert_eq!(path.in_flight, 600_000);
    path.now += RTT;
    path.ack(1, first);
    assert_eq!(state(&path), "careful_resume_validating");
    assert_eq!(path.controller.window(), 598_800, "what was in flight");
    path.ack(100, first + 100);
    assert_eq!(path.controller.window(), 598_800, "no growth");
    path.ack(last - first - 100, last);
    assert_eq!(state(&path), "slow_start");
    assert_eq!(path.controller.window(), 598_800);
    let last = path.fill();
    path.now += RTT;
    path.ack(300, last);
    assert!(path.controller.window() > 700_000, "it grows again");
}

#[test]
fn jump_is_limited() {
    for (saved, jump) in [
        (2 * MAX_JUMP - 2, MAX_JUMP - 1),
        (2 * MAX_JUMP, MAX_JUMP),
        (2 * MAX_JUMP + 2, MAX_JUMP),
        (u64::MAX, MAX_JUMP),
    ] {
        let mut path = Path::new(saved, RTT);
        path.acknowledge_initial_window(0);
        assert_eq!(path.controller.window(), jump, "{saved}");
    }
}

#[test]
fn nothing_happens_before_the_initial_window_is_acknowledged() {
    let mut path = Path::new(1_200_000, RTT);
    path.acknowledge_initial_window(1);
    assert_eq!(state(&path), "slow_start");
    assert!(path.controller.window() < 30_000);
}

#[test]
fn another_round_trip_time_prevents_the_jump() {
    for (saved, resumes) in [
        (RTT / 10 - Duration::from_millis(1), false),
        (RTT / 10, true),
        (RTT * 2, true),
        (RTT * 2 + Duration::from_millis(1), false),
    ] {
        let mut path = Path::new(1_200_000, saved);
        path.acknowledge_initial_window(0);
        assert_eq!(path.controller.window() == 600_000, resumes, "{saved:?}");
        if !resumes {
            assert_eq!(
                path.controller.phase,
                Phase::Normal,
                "the jump is not tried again"
            );
        }
    }
}

#[test]
fn small_saved_window_prevents_the_jump() {
    let mut path = Path::new(20_000, RTT);
    path.acknowledge_initial_window(0);
    assert_eq!(path.controller.phase, Phase::Normal);
}

#[test]
fn jump_waits_for_data() {
    let mut path = Path::new(1_200_000, RTT);
    path.app_limited = true;
    path.acknowledge_initial_window(0);
    assert_eq!(state(&path), "slow_start");
    path.app_limited = false;
    let last = path.fill();
    path.now += RTT;
    path.ack(1, last);
    assert_eq!(state(&path), "careful_resume_unvalidated");
}

#[test]
fn loss_in_reconnaissance_prevents_the_jump() {
    for is_ecn in [false, true] {
        let mut path = Path::new(1_200_000, RTT);
        let last = path.fill();
        path.now += RTT;
        path.lose(u64::from(!is_ecn), false, is_ecn);
        path.ack(last, last);
        assert_eq!(path.controller.phase, Phase::Normal, "ecn: {is_ecn}");
        assert!(path.controller.window() < 20_000);
    }
}

#[test]
fn congestion_leads_to_half_of_the_carried_bytes() {
    for (is_ecn, validates) in [(false, false), (true, false), (false, true), (true, true)] {
        let case = format!("ecn {is_ecn}, validates {validates}");
        let mut path = Path::new(1_200_000, RTT);
        path.acknowledge_initial_window(0);
        let first = path.next;
        let last = path.fill();
        path.now += RTT;
        let mut carried = 0;
        if validates {
            path.ack(100, first + 99);
            carried = 120_000;
            assert_eq!(state(&path), "careful_resume_validating", "{case}");
        }
        path.lose(u64::from(!is_ecn) * 50, false, is_ecn);
        assert_eq!(state(&path), "careful_resume_safe_retreat", "{case}");
        let window = (carried / 2).max(initial_window(MTU));
        assert_eq!(path.controller.window(), window, "{case}");
        assert_eq!(path.controller.room(path.in_flight), 0, "{case}");
        path.lose(10, false, false);
        assert_eq!(
            path.controller.window(),
            window,
            "{case}: the window is already reduced"
        );
        path.ack(200, last);
        assert_eq!(path.controller.phase, Phase::Normal, "{case}");
        assert_eq!(path.controller.window(), window, "{case}");
        assert_eq!(
            path.controller.ssthresh(),
            Some(carried + 240_000),
            "{case}"
        );
    }
}

#[test]
fn losses_sent_before_the_retreat_reduce_the_window_once() {
    let mut path = Path::new(1_200_000, RTT);
    path.acknowledge_initial_window(0);
    let first = path.next;
    let last = path.fill();
    path.now += RTT;
    path.ack(100, first + 99);
    path.lose(10, false, false);
    path.ack(200, last);
    assert_eq!(path.controller.phase, Phase::Normal);
    let window = path.controller.window();
    path.lose(10, false, false);
    assert_eq!(path.controller.window(), window, "sent before the retreat");
    path.now += RTT * 2;
    path.lose(10, false, false);
    assert!(path.controller.window() < window, "sent after it");
}

#[test]
fn sender_with_little_data_keeps_the_window_it_has_used() {
    let mut path = Path::new(1_200_000, RTT);
    path.acknowledge_initial_window(0);
    let first = path.next;
    path.in_flight += 20 * u64::from(MTU);
    path.next += 20;
    path.controller
        .on_sent(path.now, 24_000, path.next - 1, path.in_flight);
    path.now += RTT;
    path.ack(15, first + 14);
    assert_eq!(path.controller.phase, Phase::Normal);
    assert_eq!(path.controller.window(), 18_000, "PipeSize");
}

#[test]
fn persistent_congestion_ends_the_retreat() {
    let mut path = Path::new(1_200_000, RTT);
    path.acknowledge_initial_window(0);
    path.fill();
    path.now += RTT;
    path.lose(400, true, false);
    assert_eq!(path.controller.phase, Phase::Normal);
    assert_eq!(path.controller.window(), 2400, "the minimum");
}

/// A careful start keeps the algorithm, and switching to the same algorithm keeps the jump.
#[test]
fn switching_to_the_same_algorithm_keeps_the_jump() {
    let rtt = RttEstimator::new(Duration::from_millis(333));
    let saved = SavedPath {
        window: 1_200_000,
        min_rtt: RTT,
    };
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        let mut controller = CongestionController::new(algorithm, MTU, 0);
        controller.start_carefully(MTU, saved);
        assert_eq!(controller.algorithm(), Some(algorithm));
        controller.switch(algorithm, MTU, 0, &rtt, Time::ZERO);
        assert!(
            matches!(&controller, CongestionController::Careful(_)),
            "{algorithm}: the jump is kept"
        );
        controller.switch(Algorithm::Bbr, MTU, 0, &rtt, Time::ZERO);
        assert_eq!(controller.algorithm(), Some(Algorithm::Bbr));
    }
}

/// The successor has the settings of the first controller.
#[test]
fn settings_survive_the_jump() {
    for is_ignored in [false, true] {
        let mut path = Path::new(1_200_000, RTT);
        if is_ignored {
            path.controller.inner().ignore_capacity_rise();
        }
        path.acknowledge_initial_window(0);
        let first = path.next;
        let last = path.fill();
        path.now += RTT;
        path.ack(1, first);
        path.ack(last - first, last);
        assert_eq!(state(&path), "slow_start", "the successor decides");
        assert_eq!(path.controller.inner().ignores_capacity_rise(), is_ignored);
    }
}
