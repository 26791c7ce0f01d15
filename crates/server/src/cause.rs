//! Reasons for responses that a server or gateway makes itself.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::StatusCode;

/// Defines the enum and its tables from one list, so that no entry lacks a name or a sentence.
macro_rules! causes {
    ($($variant:ident $name:literal $sentence:literal)+) => {
        /// The reason for a response that the server or a gateway made itself, or for a response that was aborted.
        ///
        /// Such a response has it as an extension. Access logs and metrics record [`name`](Self::name), which is
        /// stable; people read [`sentence`](Self::sentence).
        ///
        /// ```
        /// # mod courser { pub use courser_server as server; }
        /// use courser::server::Cause;
        ///
        /// let mut response = http::Response::new(());
        /// *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        /// response.extensions_mut().insert(Cause::Overloaded);
        /// assert_eq!(Cause::Overloaded.name(), "overloaded");
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Cause {
            $(#[doc = $sentence] $variant,)+
        }

        impl Cause {
            /// All causes, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the stable name for logs and metrics, in `snake_case`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns a complete sentence for humans.
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$variant => $sentence,)+
                }
            }
        }
    };
}

causes! {
    InvalidRequest "invalid_request" "The request violates the syntax of HTTP."
    InvalidTarget "invalid_target" "The target of the request is invalid."
    InvalidHost "invalid_host" "The request names no host, an invalid one, or several different ones."
    InvalidField "invalid_field" "A field of the request has an invalid name or value."
    InvalidFraming "invalid_framing" "The length of the request content is invalid or ambiguous."
    PlainHttp "plain_http" "The client sent HTTP without TLS to a port that requires TLS."
    FieldsTooLarge "fields_too_large" "The header section of the request is too large."
    HeaderTimeout "header_timeout" "The header section of the request did not arrive in time."
    ContentTimeout "content_timeout" "The content of the request arrived too slowly."
    ContentTooLarge "content_too_large" "The content of the request is too large."
    ContentAborted "content_aborted" "The client aborted the content of the request."
    ClientClosed "client_closed" "The client left before the response was complete."
    Misdirected "misdirected" "The certificate does not name the host of the request."
    TooEarly "too_early" "The request arrived in early data and must not be replayed."
    ConnectRefused "connect_refused" "CONNECT requests are not served."
    UnsupportedMethod "unsupported_method" "The method of the request is not supported."
    UnsupportedVersion "unsupported_version" "The version of HTTP is not supported."
    UnsupportedCoding "unsupported_coding" "The transfer coding of the request is not supported."
    UnsupportedExpectation "unsupported_expectation" "The expectation of the request is not supported."
    UnsupportedUpgrade "unsupported_upgrade" "The upstream server cannot switch to another protocol."
    NoSessionUpstream "no_session_upstream" "No upstream server serves sessions of WebTransport."
    Loop "loop" "The request has passed through this proxy before."
    Redirected "redirected" "The client was led from plain HTTP to https."
    AcmeChallenge "acme_challenge" "The request was a challenge of an ACME server."
    Overloaded "overloaded" "The memory for requests in progress is in use."
    DiskBusy "disk_busy" "All threads that may wait for a disk are in use, or the client's share of them."
    FileUnsettled "file_unsettled" "The file did not stop changing."
    FileFailed "file_failed" "The file could not be read."
    OutOfMemory "out_of_memory" "The system has run out of memory."
    HandlerTimeout "handler_timeout" "The service did not respond in time."
    HandlerPanicked "handler_panicked" "The service panicked."
    ContentFailed "content_failed" "The content of the response could not be read."
    UpstreamNameNotFound "upstream_name_not_found" "The name of the upstream server was not found."
    UpstreamRefused "upstream_refused" "The upstream server refused the connection."
    UpstreamUnreachable "upstream_unreachable" "The upstream server cannot be reached."
    UpstreamConnectTimeout "upstream_connect_timeout" "The connection to the upstream server was not established in time."
    OutOfDescriptors "out_of_descriptors" "The process has no file descriptor left."
    UpstreamBusy "upstream_busy" "All connections to the upstream server are in use, and the queue for them is full."
    UpstreamQueueTimeout "upstream_queue_timeout" "No connection to the upstream server became free in time."
    UpstreamClosed "upstream_closed" "The upstream server closed the connection before its response."
    UpstreamReset "upstream_reset" "The upstream server reset the connection or stream before its response."
    UpstreamRefusedStream "upstream_refused_stream" "The upstream server refused the request repeatedly with REFUSED_STREAM or GOAWAY."
    UpstreamNotHttp "upstream_not_http" "The upstream server did not respond in the expected version of HTTP."
    UpstreamFieldsTooLarge "upstream_fields_too_large" "The header section of the upstream server's response is too large."
    UpstreamInvalidField "upstream_invalid_field" "A field of the upstream server's response has an invalid name or value."
    UpstreamInvalidResponse "upstream_invalid_response" "The response of the upstream server violates HTTP."
    UpstreamWithoutSessions "upstream_without_sessions" "The upstream server does not serve sessions of WebTransport."
    UpstreamUntrusted "upstream_untrusted" "The TLS handshake with the upstream server failed."
    UpstreamUnexpectedUpgrade "upstream_unexpected_upgrade" "The upstream server switched protocols without being asked."
    UpstreamTimeout "upstream_timeout" "The upstream server did not respond in time."
    UpstreamContentTimeout "upstream_content_timeout" "The upstream server paused for too long within the content of its response."
    UpstreamContentCut "upstream_content_cut" "The upstream server ended the content of its response early."
}

