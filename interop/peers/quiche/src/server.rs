//! The server: one thread and one socket for all connections.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quiche::h3::{self, NameValue as _};
use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Type};

use crate::outbox::Outbox;
use crate::{HQ, HTTP3, ID_LEN, Result, config, folder, log_keys, offer_ids, random};

pub(crate) fn serve(test: &str) -> Result {
    let certificates = folder("CERTS")?;
    let file = |name| certificates.join(name).to_string_lossy().into_owned();
    let mut config = config()?;
    config.load_cert_chain_from_pem_file(&file("cert.pem"))?;
    config.load_priv_key_from_pem_file(&file("priv.key"))?;
    config.set_application_protos(&[HQ, HTTP3])?;
    let mut server = Server {
        config,
        outbox: Outbox::bind(env::var("LISTEN")?.parse()?)?,
        root: folder("WWW")?,
        retries: test == "retry",
        secret: random(),
        sessions: HashMap::new(),
        ids: HashMap::new(),
        count: 0,
    };
    loop {
        server.turn()?;
    }
}

struct Server {
    config: Config,
    outbox: Outbox,
    root: PathBuf,
    retries: bool,
    /// The beginning of each token, which stays secret.
    secret: [u8; 16],
    sessions: HashMap<u64, Session>,
    /// The session of each connection ID.
    ids: HashMap<Vec<u8>, u64>,
    count: u64,
}

/// A connection with its requests.
struct Session {
    connection: Connection,
    http: Option<h3::Connection>,
    requests: HashMap<u64, Vec<u8>>,
    answers: HashMap<u64, Answer>,
}

struct Answer {
    content: Vec<u8>,
    sent: usize,
    needs_head: bool,
}

impl Server {
    /// Waits for a datagram or a timer, and does what follows from it.
    fn turn(&mut self) -> Result {
        let timers = self.sessions.values();
        let patience = timers.filter_map(|it| it.connection.timeout()).min();
        let mut buffer = [0; 65536];
        let received = self.outbox.receive(&mut buffer, patience)?;
        for session in self.sessions.values_mut() {
            if session.connection.timeout() == Some(Duration::ZERO) {
                session.connection.on_timeout();
            }
        }
        if let Some((len, info)) = received {
            self.on_datagram(&mut buffer[..len], info)?;
        }
        for (number, session) in &mut self.sessions {
            session.answer(&self.root)?;
            for id in offer_ids(&mut session.connection)? {
                self.ids.insert(id.to_vec(), *number);
            }
            while let Some(id) = session.connection.retired_scid_next() {
                self.ids.remove(id.as_ref());
            }
            while session.connection.path_event_next().is_some() {}
            self.outbox.take_from(&mut session.connection)?;
        }
        self.sessions.retain(|_, it| !it.connection.is_closed());
        self.ids
            .retain(|_, number| self.sessions.contains_key(number));
        Ok(())
    }

    fn on_datagram(&mut self, datagram: &mut [u8], info: RecvInfo) -> Result {
        let Ok(header) = Header::from_slice(datagram, ID_LEN) else {
            return Ok(());
        };
        if let Some(number) = self.ids.get(header.dcid.as_ref()) {
            if let Some(session) = self.sessions.get_mut(number) {
                // A packet that is not authentic is no reason to end.
                let _ = session.connection.recv(datagram, info);
            }
            return Ok(());
        }
        if header.ty == Type::Short || datagram.len() < quiche::MIN_CLIENT_INITIAL_LEN {
            return Ok(());
        }
        if !quiche::version_is_supported(header.version) {
            let mut packet = [0; 200];
            let len = quiche::negotiate_version(&header.scid, &header.dcid, &mut packet)?;
            return self.outbox.send_now(&packet[..len], info.from);
        }
        if header.ty == Type::Initial {
            self.accept(&header, datagram, info)?;
        }
        Ok(())
    }

