//! The packets of one packet number space that are neither acknowledged nor lost.

use std::ops::{Range, RangeInclusive};

use crate::ack_only::AckOnlyPackets;
use crate::sent::Sent;

/// The sent packets of one space by packet number: those in flight in a ring of 64-byte slots, and
/// the newest [ACK-only packets](AckOnlyPackets) beside it.
///
/// A packet in flight takes one slot, in the order of sending. Skipped numbers and ACK-only packets
/// take none, because a peer can make us send any number of the latter (attack A24). The ring spans
/// from the oldest packet in flight to the newest. It grows in powers of two and takes no memory
/// while empty and [shrunk](Self::shrink). The latest skipped numbers are recorded beyond the span
/// of the ring: an ACK for one reveals a peer that acknowledges packets which it has not received
/// (RFC 9000 §21.4).
///
/// The slot of a removed packet stores the distance to the next packet. A walk through packets that
/// were settled long ago takes few steps, even if ACKs repeat their ranges (attack A25).
#[derive(Debug)]
pub struct SentPackets<F> {
    /// The slots of the ring, indexed by the low bits of a position. The length is a power of two
    /// or zero.
    slots: Vec<Slot<F>>,
    /// The packet number of each slot. As long as `slots`.
    numbers: Vec<u64>,
    /// The position of the oldest packet; equal to `tail` if there is none.
    head: u64,
    /// The position of the next packet: the count of in-flight packets sent before.
    tail: u64,
    /// One more than the largest number pushed.
    next: u64,
    len: usize,
    /// The widest span in slots since the ring was last empty.
    peak: u64,
    /// Slots examined so far, as a measure of the work that ACKs cause.
    steps: u64,
    /// Skipped numbers in ascending order.
    skipped: Vec<Range<u64>>,
    ack_only: AckOnlyPackets<F>,
}

/// One cache line for payloads of up to 32 bytes, so that no packet touches two.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<F>(Content<F>);

#[derive(Clone, Copy, Debug)]
enum Content<F> {
    /// A packet that is neither acknowledged nor lost.
    InFlight(Sent<F>),
    /// The packet was removed. The next one is at least this many slots ahead.
    Removed(u32),
}

/// The progress of [`SentPackets::take_next`] through a range of packet numbers.
#[derive(Debug)]
pub struct Walk {
    start: u64,
    at: u64,
    end: u64,
}

