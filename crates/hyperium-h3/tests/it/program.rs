//! A program that uses `h3` in the style of its documentation: an echo server and a client. It is
//! generic over the transport traits, so the same code runs on courser and on quinn.

use bytes::{Buf, Bytes, BytesMut};
use h3::client::{RequestStream, SendRequest};
use h3::quic;
use h3::server::RequestResolver;
use http::{HeaderMap, Request, Response, StatusCode};

pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// Answers requests until the client closes the connection.
pub async fn serve<C>(connection: C) -> Result<(), h3::error::ConnectionError>
where
    C: quic::Connection<Bytes> + 'static,
    C::BidiStream: quic::BidiStream<Bytes> + Send + 'static,
    <C::BidiStream as quic::BidiStream<Bytes>>::SendStream: Send,
    <C::BidiStream as quic::BidiStream<Bytes>>::RecvStream: Send,
{
    let mut connection = h3::server::Connection::<C, Bytes>::new(connection).await?;
    while let Some(resolver) = connection.accept().await? {
        tokio::spawn(answer(resolver));
    }
    Ok(())
}

/// Answers one request. `/echo` returns the body and trailers as they arrive, and `/bytes/<n>`
/// returns n bytes.
async fn answer<C>(resolver: RequestResolver<C, Bytes>) -> Result<(), ProgramError>
where
    C: quic::Connection<Bytes>,
    C::BidiStream: quic::BidiStream<Bytes> + Send,
{
    let (request, stream) = resolver.resolve_request().await?;
    let (mut send, mut receive) = stream.split();
    let path = request.uri().path();
    if path == "/echo" {
        send.send_response(Response::new(())).await?;
        while let Some(mut data) = receive.recv_data().await? {
            send.send_data(data.copy_to_bytes(data.remaining())).await?;
        }
        if let Some(trailers) = receive.recv_trailers().await? {
            send.send_trailers(trailers).await?;
        }
    } else if let Some(count) = path.strip_prefix("/bytes/") {
        let bytes = Bytes::from(super::setup::pattern(count.parse()?));
        send.send_response(Response::new(())).await?;
        // An empty DATA frame is valid, but clients with this version of `h3` fail on it.
        if !bytes.is_empty() {
            send.send_data(bytes).await?;
        }
    } else {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::NOT_FOUND;
        send.send_response(response).await?;
    }
    send.finish().await?;
    Ok(())
}

/// A complete response.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
    pub trailers: Option<HeaderMap>,
}

pub async fn get<O>(client: &mut SendRequest<O, Bytes>, path: &str) -> Result<Answer, ProgramError>
where
    O: quic::OpenStreams<Bytes>,
{
    let request = Request::get(format!("https://localhost{path}")).body(())?;
    let mut stream = client.send_request(request).await?;
    // A server that responds before the end of the request may stop the rest of it
    // (RFC 9114 §4.1). Only the response matters here.
    let _ = stream.finish().await;
    read(&mut stream).await
}

/// Posts `body` with trailers to `/echo` in pieces, and reads the response concurrently.
pub async fn echo<O>(
    client: &mut SendRequest<O, Bytes>,
    body: Bytes,
) -> Result<Answer, ProgramError>
where
    O: quic::OpenStreams<Bytes>,
    O::BidiStream: quic::BidiStream<Bytes>,
{
    let request = Request::post("https://localhost/echo").body(())?;
    let (mut send, mut receive) = client.send_request(request).await?.split();
    let sending = async {
        let mut rest = body;
        while !rest.is_empty() {
            send.send_data(rest.split_to(rest.len().min(100_000)))
                .await?;
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-checked", "yes".parse()?);
        send.send_trailers(trailers).await?;
        send.finish().await?;
        Ok::<_, ProgramError>(())
    };
    let (sent, answer) = tokio::join!(sending, read(&mut receive));
    sent?;
    answer
}

async fn read<S: quic::RecvStream>(
    stream: &mut RequestStream<S, Bytes>,
) -> Result<Answer, ProgramError> {
    let response = stream.recv_response().await?;
    let mut body = BytesMut::new();
    while let Some(data) = stream.recv_data().await? {
        bytes::BufMut::put(&mut body, data);
    }
    Ok(Answer {
        status: response.status(),
        body: body.freeze(),
        trailers: stream.recv_trailers().await?,
    })
}
