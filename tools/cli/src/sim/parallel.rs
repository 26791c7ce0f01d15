//! Calls a function on several threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use courser_base::Mutex;

use crate::error::Failure;

/// Calls `one` with each number below `count`, and returns the results in the order of the numbers.
///
/// Uses a thread for each core unless `threads` is given. After a failure no further calls begin. `progress` is
/// called after each call with the number of finished calls.
pub(super) fn in_parallel<T: Send>(
    count: usize,
    threads: Option<NonZeroUsize>,
    one: impl Fn(usize) -> Result<T, Failure> + Sync,
    progress: impl Fn(usize) + Sync,
) -> Result<Vec<T>, Failure> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.map_or_else(cores, usize::from).min(count);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = one(number);
            if result.is_err() {
                next.store(count, Ordering::Relaxed);
            }
            let mut done = done.lock();
            done.push((number, result));
            progress(done.len());
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_for_any_number_of_threads() {
        for threads in [1, 3, 20] {
            let threads = NonZeroUsize::new(threads);
            let squares = in_parallel(10, threads, |number| Ok(number * number), |_| {});
            let expected: Vec<_> = (0..10).map(|number| number * number).collect();
            assert_eq!(squares.expect("no failure"), expected);
        }
    }

    #[test]
    fn failure_ends_the_work() {
        let calls = AtomicUsize::new(0);
        let one = |number| {
            calls.fetch_add(1, Ordering::Relaxed);
            match number {
                2 => Err(Failure::new("two")),
                number => Ok(number),
            }
        };
        let result = in_parallel(10, NonZeroUsize::new(1), one, |_| {});
        assert_eq!(result.expect_err("a failure").to_string(), "two");
        assert_eq!(calls.into_inner(), 3);
    }
}
