//! The addresses of ours that the peer claims to see.

use courser_wire::{ObservedAddress, PathId};

use super::observed_path::{MAX_OBSERVED, ObservedPath};

/// The newest claim of the peer for each path, in the order in which they changed.
#[derive(Debug, Default)]
pub(super) struct Claims {
    all: Vec<Claim>,
}

#[derive(Debug)]
struct Claim {
    sequence: u64,
    observed: ObservedPath,
    /// True until the application is told.
    is_new: bool,
}

impl Claims {
    /// Keeps a claim if it is newer than the last one of its path (draft-ietf-quic-address-discovery-00 §4.1).
    /// Returns true if the address is another one.
    pub(super) fn on_frame(&mut self, path: PathId, frame: ObservedAddress) -> bool {
        let known = self.all.iter().position(|it| it.observed.path == path);
        if let Some(known) = known {
            let claim = &mut self.all[known];
            if frame.sequence <= claim.sequence {
                return false;
            }
            if claim.observed.address == frame.address {
                claim.sequence = frame.sequence;
                return false;
            }
            self.all.remove(known);
        } else if self.all.len() >= MAX_OBSERVED {
            self.all.remove(0);
        }
        self.all.push(Claim {
            sequence: frame.sequence,
            observed: ObservedPath {
                path,
                address: frame.address,
            },
            is_new: true,
        });
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ObservedPath> + '_ {
        self.all.iter().map(|claim| claim.observed)
    }

    /// A peer that changes its claims faster than the application reads them replaces them: there is one at a time for
    /// each path.
    pub(super) fn take_new(&mut self) -> Option<ObservedPath> {
        let claim = self.all.iter_mut().find(|claim| claim.is_new)?;
        claim.is_new = false;
        Some(claim.observed)
    }
}
