use super::*;
use crate::plan::Direction;

const DOWNLOAD: Csv = Csv {
    scenario: Scenario::Bulk {
        direction: Direction::Download,
        connections: 1,
        streams: 1,
    },
    over: Over::Quic,
};

const INTERVAL: Interval = Interval {
    start: 0.5,
    end: 1.5,
    sent_bytes: 0,
    received_bytes: 1_250_000,
    bits_per_second: 1e7,
    count: 0,
    packets_lost: Some(3),
    rtt_us: Some(120.25),
    congestion_window: Some(65_536),
};

#[test]
fn interval_has_its_figures_in_the_columns_of_the_header() {
    let row = DOWNLOAD.interval(&INTERVAL);
    let header = Csv::header();
    let names = header.split(',');
    assert_eq!(names.clone().count(), row.split(',').count(), "{row}");
    let cells: Vec<_> = names
        .zip(row.split(','))
        .filter(|(_, cell)| !cell.is_empty())
        .collect();
    let expected = [
        ("row", "interval"),
        ("scenario", "download"),
        ("transport", "quic"),
        ("start_seconds", "0.500000"),
        ("end_seconds", "1.500000"),
        ("sent_bytes", "0"),
        ("received_bytes", "1250000"),
        ("sent_bits_per_second", "0"),
        ("received_bits_per_second", "10000000"),
        ("packets_lost", "3"),
        ("rtt_us", "120.2"),
        ("congestion_window", "65536"),
    ];
    assert_eq!(cells, expected);
}

#[test]
fn counts_are_zero_without_events_and_empty_for_bytes() {
    let mixed = Scenario::Mixed(crate::plan::Mixed {
        direction: Direction::Upload,
        streams: 1,
        in_flight: 1,
        request_size: 1,
        response_size: 1,
        datagram_size: 100,
        datagram_rate: None,
    });
    let counts = |scenario| {
        let row = Csv {
            scenario,
            over: Over::Quic,
        }
        .interval(&INTERVAL);
        let header = Csv::header();
        let cells = header.split(',').zip(row.split(','));
        let counts = cells.filter(|(name, _)| name.starts_with("count"));
        counts.map(|(_, cell)| cell.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(counts(Scenario::Close), ["0", "0.0"]);
    assert_eq!(counts(mixed), ["0", "0.0"]);
    assert_eq!(counts(DOWNLOAD.scenario), ["", ""]);
}

#[test]
fn names_of_columns_and_scenarios_need_no_quotation_marks() {
    let mut names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let is_plain = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        text.chars().all(plain)
    };
    assert!(names.iter().all(|name| is_plain(name)), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), COLUMNS.len(), "each name once");
    let both = Csv {
        scenario: Scenario::Bulk {
            direction: Direction::Both,
            connections: 1,
            streams: 1,
        },
        over: Over::Tcp,
    };
    assert!(
        both.interval(&INTERVAL)
            .starts_with("interval,bidir,tcp,0.5")
    );
}

#[test]
fn help_describes_every_column() {
    let help = help();
    for (name, meaning) in COLUMNS {
        assert!(help.contains(&format!("\n  {name}: {meaning}")), "{name}");
    }
}
