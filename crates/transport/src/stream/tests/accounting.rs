//! Tests that flow control agrees with a sum over all streams (attack A28).

use proptest::prelude::*;

use super::*;

const STREAMS: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Stream {
        stream: usize,
        offset: u64,
        len: usize,
        fin: bool,
    },
    Reset {
        stream: usize,
        size: u64,
    },
    Read {
        stream: usize,
        max: usize,
    },
    ReadChunk {
        stream: usize,
        max: usize,
    },
    Stop {
        stream: usize,
    },
    Send,
    LoseAll,
}

fn step() -> impl Strategy<Value = Step> {
    let stream = 0..STREAMS;
    let data = (
        stream.clone(),
        0u64..130,
        0usize..60,
        prop::bool::weighted(0.1),
    );
    prop_oneof![
        8 => data.prop_map(|(stream, offset, len, fin)| Step::Stream { stream, offset, len, fin }),
        1 => (stream.clone(), 0u64..150).prop_map(|(stream, size)| Step::Reset { stream, size }),
        4 => (stream.clone(), 0usize..80).prop_map(|(stream, max)| Step::Read { stream, max }),
        1 => (stream.clone(), 0usize..80).prop_map(|(stream, max)| Step::ReadChunk { stream, max }),
        1 => stream.prop_map(|stream| Step::Stop { stream }),
        3 => Just(Step::Send),
        1 => Just(Step::LoseAll),
    ]
}

/// The requirements of the rules for one stream, kept as plainly as possible.
#[derive(Clone, Debug, Default)]
struct Model {
    highest: u64,
    final_size: Option<u64>,
    /// True once all bytes have arrived, so that a reset has no effect any more.
    is_complete: bool,
    received: Vec<bool>,
    read: u64,
    is_discarding: bool,
    is_forgotten: bool,
    limit: u64,
}

impl Model {
    fn consumed(&self) -> u64 {
        if self.is_discarding {
            self.highest
        } else {
            self.read
        }
    }

    /// Returns the error that data or a reset up to `end` requires.
    fn judge(&self, end: u64, is_final: bool, connection_left: u64) -> Option<Code> {
        let breaks_size = match self.final_size {
            Some(size) => end > size || (is_final && end != size),
            None => is_final && end < self.highest,
        };
        if breaks_size {
            return Some(Code::FINAL_SIZE_ERROR);
        }
        let additional = end.saturating_sub(self.highest);
        (end > self.limit && additional > 0 || additional > connection_left)
            .then_some(Code::FLOW_CONTROL_ERROR)
    }

    fn mark(&mut self, offset: u64, len: u64) {
        self.received
            .resize(self.received.len().max((offset + len) as usize), false);
        self.received[offset as usize..(offset + len) as usize].fill(true);
        self.complete();
    }

    fn complete(&mut self) {
        if let Some(size) = self.final_size
            && !self.is_discarding
        {
            let have = self.received.iter().take_while(|&&have| have).count() as u64;
            self.is_complete = have == size;
        }
    }
}

struct World {
    server: End,
    models: Vec<Model>,
    limit: u64,
    lost: Vec<Flying>,
}

impl World {
    fn new() -> Self {
        let config = StreamsConfig {
            max_gaps_per_stream: 100,
            max_gaps: 400,
            ..config()
        };
        let models = vec![
            Model {
                limit: 100,
                ..Model::default()
            };
            STREAMS
        ];
        Self {
            server: End::new(Side::Server, &config),
            models,
            limit: 250,
            lost: Vec::new(),
        }
    }

    fn received(&self) -> u64 {
        self.models.iter().map(|model| model.highest).sum()
    }

