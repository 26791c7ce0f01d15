//! The addresses that a proxy assigns.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use courser_base::Time;

use super::limits::{MAX_RESTING, REST};
use crate::prefix::{Prefix, bits, of_bits, width};

/// The addresses that a proxy assigns to its clients: single ones of IPv4, and single ones or prefixes of IPv6.
///
/// Two clients never have the same address. An address that was given back rests for a minute, so that late packets do
/// not reach another client (limit K631); its former owner has it again at once, so that a client which comes and goes does
/// not use up the pool. The first and the last address of a
/// prefix and the one behind the first, which is the [router](Self::router)'s, are not assigned.
///
/// ```
/// use courser_base::Time;
/// use courser_masque::ip::Pool;
/// let mut pool = Pool::new(["10.89.0.0/24".parse()?, "2001:db8::/64".parse()?]);
/// assert_eq!(pool.router(true), Some("10.89.0.1".parse()?));
/// let address = pool.allocate(true, "alice", Time::ZERO);
/// assert_eq!(address, Some("10.89.0.2/32".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Pool {
    blocks: Vec<Block>,
    /// Those that are assigned, by their first address, with their owners.
    taken: HashMap<IpAddr, Arc<str>>,
    /// Those that were given back, with the end of their rest and their last owner.
    resting: HashMap<IpAddr, (Time, Arc<str>)>,
    /// The same, by owners with a name.
    owned: BTreeSet<(Arc<str>, IpAddr)>,
    /// The same, in the order of the ends, for IPv6 and IPv4.
    queues: [BTreeSet<(Time, IpAddr)>; 2],
}

impl<P: IntoIterator<Item = Prefix>> From<P> for Pool {
    fn from(prefixes: P) -> Self {
        Self::new(prefixes)
    }
}

/// A prefix of the pool.
#[derive(Debug)]
struct Block {
    prefix: Prefix,
    /// The length of the prefixes that are assigned, in bits.
    unit: u8,
    /// The number of the first unit that was never assigned, in order.
    next: u128,
}

impl Pool {
    /// Creates a pool of prefixes. Clients get single addresses.
    pub fn new(prefixes: impl IntoIterator<Item = Prefix>) -> Self {
        let mut pool = Self::default();
        for prefix in prefixes {
            let unit = width(prefix.first());
            pool.add(prefix, unit);
        }
        pool
    }

    /// Creates a pool whose clients get prefixes of `bits` bits of IPv6, for example of 64.
    pub fn with_ipv6_prefixes(prefixes: impl IntoIterator<Item = Prefix>, bits: u8) -> Self {
        let mut pool = Self::default();
        for prefix in prefixes {
            let unit = match prefix.is_ipv4() {
                true => 32,
                false => bits.clamp(prefix.bits(), 128),
            };
            pool.add(prefix, unit);
        }
        pool
    }

    fn add(&mut self, prefix: Prefix, unit: u8) {
        // 0 is the prefix itself, and 1 the router. A whole prefix for one client has neither.
        let next = if prefix.bits() == unit { 0 } else { 2 };
        self.blocks.push(Block { prefix, unit, next });
    }

    /// Returns the prefixes of the pool.
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix> {
        self.blocks.iter().map(|block| block.prefix)
    }

    /// Returns true if the pool has addresses of a version.
    pub fn has(&self, is_ipv4: bool) -> bool {
        self.blocks
            .iter()
            .any(|block| block.prefix.is_ipv4() == is_ipv4)
    }

    /// Returns the address of the router on the links to clients: the one behind the first of a prefix.
    pub fn router(&self, is_ipv4: bool) -> Option<IpAddr> {
        let mut blocks = self.blocks.iter();
        let block = blocks
            .find(|block| block.prefix.is_ipv4() == is_ipv4 && block.prefix.bits() < block.unit)?;
        let first = block.prefix.first();
        Some(of_bits(bits(first) + 1, first))
    }

    /// Returns the first address of the assigned prefix that an address would be in, if it is one of the pool.
    pub fn unit_of(&self, address: IpAddr) -> Option<IpAddr> {
        let mut blocks = self.blocks.iter();
        let block = blocks.find(|block| block.prefix.covers(address))?;
        let host = u32::from(width(address) - block.unit);
        let mask = u128::MAX.checked_shl(host).unwrap_or(0);
        Some(of_bits(bits(address) & mask, address))
    }

    /// Returns the number of assigned addresses and prefixes.
    pub fn assigned(&self) -> usize {
        self.taken.len()
    }

    /// Assigns an address or prefix of a version to a client: one that it has given back, the one whose rest has been over
    /// for longest, or one that was never assigned. `None` if there is none.
    pub fn allocate(&mut self, is_ipv4: bool, owner: &str, now: Time) -> Option<Prefix> {
        let found = self
            .former(is_ipv4, owner)
            .or_else(|| self.rested(is_ipv4, now))
            .or_else(|| self.fresh(is_ipv4))?;
        self.take(found, owner);
        Some(found)
    }

