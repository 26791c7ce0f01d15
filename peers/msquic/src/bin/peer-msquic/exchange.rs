//! Data of streams in both directions.

use std::ffi::c_void;

use msquic::{BufferRef, SendFlags, Status, Stream};
use peer_msquic_common::settings::{CHUNK_SIZE, HEADER_LEN};

/// Data that msquic reads until it reports `SendComplete` with the address of this value.
struct Sending {
    /// The length in front of an upload, and the byte of a request.
    header: [u8; HEADER_LEN + 1],
    buffers: [BufferRef; 1],
    length: u64,
}

impl Sending {
    /// Gives the value to msquic.
    fn send(self: Box<Self>, stream: &Stream, flags: SendFlags) -> Result<(), Status> {
        let sending = Box::into_raw(self);
        let context = sending.cast_const().cast();
        // SAFETY: the value and its data live until `Outgoing::on_send_complete`.
        let sent = unsafe { stream.send(&(*sending).buffers, flags, context) };
        // SAFETY: msquic did not take the value.
        sent.inspect_err(|_| drop(unsafe { Box::from_raw(sending) }))
    }
}

/// Starts a stream with the length of the wanted answer, and with `more` zero bytes, 0 or 1, behind it.
pub(crate) fn send_header(
    stream: &Stream,
    wanted: u64,
    more: usize,
    flags: SendFlags,
) -> Result<(), Status> {
    let mut header = [0; HEADER_LEN + 1];
    header[..HEADER_LEN].copy_from_slice(&wanted.to_be_bytes());
    let mut sending = Box::new(Sending {
        header,
        buffers: [BufferRef::from(&ZEROS[..0])],
        length: 0,
    });
    sending.buffers = [BufferRef::from(&sending.header[..HEADER_LEN + more])];
    sending.send(stream, flags | SendFlags::START)
}

/// Zero bytes that a stream has yet to send, in chunks that share their memory.
pub(crate) struct Outgoing {
    left: u64,
    /// Given to msquic and not acknowledged.
    under_way: u64,
    /// Bytes that msquic wants for its congestion window.
    ideal: u64,
    is_finished: bool,
}

impl Outgoing {
    /// `length` bytes, and FIN.
    pub(crate) const fn new(length: u64) -> Self {
        Self {
            left: length,
            under_way: 0,
            ideal: FIRST_IDEAL,
            is_finished: false,
        }
    }

    /// Nothing: FIN was sent already.
    pub(crate) const fn finished() -> Self {
        Self {
            is_finished: true,
            ..Self::new(0)
        }
    }

    /// Gives msquic as much as it wants to have.
    pub(crate) fn fill(&mut self, stream: &Stream) -> Result<(), Status> {
        while !self.is_finished && self.under_way < self.ideal {
            let length = usize::try_from(self.left)
                .unwrap_or(CHUNK_SIZE)
                .min(CHUNK_SIZE);
            self.left -= length as u64;
            self.under_way += length as u64;
            self.is_finished = self.left == 0;
            let sending = Box::new(Sending {
                header: [0; HEADER_LEN + 1],
                buffers: [BufferRef::from(&ZEROS[..length])],
                length: length as u64,
            });
            let flags = match self.is_finished {
                true => SendFlags::FIN,
                false => SendFlags::NONE,
            };
            sending.send(stream, flags)?;
        }
        Ok(())
    }

    /// Frees what msquic is done with, and sends more in its place.
    ///
    /// # Safety
    /// `context` is from the event `SendComplete` of a stream, whose data was sent by this module.
    pub(crate) unsafe fn on_send_complete(
        &mut self,
        context: *const c_void,
        stream: &Stream,
    ) -> Result<(), Status> {
        // SAFETY: the address is that of `Sending::send`, and msquic reports each once.
        let sent = unsafe { Box::from_raw(context.cast::<Sending>().cast_mut()) };
        self.under_way -= sent.length;
        self.fill(stream)
    }

    /// Sends nothing more: the stream was aborted, or its connection has ended.
    pub(crate) const fn give_up(&mut self) {
        self.is_finished = true;
    }

    /// Takes the figure of the event `IdealSendBufferSize`.
    pub(crate) fn on_ideal(&mut self, bytes: u64, stream: &Stream) -> Result<(), Status> {
        self.ideal = bytes.max(FIRST_IDEAL);
        self.fill(stream)
    }
}

static ZEROS: [u8; CHUNK_SIZE] = [0; CHUNK_SIZE];

/// Bytes that msquic gets before it has said how many it wants.
const FIRST_IDEAL: u64 = 128 << 10;
