//! Transfers between two ends over a bad network.

use super::*;

/// A small random number generator, so that failures repeat.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll().is_multiple_of(sides)
    }
}

/// One direction of the network: packets in any order, some lost, some only declared lost.
#[derive(Default)]
struct Link {
    flying: Vec<Flying>,
}

impl Link {
    /// Moves one packet from `from` to `to`, or drops it.
    fn step(&mut self, from: &mut End, to: &mut End, loss: u64, dice: &mut Dice) {
        if let Some(packet) = from.send() {
            self.flying.push(packet);
        }
        if self.flying.is_empty() || (self.flying.len() < 30 && dice.one_in(3)) {
            return;
        }
        let place = dice.roll() as usize % self.flying.len().min(20);
        let packet = self.flying.remove(place);
        let is_lost = dice.one_in(loss);
        let is_received = !is_lost && to.receive(&packet).expect("we break no rule");
        let is_ack_late = dice.one_in(20);
        if !is_received || is_ack_late {
            from.on_lost(&packet);
        }
        if is_received {
            from.on_acked(&packet);
        }
    }
}

fn data(id: StreamId, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (i * 7 + (i >> 8) * 13 + id.value() * 31) as u8)
        .collect()
}

/// A sender of `len` bytes.
struct Sender {
    id: StreamId,
    data: Vec<u8>,
    written: usize,
    is_finished: bool,
}

impl Sender {
    fn new(id: StreamId, len: usize) -> Self {
        Self {
            id,
            data: data(id, len),
            written: 0,
            is_finished: false,
        }
    }

    fn step(&mut self, end: &mut End, dice: &mut Dice) {
        while self.written < self.data.len() {
            let max = 1 + dice.roll() as usize % 5000;
            let part = &self.data[self.written..][..max.min(self.data.len() - self.written)];
            let result = if dice.one_in(2) {
                end.streams.write(self.id, part)
            } else {
                end.streams
                    .write_chunk(self.id, &mut bytes::Bytes::copy_from_slice(part))
            };
            match result {
                Ok(len) => self.written += len,
                Err(error) => {
                    assert_eq!(error, WriteError::Blocked);
                    return;
                }
            }
        }
        if !self.is_finished {
            end.streams.finish(self.id).unwrap();
            self.is_finished = true;
        }
    }
}

/// Reads a stream to its end. Returns true once the end is reached.
fn drain(end: &mut End, id: StreamId, into: &mut Vec<u8>, dice: &mut Dice) -> bool {
    loop {
        let max = 1 + dice.roll() as usize % 20_000;
        let result = if dice.one_in(2) {
            end.read(id, max)
        } else {
            end.streams
                .read_chunk(id, max)
                .map(|bytes| bytes.map(|bytes| bytes.to_vec()))
        };
        match result {
            Ok(Some(bytes)) => into.extend(bytes),
            Ok(None) => return true,
            Err(error) => {
                assert_eq!(error, ReadError::Blocked);
                return false;
            }
        }
    }
}

fn transfer(seed: u64, config: &StreamsConfig, lens: &[usize], loss: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut client, mut server) = (
        End::new(Side::Client, config),
        End::new(Side::Server, config),
    );
    let (mut up, mut down) = (Link::default(), Link::default());
    let mut senders: Vec<Sender> = Vec::new();
    let mut waiting: Vec<usize> = lens.to_vec();
    let mut received: Vec<(StreamId, Vec<u8>, bool)> = Vec::new();
    for round in 0..200_000 {
        client.now += Duration::from_micros(100);
        server.now = client.now;
        while let Some(&len) = waiting.last() {
            let Some(id) = client.streams.open(UNI) else {
                break;
            };
            senders.push(Sender::new(id, len));
            waiting.pop();
        }
        for sender in &mut senders {
            sender.step(&mut client, &mut dice);
        }
        up.step(&mut client, &mut server, loss, &mut dice);
        down.step(&mut server, &mut client, loss, &mut dice);
        while let Some(id) = server.streams.accept(UNI) {
            received.push((id, Vec::new(), false));
        }
        for (id, bytes, is_done) in received.iter_mut().filter(|(.., is_done)| !is_done) {
            if dice.one_in(4) {
                *is_done = drain(&mut server, *id, bytes, &mut dice);
            }
        }
        client.events();
        server.events();
        let is_read = received.len() == lens.len() && received.iter().all(|(.., is_done)| *is_done);
        if is_read && !client.streams.unacked_or_unsent() {
            break;
        }
        assert!(round < 199_999, "seed {seed} does not end");
    }
    for (id, bytes, _) in &received {
        let sender = senders.iter().find(|sender| sender.id == *id).unwrap();
        assert_eq!(
            bytes.len(),
            sender.data.len(),
            "seed {seed}: length of stream {id}"
        );
        let differs = bytes
            .iter()
            .zip(&sender.data)
            .position(|(got, sent)| got != sent);
        assert_eq!(differs, None, "seed {seed}: byte of stream {id}");
    }
    let sum: usize = lens.iter().sum();
    assert_eq!(server.streams.flow.receive.received(), sum as u64);
    assert_eq!(server.streams.flow.receive.unconsumed(), 0);
    assert_eq!(client.streams.flow.send.used(), sum as u64);
    assert_eq!(client.streams.counters().data_sent, sum as u64);
    assert_eq!(
        (client.streams.table.len(), server.streams.table.len()),
        (0, 0)
    );
    assert_eq!(
        (
            client.streams.buffers.sending.retained(),
            server.streams.buffers.received().gaps
        ),
        (0, 0)
    );
}

