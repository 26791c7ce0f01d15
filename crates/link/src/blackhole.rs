//! Periods in which every packet is lost.

use courser_base::Time;

use crate::spec::Blackhole;

/// Returns true if packets at `now` are lost. A blackhole includes its start and excludes its end.
pub(super) fn is_in_blackhole(hole: &Blackhole, now: Time) -> bool {
    let now = u128::from(now.as_nanos());
    let Some(since) = now.checked_sub(hole.from.as_nanos()) else {
        return false;
    };
    let into = match hole.every.map(|every| every.as_nanos()) {
        Some(every) if every > 0 => since % every,
        _ => since,
    };
    into < hole.lasts.as_nanos()
}

#[cfg(test)]
mod tests;
