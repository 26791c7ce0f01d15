//! The undo of spurious reductions: RFC 9438 §4.9, in the manner of RFC 3522.

use courser_base::Time;

use super::sample::{LossSample, SpuriousLoss};

/// Keeps the state before a reduction until the fate of the lost packets is known.
///
/// An episode begins with the loss that reduced the window, and includes all later losses that did
/// not reduce it again. When the last of its packets is acknowledged, the network has only delayed
/// or reordered packets, and the state is restored. CE marks are explicit signals and are never
/// undone.
///
/// The episode is boxed, because most connections have no losses most of the time.
#[derive(Clone, Debug)]
pub(super) struct Undo<S> {
    episode: Option<Box<Episode<S>>>,
}

#[derive(Clone, Copy, Debug)]
struct Episode<S> {
    saved: S,
    start: Time,
    /// Bytes declared lost in the episode and not acknowledged since.
    missing: u64,
}

impl<S> Undo<S> {
    pub(super) fn new() -> Self {
        Self { episode: None }
    }

    /// Begins an episode before a reduction. `saved` is the present state.
    pub(super) fn begin(&mut self, sample: &LossSample<'_>, saved: S) {
        self.episode = None;
        if !sample.is_ecn {
            self.episode = Some(Box::new(Episode {
                saved,
                start: sample.now,
                missing: sample.lost_bytes,
            }));
        }
    }

    /// Adds losses to the present episode.
    pub(super) fn extend(&mut self, sample: &LossSample<'_>) {
        if sample.is_ecn {
            self.episode = None;
        } else if let Some(episode) = &mut self.episode {
            episode.missing = episode.missing.saturating_add(sample.lost_bytes);
        }
    }

    /// Records that a lost packet was acknowledged. Returns the state to restore if all lost
    /// packets of the episode are acknowledged.
    pub(super) fn on_spurious_loss(&mut self, loss: &SpuriousLoss) -> Option<S> {
        let episode = self.episode.as_mut()?;
        if loss.lost_at < episode.start {
            return None;
        }
        episode.missing = episode.missing.saturating_sub(loss.bytes);
        if episode.missing > 0 {
            return None;
        }
        self.episode.take().map(|episode| episode.saved)
    }
}

/// Returns the higher of two slow start thresholds; `None` is infinite.
pub(super) fn higher_threshold(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.max(b?))
}
