//! An allocator with counters per thread: a test that runs one end on its own thread measures only
//! that end.

#![expect(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counters of this thread's allocations.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    // Neither needs initialisation or destruction, so they are available at any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// Returns the number of blocks that this thread has allocated; growing one in place counts too.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// Returns the bytes that this thread has allocated and not freed.
pub fn live() -> isize {
    LIVE.get()
}

fn on_allocated(len: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    LIVE.set(LIVE.get() + len as isize);
}

fn on_freed(len: usize) {
    LIVE.set(LIVE.get() - len as isize);
}

// SAFETY: all work is left to the system's allocator, which keeps the contract; the counters
// allocate nothing and cannot fail.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        on_allocated(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        on_allocated(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        on_freed(layout.size());
        on_allocated(len);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, len) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        on_freed(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}
