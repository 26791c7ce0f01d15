//! Checks the capabilities of UDP sockets with datagrams that this process sends to itself over loopback.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use courser_base::Ecn;
use courser_udp::{Capabilities, RECEIVE_BUFFER_LEN, Transmit, UdpSocket};
use courser_units::binary_size;

use crate::doctor::report::counted;
use crate::finding::Finding;

/// The result of sending a batch over loopback.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trial {
    /// The capabilities that the system reports.
    pub(crate) capabilities: Capabilities,
    /// The number of datagrams sent, and of the calls that sent them.
    pub(crate) sent: (usize, usize),
    /// The number of datagrams that arrived, and of the calls that received them.
    pub(crate) received: (usize, usize),
    /// The marks of the datagrams that arrived.
    pub(crate) marks: Vec<Ecn>,
    /// The number of datagrams that arrived when they were sent again one by one and without marks, because
    /// the batch was lost.
    pub(crate) plain: usize,
}

/// Sends a batch of datagrams with ECT(0) to a socket of this process. If it does not arrive completely,
/// sends as many datagrams one by one and without marks.
pub(crate) fn measure(address: IpAddr) -> io::Result<Trial> {
    let receiver = UdpSocket::bind(SocketAddr::from((address, 0)))?;
    let sender = UdpSocket::bind(SocketAddr::from((address, 0)))?;
    let destination = receiver.local_addr()?;
    let contents = vec![7; BATCH * SIZE];
    let transmit = |contents, ecn, segment_size| Transmit {
        destination,
        source: None,
        ecn,
        segment_size,
        contents,
    };
    sender.try_send(&transmit(&contents, Ecn::Ect0, Some(SIZE)))?;
    let sent = (BATCH, number(sender.counters().send_calls));
    let marks = receive(&receiver)?;
    let calls = number(receiver.counters().receive_calls);
    let received = marks.iter().map(|(count, _)| count).sum();
    let mut plain = 0;
    if received < BATCH {
        for datagram in contents.chunks(SIZE) {
            sender.try_send(&transmit(datagram, Ecn::NotEct, None))?;
        }
        plain = receive(&receiver)?.iter().map(|(count, _)| count).sum();
    }
    Ok(Trial {
        capabilities: receiver.capabilities(),
        sent,
        received: (received, calls),
        marks: marks.into_iter().map(|(_, mark)| mark).collect(),
        plain,
    })
}

