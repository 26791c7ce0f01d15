//! The requests and answers of both ends.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use bytes::{Buf as _, Bytes};
use tquic::{Connection, Error, TransportHandler};

use crate::log_keys;

/// A connection and a stream of it.
type Key = (u64, u64);

pub(crate) struct State {
    is_server: bool,
    /// The files of a server, or those that a client has downloaded.
    folder: PathBuf,
    /// The names of files that a client has not requested yet.
    wanted: VecDeque<String>,
    /// The names of files that are on their way.
    names: HashMap<Key, String>,
    received: HashMap<Key, Vec<u8>>,
    to_send: HashMap<Key, Bytes>,
}

impl State {
    pub(crate) fn server(folder: PathBuf) -> Self {
        Self {
            is_server: true,
            folder,
            wanted: VecDeque::new(),
            names: HashMap::new(),
            received: HashMap::new(),
            to_send: HashMap::new(),
        }
    }

    pub(crate) fn client(folder: PathBuf, names: Vec<String>) -> Self {
        Self {
            is_server: false,
            wanted: names.into(),
            ..Self::server(folder)
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.wanted.is_empty() && self.names.is_empty()
    }

    /// Makes as many requests as the server allows.
    pub(crate) fn request(&mut self, connection: &mut Connection) {
        while !self.wanted.is_empty() {
            let Ok(stream) = connection.stream_bidi_new(0, true) else {
                return;
            };
            let Some(name) = self.wanted.pop_front() else {
                return;
            };
            let key = key(connection, stream);
            let request = format!("GET /{name}\r\n");
            self.to_send.insert(key, request.into());
            self.names.insert(key, name);
            self.send(connection, stream);
        }
    }

    fn send(&mut self, connection: &mut Connection, stream: u64) {
        let key = key(connection, stream);
        let Some(rest) = self.to_send.get_mut(&key) else {
            let _ = connection.stream_want_write(stream, false);
            return;
        };
        loop {
            match connection.stream_write(stream, rest.clone(), true) {
                Ok(0) | Err(Error::Done) => {
                    let _ = connection.stream_want_write(stream, true);
                    return;
                }
                Ok(count) if count < rest.len() => rest.advance(count),
                _ => break,
            }
        }
        self.to_send.remove(&key);
    }

    fn receive(&mut self, connection: &mut Connection, stream: u64) {
        let key = key(connection, stream);
        let content = self.received.entry(key).or_default();
        let mut buffer = [0; 16384];
        while let Ok((count, is_end)) = connection.stream_read(stream, &mut buffer) {
            content.extend_from_slice(&buffer[..count]);
            if is_end {
                let content = self.received.remove(&key).unwrap_or_default();
                self.finish(connection, stream, content);
                return;
            }
        }
    }

    fn finish(&mut self, connection: &mut Connection, stream: u64, content: Vec<u8>) {
        let key = key(connection, stream);
        if !self.is_server {
            if let Some(name) = self.names.remove(&key) {
                // The matrix compares the files.
                let _ = fs::write(self.folder.join(name), content);
            }
            return;
        }
        let name = content.trim_ascii().strip_prefix(b"GET /");
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let name = name.filter(|name| !name.contains('/') && !name.starts_with('.'));
        if let Some(file) = name.and_then(|name| fs::read(self.folder.join(name)).ok()) {
            self.to_send.insert(key, file.into());
            self.send(connection, stream);
        }
    }
}

fn key(connection: &Connection, stream: u64) -> Key {
    (connection.index().unwrap_or_default(), stream)
}

pub(crate) struct Handler(pub(crate) Rc<RefCell<State>>);

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        log_keys(connection);
        if connection.is_in_early_data() {
            self.0.borrow_mut().request(connection);
        }
    }

    fn on_conn_established(&mut self, _: &mut Connection) {}

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let closed = connection.index().unwrap_or_default();
        let mut state = self.0.borrow_mut();
        state.received.retain(|(number, _), _| *number != closed);
        state.to_send.retain(|(number, _), _| *number != closed);
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        self.0.borrow_mut().receive(connection, stream);
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.0.borrow_mut().send(connection, stream);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
