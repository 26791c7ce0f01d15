//! Attacks and their entries in the list.

use courser_base::Time;

use crate::attacker::Attacker;
pub use crate::expect::Expect;

/// An attack, which decides the packets of an [`Attacker`] and their times.
pub trait Attack {
    /// Prepares the attacker, before anything is sent or received.
    fn start(&mut self, _attacker: &mut Attacker) {}

    /// Sends the next burst, of at most a few hundred datagrams. Longer bursts would delay the
    /// reading of datagrams from the victim.
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace;
}

/// The time of an attack's next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// As soon as the burst was sent.
    Now,
    /// At this time, or earlier if a datagram arrives.
    At(Time),
}

/// The entry of an attack in the list.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The name on the command line.
    pub name: &'static str,
    /// The rows of the attack catalogue that the attack covers.
    pub labels: &'static [&'static str],
    /// A description in one line.
    pub summary: &'static str,
    /// The end under attack.
    pub victim: Victim,
    /// The reaction of a correct victim.
    pub expect: Expect,
    /// Creates a new instance of the attack.
    pub make: fn() -> Box<dyn Attack>,
}

impl Plan {
    /// Returns true if the attack needs a victim that supports early data.
    pub fn needs_early_data(&self) -> bool {
        self.name.starts_with("early-")
    }
}

/// The end under attack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// The attacker is a client.
    Server,
    /// The attacker is a server.
    Client,
    /// The attacker is a client of an echo of WebTransport sessions.
    Sessions,
    /// The attacker is a client of a UDP proxy, which forwards to [`Attacker::goals`] and to public addresses.
    Proxy,
    /// The attacker is a client of an IP proxy for a network in memory.
    IpProxy,
    /// The attacker is a server, and the victim opens a session.
    SessionClient,
}

impl Victim {
    /// Returns true if the attacker is a server.
    pub fn is_client(self) -> bool {
        matches!(self, Self::Client | Self::SessionClient)
    }
}

/// The path of the large file that attacks request.
pub const LARGE: &str = "/large";