    fn accept(&mut self, header: &Header<'_>, datagram: &mut [u8], info: RecvInfo) -> Result {
        let id: [u8; ID_LEN] = random();
        let mut id = ConnectionId::from_ref(&id);
        let token = header.token.as_deref().unwrap_or_default();
        let original = token.strip_prefix(&self.secret).map(ConnectionId::from_ref);
        if self.retries && original.is_none() {
            let token = [&self.secret, header.dcid.as_ref()].concat();
            let (to, from, version) = (&header.scid, &header.dcid, header.version);
            let mut packet = [0; 300];
            let len = quiche::retry(to, from, &id, &token, version, &mut packet)?;
            return self.outbox.send_now(&packet[..len], info.from);
        }
        if original.is_some() {
            id = header.dcid.clone();
        }
        let local = self.outbox.local();
        let mut connection =
            quiche::accept(&id, original.as_ref(), local, info.from, &mut self.config)?;
        log_keys(&mut connection)?;
        if connection.recv(datagram, info).is_err() {
            return Ok(());
        }
        self.count += 1;
        self.ids.insert(id.to_vec(), self.count);
        self.ids.insert(header.dcid.to_vec(), self.count);
        let session = Session {
            connection,
            http: None,
            requests: HashMap::new(),
            answers: HashMap::new(),
        };
        self.sessions.insert(self.count, session);
        Ok(())
    }
}

impl Session {
    fn answer(&mut self, root: &Path) -> Result {
        let connection = &mut self.connection;
        if !connection.is_established() && !connection.is_in_early_data() {
            return Ok(());
        }
        if connection.application_proto() == HTTP3 && self.http.is_none() {
            let config = h3::Config::new()?;
            self.http = h3::Connection::with_transport(connection, &config).ok();
        }
        if self.http.is_some() {
            self.read_http3(root);
        } else {
            self.read_streams(root);
        }
        self.write();
        Ok(())
    }

    fn read_http3(&mut self, root: &Path) {
        let Some(http) = &mut self.http else { return };
        while let Ok((stream, event)) = http.poll(&mut self.connection) {
            if let h3::Event::Headers { list, .. } = event {
                let path = list.iter().find(|field| field.name() == b":path");
                let content = path.and_then(|path| file(root, path.value()));
                self.answers.insert(
                    stream,
                    Answer {
                        content: content.unwrap_or_default(),
                        sent: 0,
                        needs_head: true,
                    },
                );
            }
        }
    }

    fn read_streams(&mut self, root: &Path) {
        let connection = &mut self.connection;
        for stream in connection.readable() {
            let request = self.requests.entry(stream).or_default();
            let mut buffer = [0; 4096];
            while let Ok((len, is_end)) = connection.stream_recv(stream, &mut buffer) {
                request.extend_from_slice(&buffer[..len]);
                request.truncate(4096);
                if !is_end {
                    continue;
                }
                let path = request.trim_ascii().strip_prefix(b"GET ");
                if let Some(content) = path.and_then(|path| file(root, path)) {
                    self.answers.insert(
                        stream,
                        Answer {
                            content,
                            sent: 0,
                            needs_head: false,
                        },
                    );
                }
                self.requests.remove(&stream);
                break;
            }
        }
    }

    /// Hands over as much of all answers as quiche takes.
    fn write(&mut self) {
        let (connection, http) = (&mut self.connection, &mut self.http);
        self.answers.retain(|stream, answer| {
            if answer.needs_head
                && let Some(http) = http
            {
                let status = h3::Header::new(b":status", b"200");
                if http
                    .send_response(connection, *stream, &[status], false)
                    .is_err()
                {
                    return true;
                }
                answer.needs_head = false;
            }
            loop {
                let rest = &answer.content[answer.sent..];
                let taken = match http {
                    Some(http) => http.send_body(connection, *stream, rest, true).ok(),
                    None => connection.stream_send(*stream, rest, true).ok(),
                };
                let Some(taken) = taken else { return true };
                answer.sent += taken;
                if answer.sent == answer.content.len() {
                    return false;
                }
                if taken == 0 {
                    return true;
                }
            }
        });
    }
}

/// Reads a file of the folder from a path of a request.
fn file(root: &Path, path: &[u8]) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(path).ok()?.strip_prefix('/')?;
    let is_plain = !name.contains('/') && !name.starts_with('.');
    is_plain.then(|| fs::read(root.join(name)).ok()).flatten()
}
