//! The requests and answers of both ends over HTTP/3.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use bytes::{Buf as _, Bytes};
use tquic::h3::connection::Http3Connection;
use tquic::h3::{Header, Http3Config, Http3Error, Http3Event, NameValue as _};
use tquic::{Connection, TransportHandler};

use crate::log_keys;

/// A connection and a stream of it.
type Key = (u64, u64);

pub(crate) struct State {
    is_server: bool,
    /// The files of a server, or those that a client has downloaded.
    folder: PathBuf,
    authority: String,
    /// The names of files that a client has not requested yet.
    wanted: VecDeque<String>,
    /// The names of files that are on their way.
    names: HashMap<u64, String>,
    received: HashMap<u64, Vec<u8>>,
    to_send: HashMap<Key, Bytes>,
    connections: HashMap<u64, Http3Connection>,
    failure: Option<String>,
}

impl State {
    pub(crate) fn server(folder: PathBuf) -> Self {
        Self {
            is_server: true,
            folder,
            authority: String::new(),
            wanted: VecDeque::new(),
            names: HashMap::new(),
            received: HashMap::new(),
            to_send: HashMap::new(),
            connections: HashMap::new(),
            failure: None,
        }
    }

    pub(crate) fn client(folder: PathBuf, authority: &str, names: Vec<String>) -> Self {
        Self {
            is_server: false,
            authority: authority.to_owned(),
            wanted: names.into(),
            ..Self::server(folder)
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.wanted.is_empty() && self.names.is_empty()
    }

    /// Takes the reason for which a request failed.
    pub(crate) fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Calls `act` with HTTP/3 on the connection of this index, if it has started.
    fn with(&mut self, index: Option<u64>, act: impl FnOnce(&mut Self, &mut Http3Connection)) {
        let http3 = index.and_then(|index| Some((index, self.connections.remove(&index)?)));
        if let Some((index, mut http3)) = http3 {
            act(self, &mut http3);
            self.connections.insert(index, http3);
        }
    }

    fn start(&mut self, connection: &mut Connection) {
        let started = Http3Config::new()
            .and_then(|config| Http3Connection::new_with_quic_conn(connection, &config));
        match (started, connection.index()) {
            (Ok(http3), Some(index)) => drop(self.connections.insert(index, http3)),
            (Err(error), _) => self.failure = Some(format!("cannot start HTTP/3: {error:?}")),
            _ => {}
        }
    }

    /// Makes as many requests as the server allows.
    pub(crate) fn request(&mut self, connection: &mut Connection) {
        self.with(connection.index(), |state, http3| {
            while let Some(name) = state.wanted.front() {
                let Ok(stream) = http3.stream_new(connection) else {
                    return;
                };
                let path = format!("/{name}");
                let headers = [
                    (":method", "GET"),
                    (":scheme", "https"),
                    (":authority", state.authority.as_str()),
                    (":path", path.as_str()),
                ];
                let headers = headers.map(|(name, value)| header(name, value));
                if let Err(error) = http3.send_headers(connection, stream, &headers, true) {
                    state.failure = Some(format!("cannot request {path}: {error:?}"));
                }
                let name = state.wanted.pop_front().unwrap_or_default();
                state.names.insert(stream, name);
            }
        });
    }

    fn poll(&mut self, connection: &mut Connection) {
        self.with(connection.index(), |state, http3| {
            while let Ok((stream, event)) = http3.poll(connection) {
                match event {
                    Http3Event::Headers { headers, .. } if state.is_server => {
                        state.answer(connection, http3, stream, &headers);
                    }
                    Http3Event::Headers { headers, .. } => {
                        if value(&headers, ":status") != Some(b"200".as_slice()) {
                            state.failure = Some(format!("no 200: {headers:?}"));
                        }
                    }
                    Http3Event::Data => {
                        let content = state.received.entry(stream).or_default();
                        let mut buffer = [0; 16384];
                        while let Ok(count) = http3.recv_body(connection, stream, &mut buffer) {
                            content.extend_from_slice(&buffer[..count]);
                        }
                    }
                    Http3Event::Finished => {
                        let content = state.received.remove(&stream).unwrap_or_default();
                        if let Some(name) = state.names.remove(&stream) {
                            // The matrix compares the files.
                            let _ = fs::write(state.folder.join(name), content);
                        }
                    }
                    Http3Event::Reset(code) if !state.is_server => {
                        state.failure = Some(format!("stream {stream} was reset with {code:#x}"));
                    }
                    _ => {}
                }
            }
        });
    }

    fn answer(
        &mut self,
        connection: &mut Connection,
        http3: &mut Http3Connection,
        stream: u64,
        headers: &[Header],
    ) {
        let name = value(headers, ":path").and_then(|path| path.strip_prefix(b"/"));
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let name = name.filter(|name| !name.contains('/') && !name.starts_with('.'));
        let content = name.and_then(|name| fs::read(self.folder.join(name)).ok());
        let status = if content.is_some() { "200" } else { "404" };
        let content = Bytes::from(content.unwrap_or_default());
        let headers = [
            header(":status", status),
            header("content-length", &content.len().to_string()),
        ];
        let is_end = content.is_empty();
        // Those of a blocked stream are kept, and sent before the content.
        let _ = http3.send_headers(connection, stream, &headers, is_end);
        if !is_end {
            self.to_send.insert(key(connection, stream), content);
            self.send(connection, http3, stream);
        }
    }

    fn send(&mut self, connection: &mut Connection, http3: &mut Http3Connection, stream: u64) {
        let key = key(connection, stream);
        let Some(rest) = self.to_send.get_mut(&key) else {
            let _ = connection.stream_want_write(stream, false);
            return;
        };
        while !rest.is_empty() {
            match http3.send_body(connection, stream, rest.clone(), true) {
                Ok(count) => rest.advance(count),
                // Headers that were kept have been sent.
                Err(Http3Error::NoError) => {}
                Err(Http3Error::Done | Http3Error::StreamBlocked) => {
                    let _ = connection.stream_want_write(stream, true);
                    return;
                }
                Err(_) => break,
            }
        }
        self.to_send.remove(&key);
        let _ = connection.stream_want_write(stream, false);
    }
}

fn header(name: &str, value: &str) -> Header {
    Header::new(name.as_bytes(), value.as_bytes())
}

fn value<'a>(headers: &'a [Header], name: &str) -> Option<&'a [u8]> {
    let found = headers
        .iter()
        .find(|header| header.name() == name.as_bytes());
    found.map(|header| header.value())
}

fn key(connection: &Connection, stream: u64) -> Key {
    (connection.index().unwrap_or_default(), stream)
}

pub(crate) struct Handler(pub(crate) Rc<RefCell<State>>);

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        log_keys(connection);
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        self.0.borrow_mut().start(connection);
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let closed = connection.index().unwrap_or_default();
        let mut state = self.0.borrow_mut();
        state.to_send.retain(|(number, _), _| *number != closed);
        state.connections.remove(&closed);
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, _: u64) {
        self.0.borrow_mut().poll(connection);
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        let mut state = self.0.borrow_mut();
        state.with(connection.index(), |state, http3| {
            state.send(connection, http3, stream);
        });
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
