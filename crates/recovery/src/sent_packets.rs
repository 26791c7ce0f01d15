//! The packets of one packet number space whose fate is open.

use std::ops::{Range, RangeInclusive};

use crate::ack_only::AckOnlyPackets;
use crate::sent::Sent;

/// The sent packets of one space by packet number: those in flight in a ring of 64-byte slots,
/// and the newest [ACK-only ones](AckOnlyPackets) beside it.
///
/// A packet in flight takes one slot, in the order of sending. Neither skipped numbers nor ACK-only
/// packets take any: those a peer can make us send without end (attack A24). The ring reaches
/// from the oldest packet whose fate is open to the newest; it grows in powers of two and costs
/// nothing while empty and [shrunk](Self::shrink). The latest skipped numbers are remembered
/// beyond the ring's reach, so that an ACK for one shows a peer that acknowledges what it has
/// not seen (RFC 9000 §21.4).
///
/// A slot whose packet was taken knows how far away the next packet may be, so a walk through
/// what was settled long ago takes few steps, whatever an ACK says again (attack A25).
#[derive(Debug)]
pub struct SentPackets<F> {
    /// The length is a power of two, or zero. A position's slot is that of its low bits.
    slots: Vec<Slot<F>>,
    /// The packet number of each slot; as long as `slots`.
    numbers: Vec<u64>,
    /// The position of the oldest packet; equal to `tail` when there is none.
    head: u64,
    /// The position of the next packet: how many were in flight before it.
    tail: u64,
    /// One more than the largest number pushed.
    next: u64,
    len: usize,
    /// The widest span in slots since the ring was last empty.
    peak: u64,
    /// Slots looked at.
    steps: u64,
    /// Ascending, the newest last.
    skipped: Vec<Range<u64>>,
    ack_only: AckOnlyPackets<F>,
}

/// One cache line for payloads of up to 32 bytes: a packet never costs two.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<F>(Content<F>);

#[derive(Debug)]
enum Content<F> {
    /// Its fate is open.
    Open(Sent<F>),
    /// It was taken; the next packet is this many slots on, or further.
    Taken(u32),
}

/// Where [`SentPackets::take_next`] stands in a range of packet numbers.
#[derive(Debug)]
pub struct Walk {
    start: u64,
    at: u64,
    end: u64,
}

impl<F> SentPackets<F> {
    /// An empty ring; allocates nothing.
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

