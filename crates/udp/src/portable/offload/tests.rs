#![cfg(unix)]

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use courser_base::Ecn;

use super::*;
use crate::Counters;

/// A kernel that follows a script and records length and segment size of each call.
struct Kernel {
    script: VecDeque<CallResult>,
    calls: Vec<(usize, Option<usize>)>,
    wire: Vec<u8>,
}

enum CallResult {
    Take,
    TakeOnly(usize),
    Fail(i32),
}

use CallResult::{Fail, Take, TakeOnly};

impl Kernel {
    /// Returns the results of the script in order, then accepts everything.
    fn new(script: impl IntoIterator<Item = CallResult>) -> Self {
        Self {
            script: script.into_iter().collect(),
            calls: Vec::new(),
            wire: Vec::new(),
        }
    }

    fn call(&mut self, contents: &[u8], segment: Option<usize>) -> io::Result<usize> {
        self.calls.push((contents.len(), segment));
        let taken = match self.script.pop_front().unwrap_or(Take) {
            Take => contents.len(),
            TakeOnly(bytes) => bytes,
            Fail(code) => return Err(io::Error::from_raw_os_error(code)),
        };
        let sent = segment.map_or(taken, |size| taken.next_multiple_of(size));
        self.wire
            .extend_from_slice(&contents[..sent.min(contents.len())]);
        Ok(taken)
    }
}

struct Bench {
    offload: Offload,
    counters: AtomicCounters,
    kernel: Kernel,
}

impl Bench {
    fn new(segments: usize, script: impl IntoIterator<Item = CallResult>) -> Self {
        let kernel = Kernel::new(script);
        Self {
            offload: Offload::new(segments),
            counters: AtomicCounters::default(),
            kernel,
        }
    }

    fn send(&mut self, contents: &[u8], segment_size: Option<usize>) -> io::Result<usize> {
        let destination = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let ecn = Ecn::NotEct;
        let transmit = Transmit {
            destination,
            source: None,
            ecn,
            segment_size,
            contents,
        };
        self.offload.send(&transmit, &self.counters, |bytes, size| {
            self.kernel.call(bytes, size)
        })
    }

    fn counters(&self) -> Counters {
        self.counters.snapshot()
    }
}

/// Returns `count` datagrams of 100 bytes, the last one of 40.
fn batch(count: u8) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..count).flat_map(|datagram| [datagram; 100]).collect();
    bytes.truncate(bytes.len() - 60);
    bytes
}

fn code<T: std::fmt::Debug>(result: io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}

#[test]
fn batch_within_the_limit_is_one_call() {
    let mut bench = Bench::new(64, []);
    assert_eq!(bench.send(&batch(45), Some(100)).unwrap(), 4_440);
    assert_eq!(bench.kernel.calls, [(4_440, Some(100))]);
    let counters = bench.counters();
    let expected = Counters {
        send_calls: 1,
        sent_datagrams: 45,
        sent_bytes: 4_440,
        ..Counters::default()
    };
    assert_eq!(counters, expected);
}

#[test]
fn single_datagram_never_asks_for_segmentation() {
    let mut bench = Bench::new(64, []);
    bench.send(&[7; 100], Some(100)).unwrap();
    bench.send(&[7; 100], Some(1_200)).unwrap();
    bench.send(&[7; 100], None).unwrap();
    assert_eq!(bench.kernel.calls, [(100, None); 3]);
}

#[test]
fn empty_datagram_is_sent_once() {
    let mut bench = Bench::new(64, []);
    assert_eq!(bench.send(&[], None).unwrap(), 0);
    assert_eq!(bench.kernel.calls, [(0, None)]);
    assert_eq!(bench.counters().sent_datagrams, 1);
}

#[test]
fn longer_batch_is_split_by_count() {
    let mut bench = Bench::new(4, []);
    bench.send(&batch(10), Some(100)).unwrap();
    assert_eq!(
        bench.kernel.calls,
        [(400, Some(100)), (400, Some(100)), (140, Some(100))]
    );
    assert_eq!(bench.kernel.wire, batch(10));
}

#[test]
fn longer_batch_is_split_by_bytes() {
    let mut bench = Bench::new(128, []);
    let contents = vec![3; 60 * 1_452];
    bench.send(&contents, Some(1_452)).unwrap();
    assert_eq!(
        bench.kernel.calls,
        [(45 * 1_452, Some(1_452)), (15 * 1_452, Some(1_452))]
    );
}

#[test]
fn remainder_of_one_datagram_goes_without_segmentation() {
    let mut bench = Bench::new(4, []);
    bench.send(&batch(5), Some(100)).unwrap();
    assert_eq!(bench.kernel.calls, [(400, Some(100)), (40, None)]);
}

