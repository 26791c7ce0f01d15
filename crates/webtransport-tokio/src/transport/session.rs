//! Sessions of WebTransport as transports.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_http3_tokio::DatagramError;
use courser_quic::{ConnectionStats, DatagramOptions, SendRate, StreamId};
use courser_webtransport::{ApplicationCode, Closed};

use super::{ReceiveHalf, SendHalf, Transport};
use crate::error::{ReadError, SessionEnded, WriteError};
use crate::receive_stream::RecvStream;
use crate::send_group::SendGroup;
use crate::send_stream::SendStream;
use crate::session::Session;

impl Transport for Session {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Group = SendGroup;

    async fn open_bi(&self) -> Result<(SendStream, RecvStream), SessionEnded> {
        Self::open_bi(self).await
    }

    async fn open_uni(&self) -> Result<SendStream, SessionEnded> {
        Self::open_uni(self).await
    }

    async fn accept_bi(&self) -> Result<(SendStream, RecvStream), SessionEnded> {
        Self::accept_bi(self).await
    }

    async fn accept_uni(&self) -> Result<RecvStream, SessionEnded> {
        Self::accept_uni(self).await
    }

    fn send_datagram(&self, payload: Bytes) -> Result<(), DatagramError> {
        self.datagrams()
            .send_bytes(payload, DatagramOptions::default())
    }

    async fn receive_datagram(&self) -> Result<Bytes, SessionEnded> {
        match self.datagrams().receive().await {
            Some(datagram) => Ok(datagram),
            None => Err(SessionEnded(Self::closed(self).await)),
        }
    }

    fn max_datagram_size(&self) -> Option<usize> {
        self.datagrams().max_size()
    }

    fn send_group(&self) -> SendGroup {
        Self::send_group(self)
    }

    fn send_rate(&self) -> Option<SendRate> {
        Self::send_rate(self)
    }

    fn stats(&self) -> ConnectionStats {
        self.quic().stats()
    }

    fn protocol(&self) -> Option<String> {
        Self::protocol(self).map(ToOwned::to_owned)
    }

    fn close(&self, code: u32, message: &str) {
        drop(Self::close(self, code, message));
    }

    async fn closed(&self) -> Closed {
        Self::closed(self).await
    }

    fn close_reason(&self) -> Option<Closed> {
        Self::close_reason(self)
    }
}

impl SendHalf for SendStream {
    type Group = SendGroup;

    fn id(&self) -> StreamId {
        Self::id(self)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, WriteError>> {
        Self::poll_send(self, cx, bytes)
    }

    async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        Self::write_chunk(self, chunk).await
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        Self::finish(self)
    }

    fn reset(&mut self, code: u32) -> Result<(), WriteError> {
        Self::reset(self, code)
    }

    fn reset_at(&mut self, code: u32, reliable_size: u64) -> Result<(), WriteError> {
        Self::reset_at(self, code, reliable_size)
    }

    fn set_deadline(&mut self, after: Option<Duration>, code: u32) -> Result<(), WriteError> {
        Self::set_deadline(self, after, code)
    }

    fn set_order(&self, order: i64) -> Result<(), WriteError> {
        Self::set_order(self, order)
    }

    fn set_group(&self, group: Option<&SendGroup>) -> Result<(), WriteError> {
        Self::set_group(self, group)
    }

    fn set_priority(&self, priority: i32) -> Result<(), WriteError> {
        Self::set_priority(self, priority)
    }

    fn acknowledged(&self) -> impl Future<Output = Result<(), WriteError>> + Send + 'static {
        Self::acknowledged(self)
    }

    fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<ApplicationCode>, WriteError>> + Send + 'static {
        Self::stopped(self)
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
        Self::poll_chunk(self, cx, most)
    }

    fn stop(&mut self, code: u32) -> Result<(), ReadError> {
        Self::stop(self, code)
    }

    fn final_size(&self) -> Option<u64> {
        Self::final_size(self)
    }
}
