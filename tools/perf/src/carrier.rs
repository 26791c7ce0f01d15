//! One interface for QUIC connections and for sessions of WebTransport, so that the protocol is written once.

use bytes::Bytes;
use courser::{Connection, RecvStream, SendStream};
use courser_measure::Failure;

/// The streams and datagrams that carry a measurement.
pub(crate) trait Carrier: Clone + Send + Sync + 'static {
    /// The sending half of a stream.
    type Sending: Sending;
    /// The receiving half of a stream.
    type Receiving: Receiving;

    /// Returns the QUIC connection below.
    fn connection(&self) -> &Connection;

    fn open_bi(
        &self,
    ) -> impl Future<Output = Result<(Self::Sending, Self::Receiving), Failure>> + Send;

    fn open_uni(&self) -> impl Future<Output = Result<Self::Sending, Failure>> + Send;

    fn accept_bi(
        &self,
    ) -> impl Future<Output = Result<(Self::Sending, Self::Receiving), Failure>> + Send;

    fn accept_uni(&self) -> impl Future<Output = Result<Self::Receiving, Failure>> + Send;

    /// Returns the size of the largest datagram, or `None` if the peer accepts none.
    fn max_datagram_size(&self) -> Option<usize>;

    /// Waits for space, and sends a datagram.
    fn send_datagram(&self, payload: Bytes) -> impl Future<Output = Result<(), Failure>> + Send;

    fn read_datagram(&self) -> impl Future<Output = Result<Bytes, Failure>> + Send;
}

/// The sending half of a stream.
pub(crate) trait Sending: Send + 'static {
    fn write_all(&mut self, bytes: &[u8]) -> impl Future<Output = Result<(), Unsent>> + Send;

    fn write_chunk(&mut self, chunk: Bytes) -> impl Future<Output = Result<(), Unsent>> + Send;

    /// Writes a part of a chunk, and returns its length. Nothing is written if the future is dropped before.
    fn write_some(&mut self, chunk: Bytes) -> impl Future<Output = Result<usize, Unsent>> + Send;

    fn finish(&mut self) -> Result<(), Failure>;

    fn reset(&mut self, code: u32) -> Result<(), Failure>;
}

/// The receiving half of a stream.
pub(crate) trait Receiving: Send + 'static {
    /// Reads chunks into the front of `chunks`, and returns their number, or `None` at the end.
    fn read_chunks(
        &mut self,
        chunks: &mut [Bytes],
    ) -> impl Future<Output = Result<Option<usize>, Failure>> + Send;

    /// Reads a chunk of at most `most` bytes. Nothing is lost if the future is dropped before it is ready.
    fn read_chunk(
        &mut self,
        most: usize,
    ) -> impl Future<Output = Result<Option<Bytes>, Failure>> + Send;

    /// Asks the peer to stop. Has no effect on a stream that has ended.
    fn stop(&mut self);
}

/// The reason why bytes were not sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unsent {
    /// The peer has received enough.
    Stopped(Failure),
    Failed(Failure),
}

impl From<courser::WriteError> for Unsent {
    fn from(error: courser::WriteError) -> Self {
        match error.is_stopped() {
            true => Self::Stopped(error.into()),
            false => Self::Failed(error.into()),
        }
    }
}

impl From<Unsent> for Failure {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Stopped(failure) | Unsent::Failed(failure) => failure,
        }
    }
}

impl Carrier for Connection {
    type Sending = SendStream;
    type Receiving = RecvStream;

    fn connection(&self) -> &Connection {
        self
    }

    async fn open_bi(&self) -> Result<(SendStream, RecvStream), Failure> {
        Ok(Connection::open_bi(self).await?)
    }

    async fn open_uni(&self) -> Result<SendStream, Failure> {
        Ok(Connection::open_uni(self).await?)
    }

    async fn accept_bi(&self) -> Result<(SendStream, RecvStream), Failure> {
        Ok(Connection::accept_bi(self).await?)
    }

    async fn accept_uni(&self) -> Result<RecvStream, Failure> {
        Ok(Connection::accept_uni(self).await?)
    }

    fn max_datagram_size(&self) -> Option<usize> {
        Connection::max_datagram_size(self)
    }

    async fn send_datagram(&self, payload: Bytes) -> Result<(), Failure> {
        Ok(self.send_datagram_wait(payload).await?)
    }

    async fn read_datagram(&self) -> Result<Bytes, Failure> {
        Ok(Connection::read_datagram(self).await?)
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
        let written = self.write_chunks(&mut [chunk]).await?;
        Ok(written.bytes)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        Ok(SendStream::finish(self)?)
    }

    fn reset(&mut self, code: u32) -> Result<(), Failure> {
        Ok(SendStream::reset(self, code.into())?)
    }
}

impl Receiving for RecvStream {
    async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, Failure> {
        Ok(RecvStream::read_chunks(self, chunks).await?)
    }

    async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, Failure> {
        Ok(RecvStream::read_chunk(self, most).await?)
    }

    fn stop(&mut self) {
        // A stream that has ended cannot be stopped, which is harmless.
        let _ = RecvStream::stop(self, 0_u32.into());
    }
}
