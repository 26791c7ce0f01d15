//! One end of a stream: the operations of the application, with a check of every result.

use bytes::Bytes;
use courser_base::Side;
use courser_sim::host::Context;
use courser_transport::{ConnectionHandle, FinishError, ReadError, Streams, WriteError};
use courser_wire::{Direction, StreamId};

use super::book::{Flow, Key, SharedBook, bytes_at};
use crate::common::random::SeededRandom;

/// The context of an operation on a connection.
pub struct StreamContext<'a, 'b> {
    pub context: &'a mut Context<'b>,
    pub handle: ConnectionHandle,
    pub side: Side,
    pub key: Key,
    pub book: &'a SharedBook,
    pub random: &'a mut SeededRandom,
    /// The largest number of bytes of one operation.
    pub piece: u64,
    /// The bytes that may still be written on the connection.
    pub left: &'a mut u64,
}

impl StreamContext<'_, '_> {
    pub fn streams(&mut self) -> &mut Streams {
        let streams = self.context.streams(self.handle);
        streams.expect("the connection has not ended")
    }

    pub fn count(&self, what: &'static str) {
        self.book.borrow_mut().count(what);
    }

    fn flow<T>(&self, id: StreamId, sender: Side, change: impl FnOnce(&mut Flow) -> T) -> T {
        change(self.book.borrow_mut().flow(self.key, id, sender))
    }

    /// A stream that is open here is closed there only if the connection is. The application is
    /// notified of that next.
    fn assert_over(&mut self, id: StreamId, what: &str) {
        let connection = self.context.connection(self.handle);
        let is_closed = connection.is_none_or(|it| it.is_closed());
        assert!(is_closed, "{id:?} returned ClosedStream for a {what}");
    }
}

/// One end of a stream.
#[derive(Debug)]
pub struct Own {
    pub id: StreamId,
    pub send: Option<Sending>,
    pub receive: Option<Receiving>,
    /// True if it reads all data at once.
    is_eager: bool,
}

/// The part of a stream that this end sends.
#[derive(Debug)]
pub struct Sending {
    /// The bytes that it writes before it finishes in the calm.
    goal: u64,
    /// True if it was finished, reset, or stopped.
    pub is_over: bool,
    is_acknowledged: bool,
}

/// The part of a stream that this end receives.
#[derive(Debug)]
pub struct Receiving {
    /// True if there may be data to read.
    is_ready: bool,
    /// True if the end was received, or the stream was stopped.
    pub is_over: bool,
}

impl Own {
    pub fn new(id: StreamId, side: Side, random: &mut SeededRandom) -> Self {
        let is_own = id.initiator() == side;
        let both = id.direction() == Direction::Bidirectional;
        Self {
            id,
            send: (both || is_own).then(|| Sending {
                goal: random.magnitude(1, 20_000),
                is_over: false,
                is_acknowledged: false,
            }),
            receive: (both || !is_own).then_some(Receiving {
                is_ready: true,
                is_over: false,
            }),
            is_eager: random.percent(60),
        }
    }

    /// Returns true if neither the application nor its transport has work left on it.
    pub fn is_over(&self) -> bool {
        self.send.as_ref().is_none_or(|it| it.is_acknowledged)
            && self.receive.as_ref().is_none_or(|it| it.is_over)
    }

    /// Performs a random operation.
    pub fn operate(&mut self, stream_context: &mut StreamContext<'_, '_>) {
        let _ = match stream_context.random.below(40) {
            0..=21 => self.write(stream_context),
            22..=24 => self.finish(stream_context),
            25 => self.reset(stream_context),
            26 => self.stop(stream_context),
            27..=28 => {
                let priority = i32::from_le_bytes(
                    stream_context.random.draw().to_le_bytes()[..4]
                        .try_into()
                        .expect("the slice has four bytes"),
                );
                let result = stream_context.streams().set_priority(self.id, priority);
                // A part that this end has ended may be over before its event arrives.
                let is_open = |send: &Sending| !send.is_over;
                if result.is_err() && self.send.as_ref().is_some_and(is_open) {
                    stream_context.assert_over(self.id, "priority");
                }
                true
            }
            _ => self.read(stream_context),
        };
    }

