//! Reports the datagrams of an emulator to programs that analyse them.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use courser_base::Ecn;

/// Receives all datagrams of an emulator, on the thread that runs it.
pub trait Observer: fmt::Debug + Send {
    /// Called for each datagram that enters or leaves the link.
    fn on_datagram(&mut self, datagram: &ObservedDatagram);
}

/// A datagram that enters or leaves the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedDatagram {
    /// The time since the start of the link.
    pub at: Duration,
    /// The end of the link at which the datagram was observed.
    pub place: ObservationPoint,
    /// The address from which the client sends.
    pub client: SocketAddr,
    /// The client's address as the server sees it; `None` if the system does not report it.
    pub translated: Option<SocketAddr>,
    /// The ECN mark of the datagram.
    pub ecn: Ecn,
    /// The UDP payload as observed at that end.
    pub payload: Bytes,
}

/// The end of the link at which a datagram was observed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ObservationPoint {
    /// The client sent the datagram.
    FromClient,
    /// The datagram reaches the server.
    ToServer,
    /// The server sent the datagram.
    FromServer,
    /// The datagram reaches the client.
    ToClient,
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::{Emulator, Plan};

    #[derive(Debug)]
    struct Forward(Sender<ObservedDatagram>);

    impl Observer for Forward {
        fn on_datagram(&mut self, datagram: &ObservedDatagram) {
            self.0.send(datagram.clone()).expect("the test listens");
        }
    }

    #[test]
    fn datagram_is_observed_at_both_ends_and_a_lost_one_at_its_entrance() {
        let loopback = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (client, server) = (loopback(), loopback());
        let mut emulator = Emulator::bind(Plan {
            listen: "127.0.0.1:0".parse().expect("an address"),
            server: server.local_addr().expect("bound"),
            link: "1ms,drop=2".parse().expect("a link"),
            seed: 1,
            max_clients: 1,
            idle: Duration::from_secs(60),
            amplification_bytes: 0,
            hold: 1 << 20,
        })
        .expect("bound");
        let (sender, observed) = channel();
        emulator.set_observer(Box::new(Forward(sender)));
        for text in ["one", "two"] {
            let sent = client.send_to(text.as_bytes(), emulator.local_addr());
            assert_eq!(sent.expect("sent"), 3);
        }
        emulator
            .run(|status| status.to_server().packets_out < 1)
            .expect("runs");
        let seen: Vec<_> = observed.try_iter().collect();
        let places: Vec<_> = seen
            .iter()
            .map(|datagram| (datagram.place, &datagram.payload[..]))
            .collect();
        let expected: [(ObservationPoint, &[u8]); 3] = [
            (ObservationPoint::FromClient, b"one"),
            (ObservationPoint::FromClient, b"two"),
            (ObservationPoint::ToServer, b"one"),
        ];
        assert_eq!(places, expected);
        let mut buffer = [0; 10];
        let (_, source) = server.recv_from(&mut buffer).expect("arrived");
        assert_eq!(seen[0].client, client.local_addr().expect("bound"));
        assert_eq!(seen[2].translated, Some(source));
    }

    #[test]
    fn times_of_the_link_begin_with_the_first_datagram() {
        let loopback = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (client, server) = (loopback(), loopback());
        let mut emulator = Emulator::bind(Plan {
            listen: "127.0.0.1:0".parse().expect("an address"),
            server: server.local_addr().expect("bound"),
            link: "blackhole=0ms:400ms".parse().expect("a link"),
            seed: 1,
            max_clients: 1,
            idle: Duration::from_secs(60),
            amplification_bytes: 0,
            hold: 1 << 20,
        })
        .expect("bound");
        let address = emulator.local_addr();
        let start = std::time::Instant::now();
        let mut is_sent = false;
        emulator.wait_for_client(|| {
            // The blackhole would be over by now if it had started earlier.
            if !is_sent && start.elapsed() > Duration::from_millis(500) {
                client.send_to(b"one", address).expect("sent");
                is_sent = true;
            }
            true
        });
        emulator
            .run(|status| status.to_server().packets_in < 1)
            .expect("runs");
        assert!(is_sent);
        assert_eq!(emulator.report().to_server.link.dropped.blackhole, 1);
    }
}
