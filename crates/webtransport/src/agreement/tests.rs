use super::*;
use crate::dialect::Dialects;
use crate::testing::{browser, peer};

/// The settings of an end that announces each of these dialects with 1, and no limits.
fn announcing(dialects: &[Dialect]) -> Vec<(u64, u64)> {
    dialects.iter().map(|it| (it.setting(), 1)).collect()
}

fn with_limits(mut settings: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    settings.push((INITIAL_MAX_DATA, 1000));
    settings
}

fn agreed(side: Side, config: &Config, peer: &Peer<'_>) -> Agreement {
    Agreement::negotiate(side, config, peer)
        .expect("valid settings")
        .expect("requirements are met")
}

fn unsupported(side: Side, peer: &Peer<'_>) -> Unsupported {
    Agreement::negotiate(side, &Config::new(), peer)
        .expect("valid settings")
        .expect_err("a requirement is missing")
}

/// WT-v-001, WT-h3-107.
#[test]
fn server_announces_every_dialect_with_its_own_setting() {
    let settings = Config::new().settings(Side::Server);
    let value = |id| value_of(&settings, id);
    assert_eq!((value(0x2c7c_f000), value(0x2b60_3742)), (1, 1));
    assert_eq!((value(0x14e9_cd29), value(0xc671_706a)), (16, 16));
    let mut ids: Vec<u64> = settings.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), settings.len());
}

/// WT-v-002.
#[test]
fn client_announces_the_dialects_that_it_speaks() {
    let config = Config {
        dialects: Dialects::ALL.without(Dialect::Draft07),
        ..Config::new()
    };
    let settings = config.settings(Side::Client);
    for dialect in Dialect::ALL {
        let expected = u64::from(dialect != Dialect::Draft07);
        assert_eq!(
            value_of(&settings, dialect.setting()),
            expected,
            "{dialect}"
        );
    }
}

/// WT-v-013: the rules of Safari 26.4.
#[test]
fn more_than_one_session_of_draft_14_needs_all_three_limits() {
    let limits = Limits::default();
    for (limits, sessions) in [
        (limits, 16),
        (
            Limits {
                max_data: 0,
                ..limits
            },
            1,
        ),
        (
            Limits {
                max_streams_uni: 0,
                ..limits
            },
            1,
        ),
        (
            Limits {
                max_streams_bidi: 0,
                ..limits
            },
            1,
        ),
        (Limits::NONE, 1),
    ] {
        let config = Config {
            limits,
            ..Config::new()
        };
        let settings = config.settings(Side::Server);
        assert_eq!(value_of(&settings, Dialect::Draft14.setting()), sessions);
        let announced = [
            INITIAL_MAX_DATA,
            INITIAL_MAX_STREAMS_UNI,
            INITIAL_MAX_STREAMS_BIDI,
        ]
        .map(|id| value_of(&settings, id) > 0);
        assert!(
            sessions == 1 || announced == [true; 3],
            "Safari refuses {settings:x?}"
        );
    }
}

/// WT-v-003.
#[test]
fn dialect_is_the_newest_that_both_ends_announce() {
    for (theirs, expected) in [
        (&Dialect::ALL[..], Dialect::Draft16),
        (&Dialect::ALL[..3], Dialect::Draft14),
        (&Dialect::ALL[..2], Dialect::Draft07),
        (&[Dialect::Draft02, Dialect::Draft16], Dialect::Draft16),
    ] {
        let settings = announcing(theirs);
        for side in [Side::Client, Side::Server] {
            let agreement = agreed(side, &Config::new(), &peer(&settings));
            assert_eq!(agreement.dialect, expected, "{side:?}");
        }
    }
    let config = Config {
        dialects: Dialects::NEWEST.with(Dialect::Draft02),
        ..Config::new()
    };
    let settings = announcing(&Dialect::ALL[..3]);
    let agreement = agreed(Side::Server, &config, &peer(&settings));
    assert_eq!(agreement.dialect, Dialect::Draft02);
}

/// WT-v-003, WT-v-006: what Chromium 156 and Firefox 153 send.
#[test]
fn browsers_are_served_in_draft_02_without_reliable_resets() {
    let settings = browser();
    let browser = Peer {
        reset_stream_at: false,
        extended_connect: false,
        ..peer(&settings)
    };
    let agreement = agreed(Side::Server, &Config::new(), &browser);
    assert_eq!(agreement.dialect, Dialect::Draft02);
    assert!(!agreement.flow_control && !agreement.reliable_reset);
    // Chromium with its flag for draft 07.
    let mut settings = settings.clone();
    settings.push((0xc671_706a, 16));
    let browser = Peer {
        settings: &settings,
        ..browser
    };
    let agreement = agreed(Side::Server, &Config::new(), &browser);
    assert_eq!(agreement.dialect, Dialect::Draft07);
}

