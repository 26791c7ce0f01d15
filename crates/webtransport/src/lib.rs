//! WebTransport over HTTP/3 without a transport.
#![forbid(unsafe_code)]

mod agreement;
mod capsule;
mod closed;
pub mod code;
mod config;
mod dialect;
mod exporter;
mod flow;
mod limits;
mod origins;
mod protocols;
mod request;
mod reset;
mod session;
mod session_id;
mod sessions;
mod stream_header;

pub use agreement::{
    Agreement, Peer, REMEMBERED, Requirement, Unsupported, check_remembered, is_reduced,
};
pub use capsule::{CloseReason, SessionCapsule};
pub use closed::Closed;
pub use code::ApplicationCode;
pub use config::Config;
pub use dialect::{Dialect, Dialects, UnknownDialect};
pub use exporter::{EXPORTER_LABEL, ExporterError, exporter_context};
pub use limits::Limits;
pub use origins::{InvalidOrigin, OriginError, Origins};
pub use protocols::{InvalidProtocol, Protocols};
pub use request::{
    Answer, InvalidRequest, NotOffered, Opening, Refusal, SessionRequest, is_session_request,
};
pub use reset::ResetPlan;
pub use session::{OpenError, Output, Session, SessionEvent, StreamReset};
pub use session_id::SessionId;
pub use sessions::{Admission, DatagramFate, Event, Sessions, StreamFate, Unavailable};
pub use stream_header::{HeaderStep, StreamHeader, StreamHeaderReader};
