//! web-transport-quinn. It has one session on a connection.

use anyhow::{Context as _, Result};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use url::Url;
use web_transport_quinn::proto::{ConnectRequest, ConnectResponse};
use web_transport_quinn::{
    ClientBuilder, ReadError, RecvStream, SendStream, ServerBuilder, SessionError,
    WebTransportError, WriteError,
};

use crate::end::{Broken, Connect, Receiving, Sending, Session};
use crate::serve::{self, Last};

pub async fn serve((certificate, key): (&str, &str)) -> Result<()> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    // It does not tell its port, so one that is free is taken.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    drop(socket);
    let mut server = ServerBuilder::new()
        .with_addr(address)
        .with_certificate(chain, key)?;
    println!("{}", address.port());
    let last = Last::default();
    loop {
        let request = server.accept().await.context("closed")?;
        let last = last.clone();
        tokio::spawn(async move {
            let path = request.connect().url.path().to_owned();
            let offers = request
                .connect()
                .protocols
                .iter()
                .any(|offered| offered == "echo");
            let mut response = ConnectResponse::OK;
            if offers {
                response = response.with_protocol("echo");
            }
            let session = request.respond(response).await?;
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
    type Session = web_transport_quinn::Session;

    async fn connect(&self, path: &str) -> Result<Self::Session> {
        let client = ClientBuilder::new()
            .dangerous()
            .with_no_certificate_verification()?;
        let url: Url = format!("https://localhost:{}{path}", self.port).parse()?;
        let request = ConnectRequest::new(url).with_protocol("echo");
        Ok(client.connect(request).await?)
    }
}

impl Session for web_transport_quinn::Session {
    type Sending = SendStream;
    type Receiving = RecvStream;

    async fn open_bi(&self) -> Result<(SendStream, RecvStream)> {
        Ok(Self::open_bi(self).await?)
    }
    async fn open_uni(&self) -> Result<SendStream> {
        Ok(Self::open_uni(self).await?)
    }
    async fn accept_bi(&self) -> Result<(SendStream, RecvStream)> {
        Ok(Self::accept_bi(self).await?)
    }
    async fn accept_uni(&self) -> Result<RecvStream> {
        Ok(Self::accept_uni(self).await?)
    }
    fn send_datagram(&self, payload: Vec<u8>) -> Result<()> {
        Ok(Self::send_datagram(self, payload.into())?)
    }
    async fn datagram(&self) -> Result<Vec<u8>> {
        Ok(self.read_datagram().await?.to_vec())
    }
    fn close(&self, code: u32, reason: &str) {
        Self::close(self, code, reason.as_bytes());
    }
    async fn closed(&self) -> String {
        match Self::closed(self).await {
            SessionError::WebTransportError(WebTransportError::Closed(code, reason)) => {
                format!("{code} {reason}")
            }
            other => other.to_string(),
        }
    }
    fn protocol(&self) -> Option<String> {
        Self::protocol(self).map(ToOwned::to_owned)
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

impl Sending for SendStream {
    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        Self::write_all(self, bytes)
            .await
            .map_err(|error| match error {
                WriteError::Stopped(code) => Broken::new(Some(code), error),
                _ => Broken::new(None, error),
            })
    }
    async fn finish(&mut self) {
        let _ = Self::finish(self);
    }
    fn reset(&mut self, code: u32) {
        let _ = Self::reset(self, code);
    }
}

impl Receiving for RecvStream {
    async fn read(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let chunk = self
            .read_chunk(64 * 1024, true)
            .await
            .map_err(|error| match error {
                ReadError::Reset(code) => Broken::new(Some(code), error),
                _ => Broken::new(None, error),
            })?;
        Ok(chunk.map(|chunk| chunk.bytes.to_vec()))
    }
    fn stop(&mut self, code: u32) {
        let _ = Self::stop(self, code);
    }
}
