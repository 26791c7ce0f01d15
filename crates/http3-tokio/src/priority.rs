//! Priorities of requests as levels of the transport's scheduler (RFC 9218 §10).

use courser_http3::Priority;
use courser_quic::hooks::Level;

/// The level of control streams, above that of all requests.
pub(super) const CONTROL: Level = Level {
    class: 8,
    priority: i32::MAX,
};

/// Returns the level of a stream in the scheduler: more urgent streams are first. Among streams of the same
/// urgency, those without `incremental` precede the others and are sent one after the other in the order of
/// their requests; incremental ones take turns. The sessions of an urgency share with its requests.
pub(super) fn level(priority: Priority, index: u64) -> Level {
    let turn = if priority.incremental {
        0
    } else {
        // Streams with distant indexes are not open at the same time, so the order may wrap around.
        TURNS - (index % TURNS as u64) as i32
    };
    Level {
        class: 7 - priority.urgency.min(7) as i8,
        priority: turn,
    }
}

/// Returns the level of a response until its request or the client changes it.
pub(super) fn level_of_new(index: u64) -> Level {
    level(Priority::default(), index)
}

const TURNS: i32 = 1 << 24;

/// Returns the priority that the request has in its fields, which a PRIORITY_UPDATE overrides.
pub(super) fn of_request(headers: &http::HeaderMap) -> Option<Priority> {
    let mut values = headers.get_all("priority").iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Priority::parse(value.as_bytes()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_urgent_streams_are_first() {
        let at = |urgency, incremental, index| {
            level(
                Priority {
                    urgency,
                    incremental,
                },
                index,
            )
        };
        assert!(at(0, true, 9) > at(1, false, 0));
        assert!(
            at(3, false, 0) > at(3, false, 1),
            "in the order of their opening"
        );
        assert!(at(3, false, 1 << 23) > at(3, true, 0));
        assert_eq!(at(3, true, 5), at(3, true, 6), "in turns");
        assert!(at(7, true, 0) < at(7, false, 0) && at(7, false, 0) < at(6, true, 0));
        assert!(at(0, false, 0) < CONTROL);
    }
}