    /// Assigns the address or prefix that a client wants, if it is one of the pool that nobody else has.
    pub fn allocate_wanted(&mut self, wanted: Prefix, owner: &str, now: Time) -> Option<Prefix> {
        let block = self.blocks.iter().find(|block| block.can_assign(wanted))?;
        let wanted = Prefix::new(wanted.first(), block.unit).ok()?;
        if self.taken.contains_key(&wanted.first()) {
            return None;
        }
        let rest = self.resting.get(&wanted.first());
        let is_free = rest.is_none_or(|(until, former)| {
            *until <= now || (!owner.is_empty() && **former == *owner)
        });
        if !is_free {
            return None;
        }
        self.take(wanted, owner);
        Some(wanted)
    }

    /// Gives an address or prefix back. It rests for a minute.
    pub fn release(&mut self, prefix: Prefix, now: Time) {
        let first = prefix.first();
        if let Some(owner) = self.taken.remove(&first) {
            let until = now + REST;
            if !owner.is_empty() {
                self.owned.insert((owner.clone(), first));
            }
            self.resting.insert(first, (until, owner));
            self.queues[usize::from(first.is_ipv4())].insert((until, first));
        }
    }

    fn take(&mut self, prefix: Prefix, owner: &str) {
        let first = prefix.first();
        if let Some((until, former)) = self.resting.remove(&first) {
            self.queues[usize::from(first.is_ipv4())].remove(&(until, first));
            self.owned.remove(&(former, first));
        }
        self.taken.insert(first, owner.into());
    }

    /// Returns a prefix that rests and was the client's.
    fn former(&self, is_ipv4: bool, owner: &str) -> Option<Prefix> {
        let (least, most) = match is_ipv4 {
            true => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::BROADCAST.into()),
            false => (
                Ipv6Addr::UNSPECIFIED.into(),
                Ipv6Addr::from_bits(u128::MAX).into(),
            ),
        };
        let owner: Arc<str> = owner.into();
        let mut found = self.owned.range((owner.clone(), least)..=(owner, most));
        let (_, first) = found.next()?;
        let mut blocks = self.blocks.iter();
        let block = blocks.find(|block| block.prefix.covers(*first))?;
        Prefix::new(*first, block.unit).ok()
    }

    /// Returns the prefix whose rest has been over for longest.
    fn rested(&self, is_ipv4: bool, now: Time) -> Option<Prefix> {
        let (until, first) = self.queues[usize::from(is_ipv4)].first()?;
        let mut blocks = self.blocks.iter();
        let block = blocks.find(|block| block.prefix.covers(*first))?;
        match *until <= now {
            true => Prefix::new(*first, block.unit).ok(),
            false => None,
        }
    }

    /// Returns a prefix that was never assigned, while not too many rest.
    fn fresh(&mut self, is_ipv4: bool) -> Option<Prefix> {
        let Self {
            blocks,
            taken,
            resting,
            ..
        } = self;
        if resting.len() >= MAX_RESTING {
            return None;
        }
        let blocks = blocks
            .iter_mut()
            .filter(|block| block.prefix.is_ipv4() == is_ipv4);
        for block in blocks {
            // Those in the way were assigned because a client wanted them, and are passed once.
            while let Some(prefix) = block.unit(block.next) {
                block.next += 1;
                let first = prefix.first();
                if !taken.contains_key(&first) && !resting.contains_key(&first) {
                    return Some(prefix);
                }
            }
        }
        None
    }
}

impl Block {
    /// Returns the prefix with a number, if it is one that may be assigned.
    fn unit(&self, number: u128) -> Option<Prefix> {
        let first = self.prefix.first();
        let spare = u32::from(self.unit.checked_sub(self.prefix.bits())?);
        let count = 1_u128.checked_shl(spare).unwrap_or(u128::MAX);
        // The last one is the broadcast address of IPv4.
        let is_assigned = match spare {
            0 => number == 0,
            _ => (2..count - 1).contains(&number),
        };
        if !is_assigned {
            return None;
        }
        let host = u32::from(width(first) - self.unit);
        let step = number.checked_shl(host).unwrap_or(0);
        Prefix::new(of_bits(bits(first) + step, first), self.unit).ok()
    }

    fn can_assign(&self, wanted: Prefix) -> bool {
        let first = wanted.first();
        if wanted.bits() < self.unit || !self.prefix.covers(first) {
            return false;
        }
        let host = u32::from(width(first) - self.unit);
        let offset = bits(first) - bits(self.prefix.first());
        let number = offset.checked_shr(host).unwrap_or(0);
        self.unit(number).is_some_and(|unit| unit.first() == first)
    }
}

#[cfg(test)]
mod tests;
