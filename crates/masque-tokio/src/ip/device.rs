//! The network behind an IP proxy.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;

/// The network to which an IP proxy sends the packets of its clients, and from which it takes packets for them: a TUN
/// device, or a stack in the program.
///
/// The proxy has judged the packets that it sends: their headers are valid, their sources are those of the clients. It
/// judges the packets that it receives, and sends them to the client that has their destination.
///
/// ```
/// # mod courser { pub use courser_masque_tokio as masque; }
/// use std::io;
/// use std::sync::Mutex;
/// use std::task::{Context, Poll};
///
/// use bytes::Bytes;
/// use courser::masque::Device;
///
/// /// A network that keeps all packets.
/// #[derive(Default)]
/// struct Recorder(Mutex<Vec<Bytes>>);
///
/// impl Device for Recorder {
///     fn send_many(&self, packets: &mut Vec<Bytes>) -> io::Result<usize> {
///         let count = packets.len();
///         self.0.lock().unwrap_or_else(|error| error.into_inner()).append(packets);
///         Ok(count)
///     }
///
///     fn poll_receive_many(&self, _: &mut Context<'_>, _: &mut Vec<Bytes>, _: usize) -> Poll<io::Result<usize>> {
///         Poll::Pending // It never sends any.
///     }
///
///     fn mtu(&self) -> usize {
///         1500
///     }
/// }
/// ```
pub trait Device: Send + Sync {
    /// Sends packets to the network without waiting, and empties the list. Returns the number of packets that were
    /// accepted; the others are dropped, as by an interface whose queue is full. Several tasks call it at the same time.
    ///
    /// # Errors
    /// Returns an error if the device cannot be used any more. The list is empty then too.
    fn send_many(&self, packets: &mut Vec<Bytes>) -> io::Result<usize>;

    /// Polls for packets from the network, and appends up to `limit` of those that have arrived. Returns their number, at
    /// least one. One task calls it at a time, and only the waker of the last call has to be woken.
    ///
    /// # Errors
    /// Returns an error if the device cannot be used any more.
    fn poll_receive_many(
        &self,
        cx: &mut Context<'_>,
        packets: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<io::Result<usize>>;

    /// Returns the longest packet that [`send_many`](Self::send_many) accepts, in bytes.
    fn mtu(&self) -> usize;
}