    /// Writes some bytes. Returns false if the stream is blocked.
    pub fn write(&mut self, stream_context: &mut StreamContext<'_, '_>) -> bool {
        let Some(send) = self.send.as_mut().filter(|send| !send.is_over) else {
            return false;
        };
        let len = stream_context
            .random
            .magnitude(1, stream_context.piece)
            .min(*stream_context.left);
        if len == 0 {
            return false;
        }
        let written = stream_context.flow(self.id, stream_context.side, |flow| flow.written);
        let mut data = bytes_at(
            stream_context.key,
            self.id,
            stream_context.side,
            written,
            len,
        );
        let result = match stream_context.random.percent(50) {
            true => stream_context.streams().write(self.id, &data),
            false => stream_context.streams().write_chunk(self.id, &mut data),
        };
        match result {
            Ok(taken) => {
                let taken = taken as u64;
                assert!((1..=len).contains(&taken), "{taken} of {len} bytes written");
                stream_context.flow(self.id, stream_context.side, |flow| flow.written += taken);
                stream_context.count("write");
                *stream_context.left -= taken;
                send.goal = send.goal.saturating_sub(taken);
                return true;
            }
            Err(WriteError::Blocked) => stream_context.count("blocked write"),
            Err(WriteError::Stopped(code)) => self.on_stopped(stream_context, code),
            Err(WriteError::ClosedStream) => stream_context.assert_over(self.id, "write"),
        }
        false
    }

    pub fn finish(&mut self, stream_context: &mut StreamContext<'_, '_>) -> bool {
        let Some(send) = self.send.as_mut().filter(|send| !send.is_over) else {
            return false;
        };
        match stream_context.streams().finish(self.id) {
            Ok(()) => {
                send.is_over = true;
                stream_context.flow(self.id, stream_context.side, |flow| flow.finished = true);
                stream_context.count("finish");
            }
            Err(FinishError::Stopped(code)) => self.on_stopped(stream_context, code),
            Err(FinishError::ClosedStream) => stream_context.assert_over(self.id, "finish"),
        }
        true
    }

    /// A reset is possible after finishing too. Then the peer may have all data, or not.
    pub fn reset(&mut self, stream_context: &mut StreamContext<'_, '_>) -> bool {
        let code = stream_context.random.below(1 << 62);
        let Some(send) = self.send.as_mut().filter(|send| !send.is_acknowledged) else {
            return false;
        };
        let flow = stream_context.flow(self.id, stream_context.side, |flow| *flow);
        match stream_context.streams().reset(self.id, code) {
            Ok(()) => {
                // A stream that the peer stopped needs no further operation.
                let is_first = flow.reset.is_none() || flow.stopped.is_some();
                assert!(is_first, "{:?} reset twice", self.id);
                stream_context.flow(self.id, stream_context.side, |flow| flow.reset = Some(code));
                stream_context.count("reset");
            }
            Err(_) if flow.finished || flow.reset.is_some() || flow.stopped.is_some() => {}
            Err(_) => stream_context.assert_over(self.id, "reset"),
        }
        send.is_over = true;
        true
    }

    pub fn stop(&mut self, stream_context: &mut StreamContext<'_, '_>) -> bool {
        let code = stream_context.random.below(1 << 62);
        let Some(receive) = self.receive.as_mut().filter(|it| !it.is_over) else {
            return false;
        };
        match stream_context.streams().stop(self.id, code) {
            Ok(()) => {
                stream_context.flow(self.id, stream_context.side.peer(), |flow| {
                    flow.stopped = Some(code)
                });
                stream_context.count("stop");
            }
            Err(_) => stream_context.assert_over(self.id, "stop"),
        }
        receive.is_over = true;
        true
    }

