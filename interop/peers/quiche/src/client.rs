//! The client: one connection at a time, each with a socket of its own.

use std::collections::{HashMap, VecDeque};
use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use quiche::{Config, Connection, ConnectionId, h3};

use crate::outbox::Outbox;
use crate::{HQ, HTTP3, ID_LEN, Result, config, folder, log_keys, offer_ids, random};

pub(crate) fn fetch(test: &str) -> Result {
    let requests = env::var("REQUESTS")?;
    let urls: Vec<&str> = requests.split_whitespace().collect();
    let protocol = if test == "http3" { HTTP3 } else { HQ };
    let mut config = config()?;
    config.verify_peer(false);
    config.set_application_protos(&[protocol])?;
    match test {
        "multiconnect" => {
            for url in &urls {
                Client::new(&mut config, std::slice::from_ref(url), None)?.run(false)?;
            }
        }
        "resumption" | "zerortt" => {
            let (first, others) = urls.split_at(1);
            let session = Client::new(&mut config, first, None)?.run(true)?;
            let session = session.ok_or("the server sent no ticket")?;
            let mut client = Client::new(&mut config, others, Some(&session))?;
            client.is_early = test == "zerortt";
            client.run(false)?;
        }
        _ => {
            Client::new(&mut config, &urls, None)?.run(false)?;
        }
    }
    Ok(())
}

/// A connection that downloads files.
struct Client {
    connection: Connection,
    outbox: Outbox,
    http: Option<h3::Connection>,
    is_early: bool,
    authority: String,
    /// The paths of files that were not requested yet.
    wanted: VecDeque<String>,
    next_stream: u64,
    downloads: HashMap<u64, Download>,
    folder: PathBuf,
}

struct Download {
    name: String,
    /// The rest of the request.
    request: Vec<u8>,
    content: Vec<u8>,
}

impl Client {
    fn new(config: &mut Config, urls: &[&str], session: Option<&[u8]>) -> Result<Self> {
        let mut wanted = VecDeque::new();
        let mut authority = "";
        for url in urls {
            let rest = url.strip_prefix("https://").ok_or("no https URL")?;
            let (host, path) = rest.split_once('/').ok_or("no path")?;
            authority = host;
            wanted.push_back(format!("/{path}"));
        }
        let server: SocketAddr = authority.parse()?;
        let any = if server.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let outbox = Outbox::bind(any.parse()?)?;
        let id: [u8; ID_LEN] = random();
        let id = ConnectionId::from_ref(&id);
        let local = outbox.local();
        let mut connection = quiche::connect(Some("localhost"), &id, local, server, config)?;
        log_keys(&mut connection)?;
        if let Some(session) = session {
            connection.set_session(session)?;
        }
        Ok(Self {
            connection,
            outbox,
            http: None,
            is_early: false,
            authority: authority.to_owned(),
            wanted,
            next_stream: 0,
            downloads: HashMap::new(),
            folder: folder("DOWNLOADS")?,
        })
    }