/// WT-v-006.
#[test]
fn older_dialects_need_no_reliable_resets() {
    for dialect in [Dialect::Draft02, Dialect::Draft07, Dialect::Draft14] {
        let settings = announcing(&[dialect]);
        let peer = Peer {
            reset_stream_at: false,
            ..peer(&settings)
        };
        assert_eq!(agreed(Side::Server, &Config::new(), &peer).dialect, dialect);
    }
}

/// draft-ietf-webtrans-http3-16 §3.1; WT-v-007, WT-h3-003.
#[test]
fn newest_dialect_needs_datagrams_and_reliable_resets() {
    let settings = announcing(&[Dialect::Draft16]);
    let whole = peer(&settings);
    for (lacking, requirement) in [
        (
            Peer {
                h3_datagram: false,
                ..whole
            },
            Requirement::HttpDatagrams,
        ),
        (
            Peer {
                max_datagram_frame_size: 0,
                ..whole
            },
            Requirement::QuicDatagrams,
        ),
        (
            Peer {
                reset_stream_at: false,
                ..whole
            },
            Requirement::ReliableReset,
        ),
    ] {
        let expected = Unsupported::Missing(requirement);
        assert_eq!(unsupported(Side::Server, &lacking), expected);
        assert_eq!(unsupported(Side::Client, &lacking), expected);
    }
    let nothing = unsupported(Side::Server, &peer(&[]));
    assert_eq!(nothing, Unsupported::NotAnnounced);
}

/// draft-ietf-webtrans-http3-16 §3.1; WT-h3-002.
#[test]
fn client_needs_extended_connect_of_the_server() {
    let settings = announcing(&Dialect::ALL);
    let server = Peer {
        extended_connect: false,
        ..peer(&settings)
    };
    let expected = Unsupported::Missing(Requirement::ExtendedConnect);
    assert_eq!(unsupported(Side::Client, &server), expected);
    // Clients do not announce it.
    let agreement = agreed(Side::Server, &Config::new(), &server);
    assert_eq!(agreement.dialect, Dialect::NEWEST);
}

/// WT-h3-109.
#[test]
fn client_uses_an_older_dialect_with_servers_without_reliable_resets() {
    let settings = announcing(&Dialect::ALL);
    let server = Peer {
        reset_stream_at: false,
        ..peer(&settings)
    };
    let agreement = agreed(Side::Client, &Config::new(), &server);
    assert_eq!(agreement.dialect, Dialect::Draft14);
    // The draft makes sessions of such a client malformed.
    let expected = Unsupported::Missing(Requirement::ReliableReset);
    assert_eq!(unsupported(Side::Server, &server), expected);
}

/// WT-v-019, WT-v-020.
#[test]
fn datagrams_of_older_drafts_are_enough_before_draft_07_only() {
    let mut settings = announcing(&[Dialect::Draft07, Dialect::Draft14]);
    settings.push((H3_DATAGRAM_OF_DRAFTS, 1));
    let old = Peer {
        h3_datagram: false,
        ..peer(&settings)
    };
    let expected = Unsupported::Missing(Requirement::HttpDatagrams);
    assert_eq!(unsupported(Side::Server, &old), expected);
    settings.push((Dialect::Draft02.setting(), 1));
    let old = Peer {
        h3_datagram: false,
        ..peer(&settings)
    };
    let agreement = agreed(Side::Server, &Config::new(), &old);
    assert_eq!(agreement.dialect, Dialect::Draft02);
    let own = Config::new().settings(Side::Client);
    assert_eq!(value_of(&own, H3_DATAGRAM_OF_DRAFTS), 1);
}

/// draft-ietf-webtrans-http3-16 §3.1; WT-h3-001.
#[test]
fn client_refuses_a_setting_of_the_newest_dialect_above_1() {
    for value in [0, 1, 2, 16] {
        let settings = [(Dialect::Draft16.setting(), value)];
        let result = Agreement::negotiate(Side::Client, &Config::new(), &peer(&settings));
        let code = result.err().map(|error| (error.code, error.scope));
        let expected = (value > 1).then_some((Code::SETTINGS_ERROR, Scope::Connection));
        assert_eq!(code, expected, "{value}");
    }
}

