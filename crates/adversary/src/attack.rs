//! Attacks and how they are listed.

use courser_base::Time;

use crate::attacker::Attacker;

/// One attack: decides what an [`Attacker`] sends, and when.
pub trait Attack {
    /// Prepares the attacker, before anything is sent or received.
    fn start(&mut self, _attacker: &mut Attacker) {}

    /// Sends the next burst. A burst has at most some hundred datagrams, so that what the victim
    /// sends is read in time.
    fn turn(&mut self, attacker: &mut Attacker, now: Time) -> Pace;
}

/// When an attack wants its next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// As soon as the burst has left.
    Now,
    /// At this time, or earlier when the victim sent something.
    At(Time),
}

/// An attack as it is listed.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Its name on the command line.
    pub name: &'static str,
    /// The rows of the attack catalogue that it stands for.
    pub labels: &'static [&'static str],
    /// One line about what it does.
    pub summary: &'static str,
    /// Which end it attacks.
    pub victim: Victim,
    /// Makes a fresh attack.
    pub make: fn() -> Box<dyn Attack>,
}

/// The end under attack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// The attacker is a client.
    Server,
    /// The attacker is a server.
    Client,
}
