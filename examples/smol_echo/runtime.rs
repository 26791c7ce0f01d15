//! smol as a runtime of courser.

use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use courser::Capabilities;
use courser::runtime::{
    self, PacketTooBig, Received, Runtime, SystemSocket, Task, Timer, Transmit, UdpSocket, Work,
};

/// Runs tasks on smol's global executor, with its reactor and its timers.
#[derive(Debug)]
pub struct Smol;

impl Runtime for Smol {
    fn spawn(&self, task: Task, _: &'static Location<'static>) {
        smol::spawn(runtime::within(Arc::new(Self), task)).detach();
    }

    fn spawn_blocking(&self, work: Work) {
        smol::unblock(work).detach();
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Alarm {
            timer: smol::Timer::never(),
            deadline: None,
        })
    }

    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn UdpSocket>> {
        let socket = smol::Async::new_nonblocking(SystemSocket::bind(address)?)?;
        Ok(Box::new(Socket(socket)))
    }

    fn adopt(&self, socket: std::net::UdpSocket) -> io::Result<Box<dyn UdpSocket>> {
        let socket = smol::Async::new_nonblocking(SystemSocket::from_std(socket)?)?;
        Ok(Box::new(Socket(socket)))
    }
}

#[derive(Debug)]
struct Alarm {
    timer: smol::Timer,
    deadline: Option<Instant>,
}

impl Timer for Alarm {
    fn set(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if self.deadline != Some(deadline) {
            self.timer.set_at(deadline);
            self.deadline = Some(deadline);
        }
        let poll = Pin::new(&mut self.timer).poll(cx).map(drop);
        if poll.is_ready() {
            self.deadline = None;
        }
        poll
    }

    fn is_elapsed(&self) -> bool {
        self.deadline
            .is_none_or(|deadline| deadline <= Instant::now())
    }
}

/// The system's socket with smol's notifications of its readiness.
#[derive(Debug)]
struct Socket(smol::Async<SystemSocket>);

impl UdpSocket for Socket {
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        loop {
            match self.0.get_ref().try_receive(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
            ready!(self.0.poll_readable(cx))?;
        }
    }

    fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        self.0.poll_readable(cx).is_ready()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        self.0.get_ref().try_send_some(transmit)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_writable(cx)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get_ref().local_addr()
    }

    fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        self.0.get_ref().interface_mtu(peer)
    }

    fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        self.0.get_ref().take_packet_too_big()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.get_ref().capabilities()
    }

    fn counters(&self) -> courser::Counters {
        self.0.get_ref().counters()
    }

    fn receive_overflow(&self) -> Option<u64> {
        self.0.get_ref().receive_overflow()
    }
}
