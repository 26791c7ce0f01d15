//! Reads traces from the admin endpoints of a running server over HTTP/1.1.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use courser_units::seconds;

use crate::{Error, file, text};

/// A request for the trace of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// URL of the admin endpoints: `http://127.0.0.1:9443`.
    pub(crate) url: &'a str,
    /// The number of the connection; `None` for the newest HTTP/3 connection.
    pub(crate) connection: Option<u64>,
    pub(crate) token_file: Option<&'a Path>,
    /// The file that receives a copy of the records.
    pub(crate) output: Option<&'a Path>,
    /// Ends the trace when no bytes arrive for this long. Also limits the time to connect to each address.
    pub(crate) wait: Duration,
}

/// The trace of a connection, while it arrives.
pub(crate) type Content = Copying<Chunks<BufReader<TcpStream>>>;

/// Requests the trace of a connection. Returns its bytes while they arrive.
pub(crate) fn open(request: &Request<'_>) -> Result<Content, Error> {
    let authority = authority(request.url)?;
    let failed = |error: io::Error| {
        let why = match is_timeout(&error) {
            true => format!("no answer within {}", seconds(request.wait.as_secs_f64())),
            false => error.to_string(),
        };
        Error::new(format!("cannot reach {}: {why}", request.url))
    };
    let address = match authority.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
        _ => format!("{authority}:80"),
    };
    let addresses = address.to_socket_addrs().map_err(failed)?;
    let stream = connect(addresses, request.wait).map_err(failed)?;
    for limited in [
        stream.set_read_timeout(Some(request.wait)),
        stream.set_write_timeout(Some(request.wait)),
    ] {
        limited.map_err(failed)?;
    }
    let query = request.connection.map(|id| format!("?connection={id}"));
    let mut head = format!(
        "GET /qlog{} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n",
        query.unwrap_or_default()
    );
    if let Some(path) = request.token_file {
        head += &format!("authorization: Bearer {}\r\n", token(path)?);
    }
    head += "\r\n";
    (&stream).write_all(head.as_bytes()).map_err(failed)?;
    let mut stream = BufReader::new(stream);
    let is_chunked = response(&mut stream).map_err(failed)??;
    let output = request.output.map(|path| file::create(path, &[]));
    Ok(Copying {
        content: Chunks {
            stream,
            left: 0,
            is_chunked,
            has_begun: false,
            end: None,
        },
        output: output.transpose()?,
    })
}

/// Connects to the first address that answers in time. Returns the error of the last one.
fn connect(
    addresses: impl IntoIterator<Item = SocketAddr>,
    wait: Duration,
) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("the host name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, wait) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Returns host and port of a URL.
fn authority(url: &str) -> Result<&str, Error> {
    let rest = url.strip_prefix("http://");
    let authority = rest.and_then(|rest| rest.split('/').next());
    let is_plain = |text: &&str| {
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '@';
        !text.is_empty() && !text.contains(is_odd)
    };
    authority.filter(is_plain).ok_or_else(|| {
        let shown = text::clean(url);
        Error::new(format!(
            "'{shown}' is not a URL of the form http://127.0.0.1:9443"
        ))
    })
}

/// Reads a token from its file.
fn token(path: &Path) -> Result<String, Error> {
    let name = path.display();
    let token = fs::read_to_string(path);
    let token = token.map_err(|error| Error::new(format!("cannot read {name}: {error}")))?;
    let token = token.trim();
    // Other characters could end the header field.
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token.to_owned()),
        false => Err(Error::new(format!(
            "{name} does not contain a token of visible ASCII characters"
        ))),
    }
}

/// Reads the header of a response. Returns true if its content comes in chunks.
fn response(stream: &mut impl BufRead) -> io::Result<Result<bool, Error>> {
    let mut head = stream.by_ref().take(MAX_HEADER);
    let mut status = String::new();
    head.read_line(&mut status)?;
    let code = status
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse::<u16>().ok());
    let mut is_chunked = false;
    loop {
        let mut field = String::new();
        if head.read_line(&mut field)? == 0 {
            return Err(io::Error::other("the response is not HTTP"));
        }
        let field = field.trim_end().to_ascii_lowercase();
        if field.is_empty() {
            break;
        }
        is_chunked |= field.starts_with("transfer-encoding:") && field.ends_with("chunked");
    }
    if code == Some(200) {
        return Ok(Ok(is_chunked));
    }
    // The first line of the content states the reason and the remedy.
    let mut reason = String::new();
    stream.by_ref().take(MAX_HEADER).read_line(&mut reason)?;
    let reason = if reason.trim().is_empty() {
        status
    } else {
        reason
    };
    Ok(Err(Error::new(format!(
        "the server refused the request: {}",
        text::clean(reason.trim())
    ))))
}