    /// Applies a step. Returns false if the peer broke a rule, which the model confirms.
    fn apply(&mut self, step: Step) -> bool {
        match step {
            Step::Stream {
                stream,
                offset,
                len,
                fin,
            } => {
                return self.on_stream(stream, offset, len, fin);
            }
            Step::Reset { stream, size } => return self.on_reset(stream, size),
            Step::Read { stream, max } => {
                if let Ok(Some(bytes)) = self.server.read(client_uni(stream as u64), max) {
                    self.models[stream].read += bytes.len() as u64;
                } else {
                    self.forget_if_over(stream);
                }
            }
            Step::ReadChunk { stream, max } => {
                let result = self
                    .server
                    .streams
                    .read_chunk(client_uni(stream as u64), max);
                if let Ok(Some(bytes)) = result {
                    self.models[stream].read += bytes.len() as u64;
                } else {
                    self.forget_if_over(stream);
                }
            }
            Step::Stop { stream } => {
                if self
                    .server
                    .streams
                    .stop(client_uni(stream as u64), 1)
                    .is_ok()
                {
                    self.models[stream].is_discarding = true;
                }
                self.forget_if_over(stream);
            }
            Step::Send => self.send(),
            Step::LoseAll => {
                for packet in std::mem::take(&mut self.lost) {
                    self.server.on_lost(&packet);
                }
            }
        }
        true
    }

    fn on_stream(&mut self, stream: usize, offset: u64, len: usize, fin: bool) -> bool {
        let id = client_uni(stream as u64);
        let data = vec![stream as u8; len];
        let left = self.limit - self.received();
        let end = offset + len as u64;
        let result = if fin {
            self.server.fin(id, offset, &data)
        } else {
            self.server.stream(id, offset, &data)
        };
        let model = &mut self.models[stream];
        if model.is_forgotten {
            assert_eq!(result, Ok(Stored::Kept));
            return true;
        }
        let expected = model.judge(end, fin, left).map_or(Ok(Stored::Kept), Err);
        assert_eq!(
            result, expected,
            "STREAM {stream} {offset}+{len} fin {fin}: {model:?}"
        );
        if result.is_ok() {
            model.highest = model.highest.max(end);
            if fin {
                model.final_size = Some(end);
            }
            model.mark(offset, len as u64);
            self.forget_if_over(stream);
        }
        result.is_ok()
    }

    fn on_reset(&mut self, stream: usize, size: u64) -> bool {
        let left = self.limit - self.received();
        let result = self.server.reset_stream(client_uni(stream as u64), 1, size);
        let model = &mut self.models[stream];
        if model.is_forgotten {
            assert_eq!(result, Ok(()));
            return true;
        }
        let expected = model.judge(size, true, left).map_or(Ok(()), Err);
        assert_eq!(result, expected, "RESET_STREAM {stream} {size}: {model:?}");
        if result.is_ok() {
            model.highest = model.highest.max(size);
            model.final_size = Some(size);
            model.is_discarding |= !model.is_complete;
            self.forget_if_over(stream);
        }
        result.is_ok()
    }

    /// Forgets a stream that is over. The model does not compute this, because other tests cover
    /// it.
    fn forget_if_over(&mut self, stream: usize) {
        let model = &mut self.models[stream];
        let exists = self
            .server
            .streams
            .table
            .get(client_uni(stream as u64))
            .is_some();
        model.is_forgotten = !exists && model.final_size.is_some();
    }

    fn send(&mut self) {
        while let Some(packet) = self.server.send() {
            for frame in packet.frames() {
                match frame {
                    Frame::MaxData(frame) => {
                        assert!(frame.limit >= self.limit, "MAX_DATA falls");
                        self.limit = frame.limit;
                    }
                    Frame::MaxStreamData(frame) => {
                        let model = &mut self.models[frame.id.index() as usize];
                        assert!(frame.limit >= model.limit, "MAX_STREAM_DATA falls");
                        assert!(model.final_size.is_none() && !model.is_discarding);
                        model.limit = frame.limit;
                    }
                    _ => {}
                }
            }
            self.lost.push(packet);
        }
    }

    fn check(&self) {
        let streams = &self.server.streams;
        let consumed: u64 = self.models.iter().map(Model::consumed).sum();
        assert_eq!(streams.flow.receive.received(), self.received(), "received");
        assert_eq!(
            streams.flow.receive.unconsumed(),
            self.received() - consumed,
            "unconsumed"
        );
        assert_eq!(streams.flow.receive.limit(), self.limit, "limit");
        let gaps: usize = streams.table.iter().map(|key| key.receive.gaps()).sum();
        assert_eq!(streams.buffers.received().gaps, gaps, "gaps");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn sum_over_streams_agrees_with_a_model(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            if !world.apply(step) {
                break;
            }
            world.check();
        }
    }
}
