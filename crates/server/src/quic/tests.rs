//! Tests of the order of reports when an endpoint ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::task::{Context, Poll};

use courser_quic::runtime::{Received, Transmit, UdpSocket};

use super::*;

/// A socket that fails as if its file descriptor were closed.
#[derive(Debug)]
struct ClosedSocket;

fn closed_error<T>() -> io::Result<T> {
    let code = if cfg!(windows) { 6 } else { 9 };
    Err(io::Error::from_raw_os_error(code))
}

impl UdpSocket for ClosedSocket {
    fn poll_receive(&self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<Received>> {
        Poll::Ready(closed_error())
    }

    fn is_readable(&self, _: &mut Context<'_>) -> bool {
        true
    }

    fn try_send(&self, _: &Transmit<'_>) -> io::Result<usize> {
        closed_error()
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(closed_error())
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([192, 0, 2, 1], 4433)))
    }
}

#[tokio::test]
async fn last_event_of_a_socket_is_reported_before_the_end() {
    let endpoint = Endpoint::builder()
        .transport(ClosedSocket)
        .expect("a runtime");
    let reported = Arc::new(Mutex::new(Vec::new()));
    let listener = reported.clone();
    let events = Events::to(move |event| {
        let Event::Socket { port, event } = event else {
            panic!("{event}");
        };
        assert_eq!(*port, 4433);
        listener.lock().expect("no panic").push(event.clone());
    });
    let sockets = SocketReports {
        endpoint: &endpoint,
        events: &events,
        port: 4433,
    };
    // Completes as soon as the last event is available.
    let work = async {
        while endpoint.stopped_shards().0 == 0 {
            tokio::task::yield_now().await;
        }
    };
    sockets.during(work).await;
    let reported = reported.lock().expect("no panic");
    let last = reported.last().expect("an event");
    assert!(matches!(last, SocketEvent::Stopped { .. }), "{last}");
}