impl Cause {
    /// Returns true if the upstream server of a gateway is the reason, or the connections to it.
    pub fn is_upstream(self) -> bool {
        matches!(self, Self::OutOfDescriptors | Self::NoSessionUpstream)
            || self.name().starts_with("upstream_")
    }

    /// Returns advice for an operator as the end of a sentence, or `None` if there is none.
    pub const fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::UpstreamNameNotFound => {
                "check the name in the URL and the resolver of this machine"
            }
            Self::UpstreamRefused => "check that the server runs and listens at this address",
            Self::UpstreamUnreachable => "check the routes and firewalls between the machines",
            Self::UpstreamConnectTimeout => {
                "check that the server accepts connections and that no firewall drops packets"
            }
            Self::OutOfDescriptors => "raise the limit of open files (ulimit -n 65536)",
            Self::HandlerPanicked => "look for the message of the panic in the program's log",
            Self::DiskBusy => "look for a disk or a network file system that is slow",
            Self::UpstreamBusy | Self::UpstreamQueueTimeout => {
                "find out why responses take long, or allow more connections"
            }
            Self::NoSessionUpstream => "name an upstream server for sessions of WebTransport",
            Self::UpstreamWithoutSessions => {
                "enable HTTP/3 and WebTransport in the server; `courser probe` shows what it announces"
            }
            Self::UpstreamUntrusted => {
                "check that its certificate is valid for the host of the URL and trusted here, \
                 or name the authority or the hash to trust"
            }
            Self::UpstreamClosed | Self::UpstreamReset => "look for crashes in the server's log",
            Self::UpstreamRefusedStream => "raise the server's limit of concurrent streams",
            Self::UpstreamNotHttp => {
                "check that the port speaks plain HTTP, and that the scheme is h2c for HTTP/2 only"
            }
            Self::UpstreamFieldsTooLarge => "look for cookies or tokens that have grown",
            Self::UpstreamTimeout => "find out what the server waits for, or allow more time",
            Self::UpstreamContentTimeout => "allow longer pauses if the server sends rare events",
            Self::UpstreamContentCut => "look for crashes or time limits in the server's log",
            Self::PlainHttp => "use https:// in the URL of the client",
            Self::Misdirected => "use a certificate that names the host",
            _ => return None,
        })
    }
}

impl Cause {
    /// Returns the cause of a response with which the server itself refuses a request before the service gets it.
    pub(crate) const fn of_refusal(status: StatusCode) -> Self {
        match status {
            StatusCode::MISDIRECTED_REQUEST => Self::Misdirected,
            StatusCode::TOO_EARLY => Self::TooEarly,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Self::FieldsTooLarge,
            StatusCode::REQUEST_TIMEOUT => Self::HeaderTimeout,
            StatusCode::PAYLOAD_TOO_LARGE => Self::ContentTooLarge,
            StatusCode::SERVICE_UNAVAILABLE => Self::Overloaded,
            StatusCode::NOT_IMPLEMENTED => Self::UnsupportedCoding,
            _ => Self::InvalidRequest,
        }
    }

    /// Returns the cause of a response that hyper made itself, or `None` if the connection ended for another reason.
    pub(crate) fn of_connection(error: &hyper::Error) -> Option<Self> {
        if error.is_parse_too_large() {
            Some(Self::FieldsTooLarge)
        } else if error.is_timeout() {
            Some(Self::HeaderTimeout)
        } else {
            error.is_parse().then_some(Self::InvalidRequest)
        }
    }
}

/// Numbers of requests by cause.
#[derive(Debug)]
pub(crate) struct CauseCounts([AtomicU64; Cause::ALL.len()]);

impl CauseCounts {
    pub(crate) fn add(&self, cause: Cause) {
        self.0[cause as usize].fetch_add(1, Relaxed);
    }

    /// Returns the causes that have occurred.
    pub(crate) fn occurred(&self) -> Vec<(Cause, u64)> {
        let counts = self.0.iter().map(|count| count.load(Relaxed));
        let all = Cause::ALL.iter().copied().zip(counts);
        all.filter(|(_, count)| *count > 0).collect()
    }
}

impl Default for CauseCounts {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; _])
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

/// Lets errors of bodies have a cause as their source.
impl std::error::Error for Cause {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_cause_has_a_name_and_a_sentence_of_its_own() {
        let names: HashSet<_> = Cause::ALL.iter().map(|it| it.name()).collect();
        let sentences: HashSet<_> = Cause::ALL.iter().map(|it| it.sentence()).collect();
        assert_eq!(names.len(), Cause::ALL.len());
        assert_eq!(sentences.len(), Cause::ALL.len());
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, index, "metrics use it as an index");
            let is_snake = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(cause.name().chars().all(is_snake), "{}", cause.name());
            assert!(cause.sentence().ends_with('.'), "{cause}");
            assert!(
                cause.remedy().is_none_or(|it| !it.ends_with('.')),
                "{cause}"
            );
        }
    }
}
