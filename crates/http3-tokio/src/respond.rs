//! The response to one request.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_http3::{Code, FieldsToSend, MessageWriter};
use courser_quic::hooks::{SendStreamHooks, Write};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Response, StatusCode};

use super::body::{Body, Empty};
use super::date;
use super::error::Error;
use super::extension::LeadingFrames;
use super::handover::Handover;
use super::outgoing::Outgoing;
use super::upgrade::Upgraded;

/// The response to one request. Dropping it without sending resets the stream with `H3_INTERNAL_ERROR`.
#[derive(Debug)]
pub struct Respond {
    outgoing: Outgoing,
    /// The method of the request.
    method: Method,
    offer: Offered,
}

/// The stream for which the upgrade of a CONNECT waits. Dropping it ends the upgrade.
#[derive(Debug)]
struct Offered(Option<Arc<Handover>>);

impl Drop for Offered {
    fn drop(&mut self) {
        if let Some(offer) = self.0.take() {
            offer.end();
        }
    }
}

impl Respond {
    pub(super) fn new(outgoing: Outgoing, method: Method, offer: Option<Arc<Handover>>) -> Self {
        Self {
            outgoing,
            method,
            offer: Offered(offer),
        }
    }

    /// Sends an interim response without `content-length`, which it must not have.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// # let server = h3::ServerConnection::new(far, h3::Config::new(courser::Side::Server));
    /// # let sending = tokio::spawn(async move {
    /// #     let client = h3::Client::new(near);
    /// #     let request = http::Request::get("https://localhost/page").body(h3::Empty)?;
    /// #     Result::Ok(client.send(request).await?.status())
    /// # });
    /// # let unresolved = server.accept().await?;
    /// # let (request, mut respond) = unresolved.resolve().await?;
    /// let hints = http::Response::builder()
    ///     .status(http::StatusCode::EARLY_HINTS)
    ///     .header("link", "</style.css>; rel=preload; as=style")
    ///     .body(())?;
    /// respond.interim(hints).await?;
    /// respond.send(http::Response::new(h3::Empty)).await?;
    /// # assert_eq!(sending.await??, 200);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the client has cancelled the request or the connection is closed.
    ///
    /// # Panics
    /// Panics for a status that is not 1xx, and for 101, which HTTP/3 does not support.
    pub async fn interim(&mut self, response: Response<()>) -> Result<(), Error> {
        let status = response.status();
        assert!(
            is_interim(status),
            "{status} is not an interim response of HTTP/3"
        );
        let head = self.encode_interim(response)?;
        Ok(self.outgoing.write(head).await?)
    }

    /// Encodes a HEADERS frame without `content-length` (RFC 9110 §8.6).
    pub(super) fn encode_interim(&self, mut response: Response<()>) -> Result<Vec<u8>, Error> {
        response.headers_mut().remove(CONTENT_LENGTH);
        let status = response.status();
        let fields = FieldsToSend::response(&status, response.headers());
        Ok(self.outgoing.encode(&fields)?)
    }

    /// Writes encoded bytes and sends them at once. Returns `Ready` when all are written; until then `bytes`
    /// contains the rest.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<Result<(), Error>> {
        while !bytes.is_empty() {
            let chunks = std::slice::from_mut(bytes);
            // Sent at once, because it is useful before a long computation of the service.
            let write = Write::chunks(chunks).urgent();
            ready!(self.outgoing.send.poll_send(cx, write))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the response: its header section, content as the body provides it, trailers and the end. Adds a
    /// `content-length` if the body reports its exact size, and a `date` if the response has none.
    ///
    /// An interim response (1xx) cannot be the final one; an empty response with status 500 is sent instead.
    ///
    /// Returns when all bytes are written. Delivery may take longer. Complete content of less than 64 KiB is
    /// held for a millisecond or two until the body reports its end, so that both are sent in one packet.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// # let server = h3::ServerConnection::new(far, h3::Config::new(courser::Side::Server));
    /// # let sending = tokio::spawn(async move {
    /// #     let client = h3::Client::new(near);
    /// #     let request = http::Request::get("https://localhost/page").body(h3::Empty)?;
    /// #     Result::Ok(client.send(request).await?.status())
    /// # });
    /// # let unresolved = server.accept().await?;
    /// # let (request, respond) = unresolved.resolve().await?;
    /// use bytes::Bytes;
    /// use http_body_util::Full;
    ///
    /// let response = http::Response::new(Full::new(Bytes::from_static(b"content")));
    /// respond.send(response).await?;
    /// # assert_eq!(sending.await??, 200);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the body fails, which resets the stream, if the client has cancelled the request, or
    /// if the connection is closed.
    ///
    /// # Panics
    /// Panics if it must wait and there is no runtime, neither tokio's with time enabled nor an
    /// [entered](courser_quic::runtime::enter) one.
    ///
    /// # Cancel safety
    /// Not safe: dropping the future resets the stream.
    pub fn send<B>(self, response: Response<B>) -> impl Future<Output = Result<(), Error>>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.send_with(response, ())
    }

