//! The system call `adjtimex`, which without modes only reads.
#![allow(unsafe_code)]

use std::mem;
use std::time::Duration;

use crate::clock::ClockState;

/// Returns the state of the clock, or `None` if the system does not report it. Linux only so far; no privilege
/// is needed.
pub fn clock_state() -> Option<ClockState> {
    // SAFETY: `timex` consists of integers and padding, for which zeros are valid values.
    let mut state: libc::timex = unsafe { mem::zeroed() };
    // SAFETY: the pointer leads to a `timex` that lives until the call returns. Its modes are 0, so that
    // the kernel only writes to it.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    if result < 0 {
        return None;
    }
    Some(ClockState {
        is_synchronized: result != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
        max_error: Duration::from_micros(u64::try_from(state.maxerror).unwrap_or(0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_read_without_a_privilege() {
        let state = clock_state().expect("Linux reports it");
        // The kernel counts errors up to 16 s.
        assert!(state.max_error <= Duration::from_secs(16), "{state:?}");
    }
}
