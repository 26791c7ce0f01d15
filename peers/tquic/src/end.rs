//! An endpoint of tquic, which has no I/O of its own, with the socket and the timer that drive it.

use std::io;
use std::rc::Rc;
use std::time::Instant;

use tokio::time::sleep;
use tquic::{Config, Endpoint, TransportHandler};

use crate::socket::{BUFFER_SIZE, Socket};

/// An endpoint with its socket.
pub struct End {
    /// The endpoint. [`End::process`] sends what it has to send.
    pub endpoint: Endpoint,
    socket: Rc<Socket>,
    buffer: Box<[u8]>,
}

impl End {
    /// Makes a server.
    pub fn server(config: Config, handler: Box<dyn TransportHandler>, socket: Rc<Socket>) -> Self {
        Self::new(config, true, handler, socket)
    }

    /// Makes a client.
    pub fn client(config: Config, handler: Box<dyn TransportHandler>, socket: Rc<Socket>) -> Self {
        Self::new(config, false, handler, socket)
    }

    fn new(
        config: Config,
        is_server: bool,
        handler: Box<dyn TransportHandler>,
        socket: Rc<Socket>,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(Box::new(config), is_server, handler, socket.clone()),
            socket,
            buffer: vec![0; BUFFER_SIZE].into(),
        }
    }

    /// Calls the handler for pending events and sends packets.
    pub fn process(&mut self) {
        if let Err(error) = self.endpoint.process_connections() {
            eprintln!("tquic: {error}");
        }
    }

    /// Waits for datagrams, for room to send, or for a timer, and processes it. Cancel safe.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn wait(&mut self) -> io::Result<()> {
        let Self {
            endpoint,
            socket,
            buffer,
        } = self;
        let timeout = endpoint.timeout();
        let mut is_busy = false;
        tokio::select! {
            biased;
            ready = socket.readable() => {
                ready?;
                // Errors concern single packets; tquic closes connections that violate the protocol.
                is_busy = socket.receive(buffer, |datagram, info| {
                    let _ = endpoint.recv(datagram, info);
                })?;
            }
            room = socket.has_room(), if socket.is_full() => room?,
            () = sleep(timeout.unwrap_or_default()), if timeout.is_some() => {}
        }
        endpoint.on_timeout(Instant::now());
        if is_busy {
            // Datagrams are pending, but other tasks must run too.
            self.process();
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
