//! Data of streams in both directions.

use bytes::Bytes;
use msquic::{BufferRef, SendFlags, Status, Stream, StreamEvent};
use peers_common::settings::{CHUNK_SIZE, HEADER_LEN};

/// Data that msquic reads until it reports `SendComplete` with the address of this value.
struct Sending {
    /// The length in front of an upload, and the byte of a request.
    header: [u8; HEADER_LEN + 1],
    content: Bytes,
    buffers: [BufferRef; 1],
    /// Bytes that count as under way of an [`Outgoing`].
    length: u64,
}

impl Sending {
    fn new(content: Bytes) -> Box<Self> {
        let buffers = [BufferRef::from(&content[..])];
        Box::new(Self {
            header: [0; HEADER_LEN + 1],
            content,
            buffers,
            length: 0,
        })
    }

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
///
/// # Errors
/// When msquic does not take the data.
pub fn send_header(
    stream: &Stream,
    wanted: u64,
    more: usize,
    flags: SendFlags,
) -> Result<(), Status> {
    let mut sending = Sending::new(Bytes::new());
    sending.header[..HEADER_LEN].copy_from_slice(&wanted.to_be_bytes());
    sending.buffers = [BufferRef::from(&sending.header[..HEADER_LEN + more])];
    sending.send(stream, flags | SendFlags::START)
}

/// Gives a stream that was started its whole content.
///
/// # Errors
/// When msquic does not take the data.
pub fn send_all(stream: &Stream, content: Bytes, flags: SendFlags) -> Result<(), Status> {
    Sending::new(content).send(stream, flags | SendFlags::FIN)
}

/// Bytes that a stream has yet to send: content, or zero bytes in chunks that share their memory.
pub struct Outgoing {
    content: Bytes,
    zeros: u64,
    /// Given to msquic and not acknowledged.
    under_way: u64,
    /// Bytes that msquic wants for its congestion window.
    ideal: u64,
    is_finished: bool,
}

impl Outgoing {
    /// `length` zero bytes, and FIN.
    pub const fn zeros(length: u64) -> Self {
        Self {
            content: Bytes::new(),
            zeros: length,
            under_way: 0,
            ideal: FIRST_IDEAL,
            is_finished: false,
        }
    }

    /// These bytes, and FIN.
    pub fn content(content: Bytes) -> Self {
        Self {
            content,
            ..Self::zeros(0)
        }
    }

    /// Nothing: FIN was sent already.
    pub fn finished() -> Self {
        Self {
            is_finished: true,
            ..Self::zeros(0)
        }
    }

    /// Gives msquic as much as it wants to have.
    ///
    /// # Errors
    /// When msquic does not take the data.
    pub fn fill(&mut self, stream: &Stream) -> Result<(), Status> {
        while !self.is_finished && self.under_way < self.ideal {
            let mut sending = Sending::new(self.next());
            sending.length = sending.content.len() as u64;
            self.under_way += sending.length;
            self.is_finished = self.content.is_empty() && self.zeros == 0;
            let flags = match self.is_finished {
                true => SendFlags::FIN,
                false => SendFlags::NONE,
            };
            sending.send(stream, flags)?;
        }
        Ok(())
    }

    /// Takes the next chunk.
    fn next(&mut self) -> Bytes {
        if !self.content.is_empty() {
            return self.content.split_to(self.content.len().min(CHUNK_SIZE));
        }
        let length = usize::try_from(self.zeros)
            .unwrap_or(CHUNK_SIZE)
            .min(CHUNK_SIZE);
        self.zeros -= length as u64;
        Bytes::from_static(&ZEROS[..length])
    }

    /// Frees what msquic is done with, and sends more in its place. Other events than `SendComplete` and
    /// `IdealSendBufferSize` are ignored.
    ///
    /// # Errors
    /// When msquic does not take the data.
    ///
    /// # Safety
    /// All data of the stream is sent by this module, and the event was not passed to it before.
    pub unsafe fn on_event(
        &mut self,
        stream: &Stream,
        event: &StreamEvent<'_>,
    ) -> Result<(), Status> {
        match event {
            StreamEvent::SendComplete {
                client_context,
                cancelled,
            } => {
                if *cancelled {
                    // The stream was aborted, or its connection has ended.
                    self.is_finished = true;
                }
                // SAFETY: the address is that of `Sending::send`, and msquic reports each once.
                let sent = unsafe { Box::from_raw(client_context.cast::<Sending>().cast_mut()) };
                self.under_way -= sent.length;
                self.fill(stream)
            }
            StreamEvent::IdealSendBufferSize { byte_count } => {
                self.ideal = (*byte_count).max(FIRST_IDEAL);
                self.fill(stream)
            }
            _ => Ok(()),
        }
    }
}

static ZEROS: [u8; CHUNK_SIZE] = [0; CHUNK_SIZE];

/// Bytes that msquic gets before it has said how many it wants.
const FIRST_IDEAL: u64 = 128 << 10;
