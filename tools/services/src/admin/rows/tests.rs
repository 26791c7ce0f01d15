use super::*;

/// Creates an HTTP/3 row whose values are derived from its number.
pub(in crate::admin) fn synthetic(id: u64) -> Row {
    let low = u16::try_from(id % 60_000).expect("small") + 1;
    let client = SocketAddr::from(([10, 0, (id % 7) as u8, (id % 251) as u8], low));
    Row {
        id,
        client,
        client_text: client.to_string(),
        name: Some(format!("name-{}.test", id % 100)),
        protocol: "h3",
        state: if id.is_multiple_of(3) {
            "active"
        } else {
            "idle"
        },
        cipher: Some("TLS13_AES_128_GCM_SHA256".to_owned()),
        age: Duration::from_secs(id),
        requests: id * 3,
        requests_in_flight: id % 3,
        bytes_received: id * 1_000,
        bytes_sent: id * 10_000,
        rates: Some((to_f64(id % 1000), to_f64(id * 7919 % 10_007))),
        quic: Some(QuicRow {
            rtt: Duration::from_millis(id % 300),
            latest_rtt: Duration::from_millis(id % 300),
            rtt_variance: Duration::from_millis(2),
            min_rtt: Duration::from_millis(1),
            window: 12_000 + id,
            in_flight: id % 12_000,
            packets_sent: id * 10,
            packets_lost: id % 10,
            packets_missing: id % 7,
            packets_late: id % 5,
            delivery_rate: None,
            pacing_rate: None,
            controller: "cubic",
            mtu: 1452,
        }),
        limit_times: None,
        limit: Some((LIMITS[(id % 6) as usize], Some(0.5))),
        trace: Some(format!("{id:016x}")),
    }
}

fn select(sort: Column, is_descending: bool) -> Selection {
    Selection {
        sort,
        is_descending,
        offset: 0,
        count: 500,
        filter: String::new(),
    }
}

fn ids(selection: &Selection, rows: &[Row]) -> Vec<u64> {
    selection.of(rows).0.iter().map(|row| row.id).collect()
}

#[test]
fn every_column_sorts_both_ways() {
    let rows: Vec<Row> = (1..=200).map(synthetic).collect();
    for (name, column) in COLUMNS {
        assert_eq!(Column::parse(name), Some(column), "{name}");
        for is_descending in [false, true] {
            let (sorted, all) = select(column, is_descending).of(&rows);
            assert_eq!((sorted.len(), all), (200, 200), "{name}");
            let in_order = sorted.windows(2).all(|pair| {
                let (one, other) = (pair[0].key(column), pair[1].key(column));
                let order = compare(one, other, is_descending);
                order == Ordering::Less || order == Ordering::Equal && pair[0].id < pair[1].id
            });
            assert!(in_order, "{name} {is_descending}");
        }
    }
    assert_eq!(Column::parse("elsewhere"), None);
}

#[test]
fn rows_without_a_value_come_last_in_both_orders() {
    let mut rows: Vec<Row> = (1..=4).map(synthetic).collect();
    rows[1].quic = None;
    rows[2].rates = None;
    assert_eq!(ids(&select(Column::Rtt, false), &rows), [1, 3, 4, 2]);
    assert_eq!(ids(&select(Column::Rtt, true), &rows), [4, 3, 1, 2]);
    assert_eq!(ids(&select(Column::SentRate, true), &rows).last(), Some(&3));
}

#[test]
fn pages_of_a_sorted_list_join() {
    let rows: Vec<Row> = (1..=1_000).map(synthetic).collect();
    let whole = Selection {
        count: 1_000,
        ..select(Column::SentRate, true)
    };
    let mut joined = Vec::new();
    for offset in (0..1_000).step_by(300) {
        let page = Selection {
            offset,
            count: 300,
            ..whole.clone()
        };
        joined.extend(ids(&page, &rows));
    }
    assert_eq!(joined, ids(&whole, &rows));
    let beyond = Selection {
        offset: 5_000,
        ..whole
    };
    let (page, all) = beyond.of(&rows);
    assert_eq!((page.len(), all), (0, 1_000));
}

#[test]
fn filter_searches_the_fields_that_a_row_shows() {
    let rows: Vec<Row> = (1..=600).map(synthetic).collect();
    let filtered = |text: &str| {
        let selection = Selection {
            filter: text.to_owned(),
            ..select(Column::Id, false)
        };
        selection.of(&rows)
    };
    assert_eq!(filtered("NAME-7.test").1, 6);
    assert_eq!(filtered("congestion").1, 100);
    assert_eq!(filtered("10.0.3.").1, 86);
    assert_eq!(filtered("active").1, 200);
    let (found, all) = filtered("123");
    assert!(all >= 1 && found.iter().any(|row| row.id == 123));
    assert_eq!(filtered("<script>").1, 0);
}

#[test]
fn limits_are_grouped_and_then_sorted_by_share() {
    let mut rows: Vec<Row> = (0..4).map(synthetic).collect();
    rows[0].limit = Some(("pacing", Some(0.9)));
    rows[1].limit = Some(("application", Some(1.0)));
    rows[2].limit = Some(("pacing", Some(0.4)));
    rows[3].limit = None;
    assert_eq!(ids(&select(Column::Limit, true), &rows), [0, 2, 1, 3]);
}

#[test]
fn rates_and_limits_are_those_since_the_previous_row() {
    let mut row = synthetic(5);
    let before = Before {
        bytes_received: row.bytes_received - 500,
        bytes_sent: row.bytes_sent,
        limit_times: None,
    };
    row.measure(&before, Duration::from_millis(500));
    assert_eq!(row.rates(), Some((1000.0, 0.0)));
    let value = row.json();
    assert_eq!(value["received_rate"], 1000.0);
    assert_eq!(value["limit"], LIMITS[5]);
    assert_eq!(value["quic"]["congestion_window"], 12_005);
}
