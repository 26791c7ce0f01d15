//! HTTP Datagrams through the traits of the crate `h3-datagram`.

use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use courser::SendDatagramError;
use h3_datagram::ConnectionErrorIncoming;
use h3_datagram::datagram::EncodedDatagram;
use h3_datagram::quic_traits::{
    DatagramConnectionExt, RecvDatagram, SendDatagram, SendDatagramErrorIncoming,
};

use crate::Connection;
use crate::connection::PendingCall;
use crate::error::connection_error;

/// Sends DATAGRAM frames (RFC 9221) on a connection.
///
/// Created by [`send_datagram_handler`](DatagramConnectionExt::send_datagram_handler). When the send
/// buffer of the connection is full, its oldest datagrams are dropped. See
/// [`courser::Connection::send_datagram`].
#[derive(Clone, Debug)]
pub struct SendDatagramHandler {
    connection: courser::Connection,
}

/// Receives DATAGRAM frames of a connection.
///
/// Created by [`recv_datagram_handler`](DatagramConnectionExt::recv_datagram_handler). If a
/// connection has several handlers, each datagram goes to one of them.
#[derive(Debug)]
pub struct RecvDatagramHandler {
    connection: courser::Connection,
    reading: PendingCall<Bytes>,
}

impl<B: Buf> DatagramConnectionExt<B> for Connection {
    type SendDatagramHandler = SendDatagramHandler;
    type RecvDatagramHandler = RecvDatagramHandler;

    fn send_datagram_handler(&self) -> SendDatagramHandler {
        SendDatagramHandler {
            connection: self.transport().clone(),
        }
    }

    fn recv_datagram_handler(&self) -> RecvDatagramHandler {
        RecvDatagramHandler {
            connection: self.transport().clone(),
            reading: PendingCall::default(),
        }
    }
}

impl<B: Buf> SendDatagram<B> for SendDatagramHandler {
    fn send_datagram<T: Into<EncodedDatagram<B>>>(
        &mut self,
        data: T,
    ) -> Result<(), SendDatagramErrorIncoming> {
        let mut data = data.into();
        let data = data.copy_to_bytes(data.remaining());
        self.connection.send_datagram(data).map_err(send_error)
    }
}

impl RecvDatagram for RecvDatagramHandler {
    type Buffer = Bytes;

    fn poll_incoming_datagram(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, ConnectionErrorIncoming>> {
        let read =
            |connection: courser::Connection| async move { connection.read_datagram().await };
        let datagram = self.reading.poll(cx, || read(self.connection.clone()));
        datagram.map_err(connection_error)
    }
}

fn send_error(error: SendDatagramError) -> SendDatagramErrorIncoming {
    match error {
        SendDatagramError::TooLarge { .. } => SendDatagramErrorIncoming::TooLarge,
        SendDatagramError::ConnectionLost(error) => {
            SendDatagramErrorIncoming::ConnectionError(connection_error(error))
        }
        // Datagrams are disabled at one of the endpoints.
        _ => SendDatagramErrorIncoming::NotAvailable,
    }
}
