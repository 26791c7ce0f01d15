//! Counters of requests and connections.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use courser::{EarlyData, QuicVersion};
use courser_measure::{Failure, IoCounters, MovesReport, Times};

use crate::request::HttpVersion;
use crate::sender::Answer;

/// Counters of the requests and connections of one thread, or of all threads.
#[derive(Debug)]
pub(crate) struct RunCounts {
    /// The start of the measurement. Earlier requests do not count.
    measured_from: Instant,
    /// Requests with a complete response.
    pub(crate) done: u64,
    /// Requests without a complete response.
    pub(crate) errored: u64,
    /// Requests among the errored ones that exceeded their time limit.
    pub(crate) timeouts: u64,
    /// Requests without a response and connections that could not be opened, by the label of the error.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Number of complete responses, by status code.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// The status of the last responses and their number, because most responses have the same status.
    run: (u16, u64),
    /// Bytes of content received.
    pub(crate) data: u64,
    /// Bytes of field lines received: uncompressed names and values.
    pub(crate) fields: u64,
    /// Times from the moment when a request was due, or sent, to the end of its response.
    pub(crate) latency: Times,
    /// Times from sending a request to the end of its response, if `latency` counts from the due time.
    pub(crate) service: Times,
    /// Times from sending a request to the header section of its response.
    pub(crate) head: Times,
    /// Complete responses in each tenth of a second since the measurement began.
    pub(crate) tenths: Vec<u64>,
    /// The time at which the last request ended.
    pub(crate) last: Option<Instant>,
    /// Connections that were established and have ended.
    pub(crate) connections: Vec<ConnectionRecord>,
    /// Connections that could not be opened.
    pub(crate) refused: u64,
    /// Connections that were lost before the end of the run.
    pub(crate) lost: u64,
    /// The failure of the first connection that could not be opened, which is reported if none can be.
    pub(crate) failure: Option<Failure>,
    pub(crate) agreed: Option<Agreed>,
}

/// The protocols that client and server negotiated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// The version of HTTP.
    pub version: HttpVersion,
    /// The version of QUIC; `None` over TCP.
    pub quic: Option<QuicVersion>,
    /// The TLS session; `None` without TLS.
    pub tls: Option<AgreedTls>,
}

/// The TLS session of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgreedTls {
    /// The version in the spelling of OpenSSL and h2load: `TLSv1.3`.
    pub version: &'static str,
    /// The name of the cipher suite in the registry of IANA, such as `TLS_AES_128_GCM_SHA256`.
    pub cipher: Option<String>,
    /// The key exchange group, such as `X25519MLKEM768`.
    pub group: Option<String>,
}

/// The figures of a connection that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionRecord {
    /// Time from the first packet to the end of the handshake.
    pub connect: Duration,
    /// True if the handshake resumed a TLS session.
    pub is_resumed: bool,
    /// The fate of early data (0-RTT).
    pub early_data: EarlyData,
    /// Time from the first packet to the header section of the first response.
    pub first_byte: Option<Duration>,
    /// Requests answered while the connection was measured.
    pub requests: u64,
    /// The time for which the connection was measured.
    pub measured: Duration,
    /// Bytes of HTTP received, without TLS and the layers below it.
    pub received: u64,
    /// Bytes of HTTP sent, without TLS and the layers below it.
    pub sent: u64,
    /// The counters of QUIC; `None` over TCP.
    pub quic: Option<QuicRecord>,
}

/// The counters of a QUIC connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuicRecord {
    /// Lowest round-trip time of the connection (RFC 9002 §5.2).
    pub min_rtt: Duration,
    /// Smoothed round-trip time at the end.
    pub smoothed_rtt: Duration,
    /// QUIC packets sent, of all packet number spaces.
    pub packets_sent: u64,
    /// QUIC packets received, of all packet number spaces.
    pub packets_received: u64,
    /// Packets that were declared lost.
    pub packets_lost: u64,
    /// Counters of the socket of the connection.
    pub io: IoCounters,
}

/// The counters of a whole run.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) counts: RunCounts,
    /// Requests sent, including those without an answer.
    pub(crate) sent: u64,
    /// The time since the start, or since the end of the warm-up.
    pub(crate) elapsed: Duration,
    /// CPU time of this process during the measurement.
    pub(crate) cpu_seconds: f64,
    /// True if the run was stopped before its end.
    pub(crate) is_interrupted: bool,
    /// Moves of the connections, if they move.
    pub(crate) moves: Option<MovesReport>,
}

/// The times of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTimes {
    /// The time at which the request was due; `None` without a rate.
    pub(crate) due: Option<Instant>,
    pub(crate) sent: Instant,
    pub(crate) over: Instant,
}

impl RunCounts {
    pub(crate) fn new(measured_from: Instant) -> Self {
        Self {
            measured_from,
            done: 0,
            errored: 0,
            timeouts: 0,
            errors: BTreeMap::new(),
            statuses: BTreeMap::new(),
            run: (0, 0),
            data: 0,
            fields: 0,
            latency: Times::new(),
            service: Times::new(),
            head: Times::new(),
            tenths: Vec::new(),
            last: None,
            connections: Vec::new(),
            refused: 0,
            lost: 0,
            failure: None,
            agreed: None,
        }
    }

