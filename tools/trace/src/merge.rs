//! Merges the traces of both ends of a connection, with their clocks aligned.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use serde_json::{Value, json};

use crate::Error;
use crate::convert::{Form, Writer, header, renamed};
use crate::qlog::{Event, EventKind, Packet, RawEvent, Reader, Space};

/// A packet number and its space.
type Number = (Space, u64);

/// The comparison of the traces of both ends.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Alignment {
    /// Seconds to add to the times of the second trace to align its clock with that of the first.
    pub(crate) offset: f64,
    /// The shortest time in seconds from the first end to the second, plus the shortest time back. How it
    /// divides between the directions is unknown: a merge assumes halves.
    pub(crate) round_trip: f64,
    /// Packets that the first end sent and the second did not receive, and the number compared.
    pub(crate) lost_forward: (u64, u64),
    /// The same in the other direction.
    pub(crate) lost_back: (u64, u64),
}

/// The packets of one end: the times at which they were sent and received.
#[derive(Debug, Default)]
struct Packets {
    sent: BTreeMap<Number, f64>,
    received: BTreeMap<Number, f64>,
}

impl Packets {
    fn read<R: BufRead>(reader: &mut Reader<R>) -> Self {
        let mut packets = Self::default();
        while let Some(line) = reader.next_raw() {
            let Ok(raw) = line else { continue };
            // Names are compared first, because decoding takes time.
            if !raw.name.ends_with(":packet_sent") && !raw.name.ends_with(":packet_received") {
                continue;
            }
            let event = Event::from(&raw);
            match &event.kind {
                EventKind::PacketSent(packet) => {
                    insert_first(&mut packets.sent, packet, event.time)
                }
                EventKind::PacketReceived(packet) => {
                    insert_first(&mut packets.received, packet, event.time);
                }
                _ => {}
            }
            if packets.sent.len() >= MAX_COMPARED && packets.received.len() >= MAX_COMPARED {
                break;
            }
        }
        packets
    }
}

fn insert_first(list: &mut BTreeMap<Number, f64>, packet: &Packet, time: f64) {
    if let Some(number) = packet.number
        && list.len() < MAX_COMPARED
    {
        list.entry((packet.space(), number)).or_insert(time);
    }
}

/// Returns the shortest time from one end to the other by their clocks, the number of packets that did
/// not arrive, and the number compared.
fn compare(sent: &Packets, received: &Packets) -> Option<(f64, (u64, u64))> {
    let arrived = sent.sent.iter().filter_map(|(number, time)| {
        let arrived = received.received.get(number)?;
        Some(arrived - time)
    });
    let shortest = arrived.clone().reduce(f64::min)?;
    // Packets after the last one received may have arrived later than the trace ends.
    let last = received.received.keys().max().copied()?;
    let compared = sent.sent.keys().filter(|&&number| number <= last).count() as u64;
    let arrived = arrived.count() as u64;
    Some((shortest, (compared.saturating_sub(arrived), compared)))
}

impl Alignment {
    /// Compares two traces. The error gives the reason why they do not belong together.
    pub(crate) fn of<A: BufRead, B: BufRead>(
        first: &mut Reader<A>,
        second: &mut Reader<B>,
    ) -> Result<Self, Error> {
        let groups = [&first.about().group_id, &second.about().group_id];
        if let [Some(one), Some(other)] = groups
            && one != other
        {
            let (one, other) = (crate::text::clean(one), crate::text::clean(other));
            return Err(Error::new(format!(
                "the traces are of different connections: {one} and {other}"
            )));
        }
        if first.about().vantage_point.is_some()
            && first.about().vantage_point == second.about().vantage_point
        {
            return Err(Error::new(
                "both traces are of the same end: pass one of the client and one of the \
                 server",
            ));
        }
        let (one, other) = (Packets::read(first), Packets::read(second));
        let none = || {
            Error::new("no packet of one trace is in the other: they are of different connections")
        };
        let (forward, lost_forward) = compare(&one, &other).ok_or_else(none)?;
        let (back, lost_back) = compare(&other, &one).ok_or_else(none)?;
        Ok(Self {
            offset: (back - forward) / 2.0,
            round_trip: forward + back,
            lost_forward,
            lost_back,
        })
    }
}

/// Returns the next event of a trace, or `None` at its end. Counts lines that are not events.
fn next<R: BufRead>(reader: &mut Reader<R>, unreadable: &mut u64) -> Option<RawEvent> {
    loop {
        match reader.next_raw()? {
            Ok(event) => return Some(event),
            Err(_) => *unreadable += 1,
        }
    }
}

