//! Measures the loss of a stream of datagrams on its way through another program. Sends batches at
//! a fixed rate to one address, receives them on another, and prints how many are missing. It loads
//! `courser sim proxy` without the limits of congestion control and encryption.
//!
//! `cargo run --profile dist -p courser-udp --example blast -- TO LISTEN GBITS [seconds] [size]
//! [segments]`
//!
//! `segments` is the number of datagrams per send call; 1 stands for a sender without offload.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use courser_base::Ecn;
use courser_udp::{RECEIVE_BUFFER_LEN, Transmit, UdpSocket};
use socket2::SockRef;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [to, listen, gigabits, rest @ ..] = &arguments[..] else {
        return Err(io::Error::other(
            "usage: blast TO LISTEN GBITS [seconds] [size] [segments]",
        ));
    };
    let (to, listen) = (parse::<SocketAddr>(to)?, parse::<SocketAddr>(listen)?);
    let number = |at: usize, default| rest.get(at).map_or(Ok(default), |text| parse(text));
    let (seconds, size, segments): (u64, usize, usize) =
        (number(0, 5)? as u64, number(1, 1_452)?, number(2, 45)?);

    let (receiver, sender) = (waiting_socket(listen)?, waiting_socket(unspecified(to))?);
    sender.connect(to)?;
    let contents = vec![0; size * segments];
    let batch = Transmit {
        destination: to,
        source: None,
        ecn: Ecn::Ect0,
        segment_size: Some(size),
        contents: &contents,
    };
    let pause = Duration::from_secs_f64(contents.len() as f64 * 8e-9 / parse::<f64>(gigabits)?);

    let stop = AtomicBool::new(false);
    let took = thread::scope(|scope| {
        scope.spawn(|| receive_until(&stop, &receiver));
        let took = send_for(Duration::from_secs(seconds), pause, (&sender, &batch));
        // Datagrams in transit still count.
        thread::sleep(Duration::from_secs(1));
        stop.store(true, Relaxed);
        took
    })?;
    let (sent, received) = (sender.counters(), receiver.counters());
    let rate = |bytes: u64| bytes as f64 * 8e-9 / took.as_secs_f64();
    println!(
        "sent {} datagrams, {:.2} Gbit/s; received {}, {} missing; {} receive calls, {} buffers \
         dropped here",
        sent.sent_datagrams,
        rate(sent.sent_bytes),
        received.received_datagrams,
        sent.sent_datagrams - received.received_datagrams,
        received.receive_calls,
        receiver.receive_overflow().unwrap_or(0),
    );
    Ok(())
}

fn parse<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse()
        .map_err(|_| io::Error::other(format!("invalid argument '{text}'")))
}

fn unspecified(to: SocketAddr) -> SocketAddr {
    if to.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0; 16], 0).into()
    }
}

/// Binds a socket whose calls block instead of returning `WouldBlock`.
fn waiting_socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    SockRef::from(&socket).set_nonblocking(false)?;
    SockRef::from(&socket).set_read_timeout(Some(Duration::from_millis(100)))?;
    Ok(socket)
}

/// Sends a batch every `pause`. A sender that is late by a millisecond or more skips the batches it
/// missed.
fn send_for(
    duration: Duration,
    pause: Duration,
    (socket, batch): (&UdpSocket, &Transmit<'_>),
) -> io::Result<Duration> {
    let start = Instant::now();
    let mut next = start;
    while start.elapsed() < duration {
        let now = Instant::now();
        if let Some(early) = next.checked_duration_since(now) {
            // The receiver may share this core.
            thread::sleep(early);
            continue;
        }
        next = (next + pause).max(now.checked_sub(Duration::from_millis(1)).unwrap_or(now));
        socket.try_send(batch)?;
    }
    Ok(start.elapsed())
}

fn receive_until(stop: &AtomicBool, socket: &UdpSocket) {
    let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
    while !stop.load(Relaxed) {
        let _ = socket.try_receive(&mut buffer); // a timeout, or counted by the socket
    }
}