/// Receives until a batch is complete or the time limit is reached. Returns the numbers of datagrams and
/// their marks.
fn receive(receiver: &UdpSocket) -> io::Result<Vec<(usize, Ecn)>> {
    let (mut buffer, mut arrived, mut all) = (vec![0; RECEIVE_BUFFER_LEN], 0, Vec::new());
    let deadline = Instant::now() + RECEIVE_TIMEOUT;
    while arrived < BATCH && Instant::now() < deadline {
        match receiver.try_receive(&mut buffer) {
            Ok(batch) => {
                arrived += batch.count();
                all.push((batch.count(), batch.ecn));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn number(calls: u64) -> usize {
    usize::try_from(calls).unwrap_or(usize::MAX)
}

/// Returns the loopback addresses of both versions of IP.
pub(crate) fn loopback() -> [IpAddr; 2] {
    [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
}

/// Converts the measurements to findings. The first one is that over IPv4.
pub(crate) fn check(trials: &[(IpAddr, io::Result<Trial>)]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (address, outcome) in trials {
        match outcome {
            Ok(trial) if found.is_empty() => found.extend(explain(trial)),
            // Over IPv6, only the marks can differ, because they use another socket option.
            Ok(trial) => found.push(marks("ECN over IPv6", trial)),
            Err(error) if address.is_ipv6() => {
                let why = "clients are reached over IPv4 only";
                found.push(
                    Finding::fact("IPv6", format!("no loopback address: {error}")).because(why),
                );
            }
            Err(error) => {
                let why = "QUIC needs UDP";
                found.push(Finding::bad(
                    "UDP",
                    format!("cannot send to {address}: {error}"),
                    why,
                ));
            }
        }
    }
    found
}

fn explain(trial: &Trial) -> Vec<Finding> {
    let capabilities = &trial.capabilities;
    let mut found = vec![
        buffer(
            "receive buffer",
            "rmem_max",
            capabilities.receive_buffer,
            capabilities.receive_buffer_wanted,
            "bulk receive drops packets while the process is busy",
        ),
        buffer(
            "send buffer",
            "wmem_max",
            capabilities.send_buffer,
            capabilities.send_buffer_wanted,
            "bulk send waits more often",
        ),
    ];
    let (datagrams, calls) = trial.sent;
    let saw = format!("{datagrams} datagrams sent in {}", counted(calls, "call"));
    found.push(match calls < datagrams {
        true => Finding::good(
            "GSO",
            format!("{saw}; a call can send up to {}", capabilities.gso_segments),
        ),
        false => Finding::weak("GSO", saw, "each datagram costs a system call when sending")
            .fix(OFFLOAD_FIX),
    });
    let (datagrams, calls) = trial.received;
    let saw = format!(
        "{datagrams} datagrams received in {}",
        counted(calls, "call")
    );
    found.push(match (datagrams, calls < datagrams) {
        (BATCH, true) => Finding::good("GRO", saw),
        (BATCH, false) => Finding::weak(
            "GRO",
            saw,
            "each datagram costs a system call when receiving",
        )
        .fix(OFFLOAD_FIX),
        _ if trial.plain == BATCH => Finding::weak(
            "GRO",
            format!("{datagrams} of {BATCH} datagrams of a batch with marks arrived, but all that were sent one by one without marks"),
            "batches or marks are lost without an error; courser stops using them",
        ),
        _ => {
            let saw = format!("only {datagrams} of {BATCH} datagrams arrived over loopback");
            Finding::bad(
                "GRO",
                saw,
                "a firewall or a full buffer drops datagrams of this machine to itself",
            )
        }
    });
    found.push(marks("ECN", trial));
    found
}

fn buffer(check: &str, limit: &str, bytes: usize, requested: usize, why: &str) -> Finding {
    let saw = format!(
        "{} of {} requested",
        binary_size(bytes as u64),
        binary_size(requested as u64)
    );
    match bytes < requested {
        true => {
            // The check of the kernel setting has the warning and the command.
            match cfg!(target_os = "linux") {
                true => Finding::fact(check, saw)
                    .because(why)
                    .fix(format!("see net.core.{limit} below")),
                false => Finding::weak(check, saw, why),
            }
        }
        false => Finding::good(check, saw),
    }
}

fn marks(check: &str, trial: &Trial) -> Finding {
    let kept = trial
        .marks
        .iter()
        .filter(|mark| **mark == Ecn::Ect0)
        .count();
    if kept > 0 && kept == trial.marks.len() {
        return Finding::good(check, "marks arrive as they were sent");
    }
    let saw = match trial.marks.first() {
        None => "no datagram arrived".to_owned(),
        Some(mark) => format!("sent as {:?}, received as {mark:?}", Ecn::Ect0),
    };
    let why = "routers that mark packets instead of dropping them cannot signal congestion to the sender (RFC 9000 §13.4)";
    Finding::weak(check, saw, why)
        .fix("remove the rule that clears the field: nft list ruleset | grep -i -e dscp -e ecn")
}

const OFFLOAD_FIX: &str =
    "install a kernel of 6.2 or later; sandboxes such as gVisor have no offload";
const BATCH: usize = 16;
const SIZE: usize = 1200;
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Verdict::{self, Bad, Fact, Good, Weak};

    fn trial() -> Trial {
        let mut capabilities = Capabilities::default();
        capabilities.gso_segments = 64;
        capabilities.receive_buffer = 7 << 20;
        capabilities.receive_buffer_wanted = 7 << 20;
        Trial {
            capabilities,
            sent: (16, 1),
            received: (16, 1),
            marks: vec![Ecn::Ect0],
            plain: 0,
        }
    }

    fn received(datagrams: usize, calls: usize, plain: usize) -> Trial {
        Trial {
            received: (datagrams, calls),
            plain,
            ..trial()
        }
    }

    fn marked(marks: Vec<Ecn>) -> Trial {
        Trial { marks, ..trial() }
    }

    fn verdict(trial: Trial, check_name: &str) -> Verdict {
        let found = check(&[(loopback()[0], Ok(trial))]);
        found
            .iter()
            .find(|it| it.name == check_name)
            .expect(check_name)
            .verdict
    }

    #[test]
    fn datagrams_arrive_over_loopback() {
        let trial = measure(loopback()[0]).expect("UDP over loopback");
        assert_eq!((trial.sent.0, trial.received.0), (BATCH, BATCH));
        assert!(!trial.marks.is_empty());
    }

    #[test]
    fn missing_capabilities_are_reported() {
        for (name, expected) in [
            ("receive buffer", Good),
            ("send buffer", Good),
            ("GSO", Good),
            ("GRO", Good),
            ("ECN", Good),
        ] {
            assert_eq!(verdict(trial(), name), expected, "{name}");
        }
        for (name, changed, expected) in [
            (
                "GSO",
                Trial {
                    sent: (16, 16),
                    ..trial()
                },
                Weak,
            ),
            ("GRO", received(16, 16, 0), Weak),
            ("GRO", received(3, 1, 0), Bad),
            ("GRO", received(0, 0, 16), Weak),
            ("ECN", marked(vec![Ecn::NotEct]), Weak),
            ("ECN", marked(Vec::new()), Weak),
        ] {
            assert_eq!(verdict(changed, name), expected, "{name}");
        }
        let mut small = trial();
        small.capabilities.receive_buffer = 212_992;
        let expected = if cfg!(target_os = "linux") {
            Fact
        } else {
            Weak
        };
        assert_eq!(verdict(small, "receive buffer"), expected);
    }

    #[test]
    fn one_ip_version_is_checked_if_the_other_is_missing() {
        let [v4, v6] = loopback();
        let absent = || Err(io::ErrorKind::AddrNotAvailable.into());
        let found = check(&[(v4, Ok(trial())), (v6, absent())]);
        assert_eq!(found.last().map(|it| it.verdict), Some(Fact));
        let found = check(&[(v4, absent()), (v6, Ok(trial()))]);
        assert_eq!(found[0].verdict, Bad);
    }
}
