//! One end of a stream: the operations of the application, with a check of every result.

use bytes::Bytes;
use courser_base::Side;
use courser_sim::host::Context;
use courser_transport::{ConnectionHandle, FinishError, ReadError, Streams, WriteError};
use courser_wire::{Direction, StreamId};

use super::book::{Flow, Key, SharedBook, bytes_at};
use crate::common::dice::Dice;

/// The context of an operation on a connection.
pub struct Hands<'a, 'b> {
    pub context: &'a mut Context<'b>,
    pub handle: ConnectionHandle,
    pub side: Side,
    pub key: Key,
    pub book: &'a SharedBook,
    pub dice: &'a mut Dice,
    /// The largest number of bytes of one operation.
    pub piece: u64,
    /// The bytes that may still be written on the connection.
    pub left: &'a mut u64,
}

impl Hands<'_, '_> {
    pub fn streams(&mut self) -> &mut Streams {
        let streams = self.context.streams(self.handle);
        streams.expect("a connection that is not over is not forgotten")
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
        assert!(is_closed, "{id:?} says ClosedStream to a {what}");
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
    pub fn new(id: StreamId, side: Side, dice: &mut Dice) -> Self {
        let is_own = id.initiator() == side;
        let both = id.direction() == Direction::Bidirectional;
        Self {
            id,
            send: (both || is_own).then(|| Sending {
                goal: dice.magnitude(1, 20_000),
                is_over: false,
                is_acknowledged: false,
            }),
            receive: (both || !is_own).then_some(Receiving {
                is_ready: true,
                is_over: false,
            }),
            is_eager: dice.percent(60),
        }
    }

    /// Returns true if neither the application nor its transport has work left on it.
    pub fn is_over(&self) -> bool {
        self.send.as_ref().is_none_or(|it| it.is_acknowledged)
            && self.receive.as_ref().is_none_or(|it| it.is_over)
    }

    /// Performs a random operation.
    pub fn operate(&mut self, hands: &mut Hands<'_, '_>) {
        let _ = match hands.dice.below(40) {
            0..=21 => self.write(hands),
            22..=24 => self.finish(hands),
            25 => self.reset(hands),
            26 => self.stop(hands),
            27..=28 => {
                let priority = i32::from_le_bytes(
                    hands.dice.draw().to_le_bytes()[..4]
                        .try_into()
                        .expect("four"),
                );
                let result = hands.streams().set_priority(self.id, priority);
                // A part that this end has ended may be over before its event arrives.
                let is_open = |send: &Sending| !send.is_over;
                if result.is_err() && self.send.as_ref().is_some_and(is_open) {
                    hands.assert_over(self.id, "priority");
                }
                true
            }
            _ => self.read(hands),
        };
    }

    /// Writes some bytes. Returns false if the stream is blocked.
    pub fn write(&mut self, hands: &mut Hands<'_, '_>) -> bool {
        let Some(send) = self.send.as_mut().filter(|send| !send.is_over) else {
            return false;
        };
        let len = hands.dice.magnitude(1, hands.piece).min(*hands.left);
        if len == 0 {
            return false;
        }
        let written = hands.flow(self.id, hands.side, |flow| flow.written);
        let mut data = bytes_at(hands.key, self.id, hands.side, written, len);
        let result = match hands.dice.percent(50) {
            true => hands.streams().write(self.id, &data),
            false => hands.streams().write_chunk(self.id, &mut data),
        };
        match result {
            Ok(taken) => {
                let taken = taken as u64;
                assert!((1..=len).contains(&taken), "{taken} of {len} bytes written");
                hands.flow(self.id, hands.side, |flow| flow.written += taken);
                hands.count("write");
                *hands.left -= taken;
                send.goal = send.goal.saturating_sub(taken);
                return true;
            }
            Err(WriteError::Blocked) => hands.count("blocked write"),
            Err(WriteError::Stopped(code)) => self.on_stopped(hands, code),
            Err(WriteError::ClosedStream) => hands.assert_over(self.id, "write"),
        }
        false
    }

    pub fn finish(&mut self, hands: &mut Hands<'_, '_>) -> bool {
        let Some(send) = self.send.as_mut().filter(|send| !send.is_over) else {
            return false;
        };
        match hands.streams().finish(self.id) {
            Ok(()) => {
                send.is_over = true;
                hands.flow(self.id, hands.side, |flow| flow.finished = true);
                hands.count("finish");
            }
            Err(FinishError::Stopped(code)) => self.on_stopped(hands, code),
            Err(FinishError::ClosedStream) => hands.assert_over(self.id, "finish"),
        }
        true
    }

    /// A reset is possible after finishing too. Then the peer may have all data, or not.
    pub fn reset(&mut self, hands: &mut Hands<'_, '_>) -> bool {
        let code = hands.dice.below(1 << 62);
        let Some(send) = self.send.as_mut().filter(|send| !send.is_acknowledged) else {
            return false;
        };
        let flow = hands.flow(self.id, hands.side, |flow| *flow);
        match hands.streams().reset(self.id, code) {
            Ok(()) => {
                // A stream that the peer stopped needs no further operation.
                let is_first = flow.reset.is_none() || flow.stopped.is_some();
                assert!(is_first, "{:?} reset twice", self.id);
                hands.flow(self.id, hands.side, |flow| flow.reset = Some(code));
                hands.count("reset");
            }
            Err(_) if flow.finished || flow.reset.is_some() || flow.stopped.is_some() => {}
            Err(_) => hands.assert_over(self.id, "reset"),
        }
        send.is_over = true;
        true
    }

    pub fn stop(&mut self, hands: &mut Hands<'_, '_>) -> bool {
        let code = hands.dice.below(1 << 62);
        let Some(receive) = self.receive.as_mut().filter(|it| !it.is_over) else {
            return false;
        };
        match hands.streams().stop(self.id, code) {
            Ok(()) => {
                hands.flow(self.id, hands.side.peer(), |flow| flow.stopped = Some(code));
                hands.count("stop");
            }
            Err(_) => hands.assert_over(self.id, "stop"),
        }
        receive.is_over = true;
        true
    }

    /// Reads one piece. Returns false if the stream is blocked.
    pub fn read(&mut self, hands: &mut Hands<'_, '_>) -> bool {
        let Some(receive) = self
            .receive
            .as_mut()
            .filter(|it| !it.is_over && it.is_ready)
        else {
            return false;
        };
        let most = usize::try_from(hands.dice.magnitude(1, hands.piece)).expect("a length");
        let (id, peer, key) = (self.id, hands.side.peer(), hands.key);
        let result = match hands.dice.percent(50) {
            true => hands.streams().read_chunk(id, most),
            false => {
                let mut out = vec![0; most];
                let result = hands.streams().read(id, &mut out);
                result.map(|len| len.map(|len| Bytes::copy_from_slice(&out[..len])))
            }
        };
        let mut book = hands.book.borrow_mut();
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
                hands.assert_over(id, "read");
            }
            Err(ReadError::Unordered) => panic!("{id:?} is read in order"),
        }
        false
    }

    /// Reads as [`Own::read`] does, when no further event will announce data.
    pub fn read_rest(&mut self, hands: &mut Hands<'_, '_>) -> bool {
        if let Some(receive) = &mut self.receive {
            receive.is_ready = true;
        }
        self.read(hands)
    }

    pub fn on_readable(&mut self, hands: &mut Hands<'_, '_>, is_settling: bool) {
        let receive = self.receive.as_mut().expect("it receives");
        receive.is_ready = true;
        if self.is_eager || is_settling {
            while self.read(hands) {}
        }
    }

    pub fn on_writable(&mut self, hands: &mut Hands<'_, '_>, is_settling: bool) {
        let send = self.send.as_ref().expect("it sends");
        assert!(!send.is_acknowledged, "{:?}: room behind the end", self.id);
        if is_settling {
            self.settle(hands);
        } else if hands.dice.percent(50) {
            self.write(hands);
        }
    }

    pub fn on_stopped(&mut self, hands: &mut Hands<'_, '_>, code: u64) {
        let send = self.send.as_mut().expect("it sends");
        assert!(
            !send.is_acknowledged,
            "{:?}: stopped behind the end",
            self.id
        );
        send.is_over = true;
        let mut book = hands.book.borrow_mut();
        book.on_stopped(hands.key, self.id, hands.side, code);
        book.count("stopped");
    }

    pub fn on_acknowledged(&mut self, hands: &mut Hands<'_, '_>) {
        let send = self.send.as_mut().expect("it sends");
        send.is_acknowledged = true;
        send.is_over = true;
        let mut book = hands.book.borrow_mut();
        book.on_acknowledged(hands.key, self.id, hands.side);
    }

    /// Brings it to an end: reads everything, writes the remaining bytes, finishes.
    pub fn settle(&mut self, hands: &mut Hands<'_, '_>) {
        while self.read(hands) {}
        while self
            .send
            .as_ref()
            .is_some_and(|it| it.goal > 0 && !it.is_over)
        {
            if *hands.left == 0 {
                break;
            }
            if !self.write(hands) {
                return;
            }
        }
        match hands.dice.percent(90) {
            true => self.finish(hands),
            false => self.send.as_ref().is_some_and(|it| !it.is_over) && self.reset(hands),
        };
    }
}
