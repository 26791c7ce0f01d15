//! The addresses of the peer that this end reports.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_wire::{Frame, ObservedAddress, PathId};

use super::observed_path::MAX_OBSERVED;
use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::SentFrame;

/// The reports of a connection, one for each path.
#[derive(Debug, Default)]
pub(super) struct Reports {
    next_sequence: u64,
    all: Vec<Report>,
}

/// The address of the peer on a path.
#[derive(Debug)]
struct Report {
    path: PathId,
    peer: SocketAddr,
    /// The sequence number with which it was sent last.
    sequence: Option<u64>,
    state: ReportState,
    /// The time of the last report of the path.
    sent_at: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReportState {
    /// It is to be sent with the next packet of the path.
    Due,
    /// The last change was a moment ago (limit K284).
    DueAt(Time),
    /// It was sent.
    Sent,
}

impl Reports {
    pub(super) fn refresh(&mut self, now: Time, path: PathId, peer: SocketAddr, rtt: Duration) {
        let Some(report) = self.all.iter_mut().find(|it| it.path == path) else {
            if self.all.len() >= MAX_OBSERVED {
                self.all.remove(0);
            }
            // The path is new: it gets a report as early as possible (§5).
            return self.all.push(Report {
                path,
                peer,
                sequence: None,
                state: ReportState::Due,
                sent_at: None,
            });
        };
        if report.peer != peer {
            report.peer = peer;
            report.state = match report.sent_at {
                Some(sent) => ReportState::DueAt(sent + rtt.max(MIN_INTERVAL)),
                None => ReportState::Due,
            };
        }
        if let ReportState::DueAt(at) = report.state
            && at <= now
        {
            report.state = ReportState::Due;
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        for report in &mut self.all {
            if let ReportState::DueAt(at) = report.state
                && at <= now
            {
                report.state = ReportState::Due;
            }
        }
    }

    pub(super) fn is_due(&self, path: PathId) -> bool {
        let mut all = self.all.iter();
        all.any(|it| it.path == path && it.state == ReportState::Due)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        let waiting = self.all.iter().filter_map(|it| match it.state {
            ReportState::DueAt(at) => Some(at),
            ReportState::Due | ReportState::Sent => None,
        });
        waiting.min()
    }

    pub(super) fn write(
        &mut self,
        now: Time,
        path: PathId,
        peer: SocketAddr,
        packet: &mut PacketBuilder<'_>,
    ) {
        let report = self.all.iter_mut().find(|it| it.path == path);
        // The packet may be a probe of another address than the one in use.
        let is_due = |it: &&mut Report| it.state == ReportState::Due && it.peer == peer;
        let Some(report) = report.filter(is_due) else {
            return;
        };
        let sequence = self.next_sequence;
        let frame = Frame::ObservedAddress(ObservedAddress {
            sequence,
            address: peer,
        });
        if packet.remaining() < frame.encoded_len() {
            return;
        }
        frame.encode(packet.writer());
        packet.record(SentFrame::ObservedAddress { path, sequence });
        self.next_sequence += 1;
        report.sequence = Some(sequence);
        report.state = ReportState::Sent;
        report.sent_at = Some(now);
    }

    pub(super) fn on_lost(&mut self, path: PathId, sequence: u64) {
        let mut all = self.all.iter_mut();
        let lost = all.find(|it| it.path == path && it.sequence == Some(sequence));
        if let Some(report) = lost
            && report.state == ReportState::Sent
        {
            report.state = ReportState::Due;
        }
    }
}

/// The least time between two reports of a path whose address changes (limit K284).
const MIN_INTERVAL: Duration = Duration::from_secs(1);
