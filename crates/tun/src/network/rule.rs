//! Rules.

use std::fmt;

use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

use super::destination::{Destination, family, unspecified};
use super::route::PROTOCOL;

/// A rule that chooses a table of routes for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Rules are tried in ascending order. Those of the system have 0, 32766 and 32767.
    pub priority: u32,
    /// The destinations it is for; those of length 0 are all of a family.
    pub to: Destination,
    /// What happens to them.
    pub action: Action,
}

/// What a [`Rule`] does with its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Looks for a route in a table. The next rule decides if there is none.
    Lookup(u32),
    /// Looks for a route in a table, and passes over those whose prefixes have at most this many bits.
    LookupLonger {
        /// The number of the table.
        table: u32,
        /// Bits of the longest prefix that is passed over.
        suppress: u8,
    },
    /// Refuses the packets: their destination is unreachable.
    Unreachable,
}

impl Rule {
    pub(super) fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = family(self.to.address);
        message.header.dst_len = self.to.length;
        let (table, suppress) = match self.action {
            Action::Lookup(table) => (Some(table), None),
            Action::LookupLonger { table, suppress } => (Some(table), Some(suppress)),
            Action::Unreachable => (None, None),
        };
        message.header.action = match table {
            Some(_) => RuleAction::ToTable,
            None => RuleAction::Unreachable,
        };
        let attributes = &mut message.attributes;
        if self.to.length > 0 {
            attributes.push(RuleAttribute::Destination(self.to.address));
        }
        attributes.push(RuleAttribute::Priority(self.priority));
        if let Some(table) = table {
            attributes.push(RuleAttribute::Table(table));
        }
        if let Some(length) = suppress {
            attributes.push(RuleAttribute::SuppressPrefixLen(length.into()));
        }
        let protocol = RouteProtocol::Other(PROTOCOL);
        attributes.push(RuleAttribute::Protocol(protocol));
        message
    }

    /// Returns the rule of a message, if it is one of courser.
    pub(super) fn of(message: &RuleMessage, is_ipv6: bool) -> Option<Self> {
        let mut to = Destination {
            address: unspecified(is_ipv6),
            length: message.header.dst_len,
        };
        let mut priority = 0;
        let mut table = u32::from(message.header.table);
        let mut suppress = None;
        let mut is_own = false;
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::Destination(address) => to.address = *address,
                RuleAttribute::Priority(number) => priority = *number,
                RuleAttribute::Table(number) => table = *number,
                RuleAttribute::SuppressPrefixLen(length) => suppress = u8::try_from(*length).ok(),
                RuleAttribute::Protocol(protocol) => {
                    is_own = *protocol == RouteProtocol::Other(PROTOCOL);
                }
                _ => {}
            }
        }
        let action = match (message.header.action, suppress) {
            (RuleAction::ToTable, None) => Action::Lookup(table),
            (RuleAction::ToTable, Some(suppress)) => Action::LookupLonger { table, suppress },
            _ => Action::Unreachable,
        };
        is_own.then_some(Self {
            priority,
            to,
            action,
        })
    }
}

/// As `ip rule` prints it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: to {} ", self.priority, self.to)?;
        match self.action {
            Action::Lookup(table) => write!(f, "lookup {table}"),
            Action::LookupLonger { table, suppress } => {
                write!(f, "lookup {table} suppress_prefixlength {suppress}")
            }
            Action::Unreachable => f.write_str("unreachable"),
        }
    }
}