    /// Counts a request with its response. Returns false if it was sent before the measurement began, in which
    /// case it does not count. With `is_corrected`, latency counts from the time at which it was due.
    pub(crate) fn on_answer(
        &mut self,
        times: RequestTimes,
        answer: &Answer,
        is_corrected: bool,
    ) -> bool {
        let from = match times.due {
            Some(due) if is_corrected => due,
            _ => times.sent,
        };
        if from < self.measured_from {
            return false;
        }
        self.done += 1;
        self.data += answer.data;
        self.fields += answer.fields;
        if self.run.0 == answer.status {
            self.run.1 += 1;
        } else {
            self.end_run();
            self.run = (answer.status, 1);
        }
        self.latency.record(times.over - from);
        if is_corrected {
            self.service.record(times.over - times.sent);
        }
        self.head.record(answer.head - times.sent);
        self.on_over(times.over);
        true
    }

    /// Counts a request without a response or without a connection.
    pub(crate) fn on_error(
        &mut self,
        sent: Instant,
        over: Instant,
        label: String,
        timed_out: bool,
    ) {
        if sent < self.measured_from {
            return;
        }
        self.errored += 1;
        self.timeouts += u64::from(timed_out);
        self.count_error(label);
        self.last = self.last.max(Some(over));
    }

    /// Counts an error that is not about a request.
    pub(crate) fn count_error(&mut self, label: String) {
        let is_known = self.errors.contains_key(&label);
        let label = if is_known || self.errors.len() < MAX_LABELS {
            label
        } else {
            "others".to_owned()
        };
        *self.errors.entry(label).or_default() += 1;
    }

    /// Adds the counters of another thread.
    pub(crate) fn add(&mut self, mut other: Self) {
        other.end_run();
        self.end_run();
        self.done += other.done;
        self.errored += other.errored;
        self.timeouts += other.timeouts;
        self.data += other.data;
        self.fields += other.fields;
        self.refused += other.refused;
        self.lost += other.lost;
        for (label, count) in other.errors {
            *self.errors.entry(label).or_default() += count;
        }
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.head.add(&other.head);
        if self.tenths.len() < other.tenths.len() {
            self.tenths.resize(other.tenths.len(), 0);
        }
        for (mine, its) in self.tenths.iter_mut().zip(&other.tenths) {
            *mine += its;
        }
        self.last = self.last.max(other.last);
        self.connections.extend(other.connections);
        self.failure = self.failure.take().or(other.failure);
        self.agreed = self.agreed.take().or(other.agreed);
    }

    fn end_run(&mut self) {
        let (status, count) = std::mem::take(&mut self.run);
        if count > 0 {
            *self.statuses.entry(status).or_default() += count;
        }
    }

    fn on_over(&mut self, over: Instant) {
        self.last = self.last.max(Some(over));
        let tenth = (over - self.measured_from).as_millis() / 100;
        let Some(tenth) = usize::try_from(tenth)
            .ok()
            .filter(|tenth| *tenth < MAX_TENTHS)
        else {
            return;
        };
        if self.tenths.len() <= tenth {
            self.tenths.resize(tenth + 1, 0);
        }
        self.tenths[tenth] += 1;
    }
}

/// The largest number of labels, which bounds the memory for text of peers.
const MAX_LABELS: usize = 100;

/// The largest number of tenths of a second that are counted: one day.
const MAX_TENTHS: usize = 864_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, head: Instant) -> Answer {
        Answer {
            status,
            head,
            over: head,
            data: 10,
            fields: 20,
        }
    }

    fn longest_ms(times: &Times) -> f64 {
        (times.stats().max * 1e3).round()
    }

    #[test]
    fn corrected_latency_counts_from_the_due_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let times = RequestTimes {
            due: Some(at(100)),
            sent: at(900),
            over: at(1000),
        };
        let mut counts = RunCounts::new(start);
        assert!(counts.on_answer(times, &answer(200, at(950)), true));
        assert_eq!(longest_ms(&counts.latency), 900.0);
        assert_eq!(longest_ms(&counts.service), 100.0);
        let mut counts = RunCounts::new(start);
        assert!(counts.on_answer(times, &answer(200, at(950)), false));
        assert_eq!(longest_ms(&counts.latency), 100.0);
    }

    #[test]
    fn requests_of_the_warm_up_do_not_count() {
        let start = Instant::now();
        let mut counts = RunCounts::new(start + Duration::from_secs(1));
        let times = RequestTimes {
            due: None,
            sent: start,
            over: start + Duration::from_secs(2),
        };
        assert!(!counts.on_answer(times, &answer(200, times.over), false));
        counts.on_error(start, times.over, "gone".to_owned(), false);
        assert_eq!((counts.done, counts.errored), (0, 0));
    }

    #[test]
    fn statuses_of_threads_are_added_up() {
        let start = Instant::now();
        let times = RequestTimes {
            due: None,
            sent: start,
            over: start,
        };
        let count = |statuses: &[u16]| {
            let mut counts = RunCounts::new(start);
            for status in statuses {
                counts.on_answer(times, &answer(*status, start), false);
            }
            counts
        };
        let mut all = count(&[200, 200, 503, 200]);
        all.add(count(&[404, 503]));
        let expected = BTreeMap::from([(200, 3), (404, 1), (503, 2)]);
        assert_eq!((all.done, all.statuses), (6, expected));
    }

    #[test]
    fn number_of_error_labels_is_bounded() {
        let mut counts = RunCounts::new(Instant::now());
        for number in 0..10_000 {
            counts.count_error(format!("error {number}"));
        }
        assert!(counts.errors.len() <= MAX_LABELS + 1);
        assert_eq!(counts.errors.values().sum::<u64>(), 10_000);
    }
}