#[test]
fn broken_offload_is_switched_off_once_and_each_datagram_sent_once() {
    for error in [libc::EIO, libc::EINVAL, libc::EMSGSIZE] {
        let mut bench = Bench::new(64, [Fail(error), Fail(error)]);
        assert_eq!(
            bench.send(&batch(3), Some(100)).unwrap(),
            240,
            "errno {error}"
        );
        let expected = [
            (240, Some(100)),
            (240, Some(100)),
            (100, None),
            (100, None),
            (40, None),
        ];
        assert_eq!(bench.kernel.calls, expected, "errno {error}");
        assert_eq!(bench.kernel.wire, batch(3), "errno {error}");
        assert_eq!(bench.offload.segments(), 1, "errno {error}");
        bench.send(&batch(2), Some(100)).unwrap();
        assert_eq!(
            bench.kernel.calls[5..],
            [(100, None), (40, None)],
            "errno {error}"
        );
        assert_eq!(bench.counters().gso_fallbacks, 1, "errno {error}");
        assert_eq!(bench.counters().sent_datagrams, 5, "errno {error}");
    }
}

#[test]
fn error_about_an_earlier_datagram_keeps_offload() {
    let mut bench = Bench::new(64, [Fail(libc::EMSGSIZE)]);
    bench.send(&batch(3), Some(100)).unwrap();
    assert_eq!(bench.kernel.calls, [(240, Some(100)), (240, Some(100))]);
    assert_eq!(bench.offload.segments(), 64);
    assert_eq!(bench.counters().gso_fallbacks, 0);
}

#[test]
fn datagrams_too_large_for_the_path_keep_offload() {
    let mut bench = Bench::new(
        64,
        [Fail(libc::EINVAL), Fail(libc::EINVAL), Fail(libc::EMSGSIZE)],
    );
    assert_eq!(code(bench.send(&batch(3), Some(100))), libc::EMSGSIZE);
    assert_eq!(bench.offload.segments(), 64);
    assert_eq!(bench.counters(), Counters::default());
}

#[test]
fn full_buffer_during_fallback_keeps_the_batch() {
    let mut bench = Bench::new(64, [Fail(libc::EIO), Fail(libc::EIO), Fail(libc::EAGAIN)]);
    assert_eq!(code(bench.send(&batch(3), Some(100))), libc::EAGAIN);
    assert_eq!(bench.send(&batch(3), Some(100)).unwrap(), 240);
    assert_eq!(bench.kernel.wire, batch(3));
}

#[test]
fn interrupted_sends_are_repeated() {
    let interrupted = || Fail(libc::EINTR);
    let mut bench = Bench::new(4, [interrupted(), interrupted(), Take, interrupted()]);
    assert_eq!(bench.send(&batch(5), Some(100)).unwrap(), 440);
    assert_eq!(bench.kernel.wire, batch(5));
}

#[test]
fn partial_send_reports_the_bytes_taken() {
    for error in [
        libc::EAGAIN,
        libc::ENOBUFS,
        libc::ECONNREFUSED,
        libc::EMSGSIZE,
        libc::EPERM,
    ] {
        let mut bench = Bench::new(1, [Take, Take, Fail(error)]);
        let all = batch(5);
        let taken = bench.send(&all, Some(100)).unwrap();
        assert_eq!(taken, 200, "errno {error}");
        bench.send(&all[taken..], Some(100)).unwrap();
        assert_eq!(bench.kernel.wire, all, "errno {error}");
        assert_eq!(bench.counters().sent_datagrams, 5, "errno {error}");
    }
}

#[test]
fn errors_that_are_not_about_offload_pass_through() {
    for error in [
        libc::ENOBUFS,
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::EPERM,
    ] {
        let mut bench = Bench::new(64, [Fail(error)]);
        assert_eq!(code(bench.send(&batch(3), Some(100))), error);
        assert_eq!(bench.kernel.calls.len(), 1, "errno {error}");
        assert_eq!(bench.offload.segments(), 64, "errno {error}");
    }
}

#[test]
fn short_acceptance_continues_at_the_next_datagram() {
    let mut bench = Bench::new(64, [TakeOnly(200), TakeOnly(150)]);
    assert_eq!(bench.send(&batch(6), Some(100)).unwrap(), 540);
    let expected = [(540, Some(100)), (340, Some(100)), (140, Some(100))];
    assert_eq!(bench.kernel.calls, expected);
    assert_eq!(bench.kernel.wire, batch(6));
    assert_eq!(bench.counters().sent_datagrams, 6);
}

#[test]
fn kernel_that_takes_nothing_causes_no_endless_loop() {
    let mut bench = Bench::new(64, [TakeOnly(0), TakeOnly(0), TakeOnly(0)]);
    assert_eq!(bench.send(&batch(3), Some(100)).unwrap(), 240);
    assert_eq!(bench.kernel.calls.len(), 3);
}

#[test]
fn datagram_above_every_limit_is_offered_whole() {
    let mut bench = Bench::new(64, [Fail(libc::EMSGSIZE)]);
    assert_eq!(code(bench.send(&vec![0; 70_000], None)), libc::EMSGSIZE);
    assert_eq!(bench.kernel.calls, [(70_000, None)]);
}
