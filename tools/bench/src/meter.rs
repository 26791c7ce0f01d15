//! Calls whose instructions are counted.

use std::cell::Cell;
use std::hint::black_box;

use crate::path::Path;

/// Runs the calls of one path inside a function that callgrind recognises by its name.
pub struct Meter {
    path: Path,
    is_on: Cell<bool>,
}

impl Meter {
    /// Creates a meter that counts nothing before [`Meter::start`].
    pub fn new(path: Path) -> Self {
        Self {
            path,
            is_on: Cell::new(false),
        }
    }

    /// Returns the path that is counted.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Counts from now on.
    pub fn start(&self) {
        self.is_on.set(true);
    }

    /// Counts nothing until the next [`Meter::start`].
    pub fn stop(&self) {
        self.is_on.set(false);
    }

    /// Makes a call that belongs to `path`.
    pub fn count<T>(&self, path: Path, call: impl FnOnce() -> T) -> T {
        if path != self.path || !self.is_on.get() {
            return call();
        }
        let (mut call, mut result) = (Some(call), None);
        instructions_counted_below(&mut || result = call.take().map(|call| call()));
        result.expect("the call was made")
    }
}

/// Collection is on inside this function (`--toggle-collect`).
#[inline(never)]
fn instructions_counted_below(call: &mut dyn FnMut()) {
    call();
    // Keeps the call from becoming a jump, after which this function would not return.
    black_box(());
}