    /// Downloads all files. Waits for a ticket if `wants_ticket`, and returns it.
    fn run(mut self, wants_ticket: bool) -> Result<Option<Vec<u8>>> {
        let mut buffer = [0; 65536];
        let mut done_at: Option<Instant> = None;
        loop {
            self.outbox.take_from(&mut self.connection)?;
            let patience = self.connection.timeout().map(|it| it.min(POLL));
            let received = self.outbox.receive(&mut buffer, patience)?;
            if self.connection.timeout() == Some(Duration::ZERO) {
                self.connection.on_timeout();
            }
            if let Some((len, info)) = received {
                // A packet that is not authentic is no reason to end.
                let _ = self.connection.recv(&mut buffer[..len], info);
            }
            if self.connection.is_closed() || self.connection.is_draining() {
                let error = self.connection.peer_error();
                return Err(format!("the connection was closed: {error:?}").into());
            }
            offer_ids(&mut self.connection)?;
            self.request()?;
            self.read()?;
            if !self.wanted.is_empty() || !self.downloads.is_empty() {
                continue;
            }
            let waits = wants_ticket && self.connection.session().is_none();
            if !waits || done_at.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                break;
            }
        }
        let session = self.connection.session().map(<[u8]>::to_vec);
        self.connection.close(true, 0, b"")?;
        self.outbox.take_from(&mut self.connection)?;
        self.outbox.receive(&mut buffer, Some(POLL))?;
        Ok(session)
    }

    /// Makes as many requests as the server allows.
    fn request(&mut self) -> Result {
        let is_early = self.is_early && self.connection.is_in_early_data();
        if !self.connection.is_established() && !is_early {
            return Ok(());
        }
        if self.connection.application_proto() == HTTP3 && self.http.is_none() {
            let config = h3::Config::new()?;
            let http = h3::Connection::with_transport(&mut self.connection, &config)?;
            self.http = Some(http);
        }
        while let Some(path) = self.wanted.front() {
            let mut request = format!("GET {path}\r\n").into_bytes();
            let stream = if let Some(http) = &mut self.http {
                let fields = [
                    (":method", "GET"),
                    (":scheme", "https"),
                    (":authority", &self.authority),
                    (":path", path),
                ];
                let fields =
                    fields.map(|(name, value)| h3::Header::new(name.as_bytes(), value.as_bytes()));
                match http.send_request(&mut self.connection, &fields, true) {
                    Ok(stream) => {
                        request.clear();
                        stream
                    }
                    Err(h3::Error::StreamBlocked) => break,
                    Err(h3::Error::TransportError(quiche::Error::StreamLimit)) => break,
                    Err(error) => return Err(error.into()),
                }
            } else if self.connection.peer_streams_left_bidi() > 0 {
                self.next_stream += 4;
                self.next_stream - 4
            } else {
                break;
            };
            let name = path.trim_start_matches('/').to_owned();
            self.wanted.pop_front();
            let mut download = Download {
                name,
                request,
                content: Vec::new(),
            };
            download.send(stream, &mut self.connection)?;
            self.downloads.insert(stream, download);
        }
        for (stream, download) in &mut self.downloads {
            download.send(*stream, &mut self.connection)?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result {
        let mut buffer = [0; 65536];
        let mut ended = Vec::new();
        if let Some(http) = &mut self.http {
            while let Ok((stream, event)) = http.poll(&mut self.connection) {
                match event {
                    h3::Event::Data => {
                        while let Ok(len) =
                            http.recv_body(&mut self.connection, stream, &mut buffer)
                        {
                            if let Some(download) = self.downloads.get_mut(&stream) {
                                download.content.extend_from_slice(&buffer[..len]);
                            }
                        }
                    }
                    h3::Event::Finished => ended.push(stream),
                    h3::Event::Reset(code) => return Err(format!("reset with {code}").into()),
                    _ => {}
                }
            }
        } else {
            for stream in self.connection.readable() {
                while let Ok((len, is_end)) = self.connection.stream_recv(stream, &mut buffer) {
                    if let Some(download) = self.downloads.get_mut(&stream) {
                        download.content.extend_from_slice(&buffer[..len]);
                    }
                    if is_end {
                        ended.push(stream);
                        break;
                    }
                }
            }
        }
        for stream in ended {
            if let Some(download) = self.downloads.remove(&stream) {
                fs::write(self.folder.join(download.name), download.content)?;
            }
        }
        Ok(())
    }
}

impl Download {
    /// Sends what is left of the request, as far as quiche takes it.
    fn send(&mut self, stream: u64, connection: &mut Connection) -> Result {
        while !self.request.is_empty() {
            match connection.stream_send(stream, &self.request, true) {
                Ok(0) | Err(quiche::Error::Done) => break,
                Ok(taken) => drop(self.request.drain(..taken)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The longest wait for a datagram.
const POLL: Duration = Duration::from_millis(20);

/// The time that a server has to send a ticket after the files.
const PATIENCE: Duration = Duration::from_secs(2);
