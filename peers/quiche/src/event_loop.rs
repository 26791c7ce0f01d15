//! Waiting.

use std::io;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollTimeout, poll};

/// Waits for one of `descriptors`, and until `deadline` at most. What is to be done at once has a
/// deadline that is over.
pub(crate) fn wait(descriptors: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
    match poll(descriptors, timeout(deadline)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn timeout(deadline: Option<Instant>) -> PollTimeout {
    let Some(deadline) = deadline else {
        return PollTimeout::NONE;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    // Rounded up: a timer that is woken early would spin.
    PollTimeout::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timeouts_end_after_their_deadline() {
        let in_future = |nanos| Some(Instant::now() + Duration::from_nanos(nanos));
        assert_eq!(timeout(None), PollTimeout::NONE);
        assert_eq!(timeout(Some(Instant::now())), PollTimeout::ZERO);
        // An hour away, so that the clock between the two lines does not matter.
        let hour = timeout(in_future(3_600_000_000_001)).as_millis();
        assert!(hour.is_some_and(|ms| (3_590_000..=3_600_001).contains(&ms)));
        assert_eq!(timeout(in_future(u64::MAX)), PollTimeout::MAX);
    }
}
