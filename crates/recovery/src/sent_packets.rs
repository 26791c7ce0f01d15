//! The packets of one packet number space whose fate is open.

use std::ops::{Range, RangeInclusive};

use courser_base::Time;

/// What is remembered of a sent packet. `F` is the caller's record of the frames in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent<F> {
    /// When it was sent.
    pub time: Time,
    /// Its size in bytes, as congestion control counts it.
    pub size: u16,
    /// The path it was sent on, in the caller's numbering: a packet of an old path must not
    /// move the round-trip time and the window of the new one (RFC 9000 §9.4).
    pub path: u32,
    /// What [`DeliveryRate::on_sent`](crate::DeliveryRate::on_sent) gave for its batch.
    pub snapshot: u32,
    /// Bytes in flight when it had just been sent, itself included.
    pub tx_in_flight: u32,
    /// The peer has to acknowledge it.
    pub ack_eliciting: bool,
    /// It counts towards bytes in flight.
    pub in_flight: bool,
    /// It was sent with an ECT codepoint.
    pub ecn_marked: bool,
    /// It probes the path MTU: its loss says nothing about congestion (RFC 9000 §14.4).
    pub is_mtu_probe: bool,
    /// What it carried.
    pub frames: F,
}

/// Sent packets by packet number, in a ring of 64-byte slots.
///
/// The ring covers the numbers from the oldest packet whose fate is open to the newest one sent.
/// It grows in powers of two and costs nothing while empty and [shrunk](Self::shrink). Packet
/// numbers may be skipped: those take an empty slot, and the latest ones are remembered beyond
/// the ring's window, so that an ACK for one shows a peer that acknowledges what it has not
/// seen (RFC 9000 §21.4).
#[derive(Debug)]
pub struct SentPackets<F> {
    /// The length is a power of two, or zero.
    slots: Vec<Slot<F>>,
    /// The oldest packet; equal to `next` when there is none.
    first: u64,
    next: u64,
    len: usize,
    /// The widest span in numbers since the ring was last empty.
    peak: u64,
    /// Ascending, the newest last.
    skipped: Vec<Range<u64>>,
}

/// One cache line for payloads of up to 32 bytes: a packet never costs two.
#[derive(Debug)]
#[repr(align(64))]
struct Slot<F>(Option<Sent<F>>);

