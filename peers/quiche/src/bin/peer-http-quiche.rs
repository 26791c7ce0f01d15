//! HTTP/3 of quiche as a peer: `peer-http-quiche server|client`.

use std::time::Instant;

use bytes::Bytes;
use clap::Parser;
use peer_quiche::body::Body;
use peer_quiche::client::{Client, Request, Work};
use peer_quiche::http3::{Answer, Http3, Service, Verdict, field, text};
use peer_quiche::server::{Admission, Server};
use peer_quiche::setup;
use peers_common::command_line::{ClientOptions, CommandLine, Role, Scenario, ServerOptions};
use peers_common::latency::Latency;
use peers_common::tally::Tally;
use peers_common::{ClientResult, Failure, Ready, ServerResult, print, process, settings};
use quiche::h3::Header;

fn main() -> Result<(), Failure> {
    match CommandLine::parse().role {
        Role::Server(options) => Ok(print(&serve(&options)?)?),
        Role::Client(options) => Ok(print(&work(&options)?)?),
    }
}

fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let config = setup::server(
        &options.identity.join(CERTIFICATE),
        &options.identity.join(KEY),
        options.transport,
        options.streams,
    )?;
    let server = Server::bind(
        config,
        options.listen,
        Admission::default(),
        Http3::new(Filling(Tally::default()))?,
    )?;
    print(&Ready {
        listening: server.local_address(),
    })?;
    let Filling(tally) = server.run()?.into_service();
    Ok(ServerResult {
        version: peer_quiche::version(),
        ..ServerResult::new(&tally)
    })
}

/// `GET /N` is answered with N bytes that mean nothing.
struct Filling(Tally);

impl Service for Filling {
    /// Requests are answered without their content.
    type Request = std::convert::Infallible;

    fn on_connection(&mut self, suite: &str) -> Result<(), Failure> {
        check_suite(suite)?;
        self.0.connected();
        Ok(())
    }

    fn on_head(&mut self, head: &[Header]) -> Verdict<Self::Request> {
        let path = field(head, b":path");
        let size = path.and_then(|path| path.strip_prefix('/')?.parse().ok());
        self.0.answered(0, size.unwrap_or(0));
        Verdict::Answer(match size {
            Some(size) => Answer {
                status: 200,
                body: Body::new(Bytes::from_static(&ZEROS), size),
                is_head_alone: false,
            },
            None => text(404, ""),
        })
    }

    fn on_content(&mut self, request: &mut Self::Request, _: &[u8]) {
        match *request {}
    }

    fn on_end(&mut self, request: Self::Request) -> Answer {
        match request {}
    }
}

fn work(options: &ClientOptions) -> Result<ClientResult, Failure> {
    if options.scenario != Scenario::Http {
        return Err(format!("this program does HTTP alone, not {:?}", options.scenario).into());
    }
    let roots = options.identity.join(CERTIFICATE);
    let mut config = setup::client(&roots, options.transport)?;
    let connections = usize::try_from(options.connections)?;
    let (name, local) = (settings::SERVER_NAME, options.local());
    let mut client = Client::connect(&mut config, name, local, options.server, connections)?;
    check_suite(client.cipher_suite())?;
    let mut asking = Asking::new(options);
    let start = Instant::now();
    client.run(&mut asking, usize::try_from(options.in_flight)?)?;
    let seconds = start.elapsed().as_secs_f64();
    client.close()?;
    Ok(ClientResult {
        version: peer_quiche::version(),
        scenario: options.scenario,
        bytes: options.bytes * options.count,
        count: options.count,
        seconds,
        latency: Latency::of(asking.samples),
        peak_rss_kib: process::peak_rss_kib(),
        path: None,
        socket_drops: process::socket_drops(),
    })
}

/// So many times the same request.
struct Asking {
    request: Request,
    size: u64,
    left: u64,
    samples: Vec<std::time::Duration>,
}

/// A request under way.
struct Exchange {
    begin: Instant,
    received: u64,
}

impl Asking {
    fn new(options: &ClientOptions) -> Self {
        let path = format!("/{}", options.bytes);
        let head = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", settings::SERVER_NAME),
            (":path", &path),
        ];
        let field = |(name, value): (&str, &str)| Header::new(name.as_bytes(), value.as_bytes());
        Self {
            request: Request {
                head: head.map(field).into(),
                body: Body::empty(),
            },
            size: options.bytes,
            left: options.count,
            samples: Vec::new(),
        }
    }
}

impl Work for Asking {
    type Exchange = Exchange;

    fn next(&mut self) -> Option<(Request, Exchange)> {
        self.left = self.left.checked_sub(1)?;
        let exchange = Exchange {
            begin: Instant::now(),
            received: 0,
        };
        Some((self.request.clone(), exchange))
    }

    fn on_head(&mut self, _: &mut Exchange, _: &[Header]) {}

    fn on_content(&mut self, exchange: &mut Exchange, content: &[u8]) {
        exchange.received += content.len() as u64;
    }

    fn on_end(&mut self, exchange: Exchange) -> Result<(), Failure> {
        let Exchange { begin, received } = exchange;
        self.samples.push(begin.elapsed());
        if received == self.size {
            return Ok(());
        }
        Err(format!("received {received} bytes, wanted {}", self.size).into())
    }
}

/// All stacks are compared under one suite; without AES in hardware quiche takes another one.
fn check_suite(suite: &str) -> Result<(), Failure> {
    if suite == SUITE {
        return Ok(());
    }
    Err(format!("the suite is {suite}, and {SUITE} is what is measured").into())
}

const SUITE: &str = "TLS_AES_128_GCM_SHA256";

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

static ZEROS: [u8; settings::CHUNK_SIZE] = [0; settings::CHUNK_SIZE];
