//! The client over TLS on TCP.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_measure::{Failure, IoCounters};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, HandshakeKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::counted::{Counted, StreamCounters};
use super::frame::{Frame, UNTIL_END, read_filler, write_filler};
use crate::meter::Meter;
use crate::remote::Remote;
use crate::server_report::ServerReport;
use crate::transfer::{Agreed, Until};
use crate::wire::{
    CHUNK, ENDLESS, HEADER, MAX_REPORT, PROTOCOL, REPORT_REQUEST, Request, filler_slice,
};

/// Opens connections, and counts their system calls.
pub(crate) struct TcpConnector {
    tls: TlsConnector,
    counters: Arc<StreamCounters>,
}

impl std::fmt::Debug for TcpConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpConnector")
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl TcpConnector {
    pub(crate) fn new(tls: TlsConnector) -> Self {
        Self {
            tls,
            counters: Arc::default(),
        }
    }

    /// Opens a connection, and completes the TLS handshake.
    pub(crate) async fn connect(&self, remote: &Remote) -> Result<Box<TcpLink>, Failure> {
        let name = ServerName::try_from(remote.name.clone())
            .map_err(|_| Failure::new(format!("invalid server name '{}'", remote.name)))?;
        let connect = async {
            let stream = TcpStream::connect(remote.address).await?;
            let stream = Counted::new(stream, self.counters.clone(), remote.congestion)?;
            self.tls.connect(name, stream).await
        };
        let stream = tokio::time::timeout(remote.connect_timeout, connect)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| remote.tcp_failure(&error))?;
        if stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            return Err(remote.protocol_mismatch());
        }
        Ok(Box::new(TcpLink {
            stream,
            buffer: vec![0; CHUNK],
        }))
    }

    pub(crate) fn io(&self) -> IoCounters {
        self.counters.snapshot()
    }
}

/// A connection to a perf server.
#[derive(Debug)]
pub(crate) struct TcpLink {
    stream: TlsStream<Counted>,
    /// The buffer for received bytes.
    buffer: Vec<u8>,
}

impl TcpLink {
    pub(crate) async fn upload(&mut self, until: Until, meter: &Meter) -> Result<(), Failure> {
        // Unlike the end of a stream, an empty response would not be visible: request one byte.
        match until {
            Until::Bytes(bytes) => {
                self.begin(Frame {
                    response: 1,
                    request: bytes,
                })
                .await?;
                write_filler(&mut self.stream, bytes, Some(meter)).await?;
                self.stream.flush().await?;
            }
            Until::At(deadline) => {
                self.begin(Frame {
                    response: 1,
                    request: UNTIL_END,
                })
                .await?;
                self.write_until(deadline, meter).await?;
                self.stream.shutdown().await?;
            }
        }
        self.expect(1, None).await
    }

    async fn write_until(&mut self, deadline: Instant, meter: &Meter) -> io::Result<()> {
        while Instant::now() < deadline {
            let write = self.stream.write(filler_slice(CHUNK as u64));
            match tokio::time::timeout_at(deadline.into(), write).await {
                Ok(written) => meter.on_sent(written?),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Receives until `until`. After a time limit the connection cannot be used again, because the server
    /// continues to send.
    pub(crate) async fn download(&mut self, until: Until, meter: &Meter) -> Result<(), Failure> {
        match until {
            Until::Bytes(bytes) => {
                self.begin(Frame {
                    response: bytes,
                    request: 0,
                })
                .await?;
                self.expect(bytes, Some(meter)).await
            }
            Until::At(deadline) => {
                self.begin(Frame {
                    response: ENDLESS,
                    request: 0,
                })
                .await?;
                let all = self.expect(ENDLESS, Some(meter));
                tokio::time::timeout_at(deadline.into(), all)
                    .await
                    .unwrap_or(Ok(()))
            }
        }
    }

    pub(crate) async fn exchange(
        &mut self,
        request: &Request,
        meter: &Meter,
    ) -> Result<(), Failure> {
        let first = &request.start[HEADER..];
        let frame = Frame {
            response: request.response,
            request: request.size,
        };
        self.buffer.clear();
        self.buffer.extend_from_slice(&frame.to_bytes());
        self.buffer.extend_from_slice(first);
        self.stream.write_all(&self.buffer).await?;
        meter.on_sent(first.len());
        write_filler(&mut self.stream, request.rest, Some(meter)).await?;
        self.stream.flush().await?;
        self.expect(request.response, Some(meter)).await
    }

    /// Requests the server's counters; returns `None` when the server does not support the request.
    pub(crate) async fn server_report(&mut self) -> Option<ServerReport> {
        tokio::time::timeout(REPORT_TIMEOUT, self.request_report())
            .await
            .ok()?
            .ok()
            .flatten()
    }

    async fn request_report(&mut self) -> Result<Option<ServerReport>, Failure> {
        self.begin(Frame {
            response: REPORT_REQUEST,
            request: 0,
        })
        .await?;
        let len = usize::try_from(self.stream.read_u64().await?).unwrap_or(usize::MAX);
        if len > MAX_REPORT {
            return Ok(None);
        }
        let mut report = vec![0; len];
        self.stream.read_exact(&mut report).await?;
        Ok(ServerReport::parse(&report))
    }

    async fn begin(&mut self, frame: Frame) -> io::Result<()> {
        self.stream.write_all(&frame.to_bytes()).await?;
        self.stream.flush().await
    }

    async fn expect(&mut self, bytes: u64, meter: Option<&Meter>) -> Result<(), Failure> {
        self.buffer.resize(CHUNK, 0);
        let received = read_filler(&mut self.stream, &mut self.buffer, bytes, meter).await?;
        if received == bytes {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the server closed the connection after {received} of {bytes} bytes"
        )))
    }

    pub(crate) fn agreed(&self) -> Agreed {
        let connection = self.stream.get_ref().1;
        let suite = connection
            .negotiated_cipher_suite()
            .map(|suite| match suite.suite() {
                CipherSuite::TLS13_AES_128_GCM_SHA256 => "AES-128-GCM".to_owned(),
                CipherSuite::TLS13_AES_256_GCM_SHA384 => "AES-256-GCM".to_owned(),
                CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "ChaCha20-Poly1305".to_owned(),
                other => format!("{other:?}"),
            });
        let group = connection.negotiated_key_exchange_group();
        Agreed {
            suite,
            key_exchange: group.map(|group| format!("{:?}", group.name())),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Closes the TLS session, and waits until the server has closed it too.
    pub(crate) async fn close_and_wait(mut self: Box<Self>) -> Result<(), Failure> {
        self.stream.shutdown().await?;
        self.buffer.resize(CHUNK, 0);
        read_filler(&mut self.stream, &mut self.buffer, u64::MAX, None).await?;
        Ok(())
    }
}

/// Time limit for the server's counters; a courser server answers within a round trip.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
