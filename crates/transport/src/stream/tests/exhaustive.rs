//! All short sequences of events on one stream (attack A29).

use super::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Stream,
    Fin,
    Reset,
    Stop,
    MaxStreamData,
    Read,
    Write,
    AppReset,
    AppStop,
    Finish,
    Send,
    Ack,
    Lose,
}

const OF_PEER_AND_APPLICATION: [Act; 10] = [
    Act::Stream,
    Act::Fin,
    Act::Reset,
    Act::Stop,
    Act::MaxStreamData,
    Act::Read,
    Act::Write,
    Act::AppReset,
    Act::AppStop,
    Act::Finish,
];
const OF_NETWORK: [Act; 3] = [Act::Send, Act::Ack, Act::Lose];

/// One stream, and the peer's actions on it so far.
struct Run {
    end: End,
    id: StreamId,
    /// Bytes that the peer sent; each frame brings one more.
    offset: u64,
    limit: u64,
    packets: Vec<Flying>,
}

impl Run {
    fn new(is_ours: bool, config: &StreamsConfig) -> Self {
        let mut end = End::new(Side::Server, config);
        let id = if is_ours {
            end.streams.open(BIDI).unwrap()
        } else {
            client_bidi(0)
        };
        Self {
            end,
            id,
            offset: 0,
            limit: config.stream_receive_window,
            packets: Vec::new(),
        }
    }

    /// Applies an action. Returns false if the peer broke a rule.
    fn act(&mut self, act: Act) -> bool {
        let (end, id) = (&mut self.end, self.id);
        match act {
            Act::Stream => {
                self.offset += 1;
                return Self::judge(end.stream(id, self.offset - 1, b"x"));
            }
            Act::Fin => return Self::judge(end.fin(id, self.offset, b"")),
            Act::Reset => return Self::judge(end.reset_stream(id, 1, self.offset + 1)),
            Act::Stop => end.stop_sending(id, 2).unwrap(),
            Act::MaxStreamData => {
                self.limit += 1;
                end.max_stream_data(id, self.limit).unwrap();
            }
            Act::Read => {
                let mut out = [0; 4];
                let _ = end.streams.read(id, &mut out);
            }
            Act::Write => {
                let _ = end.streams.write(id, b"abc");
            }
            Act::AppReset => {
                let _ = end.streams.reset(id, 3);
            }
            Act::AppStop => {
                let _ = end.streams.stop(id, 4);
            }
            Act::Finish => {
                let _ = end.streams.finish(id);
            }
            Act::Send => self.packets.extend(end.send()),
            Act::Ack => {
                if let Some(packet) = self.packets.pop() {
                    end.on_acked(&packet);
                }
            }
            Act::Lose => {
                if let Some(packet) = self.packets.pop() {
                    end.on_lost(&packet);
                }
            }
        }
        true
    }

    fn judge<T>(result: Result<T, Code>) -> bool {
        match result {
            Ok(_) => true,
            Err(Code::FINAL_SIZE_ERROR) => false,
            Err(other) => panic!("unexpected {other:?}"),
        }
    }

    /// Asserts the invariants that hold after every step.
    fn check(&mut self) {
        let streams = &mut self.end.streams;
        let mut retained = 0;
        let mut gaps = 0;
        for key in streams.table.iter() {
            assert!(!key.is_over(), "ended stream in the table");
            assert_eq!(
                key.in_new.is_some(),
                key.send.has_new(),
                "schedule of new data"
            );
            assert_eq!(
                key.in_free.is_some(),
                key.send.has_free(),
                "schedule of free frames"
            );
            retained += key.send.retained();
            gaps += key.receive.gaps();
        }
        assert_eq!(streams.buffers.sending.retained(), retained);
        assert_eq!(streams.buffers.received().gaps, gaps);
        assert!(streams.flow.receive.received() <= streams.flow.receive.limit());
        assert!(streams.events.len() <= 6, "{:?}", streams.events);
    }

    /// Lets both sides end the stream, and asserts that nothing is left of it.
    fn wind_up(mut self) {
        let _ = self.end.streams.finish(self.id);
        let _ = self.end.streams.reset(self.id, 3);
        let _ = self.end.streams.stop(self.id, 4);
        for packet in std::mem::take(&mut self.packets) {
            self.end.on_lost(&packet);
        }
        self.end.send_and_ack_all();
        if self.end.streams.table.get(self.id).is_some() {
            // It waits for the final size from the peer.
            let size = self.end.streams.flow.receive.received();
            self.end.reset_stream(self.id, 1, size).unwrap();
        }
        self.end.send_and_ack_all();
        assert_eq!(self.end.streams.table.len(), 0);
        assert_eq!(self.end.streams.flow.receive.unconsumed(), 0);
        assert!(!self.end.streams.unacked_or_unsent());
    }
}

/// Runs all sequences of `len` actions, and returns how many did not end in an error of the peer.
fn run_all(acts: &[Act], len: u32, is_ours: bool) -> usize {
    let config = config();
    let mut lawful = 0;
    for mut number in 0..acts.len().pow(len) {
        let mut run = Run::new(is_ours, &config);
        let mut is_lawful = true;
        for _ in 0..len {
            is_lawful = run.act(acts[number % acts.len()]);
            number /= acts.len();
            if !is_lawful {
                break;
            }
            run.check();
        }
        if is_lawful {
            lawful += 1;
            run.wind_up();
        }
    }
    lawful
}

#[test]
fn all_sequences_of_six_on_a_stream_of_the_peer() {
    let lawful = run_all(&OF_PEER_AND_APPLICATION, 6, false);
    assert!(lawful > 500_000, "only {lawful} got to the end");
}

#[test]
fn all_sequences_of_six_on_a_stream_of_ours() {
    let lawful = run_all(&OF_PEER_AND_APPLICATION, 6, true);
    assert!(lawful > 500_000, "only {lawful} got to the end");
}

#[test]
fn all_sequences_of_five_with_packets_sent_acked_and_lost() {
    let acts = [&OF_PEER_AND_APPLICATION[..], &OF_NETWORK].concat();
    for is_ours in [true, false] {
        let lawful = run_all(&acts, 5, is_ours);
        assert!(lawful > 200_000, "only {lawful} got to the end");
    }
}
