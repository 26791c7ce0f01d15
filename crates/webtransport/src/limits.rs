//! Limits of the flow control of a session (draft-ietf-webtrans-http3-16 §5).

use courser_wire::{Direction, MAX_STREAMS};

/// The limits that one end sets for the streams of the other end in each session.
///
/// The default is what this crate announces: 1024 streams in each direction and 16 MiB (limit K305). Browsers fail
/// to open a stream beyond a limit instead of waiting, so the limits of streams are high. A limit of 0 beside others
/// above 0 allows nothing of its kind for the whole session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The bytes in the bodies of all streams of the session, without headers and capsules.
    pub max_data: u64,
    /// The number of bidirectional streams, cumulative over the life of the session; at most 2^60.
    pub max_streams_bidi: u64,
    /// The number of unidirectional streams, cumulative over the life of the session; at most 2^60.
    pub max_streams_uni: u64,
}

impl Limits {
    /// No credit: an end that announces nothing has these limits.
    pub const NONE: Self = Self {
        max_data: 0,
        max_streams_bidi: 0,
        max_streams_uni: 0,
    };

    /// Returns the limit of streams in a direction.
    pub const fn max_streams(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Bidirectional => self.max_streams_bidi,
            Direction::Unidirectional => self.max_streams_uni,
        }
    }

    /// Returns true if any limit is above 0, by which an end declares that it uses flow control
    /// (draft-ietf-webtrans-http3-16 §5.1).
    pub const fn is_any(&self) -> bool {
        self.max_data > 0 || self.max_streams_bidi > 0 || self.max_streams_uni > 0
    }

    /// Returns true if all limits are above 0.
    pub const fn are_all(&self) -> bool {
        self.max_data > 0 && self.max_streams_bidi > 0 && self.max_streams_uni > 0
    }

    /// Returns the limits in a list of settings. Larger numbers of streams than 2^60 count as 2^60, because more
    /// stream IDs do not exist.
    pub(crate) fn in_settings(settings: &[(u64, u64)]) -> Self {
        let value = |id| value_of(settings, id);
        Self {
            max_data: value(INITIAL_MAX_DATA),
            max_streams_bidi: value(INITIAL_MAX_STREAMS_BIDI).min(MAX_STREAMS),
            max_streams_uni: value(INITIAL_MAX_STREAMS_UNI).min(MAX_STREAMS),
        }
    }

    /// Returns the settings of the limits that are above 0.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = [
            (INITIAL_MAX_DATA, self.max_data),
            (INITIAL_MAX_STREAMS_UNI, self.max_streams_uni),
            (INITIAL_MAX_STREAMS_BIDI, self.max_streams_bidi),
        ];
        all.into_iter().filter(|&(_, value)| value > 0)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_data: MAX_DATA,
            max_streams_bidi: MAX_STREAMS_BIDI,
            max_streams_uni: MAX_STREAMS_UNI,
        }
    }
}

/// Returns the value of a setting, which is 0 by default.
pub(crate) fn value_of(settings: &[(u64, u64)], id: u64) -> u64 {
    let found = settings.iter().find(|(known, _)| *known == id);
    found.map_or(0, |(_, value)| *value)
}

/// `SETTINGS_WT_INITIAL_MAX_DATA`.
pub(crate) const INITIAL_MAX_DATA: u64 = 0x2b61;
/// `SETTINGS_WT_INITIAL_MAX_STREAMS_UNI`.
pub(crate) const INITIAL_MAX_STREAMS_UNI: u64 = 0x2b64;
/// `SETTINGS_WT_INITIAL_MAX_STREAMS_BIDI`.
pub(crate) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x2b65;

/// Bytes of a session that a peer may send at first (limit K305).
const MAX_DATA: u64 = 16 * 1024 * 1024;
/// Bidirectional streams of a session that a peer may open at first (limit K305).
const MAX_STREAMS_BIDI: u64 = 1024;
/// Unidirectional streams of a session that a peer may open at first (limit K305).
const MAX_STREAMS_UNI: u64 = 1024;
