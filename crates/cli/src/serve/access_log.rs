//! A line for each request.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use http::{HeaderValue, Version};
use serde_json::json;

use super::args::LogFormat;
use super::clock;
use super::record::Exchange;
use crate::error::Failure;

/// Writes lines in a thread of its own, so that a slow disk holds up no request. What does not fit
/// into the queue is dropped and counted.
#[derive(Clone, Debug)]
pub(super) struct AccessLog {
    format: LogFormat,
    queue: SyncSender<Order>,
    dropped: Arc<AtomicU64>,
}

/// To be joined at the end, so that all is written.
#[derive(Debug)]
pub(super) struct Writer(JoinHandle<()>);

#[derive(Debug)]
enum Order {
    Line(String),
    /// The file was moved away: another is begun.
    Reopen,
    End,
}

impl AccessLog {
    /// To a file, which is appended to, or to standard output.
    pub(super) fn open(format: LogFormat, path: Option<&Path>) -> Result<(Self, Writer), Failure> {
        let target = Target::open(path).map_err(|error| {
            let name = path.unwrap_or(Path::new("standard output")).display();
            Failure::new(format!("cannot write the access log to {name}: {error}"))
        })?;
        let (queue, orders) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write_all(target, &orders))?;
        let log = Self {
            format,
            queue,
            dropped: Arc::default(),
        };
        Ok((log, Writer(thread)))
    }

    pub(super) fn note(&self, exchange: &Exchange) {
        let line = match self.format {
            LogFormat::Common => common(exchange),
            LogFormat::Combined => {
                let mut line = common(exchange);
                quoted(&mut line, exchange.referer.as_ref());
                quoted(&mut line, exchange.user_agent.as_ref());
                line
            }
            LogFormat::Json => as_json(exchange),
        };
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Order::Line(line)) {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Lines that were not written, because the disk or the reader of standard output was too slow.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Opens the file anew, for those who move it away from time to time.
    pub(super) fn reopen(&self) {
        let _ = self.queue.send(Order::Reopen);
    }

    /// Writes what waits.
    pub(super) fn end(self, writer: Writer) {
        let _ = self.queue.send(Order::End);
        let _ = writer.0.join();
    }
}

enum Target {
    StandardOutput(io::Stdout),
    File(PathBuf, BufWriter<File>),
}

impl Target {
    fn open(path: Option<&Path>) -> io::Result<Self> {
        Ok(match path {
            None => Self::StandardOutput(io::stdout()),
            Some(path) => Self::File(path.to_owned(), append_to(path)?),
        })
    }

    fn write(&mut self, line: &str) {
        // A full disk ends no server; lines are missing then.
        let _ = match self {
            Self::StandardOutput(out) => writeln!(out, "{line}"),
            Self::File(_, out) => writeln!(out, "{line}"),
        };
    }

    fn flush(&mut self) {
        if let Self::File(_, out) = self {
            let _ = out.flush();
        }
    }

    fn reopen(&mut self) {
        self.flush();
        if let Self::File(path, out) = self
            && let Ok(file) = append_to(path)
        {
            *out = file;
        }
    }
}

fn append_to(path: &Path) -> io::Result<BufWriter<File>> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    Ok(BufWriter::new(file))
}

fn write_all(mut target: Target, orders: &Receiver<Order>) {
    loop {
        match orders.recv_timeout(FLUSH_AFTER) {
            Ok(Order::Line(line)) => target.write(&line),
            Ok(Order::Reopen) => target.reopen(),
            Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => target.flush(),
        }
    }
    target.flush();
}

/// `1.2.3.4 - - [21/Nov/2026:23:05:18 +0000] "GET / HTTP/3.0" 200 5`.
fn common(exchange: &Exchange) -> String {
    let mut line = String::with_capacity(160);
    match exchange.client {
        Some(client) => drop(write!(line, "{}", client.ip())),
        None => line.push('-'),
    }
    let time = clock::common_log(exchange.at);
    let _ = write!(line, " - - [{time}] \"{} ", exchange.method);
    escape(&mut line, target(exchange).as_bytes());
    let status = exchange.status.as_u16();
    let _ = write!(
        line,
        " {}\" {status} {}",
        protocol(exchange.version),
        exchange.bytes
    );
    line
}

fn quoted(line: &mut String, value: Option<&HeaderValue>) {
    line.push_str(" \"");
    match value {
        Some(value) => escape(line, value.as_bytes()),
        None => line.push('-'),
    }
    line.push('"');
}

/// What a client sends must not end a line or a field of it.
fn escape(line: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            b' '..=b'~' => line.push(char::from(byte)),
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
    }
}

fn as_json(exchange: &Exchange) -> String {
    let text = |value: Option<&HeaderValue>| {
        value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let peer = exchange.peer.as_ref();
    // As the proxy decides: the target comes before the Host field.
    let host = exchange.uri.authority().map(ToString::to_string);
    let host = host.or_else(|| text(exchange.host.as_ref()));
    json!({
        "time": clock::rfc3339(exchange.at),
        "client": exchange.client.map(|client| client.to_string()),
        "connection": peer.map(courser::server::Peer::connection_id),
        "protocol": protocol(exchange.version),
        "method": exchange.method.as_str(),
        "host": host,
        "uri": target(exchange),
        "status": exchange.status.as_u16(),
        "bytes": exchange.bytes,
        "seconds": exchange.took.as_secs_f64(),
        "complete": exchange.is_complete,
        "referer": text(exchange.referer.as_ref()),
        "user_agent": text(exchange.user_agent.as_ref()),
    })
    .to_string()
}

fn target(exchange: &Exchange) -> &str {
    let path = exchange.uri.path_and_query();
    path.map_or("*", http::uri::PathAndQuery::as_str)
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// Lines: a second of a busy server.
const QUEUE: usize = 65_536;
/// Who follows the file sees lines this late.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_send_ends_no_field() {
        let mut line = String::new();
        escape(&mut line, b"a\" 200 1\\\r\nfake \x1b[31m\xff");
        assert_eq!(line, "a\\\" 200 1\\\\\\x0d\\x0afake \\x1b[31m\\xff");
    }
}
