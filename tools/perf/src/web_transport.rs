//! Sessions of WebTransport that carry a measurement.

use bytes::{BufMut as _, Bytes, BytesMut};
use courser::webtransport::{
    self, Config, ReadError, RecvStream, SendStream, Session, SessionEnded, SessionRequest,
    WriteError,
};
use courser::{Connection, Side, h3};
use courser_measure::Failure;

use crate::carrier::{Carrier, Receiving, Sending, Unsent};

/// The path of the sessions.
const PATH: &str = "/perf";

/// A session with the client of HTTP/3 that keeps its connection.
#[derive(Clone, Debug)]
pub(crate) struct WebSession {
    session: Session,
    /// `None` on a server, whose service holds the connection.
    http3: Option<h3::Client>,
}

impl WebSession {
    /// Opens a session on a connection of a client.
    pub(crate) async fn open(connection: Connection, name: &str) -> Result<Self, Failure> {
        let mut settings = h3::Config::new(Side::Client);
        webtransport::enable(&mut settings, Side::Client, unlimited()).map_err(failure)?;
        let http3 = h3::Client::with_config(connection, settings);
        let host = match name.contains(':') {
            true => format!("[{name}]"),
            false => name.to_owned(),
        };
        let uri = format!("https://{host}{PATH}").parse().map_err(failure)?;
        let opened = webtransport::connect(&http3, SessionRequest::new(uri)).await;
        let session = opened.map_err(|error| {
            Failure::new(format!(
                "cannot open a session: {error} (the server needs --webtransport)"
            ))
        })?;
        Ok(Self {
            session,
            http3: Some(http3),
        })
    }

    /// Serves the sessions of a connection until it ends.
    pub(crate) async fn serve<S, F>(connection: Connection, serve: S)
    where
        S: Fn(Self) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut settings = h3::Config::new(Side::Server);
        if webtransport::enable(&mut settings, Side::Server, unlimited()).is_err() {
            return;
        }
        let answer = move |mut request: http::Request<h3::Body>| {
            let serve = serve.clone();
            async move {
                let accepted =
                    webtransport::upgrade(&mut request).accept::<h3::Empty, _, _>(move |session| {
                        serve(Self {
                            session,
                            http3: None,
                        })
                    });
                Ok::<_, std::convert::Infallible>(accepted.await)
            }
        };
        // The end of the connection is reported by its requests.
        let _ = h3::serve(connection, tower::service_fn(answer))
            .config(settings)
            .await;
    }

    pub(crate) fn close(self) {
        self.session.close(0, "done");
        if let Some(http3) = self.http3 {
            http3.quic().close(NO_ERROR.into(), b"done");
        }
    }
}

/// Measurements have no need of limits of a session beside those of QUIC, which raw connections have too.
fn unlimited() -> Config {
    Config {
        limits: webtransport::Limits::NONE,
        ..Config::new()
    }
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

fn lost(SessionEnded(closed): &SessionEnded) -> Failure {
    failure(closed)
}

impl Carrier for WebSession {
    type Sending = SendStream;
    type Receiving = RecvStream;

    fn connection(&self) -> &Connection {
        self.session.quic()
    }

    async fn open_bi(&self) -> Result<(SendStream, RecvStream), Failure> {
        self.session.open_bi().await.map_err(|it| lost(&it))
    }

    async fn open_uni(&self) -> Result<SendStream, Failure> {
        self.session.open_uni().await.map_err(|it| lost(&it))
    }

    async fn accept_bi(&self) -> Result<(SendStream, RecvStream), Failure> {
        self.session.accept_bi().await.map_err(|it| lost(&it))
    }

    async fn accept_uni(&self) -> Result<RecvStream, Failure> {
        self.session.accept_uni().await.map_err(|it| lost(&it))
    }

    fn max_datagram_size(&self) -> Option<usize> {
        self.session.datagrams().max_size()
    }

    /// Writes the number of the session itself, because the datagrams of a session drop the oldest instead of waiting.
    async fn send_datagram(&self, payload: Bytes) -> Result<(), Failure> {
        let mut datagram = BytesMut::with_capacity(payload.len() + 8);
        put_varint(&mut datagram, self.session.id().value() / 4);
        datagram.put(payload);
        let quic = self.session.quic();
        Ok(quic.send_datagram_wait(datagram.freeze()).await?)
    }

    async fn read_datagram(&self) -> Result<Bytes, Failure> {
        match self.session.datagrams().receive().await {
            Some(datagram) => Ok(datagram),
            None => Err(failure(self.session.closed().await)),
        }
    }
}

/// Writes a variable-length integer (RFC 9000 §16). Sessions have the first streams of a connection.
fn put_varint(datagram: &mut BytesMut, value: u64) {
    match u8::try_from(value) {
        Ok(short @ 0..64) => datagram.put_u8(short),
        _ => datagram.put_u64(value | 3 << 62),
    }
}

impl From<WriteError> for Unsent {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(_) => Self::Stopped(failure(error)),
            error => Self::Failed(failure(error)),
        }
    }
}

impl Sending for SendStream {
    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), Unsent> {
        Ok(SendStream::write_all(self, bytes).await?)
    }

    async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), Unsent> {
        Ok(SendStream::write_chunk(self, chunk).await?)
    }

    async fn write_some(&mut self, chunk: Bytes) -> Result<usize, Unsent> {
        Ok(self.write_chunks(&mut [chunk]).await?)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        SendStream::finish(self).map_err(failure)
    }

    fn reset(&mut self, code: u32) -> Result<(), Failure> {
        SendStream::reset(self, code).map_err(failure)
    }
}

impl Receiving for RecvStream {
    async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, Failure> {
        let read = RecvStream::read_chunks(self, chunks).await;
        read.map_err(|error: ReadError| failure(error))
    }

    async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, Failure> {
        let read = RecvStream::read_chunk(self, most).await;
        read.map_err(|error: ReadError| failure(error))
    }

    fn stop(&mut self) {
        // A stream that has ended cannot be stopped, which is harmless.
        let _ = RecvStream::stop(self, 0);
    }
}

/// The code H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sessions_are_variable_length_integers() {
        let written = |value| {
            let mut bytes = BytesMut::new();
            put_varint(&mut bytes, value);
            bytes.to_vec()
        };
        assert_eq!(written(0), [0]);
        assert_eq!(written(63), [63]);
        assert_eq!(written(64), [0xc0, 0, 0, 0, 0, 0, 0, 64]);
    }
}
