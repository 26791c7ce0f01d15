//! Clients and targets of a proxy, byte by byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A target on this machine. It answers HTTP requests, and tells others how many bytes it has received when they end.
pub(super) struct Target {
    pub(super) port: u16,
    accepted: Arc<AtomicUsize>,
    requests: Mutex<Receiver<String>>,
}

impl Target {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let (count, (sender, requests)) = (accepted.clone(), channel());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let sender = sender.clone();
                std::thread::spawn(move || {
                    if let Some(request) = answer(stream) {
                        let _ = sender.send(request);
                    }
                });
            }
        });
        Self {
            port,
            accepted,
            requests: Mutex::new(requests),
        }
    }

    /// Returns the number of connections so far.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Returns the next HTTP request.
    pub(super) fn request(&self) -> String {
        let requests = self.requests.lock().expect("no panic");
        let request = requests.recv_timeout(Duration::from_secs(20));
        request.expect("a request")
    }

    /// Returns true if at most one request arrives, whose framing has one reading.
    pub(super) fn is_quiet_or_single(&self) -> bool {
        let requests = self.requests.lock().expect("no panic");
        match requests.recv_timeout(Duration::from_millis(500)) {
            Err(_) => true,
            Ok(request) => {
                let both = request.contains("content-length") && request.contains("chunked");
                !both && requests.recv_timeout(Duration::from_millis(200)).is_err()
            }
        }
    }
}

/// Answers a connection, and returns its request if it is one of HTTP.
fn answer(mut stream: TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let before = head.len();
        let read = reader.read_line(&mut head).ok()?;
        let line = head[before..].to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        match read {
            0 => {
                let _ = write!(stream, "received {} bytes", head.len());
                return None;
            }
            _ if line == "\r\n" => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let _ =
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
    Some(head + &String::from_utf8_lossy(&body))
}

/// Sends bytes to a proxy, and returns its answer until it closes, or until its content is complete.
pub(super) fn request(port: u16, text: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("open");
    stream.write_all(text.as_bytes()).expect("open");
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).expect("a socket");
    let mut reader = BufReader::new(stream);
    let mut answer = String::new();
    let mut length = None;
    loop {
        let before = answer.len();
        if reader.read_line(&mut answer).unwrap_or(0) == 0 {
            return answer;
        }
        let line = answer[before..].to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = Vec::new();
    let _ = match length {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body).map(|()| length)
        }
        None => reader.read_to_end(&mut body),
    };
    answer + &String::from_utf8_lossy(&body)
}

/// Opens a tunnel through a proxy without TLS.
pub(super) fn connect(port: u16, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("open");
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).expect("a socket");
    write!(
        stream,
        "CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n"
    )
    .expect("open");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a response");
        head.extend(byte);
    }
    let head = String::from_utf8(head).expect("UTF-8");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    stream
}
