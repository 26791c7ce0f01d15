//! The senders that are measured.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use peers::Failure;

use crate::frame::{Flow, Protocol};
use crate::network::{Network, RECEIVER};
use crate::tcp;

/// A sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// courser with a controller, with or without the search for risen capacity.
    Courser { control: String, has_rise: bool },
    /// TCP of the kernel with a controller.
    Kernel(String),
    /// A peer program with this name.
    Peer(String),
}

impl FromStr for Sender {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let courser = |control: &str, has_rise| Self::Courser {
            control: control.to_owned(),
            has_rise,
        };
        match name {
            "courser" => Ok(courser("cubic", true)),
            "courser-no-rise" => Ok(courser("cubic", false)),
            "courser-newreno" | "courser-bbr" | "courser-prague" => Ok(courser(&name[8..], true)),
            "kernel-cubic" | "kernel-bbr" | "kernel-reno" => Ok(Self::Kernel(name[7..].to_owned())),
            "quinn" | "noq" | "s2n-quic" => Ok(Self::Peer(name.to_owned())),
            _ => Err(format!("'{name}' is not a known sender")),
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Courser { control, has_rise } => {
                let rise = if *has_rise { "" } else { ", no rise" };
                write!(f, "courser {control}{rise}")
            }
            Self::Kernel(control) => write!(f, "kernel {control}"),
            Self::Peer(name) => f.write_str(name),
        }
    }
}

/// The network and the files that senders need.
pub(crate) struct Place<'a> {
    pub(crate) network: &'a Network,
    pub(crate) identity: &'a Path,
    pub(crate) courser: Option<&'a Path>,
}

/// The processes of a sender, which end when this is dropped.
#[derive(Default)]
pub(crate) struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The port of the sender that is measured, at the receiver.
const PORT: u16 = 5001;

impl Sender {
    pub(crate) fn flow(&self) -> Flow {
        let protocol = match self {
            Self::Kernel(_) => Protocol::Tcp,
            Self::Courser { .. } | Self::Peer(_) => Protocol::Udp,
        };
        Flow {
            protocol,
            port: PORT,
        }
    }

    /// Starts an endless transfer, or one of this time.
    pub(crate) fn start(&self, place: &Place<'_>, time: Duration) -> Result<Running, Failure> {
        let address = format!("{RECEIVER}:{PORT}");
        match self {
            Self::Kernel(control) => {
                tcp::discard(&place.network.receiver, PORT)?;
                tcp::send_for(&place.network.sender, PORT, control, time)?;
                Ok(Running::default())
            }
            Self::Courser { control, has_rise } => {
                let program = program(place.courser, "courser")?;
                let seconds = time.as_secs().to_string();
                let mut server = Command::new(&program);
                server.args(["perf", "server", "--listen", &address, "--cc", control]);
                let mut client = Command::new(&program);
                client.args(["perf", "client", &address, "--insecure", "-s", "upload"]);
                client.args(["-t", &seconds, "--cc", control, "--json"]);
                if !has_rise {
                    client.arg("--no-capacity-rise");
                }
                place.run(server, client)
            }
            Self::Peer(name) => {
                let program = program(None, &format!("peer-{name}"))?;
                let mut server = Command::new(&program);
                server.args(["server", "--listen", &address, "--identity"]);
                server.arg(place.identity);
                let mut client = Command::new(&program);
                client.args(["client", "--server", &address, "--scenario", "up"]);
                client.args(["--bytes", ENDLESS, "--identity"]);
                client.arg(place.identity);
                place.run(server, client)
            }
        }
    }
}

impl Place<'_> {
    fn run(&self, mut server: Command, mut client: Command) -> Result<Running, Failure> {
        let mut running = Running::default();
        let (sender, receiver) = (&self.network.sender, &self.network.receiver);
        for (command, namespace) in [(&mut server, receiver), (&mut client, sender)] {
            // A server of a peer ends with its standard input, so that stays open.
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            let name = command.get_program().to_owned();
            let child = namespace
                .inside(|| command.spawn())?
                .map_err(|error| format!("cannot start {}: {error}", name.display()))?;
            running.0.push(child);
            thread::sleep(Duration::from_millis(300));
        }
        Ok(running)
    }
}

/// Returns a program: the given one, or one beside this.
fn program(given: Option<&Path>, name: &str) -> Result<PathBuf, Failure> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name(name),
    };
    if path.is_file() {
        return Ok(path);
    }
    let hint = "build it first, see peers/README.md";
    Err(format!("{} is missing: {hint}", path.display()).into())
}

/// More bytes than any run transfers.
const ENDLESS: &str = "1000000000000";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_have_names() {
        for (name, shown) in [
            ("courser", "courser cubic"),
            ("courser-no-rise", "courser cubic, no rise"),
            ("courser-bbr", "courser bbr"),
            ("kernel-cubic", "kernel cubic"),
            ("s2n-quic", "s2n-quic"),
        ] {
            let sender: Sender = name.parse().expect("a sender");
            assert_eq!(sender.to_string(), shown);
        }
        assert!("quick".parse::<Sender>().is_err());
    }
}
