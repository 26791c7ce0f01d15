//! WebTransport over HTTP/3 without a transport, in the four dialects that browsers and libraries speak.
//!
//! The crate decides, and the caller acts: it owns the streams, sends the requests and reads the clock. [`Sessions`] is
//! the table of one connection. It knows the [`Agreement`] of both ends, and admits requests. A [`Session`] is the state of one session: the capsules on its CONNECT stream, its
//! flow control and its end. No type has a clock, a socket or a task, and all memory is bounded.
//!
//! # The life of a session
//!
//! Both ends of a connection, with the bytes that pass between them:
//!
//! ```
//! use bytes::Bytes;
//! use courser_base::{Side, Time};
//! use courser_webtransport::*;
//! use courser_wire::Direction;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Time::ZERO;
//!
//! // Each end announces all dialects in its SETTINGS, and reads those of the other.
//! let mut client = Sessions::new(Side::Client, Config::new());
//! let mut server = Sessions::new(Side::Server, Config::new());
//! fn peer(settings: &[(u64, u64)]) -> Peer<'_> {
//!     Peer {
//!         settings,
//!         h3_datagram: true,
//!         extended_connect: true,
//!         max_datagram_frame_size: 65_535,
//!         reset_stream_at: true,
//!     }
//! }
//! let settings = [Side::Client, Side::Server].map(|side| Config::new().settings(side));
//! server.on_peer(&peer(&settings[0]))?;
//! client.on_peer(&peer(&settings[1]))?;
//!
//! // The client sends an extended CONNECT on its first request stream, whose ID is the number of the session.
//! let id = SessionId::new(0)?;
//! let wish = SessionRequest::new("https://example.org/chat".parse()?)
//!     .protocols(Protocols::new(["chat.2", "chat.1"])?);
//! let request = wish.to_request(client.check_available()?)?;
//! let mut of_client = client.on_requested(id)?;
//!
//! // Without waiting for the response it opens a stream, which may arrive first and then has to wait.
//! of_client.open_stream(Direction::Unidirectional)?;
//! let mut bytes = StreamHeader::new(Direction::Unidirectional, id).as_ref().to_vec();
//! bytes.extend_from_slice(b"hello");
//! let mut reader = StreamHeaderReader::whole(Direction::Unidirectional);
//! let HeaderStep::Complete { session, rest, .. } = reader.read(bytes.into())? else {
//!     unreachable!("the header is whole");
//! };
//! assert_eq!(session, id);
//!
//! // The server accepts, and the stream belongs to the session.
//! let Admission::Open(opening) = server.on_request(now, id, &request, false) else {
//!     unreachable!("both ends support sessions");
//! };
//! let protocol = opening.protocols.select(["chat.1", "chat.2"]);
//! let mut response = http::Response::new(());
//! *response.headers_mut() = opening.response_headers(protocol)?;
//! let mut of_server = server.accept(id).expect("the request is open");
//! of_server.on_stream(now, Direction::Unidirectional).expect("within the limit");
//! of_server.on_data(now, rest.len() as u64).expect("within the limit");
//!
//! // The response establishes the session at the client.
//! assert_eq!(wish.answer(&response), Answer::Established(Some("chat.2".to_owned())));
//! client.on_accepted(id);
//!
//! // The server closes: content and FIN on the CONNECT stream. The client answers with FIN.
//! of_server.close(now, CloseReason::new(7, "bye"));
//! let Some(Output::Content(content)) = of_server.poll_output() else {
//!     unreachable!("a capsule is due");
//! };
//! assert_eq!(of_server.poll_output(), Some(Output::Finish));
//! of_client.on_content(now, content);
//! of_client.on_content_end(now);
//! let closed = Closed::Peer(CloseReason::new(7, "bye"));
//! assert_eq!(of_client.poll_event(), Some(SessionEvent::Closed(closed)));
//! assert_eq!(of_client.poll_output(), Some(Output::Finish));
//! of_server.on_content_end(now);
//! assert!(of_client.is_over() && of_server.is_over());
//!
//! // There is room for another session.
//! client.on_ended(id);
//! server.on_ended(id);
//! assert!(client.is_empty() && server.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # The duties of the caller
//!
//! - Announce [`Config::settings`], claim streams of the two numbers in [`StreamHeader`], and pass the peer's
//!   announcements to [`Sessions::on_peer`].
//! - Pass each request for which [`is_session_request`] is true to [`Sessions::on_request`], and act on the
//!   [`Admission`].
//! - Deliver streams and datagrams to the sessions that they name. Those of requests that may arrive, or are not answered,
//!   wait within a number and a time (draft-ietf-webtrans-http3-16 §4.6); other streams are refused with
//!   [`BUFFERED_STREAM_REJECTED`](code::BUFFERED_STREAM_REJECTED), or with [`SESSION_GONE`](code::SESSION_GONE) after the end
//!   of their session, and other datagrams are dropped. A number that no request can have is a connection error `H3_ID_ERROR`.
//! - Pass the content of each CONNECT stream to its [`Session`], and carry out its [`Output`]s when the stream accepts
//!   content. Never wait for that before reading: a peer that grants no credit must not stop the session.
//! - If [`Session::has_flow_control`], ask for credit before opening streams and sending their bodies, and report the
//!   streams and bytes of the peer. Otherwise, skip all of this.
//! - Reset streams as [`ResetPlan`] says, with the codes of [`ApplicationCode`].
//! - Call [`Session::on_timeout`] at its [`next_timeout`](Session::next_timeout).
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
#[cfg(test)]
mod testing;

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
pub use sessions::{Admission, Sessions, Unavailable};
pub use stream_header::{HeaderStep, StreamHeader, StreamHeaderReader};
