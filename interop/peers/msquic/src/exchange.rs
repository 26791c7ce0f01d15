//! Data of streams in both directions.

use std::ffi::c_void;

use msquic::{BufferRef, SendFlags, Status, Stream};

use crate::failed;

/// Data that msquic reads until it reports `SendComplete` with the address of this value.
struct Sending {
    _data: Vec<u8>,
    buffers: [BufferRef; 1],
}

/// Sends the whole data of a stream.
pub(crate) fn send(stream: &Stream, data: Vec<u8>, flags: SendFlags) -> Result<(), Status> {
    if u32::try_from(data.len()).is_err() {
        return Err(failed());
    }
    let buffers = [BufferRef::from(data.as_slice())];
    let sending = Box::into_raw(Box::new(Sending {
        _data: data,
        buffers,
    }));
    let context = sending.cast_const().cast();
    // SAFETY: the value lives until `on_send_complete`.
    let sent = unsafe { stream.send(&(*sending).buffers, flags | SendFlags::FIN, context) };
    // SAFETY: msquic did not take the data.
    sent.inspect_err(|_| drop(unsafe { Box::from_raw(sending) }))
}

/// Frees the data of a call to [`send`].
///
/// # Safety
/// `context` is from the event `SendComplete` of a stream, whose data was sent with [`send`].
pub(crate) unsafe fn on_send_complete(context: *const c_void) {
    // SAFETY: the address is that of `send`, and msquic reports each once.
    drop(unsafe { Box::from_raw(context.cast::<Sending>().cast_mut()) });
}

/// Appends received data.
pub(crate) fn receive(content: &mut Vec<u8>, buffers: &[BufferRef]) {
    for buffer in buffers {
        content.extend_from_slice(buffer.as_bytes());
    }
}