impl<F> SentPackets<F> {
    /// An empty ring; allocates nothing.
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            first: 0,
            next: 0,
            len: 0,
            peak: 0,
            skipped: Vec::new(),
        }
    }

    /// Remembers a packet. Numbers only rise; those between the last one and this were skipped.
    #[inline]
    pub fn push(&mut self, number: u64, packet: Sent<F>) {
        if number != self.next && !self.skip_to(number) {
            return;
        }
        if self.len == 0 {
            self.first = number;
        }
        let span = number - self.first + 1;
        if span > self.slots.len() as u64 {
            self.resize(span);
        }
        let index = self.index(number);
        self.slots[index].0 = Some(packet);
        self.next = number + 1;
        self.len += 1;
        self.peak = self.peak.max(span);
    }

    /// The packet with this number, if its fate is open.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Sent<F>> {
        if number < self.first || number >= self.next {
            return None;
        }
        self.slots[self.index(number)].0.as_ref()
    }

    /// Takes the packet with this number out.
    #[inline]
    pub fn take(&mut self, number: u64) -> Option<Sent<F>> {
        if number < self.first || number >= self.next {
            return None;
        }
        let index = self.index(number);
        let packet = self.slots[index].0.take()?;
        self.len -= 1;
        if number == self.first {
            self.advance();
        }
        Some(packet)
    }

    /// Takes all packets with numbers in `range` out, in ascending order.
    ///
    /// Costs one step per number between the oldest and the newest packet that the range
    /// covers, however far it reaches beyond them.
    pub fn take_range(&mut self, range: RangeInclusive<u64>, mut each: impl FnMut(u64, Sent<F>)) {
        let end = self.next.min(range.end().saturating_add(1));
        for number in self.first.max(*range.start())..end {
            if let Some(packet) = self.take(number) {
                each(number, packet);
            }
        }
    }

    /// Takes everything out and gives the memory back, for keys that are discarded
    /// (RFC 9002 §6.4). Numbers go on where they were.
    pub fn take_all(&mut self, mut each: impl FnMut(u64, Sent<F>)) {
        self.take_range(0..=u64::MAX, &mut each);
        self.shrink();
    }

    /// The smallest number whose packet is here.
    #[inline]
    pub fn oldest(&self) -> Option<u64> {
        (self.len > 0).then_some(self.first)
    }

    /// The packets in ascending order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Sent<F>)> + '_ {
        (self.first..self.next).filter_map(|number| Some((number, self.get(number)?)))
    }

    /// How many packets are here.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when no packet's fate is open.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True when nothing but probes may be sent until the peer acknowledges something: the
    /// ring spans [`MAX_SENT_PACKETS`] numbers.
    pub fn is_full(&self) -> bool {
        self.next - self.first >= MAX_SENT_PACKETS
    }

    /// One more than the largest number pushed.
    pub fn next_expected(&self) -> u64 {
        self.next
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

    /// Gives memory back that the packets here do not need; all of it when there are none.
    pub fn shrink(&mut self) {
        if self.len == 0 {
            self.slots = Vec::new();
            self.peak = 0;
        } else {
            self.resize(self.next - self.first);
        }
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<F>>()
            + self.skipped.capacity() * size_of::<Range<u64>>()
    }

    #[inline]
    fn index(&self, number: u64) -> usize {
        // Truncation is harmless: only the low bits count.
        number as usize & self.slots.len().wrapping_sub(1)
    }

    /// Moves to the next packet after the oldest one was taken.
    #[inline]
    fn advance(&mut self) {
        if self.len == 0 {
            self.first = self.next;
            return self.on_empty();
        }
        self.first += 1;
        while self.slots[self.index(self.first)].0.is_none() {
            self.first += 1;
        }
    }

    /// Shrinks a ring that has not been well used since it was last empty. A flow that empties
    /// its ring again and again at full use keeps it, so it does not allocate in steady state.
    #[inline]
    fn on_empty(&mut self) {
        let peak = std::mem::take(&mut self.peak);
        if self.slots.len() > MIN_SLOTS && peak <= self.slots.len() as u64 / 8 {
            self.resize(peak * 2);
        }
    }

    /// False for a number that was sent already.
    #[cold]
    fn skip_to(&mut self, number: u64) -> bool {
        debug_assert!(number > self.next, "packet numbers rise");
        if number < self.next {
            return false;
        }
        debug_assert!(
            self.len == 0 || number - self.next <= MAX_SKIPPED,
            "too many skipped"
        );
        if self.skipped.len() == REMEMBERED_SKIPS {
            self.skipped.remove(0);
        }
        self.skipped.push(self.next..number);
        true
    }

    /// Makes room for `span` numbers, or gives back what they do not need.
    #[cold]
    fn resize(&mut self, span: u64) {
        let wanted = usize::try_from(span).unwrap_or(usize::MAX).max(MIN_SLOTS);
        let wanted = wanted.next_power_of_two();
        if wanted == self.slots.len() {
            return;
        }
        let fresh: Vec<_> = std::iter::repeat_with(|| Slot(None)).take(wanted).collect();
        let mut old = std::mem::replace(&mut self.slots, fresh);
        if old.is_empty() {
            return;
        }
        let mask = old.len() - 1;
        for number in self.first..self.next {
            let slot = std::mem::replace(&mut old[number as usize & mask], Slot(None));
            let index = self.index(number);
            self.slots[index] = slot;
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

/// The smallest ring: 1 KiB, enough for a request and its answer.
const MIN_SLOTS: usize = 16;

/// Numbers skipped at once; each takes a slot. One is enough to catch a peer that guesses.
const MAX_SKIPPED: u64 = 1024;

/// With a skip every half window or more, these cover several round trips, and an ACK for a
/// skipped number arrives within one.
const REMEMBERED_SKIPS: usize = 16;

#[cfg(test)]
mod tests;
