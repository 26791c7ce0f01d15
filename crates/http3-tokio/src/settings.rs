//! Waiting for the peer's settings, and for a GOAWAY.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use courser_http3 as http3;
use courser_quic::hooks::Ticket;

use super::failure::Origin;
use super::shared::SharedConnection;

impl SharedConnection {
    /// Waits for the peer's settings. Returns `None` if the connection is closed before they arrive.
    pub(super) fn peer_settings(&self) -> PeerSettings<'_> {
        PeerSettings::of(self)
    }
}

/// A future that completes with the peer's settings, or `None` if the connection is closed before. Dropping it
/// removes the waiting task, because there may be many of these futures and a peer that never sends settings.
#[derive(Debug)]
pub(super) struct PeerSettings<'a> {
    shared: &'a SharedConnection,
    ticket: Ticket,
}

impl<'a> PeerSettings<'a> {
    pub(super) fn of(shared: &'a SharedConnection) -> Self {
        Self {
            shared,
            ticket: None,
        }
    }
}

impl Future for PeerSettings<'_> {
    type Output = Option<http3::Settings>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.shared.poll_settings(cx, &mut this.ticket)
    }
}

impl Drop for PeerSettings<'_> {
    fn drop(&mut self) {
        self.shared.stop_waiting_for_settings(&mut self.ticket);
    }
}

/// A future that completes with the end that has sent the first GOAWAY, or `None` if the connection is closed before.
/// Dropping it removes the waiting task.
#[derive(Debug)]
pub(super) struct GoingAway<'a> {
    shared: &'a SharedConnection,
    ticket: Ticket,
}

impl<'a> GoingAway<'a> {
    pub(super) fn of(shared: &'a SharedConnection) -> Self {
        Self {
            shared,
            ticket: None,
        }
    }
}

impl Future for GoingAway<'_> {
    type Output = Option<Origin>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.shared.poll_going_away(cx, &mut this.ticket)
    }
}

impl Drop for GoingAway<'_> {
    fn drop(&mut self) {
        self.shared.stop_waiting_for_goaway(&mut self.ticket);
    }
}
