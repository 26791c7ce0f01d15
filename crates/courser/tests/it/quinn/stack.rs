//! The common features of both stacks under one name, so that a test can run with exchanged roles.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

/// The end of a connection, as one end sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// This end's application closed.
    Here,
    /// The peer's application closed.
    Application { code: u64, reason: Bytes },
    /// The peer's transport closed.
    Transport { code: u64, reason: Bytes },
    /// This end's transport closed because of an error of the peer.
    Violation { code: u64 },
    /// The peer has lost the state of the connection.
    Reset,
    /// No packet arrived.
    TimedOut,
}

impl Ending {
    pub fn application(code: u64, reason: &'static [u8]) -> Self {
        Self::Application {
            code,
            reason: Bytes::from_static(reason),
        }
    }
}

/// A connection of either stack.
pub trait Stack: Clone + Send + Sync + 'static {
    type Send: Sending;
    type Receive: Receiving;

    fn open_uni(&self) -> impl Future<Output = Self::Send> + Send;
    fn open_bi(&self) -> impl Future<Output = (Self::Send, Self::Receive)> + Send;
    fn accept_uni(&self) -> impl Future<Output = Self::Receive> + Send;
    fn accept_bi(&self) -> impl Future<Output = (Self::Send, Self::Receive)> + Send;
    fn close(&self, code: u32, reason: &[u8]);
    fn closed(&self) -> impl Future<Output = Ending> + Send;
    fn export(&self, label: &[u8], context: &[u8]) -> [u8; 32];
    fn protocol(&self) -> Option<Vec<u8>>;
    fn peer_port(&self) -> u16;
    fn mtu(&self) -> u16;
    /// Returns the number of its own packets that it declared lost.
    fn lost(&self) -> u64;
}

/// A stream to send on.
pub trait Sending: AsyncWrite + Unpin + Send + 'static {
    fn reset(&mut self, code: u32);
    /// Returns the code with which the peer stopped it; `None` if it was delivered.
    fn stopped(&self) -> impl Future<Output = Option<u64>> + Send;
}

/// A stream to receive on.
pub trait Receiving: AsyncRead + Unpin + Send + 'static {
    fn stop(&mut self, code: u32);
    /// Reads on, and returns the code with which the peer reset it; `None` if it ended normally.
    fn reset_code(&mut self) -> impl Future<Output = Option<u64>> + Send;
}

impl Stack for courser::Connection {
    type Send = courser::SendStream;
    type Receive = courser::RecvStream;

    async fn open_uni(&self) -> Self::Send {
        self.open_uni().await.expect("open")
    }

    async fn open_bi(&self) -> (Self::Send, Self::Receive) {
        self.open_bi().await.expect("open")
    }

    async fn accept_uni(&self) -> Self::Receive {
        self.accept_uni().await.expect("open")
    }

    async fn accept_bi(&self) -> (Self::Send, Self::Receive) {
        self.accept_bi().await.expect("open")
    }

    fn close(&self, code: u32, reason: &[u8]) {
        self.close(code.into(), reason);
    }

    async fn closed(&self) -> Ending {
        self.closed().await.into()
    }

    fn export(&self, label: &[u8], context: &[u8]) -> [u8; 32] {
        let mut output = [0; 32];
        self.export_keying_material(&mut output, label, context)
            .expect("open");
        output
    }

    fn protocol(&self) -> Option<Vec<u8>> {
        self.handshake_data()?.protocol
    }

    fn peer_port(&self) -> u16 {
        self.remote_address().port()
    }

    fn mtu(&self) -> u16 {
        self.stats().path.mtu
    }

    fn lost(&self) -> u64 {
        self.stats().packets_lost
    }
}

impl Sending for courser::SendStream {
    fn reset(&mut self, code: u32) {
        self.reset(code.into()).expect("still open");
    }

    async fn stopped(&self) -> Option<u64> {
        self.stopped()
            .await
            .expect("connection lives")
            .map(courser::VarInt::into_inner)
    }
}

