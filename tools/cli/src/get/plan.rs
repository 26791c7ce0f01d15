//! The plan of a run in plain values. `flags.rs` creates it from the command line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use courser::client::{ClientBuilder, FileTokenStore};
use http::HeaderName;

use super::content::Content;
use super::links::Link;
use super::netrc::Netrc;
use super::protocols::Protocols;
use super::speed::SlowLimit;
use super::trace::TracePlan;
use crate::transfer::Destination;

/// All transfers of a run.
pub(crate) struct Plan {
    /// The time at which the setup of the client began, after the command line and the content were read.
    pub(crate) began: Instant,
    pub(crate) client: ClientBuilder,
    pub(crate) tokens: Option<TokenFile>,
    pub(crate) cookies: CookiePlan,
    pub(crate) jobs: Vec<Job>,
    /// True to connect to each server in advance, for a session that permits early data.
    pub(crate) prepares_early_data: bool,
    /// The interval at which QUIC connections move to a new socket.
    pub(crate) rebind_every: Option<Duration>,
    /// The links of the machine that the connections use.
    pub(crate) links: Vec<Link>,
    /// The file for response headers, `-` for standard output.
    pub(crate) dump: Option<String>,
    pub(crate) trace: Option<TracePlan>,
    /// The largest number of concurrent transfers; `None` for one after the other.
    pub(crate) parallel: Option<u16>,
    pub(crate) stops_at_failure: bool,
    /// The least time between the starts of two transfers that do not run in parallel.
    pub(crate) interval: Option<Duration>,
    /// The file of hosts that require https.
    pub(crate) hsts: Option<PathBuf>,
    pub(crate) transfer: TransferPlan,
}

/// One URL to transfer, with its destination.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) number: usize,
    pub(crate) url: String,
    pub(crate) upload: Option<Upload>,
    pub(crate) destination: Destination,
}

/// A file that is uploaded with PUT.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    /// Its name, which is appended to URLs of folders.
    pub(crate) file: String,
    pub(crate) content: Content,
}

/// The tokens of QUIC servers, and the file that stores them.
pub(crate) struct TokenFile {
    pub(crate) path: PathBuf,
    pub(crate) store: Arc<FileTokenStore>,
}

/// The settings of the cookie engine.
#[derive(Clone, Default, Debug)]
pub(crate) struct CookiePlan {
    /// The files to read. An empty name only turns on the engine.
    pub(crate) files: Vec<String>,
    /// The file to write at the end, if there is one.
    pub(crate) jar: Option<String>,
    /// True if session cookies in the files are ignored.
    pub(crate) drops_sessions: bool,
}

/// The settings that all transfers share.
#[derive(Clone, Debug)]
pub(crate) struct TransferPlan {
    pub(crate) request: RequestPlan,
    pub(crate) response: ResponsePlan,
    pub(crate) retries: RetryPlan,
    /// The time limit for each transfer.
    pub(crate) max_time: Option<Duration>,
    /// The largest rate in bytes per second.
    pub(crate) max_rate: Option<u64>,
    /// The smallest rate.
    pub(crate) slow_limit: Option<SlowLimit>,
    pub(crate) verbosity: Verbosity,
    /// True if the client offers an Encrypted ClientHello.
    pub(crate) offers_ech: bool,
    /// The format of the text after each transfer.
    pub(crate) write_out: Option<String>,
    /// The format of the report of steps after each transfer.
    pub(crate) steps: Option<StepReport>,
}

