//! The client.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Instant;

use boring::sha::Sha256;
use peer_quiche::body::Body;
use peer_quiche::client::{Client, Request, Work};
use peer_quiche::http3::field;
use peer_quiche::setup;
use quiche::h3::Header;

use crate::{Result, hash_of_pattern, hex, pattern, transport};

/// Asks a server of the kind of examples/interop_http3.rs.
pub(crate) fn ask(root: &str, address: &str, size: u64, count: u64) -> Result {
    let mut connection = Connection::open(root, address)?;
    let hello = connection.one("GET", "/", Body::empty())?;
    check("status of /", &hello.status, "200")?;
    check("what / says", &hello.text, "hello over HTTP/3\n")?;

    let (path, hash) = (format!("/bytes/{size}"), hash_of_pattern(size));
    let begun = Instant::now();
    let down = connection.one("GET", &path, Body::empty())?;
    let took = begun.elapsed();
    check("status of a download", &down.status, "200")?;
    check("bytes received", &down.received, &size)?;
    check("hash", &down.hash, &hash)?;
    println!("{size} bytes down in {took:.2?}, the hashes agree");

    let begun = Instant::now();
    let up = connection.one("POST", "/hash", pattern(size))?;
    let took = begun.elapsed();
    check("what was sent", &up.text, &format!("{size} {hash}"))?;
    println!("{size} bytes up in {took:.2?}, the hashes agree");

    let head = connection.one("HEAD", "/", Body::empty())?;
    check("status of HEAD", &head.status, "200")?;
    check("content of HEAD", &head.received, &0)?;
    let missing = connection.one("GET", "/not/there", Body::empty())?;
    check("status of what is not there", &missing.status, "404")?;

    let sizes = || (0..count).map(|number| number % 1000);
    let begun = Instant::now();
    let request = |size| connection.request("GET", &format!("/bytes/{size}"), Body::empty());
    let requests: Vec<_> = sizes().map(request).collect();
    let answers = connection.all(requests)?;
    let took = begun.elapsed();
    for (answer, size) in answers.iter().zip(sizes()) {
        check("status", &answer.status, "200")?;
        check("hash", &answer.hash, &hash_of_pattern(size))?;
    }
    println!("{} requests at once in {took:.2?}", answers.len());
    connection.client.close()
}

/// Asks any server the same so often at once, and prints the answers.
pub(crate) fn fetch(root: &str, address: &str, method: &str, path: &str, count: u64) -> Result {
    let mut connection = Connection::open(root, address)?;
    let requests = (0..count).map(|_| connection.request(method, path, Body::empty()));
    let requests: Vec<_> = requests.collect();
    let mut seen = BTreeMap::new();
    for answer in connection.all(requests)? {
        let Answer {
            status,
            content_length,
            received,
            hash,
            ..
        } = answer;
        *seen
            .entry(format!("{status} {content_length} {received} {hash}"))
            .or_insert(0) += 1;
    }
    for (answer, count) in seen {
        println!("{count} {answer}");
    }
    connection.client.close()
}

struct Connection {
    client: Client,
    authority: String,
}

impl Connection {
    fn open(root: &str, address: &str) -> Result<Self> {
        let address: SocketAddr = address.parse()?;
        let local = (Ipv4Addr::LOCALHOST, 0).into();
        let mut config = setup::client(Path::new(root), transport())?;
        Ok(Self {
            client: Client::connect(&mut config, "localhost", local, address, 1)?,
            authority: format!("localhost:{}", address.port()),
        })
    }

    fn request(&self, method: &str, path: &str, body: Body) -> Request {
        let length = body.left().to_string();
        let mut head = vec![
            (":method", method),
            (":scheme", "https"),
            (":authority", &self.authority),
            (":path", path),
            ("user-agent", "quiche"),
        ];
        if body.left() > 0 {
            head.push(("content-length", &length));
        }
        let field = |(name, value): (&str, &str)| Header::new(name.as_bytes(), value.as_bytes());
        Request {
            head: head.into_iter().map(field).collect(),
            body,
        }
    }

    fn one(&mut self, method: &str, path: &str, body: Body) -> Result<Answer> {
        let request = self.request(method, path, body);
        let mut answers = self.all([request])?;
        answers.pop().ok_or_else(|| "no answer".into())
    }

    /// Makes requests as many at once as the server lets, and returns the answers in their order.
    fn all(&mut self, requests: impl IntoIterator<Item = Request>) -> Result<Vec<Answer>> {
        let mut asking = Asking {
            left: requests.into_iter().enumerate().collect(),
            answers: BTreeMap::new(),
        };
        let count = asking.left.len();
        self.client.run(&mut asking, count)?;
        Ok(asking.answers.into_values().collect())
    }
}

/// A response.
#[derive(Clone, Debug, Default)]
struct Answer {
    status: String,
    content_length: String,
    received: u64,
    hash: String,
    /// The beginning of it.
    text: String,
}

struct Asking {
    left: VecDeque<(usize, Request)>,
    answers: BTreeMap<usize, Answer>,
}

struct Exchange {
    number: usize,
    answer: Answer,
    hash: Sha256,
}

impl Work for Asking {
    type Exchange = Exchange;

    fn next(&mut self) -> Option<(Request, Exchange)> {
        let (number, request) = self.left.pop_front()?;
        let exchange = Exchange {
            number,
            answer: Answer::default(),
            hash: Sha256::new(),
        };
        Some((request, exchange))
    }

    fn on_head(&mut self, exchange: &mut Exchange, head: &[Header]) {
        let read = |name: &str| field(head, name.as_bytes()).unwrap_or("-").to_owned();
        exchange.answer.status = read(":status");
        exchange.answer.content_length = read("content-length");
    }

    fn on_content(&mut self, exchange: &mut Exchange, content: &[u8]) {
        let answer = &mut exchange.answer;
        answer.received += content.len() as u64;
        exchange.hash.update(content);
        if answer.text.len() < LONGEST_TEXT {
            answer.text.push_str(&String::from_utf8_lossy(content));
        }
    }

    fn on_end(&mut self, exchange: Exchange) -> Result {
        let Exchange {
            number,
            mut answer,
            hash,
        } = exchange;
        answer.hash = hex(hash);
        self.answers.insert(number, answer);
        Ok(())
    }
}

fn check<T, U>(what: &str, seen: &T, expected: &U) -> Result
where
    T: PartialEq<U> + std::fmt::Display + ?Sized,
    U: std::fmt::Display + ?Sized,
{
    if seen == expected {
        return Ok(());
    }
    Err(format!("{what}: {seen}, expected {expected}").into())
}

/// Longer than any text that is compared.
const LONGEST_TEXT: usize = 1000;
