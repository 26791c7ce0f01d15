//! HTTP/3.

use std::collections::HashMap;

use bytes::{Buf as _, Bytes};
use peer_tquic::exchange::SCRATCH;
use tquic::Connection;
use tquic::h3::connection::Http3Connection;
use tquic::h3::{Header, Http3Config, Http3Error, Http3Event, NameValue as _};

use crate::protocol::{Files, Key, Protocol};

/// Requests and responses on the connections of an end.
pub(crate) struct Http3 {
    connections: HashMap<u64, Http3Connection>,
    exchanges: Exchanges,
}

/// The requests and responses under way.
struct Exchanges {
    files: Files,
    received: HashMap<u64, Vec<u8>>,
    to_send: HashMap<Key, Bytes>,
    scratch: Box<[u8]>,
}

impl Http3 {
    pub(crate) fn new(files: Files) -> Self {
        Self {
            connections: HashMap::new(),
            exchanges: Exchanges {
                files,
                received: HashMap::new(),
                to_send: HashMap::new(),
                scratch: vec![0; SCRATCH].into(),
            },
        }
    }

    /// Returns HTTP/3 on a connection, if it has begun.
    fn on(&mut self, connection: &Connection) -> Option<(&mut Http3Connection, &mut Exchanges)> {
        let http3 = self.connections.get_mut(&connection.index()?)?;
        Some((http3, &mut self.exchanges))
    }
}

impl Protocol for Http3 {
    fn on_established(&mut self, connection: &mut Connection) {
        let begun = Http3Config::new()
            .and_then(|config| Http3Connection::new_with_quic_conn(connection, &config));
        match (begun, connection.index()) {
            (Ok(http3), Some(index)) => drop(self.connections.insert(index, http3)),
            (Err(error), _) => self.exchanges.fail(format!("cannot begin: {error:?}")),
            _ => {}
        }
    }

    fn request(&mut self, connection: &mut Connection) {
        if let Some((http3, exchanges)) = self.on(connection) {
            exchanges.request(connection, http3);
        }
    }

    fn on_readable(&mut self, connection: &mut Connection, _: u64) {
        if let Some((http3, exchanges)) = self.on(connection) {
            exchanges.read(connection, http3);
        }
    }

    fn on_writable(&mut self, connection: &mut Connection, stream: u64) {
        if let Some((http3, exchanges)) = self.on(connection) {
            exchanges.send(connection, http3, stream);
        }
    }

    fn on_closed(&mut self, connection: u64) {
        self.connections.remove(&connection);
        let to_send = &mut self.exchanges.to_send;
        to_send.retain(|key, _| key.connection != connection);
    }

    fn is_done(&self) -> Result<bool, String> {
        self.exchanges.files.is_done()
    }
}

impl Exchanges {
    fn fail(&mut self, reason: String) {
        match &mut self.files {
            Files::Wanted(downloads) => downloads.fail(reason),
            Files::Served(_) => eprintln!("HTTP/3: {reason}"),
        }
    }

    fn request(&mut self, connection: &mut Connection, http3: &mut Http3Connection) {
        while let Files::Wanted(downloads) = &mut self.files
            && let Some(file) = downloads.wanted.front()
            && let Ok(stream) = http3.stream_new(connection)
        {
            let path = format!("/{file}");
            let headers = [
                header(":method", "GET"),
                header(":scheme", "https"),
                header(":authority", &downloads.settings.server.to_string()),
                header(":path", &path),
            ];
            if let Err(error) = http3.send_headers(connection, stream, &headers, true) {
                downloads.fail(format!("cannot request {path}: {error:?}"));
            }
            downloads.requested(stream);
        }
    }

    fn read(&mut self, connection: &mut Connection, http3: &mut Http3Connection) {
        while let Ok((stream, event)) = http3.poll(connection) {
            match event {
                Http3Event::Headers { headers, .. } => {
                    self.on_head(connection, http3, stream, &headers);
                }
                Http3Event::Data => {
                    let content = self.received.entry(stream).or_default();
                    while let Ok(count) = http3.recv_body(connection, stream, &mut self.scratch) {
                        content.extend_from_slice(&self.scratch[..count]);
                    }
                }
                Http3Event::Finished => {
                    let content = self.received.remove(&stream).unwrap_or_default();
                    if let Files::Wanted(downloads) = &mut self.files {
                        downloads.finish(stream, &content);
                    }
                }
                Http3Event::Reset(code) => {
                    if let Files::Wanted(downloads) = &mut self.files {
                        downloads.fail(format!("stream {stream} was reset with {code:#x}"));
                    }
                }
                _ => {}
            }
        }
    }

    /// Answers a request, or checks the status of a response.
    fn on_head(
        &mut self,
        connection: &mut Connection,
        http3: &mut Http3Connection,
        stream: u64,
        headers: &[Header],
    ) {
        let settings = match &mut self.files {
            Files::Served(settings) => settings,
            Files::Wanted(downloads) => {
                if value(headers, ":status") != Some(b"200".as_slice()) {
                    downloads.fail(format!("no 200: {headers:?}"));
                }
                return;
            }
        };
        let content = value(headers, ":path").and_then(|path| settings.file(path));
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
            self.to_send.insert(Key::new(connection, stream), content);
            self.send(connection, http3, stream);
        }
    }

    fn send(&mut self, connection: &mut Connection, http3: &mut Http3Connection, stream: u64) {
        let key = Key::new(connection, stream);
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
