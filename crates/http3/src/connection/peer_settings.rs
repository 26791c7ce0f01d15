//! The settings of the peer, §7.2.4.

use crate::error::{Code, Error};
use crate::settings::Settings;

/// The settings of the peer: those that a ticket remembers, and those that have arrived.
#[derive(Debug, Default)]
pub(super) struct PeerSettings {
    received: Option<Settings>,
    /// The settings that this crate does not implement, if there are extensions.
    pub(super) others: Vec<(u64, u64)>,
    /// The settings that a ticket remembers, which later ones must not fall below.
    remembered: Option<Settings>,
}

impl PeerSettings {
    pub(super) const fn remember(&mut self, settings: Settings) {
        self.remembered = Some(settings);
    }

    /// Takes the settings that have arrived.
    ///
    /// Fails if they are below those that early data was sent with.
    pub(super) fn receive(&mut self, settings: Settings) -> Result<(), Error> {
        if let Some(remembered) = &self.remembered {
            check_remembered(remembered, &settings)?;
        }
        self.received = Some(settings);
        Ok(())
    }

    /// Returns the settings that have arrived.
    pub(super) const fn received(&self) -> Option<&Settings> {
        self.received.as_ref()
    }

    pub(super) const fn remembered(&self) -> Option<&Settings> {
        self.remembered.as_ref()
    }

    /// Returns the settings that hold: the remembered ones until others arrive.
    pub(super) fn in_force(&self) -> Option<&Settings> {
        self.received.as_ref().or(self.remembered.as_ref())
    }
}

/// Checks new settings against remembered ones, §7.2.4.2, RFC 9204 §3.2.3, RFC 9297 §2.1.1.
fn check_remembered(remembered: &Settings, new: &Settings) -> Result<(), Error> {
    // It must not be omitted either.
    let is_smaller = |old| new.max_field_section_size.is_none_or(|size| size < old);
    let is_lower = remembered.max_field_section_size.is_some_and(is_smaller)
        || new.qpack_blocked_streams < remembered.qpack_blocked_streams
        || (remembered.enable_connect_protocol && !new.enable_connect_protocol)
        || (remembered.h3_datagram && !new.h3_datagram)
        || (remembered.qpack_max_table_capacity != 0
            && new.qpack_max_table_capacity != remembered.qpack_max_table_capacity);
    if is_lower {
        return Err(Error::connection(
            Code::SETTINGS_ERROR,
            "settings below those that early data was sent with",
        ));
    }
    Ok(())
}
