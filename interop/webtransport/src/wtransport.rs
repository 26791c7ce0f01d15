//! wtransport. It has one session on a connection, and closes the connection instead of the session.

use anyhow::Result;
use wtransport::error::{ConnectionError, StreamReadError, StreamWriteError};
use wtransport::{ClientConfig, Endpoint, Identity, RecvStream, SendStream, ServerConfig, VarInt};

use crate::end::{Broken, Connect, Receiving, Sending, Session};
use crate::serve::{self, Last};

pub async fn serve((certificate, key): (&str, &str)) -> Result<()> {
    let identity = Identity::load_pemfiles(certificate, key).await?;
    let address = "127.0.0.1:0".parse()?;
    let config = ServerConfig::builder()
        .with_bind_address(address)
        .with_identity(identity)
        .build();
    let server = Endpoint::server(config)?;
    println!("{}", server.local_addr()?.port());
    let last = Last::default();
    loop {
        let incoming = server.accept().await;
        let last = last.clone();
        tokio::spawn(async move {
            let request = incoming.await?;
            let path = request.path().to_owned();
            let session = request.accept().await?;
            serve::session(session, &path, last).await
        });
    }
}

pub struct Connector {
    port: u16,
}

impl Connector {
    pub const fn new(port: u16) -> Self {
        Self { port }
    }
}

impl Connect for Connector {
    type Session = wtransport::Connection;

    async fn connect(&self, path: &str) -> Result<Self::Session> {
        let address = "127.0.0.1:0".parse()?;
        let config = ClientConfig::builder()
            .with_bind_address(address)
            .with_no_cert_validation()
            .build();
        let endpoint = Endpoint::client(config)?;
        let url = format!("https://127.0.0.1:{}{path}", self.port);
        Ok(endpoint.connect(url).await?)
    }
}

impl Session for wtransport::Connection {
    type Sending = SendStream;
    type Receiving = Reading;

    async fn open_bi(&self) -> Result<(SendStream, Reading)> {
        let (send, receive) = Self::open_bi(self).await?.await?;
        Ok((send, Reading(Some(receive))))
    }
    async fn open_uni(&self) -> Result<SendStream> {
        Ok(Self::open_uni(self).await?.await?)
    }
    async fn accept_bi(&self) -> Result<(SendStream, Reading)> {
        let (send, receive) = Self::accept_bi(self).await?;
        Ok((send, Reading(Some(receive))))
    }
    async fn accept_uni(&self) -> Result<Reading> {
        Ok(Reading(Some(Self::accept_uni(self).await?)))
    }
    fn send_datagram(&self, payload: Vec<u8>) -> Result<()> {
        Ok(Self::send_datagram(self, payload)?)
    }
    async fn datagram(&self) -> Result<Vec<u8>> {
        Ok(self.receive_datagram().await?.payload().to_vec())
    }
    fn close(&self, code: u32, reason: &str) {
        Self::close(self, VarInt::from_u32(code), reason.as_bytes());
    }
    async fn closed(&self) -> String {
        match Self::closed(self).await {
            ConnectionError::ApplicationClosed(close) => {
                let reason = String::from_utf8_lossy(close.reason());
                format!("{} {reason}", close.code())
            }
            other => other.to_string(),
        }
    }
    fn protocol(&self) -> Option<String> {
        None
    }
    fn drain(&self) -> Option<()> {
        None
    }
    async fn draining(&self) -> Option<()> {
        None
    }
    fn dialect(&self) -> String {
        String::new()
    }
}

/// Returns the code of an application, which this library leaves as it is in QUIC.
fn application(code: VarInt) -> Option<u32> {
    let offset = code.into_inner().checked_sub(FIRST)?;
    u32::try_from(offset - offset / 0x1f).ok()
}

/// Returns the code of QUIC for one of an application.
fn quic(code: u32) -> VarInt {
    let code = u64::from(code);
    VarInt::try_from(FIRST + code + code / 0x1e).expect("within the range")
}

/// The code of QUIC for the code 0 of an application.
const FIRST: u64 = 0x52e4_a40f_a8db;

impl Sending for SendStream {
    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        Self::write_all(self, bytes)
            .await
            .map_err(|error| match error {
                StreamWriteError::Stopped(code) => Broken::new(application(code), error),
                _ => Broken::new(None, error),
            })
    }
    async fn finish(&mut self) {
        let _ = Self::finish(self).await;
    }
    fn reset(&mut self, code: u32) {
        let _ = Self::reset(self, quic(code));
    }
}

/// A stream that is gone when it is stopped, because this library consumes it.
pub struct Reading(Option<RecvStream>);

impl Receiving for Reading {
    async fn read(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let Some(stream) = &mut self.0 else {
            return Err(Broken::new(None, "stopped"));
        };
        let mut buffer = vec![0; 64 * 1024];
        let read = stream.read(&mut buffer).await;
        let read = read.map_err(|error| match error {
            StreamReadError::Reset(code) => Broken::new(application(code), error),
            _ => Broken::new(None, error),
        })?;
        Ok(read.map(|len| {
            buffer.truncate(len);
            buffer
        }))
    }
    fn stop(&mut self, code: u32) {
        if let Some(stream) = self.0.take() {
            stream.stop(quic(code));
        }
    }
}
