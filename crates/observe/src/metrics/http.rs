//! Counters of HTTP requests.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::{Method, StatusCode};

use super::family::{Distribution, Family, Value};

/// The counters of the requests of all servers that report to the same metrics.
///
/// A request finds its counters by index, without a hash or a lock. No label has a value that a client can choose
/// freely: methods without a place in `METHODS` are counted as `other`.
#[derive(Debug)]
pub struct HttpCounts([OfProtocol; PROTOCOLS.len()]);

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedRequest {
    /// The version of HTTP.
    pub version: HttpVersion,
    /// The index of the method ([`method_index`]).
    pub method: usize,
    /// The status of the response, or [`CLIENT_CLOSED`].
    pub status: StatusCode,
    /// Time from the request header section to the end of the response.
    pub took: Duration,
    /// Number of content bytes in the response.
    pub bytes: u64,
    /// False if the response was aborted.
    pub is_complete: bool,
}

/// The version of HTTP over which a request has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HttpVersion {
    /// HTTP/1.1 or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
    /// The request was answered before the version was negotiated.
    Unknown,
}

/// Counters of one version of HTTP.
#[derive(Debug)]
struct OfProtocol {
    /// Requests by method and by status code minus [`FIRST_CODE`].
    requests: [OnceLock<Box<[AtomicU64; CODES]>>; METHODS.len()],
    /// Number of requests in each bucket. The last bucket is above all bounds.
    durations: [AtomicU64; BOUNDS.len() + 1],
    /// Sum of the durations in nanoseconds.
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
    incomplete: AtomicU64,
}

/// Returns the index of a method in `METHODS`.
#[inline]
pub fn method_index(method: &Method) -> usize {
    match *method {
        Method::GET => 0,
        Method::HEAD => 1,
        Method::POST => 2,
        Method::PUT => 3,
        Method::DELETE => 4,
        Method::OPTIONS => 5,
        Method::PATCH => 6,
        Method::CONNECT => 7,
        Method::TRACE => 8,
        _ => METHODS.len() - 1,
    }
}

impl Default for HttpCounts {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OfProtocol::new()))
    }
}

impl HttpCounts {
    /// Counts a request that has ended.
    pub fn record(&self, request: &EndedRequest) {
        self.0[request.version as usize].record(request);
    }

    /// Returns all counters as families.
    pub(super) fn families(&self) -> Vec<Family> {
        let mut requests = Family::new("http_requests", "Requests answered");
        let help = "Time from the request header section to the end of the response";
        let mut durations = Family::new("http_request_duration_seconds", help);
        let mut bytes = Family::new("http_response_content_bytes", "Bytes of response content");
        let mut incomplete = Family::new(
            "http_responses_incomplete",
            "Responses that were not completed",
        );
        for (protocol, of) in PROTOCOLS.iter().zip(&self.0) {
            of.push_requests(protocol, &mut requests);
            let distribution = of.distribution();
            if *protocol == UNKNOWN && distribution.count == 0 {
                continue;
            }
            let label = || vec![("protocol", (*protocol).to_owned())];
            let count = |count: &AtomicU64| Value::Counter(count.load(Relaxed));
            durations.push(label(), Value::Histogram(distribution));
            bytes.push(label(), count(&of.bytes));
            incomplete.push(label(), count(&of.incomplete));
        }
        vec![requests, durations, bytes, incomplete]
    }
}

impl OfProtocol {
    fn new() -> Self {
        Self {
            requests: Default::default(),
            durations: [const { AtomicU64::new(0) }; _],
            nanoseconds: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
        }
    }

    fn record(&self, request: &EndedRequest) {
        let method = request.method.min(METHODS.len() - 1);
        let codes =
            self.requests[method].get_or_init(|| Box::new([const { AtomicU64::new(0) }; _]));
        codes[usize::from(request.status.as_u16() - FIRST_CODE)].fetch_add(1, Relaxed);
        let nanoseconds = u64::try_from(request.took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < nanoseconds);
        self.durations[bucket].fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
        if request.bytes > 0 {
            self.bytes.fetch_add(request.bytes, Relaxed);
        }
        if !request.is_complete {
            self.incomplete.fetch_add(1, Relaxed);
        }
    }

