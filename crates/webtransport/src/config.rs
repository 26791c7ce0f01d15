//! The configuration of one end.

use courser_base::Side;

use crate::dialect::{Dialect, Dialects};
use crate::limits::Limits;
use crate::origins::Origins;

/// The choices of one end for all its connections.
#[derive(Clone, Debug)]
pub struct Config {
    /// The dialects that this end offers. Default: all.
    pub dialects: Dialects,
    /// The largest number of sessions of a connection at the same time; at least 1. Default 16 (limit K300).
    pub max_sessions: u64,
    /// The largest number of sessions of all connections of a server at the same time, which share one
    /// configuration. Further requests are refused as those beyond [`max_sessions`](Self::max_sessions). Default 65 536
    /// (limit K300).
    pub max_all_sessions: u64,
    /// The limits that the peer gets in each session. Without all three, at most one session of a connection uses
    /// a dialect of draft 13 or newer. Default: [`Limits::default`].
    pub limits: Limits,
    /// The largest window of a session in bytes, to which [`Limits::max_data`] grows on a fast path. Default 128
    /// MiB (limit K305).
    pub max_window: u64,
    /// The origins whose pages may open sessions; for servers. Default: [`Origins::same_host`].
    pub origins: Origins,
}

impl Config {
    /// Creates the default configuration.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the settings to send in addition to `SETTINGS_ENABLE_CONNECT_PROTOCOL` (of servers) and
    /// `SETTINGS_H3_DATAGRAM`, which [`courser_http3::Config`] sends.
    ///
    /// They announce each dialect by a setting of its own, so that the peer uses the newest one that it speaks
    /// (draft-ietf-webtrans-http3-16 §7.1). A server that announces more than one session in the dialect of draft 14
    /// also announces all three limits, because Safari refuses it otherwise.
    ///
    /// ```
    /// use courser_base::Side;
    /// use courser_webtransport::{Config, Dialect};
    /// let settings = Config::new().settings(Side::Server);
    /// for dialect in Dialect::ALL {
    ///     assert!(settings.iter().any(|(id, _)| *id == dialect.setting()));
    /// }
    /// ```
    pub fn settings(&self, side: Side) -> Vec<(u64, u64)> {
        let mut settings: Vec<_> = self
            .dialects
            .iter()
            .rev()
            .map(|dialect| (dialect.setting(), self.announced(side, dialect)))
            .collect();
        settings.extend(self.limits.settings());
        if self.dialects.contains(Dialect::Draft02) {
            settings.push((H3_DATAGRAM_OF_DRAFTS, 1));
        }
        settings
    }

    /// Returns the value of the setting of a dialect, which in the middle two is a number of sessions.
    pub(crate) const fn announced(&self, side: Side, dialect: Dialect) -> u64 {
        match (side, dialect) {
            (Side::Client, _) | (_, Dialect::Draft02 | Dialect::Draft16) => 1,
            (Side::Server, Dialect::Draft07) => at_least_one(self.max_sessions),
            (Side::Server, Dialect::Draft14) if self.limits.are_all() => {
                at_least_one(self.max_sessions)
            }
            (Side::Server, Dialect::Draft14) => 1,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dialects: Dialects::ALL,
            max_sessions: MAX_SESSIONS,
            max_all_sessions: MAX_ALL_SESSIONS,
            limits: Limits::default(),
            max_window: MAX_WINDOW,
            origins: Origins::same_host(),
        }
    }
}

const fn at_least_one(sessions: u64) -> u64 {
    if sessions == 0 { 1 } else { sessions }
}

/// `SETTINGS_H3_DATAGRAM` of the drafts before RFC 9297, which ends of draft 02 may know only.
pub(crate) const H3_DATAGRAM_OF_DRAFTS: u64 = 0xff_d277;

/// Sessions of a connection (limit K300). Each is a task and tables.
const MAX_SESSIONS: u64 = 16;
/// Sessions of all connections of a server (limit K300).
const MAX_ALL_SESSIONS: u64 = 65_536;
/// Largest window of a session in bytes (limit K305).
const MAX_WINDOW: u64 = 128 * 1024 * 1024;
