//! What HTTP/0.9 and HTTP/3 have in common: the files of an end, and the calls of tquic.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use peers_common::interop::{Client, Server};
use peers_common::key_log;
use tquic::{Connection, TransportHandler};

/// Requests and responses of both ends.
pub(crate) trait Protocol {
    /// Called after the handshake of a connection.
    fn on_established(&mut self, connection: &mut Connection);

    /// Makes as many requests as the server allows. tquic does not report when the limit of streams rises.
    fn request(&mut self, connection: &mut Connection);

    fn on_readable(&mut self, connection: &mut Connection, stream: u64);

    fn on_writable(&mut self, connection: &mut Connection, stream: u64);

    fn on_closed(&mut self, connection: u64);

    /// Returns true if a client has all files.
    ///
    /// # Errors
    /// With the reason, if a download has failed.
    fn is_done(&self) -> Result<bool, String>;
}

/// The files of an end.
pub(crate) enum Files {
    Served(Server),
    Wanted(Downloads),
}

impl Files {
    /// Returns true if a client has all files.
    pub(crate) fn is_done(&self) -> Result<bool, String> {
        match self {
            Self::Served(_) => Ok(false),
            Self::Wanted(downloads) => match &downloads.failure {
                Some(reason) => Err(reason.clone()),
                None => Ok(downloads.wanted.is_empty() && downloads.under_way.is_empty()),
            },
        }
    }
}

/// The files that a client downloads.
pub(crate) struct Downloads {
    pub(crate) settings: Client,
    /// Files that were not requested yet.
    pub(crate) wanted: VecDeque<String>,
    /// Files on their way, by their streams.
    under_way: HashMap<u64, String>,
    failure: Option<String>,
}

impl Downloads {
    pub(crate) fn new(settings: Client, files: &[String]) -> Self {
        Self {
            settings,
            wanted: files.iter().cloned().collect(),
            under_way: HashMap::new(),
            failure: None,
        }
    }

    /// Notes that the first file that was not requested yet was requested on `stream`.
    pub(crate) fn requested(&mut self, stream: u64) {
        if let Some(file) = self.wanted.pop_front() {
            self.under_way.insert(stream, file);
        }
    }

    /// Writes the file that came on `stream`.
    pub(crate) fn finish(&mut self, stream: u64, content: &[u8]) {
        if let Some(file) = self.under_way.remove(&stream)
            && let Err(error) = self.settings.save(&file, content)
        {
            self.fail(format!("cannot write {file}: {error}"));
        }
    }

    pub(crate) fn fail(&mut self, reason: String) {
        self.failure = Some(reason);
    }
}

/// A stream and its connection, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) connection: u64,
    pub(crate) stream: u64,
}

impl Key {
    pub(crate) fn new(connection: &Connection, stream: u64) -> Self {
        let connection = connection.index().unwrap_or_default();
        Self { connection, stream }
    }
}

/// Passes the calls of tquic to a protocol.
pub(crate) struct Handler<P>(pub(crate) Rc<RefCell<P>>);

impl<P: Protocol> TransportHandler for Handler<P> {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        // Runs without a key log fail, and say so.
        if let Ok(Some(file)) = key_log::open() {
            connection.set_keylog(Box::new(file));
        }
        if connection.is_in_early_data() {
            self.0.borrow_mut().request(connection);
        }
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        self.0.borrow_mut().on_established(connection);
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let index = connection.index().unwrap_or_default();
        self.0.borrow_mut().on_closed(index);
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        self.0.borrow_mut().on_readable(connection, stream);
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.0.borrow_mut().on_writable(connection, stream);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
