//! Sends a datagram of a version that no server supports, and reads the Version Negotiation packet
//! (RFC 9000 §6.1).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use courser::runtime::random_seed;
use courser_measure::target;
use courser_wire::packet::version_negotiation;
use courser_wire::{VERSION_1, VERSION_2};
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

/// Returns the versions that the server offers, or `None` if it does not answer. Ignores ICMP messages, which
/// the socket reports as errors.
///
/// # Errors
/// Returns an error if no socket can be opened.
pub(crate) async fn negotiate(
    address: SocketAddr,
    limit: Duration,
) -> io::Result<Option<Vec<u32>>> {
    let local = SocketAddr::from((target::local_ip_for(address.ip()), 0));
    let socket = UdpSocket::bind(local).await?;
    socket.connect(address).await?;
    let seed = random_seed()?;
    let datagram = unknown_version(&seed);
    let mut answer = vec![0; 2048];
    for _ in 0..ATTEMPTS {
        let answered = async {
            // An error may be about an earlier datagram.
            let _ = socket.send(&datagram).await;
            loop {
                match socket.recv(&mut answer).await {
                    Ok(len) => {
                        if let Some(versions) = read(&answer[..len], &seed) {
                            return versions;
                        }
                    }
                    Err(_) => sleep(AFTER_ERROR).await,
                }
            }
        };
        if let Ok(versions) = timeout(limit / ATTEMPTS, answered).await {
            return Ok(Some(versions));
        }
    }
    Ok(None)
}

/// Returns a datagram with a reserved version and the connection IDs that the seed determines.
fn unknown_version(seed: &[u8; 32]) -> Vec<u8> {
    let mut datagram = vec![0xc0];
    datagram.extend(RESERVED.to_be_bytes());
    for id in [&seed[..8], &seed[8..16]] {
        datagram.push(8);
        datagram.extend(id);
    }
    datagram.resize(1200, 0);
    datagram
}

/// Returns the versions in a packet that repeats the connection IDs of the sent datagram (RFC 8999 §6).
fn read(datagram: &[u8], seed: &[u8; 32]) -> Option<Vec<u32>> {
    let answer = version_negotiation::decode(datagram).ok()?;
    let is_ours = answer.destination == &seed[8..16] && answer.source == &seed[..8];
    is_ours.then(|| answer.versions().take(MAX_VERSIONS).collect())
}

/// Returns true for versions that are reserved to exercise negotiation (RFC 9000 §15).
pub(crate) fn is_reserved(version: u32) -> bool {
    version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// Returns the usual name of a version.
pub(crate) fn version_name(version: u32) -> String {
    match version {
        VERSION_1 => "v1".to_owned(),
        VERSION_2 => "v2".to_owned(),
        0xff00_0000..=0xff00_00ff => format!("draft-{}", version & 0xff),
        reserved if is_reserved(reserved) => "reserved".to_owned(),
        other => format!("{other:#010x}"),
    }
}

const RESERVED: u32 = 0x1a2a_3a4a;
const ATTEMPTS: u32 = 3;
/// The pause after an error, so that a failing socket does not cause a busy loop.
const AFTER_ERROR: Duration = Duration::from_millis(10);
/// The largest number of versions that are read from an answer (K237).
const MAX_VERSIONS: usize = 32;

#[cfg(test)]
mod tests {
    use courser_wire::Writer;

    use super::*;

    fn answer(destination: &[u8], source: &[u8], versions: &[u32]) -> Vec<u8> {
        let len = version_negotiation::encoded_len(destination, source, versions);
        let mut bytes = vec![0; len];
        version_negotiation::encode(
            &mut Writer::new(&mut bytes),
            0,
            destination,
            source,
            versions,
        );
        bytes
    }

    #[tokio::test]
    async fn icmp_message_is_neither_an_answer_nor_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("bound");
        drop(socket);
        let found = negotiate(address, Duration::from_millis(300)).await;
        assert_eq!(found.expect("silence"), None);
    }

    #[test]
    fn datagram_has_a_reserved_version_and_full_size() {
        let datagram = unknown_version(&[7; 32]);
        assert_eq!(datagram.len(), 1200);
        assert!(is_reserved(RESERVED) && !is_reserved(1) && !is_reserved(0x6b33_43cf));
    }

    #[test]
    fn answers_are_bounded_and_must_repeat_the_connection_ids() {
        let mut seed = [1; 32];
        seed[8..16].fill(2);
        let good = answer(&[2; 8], &[1; 8], &[1, 0x6b33_43cf, 0x0a1a_2a3a]);
        assert_eq!(read(&good, &seed), Some(vec![1, 0x6b33_43cf, 0x0a1a_2a3a]));
        assert_eq!(read(&answer(&[1; 8], &[2; 8], &[1]), &seed), None);
        let long = answer(&[2; 8], &[1; 8], &[1; 100]);
        assert_eq!(read(&long, &seed).map(|it| it.len()), Some(MAX_VERSIONS));
        for len in 0..good.len() {
            // A list that is cut between two versions is a valid shorter list.
            if let Some(versions) = read(&good[..len], &seed) {
                assert!(versions.len() < 3, "{len}");
            }
        }
    }
}
