//! The server, which speaks HTTP/0.9 and HTTP/3.

use std::collections::HashMap;
use std::convert::Infallible;
use std::rc::Rc;

use peer_quiche::body::{Body, Quic};
use peer_quiche::http3::{self, Answer, Http3, Service, Verdict, field, text};
use peer_quiche::server::{Admission, Application, Server};
use peers_common::interop::{self, Result};
use quiche::h3;

use crate::{HQ, HTTP3, config, log_keys};

pub(crate) fn serve(settings: interop::Server) -> Result {
    let mut config = config()?;
    config.load_cert_chain_from_pem_file(&settings.certificate.to_string_lossy())?;
    config.load_priv_key_from_pem_file(&settings.key.to_string_lossy())?;
    config.set_application_protos(&[HQ, HTTP3])?;
    let (listen, settings) = (settings.listen, Rc::new(settings));
    let admission = Admission {
        retries: settings.case == "retry",
        offers_ids: true,
    };
    let protocols = Protocols {
        http3: Http3::new(Files(settings.clone()))?,
        settings,
    };
    Server::bind(config, listen, admission, protocols)?.run_forever()
}

/// Answers in the protocol of each connection.
struct Protocols {
    settings: Rc<interop::Server>,
    http3: Http3<Files>,
}

enum Session {
    Http09(Http09),
    Http3(Box<http3::Session<Infallible>>),
}

impl Application for Protocols {
    type Session = Session;

    fn on_accept(&mut self, quic: &mut Quic) -> Result {
        log_keys(quic)
    }

    fn begin(&mut self, quic: &mut Quic) -> Option<Session> {
        if quic.application_proto() == HTTP3 {
            let session = self.http3.begin(quic)?;
            Some(Session::Http3(Box::new(session)))
        } else {
            Some(Session::Http09(Http09::default()))
        }
    }

    fn work(&mut self, session: &mut Session, quic: &mut Quic) {
        match session {
            Session::Http09(session) => session.work(quic, &self.settings),
            Session::Http3(session) => self.http3.work(session, quic),
        }
    }
}

/// The files, over HTTP/3.
struct Files(Rc<interop::Server>);

impl Service for Files {
    /// Requests are answered without their content.
    type Request = Infallible;

    fn on_connection(&mut self, _: &str) -> Result {
        Ok(())
    }

    fn on_head(&mut self, head: &[h3::Header]) -> Verdict<Infallible> {
        let path = field(head, b":path").unwrap_or_default();
        Verdict::Answer(match self.0.file(path.as_bytes()) {
            Some(file) => text(200, file),
            None => text(404, ""),
        })
    }

    fn on_content(&mut self, request: &mut Infallible, _: &[u8]) {
        match *request {}
    }

    fn on_end(&mut self, request: Infallible) -> Answer {
        match request {}
    }
}

/// HTTP/0.9 on a connection.
#[derive(Default)]
struct Http09 {
    requests: HashMap<u64, Vec<u8>>,
    responses: HashMap<u64, Body>,
}

impl Http09 {
    fn work(&mut self, quic: &mut Quic, settings: &interop::Server) {
        for stream in quic.readable() {
            let request = self.requests.entry(stream).or_default();
            let mut buffer = [0; MAX_REQUEST];
            while let Ok((length, is_end)) = quic.stream_recv(stream, &mut buffer) {
                request.extend_from_slice(&buffer[..length]);
                request.truncate(MAX_REQUEST);
                if is_end {
                    if let Some(file) = settings.answer(request) {
                        self.responses.insert(stream, Body::text(file));
                    }
                    self.requests.remove(&stream);
                    break;
                }
            }
        }
        // Streams that the client has stopped need no more.
        self.responses
            .retain(|stream, body| matches!(body.send_plain(quic, *stream), Ok(false)));
    }
}

/// The longest request.
const MAX_REQUEST: usize = 4096;
