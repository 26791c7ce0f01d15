//! HTTP without TLS at a port that requires TLS.

use std::io;

use courser_http3_tokio::hooks;

use super::Socket;
use crate::own_response::MAX_FIRST_LINE;

/// A request without TLS, and the bytes that explain the error.
pub(crate) struct PlainHttp {
    /// Its first bytes.
    pub(crate) request: Vec<u8>,
    pub(crate) response: Vec<u8>,
}

/// Returns true if bytes begin like a client of HTTP/2.
fn is_preface(bytes: &[u8]) -> bool {
    let len = bytes.len().min(PREFACE.len());
    len > 1 && bytes[..len] == PREFACE[..len]
}

impl Socket {
    /// Waits for the first bytes of the client. Returns the bytes to answer if they are HTTP without TLS.
    pub(crate) async fn answer_to_plain_http(&mut self) -> io::Result<Option<PlainHttp>> {
        let mut first = [0; MAX_FIRST_LINE];
        let len = self.stream.peek(&mut first).await?;
        let request = &first[..len];
        let response = match request {
            // The handshake type of a TLS record, 22, is not a letter.
            [] => return Ok(None),
            [first, ..] if !first.is_ascii_uppercase() => return Ok(None),
            text if is_preface(text) => go_away(),
            _ => bad_request(),
        };
        Ok(Some(PlainHttp {
            request: request.to_vec(),
            response,
        }))
    }
}

/// Returns a response of HTTP/1.1 that explains the error to users.
fn bad_request() -> Vec<u8> {
    let date = hooks::date();
    let date = date.map(|it| format!("date: {}\r\n", String::from_utf8_lossy(&it)));
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\n{}content-type: text/plain; charset=utf-8\r\ncontent-length: \
         {}\r\nconnection: close\r\n\r\n{EXPLANATION}",
        date.unwrap_or_default(),
        EXPLANATION.len()
    );
    response.into_bytes()
}

/// Returns the preface of a server of HTTP/2 and a GOAWAY frame with the explanation (RFC 9113 §6.8).
fn go_away() -> Vec<u8> {
    let text = EXPLANATION.trim_end().as_bytes();
    let len = (8 + text.len()) as u8;
    let mut bytes = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, len, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(INADEQUATE_SECURITY.to_be_bytes());
    bytes.extend(text);
    bytes
}

const EXPLANATION: &str = "This port requires TLS: use https:// instead of http://\n";

/// The first bytes of a client of HTTP/2 (RFC 9113 §3.4).
const PREFACE: [u8; 16] = *b"PRI * HTTP/2.0\r\n";

const INADEQUATE_SECURITY: u32 = 12;
