//! Taking back a reduction that was no one's fault: RFC 9438 §4.9, in the manner of RFC 3522.

use courser_base::Time;

use super::sample::{LossSample, SpuriousLoss};

/// Remembers the state before a reduction until the fate of what was lost is known.
///
/// An episode begins with the loss that lowered the window and takes in all losses that did not
/// lower it again. When the last of its packets turns up, the network was only slow or out of
/// order, and the state comes back. A CE mark is a statement of the network, never undone.
///
/// Boxed, for most connections lose nothing most of the time.
#[derive(Clone, Debug)]
pub(super) struct Undo<S> {
    episode: Option<Box<Episode<S>>>,
}

#[derive(Clone, Copy, Debug)]
struct Episode<S> {
    saved: S,
    start: Time,
    /// Bytes declared lost that have not turned up.
    missing: u64,
}

impl<S> Undo<S> {
    pub(super) fn new() -> Self {
        Self { episode: None }
    }

    /// A reduction for this reason is about to be made.
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

    /// The same episode goes on.
    pub(super) fn extend(&mut self, sample: &LossSample<'_>) {
        if sample.is_ecn {
            self.episode = None;
        } else if let Some(episode) = &mut self.episode {
            episode.missing = episode.missing.saturating_add(sample.lost_bytes);
        }
    }

    /// A packet has turned up; the state to go back to when it was the last one missing.
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

/// The higher of two slow start thresholds; `None` is infinite.
pub(super) fn higher_threshold(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.max(b?))
}
