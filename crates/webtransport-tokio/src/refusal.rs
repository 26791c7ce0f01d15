//! Answers to requests for which there is no session.

use courser_http3_tokio::Extension;
use courser_quic::StreamId;
use courser_quic::hooks::ConnectionHooks as _;
use courser_quic::telemetry::{Http3Record, SessionChange};
use courser_webtransport::Refusal;
use http::{Response, StatusCode};

use crate::error::var_int;

/// The reason why [`Upgrade::accept`](crate::Upgrade::accept) has refused a session, in the extensions of its response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused(pub String);

/// Refuses the streams of a session that does not exist, and resets its request if the refusal is no response.
pub(crate) fn refuse(group: &Extension, stream: StreamId, refusal: &Refusal) {
    group.record(|| Http3Record::SessionUpdated {
        session: stream.value(),
        change: SessionChange::Refused {
            reason: refusal.reason().to_owned(),
        },
    });
    group.refuse_session(stream);
    if let Refusal::Reset { code, .. } = refusal {
        group.quic().abort_stream(stream, var_int(*code));
    }
}

pub(crate) fn answer<B: Default>(refusal: &Refusal) -> Response<B> {
    let mut response = Response::new(B::default());
    match refusal {
        Refusal::Status {
            status, headers, ..
        } => {
            *response.status_mut() = *status;
            *response.headers_mut() = headers.clone();
        }
        // The stream is reset, and nothing of the response is sent.
        Refusal::Reset { .. } => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    let reason = Refused(refusal.reason().to_owned());
    response.extensions_mut().insert(reason);
    response
}
