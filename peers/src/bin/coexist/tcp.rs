//! TCP of the kernel, with its congestion control set by name: the default of the machine may be
//! another.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use peers::Failure;
use peers::namespace::Namespace;
use socket2::{Domain, Socket, Type};

use crate::network::RECEIVER;

/// Reads and discards what arrives at this port of the receiver.
pub(crate) fn discard(receiver: &Namespace, port: u16) -> Result<(), Failure> {
    let listener = receiver.inside(|| TcpListener::bind((RECEIVER, port)))??;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || swallow(stream));
        }
    });
    Ok(())
}

fn swallow(mut stream: TcpStream) {
    let mut buffer = vec![0; 256 << 10];
    while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
}

/// Connects from the sender to this port with the named congestion control.
fn connect(sender: &Namespace, port: u16, control: &str) -> Result<TcpStream, Failure> {
    sender.inside(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket
            .set_tcp_congestion(control.as_bytes())
            .map_err(|error| format!("the kernel has no TCP {control}: {error}"))?;
        socket.connect(&SocketAddr::from((RECEIVER, port)).into())?;
        Ok(socket.into())
    })?
}

/// Sends for this time to a port.
pub(crate) fn send_for(
    sender: &Namespace,
    port: u16,
    control: &str,
    time: Duration,
) -> Result<(), Failure> {
    let mut stream = connect(sender, port, control)?;
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    let (end, data) = (Instant::now() + time, vec![0; 64 << 10]);
    thread::spawn(move || {
        while Instant::now() < end {
            // A full buffer is no error.
            let _ = stream.write(&data);
        }
        let _ = stream.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Sends a number of bytes over a connection of its own. Returns the time until all have arrived.
fn send_bytes(sender: &Namespace, port: u16, bytes: usize) -> Result<Duration, Failure> {
    let began = Instant::now();
    let mut stream = connect(sender, port, "cubic")?;
    stream.write_all(&vec![0; bytes])?;
    stream.shutdown(Shutdown::Write)?;
    // The receiver closes when it has read everything.
    let _ = stream.read(&mut [0])?;
    Ok(began.elapsed())
}

/// Short transfers, one after another.
pub(crate) struct ShortFlows {
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<Result<Vec<Duration>, String>>,
}

impl ShortFlows {
    /// Begins to send `bytes` again and again with pauses between the transfers.
    pub(crate) fn start(sender: &Namespace, port: u16, bytes: usize, pause: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (stop, sender) = (is_over.clone(), sender.clone());
        let thread = thread::spawn(move || {
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let time = send_bytes(&sender, port, bytes).map_err(|error| error.to_string())?;
                times.push(time);
                thread::sleep(pause);
            }
            Ok(times)
        });
        Self { is_over, thread }
    }

    /// Ends after the present transfer. Returns the times of all.
    pub(crate) fn finish(self) -> Result<Vec<Duration>, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let times = self.thread.join();
        Ok(times.map_err(|_| "the thread of the short flows failed")??)
    }
}
