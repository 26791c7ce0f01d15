//! The state of one direction of a stream, allocated when it is first used.

use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};

/// The state of one direction of a stream. Allocated at the first access, so that a unidirectional stream
/// takes no memory for the other direction.
#[derive(Debug)]
pub(super) struct Half<T>(OnceCell<Box<T>>);

impl<T> Half<T> {
    /// Returns the state if it is allocated.
    pub(super) fn allocated(&mut self) -> Option<&mut T> {
        self.0.get_mut().map(Box::as_mut)
    }
}

impl<T> Default for Half<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T: Default> Deref for Half<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}

impl<T: Default> DerefMut for Half<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_init(Box::default);
        self.0.get_mut().expect("allocated above")
    }
}
