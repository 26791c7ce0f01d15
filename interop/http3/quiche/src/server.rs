//! The server.

use std::path::Path;

use boring::sha::Sha256;
use peer_quiche::body::Body;
use peer_quiche::http3::{Answer, Http3, Service, Verdict, field, text};
use peer_quiche::server::{Admission, Server};
use peer_quiche::setup;
use quiche::h3::Header;

use crate::{Result, hex, pattern, transport};

/// Serves until standard input ends.
pub(crate) fn serve(certificate: &str, key: &str) -> Result {
    let (certificate, key) = (Path::new(certificate), Path::new(key));
    let config = setup::server(certificate, key, transport(), STREAMS)?;
    let server = Server::bind(
        config,
        "127.0.0.1:0".parse()?,
        Admission::default(),
        Http3::new(Pages)?,
    )?;
    println!("listening on {}", server.local_address());
    server.run()?;
    Ok(())
}

/// The requests and their responses.
struct Pages;

/// The content of a request, as far as it has come.
struct Upload {
    length: u64,
    hash: Sha256,
}

impl Service for Pages {
    type Request = Upload;

    fn on_connection(&mut self, suite: &str) -> Result {
        println!("connection with {suite}");
        Ok(())
    }

    fn on_head(&mut self, head: &[Header]) -> Verdict<Upload> {
        let method = field(head, b":method").unwrap_or_default();
        let path = field(head, b":path").unwrap_or_default();
        if path == "/hash" && matches!(method, "POST" | "PUT") {
            return Verdict::Read(Upload {
                length: 0,
                hash: Sha256::new(),
            });
        }
        if !matches!(method, "GET" | "HEAD") {
            return Verdict::Answer(text(405, ""));
        }
        let size = path.strip_prefix("/bytes/").map(str::parse);
        let answer = match (path, size) {
            ("/", _) => text(200, "hello over HTTP/3\n"),
            (_, Some(Ok(size))) => with_body(pattern(size)),
            (_, Some(Err(_))) => text(400, "not a length\n"),
            (_, None) => text(404, "not here\n"),
        };
        Verdict::Answer(Answer {
            is_head_alone: method == "HEAD",
            ..answer
        })
    }

    fn on_content(&mut self, upload: &mut Upload, content: &[u8]) {
        upload.length += content.len() as u64;
        upload.hash.update(content);
    }

    fn on_end(&mut self, upload: Upload) -> Answer {
        text(200, format!("{} {}", upload.length, hex(upload.hash)))
    }
}

fn with_body(body: Body) -> Answer {
    Answer {
        status: 200,
        body,
        is_head_alone: false,
    }
}

/// Requests that a client may have under way.
const STREAMS: u32 = 100;