/// Writes the events of both traces in chronological order. Returns the number of events, and the number
/// of lines that could not be read.
pub(crate) fn merge<A: BufRead, B: BufRead, W: Write>(
    first: &mut Reader<A>,
    second: &mut Reader<B>,
    alignment: &Alignment,
    output: W,
    form: Form,
) -> Result<(u64, u64), Error> {
    let point = |about: &crate::qlog::About, default: &str| {
        about
            .vantage_point
            .clone()
            .unwrap_or_else(|| default.to_owned())
    };
    let ends = [
        point(first.about(), "first"),
        point(second.about(), "second"),
    ];
    let mut trace = header(Some("network"), first.about().group_id.as_deref());
    trace["title"] = Value::from(format!("{} and {}", ends[0], ends[1]));
    let title = first.about().title.clone();
    let mut writer = Writer::new(output, form, title.as_deref(), &trace)?;
    let mut unreadable = 0;
    // Times of a trace must not be negative.
    let (lead, lag) = ((-alignment.offset).max(0.0), alignment.offset.max(0.0));
    let mut one = next(first, &mut unreadable);
    let mut other = next(second, &mut unreadable);
    loop {
        let is_first = match (&one, &other) {
            (None, None) => break,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(one), Some(other)) => one.time + lead <= other.time + lag,
        };
        let (taken, shift, end) = match is_first {
            true => (
                std::mem::replace(&mut one, next(first, &mut unreadable)),
                lead,
                &ends[0],
            ),
            false => (
                std::mem::replace(&mut other, next(second, &mut unreadable)),
                lag,
                &ends[1],
            ),
        };
        if let Some(mut event) = taken {
            event.time += shift;
            let mut event = renamed(event);
            event["vantage_point"] = json!({"type": end});
            writer.event(&event)?;
        }
    }
    Ok((writer.finish()?, unreadable))
}

/// The largest number of packets in each direction that are compared. K209.
const MAX_COMPARED: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(side: &str, group: &str, events: &[(f64, &str, u64)]) -> String {
        let mut text = format!(
            "\u{1e}{{\"trace\":{{\"vantage_point\":{{\"type\":\"{side}\"}},\"common_fields\":{{\"group_id\":\"{group}\"}}}}}}\n"
        );
        for (time, name, number) in events {
            text += &format!(
                "\u{1e}{{\"time\":{time},\"name\":\"quic:{name}\",\"data\":{{\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}}}}}}\n"
            );
        }
        text
    }

    fn reader(text: &str) -> Reader<&[u8]> {
        Reader::new(text.as_bytes()).expect("a trace")
    }

    /// The server's clock is 1000 ms ahead, and a packet takes 10 ms in each direction. Packet 1 is lost.
    fn pair() -> (String, String) {
        let client = [
            (0.0, "packet_sent", 0),
            (5.0, "packet_sent", 1),
            (6.0, "packet_sent", 2),
            (21.0, "packet_received", 0),
        ];
        let server = [
            (1000.0, "started", 9),
            (1010.0, "packet_received", 0),
            (1011.0, "packet_sent", 0),
            (1016.0, "packet_received", 2),
        ];
        (
            trace("client", "aa", &client),
            trace("server", "aa", &server),
        )
    }

    #[test]
    fn clocks_are_aligned_and_losses_counted() {
        let (client, server) = pair();
        let found = Alignment::of(&mut reader(&client), &mut reader(&server)).expect("aligned");
        // Times of each trace count from its first event, which is at the same moment here.
        assert!((found.offset).abs() < 1e-9, "{found:?}");
        assert!((found.round_trip - 0.02).abs() < 1e-9, "{found:?}");
        assert_eq!((found.lost_forward, found.lost_back), ((1, 3), (0, 1)));
        let mut output = Vec::new();
        let (mut one, mut other) = (reader(&client), reader(&server));
        let merged = merge(&mut one, &mut other, &found, &mut output, Form::Sequence);
        let (events, unreadable) = merged.expect("merged");
        assert_eq!((events, unreadable), (8, 0));
        let text = String::from_utf8(output).expect("text");
        let ends: Vec<_> = text
            .lines()
            .skip(1)
            .map(|line| {
                if line.contains("\"client\"") {
                    'c'
                } else {
                    's'
                }
            })
            .collect();
        assert_eq!(ends.iter().collect::<String>(), "csccsssc");
        let times: Vec<f64> = Reader::new(text.as_bytes())
            .expect("a trace")
            .map(|event| event.expect("an event").time)
            .collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn traces_that_do_not_belong_together_are_refused() {
        let (client, server) = pair();
        let other = trace("server", "bb", &[(0.0, "packet_sent", 0)]);
        let empty = trace("server", "aa", &[]);
        for (second, expected) in [
            (&other, "different connections: aa and bb"),
            (&client, "both traces are of the same end"),
            (&empty, "no packet of one trace is in the other"),
        ] {
            let error = Alignment::of(&mut reader(&client), &mut reader(second));
            let error = error.expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Alignment::of(&mut reader(&server), &mut reader(&client)).is_ok());
    }

    #[test]
    fn packets_are_compared_up_to_a_limit() {
        let mut list = BTreeMap::new();
        let mut packet = Packet {
            packet_type: "1RTT".to_owned(),
            number: None,
            len: 0,
            streams: Vec::new(),
            acked: Vec::new(),
            frames: Vec::new(),
            ack_eliciting: true,
        };
        for number in 0..MAX_COMPARED as u64 + 10 {
            packet.number = Some(number);
            insert_first(&mut list, &packet, 0.0);
        }
        assert_eq!(list.len(), MAX_COMPARED);
    }
}
