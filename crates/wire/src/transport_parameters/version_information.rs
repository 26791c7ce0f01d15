//! The transport parameter version_information. RFC 9368 §3.

use crate::reader::Reader;
use crate::version::{self, Version, Versions};
use crate::writer::Writer;

/// The version that an end chose, and the versions that it supports. RFC 9368 §3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionInformation {
    chosen: u32,
    available: Versions,
    /// True if the list of available versions is empty. It may consist of unknown versions only.
    is_empty: bool,
    is_chosen_available: bool,
}

impl VersionInformation {
    /// Creates the parameter of an end that chose a version of the list.
    ///
    /// A client lists the versions that its first flight is compatible with, most preferred first.
    /// A server lists the versions that all servers of its deployment support.
    pub fn new(chosen: Version, available: Versions) -> Self {
        Self {
            chosen: chosen.value(),
            available,
            is_empty: available.first().is_none(),
            is_chosen_available: available.contains(chosen),
        }
    }

    /// Returns the chosen version; never 0.
    pub fn chosen(&self) -> u32 {
        self.chosen
    }

    /// Returns those available versions that this crate supports, in the order of the sender.
    pub fn available(&self) -> Versions {
        self.available
    }

    /// Returns true if the sender lists no version at all, not even an unknown one.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns true if the chosen version is among the available ones, as required of a client.
    pub fn is_chosen_available(&self) -> bool {
        self.is_chosen_available
    }

    /// The largest number of bytes that [`VersionInformation::encode`] writes.
    pub(super) const MAX_LEN: usize = 4 * (1 + Version::ALL.len() + 1);

    pub(super) fn encode(&self, writer: &mut Writer<'_>, grease: Option<u64>) {
        writer.u32(self.chosen);
        for version in self.available.iter() {
            writer.u32(version.value());
        }
        if let Some(seed) = grease {
            let [.., a, b, c, d] = seed.to_be_bytes();
            writer.u32(version::reserved(u32::from_be_bytes([a, b, c, d])));
        }
    }

    pub(super) fn decode(value: &[u8]) -> Result<Self, &'static str> {
        let not_whole = |_| "is not a list of versions of four bytes";
        let mut reader = Reader::new(value);
        let chosen = reader.u32().map_err(not_whole)?;
        let mut information = Self {
            chosen,
            available: Versions::default(),
            is_empty: true,
            is_chosen_available: false,
        };
        let mut has_zero = chosen == version::NEGOTIATION;
        while !reader.is_empty() {
            let available = reader.u32().map_err(not_whole)?;
            has_zero |= available == version::NEGOTIATION;
            information.is_empty = false;
            information.is_chosen_available |= available == chosen;
            if let Some(known) = Version::from_value(available) {
                information.available.push(known);
            }
        }
        match has_zero {
            true => Err("has version 0"),
            false => Ok(information),
        }
    }
}