impl Receiving for courser::RecvStream {
    fn stop(&mut self, code: u32) {
        self.stop(code.into()).expect("still open");
    }

    async fn reset_code(&mut self) -> Option<u64> {
        match self.read_to_end(usize::MAX).await {
            Ok(_) => None,
            Err(courser::ReadToEndError::Read(courser::ReadError::Reset(code))) => {
                Some(code.into_inner())
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl From<courser::ConnectionError> for Ending {
    fn from(error: courser::ConnectionError) -> Self {
        use courser::ConnectionError as Cause;
        match error {
            Cause::LocallyClosed => Self::Here,
            Cause::ApplicationClosed { code, reason } => Self::Application {
                code: code.0,
                reason,
            },
            Cause::ConnectionClosed(close) => Self::Transport {
                code: close.code.value(),
                reason: close.reason,
            },
            Cause::TransportError(error) => Self::Violation {
                code: error.code.value(),
            },
            Cause::Reset => Self::Reset,
            Cause::TimedOut => Self::TimedOut,
            other => panic!("{other}"),
        }
    }
}

impl Stack for quinn::Connection {
    type Send = quinn::SendStream;
    type Receive = quinn::RecvStream;

    async fn open_uni(&self) -> Self::Send {
        self.open_uni().await.expect("open")
    }

    async fn open_bi(&self) -> (Self::Send, Self::Receive) {
        self.open_bi().await.expect("open")
    }

    async fn accept_uni(&self) -> Self::Receive {
        self.accept_uni().await.expect("open")
    }

    async fn accept_bi(&self) -> (Self::Send, Self::Receive) {
        self.accept_bi().await.expect("open")
    }

    fn close(&self, code: u32, reason: &[u8]) {
        self.close(code.into(), reason);
    }

    async fn closed(&self) -> Ending {
        self.closed().await.into()
    }

    fn export(&self, label: &[u8], context: &[u8]) -> [u8; 32] {
        let mut output = [0; 32];
        self.export_keying_material(&mut output, label, context)
            .expect("open");
        output
    }

    fn protocol(&self) -> Option<Vec<u8>> {
        let data = self.handshake_data()?;
        data.downcast::<quinn::crypto::rustls::HandshakeData>()
            .expect("rustls")
            .protocol
    }

    fn peer_port(&self) -> u16 {
        self.remote_address().port()
    }

    fn mtu(&self) -> u16 {
        self.stats().path.current_mtu
    }

    fn lost(&self) -> u64 {
        self.stats().path.lost_packets
    }
}

impl Sending for quinn::SendStream {
    fn reset(&mut self, code: u32) {
        self.reset(code.into()).expect("still open");
    }

    async fn stopped(&self) -> Option<u64> {
        self.stopped()
            .await
            .expect("connection lives")
            .map(quinn::VarInt::into_inner)
    }
}

impl Receiving for quinn::RecvStream {
    fn stop(&mut self, code: u32) {
        self.stop(code.into()).expect("still open");
    }

    async fn reset_code(&mut self) -> Option<u64> {
        match self.read_to_end(usize::MAX).await {
            Ok(_) => None,
            Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
                Some(code.into_inner())
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl From<quinn::ConnectionError> for Ending {
    fn from(error: quinn::ConnectionError) -> Self {
        use quinn::ConnectionError as Cause;
        match error {
            Cause::LocallyClosed => Self::Here,
            Cause::ApplicationClosed(close) => Self::Application {
                code: close.error_code.into_inner(),
                reason: close.reason,
            },
            Cause::ConnectionClosed(close) => Self::Transport {
                code: close.error_code.into(),
                reason: close.reason,
            },
            Cause::TransportError(error) => Self::Violation {
                code: error.code.into(),
            },
            Cause::Reset => Self::Reset,
            Cause::TimedOut => Self::TimedOut,
            other => panic!("{other}"),
        }
    }
}
