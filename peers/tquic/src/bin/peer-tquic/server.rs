//! The server.

use std::rc::Rc;

use peer_tquic::end::End;
use peer_tquic::exchange::{self, Outgoing, SCRATCH};
use peer_tquic::setup;
use peer_tquic::socket::Socket;
use peers_common::command_line::ServerOptions;
use peers_common::settings::HEADER_LEN;
use peers_common::streams::StreamMap;
use peers_common::tally::Tally;
use peers_common::{Failure, Ready, ServerResult, print, standard_input};
use tquic::{Connection, TransportHandler};

pub(crate) async fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    if options.datagrams {
        return Err("tquic has no unreliable datagrams".into());
    }
    let config = setup::server(&options.identity, options.transport, options.streams)?;
    let socket = Rc::new(Socket::bind(options.listen)?);
    let tally = Rc::new(Tally::default());
    let handler = Handler {
        tally: tally.clone(),
        socket: socket.clone(),
        connections: StreamMap::default(),
        scratch: vec![0; SCRATCH].into(),
    };
    let mut end = End::server(config, Box::new(handler), socket.clone());
    print(&Ready {
        listening: socket.local_address(),
    })?;
    let stop = standard_input::closed();
    tokio::pin!(stop);
    loop {
        end.process();
        tokio::select! {
            biased;
            woken = end.wait() => woken?,
            () = &mut stop => break,
        }
    }
    // This reports the counts of connections that are still open or draining.
    end.endpoint.close(true);
    Ok(ServerResult::new(&tally))
}

struct Handler {
    tally: Rc<Tally>,
    socket: Rc<Socket>,
    /// Streams by connection, until their answers are written.
    connections: StreamMap<StreamMap<Answer>>,
    scratch: Box<[u8]>,
}

/// A stream of a client.
struct Answer {
    wanted: [u8; HEADER_LEN],
    received: u64,
    outgoing: Option<Outgoing>,
}

impl Answer {
    const fn new() -> Self {
        Self {
            wanted: [0; HEADER_LEN],
            received: 0,
            outgoing: None,
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let at = usize::try_from(self.received)
            .unwrap_or(HEADER_LEN)
            .min(HEADER_LEN);
        let missing = (HEADER_LEN - at).min(bytes.len());
        self.wanted[at..at + missing].copy_from_slice(&bytes[..missing]);
        self.received += bytes.len() as u64;
    }
}

impl Handler {
    fn streams(&mut self, connection: &Connection) -> &mut StreamMap<Answer> {
        let index = connection.index().unwrap_or_default();
        self.connections.entry(index).or_default()
    }

    /// Reads a stream. At its end, prepares the answer and returns true.
    fn read(&mut self, connection: &mut Connection, stream: u64) -> tquic::Result<bool> {
        let index = connection.index().unwrap_or_default();
        let streams = self.connections.get_mut(&index);
        let Some(answer) = streams.and_then(|streams| streams.get_mut(&stream)) else {
            return Ok(false);
        };
        let receive = |bytes: &[u8]| answer.receive(bytes);
        if !exchange::read(connection, stream, &mut self.scratch, receive)? {
            return Ok(false);
        }
        if answer.received < HEADER_LEN as u64 {
            eprintln!("stream: {} bytes have no length in front", answer.received);
            return Ok(false);
        }
        answer.outgoing = Some(Outgoing::zeros(u64::from_be_bytes(answer.wanted)));
        Ok(true)
    }

    fn write(&mut self, connection: &mut Connection, stream: u64) -> tquic::Result<()> {
        let streams = self.streams(connection);
        let Some(outgoing) = streams
            .get_mut(&stream)
            .and_then(|answer| answer.outgoing.as_mut())
        else {
            return connection.stream_want_write(stream, false);
        };
        if outgoing.write(connection, stream)?
            && let Some(answer) = streams.remove(&stream)
        {
            let wanted = u64::from_be_bytes(answer.wanted);
            self.tally
                .answered(answer.received - HEADER_LEN as u64, wanted);
        }
        Ok(())
    }

    /// Removes a stream that failed.
    fn end(&mut self, connection: &Connection, stream: u64, result: tquic::Result<()>) {
        if let Err(error) = result {
            eprintln!("stream: {error}");
            self.streams(connection).remove(&stream);
        }
    }
}

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, _: &mut Connection) {}

    fn on_conn_established(&mut self, _: &mut Connection) {
        self.tally.connected();
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let index = connection.index().unwrap_or_default();
        self.connections.remove(&index);
        if let Some(counts) = setup::counts(connection, self.socket.largest_packet()) {
            self.tally.ended(counts);
        }
    }

    fn on_stream_created(&mut self, connection: &mut Connection, stream: u64) {
        self.streams(connection).insert(stream, Answer::new());
        // The answer is written after the end of the request.
        let _ = connection.stream_want_write(stream, false);
    }

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let result = match self.read(connection, stream) {
            Ok(true) => self.write(connection, stream),
            other => other.map(|_| ()),
        };
        self.end(connection, stream, result);
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        let result = self.write(connection, stream);
        self.end(connection, stream, result);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
