#![cfg(unix)]

use std::cell::RefCell;

use super::*;

const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const ALL: Extras = Extras {
    mark: true,
    source: Some(SOURCE),
};

/// A kernel that fails calls with some control messages, and remembers all calls.
struct Kernel<F> {
    refuses: F,
    calls: RefCell<Vec<Extras>>,
    refusals: Refusals,
    counters: AtomicCounters,
    has_address: bool,
}

impl<F: Fn(Extras) -> Option<i32>> Kernel<F> {
    fn new(refuses: F) -> Self {
        Self {
            refuses,
            calls: RefCell::default(),
            refusals: Refusals::default(),
            counters: AtomicCounters::default(),
            has_address: true,
        }
    }

    /// Sends with all control messages. Returns the error, if any.
    fn send(&self) -> Option<i32> {
        let is_local = |_| self.has_address;
        let sent = self.refusals.send(ALL, &self.counters, is_local, |extras| {
            self.calls.borrow_mut().push(extras);
            match (self.refuses)(extras) {
                Some(code) => Err(io::Error::from_raw_os_error(code)),
                None => Ok(()),
            }
        });
        sent.err()?.raw_os_error()
    }

    fn calls(&self) -> Vec<Extras> {
        self.calls.take()
    }

    /// Fallbacks of marks and of source addresses.
    fn fallbacks(&self) -> (u64, u64) {
        let counters = self.counters.snapshot();
        (counters.mark_fallbacks, counters.source_fallbacks)
    }
}

const UNMARKED: Extras = Extras { mark: false, ..ALL };
const UNNAMED: Extras = Extras {
    source: None,
    ..ALL
};

#[test]
fn refused_marks_are_left_out_from_the_first_call_on() {
    for code in [libc::EINVAL, libc::EIO, libc::EOPNOTSUPP, libc::ENOPROTOOPT] {
        let kernel = Kernel::new(|extras| extras.mark.then_some(code));
        assert_eq!(kernel.send(), None, "errno {code}");
        assert_eq!(kernel.calls(), [ALL, UNMARKED], "errno {code}");
        assert!(!kernel.refusals.can_mark() && kernel.refusals.can_choose_source());
        assert_eq!(kernel.send(), None);
        assert_eq!(kernel.calls(), [UNMARKED], "marks stay left out");
        assert_eq!(kernel.fallbacks(), (1, 0));
    }
}

#[test]
fn refused_source_addresses_are_left_out() {
    let kernel = Kernel::new(|extras| extras.source.map(|_| libc::EINVAL));
    assert_eq!(kernel.send(), None);
    assert_eq!(kernel.calls(), [ALL, UNMARKED, UNNAMED]);
    assert!(kernel.refusals.can_mark() && !kernel.refusals.can_choose_source());
    assert_eq!(kernel.send(), None);
    assert_eq!(kernel.calls(), [UNNAMED]);
    assert_eq!(kernel.fallbacks(), (0, 1));
}

#[test]
fn both_can_be_refused() {
    let kernel = Kernel::new(|extras| (extras != NO_EXTRAS).then_some(libc::EINVAL));
    assert_eq!(kernel.send(), None);
    assert_eq!(kernel.calls(), [ALL, UNMARKED, UNNAMED, NO_EXTRAS]);
    assert_eq!(kernel.fallbacks(), (1, 1));
    assert_eq!(kernel.send(), None);
    assert_eq!(kernel.calls(), [NO_EXTRAS]);
}

/// An address that the machine has lost fails with the same error. Another address would be wrong, and
/// those of other connections are in order.
#[test]
fn missing_source_address_is_not_replaced() {
    let mut kernel = Kernel::new(|extras| extras.source.map(|_| libc::EINVAL));
    kernel.has_address = false;
    assert_eq!(kernel.send(), Some(libc::EINVAL));
    assert_eq!(kernel.calls(), [ALL, UNMARKED]);
    assert!(kernel.refusals.can_choose_source() && kernel.refusals.can_mark());
}

/// A firewall refuses datagrams whatever their marks are.
#[test]
fn firewall_refusals_keep_marks() {
    let kernel = Kernel::new(|_| Some(libc::EPERM));
    for _ in 0..10 {
        assert_eq!(kernel.send(), Some(libc::EPERM));
    }
    assert!(kernel.refusals.can_mark() && kernel.refusals.can_choose_source());
    assert_eq!(kernel.fallbacks(), (0, 0));
}

/// If a firewall refuses every second datagram, the repeated call succeeds by chance.
#[test]
fn partial_firewall_refusals_keep_marks() {
    let count = RefCell::new(0);
    let kernel = Kernel::new(|_| {
        *count.borrow_mut() += 1;
        // The first call fails and the repetition passes, and so does the next datagram.
        (*count.borrow() % 3 == 1).then_some(libc::EPERM)
    });
    for _ in 0..20 {
        assert_eq!(kernel.send(), None);
    }
    assert!(kernel.refusals.can_mark());
    assert_eq!(kernel.fallbacks(), (0, 0));
}

/// A sandbox that refuses all marks with the error of a firewall.
#[test]
fn marks_that_are_always_forbidden_are_left_out_after_three_calls() {
    let kernel = Kernel::new(|extras| extras.mark.then_some(libc::EPERM));
    for _ in 0..MAX_REFUSALS {
        assert!(kernel.refusals.can_mark());
        assert_eq!(kernel.send(), None, "no datagram is lost");
    }
    assert!(!kernel.refusals.can_mark());
    assert_eq!(kernel.fallbacks(), (1, 0));
}

#[test]
fn other_errors_are_not_repeated() {
    for code in [
        libc::EAGAIN,
        libc::ENOBUFS,
        libc::ENETUNREACH,
        libc::ENODEV,
        libc::EMSGSIZE,
        libc::EBADF,
    ] {
        let kernel = Kernel::new(|_| Some(code));
        assert_eq!(kernel.send(), Some(code));
        assert_eq!(kernel.calls(), [ALL], "errno {code}");
    }
}

/// The repetition finds the send buffer full: the batch waits, and is sent with its mark again.
#[test]
fn full_buffer_during_the_repetition_is_no_proof() {
    let kernel = Kernel::new(|extras| {
        let code = match extras.mark {
            true => libc::EINVAL,
            false => libc::EAGAIN,
        };
        Some(code)
    });
    assert_eq!(kernel.send(), Some(libc::EAGAIN));
    assert!(kernel.refusals.can_mark());
}

/// A call with marks may end after another thread's call has proved that marks are refused.
#[test]
fn late_success_of_another_thread_restores_nothing() {
    let refusals = Refusals::default();
    refusals.marks.refuse();
    refusals.marks.on_accepted();
    assert!(!refusals.can_mark());
    assert!(!refusals.marks.refuse(), "counted once");
}
