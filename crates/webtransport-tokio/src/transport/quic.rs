//! Connections of QUIC as transports.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_http3_tokio::DatagramError;
use courser_quic::{
    self as quic, Connection, ConnectionError, ConnectionStats, RecvStream, ResetAtError,
    SendDatagramError, SendGroup, SendRate, SendStream, SetGroupError, StoppedError, StreamId,
    VarInt,
};
use courser_webtransport::{ApplicationCode, CloseReason, Closed};

use super::{ReceiveHalf, SendHalf, Transport};
use crate::error::{ReadError, SessionEnded, WriteError};

impl Transport for Connection {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Group = SendGroup;

    async fn open_bi(&self) -> Result<(SendStream, RecvStream), SessionEnded> {
        Self::open_bi(self).await.map_err(ended)
    }

    async fn open_uni(&self) -> Result<SendStream, SessionEnded> {
        Self::open_uni(self).await.map_err(ended)
    }

    async fn accept_bi(&self) -> Result<(SendStream, RecvStream), SessionEnded> {
        Self::accept_bi(self).await.map_err(ended)
    }

    async fn accept_uni(&self) -> Result<RecvStream, SessionEnded> {
        Self::accept_uni(self).await.map_err(ended)
    }

    fn send_datagram(&self, payload: Bytes) -> Result<(), DatagramError> {
        let sent = Self::send_datagram(self, payload);
        sent.map_err(|error| match error {
            SendDatagramError::TooLarge { size, max } => DatagramError::TooLarge { size, max },
            SendDatagramError::ConnectionLost(error) => DatagramError::ConnectionLost(error),
            _ => DatagramError::NotNegotiated,
        })
    }

    async fn receive_datagram(&self) -> Result<Bytes, SessionEnded> {
        self.read_datagram().await.map_err(ended)
    }

    fn max_datagram_size(&self) -> Option<usize> {
        Self::max_datagram_size(self)
    }

    fn send_group(&self) -> SendGroup {
        Self::send_group(self)
    }

    fn send_rate(&self) -> Option<SendRate> {
        Self::send_rate(self)
    }

    fn stats(&self) -> ConnectionStats {
        Self::stats(self)
    }

    fn protocol(&self) -> Option<String> {
        let protocol = self.handshake_data()?.protocol?;
        String::from_utf8(protocol.to_vec()).ok()
    }

    fn close(&self, code: u32, message: &str) {
        Self::close(self, code.into(), message.as_bytes());
    }

    async fn closed(&self) -> Closed {
        reason(&Self::closed(self).await)
    }

    fn close_reason(&self) -> Option<Closed> {
        Self::close_reason(self).as_ref().map(reason)
    }
}

impl SendHalf for SendStream {
    type Group = SendGroup;

    fn id(&self) -> StreamId {
        Self::id(self)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, WriteError>> {
        self.poll_write(cx, bytes).map_err(write_error)
    }

    async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        Self::write_chunk(self, chunk).await.map_err(write_error)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        Self::finish(self).map_err(closed_stream)
    }

    fn reset(&mut self, code: u32) -> Result<(), WriteError> {
        Self::reset(self, code.into()).map_err(closed_stream)
    }

    fn reset_at(&mut self, code: u32, reliable_size: u64) -> Result<(), WriteError> {
        match Self::reset_at(self, code.into(), reliable_size) {
            Ok(()) => Ok(()),
            Err(ResetAtError::Unsupported) => Self::reset(self, code.into()).map_err(closed_stream),
            Err(ResetAtError::ClosedStream) => Err(WriteError::ClosedStream),
        }
    }

    fn set_deadline(&mut self, after: Option<Duration>, code: u32) -> Result<(), WriteError> {
        Self::set_deadline(self, after, code.into()).map_err(closed_stream)
    }

    fn set_order(&self, order: i64) -> Result<(), WriteError> {
        Self::set_order(self, order).map_err(closed_stream)
    }

    fn set_group(&self, group: Option<&SendGroup>) -> Result<(), WriteError> {
        Self::set_group(self, group).map_err(|error| match error {
            SetGroupError::OtherConnection => WriteError::OtherSession,
            _ => WriteError::ClosedStream,
        })
    }

    fn set_priority(&self, priority: i32) -> Result<(), WriteError> {
        Self::set_priority(self, priority).map_err(closed_stream)
    }

    fn acknowledged(&self) -> impl Future<Output = Result<(), WriteError>> + Send + 'static {
        let acknowledged = Self::acknowledged(self);
        async move { acknowledged.await.map_err(write_error) }
    }

    fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<ApplicationCode>, WriteError>> + Send + 'static {
        let stopped = Self::stopped(self);
        async move {
            match stopped.await {
                Ok(stopped) => Ok(stopped.and_then(code)),
                Err(StoppedError::ConnectionLost(error)) => {
                    Err(WriteError::SessionEnded(reason(&error)))
                }
                Err(_) => Err(WriteError::ClosedStream),
            }
        }
    }
}

impl ReceiveHalf for RecvStream {
    fn id(&self) -> StreamId {
        Self::id(self)
    }

    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        self.poll_read_chunk(cx, most).map_err(|error| match error {
            quic::ReadError::Reset(reset) => ReadError::Reset(code(reset)),
            quic::ReadError::ConnectionLost(error) => ReadError::SessionEnded(reason(&error)),
            _ => ReadError::ClosedStream,
        })
    }

    fn stop(&mut self, code: u32) -> Result<(), ReadError> {
        let stopped = Self::stop(self, code.into());
        stopped.map_err(|_| ReadError::ClosedStream)
    }

    fn final_size(&self) -> Option<u64> {
        Self::final_size(self)
    }
}

fn ended(error: ConnectionError) -> SessionEnded {
    SessionEnded(reason(&error))
}

/// Converts the end of a connection. The reason of this end is not kept by it.
fn reason(error: &ConnectionError) -> Closed {
    match error {
        ConnectionError::ApplicationClosed { code, reason } => {
            let code = u32::try_from(code.0).unwrap_or(u32::MAX);
            let message = String::from_utf8_lossy(reason);
            Closed::Peer(CloseReason::new(ApplicationCode(code), &message))
        }
        ConnectionError::LocallyClosed => Closed::Local(CloseReason::default()),
        _ => Closed::ConnectionLost,
    }
}

/// Converts a code of a stream, which may have more bits than those of WebTransport.
fn code(code: VarInt) -> Option<ApplicationCode> {
    u32::try_from(code.into_inner()).ok().map(ApplicationCode)
}

fn closed_stream(_: quic::ClosedStream) -> WriteError {
    WriteError::ClosedStream
}

fn write_error(error: quic::WriteError) -> WriteError {
    match error {
        quic::WriteError::Stopped(stopped) => WriteError::Stopped(code(stopped)),
        quic::WriteError::ConnectionLost(error) => WriteError::SessionEnded(reason(&error)),
        quic::WriteError::DeadlinePassed => WriteError::DeadlinePassed,
        _ => WriteError::ClosedStream,
    }
}
