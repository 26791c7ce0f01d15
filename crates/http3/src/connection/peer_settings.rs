//! The settings of the peer (§7.2.4).

use crate::error::{Code, Error};
use crate::settings::Settings;

/// The settings of the peer: those remembered with a ticket, and those received.
#[derive(Debug, Default)]
pub(super) struct PeerSettings {
    received: Option<Settings>,
    /// The received settings that this crate does not implement, if the application has extensions.
    pub(super) others: Vec<(u64, u64)>,
    /// The groups of extensions that need an announcement which is not among them, as bits.
    pub(super) unsupported: u8,
    /// The settings remembered with a ticket, which the received ones must not reduce.
    remembered: Option<Settings>,
}

impl PeerSettings {
    pub(super) const fn remember(&mut self, settings: Settings) {
        self.remembered = Some(settings);
    }

    /// Sets the received settings.
    ///
    /// Returns an error if they are below those with which early data was sent.
    pub(super) fn receive(&mut self, settings: Settings) -> Result<(), Error> {
        if let Some(remembered) = &self.remembered {
            check_remembered(remembered, &settings)?;
        }
        self.received = Some(settings);
        Ok(())
    }

    /// Returns the value of a received setting, unless it is 0.
    pub(super) fn announced_value(&self, id: u64) -> Option<u64> {
        let found = self.others.iter().find(|(known, _)| *known == id);
        found.map(|(_, value)| *value).filter(|value| *value != 0)
    }

    /// Returns the received settings.
    pub(super) const fn received(&self) -> Option<&Settings> {
        self.received.as_ref()
    }

    pub(super) const fn remembered(&self) -> Option<&Settings> {
        self.remembered.as_ref()
    }

    /// Returns the settings in force: the received ones, or the remembered ones until then.
    pub(super) fn in_force(&self) -> Option<&Settings> {
        self.received.as_ref().or(self.remembered.as_ref())
    }
}

/// Compares new settings with remembered ones (§7.2.4.2, RFC 9204 §3.2.3, RFC 9297 §2.1.1).
fn check_remembered(remembered: &Settings, new: &Settings) -> Result<(), Error> {
    // The setting must not be omitted either.
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
            "settings below those remembered for early data",
        ));
    }
    Ok(())
}