    /// Adds the series of requests that have occurred.
    fn push_requests(&self, protocol: &str, family: &mut Family) {
        for (method, codes) in METHODS.iter().zip(&self.requests) {
            let Some(codes) = codes.get() else {
                continue;
            };
            for (code, count) in (FIRST_CODE..).zip(codes.iter()) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let labels = vec![
                        ("protocol", protocol.to_owned()),
                        ("method", (*method).to_owned()),
                        ("code", code.to_string()),
                    ];
                    family.push(labels, Value::Counter(count));
                }
            }
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a request are below 2^53"
    )]
    fn distribution(&self) -> Distribution {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e9);
        let counts = self.durations.iter().map(|count| count.load(Relaxed));
        let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        Distribution {
            sum: self.nanoseconds.load(Relaxed) as f64 / 1e9,
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }
}

/// The labels of versions, in the order of [`HttpVersion`].
const PROTOCOLS: [&str; 4] = ["http/1.1", "h2", "h3", UNKNOWN];

const UNKNOWN: &str = "none";

/// The labels of methods (limit K550). The last one stands for all others.
pub const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "other",
];

/// `http::StatusCode` allows 100 to 999.
const FIRST_CODE: u16 = 100;
const CODES: usize = 900;

/// Recorded if the client disconnected before there was a status, as in nginx. HTTP defines no such status.
pub const CLIENT_CLOSED: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};

/// Bucket bounds of request durations in nanoseconds, from a cached file on the same machine to the time at which
/// users give up.
const BOUNDS: [u64; 12] = [
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    5_000_000_000,
    30_000_000_000,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(method: &str, status: u16) -> EndedRequest {
        let method = Method::from_bytes(method.as_bytes()).expect("a token");
        EndedRequest {
            version: HttpVersion::Http3,
            method: method_index(&method),
            status: StatusCode::from_u16(status).expect("in range"),
            took: Duration::from_millis(1),
            bytes: 3,
            is_complete: status != 499,
        }
    }

    fn series(family: &Family) -> Vec<(String, u64)> {
        let each = family.series.iter().map(|it| {
            let labels = it.labels.iter().map(|(_, of)| of.as_str());
            let count = match &it.value {
                Value::Counter(count) => *count,
                Value::Histogram(of) => of.count,
                other => unreachable!("{other:?}"),
            };
            (labels.collect::<Vec<_>>().join(" "), count)
        });
        each.collect()
    }

    #[test]
    fn index_of_each_method_has_its_name() {
        for (index, name) in METHODS.iter().enumerate() {
            let method = Method::from_bytes(name.as_bytes()).expect("a token");
            assert_eq!(method_index(&method), index, "{name}");
        }
    }

    /// Limit K550.
    #[test]
    fn methods_of_clients_create_a_bounded_number_of_series() {
        let counts = HttpCounts::default();
        for number in 0..1000 {
            counts.record(&ended(&format!("X{number}"), 405));
        }
        for method in METHODS {
            counts.record(&ended(method, 200));
        }
        let families = counts.families();
        assert_eq!(families[0].series.len(), METHODS.len() + 1);
        assert!(series(&families[0]).contains(&("h3 other 405".to_owned(), 1000)));
    }

    #[test]
    fn every_possible_status_is_counted() {
        let counts = HttpCounts::default();
        for status in [100, 200, 499, 599, 999] {
            counts.record(&ended("GET", status));
        }
        let families = counts.families();
        let codes = ["100", "200", "499", "599", "999"];
        let expected = codes.map(|code| (format!("h3 GET {code}"), 1));
        assert_eq!(series(&families[0]), expected);
        assert!(series(&families[1]).contains(&("h3".to_owned(), 5)));
        assert!(series(&families[2]).contains(&("h3".to_owned(), 15)));
        assert!(series(&families[3]).contains(&("h3".to_owned(), 1)));
        let versions = families[1].series.len();
        assert_eq!(
            versions, 3,
            "all versions are there before their first request"
        );
    }

    #[test]
    fn duration_on_a_bound_counts_in_the_bucket_below_it() {
        let counts = HttpCounts::default();
        counts.record(&ended("GET", 200));
        let of = counts.0[HttpVersion::Http3 as usize].distribution();
        assert_eq!((of.count, of.sum), (1, 0.001));
        assert_eq!(of.buckets[1], (0.001, 1));
    }
}
