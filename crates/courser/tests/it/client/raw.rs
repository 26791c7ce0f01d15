//! Servers whose bytes no HTTP library wrote or read.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// An HTTP/1.1 server without TLS that records requests and answers with given bytes.
pub struct Raw {
    pub port: u16,
    received: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Raw {
    /// Starts a server that reads each request up to these bytes, sends an answer and closes the connection.
    /// The last answer is sent again to further connections.
    pub async fn start(end: &'static [u8], answers: &'static [&'static [u8]]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (sender, received) = mpsc::unbounded_channel();
        crate::common::spawn(async move {
            for number in 0.. {
                let Ok((mut stream, _)) = listener.accept().await else {
                    return;
                };
                let answer = answers[number.min(answers.len() - 1)];
                let request = read_until(&mut stream, end).await;
                let _ = sender.send(request);
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
                // A reset would discard the answer at the client.
                let mut rest = Vec::new();
                crate::common::spawn(async move {
                    let _ = stream.read_to_end(&mut rest).await;
                });
            }
        });
        Self { port, received }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the next request as text.
    pub async fn request(&mut self) -> String {
        let request = super::within(self.received.recv()).await;
        String::from_utf8(request.expect("a request")).expect("text")
    }
}

async fn read_until(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    while !request.windows(end.len()).any(|part| part == end) {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => break,
            Ok(read) => request.extend(&part[..read]),
        }
    }
    request
}

/// An HTTP/2 server over TLS whose frames are written by hand. It answers HEADERS on each stream.
pub struct RawHttp2 {
    pub port: u16,
    /// The certificate of the server.
    pub certificate: courser::rustls::pki_types::CertificateDer<'static>,
    connections: mpsc::UnboundedReceiver<()>,
}

/// Returns the frames that answer the HEADERS frame of a stream. The arguments are the number of the connection
/// and that of the stream.
type Answers = fn(usize, u32) -> Vec<u8>;

impl RawHttp2 {
    pub async fn start(answers: Answers) -> Self {
        use courser::rustls::{self, pki_types::PrivatePkcs8KeyDer};
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let mut config = rustls::ServerConfig::builder_with_provider(std::sync::Arc::new(provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .expect("matching key");
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (sender, connections) = mpsc::unbounded_channel();
        crate::common::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                crate::common::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = sender.send(());
                        let _ = serve_http2(stream, number, answers).await;
                    }
                });
            }
        });
        Self {
            port,
            certificate: made.cert.der().clone(),
            connections,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the number of connections so far.
    pub fn connections(&mut self) -> usize {
        std::iter::from_fn(|| self.connections.try_recv().ok()).count()
    }
}

async fn serve_http2(
    mut stream: tokio_rustls::server::TlsStream<TcpStream>,
    number: usize,
    answers: Answers,
) -> std::io::Result<()> {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        let id = u32::from_be_bytes(head[5..9].try_into().expect("four bytes"));
        match (head[3], head[4] & ACK) {
            (SETTINGS, 0) => stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await?,
            (HEADERS, _) => stream.write_all(&answers(number, id)).await?,
            _ => {}
        }
    }
}

/// Returns a frame of HTTP/2 (RFC 9113 §4.1).
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Returns a field of HPACK without compression (RFC 7541 §6.2.2).
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        let length = text.len();
        if length < 127 {
            field.push(u8::try_from(length).expect("small"));
        } else {
            field.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                field.push(u8::try_from(rest % 128).expect("small") | 128);
                rest /= 128;
            }
            field.push(u8::try_from(rest).expect("small"));
        }
        field.extend(text.as_bytes());
    }
    field
}

/// Returns the frames of a header section: HEADERS, and CONTINUATION if it is long.
pub fn header_section(stream: u32, ends: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let block: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| field(name, value))
        .collect();
    let mut parts = block.chunks(16_384).peekable();
    let (mut kind, mut frames) = (HEADERS, Vec::new());
    let ends = if ends { END_STREAM } else { 0 };
    while let Some(part) = parts.next() {
        let last = if parts.peek().is_none() {
            END_HEADERS
        } else {
            0
        };
        let flags = if kind == HEADERS { ends | last } else { last };
        frames.extend(frame(kind, flags, stream, part));
        kind = CONTINUATION;
    }
    frames
}

pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
pub const REFUSED_STREAM: u32 = 7;
