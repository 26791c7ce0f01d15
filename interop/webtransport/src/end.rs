//! Sessions and streams, as the cases use them, whatever library implements them.

use std::fmt;
use std::future::Future;

use anyhow::Result;

/// The end of a half of a stream before its time: the code of the other application, if there is any.
#[derive(Debug)]
pub struct Broken {
    pub code: Option<u32>,
    pub text: String,
}

impl Broken {
    pub fn new(code: Option<u32>, error: impl fmt::Debug) -> Self {
        Self {
            code,
            text: format!("{error:?}"),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Broken {}

pub trait Session: Clone + Send + Sync + 'static {
    type Sending: Sending;
    type Receiving: Receiving;

    fn open_bi(&self) -> impl Future<Output = Result<(Self::Sending, Self::Receiving)>> + Send;
    fn open_uni(&self) -> impl Future<Output = Result<Self::Sending>> + Send;
    fn accept_bi(&self) -> impl Future<Output = Result<(Self::Sending, Self::Receiving)>> + Send;
    fn accept_uni(&self) -> impl Future<Output = Result<Self::Receiving>> + Send;
    fn send_datagram(&self, payload: Vec<u8>) -> Result<()>;
    fn datagram(&self) -> impl Future<Output = Result<Vec<u8>>> + Send;
    fn close(&self, code: u32, reason: &str);
    /// Waits for the end: code and reason of the application, or another text.
    fn closed(&self) -> impl Future<Output = String> + Send;
    fn protocol(&self) -> Option<String>;
    /// `None` if the library has no draining.
    fn drain(&self) -> Option<()>;
    fn draining(&self) -> impl Future<Output = Option<()>> + Send;
    fn dialect(&self) -> String;
}

pub trait Sending: Send + 'static {
    fn write_all(&mut self, bytes: &[u8]) -> impl Future<Output = Result<(), Broken>> + Send;
    fn finish(&mut self) -> impl Future<Output = ()> + Send;
    fn reset(&mut self, code: u32);
}

pub trait Receiving: Send + 'static {
    /// Returns `None` at the end.
    fn read(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Broken>> + Send;
    fn stop(&mut self, code: u32);

    fn read_all(&mut self) -> impl Future<Output = Result<Vec<u8>, Broken>> + Send {
        async {
            let mut all = Vec::new();
            while let Some(more) = self.read().await? {
                all.extend(more);
            }
            Ok(all)
        }
    }
}

/// Opens sessions, each on a connection of its own unless it is asked for two on one.
pub trait Connect: Sync {
    type Session: Session;

    fn connect(&self, path: &str) -> impl Future<Output = Result<Self::Session>> + Send;
    /// `None` if the library has one session on a connection.
    fn two(&self) -> impl Future<Output = Option<Result<[Self::Session; 2]>>> + Send {
        async { None }
    }
}