/// The request that is sent to each URL.
#[derive(Clone, Debug)]
pub(crate) struct RequestPlan {
    /// The scheme of URLs without one.
    pub(crate) scheme: &'static str,
    /// The method of all requests, including those after redirects.
    pub(crate) method: Option<String>,
    /// True to send HEAD requests.
    pub(crate) is_head: bool,
    pub(crate) content: Content,
    /// The query that is appended to URLs.
    pub(crate) query: Option<String>,
    /// User name and password, separated by a colon.
    pub(crate) user: Option<String>,
    pub(crate) bearer: Option<String>,
    pub(crate) user_agent: Option<String>,
    pub(crate) referer: Option<String>,
    /// Cookies that are sent with every request.
    pub(crate) cookies: Vec<String>,
    pub(crate) range: Option<String>,
    /// Fields as `Name: value`, `Name:` or `Name;`, or files of them after `@`.
    pub(crate) fields: Vec<String>,
    /// True if credentials follow redirects to other hosts.
    pub(crate) keeps_credentials: bool,
    /// True if dots in the paths of URLs are not resolved.
    pub(crate) keeps_dots: bool,
    /// The target that replaces the path and query of URLs.
    pub(crate) target: Option<String>,
    pub(crate) protocols: Protocols,
    /// True to name the URL of the request before a redirect in Referer.
    pub(crate) has_auto_referer: bool,
    /// True if POST is kept after redirects with the status 301, 302 and 303.
    pub(crate) keeps_post: [bool; 3],
    pub(crate) netrc: Option<NetrcPlan>,
    /// The fields of --time-cond and --etag-compare.
    pub(crate) conditions: Vec<(HeaderName, String)>,
    /// True if responses are requested as JSON.
    pub(crate) accepts_json: bool,
}

/// The credentials of .netrc.
#[derive(Clone, Debug)]
pub(crate) struct NetrcPlan {
    pub(super) netrc: Netrc,
    /// True if credentials of URLs are preferred.
    pub(super) is_optional: bool,
}

/// The settings for responses.
#[derive(Clone, Debug)]
pub(crate) struct ResponsePlan {
    /// True if redirects are followed, at most `max_redirects` of them.
    pub(crate) follows: bool,
    pub(crate) max_redirects: Option<u64>,
    pub(crate) decompresses: bool,
    /// The status codes of 400 and above that count as failures.
    pub(crate) refused: Refused,
    /// True if the output includes the headers.
    pub(crate) includes_headers: bool,
    pub(crate) creates_folders: bool,
    pub(crate) resume: Option<ResumeAt>,
    /// The largest number of bytes in a body.
    pub(crate) max_size: u64,
    /// The schemes of redirects that are followed.
    pub(crate) redirect_protocols: Protocols,
    /// True if the certificates of servers are verified.
    pub(crate) verifies: bool,
    /// True if files get the time of the Last-Modified field.
    pub(crate) keeps_time: bool,
    /// True if the file of a failed transfer is removed.
    pub(crate) removes_failed: bool,
    /// The file for the ETag of the response.
    pub(crate) etag_file: Option<PathBuf>,
    /// The condition of --time-cond, which servers may ignore.
    pub(crate) time_condition: Option<TimeCondition>,
}

/// A condition on the time of the last modification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimeCondition {
    pub(crate) time: SystemTime,
    /// True to transfer only content that is newer, false for content that is older.
    pub(crate) is_newer: bool,
}

impl TimeCondition {
    /// Returns true if content with this time is to be transferred.
    pub(crate) fn allows(self, modified: SystemTime) -> bool {
        match self.is_newer {
            true => modified > self.time,
            false => modified < self.time,
        }
    }
}

/// The outcome of a response with a status code of 400 or above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Succeeds,
    Fails,
    FailsWithBody,
}

/// The offset at which a download continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResumeAt {
    EndOfFile,
    Offset(u64),
}

/// The settings for retries of failed transfers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPlan {
    pub(crate) most: u32,
    pub(crate) delay: Option<Duration>,
    pub(crate) max_time: Option<Duration>,
    /// True if a refused connection is a transient failure.
    pub(crate) if_refused: bool,
    /// True if every failure is a transient one.
    pub(crate) after_all: bool,
}

/// The messages that are printed to standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verbosity {
    /// True if headers and connections are shown.
    pub(crate) shows_details: bool,
    pub(crate) shows_errors: bool,
    /// True if notes, warnings and retries are shown.
    pub(crate) shows_notes: bool,
    pub(crate) shows_progress: bool,
}

/// The format of the report of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepReport {
    Text,
    Json,
}