/// draft-ietf-webtrans-http3-16 §5.1; WT-v-014, WT-h3-080.
#[test]
fn flow_control_is_on_if_both_ends_want_it() {
    let has_flow_control = |config: &Config, theirs: &[(u64, u64)]| {
        agreed(Side::Server, config, &peer(theirs)).flow_control
    };
    let (own, none) = (Config::new(), Config::new());
    let none = Config {
        limits: Limits::NONE,
        ..none
    };
    for (dialect, with_theirs, with_sessions) in [
        (Dialect::Draft02, false, false),
        (Dialect::Draft07, true, false),
        (Dialect::Draft14, true, true),
        (Dialect::Draft16, true, false),
    ] {
        let plain = announcing(&[dialect]);
        assert!(!has_flow_control(&own, &plain), "{dialect}");
        let limited = with_limits(plain);
        assert_eq!(has_flow_control(&own, &limited), with_theirs, "{dialect}");
        assert!(!has_flow_control(&none, &limited), "{dialect}");
        let several = [(dialect.setting(), 2)];
        assert_eq!(has_flow_control(&own, &several), with_sessions, "{dialect}");
    }
}

/// draft-ietf-webtrans-http3-16 §5.1; WT-h3-013.
#[test]
fn several_sessions_need_flow_control_since_draft_13() {
    let own = Config::new();
    for (side, theirs, expected) in [
        (
            Side::Server,
            with_limits(announcing(&[Dialect::Draft16])),
            16,
        ),
        (Side::Server, announcing(&[Dialect::Draft16]), 1),
        (Side::Server, announcing(&[Dialect::Draft14]), 1),
        (Side::Server, announcing(&[Dialect::Draft07]), 16),
        (Side::Server, announcing(&[Dialect::Draft02]), 16),
        (
            Side::Client,
            with_limits(announcing(&[Dialect::Draft16])),
            16,
        ),
        (Side::Client, announcing(&[Dialect::Draft16]), 1),
        (
            Side::Client,
            with_limits(vec![(Dialect::Draft14.setting(), 4)]),
            4,
        ),
        (Side::Client, vec![(Dialect::Draft07.setting(), 3)], 3),
        (Side::Client, announcing(&[Dialect::Draft02]), 1),
    ] {
        let agreement = agreed(side, &own, &peer(&theirs));
        assert_eq!(
            agreement.max_sessions, expected,
            "{side:?} with {theirs:x?}"
        );
    }
}

#[test]
fn limits_of_the_peer_are_those_of_its_settings() {
    let settings = [
        (Dialect::Draft16.setting(), 1),
        (INITIAL_MAX_DATA, 1000),
        (INITIAL_MAX_STREAMS_BIDI, (1 << 62) - 1),
    ];
    let limits = agreed(Side::Server, &Config::new(), &peer(&settings)).peer_limits;
    let expected = Limits {
        max_data: 1000,
        max_streams_bidi: 1 << 60,
        max_streams_uni: 0,
    };
    assert_eq!(limits, expected);
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-006, WT-h3-035.
#[test]
fn limits_do_not_fall_below_the_remembered_ones() {
    let earlier = Config::new().settings(Side::Server);
    assert_eq!(check_remembered(&earlier, &earlier), Ok(()));
    assert_eq!(check_remembered(&[], &earlier), Ok(()));
    for id in REMEMBERED {
        let mut now = earlier.clone();
        let setting = now.iter_mut().find(|(known, _)| *known == id);
        setting.expect("announced").1 -= 1;
        let error = check_remembered(&earlier, &now).expect_err("reduced");
        assert_eq!(
            (error.code, error.scope),
            (Code::SETTINGS_ERROR, Scope::Connection)
        );
        assert!(is_reduced(&earlier, &now) && !is_reduced(&now, &earlier));
    }
    let absent = check_remembered(&earlier, &[]).expect_err("reduced to 0");
    assert_eq!(absent.code, Code::SETTINGS_ERROR);
}

/// draft-ietf-webtrans-http3-16 §3.1; WT-h3-026.
#[test]
fn reasons_name_what_is_missing() {
    let texts = [
        Unsupported::NotAnnounced.to_string(),
        Unsupported::Missing(Requirement::QuicDatagrams).to_string(),
    ];
    assert!(texts[0].contains("WebTransport"));
    assert!(texts[1].contains("max_datagram_frame_size"));
    assert_eq!(crate::code::REQUIREMENTS_NOT_MET.value(), 0x212c_0d48);
}