/// The way in which the content of a response ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The server ended it, which it does when the traced connection closes.
    Server,
    /// No bytes arrived for [`Request::wait`].
    Timeout,
    /// The connection to the server closed or failed before the end.
    Broken,
}

impl End {
    /// Describes the end for the user. `wait` is [`Request::wait`].
    pub(crate) fn text(self, wait: Duration) -> String {
        match self {
            Self::Server => "the server ended the trace".to_owned(),
            Self::Timeout => crate::tail::timeout(wait),
            Self::Broken => {
                "the trace is incomplete: the connection to the admin endpoints failed".to_owned()
            }
        }
    }
}

/// The content of a response, without the chunked encoding. A timeout counts as its end.
pub(crate) struct Chunks<R> {
    stream: R,
    /// The bytes of the current chunk that were not read yet.
    left: u64,
    is_chunked: bool,
    has_begun: bool,
    end: Option<End>,
}

impl<R: BufRead> Chunks<R> {
    fn read_part(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.is_chunked {
            return self.stream.read(out);
        }
        if self.left == 0 {
            self.left = self.next_chunk()?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let len = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(out.len());
        let read = self.stream.read(&mut out[..len])?;
        self.left -= read as u64;
        Ok(read)
    }

    /// Reads the length of the next chunk (RFC 9112 §7.1). The last one has none.
    fn next_chunk(&mut self) -> io::Result<u64> {
        let mut line = String::new();
        if std::mem::replace(&mut self.has_begun, true) {
            self.stream.by_ref().take(2).read_line(&mut line)?;
            line.clear();
        }
        self.stream
            .by_ref()
            .take(MAX_CHUNK_LINE)
            .read_line(&mut line)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(digits, 16).map_err(|_| io::Error::other("a chunk without a length"))
    }
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.end.is_some() || out.is_empty() {
            return Ok(0);
        }
        let read = self.read_part(out);
        self.end = match &read {
            Ok(0) if self.left > 0 => Some(End::Broken),
            Ok(0) => Some(End::Server),
            Ok(_) => None,
            Err(error) if is_timeout(error) => Some(End::Timeout),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(_) => Some(End::Broken),
        };
        match self.end {
            Some(End::Timeout) => Ok(0),
            _ => read,
        }
    }
}

/// Returns true if a socket reached its time limit. Systems report it as either of these errors.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Content that is also written to a file while it is read.
pub(crate) struct Copying<R> {
    content: R,
    output: Option<BufWriter<File>>,
}

impl<R> Copying<Chunks<R>> {
    /// Returns the way in which the content ended. `None` before it ends.
    pub(crate) const fn end(&self) -> Option<End> {
        self.content.end
    }
}

impl<R: Read> Read for Copying<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(out)?;
        if let Some(output) = &mut self.output {
            output.write_all(&out[..read])?;
            output.flush()?;
        }
        Ok(read)
    }
}