    /// Sends the response like [`send`](Self::send), and drops `guard` afterwards.
    pub(super) fn send_with<B, G>(
        self,
        response: Response<B>,
        guard: G,
    ) -> impl Future<Output = Result<(), Error>>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Self {
            mut outgoing,
            method,
            offer: _,
        } = self;
        // Moved before the first wait, so that the future need not hold these variables.
        let (mut parts, body) = response.into_parts();
        let is_final = !parts.status.is_informational();
        if !is_final {
            // The client would wait for another response, and 101 is malformed (RFC 9114 §4.5).
            parts.status = StatusCode::INTERNAL_SERVER_ERROR;
            parts.headers.clear();
        }
        if matches!(
            parts.status,
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT
        ) {
            // RFC 9110 §8.6, §15.3.6: the length of content that is not sent.
            parts.headers.remove(CONTENT_LENGTH);
        }
        let has_content = is_final && method != Method::HEAD && may_have_content(parts.status);
        let mut fields = with_date(&parts.status, &parts.headers);
        let mut length = None;
        if has_content && method != Method::CONNECT {
            length = body.size_hint().exact();
            match length {
                Some(length) => fields.set_content_length(length),
                None => length = announced_length(&parts.headers),
            }
        }
        let mut head = outgoing.encode_before(&fields, MessageWriter::room_for(length));
        if let (Some(frames), Ok(head)) = (parts.extensions.get::<LeadingFrames>(), &mut head) {
            *head = frames.prepend_to(head);
        }
        async move {
            // Pinned once, because each future that contains the body reserves memory for it.
            let mut body = pin!(body);
            let sent = match has_content {
                true => outgoing.send(head?, body.as_mut(), length).await,
                false => outgoing.send(head?, pin!(Empty), None).await,
            };
            drop(guard);
            Ok(sent?)
        }
    }

    /// Accepts a CONNECT and returns its stream. `body` is the body of the request.
    ///
    /// # Errors
    /// Returns an error if the client has cancelled the request or the connection is closed.
    ///
    /// # Panics
    /// Panics for a status that is not 2xx.
    pub async fn upgrade(self, response: Response<()>, body: Body) -> Result<Upgraded, Error> {
        let (parts, ()) = response.into_parts();
        let outgoing = self.accept(&parts).await?;
        Ok(Upgraded::new(body, outgoing))
    }

    /// Sends the header section of a successful response and leaves the stream open.
    async fn accept(mut self, response: &http::response::Parts) -> Result<Outgoing, Error> {
        let status = response.status;
        assert!(status.is_success(), "{status} does not accept a CONNECT");
        let fields = with_date(&status, &response.headers);
        let head = self.outgoing.encode(&fields)?;
        self.outgoing.write(head).await?;
        Ok(self.outgoing)
    }

    /// Returns true if the service has taken the stream of the request.
    pub(super) fn is_upgrade<B>(&self, response: &Response<B>) -> bool {
        let is_requested = self
            .offer
            .0
            .as_ref()
            .is_some_and(|offer| offer.is_requested());
        is_requested && response.status().is_success()
    }

    /// Accepts a CONNECT for the owner of its stream, and waits until the stream is no longer used.
    pub(super) async fn hand_over(mut self, response: Response<()>) -> Result<(), Error> {
        let Some(offer) = self.offer.0.take() else {
            return Ok(());
        };
        // Boxed, so that nothing of it remains while the stream is used.
        let accepting = Box::pin(async move {
            let (parts, ()) = response.into_parts();
            self.accept(&parts).await
        });
        match accepting.await {
            Ok(outgoing) => offer.fulfil(outgoing),
            Err(error) => {
                offer.end();
                return Err(error);
            }
        }
        std::future::poll_fn(|cx| offer.poll_end(cx)).await;
        Ok(())
    }

    /// Records that the request waits for its service.
    pub(super) fn wait_for_service(&mut self) {
        self.outgoing.wait_for_service();
    }

    /// Completes when the client has cancelled the request or the connection is closed.
    pub(super) fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let stopped = self.outgoing.send.stopped();
        Box::pin(async move {
            let _ = stopped.await;
        })
    }

    /// Ends a request that the client has cancelled.
    pub(super) fn give_up(mut self) {
        // An error has closed the connection.
        let _ = self.outgoing.on_cancelled_by_peer();
        self.outgoing.reset(Code::REQUEST_CANCELLED);
    }

    /// Resets the request stream with this code.
    pub fn reset(mut self, code: Code) {
        self.outgoing.reset(code);
    }
}

/// Returns the field lines of a final response, with the current date if it has none.
fn with_date<'a>(status: &'a StatusCode, headers: &'a HeaderMap) -> FieldsToSend<'a> {
    let mut fields = FieldsToSend::response(status, headers);
    if let Some(date) = date::now() {
        fields.set_date(date);
    }
    fields
}

/// Returns the `content-length` that the service has set for a body of unknown length.
fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns true if a response with this status may have content (RFC 9110 §6.4.1, §15.3.6).
fn may_have_content(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    )
}

/// Returns true for statuses of interim responses (RFC 9110 §15.2, RFC 9114 §4.5).
pub(super) fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}
