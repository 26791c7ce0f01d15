//! Windows under loss against the response functions of RFC 9438 §5.1.

use super::model::*;
use super::*;

/// The average window in datagrams by RFC 9438 §5.1, figures 5 and 6, and §4.3 for the
/// Reno-friendly region: loss of every `1 / p`th packet, and no time to repair it.
fn response(p: f64, rtt: f64) -> f64 {
    let (c, beta) = (0.4f64, 0.7);
    let cubic = (c * (3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25) * (rtt / p).powf(0.75);
    let alpha = 3.0 * (1.0 - beta) / (1.0 + beta);
    let reno = (alpha * (1.0 + beta) / (2.0 * (1.0 - beta) * p)).sqrt();
    cubic.max(reno)
}

/// What the equations of RFC 9438 §4 make of a sequence of losses, one step for each round trip
/// and one round trip without growth after each loss. Shares nothing with the controller.
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

/// The average window of the controller after a while, in datagrams.
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

#[test]
fn scratch() {
    for p in CHANCES {
        for rtt in RTTS {
            let seconds = rtt as f64 / 1e3;
            let mut random = 7u64;
            let mut gap = || {
                random = random
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let chance = ((random >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
                (chance.ln() / (1.0 - p).ln()).ceil()
            };
            let eq_r = equations(seconds, &mut gap);
            let eq_p = equations(seconds, || 1.0 / p);
            let m_p = measured(rtt, Loss::Periodic((1.0 / p).round() as u64), 1);
            let m_r = (1..=3)
                .map(|seed| measured(rtt, Loss::Random(p), seed))
                .sum::<f64>()
                / 3.0;
            let f = response(p, seconds);
            println!(
                "RF p {p} rtt {rtt} f {f:.1} periodic: measured {m_p:.1} eq {eq_p:.1} ({:.2}, {:.2} of f) random {m_r:.1} eq {eq_r:.1} ({:.2}, {:.2} of f)",
                m_p / eq_p,
                m_p / f,
                m_r / eq_r,
                m_r / f
            );
        }
    }
}
