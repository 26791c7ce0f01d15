//! A connection that runs a script and records every byte.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::PATIENCE;
use crate::seen::{End, printable};

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Waits for this pattern in the received bytes, at most for this time.
    Expect(Vec<u8>, Duration),
    /// Waits.
    Pause(Duration),
    /// Closes the sending direction.
    HalfClose,
    /// Resets the TCP connection.
    Reset,
    /// Closes the connection.
    Close,
}

/// A piece of the bytes that were sent or received.
#[derive(Clone, Debug)]
pub struct Record {
    /// The time since the connection began.
    pub at: Duration,
    /// True for bytes that this end sent.
    pub is_sent: bool,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A TCP or TLS connection.
#[derive(Debug)]
pub struct Wire {
    stream: Stream,
    begun: Instant,
    /// Everything that was sent and received.
    pub records: Vec<Record>,
    /// The received bytes that were not taken yet.
    pub unread: Vec<u8>,
    /// The end of the direction of the peer, once it is known.
    pub end: Option<End>,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl From<TcpStream> for Wire {
    fn from(stream: TcpStream) -> Self {
        // Small writes must arrive as they are.
        let _ = stream.set_nodelay(true);
        Self::over(Stream::Plain(stream))
    }
}

impl From<TlsStream<TcpStream>> for Wire {
    fn from(stream: TlsStream<TcpStream>) -> Self {
        let _ = stream.get_ref().0.set_nodelay(true);
        Self::over(Stream::Tls(Box::new(stream)))
    }
}

impl Wire {
    fn over(stream: Stream) -> Self {
        Self {
            stream,
            begun: Instant::now(),
            records: Vec::new(),
            unread: Vec::new(),
            end: None,
        }
    }

    /// Sends bytes. Returns false if the connection accepts no more.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        let sending = async {
            match &mut self.stream {
                Stream::Plain(stream) => stream.write_all(bytes).await,
                Stream::Tls(stream) => {
                    stream.write_all(bytes).await?;
                    stream.flush().await
                }
            }
        };
        let is_sent = matches!(tokio::time::timeout(PATIENCE, sending).await, Ok(Ok(())));
        self.record(true, bytes);
        is_sent
    }

    /// Receives more bytes. Returns false at the end of the connection, and if none arrive in time.
    pub async fn fill(&mut self) -> bool {
        self.fill_within(PATIENCE).await
    }

    /// Receives more bytes within this time.
    pub async fn fill_within(&mut self, within: Duration) -> bool {
        if self.end.is_some() {
            return false;
        }
        let mut piece = [0; 16 * 1024];
        let reading = async {
            match &mut self.stream {
                Stream::Plain(stream) => stream.read(&mut piece).await,
                Stream::Tls(stream) => stream.read(&mut piece).await,
            }
        };
        match tokio::time::timeout(within, reading).await {
            Err(_) => return false,
            Ok(Ok(0)) => self.end = Some(End::Cut),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                self.end = Some(End::Reset(0));
            }
            Ok(Err(_)) => self.end = Some(End::Cut),
            Ok(Ok(length)) => {
                let received = &piece[..length];
                self.unread.extend_from_slice(received);
                self.record(false, received);
                return true;
            }
        }
        false
    }

    /// Takes `length` bytes. Returns `None` if the connection ends before.
    pub async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.unread.len() < length {
            if !self.fill().await {
                return None;
            }
        }
        Some(self.unread.drain(..length).collect())
    }

    /// Takes the bytes up to and including `mark`. Returns `None` if the connection ends before.
    pub async fn take_until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            let found = self
                .unread
                .windows(mark.len())
                .position(|window| window == mark);
            if let Some(at) = found {
                return Some(self.unread.drain(..at + mark.len()).collect());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// Returns the end of the connection, or [`End::Silent`] if it is open.
    pub fn ended(&self) -> End {
        self.end.unwrap_or(End::Silent)
    }

    /// Runs a script.
    ///
    /// # Errors
    /// Returns the received bytes if they lack an expected pattern.
    pub async fn run(&mut self, script: &[Step]) -> Result<(), String> {
        for step in script {
            match step {
                Step::Send(bytes) => {
                    self.send(bytes).await;
                }
                Step::Expect(pattern, within) => self.expect(pattern, *within).await?,
                Step::Pause(time) => tokio::time::sleep(*time).await,
                Step::HalfClose => self.half_close().await,
                Step::Reset => self.reset(),
                Step::Close => self.close().await,
            }
        }
        Ok(())
    }

    async fn expect(&mut self, pattern: &[u8], within: Duration) -> Result<(), String> {
        let deadline = Instant::now() + within;
        loop {
            let mut windows = self.unread.windows(pattern.len());
            if windows.any(|window| window == pattern) {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.fill_within(left).await {
                let seen = printable(&self.unread);
                return Err(format!("no {:?} in {seen:?}", printable(pattern)));
            }
        }
    }

    /// Ends the sending direction.
    pub async fn half_close(&mut self) {
        let _ = match &mut self.stream {
            Stream::Plain(stream) => stream.shutdown().await,
            Stream::Tls(stream) => stream.shutdown().await,
        };
    }

    /// Closes the connection. Later bytes of the peer are refused.
    pub async fn close(&mut self) {
        self.half_close().await;
        self.end = Some(End::Cut);
    }

    /// Resets the TCP connection when this value is dropped.
    pub fn reset(&mut self) {
        let socket = match &self.stream {
            Stream::Plain(stream) => socket2::SockRef::from(stream),
            Stream::Tls(stream) => socket2::SockRef::from(stream.get_ref().0),
        };
        let _ = socket.set_linger(Some(Duration::ZERO));
        self.end = Some(End::Reset(0));
    }

    fn record(&mut self, is_sent: bool, bytes: &[u8]) {
        self.records.push(Record {
            at: self.begun.elapsed(),
            is_sent,
            bytes: bytes.to_vec(),
        });
    }

    /// Returns all bytes that were received.
    pub fn received(&self) -> Vec<u8> {
        let received = self.records.iter().filter(|record| !record.is_sent);
        received.flat_map(|record| record.bytes.clone()).collect()
    }
}
