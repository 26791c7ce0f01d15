//! `malloc_trim` of glibc, which gives memory of the heap back to the kernel.
#![allow(unsafe_code)]

/// Asks the allocator of the C library to give all memory that is not in use back to the system. Returns true
/// if there was some.
///
/// The allocator of glibc keeps the memory of a burst, and many small blocks free between others are never
/// returned on their own. The call takes 30 to 100 ms for some hundred MiB, and threads that allocate meanwhile
/// may wait, so call it on a thread of its own, when a burst is over. Other systems and C libraries return
/// false.
#[cfg(target_env = "gnu")]
pub fn release_unused_memory() -> bool {
    // SAFETY: the function takes a number and returns one, and can be called from any thread at any time.
    unsafe { libc::malloc_trim(0) == 1 }
}

/// Returns false: this C library has no such call.
#[cfg(not(target_env = "gnu"))]
pub const fn release_unused_memory() -> bool {
    false
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// Returns the resident memory of this process in KiB.
    fn resident() -> u64 {
        let text = std::fs::read_to_string("/proc/self/status").expect("Linux reports it");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number
            .expect("the line has a number")
            .parse()
            .expect("the number is valid")
    }

    /// The blocks are many times what the other tests of this process need.
    #[test]
    fn memory_between_blocks_in_use_returns_to_the_system() {
        let before = resident();
        let mut blocks: Vec<_> = (0..200_000).map(|_| vec![1_u8; 1024]).collect();
        // A block in 64 stays, so that the heap has no free end.
        let mut index = 0;
        blocks.retain(|_| {
            index += 1;
            index % 64 == 0
        });
        let kept = resident().saturating_sub(before);
        assert!(kept > 150_000, "{kept} KiB");
        assert!(release_unused_memory());
        let after = resident().saturating_sub(before);
        assert!(after < 75_000, "{kept} KiB became {after}");
        drop(blocks);
    }
}