#[test]
fn many_streams_arrive_whole_over_a_bad_network() {
    let config = StreamsConfig {
        max_uni: 3,
        stream_receive_window: 3000,
        stream_receive_window_max: 20_000,
        receive_window: 5000,
        receive_window_max: 50_000,
        unsent_limit: 4000,
        send_buffer_max: 9000,
        ..config()
    };
    for seed in 1..=30 {
        let lens: Vec<usize> = (0..12)
            .map(|i| (seed as usize * 977 * i * i) % 20_000)
            .collect();
        transfer(seed, &config, &lens, 3 + seed % 20);
    }
}

#[test]
fn bulk_arrives_whole_over_a_bad_network() {
    for seed in 1..=3 {
        transfer(seed, &StreamsConfig::default(), &[3_000_000], 30);
    }
}

#[test]
fn windows_grow_while_they_hold_the_sender_back() {
    let config = StreamsConfig::default();
    let (mut client, mut server) = (
        End::new(Side::Client, &config),
        End::new(Side::Server, &config),
    );
    let id = client.streams.open(UNI).unwrap();
    let block = vec![1; 64 << 10];
    // One iteration is one round trip of RTT.
    for _ in 0..20 {
        loop {
            while client.streams.write(id, &block).is_ok() {}
            let Some(packet) = client.send() else { break };
            server.receive(&packet).unwrap();
            client.on_acked(&packet);
        }
        while let Ok(Some(_)) = server.read(id, 1 << 20) {}
        for packet in server.send_and_ack_all() {
            client.receive(&packet).unwrap();
        }
        client.now += RTT;
        server.now = client.now;
    }
    let streams = &mut server.streams;
    let key = streams.table.find(id).expect("it is open");
    let state = streams.table.at(key);
    let credit = state
        .receive
        .credit_to_send(server.now, RTT, &mut streams.flow);
    let window = credit.expect("it is read") - client.streams.flow.send.used();
    assert_eq!(window, config.stream_receive_window_max);
}

/// Attack A375, fault F176: as many fast streams as a new connection bears at their first windows. Their windows grow, and then
/// nobody reads them.
#[test]
fn streams_that_nobody_reads_any_more_leave_credit_to_others() {
    let config = StreamsConfig::default();
    let (mut client, mut server) = (
        End::new(Side::Client, &config),
        End::new(Side::Server, &config),
    );
    let ids: Vec<StreamId> = (0..3).map(|_| client.streams.open(UNI).unwrap()).collect();
    let block = vec![1; 64 << 10];
    let exchange = |client: &mut End, server: &mut End, are_read: bool| {
        loop {
            for &id in &ids {
                while client.streams.write(id, &block).is_ok() {}
            }
            let Some(packet) = client.send() else { break };
            server.receive(&packet).unwrap();
            client.on_acked(&packet);
        }
        for &id in &ids {
            while are_read && let Ok(Some(_)) = server.read(id, 1 << 20) {}
        }
        for packet in server.send_and_ack_all() {
            client.receive(&packet).unwrap();
        }
        client.now += RTT;
        server.now = client.now;
    };
    for _ in 0..8 {
        exchange(&mut client, &mut server, true);
    }
    for _ in 0..8 {
        exchange(&mut client, &mut server, false);
    }
    let unread = server.streams.flow.receive.unconsumed();
    assert!(
        unread > 2 * config.receive_window,
        "{unread}: they have grown"
    );
    let other = client.streams.open(UNI).unwrap();
    client.streams.write(other, &block).unwrap();
    while let Some(packet) = client.send() {
        server.receive(&packet).unwrap();
    }
    let read = server.read(other, 1 << 20).unwrap().map(|it| it.len());
    assert_eq!(read, Some(block.len()));
    // What the windows had grown by is counted no more when the streams are over.
    for &id in &ids {
        client.streams.reset(id, 0).unwrap();
    }
    for packet in client.send_and_ack_all() {
        server.receive(&packet).unwrap();
    }
    for &id in &ids {
        assert!(server.read(id, 1).is_err());
    }
    assert_eq!(server.streams.flow.grown(), 0);
}

