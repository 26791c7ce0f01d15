//! Groups of streams in a session.

use std::sync::Arc;

use courser_quic as quic;

use crate::shared::Shared;

/// A group of streams of one session, which has a share of its own beside other groups of the session: `sendGroup` of
/// W3C.
///
/// Created by [`Session::send_group`](crate::Session::send_group), for
/// [`SendStream::set_group`](crate::SendStream::set_group). It is a name, without any state: dropping it changes
/// nothing.
#[derive(Clone, Debug)]
pub struct SendGroup {
    pub(crate) group: quic::SendGroup,
    session: quic::StreamId,
}

impl SendGroup {
    pub(crate) fn new(shared: &Shared) -> Self {
        Self {
            group: shared.quic().send_group(),
            session: shared.id.stream(),
        }
    }

    /// Returns true if the group belongs to this session.
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        self.session == shared.id.stream() && self.group.is_of(shared.quic())
    }
}
