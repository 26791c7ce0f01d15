//! Hosts behind a proxy under attack.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use courser_adversary::Goals;

use crate::process::loopback;

/// A host that answers each packet, and one that never does. Their threads end with them.
pub(super) struct Hosts {
    pub(super) goals: Goals,
    silent_bytes: Arc<AtomicU64>,
    /// The threads end when this is the only owner.
    life: Arc<()>,
}

impl Hosts {
    /// Opens both sockets.
    pub(super) fn start() -> Result<Self, String> {
        let bind = || {
            let socket = UdpSocket::bind(loopback())?;
            socket.set_read_timeout(Some(TURN))?;
            Ok::<_, std::io::Error>(socket)
        };
        let (echo, silent) = bind()
            .and_then(|echo| Ok((echo, bind()?)))
            .map_err(|error| format!("cannot open a socket: {error}"))?;
        let address = |socket: &UdpSocket| socket.local_addr().map_err(|error| error.to_string());
        let goals = Goals {
            echo: address(&echo)?,
            silent: address(&silent)?,
        };
        let life = Arc::new(());
        let silent_bytes = Arc::new(AtomicU64::new(0));
        let counter = silent_bytes.clone();
        serve(echo, &life, |socket, packet, from| {
            // A full buffer drops the answer.
            let _ = socket.send_to(packet, from);
        });
        serve(silent, &life, move |_, packet, _| {
            counter.fetch_add(packet.len() as u64, Ordering::Relaxed);
        });
        Ok(Self {
            goals,
            silent_bytes,
            life,
        })
    }

    /// Returns the bytes that the silent host has received.
    pub(super) fn silent_bytes(&self) -> u64 {
        debug_assert!(Arc::strong_count(&self.life) > 0);
        self.silent_bytes.load(Ordering::Relaxed)
    }
}

fn serve(
    socket: UdpSocket,
    life: &Arc<()>,
    on_packet: impl Fn(&UdpSocket, &[u8], SocketAddr) + Send + 'static,
) {
    let life = Arc::downgrade(life);
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while life.strong_count() > 0 {
            if let Ok((len, from)) = socket.recv_from(&mut buffer) {
                on_packet(&socket, &buffer[..len], from);
            }
        }
    });
}

/// Time after which a thread sees that its owner is gone.
const TURN: Duration = Duration::from_millis(100);
