//! Messages for the operator when requests to the upstream server fail.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::time::Duration;

use courser::server::Cause;
use courser_base::Mutex;
use tokio::time::Instant;

/// Reports each cause at most once a minute, so that an outage does not fill the log.
pub(super) struct Reporter {
    /// The URL of the upstream server.
    upstream: String,
    report: Box<dyn Fn(&str) + Send + Sync>,
    reported: Mutex<[Reported; Cause::ALL.len()]>,
    /// True while a thread writes a message.
    is_busy: AtomicBool,
}

#[derive(Clone, Copy, Default)]
struct Reported {
    last: Option<Instant>,
    /// Failures since then.
    suppressed: u64,
}

impl Reporter {
    pub(super) fn new(
        upstream: String,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            report: Box::new(report),
            reported: Mutex::new([Reported::default(); Cause::ALL.len()]),
            is_busy: AtomicBool::new(false),
        })
    }

    /// Reports a failure if its cause has not been reported for a minute.
    pub(super) fn on_failure(
        self: &Arc<Self>,
        cause: Cause,
        error: Option<&(dyn std::error::Error + Send + Sync + 'static)>,
        address: Option<SocketAddr>,
    ) {
        if !cause.is_upstream() {
            return;
        }
        let suppressed = {
            let mut reported = self.reported.lock();
            let reported = &mut reported[cause as usize];
            let is_recent = reported
                .last
                .is_some_and(|last| last.elapsed() < REPORT_AGAIN);
            // A message that cannot be written delays the next one, and no request.
            if is_recent || self.is_busy.swap(true, Acquire) {
                reported.suppressed += 1;
                return;
            }
            reported.last = Some(Instant::now());
            std::mem::take(&mut reported.suppressed)
        };
        let text = self.text(cause, error, address, suppressed);
        let reporter = self.clone();
        let thread = std::thread::Builder::new().name("proxy-report".to_owned());
        let started = thread.spawn(move || {
            (reporter.report)(&text);
            reporter.is_busy.store(false, Release);
        });
        if started.is_err() {
            self.is_busy.store(false, Release);
        }
    }
}

impl Reporter {
    fn text(
        &self,
        cause: Cause,
        error: Option<&(dyn std::error::Error + Send + Sync + 'static)>,
        address: Option<SocketAddr>,
        suppressed: u64,
    ) -> String {
        let mut text = format!("proxy to {}", self.upstream);
        // Writing to a string does not fail.
        if let Some(address) = address {
            let _ = write!(text, " at {address}");
        }
        let _ = write!(text, ": {}", cause.sentence().trim_end_matches('.'));
        let mut source = error.map(|error| error as &(dyn std::error::Error + 'static));
        while let Some(error) = source {
            let _ = write!(text, ": {error}");
            source = error.source();
        }
        if let Some(remedy) = cause.remedy() {
            let _ = write!(text, "; {remedy}");
        }
        let _ = write!(text, " ({}", cause.name());
        if suppressed > 0 {
            let _ = write!(text, ", {suppressed} times since the last message");
        }
        text.push(')');
        text
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}

/// Least time between two messages with the same cause.
const REPORT_AGAIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn cause_is_reported_once_a_minute_with_the_number_of_failures() {
        let (send, messages) = mpsc::channel();
        let reporter = Reporter::new("http://a.test".to_owned(), move |text| {
            drop(send.send(text.to_owned()))
        });
        let address = Some(([127, 0, 0, 1], 80).into());
        let fail = |cause| {
            let error = crate::body::BoxError::from("why");
            reporter.on_failure(cause, Some(&*error), address);
        };
        let next = || messages.recv_timeout(Duration::from_secs(5)).ok();
        fail(Cause::UpstreamRefused);
        let first = next().expect("a message");
        assert_eq!(
            first,
            "proxy to http://a.test at 127.0.0.1:80: The upstream server refused the connection: why; \
             check that the server runs and listens at this address (upstream_refused)"
        );
        fail(Cause::UpstreamRefused);
        fail(Cause::UpstreamRefused);
        fail(Cause::ContentAborted);
        assert!(messages.try_recv().is_err());
        tokio::time::advance(REPORT_AGAIN).await;
        while reporter.is_busy.load(Acquire) {
            tokio::task::yield_now().await;
        }
        fail(Cause::UpstreamRefused);
        let second = next().expect("a message");
        assert!(
            second.ends_with("(upstream_refused, 2 times since the last message)"),
            "{second}"
        );
    }

    /// A stalled standard error delays no request.
    #[tokio::test]
    async fn messages_that_cannot_be_written_block_nothing() {
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = std::sync::Mutex::new(blocked);
        let reporter = Reporter::new(String::new(), move |_| {
            let _ = blocked.lock().expect("no panic").recv();
        });
        for cause in Cause::ALL {
            reporter.on_failure(*cause, None, None);
        }
        let reported = reporter.reported.lock();
        let written = reported.iter().filter(|it| it.last.is_some()).count();
        assert_eq!(written, 1);
        drop(release);
    }
}
