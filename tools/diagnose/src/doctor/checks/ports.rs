//! Checks that a server can bind an address, and finds the program that uses it.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

use crate::doctor::machine::Machine;
use crate::finding::Finding;

/// Binds the address for UDP and for TCP, and closes the sockets again.
pub(crate) fn try_bind(address: SocketAddr) -> [(&'static str, io::Result<()>); 2] {
    [
        ("udp", UdpSocket::bind(address).map(drop)),
        ("tcp", TcpListener::bind(address).map(drop)),
    ]
}

/// Converts the outcomes of [`try_bind`] to findings.
pub(crate) fn check(
    machine: &Machine,
    address: SocketAddr,
    outcomes: &[(&'static str, io::Result<()>)],
) -> Vec<Finding> {
    let explain = |(protocol, outcome): &(&'static str, io::Result<()>)| {
        let name = format!("{protocol} {address}");
        match outcome {
            Ok(()) => Finding::good(&name, "free"),
            Err(error) => explain(machine, &name, protocol, address, error),
        }
    };
    outcomes.iter().map(explain).collect()
}

fn explain(
    machine: &Machine,
    name: &str,
    protocol: &str,
    address: SocketAddr,
    error: &io::Error,
) -> Finding {
    let why = "courser serve cannot start on this address";
    let tcp = "HTTP/1.1 and HTTP/2 need it; --no-tcp turns them off";
    let why = if protocol == "tcp" { tcp } else { why };
    match error.kind() {
        ErrorKind::AddrInUse => {
            let owner = owner(machine, protocol, address);
            let saw = format!(
                "in use by {}",
                owner.as_deref().unwrap_or("a program that is not visible")
            );
            let fix = format!(
                "ss -{}lnp 'sport = :{}'   # shows the program: stop it, or choose another port",
                &protocol[..1],
                address.port()
            );
            Finding::bad(name, saw, why).fix(fix)
        }
        ErrorKind::AddrNotAvailable => Finding::bad(name, "no interface has this address", why)
            .fix("ip address   # lists the addresses of this machine; [::] listens on all"),
        ErrorKind::PermissionDenied => {
            let first = machine.number(UNPRIVILEGED).unwrap_or(1024);
            Finding::bad(name, format!("ports below {first} need a privilege"), why).fix(
                "setcap cap_net_bind_service=+ep $(command -v courser)\n\
                 or AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit",
            )
        }
        _ => Finding::bad(name, error.to_string(), why),
    }
}

/// Returns the program that uses a port, if its process is visible.
fn owner(machine: &Machine, protocol: &str, address: SocketAddr) -> Option<String> {
    let inode = ["", "6"].iter().find_map(|version| {
        let text = machine
            .read(&format!("/proc/net/{protocol}{version}"))
            .ok()?;
        text.lines().skip(1).find_map(|line| socket(line, address))
    })?;
    let target = format!("socket:[{inode}]");
    let processes = machine.list("/proc").ok()?;
    let processes = processes
        .iter()
        .filter(|name| name.bytes().all(|it| it.is_ascii_digit()));
    for process in processes.take(MAX_PROCESSES) {
        let Ok(files) = machine.list(&format!("/proc/{process}/fd")) else {
            continue;
        };
        let mut files = files
            .iter()
            .map(|file| format!("/proc/{process}/fd/{file}"));
        if files.any(|file| machine.link(&file).as_deref() == Some(&*target)) {
            let name = machine
                .read(&format!("/proc/{process}/comm"))
                .unwrap_or_default();
            return Some(format!("{} (process {process})", name.trim()));
        }
    }
    None
}

/// Returns the inode in a line of `/proc/net/udp` if its socket conflicts with `requested`: it has the same
/// port, and the same address or an unspecified one.
fn socket(line: &str, requested: SocketAddr) -> Option<u64> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let (local, state) = (fields.get(1)?, fields.get(3)?);
    let (address, port) = local.split_once(':')?;
    let is_port = u16::from_str_radix(port, 16).ok()? == requested.port();
    // Only listening TCP sockets conflict. UDP sockets have the state 7.
    let is_listening = matches!(*state, "0A" | "07");
    let is_any = address.bytes().all(|it| it == b'0');
    let is_same =
        is_any || requested.ip().is_unspecified() || address == hexadecimal(requested.ip());
    let inode = fields.get(9)?.parse().ok()?;
    (is_port && is_listening && is_same).then_some(inode)
}

/// Returns an address in the format of `/proc/net`: words of four bytes in native byte order.
fn hexadecimal(address: IpAddr) -> String {
    let bytes = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).map(|word| {
        let word = [word[0], word[1], word[2], word[3]];
        format!("{:08X}", u32::from_ne_bytes(word))
    });
    words.collect()
}

const UNPRIVILEGED: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
/// The largest number of processes that are searched for a socket.
const MAX_PROCESSES: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Bad, Good};

    fn failed(kind: ErrorKind) -> [(&'static str, io::Result<()>); 1] {
        [("udp", Err(kind.into()))]
    }

    #[test]
    fn free_port_is_good() {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let found = check(&Tree::new().machine(), free, &try_bind(free));
        assert!(found.iter().all(|it| it.verdict == Good), "{found:?}");
    }

    #[test]
    fn program_that_uses_a_port_is_named() {
        let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = taken.local_addr().expect("an address");
        let outcomes = try_bind(address);
        assert!(outcomes[0].1.is_err());
        let found = check(&Machine::this(), address, &outcomes[..1]);
        assert_eq!(found[0].verdict, Bad);
        if cfg!(target_os = "linux") {
            let process = format!("(process {})", std::process::id());
            assert!(found[0].saw.contains(&process), "{found:?}");
        }
    }

    #[test]
    fn sockets_of_other_addresses_do_not_conflict() {
        let line = "  5: 0100007F:115F 00000000:0000 07 00000000:00000000 00:00000000 00000000  0  0 777 2 0 0";
        for (address, expected) in [
            ("127.0.0.1:4447", Some(777)),
            ("0.0.0.0:4447", Some(777)),
            ("127.0.0.2:4447", None),
            ("127.0.0.1:4448", None),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(socket(line, address), expected, "{address}");
        }
        let any = line.replace("0100007F", "00000000000000000000000000000000");
        assert_eq!(socket(&any, ([127, 0, 0, 2], 4447).into()), Some(777));
        assert_eq!(
            socket(&line.replace(" 07 ", " 01 "), ([127, 0, 0, 1], 4447).into()),
            None
        );
    }

    #[test]
    fn each_reason_has_its_own_command() {
        let tree = Tree::new();
        tree.write(UNPRIVILEGED, "443\n");
        let address = SocketAddr::from(([192, 0, 2, 1], 80));
        for (kind, saw, fix) in [
            (
                ErrorKind::PermissionDenied,
                "ports below 443 need a privilege",
                "cap_net_bind_service",
            ),
            (
                ErrorKind::AddrNotAvailable,
                "no interface has this address",
                "ip address",
            ),
            (
                ErrorKind::AddrInUse,
                "in use by a program that is not visible",
                "ss -ulnp 'sport = :80'",
            ),
        ] {
            let found = &check(&tree.machine(), address, &failed(kind))[0];
            assert_eq!(found.saw, saw);
            assert!(found.fix.as_deref().expect(saw).contains(fix), "{found:?}");
        }
    }
}
