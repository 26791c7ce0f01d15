//! The server over TLS on TCP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser::Algorithm;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::counted::{Counted, StreamCounters};
use super::frame::{FRAME, Frame, read_filler, write_filler};
use crate::context::Context;
use crate::event::Moved;
use crate::server_report::ServerReport;
use crate::wire::{CHUNK, REPORT_REQUEST};

/// A listening TCP socket with the settings of its connections.
pub(crate) struct TcpServer {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    congestion: Algorithm,
    counters: Arc<StreamCounters>,
}

impl std::fmt::Debug for TcpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpServer")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

impl TcpServer {
    pub(crate) async fn bind(
        address: SocketAddr,
        tls: Arc<rustls::ServerConfig>,
        congestion: Algorithm,
    ) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind(address).await?,
            acceptor: tls.into(),
            congestion,
            counters: Arc::default(),
        })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is dropped.
    pub(crate) async fn run(self, context: Arc<Context>) {
        let server = Arc::new(self);
        loop {
            match server.listener.accept().await {
                Ok((stream, peer)) => {
                    let (server, context) = (server.clone(), context.clone());
                    tokio::spawn(async move {
                        match server.serve(stream, &context).await {
                            Ok(moved) => context.events.closed("tls over tcp", peer, moved),
                            Err(error) => context.events.failed("tls over tcp", peer, &error),
                        }
                    });
                }
                // The process has no free file descriptors, or the client has disconnected already.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn serve(&self, stream: TcpStream, context: &Context) -> io::Result<Moved> {
        let stream = Counted::new(stream, self.counters.clone(), self.congestion)?;
        let mut stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream))
            .await
            .map_err(|_| io::Error::other("the handshake timed out"))??;
        let mut moved = Moved::default();
        let mut buffer = vec![0; CHUNK];
        while let Some(frame) = read_frame(&mut stream).await? {
            moved.received += read_filler(&mut stream, &mut buffer, frame.request, None).await?;
            let answer = self.answer(&mut stream, frame.response, context).await;
            match answer {
                Ok(sent) => moved.sent += sent,
                // The client has received enough.
                Err(error) if is_disconnect(&error) => return Ok(moved),
                Err(error) => return Err(error),
            }
        }
        let _ = stream.shutdown().await;
        Ok(moved)
    }

    async fn answer(
        &self,
        stream: &mut TlsStream<Counted>,
        response_len: u64,
        context: &Context,
    ) -> io::Result<u64> {
        let sent = if response_len == REPORT_REQUEST {
            let report = ServerReport {
                io: self.counters.snapshot(),
                connection: None,
                ..context.report()
            };
            let json = report.to_json();
            stream.write_u64(json.len() as u64).await?;
            stream.write_all(&json).await?;
            0
        } else {
            write_filler(stream, response_len, None).await?;
            response_len
        };
        stream.flush().await?;
        Ok(sent)
    }
}

/// Reads the next request. Returns `None` if the client has disconnected.
async fn read_frame(stream: &mut TlsStream<Counted>) -> io::Result<Option<Frame>> {
    let mut bytes = [0; FRAME];
    match stream.read_exact(&mut bytes).await {
        Ok(_) => Ok(Some(Frame::from_bytes(bytes))),
        Err(error) if is_disconnect(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