    /// Remembers a packet. Numbers only rise; those between the last one and this were skipped.
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
        // Truncation is meant: neighbours are told from others by the low bits.
        let order = self.tail as u32;
        self.slots[index].0 = Content::Open(Sent { order, ..packet });
        self.numbers[index] = number;
        self.tail += 1;
        self.len += 1;
        self.peak = self.peak.max(span);
    }

    /// The packet in flight with this number, if its fate is open.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Sent<F>> {
        let position = self.position_from(number);
        if position == self.tail || self.number_at(position) != number {
            return None;
        }
        match &self.slots[self.index(position)].0 {
            Content::Open(packet) => Some(packet),
            Content::Taken(_) => None,
        }
    }

    /// Takes the packet in flight with this number out.
    #[inline]
    pub fn take(&mut self, number: u64) -> Option<Sent<F>> {
        let mut walk = self.walk(number..=number);
        self.take_next(&mut walk).map(|(_, packet)| packet)
    }

    /// Begins to take the packets in flight with numbers in `range` out.
    #[inline]
    pub fn walk(&self, range: RangeInclusive<u64>) -> Walk {
        let start = self.position_from(*range.start());
        Walk {
            start,
            at: start,
            end: *range.end(),
        }
    }

    /// Takes the next packet of the walk out, in ascending order of numbers.
    ///
    /// A whole walk costs little more than one step for each packet that it takes: what had
    /// been taken before is jumped over.
    #[inline]
    pub fn take_next(&mut self, walk: &mut Walk) -> Option<(u64, Sent<F>)> {
        walk.at = walk.at.max(self.head);
        while walk.at < self.tail {
            self.steps += 1;
            let index = self.index(walk.at);
            match self.slots[index].0 {
                Content::Taken(distance) => walk.at = self.jump(walk.at, distance),
                Content::Open(_) if self.numbers[index] > walk.end => break,
                Content::Open(_) => {
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

    /// Takes all packets in flight with numbers in `range` out, in ascending order.
    pub fn take_range(&mut self, range: RangeInclusive<u64>, mut each: impl FnMut(u64, Sent<F>)) {
        let mut walk = self.walk(range);
        while let Some((number, packet)) = self.take_next(&mut walk) {
            each(number, packet);
        }
    }

    /// Takes everything out and gives the memory back, for keys that are discarded
    /// (RFC 9002 §6.4). Numbers go on where they were.
    pub fn take_all(&mut self, mut each: impl FnMut(u64, Sent<F>)) {
        self.take_range(0..=u64::MAX, &mut each);
        self.shrink();
    }

    /// The ACK-only packets, which are not in the ring.
    pub fn ack_only_mut(&mut self) -> &mut AckOnlyPackets<F> {
        &mut self.ack_only
    }

    /// The smallest number whose packet is in flight.
    #[inline]
    pub fn oldest(&self) -> Option<u64> {
        (self.len > 0).then(|| self.number_at(self.head))
    }

    /// The packets in flight in ascending order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Sent<F>)> + '_ {
        let mut at = self.head;
        std::iter::from_fn(move || {
            while at < self.tail {
                let index = self.index(at);
                match &self.slots[index].0 {
                    Content::Taken(distance) => at += u64::from(*distance),
                    Content::Open(packet) => {
                        at += 1;
                        return Some((self.numbers[index], packet));
                    }
                }
            }
            None
        })
    }

    /// How many packets are in flight.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when no packet is in flight.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many packets are remembered, with those that carry nothing but an ACK.
    pub fn remembered(&self) -> usize {
        self.len + self.ack_only.len()
    }

    /// True when nothing but probes may be sent until the peer acknowledges something: the
    /// ring spans [`MAX_SENT_PACKETS`] packets.
    pub fn is_full(&self) -> bool {
        self.tail - self.head >= MAX_SENT_PACKETS
    }

    /// One more than the largest number pushed.
    pub fn next_expected(&self) -> u64 {
        self.next
    }

    /// Slots looked at so far to settle packets: the work that acknowledgements have made.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// True when the number was passed over and never sent. Only the newest such numbers are
    /// remembered.
    pub fn was_skipped(&self, number: u64) -> bool {
        self.skipped
            .iter()
            .rev()
            .any(|range| range.contains(&number))
    }

    /// A skipped number inside `range`, if there is one. An ACK range that holds one was made up.
    pub fn skipped_in(&self, range: &RangeInclusive<u64>) -> Option<u64> {
        let newest_first = self.skipped.iter().rev();
        newest_first
            .take_while(|skipped| skipped.end > *range.start())
            .find(|skipped| skipped.start <= *range.end())
            .map(|skipped| skipped.start.max(*range.start()))
    }

    /// Gives memory back that the packets in flight do not need, and forgets the ACK-only ones.
    pub fn shrink(&mut self) {
        self.ack_only.clear();
        if self.len == 0 {
            (self.slots, self.numbers) = (Vec::new(), Vec::new());
            self.peak = 0;
        } else {
            self.resize(self.tail - self.head);
        }
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<F>>()
            + self.numbers.capacity() * size_of::<u64>()
            + self.skipped.capacity() * size_of::<Range<u64>>()
            + self.ack_only.memory()
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        // Truncation is harmless: only the low bits count.
        position as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn number_at(&self, position: u64) -> u64 {
        self.numbers[self.index(position)]
    }

    /// The position of the first packet with this number or a larger one; `tail` for none.
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

    /// Only where numbers are missing between those in flight.
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
        let Content::Open(packet) = std::mem::replace(slot, Content::Taken(1)) else {
            return None;
        };
        self.len -= 1;
        if position == self.head {
            self.advance();
        }
        Some(packet)
    }

    /// The position after a jump from `position`. Two jumps in a row become one, so that paths
    /// halve each time they are walked.
    #[inline]
    fn jump(&mut self, position: u64, distance: u32) -> u64 {
        let next = position + u64::from(distance);
        if next < self.tail
            && let Content::Taken(further) = self.slots[self.index(next)].0
        {
            let index = self.index(position);
            self.slots[index].0 = Content::Taken(distance.saturating_add(further));
            return next + u64::from(further);
        }
        next
    }

    /// Nothing is left from `start` up to `end`: the next walk goes there at once.
    #[inline]
    fn shorten(&mut self, start: u64, end: u64) {
        if start < self.head || end <= start || start >= self.tail {
            return;
        }
        let index = self.index(start);
        if let Content::Taken(distance) = &mut self.slots[index].0 {
            *distance = u32::try_from(end - start).unwrap_or(*distance);
        }
    }

    /// Moves to the next packet after the oldest one was taken.
    #[inline]
    fn advance(&mut self) {
        if self.len == 0 {
            self.head = self.tail;
            return self.on_empty();
        }
        while let Content::Taken(distance) = self.slots[self.index(self.head)].0 {
            self.steps += 1;
            self.head += u64::from(distance);
        }
    }

    /// Shrinks a ring that has not been well used since it was last empty. A flow that empties
    /// its ring again and again at full use keeps it, so it does not allocate in steady state.
    #[inline]
    fn on_empty(&mut self) {
        let peak = std::mem::take(&mut self.peak);
        if self.slots.len() > MIN_SLOTS && peak <= self.slots.len() as u64 / 8 {
            self.resize((peak * 2).max(MIN_SLOTS as u64));
        }
    }

    /// False for a number that was sent already.
    #[cold]
    fn skip_to(&mut self, number: u64) -> bool {
        debug_assert!(number > self.next, "packet numbers rise");
        if number < self.next {
            return false;
        }
        if self.skipped.len() == REMEMBERED_SKIPS {
            self.skipped.remove(0);
        }
        self.skipped.push(self.next..number);
        true
    }

    /// Makes room for `span` packets, or gives back what they do not need.
    #[cold]
    fn resize(&mut self, span: u64) {
        let wanted = usize::try_from(span).unwrap_or(usize::MAX).max(FIRST_SLOTS);
        let wanted = wanted.next_power_of_two();
        if wanted == self.slots.len() {
            return;
        }
        let fresh: Vec<_> = std::iter::repeat_with(|| Slot(Content::Taken(1)))
            .take(wanted)
            .collect();
        let mut old = std::mem::replace(&mut self.slots, fresh);
        let numbers = std::mem::replace(&mut self.numbers, vec![0; wanted]);
        if old.is_empty() {
            return;
        }
        let mask = old.len() - 1;
        for position in self.head..self.tail {
            let (from, to) = (position as usize & mask, self.index(position));
            self.slots[to] = std::mem::replace(&mut old[from], Slot(Content::Taken(1)));
            self.numbers[to] = numbers[from];
        }
    }
}

impl<F> Default for SentPackets<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// Packets of one space whose fate may be open at once: 2 BDP of 1 Gbit/s over 600 ms and more.
/// The window is far smaller on nearly all paths, and it only grows with what the peer
/// acknowledges.
pub const MAX_SENT_PACKETS: u64 = 250_000;

/// The first ring: a handshake has two spaces with a packet or two each, and waits with them for
/// a client that may never answer (attack A05).
const FIRST_SLOTS: usize = 4;

/// The smallest ring that another one shrinks to: 1.1 KiB, enough for a request and its answer.
const MIN_SLOTS: usize = 16;

/// With a skip every half window or more, these cover several round trips, and an ACK for a
/// skipped number arrives within one.
const REMEMBERED_SKIPS: usize = 16;

#[cfg(test)]
mod tests;
