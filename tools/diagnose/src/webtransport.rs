//! The announcement of WebTransport by a server, and the clients that would refuse it.

use std::fmt;

use courser::h3;
use courser::webtransport::Dialect;
use courser_units::binary_size;
use serde::Serialize;

/// What a server announces about WebTransport, in its settings of HTTP/3 and in its transport parameters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Default)]
#[non_exhaustive]
pub struct WebTransport {
    /// The dialects, the oldest first.
    pub dialects: Vec<AnnouncedDialect>,
    /// `SETTINGS_WT_INITIAL_MAX_DATA`: bytes that a client may send in a session at first; 0 if it is absent.
    pub initial_max_data: u64,
    /// `SETTINGS_WT_INITIAL_MAX_STREAMS_UNI`; 0 if it is absent.
    pub initial_max_streams_uni: u64,
    /// `SETTINGS_WT_INITIAL_MAX_STREAMS_BIDI`; 0 if it is absent.
    pub initial_max_streams_bidi: u64,
    /// `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 9220).
    pub enable_connect_protocol: bool,
    /// `SETTINGS_H3_DATAGRAM` (RFC 9297).
    pub h3_datagram: bool,
    /// True if the server accepts QUIC datagrams (RFC 9221); `None` if that was not observed.
    pub has_datagrams: Option<bool>,
    /// True if the server accepts RESET_STREAM_AT; `None` if that was not observed.
    pub reset_stream_at: Option<bool>,
}

/// A dialect of WebTransport that a server announces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct AnnouncedDialect {
    /// The name, such as `draft-02`.
    pub name: &'static str,
    /// The identifier of the setting.
    pub setting: u64,
    /// The value of the setting: the number of sessions in the dialects `draft-07` and `draft-14`, otherwise 1.
    pub value: u64,
}

impl WebTransport {
    /// Reads the settings of a server: those that [`h3::Extension::settings`] returns, and those of HTTP/3.
    pub fn of(others: &[(u64, u64)], http3: &h3::Settings) -> Self {
        let value = |id: u64| {
            let found = others.iter().find(|(known, _)| *known == id);
            found.map_or(0, |(_, value)| *value)
        };
        let dialects = Dialect::ALL.into_iter().map(|dialect| AnnouncedDialect {
            name: dialect.name(),
            setting: dialect.setting(),
            value: value(dialect.setting()),
        });
        Self {
            dialects: dialects.filter(|it| it.value > 0).collect(),
            initial_max_data: value(INITIAL_MAX_DATA),
            initial_max_streams_uni: value(INITIAL_MAX_STREAMS_UNI),
            initial_max_streams_bidi: value(INITIAL_MAX_STREAMS_BIDI),
            enable_connect_protocol: http3.enable_connect_protocol,
            h3_datagram: http3.h3_datagram,
            has_datagrams: None,
            reset_stream_at: None,
        }
    }

    fn value(&self, dialect: Dialect) -> u64 {
        let found = self.dialects.iter().find(|it| it.name == dialect.name());
        found.map_or(0, |it| it.value)
    }

    /// Returns true if all three initial limits are above 0.
    fn has_limits(&self) -> bool {
        self.initial_max_data > 0
            && self.initial_max_streams_uni > 0
            && self.initial_max_streams_bidi > 0
    }

    /// Returns what is missing for sessions in any dialect, in words for the operator of the server.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.dialects.is_empty() {
            let ids: Vec<_> = Dialect::ALL
                .into_iter()
                .rev()
                .map(|it| format!("{:#x} ({it})", it.setting()))
                .collect();
            missing.push(format!("one of the settings {}", ids.join(", ")));
        }
        if !self.enable_connect_protocol {
            missing.push("SETTINGS_ENABLE_CONNECT_PROTOCOL (0x8)".to_owned());
        }
        if !self.h3_datagram {
            missing.push("SETTINGS_H3_DATAGRAM (0x33)".to_owned());
        }
        if self.has_datagrams == Some(false) {
            missing.push("the transport parameter max_datagram_frame_size".to_owned());
        }
        missing
    }

    /// Returns the browsers and libraries that refuse to open sessions, each with the reason. The rules are those of
    /// the releases of 2026.
    pub fn refusals(&self) -> Vec<(&'static str, String)> {
        let missing = self.missing();
        if !missing.is_empty() {
            return vec![("every browser", format!("missing: {}", missing.join(", ")))];
        }
        let mut refusals = Vec::new();
        if self.value(Dialect::Draft02) == 0 {
            let setting = Dialect::Draft02.setting();
            let why =
                format!("it speaks draft-02 only, which the setting {setting:#x} = 1 announces");
            refusals.push(("Chromium", why.clone()));
            refusals.push(("Firefox", why));
        }
        let sessions = self.value(Dialect::Draft14);
        if sessions > 1 && !self.has_limits() {
            let setting = Dialect::Draft14.setting();
            let why = format!(
                "{setting:#x} allows {sessions} sessions, and then all of 0x2b61, 0x2b64 and 0x2b65 must be above 0"
            );
            refusals.push(("Safari", why));
        } else if sessions == 0 && self.value(Dialect::Draft07) == 0 {
            let why = format!(
                "it needs {:#x} (draft-14) or {:#x} (draft-07)",
                Dialect::Draft14.setting(),
                Dialect::Draft07.setting()
            );
            refusals.push(("Safari", why));
        }
        if self.value(Dialect::Draft16) > 0 && self.reset_stream_at == Some(false) {
            let why = "draft-16 needs the transport parameter reset_stream_at";
            refusals.push(("webtransport-go", why.to_owned()));
        }
        refusals
    }
}

