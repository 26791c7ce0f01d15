//! HTTP/0.9.

use std::collections::HashMap;

use peer_tquic::exchange::{self, Outgoing, SCRATCH};
use peers_common::interop;
use tquic::Connection;

use crate::protocol::{Files, Key, Protocol};

/// Requests and responses on streams of their own.
pub(crate) struct Http09 {
    files: Files,
    received: HashMap<Key, Vec<u8>>,
    outgoing: HashMap<Key, Outgoing>,
    scratch: Box<[u8]>,
}

impl Http09 {
    pub(crate) fn new(files: Files) -> Self {
        Self {
            files,
            received: HashMap::new(),
            outgoing: HashMap::new(),
            scratch: vec![0; SCRATCH].into(),
        }
    }

    fn send(&mut self, connection: &mut Connection, stream: u64, content: Vec<u8>) {
        let outgoing = Outgoing::content(content.into());
        self.outgoing.insert(Key::new(connection, stream), outgoing);
        self.on_writable(connection, stream);
    }
}

impl Protocol for Http09 {
    fn on_established(&mut self, _: &mut Connection) {}

    fn request(&mut self, connection: &mut Connection) {
        if !connection.is_established() && !connection.is_in_early_data() {
            return;
        }
        while let Files::Wanted(downloads) = &mut self.files
            && let Some(file) = downloads.wanted.front()
            && let Ok(stream) = connection.stream_bidi_new(0, true)
        {
            let request = interop::request(file).into_bytes();
            downloads.requested(stream);
            self.send(connection, stream, request);
        }
    }

    fn on_readable(&mut self, connection: &mut Connection, stream: u64) {
        let key = Key::new(connection, stream);
        let received = self.received.entry(key).or_default();
        let append = |bytes: &[u8]| received.extend_from_slice(bytes);
        match exchange::read(connection, stream, &mut self.scratch, append) {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
        let content = self.received.remove(&key).unwrap_or_default();
        match &mut self.files {
            Files::Wanted(downloads) => downloads.finish(stream, &content),
            Files::Served(settings) => {
                if let Some(file) = settings.answer(&content) {
                    self.send(connection, stream, file);
                }
            }
        }
    }

    fn on_writable(&mut self, connection: &mut Connection, stream: u64) {
        let key = Key::new(connection, stream);
        let Some(outgoing) = self.outgoing.get_mut(&key) else {
            let _ = connection.stream_want_write(stream, false);
            return;
        };
        // Streams that the other end has stopped need no more.
        if !matches!(outgoing.write(connection, stream), Ok(false)) {
            self.outgoing.remove(&key);
        }
    }

    fn on_closed(&mut self, connection: u64) {
        self.received.retain(|key, _| key.connection != connection);
        self.outgoing.retain(|key, _| key.connection != connection);
    }

    fn is_done(&self) -> Result<bool, String> {
        self.files.is_done()
    }
}
