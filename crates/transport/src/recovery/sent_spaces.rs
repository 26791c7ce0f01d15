//! The sending parts of all packet number spaces.

use super::application_space::ApplicationSpace;
use super::sent_space::SentSpace;
use crate::space::SpaceId;

/// The sending parts of the three packet number spaces. The first two exist as long as their keys.
#[derive(Debug)]
pub(super) struct SentSpaces {
    pub(super) initial: Option<Box<SentSpace>>,
    pub(super) handshake: Option<Box<SentSpace>>,
    pub(super) application: ApplicationSpace,
}

impl SentSpaces {
    /// Returns true while an acknowledgement or a probe timeout is certain to follow that lets packets of space `id`
    /// be sent. 1-RTT packets do not count for the handshake: they have no probe timeout before it is confirmed
    /// (RFC 9002 §6.2.1), and that may depend on the packets that wait.
    pub(super) fn awaits_acknowledgement(&self, id: SpaceId) -> bool {
        let counts = |it: &SpaceId| id == SpaceId::Application || *it != SpaceId::Application;
        let mut each = SpaceId::ALL.into_iter().filter(counts);
        each.any(|it| self.get(it).is_some_and(|space| space.ack_eliciting > 0))
    }

    #[inline]
    pub(super) fn get(&self, id: SpaceId) -> Option<&SentSpace> {
        match id {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Application => Some(&self.application.space),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: SpaceId) -> Option<&mut SentSpace> {
        match id {
            SpaceId::Initial => self.initial.as_deref_mut(),
            SpaceId::Handshake => self.handshake.as_deref_mut(),
            SpaceId::Application => Some(&mut self.application.space),
        }
    }
}
