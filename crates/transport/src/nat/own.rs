//! The addresses that this end offers, and their frames.

use std::net::SocketAddr;

use courser_base::Side;
use courser_wire::{AddAddress, Frame, ReachOut, RemoveAddress};

use super::error::CandidateError;
use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::SentFrame;

/// The addresses that this end offers.
#[derive(Debug)]
pub(super) struct OwnCandidates {
    /// The number that the peer accepts.
    limit: usize,
    next_sequence: u64,
    offered: Vec<Offered>,
    /// The numbers that were withdrawn, until the peer knows.
    withdrawn: Vec<Withdrawn>,
}

#[derive(Debug)]
struct Offered {
    address: SocketAddr,
    sequence: u64,
    /// True if a frame that names it is to be sent: ADD_ADDRESS, or REACH_OUT of the round.
    is_due: bool,
}

#[derive(Debug)]
struct Withdrawn {
    sequence: u64,
    is_due: bool,
}

impl OwnCandidates {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            next_sequence: 0,
            offered: Vec::new(),
            withdrawn: Vec::new(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.offered.iter().map(|it| it.address)
    }

    pub(super) fn offer(
        &mut self,
        address: SocketAddr,
        side: Side,
    ) -> Result<bool, CandidateError> {
        if self.iter().any(|offered| offered == address) {
            return Ok(false);
        }
        // The peer frees a place when it learns of the withdrawal.
        if self.offered.len() + self.withdrawn.len() >= self.limit {
            return Err(CandidateError::TooMany { limit: self.limit });
        }
        self.offered.push(Offered {
            address,
            sequence: self.next_sequence,
            is_due: side.is_server(),
        });
        self.next_sequence += 1;
        Ok(true)
    }

    pub(super) fn withdraw(&mut self, address: SocketAddr, side: Side) -> bool {
        let Some(at) = self.iter().position(|offered| offered == address) else {
            return false;
        };
        let removed = self.offered.remove(at);
        if side.is_server() {
            self.withdrawn.push(Withdrawn {
                sequence: removed.sequence,
                is_due: true,
            });
        }
        true
    }

    /// Sends all addresses in REACH_OUT frames of a new round.
    pub(super) fn reach_out(&mut self) {
        for offered in &mut self.offered {
            offered.is_due = true;
        }
    }

    pub(super) fn has_frames_to_send(&self) -> bool {
        self.offered.iter().any(|it| it.is_due) || self.withdrawn.iter().any(|it| it.is_due)
    }

    pub(super) fn write_frames(&mut self, side: Side, round: u64, packet: &mut PacketBuilder<'_>) {
        for offered in self.offered.iter_mut().filter(|it| it.is_due) {
            let (address, sequence) = (offered.address, offered.sequence);
            offered.is_due = match side {
                Side::Server => !write(
                    packet,
                    &Frame::AddAddress(AddAddress { sequence, address }),
                    SentFrame::AddAddress { sequence },
                ),
                Side::Client => !write(
                    packet,
                    &Frame::ReachOut(ReachOut { round, address }),
                    SentFrame::ReachOut { round, sequence },
                ),
            };
        }
        for withdrawn in self.withdrawn.iter_mut().filter(|it| it.is_due) {
            let sequence = withdrawn.sequence;
            let frame = Frame::RemoveAddress(RemoveAddress { sequence });
            withdrawn.is_due = !write(packet, &frame, SentFrame::RemoveAddress { sequence });
        }
    }

    pub(super) fn on_acked(&mut self, frame: SentFrame, round: u64) {
        match frame {
            SentFrame::AddAddress { sequence } => self.set_due(sequence, false),
            SentFrame::ReachOut {
                round: of,
                sequence,
            } if of == round => {
                self.set_due(sequence, false);
            }
            SentFrame::RemoveAddress { sequence } => {
                self.withdrawn.retain(|it| it.sequence != sequence);
            }
            _ => {}
        }
    }

    pub(super) fn on_lost(&mut self, frame: SentFrame, round: u64) {
        match frame {
            SentFrame::AddAddress { sequence } => self.set_due(sequence, true),
            SentFrame::ReachOut {
                round: of,
                sequence,
            } if of == round => {
                self.set_due(sequence, true);
            }
            SentFrame::RemoveAddress { sequence } => {
                let mut withdrawn = self.withdrawn.iter_mut();
                if let Some(withdrawn) = withdrawn.find(|it| it.sequence == sequence) {
                    withdrawn.is_due = true;
                }
            }
            _ => {}
        }
    }

    fn set_due(&mut self, sequence: u64, is_due: bool) {
        let mut offered = self.offered.iter_mut();
        if let Some(offered) = offered.find(|it| it.sequence == sequence) {
            offered.is_due = is_due;
        }
    }
}

/// Writes a frame if it fits, and records it.
fn write(packet: &mut PacketBuilder<'_>, frame: &Frame<'_>, record: SentFrame) -> bool {
    let fits = packet.remaining() >= frame.encoded_len();
    if fits {
        frame.encode(packet.writer());
        packet.record(record);
    }
    fits
}
