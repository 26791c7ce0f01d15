//! The client: one connection at a time, each with a socket of its own.

use std::collections::{HashMap, VecDeque};
use std::slice;
use std::time::{Duration, Instant};

use peer_quiche::body::{Body, Quic};
use peer_quiche::client::{Client, Request, Work};
use peer_quiche::dialed::{self, Dialed};
use peers_common::interop::{self, Result, SERVER_NAME, Start};
use quiche::h3;

use crate::{HQ, HTTP3, config, log_keys};

pub(crate) fn fetch(settings: interop::Client) -> Result {
    let is_http3 = settings.case == "http3";
    let mut config = config()?;
    config.verify_peer(false);
    config.set_application_protos(&[if is_http3 { HTTP3 } else { HQ }])?;
    let mut session: Option<Vec<u8>> = None;
    for connection in settings.connections() {
        let (local, server) = (settings.local(), settings.server);
        let mut dialed = Dialed::begin(&mut config, SERVER_NAME, local, server)?;
        log_keys(&mut dialed.quic)?;
        if connection.start != Start::Full {
            let session = session.as_deref().ok_or("the server sent no ticket")?;
            dialed.quic.set_session(session)?;
        }
        if is_http3 {
            download_http3(dialed, &settings, connection.files)?;
        } else {
            let downloads = Downloads::new(&settings, connection);
            session = downloads.run(dialed)?;
        }
    }
    Ok(())
}

/// The downloads of a connection over HTTP/0.9.
struct Downloads<'a> {
    settings: &'a interop::Client,
    start: Start,
    /// Files that were not requested yet.
    wanted: VecDeque<&'a str>,
    next_stream: u64,
    under_way: HashMap<u64, Download<'a>>,
}

/// A file on its way.
struct Download<'a> {
    file: &'a str,
    request: Body,
    content: Vec<u8>,
}

impl<'a> Downloads<'a> {
    fn new(settings: &'a interop::Client, connection: interop::Connection<'a>) -> Self {
        Self {
            settings,
            start: connection.start,
            wanted: connection.files.iter().map(String::as_str).collect(),
            next_stream: 0,
            under_way: HashMap::new(),
        }
    }

    /// Downloads all files, waits for a ticket if the case needs one, and returns it.
    fn run(mut self, mut dialed: Dialed) -> Result<Option<Vec<u8>>> {
        let needs_ticket = self.settings.resumes() && self.start == Start::Full;
        let mut done_at: Option<Instant> = None;
        // Requests in 0-RTT packets leave with the ClientHello.
        dialed.send()?;
        loop {
            self.request(&mut dialed.quic)?;
            dialed.mark();
            dialed::turn(slice::from_mut(&mut dialed), Some(POLL))?;
            dialed.check()?;
            dialed.offer_ids()?;
            self.read(&mut dialed.quic)?;
            if !self.wanted.is_empty() || !self.under_way.is_empty() {
                continue;
            }
            let waits = needs_ticket && dialed.quic.session().is_none();
            if !waits || done_at.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                break;
            }
        }
        let session = dialed.quic.session().map(<[u8]>::to_vec);
        dialed.close(0)?;
        Ok(session)
    }

    /// Makes as many requests as the server allows.
    fn request(&mut self, quic: &mut Quic) -> Result {
        let is_early = self.start == Start::Early && quic.is_in_early_data();
        if !quic.is_established() && !is_early {
            return Ok(());
        }
        while quic.peer_streams_left_bidi() > 0
            && let Some(file) = self.wanted.pop_front()
        {
            let mut download = Download {
                file,
                request: Body::text(interop::request(file)),
                content: Vec::new(),
            };
            download.request.send_plain(quic, self.next_stream)?;
            self.under_way.insert(self.next_stream, download);
            self.next_stream += 4;
        }
        for (stream, download) in &mut self.under_way {
            if download.request.left() > 0 {
                download.request.send_plain(quic, *stream)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, quic: &mut Quic) -> Result {
        let mut buffer = [0; 65536];
        for stream in quic.readable() {
            while let Ok((length, is_end)) = quic.stream_recv(stream, &mut buffer) {
                let Some(download) = self.under_way.get_mut(&stream) else {
                    break;
                };
                download.content.extend_from_slice(&buffer[..length]);
                if is_end {
                    self.settings.save(download.file, &download.content)?;
                    self.under_way.remove(&stream);
                    break;
                }
            }
        }
        Ok(())
    }
}

fn download_http3(dialed: Dialed, settings: &interop::Client, files: &[String]) -> Result {
    let mut client = Client::over(vec![dialed])?;
    let mut downloads = Downloads3 {
        settings,
        authority: settings.server.to_string(),
        wanted: files.iter(),
    };
    client.run(&mut downloads, files.len())?;
    client.close()
}

/// The downloads of a connection over HTTP/3.
struct Downloads3<'a> {
    settings: &'a interop::Client,
    authority: String,
    wanted: slice::Iter<'a, String>,
}

struct Download3<'a> {
    file: &'a str,
    content: Vec<u8>,
}

impl<'a> Work for Downloads3<'a> {
    type Exchange = Download3<'a>;

    fn next(&mut self) -> Option<(Request, Download3<'a>)> {
        let file = self.wanted.next()?;
        let path = format!("/{file}");
        let head = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", &self.authority),
            (":path", &path),
        ];
        let field =
            |(name, value): (&str, &str)| h3::Header::new(name.as_bytes(), value.as_bytes());
        let request = Request {
            head: head.map(field).into(),
            body: Body::empty(),
        };
        let content = Vec::new();
        Some((request, Download3 { file, content }))
    }

    fn on_head(&mut self, _: &mut Download3<'a>, _: &[h3::Header]) {}

    fn on_content(&mut self, download: &mut Download3<'a>, content: &[u8]) {
        download.content.extend_from_slice(content);
    }

    fn on_end(&mut self, download: Download3<'a>) -> Result {
        Ok(self.settings.save(download.file, &download.content)?)
    }
}

/// The longest wait for a datagram.
const POLL: Duration = Duration::from_millis(20);

/// The time that a server has to send a ticket after the files.
const PATIENCE: Duration = Duration::from_secs(2);