#[test]
fn bidirectional_requests_and_answers() {
    let config = StreamsConfig {
        max_bidi: 4,
        ..StreamsConfig::default()
    };
    let (mut client, mut server) = (
        End::new(Side::Client, &config),
        End::new(Side::Server, &config),
    );
    for request in 0..200u64 {
        let id = client
            .streams
            .open(BIDI)
            .expect("the server returns credit in time");
        client.streams.write(id, &request.to_be_bytes()).unwrap();
        client.streams.finish(id).unwrap();
        for packet in client.send_and_ack_all() {
            server.receive(&packet).unwrap();
        }
        let accepted = server.streams.accept(BIDI).unwrap();
        assert_eq!(accepted, id);
        assert_eq!(
            server.read(id, 99),
            Ok(Some(request.to_be_bytes().to_vec()))
        );
        assert_eq!(server.read(id, 99), Ok(None));
        server.streams.write(id, b"yes").unwrap();
        server.streams.finish(id).unwrap();
        for packet in server.send_and_ack_all() {
            client.receive(&packet).unwrap();
        }
        assert_eq!(client.read(id, 99), Ok(Some(b"yes".to_vec())));
        assert_eq!(client.read(id, 99), Ok(None));
        // The server announces the freed place in its next packet.
        for packet in server.send_and_ack_all() {
            client.receive(&packet).unwrap();
        }
    }
    assert_eq!(
        (client.streams.table.len(), server.streams.table.len()),
        (0, 0)
    );
}

/// The first packet is lost, and nothing can be read until its retransmission arrives. Both windows
/// grow meanwhile, because the rest arrives as fast as before.
#[test]
fn credit_is_granted_while_a_lost_packet_holds_the_reader_up() {
    let config = StreamsConfig {
        stream_receive_window: 8000,
        stream_receive_window_max: 100_000,
        receive_window: 8000,
        receive_window_max: 100_000,
        max_gaps_per_stream: 2,
        ..config()
    };
    let mut server = End::new(Side::Server, &config);
    let id = client_uni(0);
    for offset in (1000..8000).step_by(1000) {
        server.stream(id, offset, &[1; 1000]).unwrap();
    }
    let mut limits = (0, 0);
    for packet in server.send_all() {
        for frame in packet.frames() {
            match frame {
                Frame::MaxData(frame) => limits.0 = frame.limit,
                Frame::MaxStreamData(frame) => limits.1 = frame.limit,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(limits, (16_000, 16_000));
    assert_eq!(server.read(id, 1), Err(ReadError::Blocked));
}

/// Four congestion windows: see [`Streams::on_congestion_window`].
#[test]
fn send_buffer_follows_the_congestion_window() {
    let config = StreamsConfig {
        unsent_limit: 256 << 20,
        send_buffer_max: 100 << 20,
        ..config()
    };
    let mut client = End::new(Side::Client, &config);
    let room = |client: &End| client.streams.buffers.sending.write_limits(0, 0).connection;
    assert_eq!(room(&client), send_budget::SEND_BUFFER_MIN);
    client.streams.on_congestion_window(5 << 20);
    assert_eq!(room(&client), 20 << 20);
    client.streams.on_congestion_window(50 << 20);
    assert_eq!(room(&client), 100 << 20);
}

#[test]
fn credit_of_a_stream_that_is_missing_is_not_taken_for_a_lack_of_data() {
    let config = StreamsConfig {
        stream_receive_window: 10,
        receive_window: 1000,
        ..config()
    };
    let mut client = End::new(Side::Client, &config);
    let id = client.streams.open(UNI).unwrap();
    client.streams.write(id, &[0; 10]).unwrap();
    client.send_all();
    assert!(!client.streams.is_stream_blocked());
    client.streams.write(id, b"x").unwrap();
    assert!(client.streams.is_stream_blocked() && !client.streams.is_connection_blocked());
    client.max_stream_data(id, 11).unwrap();
    assert!(!client.streams.is_stream_blocked());
}
