use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// A round-trip time of 100 ms gives a probe timeout of 300 ms, and 325 ms for application data.
fn next(change: impl FnOnce(&mut LossTimerInputs<'_>)) -> Option<LossTimer> {
    next_after(0, change)
}

fn next_after(timeouts: u32, change: impl FnOnce(&mut LossTimerInputs<'_>)) -> Option<LossTimer> {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::ZERO, ms(100), Duration::ZERO, None);
    let mut pto = Pto::new();
    (0..timeouts).for_each(|_| pto.on_timeout());
    let mut inputs = LossTimerInputs {
        spaces: [SpaceTimes::default(); 3],
        rtt: &rtt,
        pto: &pto,
        max_ack_delay: ms(25),
        last_activity: at(1000),
        has_handshake_keys: true,
        is_handshake_confirmed: true,
        is_address_validated_by_peer: true,
        is_at_amplification_limit: false,
    };
    change(&mut inputs);
    LossTimer::next(&inputs)
}

#[test]
fn no_timer_is_armed_with_nothing_in_flight() {
    assert_eq!(next(|_| {}), None);
}

#[test]
fn application_timeout_includes_the_ack_delay_of_the_peer() {
    let timer = next(|inputs| inputs.spaces[2].last_ack_eliciting = Some(at(1000)));
    assert_eq!(
        timer,
        Some(LossTimer::Probe {
            at: at(1325),
            space: 2
        })
    );
}

/// RFC 9002 §6.2.1.
#[test]
fn the_earlier_of_initial_and_handshake_is_armed() {
    let timer = |initial, handshake| {
        next(|inputs| {
            inputs.spaces[0].last_ack_eliciting = Some(at(initial));
            inputs.spaces[1].last_ack_eliciting = Some(at(handshake));
            inputs.is_handshake_confirmed = false;
        })
    };
    assert_eq!(
        timer(20, 10),
        Some(LossTimer::Probe {
            at: at(310),
            space: 1
        })
    );
    assert_eq!(
        timer(10, 20),
        Some(LossTimer::Probe {
            at: at(310),
            space: 0
        })
    );
}

/// RFC 9002 §6.2.1.
#[test]
fn application_has_no_timeout_before_confirmation() {
    let timer = next(|inputs| {
        inputs.spaces[2].last_ack_eliciting = Some(at(1000));
        inputs.is_handshake_confirmed = false;
    });
    assert_eq!(timer, None);
}

/// RFC 9002 §6.2.1.
#[test]
fn backoff_doubles_the_whole_timeout() {
    let timer = next_after(2, |inputs| {
        inputs.spaces[2].last_ack_eliciting = Some(at(1000))
    });
    assert_eq!(timer.map(LossTimer::at), Some(at(1000 + 4 * 325)));
}

/// RFC 9002 §6.2.1.
#[test]
fn a_loss_time_replaces_the_probe_timeout() {
    let timer = next(|inputs| {
        inputs.spaces[0].last_ack_eliciting = Some(at(0));
        inputs.spaces[1].loss_time = Some(at(5000));
        inputs.spaces[2].loss_time = Some(at(4000));
    });
    assert_eq!(
        timer,
        Some(LossTimer::TimeThreshold {
            at: at(4000),
            space: 2
        })
    );
}

/// RFC 9002 §6.2.2.1.
#[test]
fn a_server_at_the_amplification_limit_arms_no_timeout() {
    let timer = next(|inputs| {
        inputs.spaces[0].last_ack_eliciting = Some(at(0));
        inputs.is_at_amplification_limit = true;
    });
    assert_eq!(timer, None);
}

/// RFC 9002 §6.2.2.1.
#[test]
fn an_unvalidated_client_probes_with_nothing_in_flight() {
    let timer = next(|inputs| inputs.is_address_validated_by_peer = false);
    assert_eq!(
        timer,
        Some(LossTimer::Probe {
            at: at(1300),
            space: HANDSHAKE
        })
    );
    let timer = next(|inputs| {
        inputs.is_address_validated_by_peer = false;
        inputs.has_handshake_keys = false;
    });
    assert_eq!(
        timer,
        Some(LossTimer::Probe {
            at: at(1300),
            space: INITIAL
        })
    );
}

#[test]
fn a_client_with_early_data_in_flight_still_probes() {
    let timer = next(|inputs| {
        inputs.spaces[2].last_ack_eliciting = Some(at(1000));
        inputs.is_handshake_confirmed = false;
        inputs.is_address_validated_by_peer = false;
    });
    assert_eq!(
        timer,
        Some(LossTimer::Probe {
            at: at(1300),
            space: HANDSHAKE
        })
    );
}

#[test]
fn the_largest_time_does_not_overflow() {
    let timer = next_after(u32::from(u16::MAX), |inputs| {
        inputs.spaces[2].last_ack_eliciting = Some(Time::MAX);
        inputs.max_ack_delay = Duration::MAX;
    });
    assert_eq!(timer.map(LossTimer::at), Some(Time::MAX));
}
