//! Chooses round numbers for the ticks of an axis.

/// The largest number of ticks of an axis: more than a reader can use, and a bound for a degenerate axis.
const MAX_TICKS: usize = 40;

/// Returns about `target` ticks inside `low..=high`, and the decimals of their labels. The ticks are
/// multiples of 1, 2 or 5 times a power of ten. The bounds must be finite, with `low < high`.
pub(crate) fn linear(low: f64, high: f64, target: usize) -> (Vec<f64>, usize) {
    let step = nice_step((high - low) / count(target.max(1)));
    if !(step.is_normal() && high > low) {
        return (Vec::new(), 0);
    }
    let first = (low / step - 1e-9).ceil();
    let ticks = (0..MAX_TICKS)
        .map(|index| (first + count(index)) * step)
        .take_while(|tick| *tick <= high + step * 1e-9)
        .map(|tick| if tick.abs() < step * 1e-9 { 0.0 } else { tick })
        .collect();
    (ticks, decimals(step))
}

/// Returns the powers of ten inside `low..=high`. If they are few, their multiples by 2 and 5 are
/// added. If they are many, some are left out. The bounds must satisfy `0 < low < high`.
pub(crate) fn logarithmic(low: f64, high: f64, target: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor(), high.log10().ceil());
    if !(first.is_finite() && last.is_finite()) {
        return Vec::new();
    }
    let decades = last - first;
    let factors: &[f64] = match (high / low).log10() {
        span if span * 3.0 <= count(target) => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let stride = (decades / count(target.max(1))).ceil().max(1.0);
    let inside = |tick: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(tick);
    (0..MAX_TICKS)
        .map(|index| first + count(index) * stride)
        .take_while(|exponent| *exponent <= last)
        .flat_map(|exponent| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powf(exponent))
        })
        .filter(inside)
        .collect()
}

/// Rounds the end of an axis up to a round number.
pub(crate) fn round_up(high: f64, low: f64, target: usize) -> f64 {
    let step = nice_step((high - low) / count(target.max(1)));
    match step.is_normal() {
        true => (high / step - 1e-9).ceil() * step,
        false => high,
    }
}

/// Returns 1, 2, 5 or 10 times a power of ten, whichever has the ratio to `rough` nearest to one.
fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let factor = match rough / power {
        ratio if ratio < 1.42 => 1.0,
        ratio if ratio < 3.17 => 2.0,
        ratio if ratio < 7.08 => 5.0,
        _ => 10.0,
    };
    factor * power
}

fn decimals(step: f64) -> usize {
    (0..12)
        .find(|digits: &i32| {
            let scaled = step * 10_f64.powi(*digits);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1e-9)
        })
        .and_then(|digits| usize::try_from(digits).ok())
        .unwrap_or(12)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of ticks")]
fn count(value: usize) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests;