impl fmt::Display for WebTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dialects.is_empty() {
            return f.write_str("not announced");
        }
        let dialects = self.dialects.iter().rev().map(|it| match it.value {
            1 => it.name.to_owned(),
            MANY.. => format!("{} (any number of sessions)", it.name),
            sessions => format!("{} ({sessions} sessions)", it.name),
        });
        f.write_str(&dialects.collect::<Vec<_>>().join(", "))?;
        if !self.has_limits() {
            return f.write_str("; no flow control of sessions");
        }
        write!(
            f,
            "; a session at first {}, {} + {} streams",
            binary_size(self.initial_max_data),
            self.initial_max_streams_bidi,
            self.initial_max_streams_uni
        )
    }
}

/// More sessions than stream IDs.
const MANY: u64 = 1 << 60;

const INITIAL_MAX_DATA: u64 = 0x2b61;
const INITIAL_MAX_STREAMS_UNI: u64 = 0x2b64;
const INITIAL_MAX_STREAMS_BIDI: u64 = 0x2b65;

#[cfg(test)]
mod tests {
    use courser::Side;
    use courser::webtransport::{Config, Dialects, Limits};

    use super::*;

    /// Returns the announcement of a server with these settings and all other requirements.
    fn announced(settings: &[(u64, u64)]) -> WebTransport {
        let http3 = h3::Settings {
            enable_connect_protocol: true,
            h3_datagram: true,
            ..h3::Settings::default()
        };
        WebTransport {
            has_datagrams: Some(true),
            reset_stream_at: Some(true),
            ..WebTransport::of(settings, &http3)
        }
    }

    fn who_refuses(announced: &WebTransport) -> Vec<&'static str> {
        announced.refusals().into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn every_client_accepts_the_default_configuration() {
        let announced = announced(&Config::new().settings(Side::Server));
        assert_eq!(who_refuses(&announced), [""; 0]);
        assert_eq!(
            announced.to_string(),
            "draft-16, draft-14 (16 sessions), draft-07 (16 sessions), draft-02; \
             a session at first 16.0 MiB, 1024 + 1024 streams"
        );
    }

    #[test]
    fn browsers_refuse_what_they_cannot_use() {
        let newest = Config {
            dialects: Dialects::NEWEST,
            limits: Limits::NONE,
            ..Config::new()
        };
        let newest = newest.settings(Side::Server);
        assert_eq!(
            who_refuses(&announced(&newest)),
            ["Chromium", "Firefox", "Safari"]
        );
        let (old, middle, safari) = (0x2b60_3742, 0xc671_706a, 0x14e9_cd29);
        for (settings, expected) in [
            (&[(old, 1)][..], &["Safari"][..]),
            (&[(old, 1), (middle, 16)], &[]),
            (&[(old, 1), (safari, 1)], &[]),
            (&[(old, 1), (safari, 2)], &["Safari"]),
            // webtransport-go without limits.
            (&[(old, 1), (safari, (1 << 62) - 1)], &["Safari"]),
            (
                &[(old, 1), (safari, 2), (0x2b61, 1), (0x2b64, 1)],
                &["Safari"],
            ),
            (
                &[(old, 1), (safari, 2), (0x2b61, 1), (0x2b64, 1), (0x2b65, 1)],
                &[],
            ),
            (&[(safari, 1)], &["Chromium", "Firefox"]),
        ] {
            assert_eq!(who_refuses(&announced(settings)), expected, "{settings:x?}");
        }
    }

    #[test]
    fn missing_requirements_are_named() {
        let mut server = announced(&[(0x2b60_3742, 1), (0x14e9_cd29, 1), (0x2c7c_f000, 1)]);
        assert_eq!(server.missing(), [""; 0]);
        server.reset_stream_at = Some(false);
        assert_eq!(who_refuses(&server), ["webtransport-go"]);
        server.h3_datagram = false;
        server.has_datagrams = Some(false);
        assert_eq!(who_refuses(&server), ["every browser"]);
        assert_eq!(server.missing().len(), 2);
        let nothing = WebTransport::of(&[], &h3::Settings::default());
        let missing = nothing.missing().join(", ");
        for part in ["0x2c7cf000", "0x2b603742", "0x8", "0x33"] {
            assert!(missing.contains(part), "{missing}");
        }
        assert_eq!(nothing.to_string(), "not announced");
    }
}
