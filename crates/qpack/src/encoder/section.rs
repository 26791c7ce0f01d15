//! The section that is being encoded.

use crate::representation::Reference;

/// State of the section being encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) stream: u64,
    /// The Base: the insert count when the section began.
    pub(super) base: u64,
    /// The Required Insert Count: one more than the largest index referred to, or zero.
    pub(super) required: u64,
    /// The smallest index referred to, or `u64::MAX`.
    pub(super) smallest: u64,
    /// True if references to entries that may not have arrived at the decoder are allowed.
    pub(super) may_block: bool,
    /// True if encoding the same field lines again would produce the same bytes.
    pub(super) is_repeatable: bool,
}

impl Section {
    /// Records a reference to the entry at `index` and returns its relative or post-Base form.
    pub(super) fn reference_to(&mut self, index: u64) -> Reference {
        self.required = self.required.max(index + 1);
        self.smallest = self.smallest.min(index);
        match self.base.checked_sub(index) {
            Some(distance @ 1..) => Reference::Relative(distance - 1),
            _ => Reference::PostBase(index - self.base),
        }
    }
}
