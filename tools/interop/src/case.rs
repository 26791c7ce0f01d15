//! The cases of the runner, each with its files, its link and the names that both ends receive.

use std::str::FromStr;
use std::time::Duration;

/// A case of the runner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The letters in the grid.
    pub letter: &'static str,
    /// The name of the case.
    pub name: &'static str,
    /// The name of the test in the environment of the server.
    pub server_test: &'static str,
    /// The name of the test in the environment of the client.
    pub client_test: &'static str,
    /// The number of files of each size in bytes.
    pub files: &'static [(usize, usize)],
    /// The number of characters in the name of a file.
    pub name_len: usize,
    /// The link in both directions, in the grammar of links.
    pub link: &'static str,
    /// The time limit of the client.
    pub timeout: Duration,
    /// The number of certificates in the server's chain.
    pub chain: usize,
    /// True if both ends use IPv6.
    pub is_ipv6: bool,
    /// True if another connection downloads the same files at the same time.
    pub has_competitor: bool,
    /// The observations on the wire that it requires.
    pub check: Check,
}

/// The observations on the wire that a case requires, beside the files and the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// This number of handshakes.
    Handshakes(usize),
    /// One handshake without a Retry.
    NoRetry,
    /// One handshake, and more than one ClientHello.
    RepeatedClientHello,
    /// One handshake, and limits on data that were raised.
    RaisedLimits,
    /// One handshake in which the client offers TLS_CHACHA20_POLY1305_SHA256 only.
    ChaCha20Only,
    /// One handshake, and at most 1000 streams allowed at its start.
    StreamLimit,
    /// One handshake after a Retry, whose token is echoed with a larger packet number.
    Retry,
    /// Two handshakes, the second without a certificate.
    Resumption,
    /// Two handshakes, and most of the requests in 0-RTT packets.
    ZeroRtt,
    /// One handshake, and packets of both ends in the second key phase.
    KeyUpdate,
    /// One handshake, and from both ends a packet with an ECT mark, none with CE, and an ACK frame with
    /// counts.
    Ecn,
    /// One handshake, and a server that keeps to three times the bytes that it received.
    Amplification,
    /// One handshake, and no IPv4 packet.
    Ipv6,
    /// A handshake that changes to QUIC version 2.
    Version2,
    /// One handshake after a Version Negotiation packet, which has the IDs of the client's first flight.
    VersionNegotiation,
    /// One handshake, and a validated path for each port of the client.
    Ports,
    /// One handshake, and a validated path for each address of the client.
    Addresses,
    /// One handshake, and a client that moves to the server's preferred address.
    Migration,
    /// One handshake, and a rate of the download.
    Goodput,
}

impl FromStr for &'static Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Case::find(text).ok_or_else(|| {
            let letters: Vec<&str> = CASES.iter().map(|case| case.letter).collect();
            format!("known are {}", letters.join(", "))
        })
    }
}

impl Case {
    /// Returns the case with this letter or name, in capitals or not.
    pub fn find(text: &str) -> Option<&'static Self> {
        let mut cases = CASES.iter();
        cases.find(|case| {
            case.letter.eq_ignore_ascii_case(text) || case.name.eq_ignore_ascii_case(text)
        })
    }

    /// Returns true if the result of the case is a rate.
    pub fn is_measurement(&self) -> bool {
        self.check == Check::Goodput
    }

    const fn new(letter: &'static str, name: &'static str, check: Check) -> Self {
        Self {
            letter,
            name,
            server_test: name,
            client_test: name,
            files: &[(1, KIB)],
            name_len: 12,
            link: DEFAULT_LINK,
            timeout: Duration::from_secs(60),
            chain: 1,
            is_ipv6: false,
            has_competitor: false,
            check,
        }
    }

    const fn tests(mut self, server: &'static str, client: &'static str) -> Self {
        self.server_test = server;
        self.client_test = client;
        self
    }

    const fn files(mut self, files: &'static [(usize, usize)]) -> Self {
        self.files = files;
        self
    }

    const fn link(mut self, link: &'static str) -> Self {
        self.link = link;
        self
    }

    const fn timeout(mut self, seconds: u64) -> Self {
        self.timeout = Duration::from_secs(seconds);
        self
    }
}

