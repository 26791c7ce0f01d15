//! Writes to streams that precede all others of their group.
//!
//! Unsent bytes of lower orders may fill the send buffer of a slow connection. The stream that would be sent next can
//! still be written then, a little at a time: an order that applied only to bytes in the buffer would be that in which
//! they were written.

use courser_wire::StreamId;

use super::Streams;
use super::event::StreamEvent;
use super::schedule::Share;
use super::send_budget::{LEAD, WriteLimits};

impl Streams {
    /// Returns the limits for another attempt of a write that was blocked, if they allow more than before.
    #[inline(never)]
    pub(super) fn raised_limits(&mut self, key: u32) -> Option<WriteLimits> {
        if !self.leads(key) {
            let limits = self.write_limits(key);
            return (limits.reserve > 0).then_some(limits);
        }
        let state = self.table.at(key);
        let (session, unsent) = (state.share.session, state.send.unsent());
        let credit = self.flow.send.available().saturating_sub(unsent);
        (unsent <= LEAD / 2).then(|| self.buffers.sending.lead_limits(credit, session))
    }

    /// Adds the writer of a stream to those that wait, if it waits for all streams.
    #[inline(never)]
    pub(super) fn on_write_blocked(&mut self, key: u32) {
        let state = self.table.at(key);
        if !state.send.is_waiting_for_connection() {
            return;
        }
        let (id, share) = (state.id, state.share);
        self.buffers.sending.wait(share.session, id);
        if !self.leads(key) {
            return;
        }
        let send = &mut self.table.at(key).send;
        send.wait_for_lead();
        if send.unsent() <= LEAD / 2 {
            let table = &self.table;
            // It precedes all writers of its group that wait.
            let stays = |id| {
                table.get(id).is_some_and(|other| {
                    other.sends
                        && other.send.is_waiting_for_lead()
                        && !is_of_group(&other.share, &share)
                })
            };
            self.buffers.sending.wait_to_lead(id, stays);
        }
    }

    /// Returns true if a stream precedes all others of its group that have new data or a writer that waits for the
    /// same. False while no stream has an order.
    fn leads(&mut self, key: u32) -> bool {
        if !self.buffers.sending.expects_order() {
            return false;
        }
        let state = self.table.at(key);
        let (id, share) = (state.id, state.share);
        if !self.queues.is_led_by(key, &share) {
            return false;
        }
        let mut others = self.buffers.sending.leads().iter();
        others.all(|&other| {
            let other = self.table.get(other).filter(|other| other.id != id);
            other.is_none_or(|other| {
                !other.sends
                    || !other.send.is_waiting_for_lead()
                    || !is_of_group(&other.share, &share)
                    || place(&other.share) < place(&share)
            })
        })
    }

    /// Wakes the writers that may try again: all of them in turns of sessions if much is free, else one that precedes
    /// the others of its group.
    #[inline(never)]
    pub(super) fn wake_waiting_writers(&mut self) {
        if !self.buffers.sending.is_quarter_free() {
            while let Some(id) = self.buffers.sending.next_lead() {
                let stream = self.table.get(id).filter(|stream| stream.sends);
                let waits = stream.is_some_and(|stream| stream.send.is_waiting_for_lead());
                if waits && self.wake_writer(id) {
                    self.buffers.sending.forget_writer(id);
                    return;
                }
            }
            if let Some(id) = self.foremost_waiting()
                && self.wake_writer(id)
            {
                self.buffers.sending.forget_writer(id);
            }
            return;
        }
        while let Some(id) = self.buffers.sending.next_plain_writer() {
            self.wake_writer(id);
        }
        for id in self.buffers.sending.next_writers() {
            self.wake_writer(id);
        }
    }

    /// Returns a stream that precedes all others of its group although it did not when its writer was blocked: the others
    /// were sent, or have got lower orders since. Compares the newest writers only: each acknowledgement may ask.
    fn foremost_waiting(&mut self) -> Option<StreamId> {
        let table = &self.table;
        let waiting = self.buffers.sending.waiting_writers().take(MOST_COMPARED);
        let mut first: Vec<(StreamId, Share)> = Vec::new();
        for id in waiting {
            let Some(stream) = table.get(id).filter(|stream| stream.sends) else {
                continue;
            };
            if !stream.send.is_waiting_for_connection() || stream.send.unsent() > LEAD / 2 {
                continue;
            }
            let share = stream.share;
            match first.iter().position(|it| is_of_group(&it.1, &share)) {
                Some(at) if place(&first[at].1) < place(&share) => first[at] = (id, share),
                None if first.len() < MOST_GROUPS => first.push((id, share)),
                _ => {}
            }
        }
        let mut leading = first.into_iter().filter(|(_, share)| {
            // Without an order all streams of the group take turns.
            (share.priority, share.order) != (0, 0)
        });
        leading.find_map(|(id, _)| {
            let key = self.table.find(id)?;
            self.leads(key).then_some(id)
        })
    }

    /// Reports that a writer may try again. Returns false if it does not wait any more.
    fn wake_writer(&mut self, id: StreamId) -> bool {
        let Some(key) = self.table.find(id) else {
            return false;
        };
        let state = self.table.at(key);
        let wakes = state.sends && state.send.take_connection_writable();
        if wakes {
            self.events.push_back(StreamEvent::Writable { id });
        }
        wakes
    }
}

/// Returns true if both shares are of one session and group.
fn is_of_group(one: &Share, other: &Share) -> bool {
    (one.session, one.group) == (other.session, other.group)
}

/// Returns the place of a stream in its group: the highest is first.
fn place(share: &Share) -> (i8, i32, i64) {
    // All streams of a session have its class.
    let class = if share.session == 0 { share.class } else { 0 };
    (class, share.priority, share.order)
}

/// Waiting writers that are compared at a time, and groups of which the foremost is known (limit K654).
const MOST_COMPARED: usize = 64;
const MOST_GROUPS: usize = 16;
