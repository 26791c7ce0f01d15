//! The relay between two interfaces, which delays each frame.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvfrom, send,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::unistd::gettid;
use peers::Failure;

use crate::flows::Flows;
use crate::frame;

/// The threads of a relay, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A frame that waits for its time.
struct Delayed {
    due: Instant,
    frame: Vec<u8>,
}

impl Relay {
    /// Begins to relay between two interfaces of the thread's namespace, with this delay in each
    /// direction. Frames to the right enter the queue that `flows` describes.
    pub(crate) fn start(
        left: &str,
        right: &str,
        delay: Duration,
        flows: &Arc<Flows>,
    ) -> Result<Self, Failure> {
        // A socket does not receive what it has sent itself, so another one sees what leaves.
        let tap = open(right)?;
        let (left, right) = (Arc::new(open(left)?), Arc::new(open(right)?));
        let mut relay = Self {
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        let (to_right, from_left) = channel();
        let (to_left, from_right) = channel();
        for (source, to) in [(left.clone(), to_right), (right.clone(), to_left)] {
            let is_over = relay.is_over.clone();
            relay.spawn(move || receive(&source, &is_over, delay, &to));
        }
        let (is_over, departures) = (relay.is_over.clone(), flows.clone());
        relay.spawn(move || watch(&tap, &is_over, &departures));
        let flows = flows.clone();
        relay.spawn(move || deliver(&from_left, &right, Some(&flows)));
        relay.spawn(move || deliver(&from_right, &left, None));
        Ok(relay)
    }

    fn spawn(&mut self, work: impl FnOnce() + Send + 'static) {
        self.threads.push(thread::spawn(|| {
            hurry();
            work();
        }));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Gives the thread the priority of a machine in the network, where that is allowed.
fn hurry() {
    let _ = Command::new("chrt")
        .args(["--fifo", "--pid", "5", &gettid().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Opens a packet socket on an interface.
fn open(interface: &str) -> Result<OwnedFd, Failure> {
    let address = link_address(interface)?;
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    )?;
    bind(socket.as_raw_fd(), &address)?;
    // A full queue of the link must not block the sender.
    setsockopt(&socket, sockopt::SndBufForce, &BUFFER)?;
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
    setsockopt(
        &socket,
        sockopt::ReceiveTimeout,
        &TimeVal::milliseconds(100),
    )?;
    Ok(socket)
}

fn link_address(interface: &str) -> Result<LinkAddr, Failure> {
    let address = getifaddrs()?
        .filter(|found| found.interface_name == interface)
        .find_map(|found| found.address?.as_link_addr().copied());
    Ok(address.ok_or_else(|| format!("no interface {interface}"))?)
}

/// Receives frames and passes them on with the time at which they are due.
fn receive(socket: &OwnedFd, is_over: &AtomicBool, delay: Duration, to: &Sender<Delayed>) {
    frames(socket, is_over, |frame, is_outgoing| {
        let due = Instant::now() + delay;
        let frame = frame.to_vec();
        // Without anyone to deliver them, frames are lost.
        let _ = is_outgoing || to.send(Delayed { due, frame }).is_ok();
    });
}

/// Notes the frames that leave.
fn watch(socket: &OwnedFd, is_over: &AtomicBool, flows: &Flows) {
    frames(socket, is_over, |frame, is_outgoing| {
        if is_outgoing {
            flows.left(frame.len());
        }
    });
}

/// Calls `act` with each frame of an interface, and with true for those that leave through it.
fn frames(socket: &OwnedFd, is_over: &AtomicBool, mut act: impl FnMut(&[u8], bool)) {
    let mut buffer = vec![0; 65_536];
    while !is_over.load(Ordering::Relaxed) {
        match recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut buffer) {
            Ok((bytes, from)) => {
                let is_outgoing = from.is_some_and(|from| from.pkttype() == OUTGOING);
                act(&buffer[..bytes], is_outgoing);
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            // The interface is gone.
            Err(_) => return,
        }
    }
}

/// Sends frames when they are due.
fn deliver(frames: &Receiver<Delayed>, socket: &OwnedFd, flows: Option<&Flows>) {
    for Delayed { due, mut frame } in frames {
        let wait = due.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            thread::sleep(wait);
        }
        let flow = frame::complete(&mut frame);
        if let Some(flows) = flows {
            flows.enter(flow, frame.len());
        }
        match send(socket.as_raw_fd(), &frame, MsgFlags::empty()) {
            Ok(_) => {}
            Err(Errno::ENOBUFS) => {
                if let Some(flows) = flows {
                    flows.dropped();
                }
            }
            // The interface is gone, because the run is over.
            Err(Errno::ENXIO | Errno::ENODEV | Errno::ENETDOWN) => return,
            Err(error) => {
                let error = io::Error::from(error);
                eprintln!("coexist: a frame of {} bytes: {error}", frame.len());
            }
        }
    }
}

/// `PACKET_OUTGOING` of packet(7).
const OUTGOING: u8 = 4;

/// Bytes of socket buffers.
const BUFFER: usize = 64 << 20;