/// The longest header of a response, and the longest line of an error.
const MAX_HEADER: u64 = 16 * 1024;
/// The longest line with the length of a chunk.
const MAX_CHUNK_LINE: u64 = 64;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Answers one request with `response`. Returns the URL, and a thread that returns the request.
    fn answering(response: &'static [u8]) -> (String, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            while !request.ends_with("\r\n\r\n") {
                reader.read_line(&mut request).expect("a request");
            }
            stream.write_all(response).expect("open");
            request
        });
        (url, server)
    }

    fn request(url: &str) -> Request<'_> {
        Request {
            url,
            connection: Some(7),
            token_file: None,
            output: None,
            wait: Duration::from_secs(20),
        }
    }

    #[test]
    fn chunks_are_joined_and_copied() {
        let (url, server) = answering(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
        );
        let folder = std::env::temp_dir().join(format!("courser-remote-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a directory");
        let (token, copy) = (folder.join("token"), folder.join("copy.sqlog"));
        fs::write(&token, "sesame-sesame\n").expect("written");
        let mut content = open(&Request {
            token_file: Some(&token),
            output: Some(&copy),
            ..request(&url)
        })
        .expect("a response");
        let mut text = String::new();
        content.read_to_string(&mut text).expect("text");
        assert_eq!(text, "abc0123456789");
        assert_eq!(fs::read_to_string(&copy).expect("a copy"), text);
        let received = server.join().expect("no panic");
        assert!(
            received.starts_with("GET /qlog?connection=7 HTTP/1.1\r\nhost: 127.0.0.1:"),
            "{received}"
        );
        assert!(
            received.contains("authorization: Bearer sesame-sesame\r\n"),
            "{received}"
        );
        fs::write(&token, "two\nlines").expect("written");
        let refused = open(&Request {
            token_file: Some(&token),
            ..request("http://127.0.0.1:1")
        });
        assert!(refused.is_err());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn refusals_are_reported_in_one_line() {
        let (url, server) = answering(
            b"HTTP/1.1 409 Conflict\r\ncontent-length: 40\r\n\r\n409 Conflict: another reader\x1b is there\nmore",
        );
        let error = open(&request(&url)).err().expect("refused").to_string();
        assert!(
            error.starts_with("the server refused the request: 409 Conflict: another reader"),
            "{error}"
        );
        assert!(
            !error.contains('\u{1b}') && !error.contains("more"),
            "{error}"
        );
        server.join().expect("no panic");
    }

    #[test]
    fn last_chunk_and_broken_chunks_end_the_content() {
        for (chunks, is_error, end) in [
            (&b"5\r\nab"[..], false, End::Broken),
            (b"2\r\nab\r\n0\r\n\r\n", false, End::Server),
            (b"zz\r\nab", true, End::Broken),
            (b"", true, End::Broken),
            (b"ffffffffffffffff\r\nab", false, End::Broken),
        ] {
            let mut content = Chunks {
                stream: chunks,
                left: 0,
                is_chunked: true,
                has_begun: false,
                end: None,
            };
            let read = content.read_to_end(&mut Vec::new());
            assert_eq!(read.is_err(), is_error, "{chunks:?}");
            assert_eq!(content.end, Some(end), "{chunks:?}");
        }
    }

    #[test]
    fn timeout_is_distinguished_from_the_end_of_the_trace() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let wait = Duration::from_millis(200);
        let request = Request {
            wait,
            ..request(&url)
        };
        // The system accepts the connection, and no answer comes.
        let error = open(&request).err().expect("no answer").to_string();
        assert!(error.ends_with(": no answer within 200 ms"), "{error}");
        let server = thread::spawn(move || {
            // The first connection is that of the request above.
            let (_, (mut stream, _)) = (listener.accept(), listener.accept().expect("a client"));
            let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
            stream.write_all(response).expect("open");
            stream
        });
        let mut content = open(&request).expect("a response");
        assert_eq!(content.end(), None);
        let mut text = String::new();
        content.read_to_string(&mut text).expect("text");
        assert_eq!((text.as_str(), content.end()), ("abc", Some(End::Timeout)));
        let text = End::Timeout.text(wait);
        assert!(text.contains("for 200 ms"), "{text}");
        drop(server.join().expect("no panic"));
    }

    #[test]
    fn each_address_has_a_time_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let open = listener.local_addr().expect("bound");
        let closed = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let closed = closed.expect("bound");
        let wait = Duration::from_millis(200);
        assert!(connect([closed, open], wait).is_ok());
        assert!(connect([], wait).is_err());
        if cfg!(target_os = "linux") {
            // Connections are not accepted: once the queue is full, there is no answer any more.
            let mut queue = Vec::new();
            let error = loop {
                assert!(queue.len() < 1000, "a queue without a limit");
                match connect([open], wait) {
                    Ok(stream) => queue.push(stream),
                    Err(error) => break error,
                }
            };
            assert!(is_timeout(&error), "{error}");
        }
    }

    #[test]
    fn only_plain_urls_are_accepted() {
        assert_eq!(authority("http://a:1/b").ok(), Some("a:1"));
        assert_eq!(authority("http://[::1]:9443").ok(), Some("[::1]:9443"));
        for url in [
            "https://a",
            "a:1",
            "http://",
            "http://a b",
            "http://u@a",
            "http://a\r\nx: y",
        ] {
            assert!(authority(url).is_err(), "{url}");
        }
    }
}