impl<F: Copy> SentPackets<F> {
    /// Creates an empty ring. Does not allocate.
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            numbers: Vec::new(),
            head: 0,
            tail: 0,
            next: 0,
            len: 0,
            peak: 0,
            steps: 0,
            skipped: Vec::new(),
            ack_only: AckOnlyPackets::new(),
        }
    }

    /// Creates an empty ring whose first packet will have this number. Does not allocate.
    pub const fn starting_at(number: u64) -> Self {
        let mut sent = Self::new();
        sent.next = number;
        sent
    }

    /// Records a packet. Numbers must rise; those between the last one and this count as skipped.
    #[inline]
    pub fn push(&mut self, number: u64, packet: Sent<F>) {
        if number != self.next && !self.skip_to(number) {
            return;
        }
        self.next = number + 1;
        if !packet.in_flight {
            return self.ack_only.push(number, packet);
        }
        let span = self.tail - self.head + 1;
        if span > self.slots.len() as u64 {
            self.resize(span);
        }
        let index = self.index(self.tail);
        // Truncation is intended: the low bits suffice to recognize consecutive packets.
        let order = self.tail as u32;
        self.slots[index].0 = Content::InFlight(Sent { order, ..packet });
        self.numbers[index] = number;
        self.tail += 1;
        self.len += 1;
        self.peak = self.peak.max(span);
    }

    /// Returns the packet in flight with this number.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Sent<F>> {
        let position = self.position_from(number);
        if position == self.tail || self.number_at(position) != number {
            return None;
        }
        match &self.slots[self.index(position)].0 {
            Content::InFlight(packet) => Some(packet),
            Content::Removed(_) => None,
        }
    }

    /// Removes and returns the packet in flight with this number.
    #[inline]
    pub fn take(&mut self, number: u64) -> Option<Sent<F>> {
        let mut walk = self.walk(number..=number);
        self.take_next(&mut walk).map(|(_, packet)| packet)
    }

    /// Starts a walk that removes the packets in flight with numbers in `range`.
    #[inline]
    pub fn walk(&self, range: RangeInclusive<u64>) -> Walk {
        let start = self.position_from(*range.start());
        Walk {
            start,
            at: start,
            end: *range.end(),
        }
    }

    /// Removes and returns the next packet of the walk, in ascending order of numbers.
    ///
    /// A walk takes little more than one step for each packet that it removes, because it jumps
    /// over packets that were removed before.
    #[inline]
    pub fn take_next(&mut self, walk: &mut Walk) -> Option<(u64, Sent<F>)> {
        walk.at = walk.at.max(self.head);
        while walk.at < self.tail {
            self.steps += 1;
            let index = self.index(walk.at);
            match self.slots[index].0 {
                Content::Removed(distance) => walk.at = self.jump(walk.at, distance),
                Content::InFlight(_) if self.numbers[index] > walk.end => break,
                Content::InFlight(_) => {
                    let number = self.numbers[index];
                    let packet = self.take_at(walk.at)?;
                    walk.at += 1;
                    return Some((number, packet));
                }
            }
        }
        self.shorten(walk.start, walk.at);
        None
    }

    /// Removes the packets in flight with numbers in `range`, in ascending order, and passes them
    /// to `each`.
    pub fn take_range(&mut self, range: RangeInclusive<u64>, mut each: impl FnMut(u64, Sent<F>)) {
        let mut walk = self.walk(range);
        while let Some((number, packet)) = self.take_next(&mut walk) {
            each(number, packet);
        }
    }

    /// Removes all packets and frees the memory when keys are discarded (RFC 9002 §6.4). Numbers
    /// continue from where they were.
    pub fn take_all(&mut self, mut each: impl FnMut(u64, Sent<F>)) {
        self.take_range(0..=u64::MAX, &mut each);
        self.shrink();
    }

    /// Returns the ACK-only packets, which are not in the ring.
    pub fn ack_only_mut(&mut self) -> &mut AckOnlyPackets<F> {
        &mut self.ack_only
    }

    /// Returns the smallest number of a packet in flight.
    #[inline]
    pub fn oldest(&self) -> Option<u64> {
        (self.len > 0).then(|| self.number_at(self.head))
    }

    /// Returns the packets in flight in ascending order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Sent<F>)> + '_ {
        let mut at = self.head;
        std::iter::from_fn(move || {
            while at < self.tail {
                let index = self.index(at);
                match &self.slots[index].0 {
                    Content::Removed(distance) => at += u64::from(*distance),
                    Content::InFlight(packet) => {
                        at += 1;
                        return Some((self.numbers[index], packet));
                    }
                }
            }
            None
        })
    }

    /// Returns the number of packets in flight.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no packet is in flight.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if the ring spans [`MAX_SENT_PACKETS`] packets. Only probes may be sent then,
    /// until the peer acknowledges packets.
    pub fn is_full(&self) -> bool {
        self.tail - self.head >= MAX_SENT_PACKETS
    }

    /// Returns one more than the largest number pushed.
    pub fn next_expected(&self) -> u64 {
        self.next
    }

    /// Returns the slots examined so far: the work that acknowledgements have caused.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns true if the number was skipped and never sent. Only the newest skipped numbers are
    /// recorded.
    pub fn was_skipped(&self, number: u64) -> bool {
        self.skipped
            .iter()
            .rev()
            .any(|range| range.contains(&number))
    }

    /// Returns a skipped number in `range`, if there is one. An honest peer does not acknowledge
    /// such a range.
    pub fn skipped_in(&self, range: &RangeInclusive<u64>) -> Option<u64> {
        let newest_first = self.skipped.iter().rev();
        newest_first
            .take_while(|skipped| skipped.end > *range.start())
            .find(|skipped| skipped.start <= *range.end())
            .map(|skipped| skipped.start.max(*range.start()))
    }

    /// Frees memory that the packets in flight do not need, and removes the ACK-only packets.
    pub fn shrink(&mut self) {
        self.ack_only.clear();
        self.shrink_to_fit();
    }

    /// Frees memory that the recorded packets do not need.
    pub fn shrink_to_fit(&mut self) {
        self.ack_only.shrink_to_fit();
        self.skipped.shrink_to_fit();
        if self.len == 0 {
            (self.slots, self.numbers) = (Vec::new(), Vec::new());
            self.peak = 0;
        } else {
            self.resize(self.tail - self.head);
        }
    }

    /// Returns the bytes of memory held.
    pub fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<F>>()
            + self.numbers.capacity() * size_of::<u64>()
            + self.skipped.capacity() * size_of::<Range<u64>>()
            + self.ack_only.memory()
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        // Truncation is harmless, because only the low bits are used.
        position as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn number_at(&self, position: u64) -> u64 {
        self.numbers[self.index(position)]
    }

    /// Returns the position of the first packet with this number or a larger one; `tail` for none.
    #[inline]
    fn position_from(&self, number: u64) -> u64 {
        if self.head == self.tail {
            return self.tail;
        }
        let newest = self.tail - 1;
        let (first, last) = (self.number_at(self.head), self.number_at(newest));
        if number <= first {
            return self.head;
        }
        if number > last {
            return self.tail;
        }
        // From one position to the next the number rises by one or more.
        let low = self.head.max(newest.saturating_sub(last - number));
        let high = newest.min(self.head.saturating_add(number - first));
        if low == high {
            return low;
        }
        self.search(number, low, high)
    }

    /// Searches for a position by bisection. Needed only if numbers between those in flight are
    /// missing.
    fn search(&self, number: u64, mut low: u64, mut high: u64) -> u64 {
        while low < high {
            let middle = low + (high - low) / 2;
            if self.number_at(middle) < number {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    #[inline]
    fn take_at(&mut self, position: u64) -> Option<Sent<F>> {
        let index = self.index(position);
        let slot = &mut self.slots[index].0;
        let Content::InFlight(packet) = *slot else {
            return None;
        };
        *slot = Content::Removed(1);
        self.len -= 1;
        if position == self.head {
            self.advance();
        }
        Some(packet)
    }

    /// Returns the position after a jump from `position`. Merges two jumps in a row, so that the
    /// length of a path halves with each walk.
    #[inline]
    fn jump(&mut self, position: u64, distance: u32) -> u64 {
        let next = position + u64::from(distance);
        if next < self.tail
            && let Content::Removed(further) = self.slots[self.index(next)].0
        {
            let index = self.index(position);
            self.slots[index].0 = Content::Removed(distance.saturating_add(further));
            return next + u64::from(further);
        }
        next
    }

    /// Stores a jump from `start` to `end`, because no packet is left between them.
    #[inline]
    fn shorten(&mut self, start: u64, end: u64) {
        if start < self.head || end <= start || start >= self.tail {
            return;
        }
        let index = self.index(start);
        if let Content::Removed(distance) = &mut self.slots[index].0 {
            *distance = u32::try_from(end - start).unwrap_or(*distance);
        }
    }

    /// Moves `head` to the next packet after the oldest one was removed.
    #[inline]
    fn advance(&mut self) {
        if self.len == 0 {
            self.head = self.tail;
            return self.on_empty();
        }
        while let Content::Removed(distance) = self.slots[self.index(self.head)].0 {
            self.steps += 1;
            self.head += u64::from(distance);
        }
    }

    /// Shrinks a ring of which only a small part was used since it was last empty. A flow that
    /// repeatedly fills and empties a ring keeps it, so it does not allocate in steady state.
    #[inline]
    fn on_empty(&mut self) {
        let peak = std::mem::take(&mut self.peak);
        if self.slots.len() > MIN_SLOTS && peak <= self.slots.len() as u64 / 8 {
            self.resize((peak * 2).max(MIN_SLOTS as u64));
        }
    }

    /// Records skipped numbers. Returns false for a number that was already sent.
    #[cold]
    fn skip_to(&mut self, number: u64) -> bool {
        debug_assert!(number > self.next, "packet numbers rise");
        if number < self.next {
            return false;
        }
        if self.skipped.len() == MAX_SKIPPED_RANGES {
            self.skipped.remove(0);
        }
        self.skipped.push(self.next..number);
        true
    }

    /// Resizes the ring for `span` packets.
    #[cold]
    fn resize(&mut self, span: u64) {
        let length = usize::try_from(span)
            .unwrap_or(usize::MAX)
            .max(INITIAL_SLOTS);
        let length = length.next_power_of_two();
        if length == self.slots.len() {
            return;
        }
        let fresh: Vec<_> = std::iter::repeat_with(|| Slot(Content::Removed(1)))
            .take(length)
            .collect();
        let mut old = std::mem::replace(&mut self.slots, fresh);
        let numbers = std::mem::replace(&mut self.numbers, vec![0; length]);
        if old.is_empty() {
            return;
        }
        let mask = old.len() - 1;
        for position in self.head..self.tail {
            let (from, to) = (position as usize & mask, self.index(position));
            self.slots[to] = std::mem::replace(&mut old[from], Slot(Content::Removed(1)));
            self.numbers[to] = numbers[from];
        }
    }
}

impl<F: Copy> Default for SentPackets<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// Maximum number of packets of one space that the ring spans: more than 2 BDP of 1 Gbit/s over 600
/// ms. The window is far smaller on nearly all paths, and it grows only with acknowledgements of
/// the peer.
pub const MAX_SENT_PACKETS: u64 = 250_000;

/// The size of the first ring. A handshake has two spaces with one or two packets each, and keeps
/// them for a client that may never respond (attack A05).
const INITIAL_SLOTS: usize = 4;

/// The smallest size to which a ring shrinks: 1.1 KiB, enough for a request and its response.
const MIN_SLOTS: usize = 16;

/// Maximum number of ranges of skipped numbers. With a skip every half window or more, they cover
/// several round trips, and an ACK for a skipped number arrives within one.
const MAX_SKIPPED_RANGES: usize = 16;

#[cfg(test)]
mod tests;