/// All cases, in the order of the grid.
pub const CASES: &[Case] = &[
    Case::new("H", "handshake", Check::NoRetry),
    Case::new("DC", "transfer", Check::RaisedLimits).files(&[
        (1, 2 * MIB),
        (1, 3 * MIB),
        (1, 5 * MIB),
    ]),
    Case::new("LR", "longrtt", Check::RepeatedClientHello)
        .tests("handshake", "handshake")
        .link("10mbit,750ms,queue=25p,mtu=1500"),
    Case::new("C20", "chacha20", Check::ChaCha20Only).files(&[(1, 3 * MIB)]),
    Case::new("M", "multiplexing", Check::StreamLimit)
        .tests("transfer", "transfer")
        .files(&[(1999, 32)]),
    Case::new("S", "retry", Check::Retry).files(&[(1, 10 * KIB)]),
    Case::new("R", "resumption", Check::Resumption).files(&[(1, 5 * KIB), (1, 10 * KIB)]),
    Case {
        name_len: 250,
        ..Case::new("Z", "zerortt", Check::ZeroRtt).files(&[(40, 32)])
    },
    Case::new("3", "http3", Check::Handshakes(1)).files(&[
        (1, 5 * KIB),
        (1, 10 * KIB),
        (1, 500 * KIB),
    ]),
    Case::new("B", "blackhole", Check::Handshakes(1))
        .tests("transfer", "transfer")
        .files(&[(1, 10 * MIB)])
        .link("10mbit,15ms,queue=25p,mtu=1500,blackhole=5s:2s"),
    Case::new("U", "keyupdate", Check::KeyUpdate)
        .tests("transfer", "keyupdate")
        .files(&[(1, 3 * MIB)]),
    Case::new("E", "ecn", Check::Ecn).files(&[(1, 100 * KIB)]),
    Case {
        chain: 9,
        ..Case::new("A", "amplificationlimit", Check::Amplification)
            .tests("transfer", "transfer")
            .files(&[(1, 5 * KIB)])
            .link("10mbit,15ms,queue=25p,mtu=1500,drop=2-7;10mbit,15ms,queue=25p,mtu=1500")
    },
    Case::new("L1", "handshakeloss", Check::Handshakes(50))
        .tests("multiconnect", "multiconnect")
        .files(&[(50, KIB)])
        .link("10mbit,15ms,queue=25p,mtu=1500,loss=30%:3")
        .timeout(300),
    Case::new("L2", "transferloss", Check::Handshakes(1))
        .tests("transfer", "transfer")
        .files(&[(1, 2 * MIB)])
        .link("10mbit,15ms,queue=25p,mtu=1500,loss=2%:3"),
    Case::new("C1", "handshakecorruption", Check::Handshakes(50))
        .tests("multiconnect", "multiconnect")
        .files(&[(50, KIB)])
        .link("10mbit,15ms,queue=25p,mtu=1500,corrupt=30%:3")
        .timeout(300),
    Case::new("C2", "transfercorruption", Check::Handshakes(1))
        .tests("transfer", "transfer")
        .files(&[(1, 2 * MIB)])
        .link("10mbit,15ms,queue=25p,mtu=1500,corrupt=2%:3"),
    Case {
        is_ipv6: true,
        ..Case::new("6", "ipv6", Check::Ipv6)
            .tests("transfer", "transfer")
            .files(&[(1, 5 * KIB), (1, 10 * KIB)])
    },
    Case::new("V2", "v2", Check::Version2),
    // The runner has this case, and does not run it.
    Case::new("V", "versionnegotiation", Check::VersionNegotiation),
    Case::new("BP", "rebind-port", Check::Ports)
        .tests("transfer", "transfer")
        .files(&[(1, 10 * MIB)])
        .link("10mbit,15ms,queue=25p,mtu=1500,rebind=1s:5s"),
    Case::new("BA", "rebind-addr", Check::Addresses)
        .tests("transfer", "transfer")
        .files(&[(1, 10 * MIB)])
        .link("10mbit,15ms,queue=25p,mtu=1500,rebind=addr:1s:5s"),
    Case::new("CM", "connectionmigration", Check::Migration)
        .tests("connectionmigration", "transfer")
        .files(&[(1, 2 * MIB)]),
    Case::new("G", "goodput", Check::Goodput)
        .tests("transfer", "transfer")
        .files(&[(1, 10 * MIB)]),
    Case {
        has_competitor: true,
        ..Case::new("C", "crosstraffic", Check::Goodput)
            .tests("transfer", "transfer")
            .files(&[(1, 25 * MIB)])
            .timeout(180)
    },
];

/// The link of most cases: one bottleneck with a short queue.
const DEFAULT_LINK: &str = "10mbit,15ms,queue=25p,mtu=1500";

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use courser_link::DuplexSpec;

    use super::*;

    #[test]
    fn links_of_all_cases_parse() {
        for case in CASES {
            let link = case.link.parse::<DuplexSpec>();
            assert!(link.is_ok(), "{}: {link:?}", case.name);
        }
    }

    #[test]
    fn letters_and_names_select_only_their_case() {
        for case in CASES {
            let found = [case.letter, case.name].map(Case::find);
            assert_eq!(found, [Some(case), Some(case)], "{}", case.name);
        }
        assert_eq!(Case::find("c20").map(|case| case.name), Some("chacha20"));
        assert_eq!(Case::find("C3"), None);
    }
}