    /// Reads one piece. Returns false if the stream is blocked.
    pub fn read(&mut self, stream_context: &mut StreamContext<'_, '_>) -> bool {
        let Some(receive) = self
            .receive
            .as_mut()
            .filter(|it| !it.is_over && it.is_ready)
        else {
            return false;
        };
        let most = usize::try_from(stream_context.random.magnitude(1, stream_context.piece))
            .expect("the length fits into usize");
        let (id, peer, key) = (self.id, stream_context.side.peer(), stream_context.key);
        let result = match stream_context.random.percent(50) {
            true => stream_context.streams().read_chunk(id, most),
            false => {
                let mut out = vec![0; most];
                let result = stream_context.streams().read(id, &mut out);
                result.map(|len| len.map(|len| Bytes::copy_from_slice(&out[..len])))
            }
        };
        let mut book = stream_context.book.borrow_mut();
        match result {
            Ok(Some(bytes)) => {
                assert!(bytes.len() <= most, "{} bytes of {most}", bytes.len());
                book.on_read(key, id, peer, &bytes);
                book.count("read");
                return true;
            }
            Ok(None) => {
                book.on_end(key, id, peer);
                receive.is_over = true;
            }
            Err(ReadError::Reset(code)) => {
                book.on_reset(key, id, peer, code);
                book.count("reset read");
                receive.is_over = true;
            }
            Err(ReadError::Blocked) => receive.is_ready = false,
            Err(ReadError::ClosedStream) => {
                drop(book);
                stream_context.assert_over(id, "read");
            }
            Err(ReadError::Unordered) => panic!("{id:?} is read in order"),
        }
        false
    }

    /// Reads as [`Own::read`] does, when no further event will announce data.
    pub fn read_rest(&mut self, stream_context: &mut StreamContext<'_, '_>) -> bool {
        if let Some(receive) = &mut self.receive {
            receive.is_ready = true;
        }
        self.read(stream_context)
    }

    pub fn on_readable(&mut self, stream_context: &mut StreamContext<'_, '_>, is_settling: bool) {
        let receive = self
            .receive
            .as_mut()
            .expect("the stream has a receiving part");
        receive.is_ready = true;
        if self.is_eager || is_settling {
            while self.read(stream_context) {}
        }
    }

    pub fn on_writable(&mut self, stream_context: &mut StreamContext<'_, '_>, is_settling: bool) {
        let send = self.send.as_ref().expect("the stream has a sending part");
        assert!(
            !send.is_acknowledged,
            "{:?}: writable after the end",
            self.id
        );
        if is_settling {
            self.settle(stream_context);
        } else if stream_context.random.percent(50) {
            self.write(stream_context);
        }
    }

    pub fn on_stopped(&mut self, stream_context: &mut StreamContext<'_, '_>, code: u64) {
        let send = self.send.as_mut().expect("the stream has a sending part");
        assert!(
            !send.is_acknowledged,
            "{:?}: stopped after the end",
            self.id
        );
        send.is_over = true;
        let mut book = stream_context.book.borrow_mut();
        book.on_stopped(stream_context.key, self.id, stream_context.side, code);
        book.count("stopped");
    }

    pub fn on_acknowledged(&mut self, stream_context: &mut StreamContext<'_, '_>) {
        let send = self.send.as_mut().expect("the stream has a sending part");
        send.is_acknowledged = true;
        send.is_over = true;
        let mut book = stream_context.book.borrow_mut();
        book.on_acknowledged(stream_context.key, self.id, stream_context.side);
    }

    /// Brings it to an end: reads everything, writes the remaining bytes, finishes.
    pub fn settle(&mut self, stream_context: &mut StreamContext<'_, '_>) {
        while self.read(stream_context) {}
        while self
            .send
            .as_ref()
            .is_some_and(|it| it.goal > 0 && !it.is_over)
        {
            if *stream_context.left == 0 {
                break;
            }
            if !self.write(stream_context) {
                return;
            }
        }
        match stream_context.random.percent(90) {
            true => self.finish(stream_context),
            false => self.send.as_ref().is_some_and(|it| !it.is_over) && self.reset(stream_context),
        };
    }
}
