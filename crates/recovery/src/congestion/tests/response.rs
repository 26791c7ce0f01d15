//! Windows under loss against the response functions of RFC 9438 §5.1.

use super::model::*;
use super::*;

/// The average window in datagrams by RFC 9438 §5.1, figures 5 and 6, and §4.3 for the
/// Reno-friendly region: every `1 / p`th packet is lost, and recovery takes no time.
fn response(p: f64, rtt: f64) -> f64 {
    let (c, beta) = (0.4f64, 0.7);
    let cubic = (c * (3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25) * (rtt / p).powf(0.75);
    let alpha = 3.0 * (1.0 - beta) / (1.0 + beta);
    let reno = (alpha * (1.0 + beta) / (2.0 * (1.0 - beta) * p)).sqrt();
    cubic.max(reno)
}

/// Evaluates the equations of RFC 9438 §4 for a sequence of losses, one step for each round trip
/// and one round trip without growth after each loss. Shares no code with the controller.
fn equations(rtt: f64, mut packets_to_loss: impl FnMut() -> f64) -> f64 {
    let (mut window, mut w_max, mut prior) = (100.0f64, 100.0f64, 100.0f64);
    let (mut sum, mut rounds) = (0.0, 0.0);
    while rounds < 20_000.0 {
        let mut left = packets_to_loss();
        let (start, mut t, mut friendly) = (window, 0.0f64, window);
        let k = ((w_max - start).max(0.0) / 0.4).cbrt();
        // The round trip of recovery.
        left -= window;
        (sum, rounds) = (sum + window, rounds + 1.0);
        while left > 0.0 {
            t += rtt;
            friendly += if friendly < prior { 9.0 / 17.0 } else { 1.0 };
            let curve = 0.4 * (t - k).powi(3) + w_max;
            window = if curve < friendly {
                window.max(friendly)
            } else {
                curve.clamp(window, 1.5 * window)
            };
            let part = (left / window).min(1.0);
            (sum, rounds) = (sum + window * part, rounds + part);
            left -= window;
        }
        w_max = if window < w_max {
            0.85 * window
        } else {
            window
        };
        prior = window;
        window = (0.7 * window).max(2.0);
    }
    sum / rounds
}

/// Returns the average window of the controller in the long run, in datagrams.
fn measured(rtt: u64, loss: Loss, seed: u64) -> f64 {
    let path = Path {
        seed,
        ..Path::lossy(ms(rtt), loss)
    };
    let mut model = Model::new(path, Algorithm::Cubic);
    model.run(ms(rtt) * 300);
    let before = model.totals.window_seconds;
    let time = ms(rtt) * 6000;
    model.run(time);
    (model.totals.window_seconds - before) / time.as_secs_f64() / f64::from(MTU)
}

const CHANCES: [f64; 3] = [0.001, 0.01, 0.03];
const RTTS: [u64; 4] = [10, 50, 200, 600];

/// Draws the number of packets up to the next loss.
fn gaps(p: f64) -> impl FnMut() -> f64 {
    let mut state = 7u64;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let chance = ((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        (chance.ln() / (1.0 - p).ln()).ceil()
    }
}

/// RFC 9438 §5.1 omits the round trip of recovery and fast convergence (§4.7), whose cost rises
/// with the frequency of losses. The reference are the equations with both, and where these cost
/// little the response function itself.
#[test]
fn windows_under_periodic_loss_follow_the_response_function() {
    for p in CHANCES {
        for rtt in RTTS {
            let seconds = rtt as f64 / 1e3;
            let window = measured(rtt, Loss::Periodic((1.0 / p).round() as u64), 1);
            let equations = equations(seconds, || (1.0 / p).round());
            let part = window / equations;
            assert!(
                (0.85..1.1).contains(&part),
                "{p} {rtt}: {part} of the equations"
            );
            if p < 0.005 && rtt <= 200 {
                let part = window / response(p, seconds);
                assert!(
                    (0.9..1.1).contains(&part),
                    "{p} {rtt}: {part} of the function"
                );
            }
        }
    }
}

/// Random loss makes the gaps uneven. A window that grows faster the longer there is no loss gains
/// more from long gaps than it loses by short ones. The equations give larger windows than the
/// response function, which assumes even gaps.
#[test]
fn windows_under_random_loss_follow_the_equations() {
    for p in CHANCES {
        for rtt in RTTS {
            let seconds = rtt as f64 / 1e3;
            let seeds = [1, 2, 3].map(|seed| measured(rtt, Loss::Random(p), seed));
            let window = seeds.iter().sum::<f64>() / 3.0;
            let part = window / equations(seconds, gaps(p));
            let most = if rtt == 600 { 1.2 } else { 1.1 };
            assert!(
                (0.9..most).contains(&part),
                "{p} {rtt}: {part} of the equations"
            );
            let part = window / response(p, seconds);
            assert!(
                (0.95..1.25).contains(&part),
                "{p} {rtt}: {part} of the function"
            );
        }
    }
}
