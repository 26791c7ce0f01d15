//! The time limit of a call.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_quic::runtime::Sleep;

use crate::deadline::Deadline;

/// The alarm of a call, and the timeout that its client is told.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) alarm: Sleep,
    pub(super) timeout: Duration,
}

impl Limit {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<tonic::Status> {
        Pin::new(&mut self.alarm)
            .poll(cx)
            .map(|()| Deadline::exceeded(self.timeout))
    }
}
