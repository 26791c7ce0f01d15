//! Measures the highest rate of datagrams on this machine. Sends batches over loopback without any
//! protocol, with one thread sending and one receiving, and prints the rates of both.
//!
//! `cargo run --profile dist -p courser-udp --example pipe [seconds] [segment size] [segments]`

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use courser_base::Ecn;
use courser_udp::{RECEIVE_BUFFER_LEN, Transmit, UdpSocket};
use socket2::SockRef;

fn main() -> io::Result<()> {
    let argument = |at| {
        env::args()
            .nth(at)
            .and_then(|text| text.parse::<usize>().ok())
    };
    let duration = Duration::from_secs(argument(1).unwrap_or(3) as u64);
    let segment_size = argument(2).unwrap_or(1_452);
    let contents = vec![0; segment_size * argument(3).unwrap_or(45)];

    let (receiver, sender) = (waiting_socket()?, waiting_socket()?);
    sender.connect(receiver.local_addr()?)?;
    println!("{:?}", receiver.capabilities());
    let batch = Transmit {
        destination: receiver.local_addr()?,
        source: None,
        ecn: Ecn::Ect0,
        segment_size: Some(segment_size),
        contents: &contents,
    };

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| receive_until(&stop, &receiver));
        let result = send_for(duration, &sender, &batch);
        stop.store(true, Relaxed);
        result
    })?;
    let (sent, received) = (sender.counters(), receiver.counters());
    let gigabits = |bytes: u64| bytes as f64 * 8e-9 / duration.as_secs_f64();
    println!(
        "sent {:.1} Gbit/s in {} calls",
        gigabits(sent.sent_bytes),
        sent.send_calls
    );
    let (rate, calls) = (gigabits(received.received_bytes), received.receive_calls);
    println!("received {rate:.1} Gbit/s in {calls} calls");
    println!(
        "dropped {} batches",
        receiver.receive_overflow().unwrap_or(0)
    );
    Ok(())
}

/// Binds a socket whose calls block instead of returning `WouldBlock`.
fn waiting_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(([127, 0, 0, 1], 0).into())?;
    SockRef::from(&socket).set_nonblocking(false)?;
    SockRef::from(&socket).set_read_timeout(Some(Duration::from_millis(100)))?;
    Ok(socket)
}

fn send_for(duration: Duration, socket: &UdpSocket, batch: &Transmit<'_>) -> io::Result<()> {
    let end = Instant::now() + duration;
    while Instant::now() < end {
        socket.try_send(batch)?;
    }
    Ok(())
}

fn receive_until(stop: &AtomicBool, socket: &UdpSocket) {
    let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
    while !stop.load(Relaxed) {
        let _ = socket.try_receive(&mut buffer); // a timeout, or counted by the socket
    }
}
