//! Messages of a running server, printed by threads of their own.
//!
//! A reader of standard output or standard error may stall, and no task of the server may wait for it. Messages
//! wait in a queue for each stream (limit K359). Those that do not fit are dropped and counted.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use courser_base::Mutex;
use courser_measure::printable;
use serde_json::json;

use crate::output;

/// Prints a line to standard output.
pub(crate) fn line(text: impl Into<String>) {
    STDOUT.print(text.into());
}

/// Prints a remark to standard error.
pub(crate) fn note(text: impl Into<String>) {
    STDERR.print(text.into());
}

/// Returns a function that prints warnings: events on standard output if messages are JSON, or remarks.
pub(crate) fn warning(as_json: bool) -> impl Fn(&str) + Send + Sync + 'static {
    move |text| match as_json {
        true => line(json!({"event": "warning", "text": text}).to_string()),
        false => note(printable(text)),
    }
}

/// Prints an event: an object on standard output if messages are JSON, or a remark.
pub(crate) fn event(as_json: bool, kind: &str, text: &str) {
    match as_json {
        true => line(json!({"event": kind, "text": text}).to_string()),
        false => note(printable(text)),
    }
}

/// Waits until all messages are printed, at most for this long.
pub(crate) fn end(within: Duration) {
    let until = Instant::now() + within;
    let lost = STDOUT.end(until);
    if lost > 0 {
        note(format!(
            "{lost} messages were not printed: the reader of standard output has stalled"
        ));
    }
    // Nobody can be told of messages that standard error did not take.
    STDERR.end(until.max(Instant::now() + LAST_REMARK));
}

/// Limits warnings that each request can cause.
#[derive(Debug, Default)]
pub(crate) struct Rarely(Mutex<Option<Instant>>);

impl Rarely {
    /// Returns true if a warning is due at this time, and records it.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| now.duration_since(last) >= WARN_AGAIN);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

static STDOUT: Printer = Printer::new("stdout", |text| output::line(text));
static STDERR: Printer = Printer::new("stderr", |text| output::note(text));

struct Printer {
    name: &'static str,
    write: fn(&str),
    queue: OnceLock<Option<SyncSender<Order>>>,
    /// Messages that are not printed yet, and those that were dropped.
    missing: AtomicU64,
}

enum Order {
    Print(String),
    /// Reports that all earlier messages are printed.
    Report(Sender<()>),
}

impl Printer {
    const fn new(name: &'static str, write: fn(&str)) -> Self {
        Self {
            name,
            write,
            queue: OnceLock::new(),
            missing: AtomicU64::new(0),
        }
    }

    fn print(&'static self, text: String) {
        let Some(queue) = self.queue.get_or_init(|| self.start()) else {
            // Without a thread the caller has to wait.
            return (self.write)(&text);
        };
        self.missing.fetch_add(1, Relaxed);
        // A message that does not fit stays missing.
        let _ = queue.try_send(Order::Print(text));
    }

    fn start(&'static self) -> Option<SyncSender<Order>> {
        let (queue, orders) = sync_channel(MAX_MESSAGES);
        let thread = std::thread::Builder::new().name(format!("print-{}", self.name));
        let started = thread.spawn(move || {
            for order in orders {
                match order {
                    Order::Print(text) => {
                        (self.write)(&text);
                        self.missing.fetch_sub(1, Relaxed);
                    }
                    Order::Report(done) => drop(done.send(())),
                }
            }
        });
        started.is_ok().then_some(queue)
    }

    /// Waits until all messages are printed. Returns the number of those that are not.
    fn end(&'static self, until: Instant) -> u64 {
        let Some(Some(queue)) = self.queue.get() else {
            return 0;
        };
        let (report, done) = channel();
        if queue.try_send(Order::Report(report)).is_ok() {
            let _ = done.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
        self.missing.swap(0, Relaxed)
    }
}

/// Largest number of messages that wait for a stream (limit K359).
const MAX_MESSAGES: usize = 256;

/// Least time between two warnings of the same kind (limit K434).
const WARN_AGAIN: Duration = Duration::from_secs(60);

/// Time for the last remark.
const LAST_REMARK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    static BLOCKED: Mutex<()> = Mutex::new(());

    /// Limit K434.
    #[test]
    fn rare_warnings_are_due_once_a_minute() {
        let rarely = Rarely::default();
        let begin = Instant::now();
        for (seconds, is_due) in [(0, true), (1, false), (59, false), (60, true), (61, false)] {
            assert_eq!(rarely.is_due(begin + Duration::from_secs(seconds)), is_due);
        }
    }

    #[test]
    fn reader_that_stalls_blocks_no_caller_and_no_exit() {
        static PRINTER: Printer = Printer::new("test", |_| drop(BLOCKED.lock()));
        let blocked = BLOCKED.lock();
        let began = Instant::now();
        for number in 0..300 {
            PRINTER.print(format!("{number}"));
        }
        let lost = PRINTER.end(Instant::now() + Duration::from_millis(50));
        assert_eq!(lost, 300);
        assert!(began.elapsed() < Duration::from_secs(5));
        drop(blocked);
    }

    #[test]
    fn messages_are_printed_before_the_end() {
        static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
        static PRINTER: Printer = Printer::new("test", |text| {
            PRINTED.lock().push(text.to_owned());
        });
        PRINTER.print("one".to_owned());
        PRINTER.print("two".to_owned());
        let lost = PRINTER.end(Instant::now() + Duration::from_secs(20));
        assert_eq!(lost, 0);
        assert_eq!(*PRINTED.lock(), ["one", "two"]);
    }
}
