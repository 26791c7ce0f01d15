//! One direction of a stream, in memory of its own.

use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};

/// The state of one direction of a stream. It takes memory from its first use on: a stream in one
/// direction has no state for the other.
#[derive(Debug)]
pub(super) struct Half<T>(OnceCell<Box<T>>);

impl<T> Half<T> {
    /// Returns the state if it takes memory.
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
