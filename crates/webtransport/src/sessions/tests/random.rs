//! The table against a simple model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What happens to the table of a server, with the index of a request.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Request(u64),
    Accept(u64),
    Refuse(u64),
    End(u64),
    Stream(u64),
    Datagram(u64),
    Wait(u64),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    // Few requests, so that all of their states meet.
    let index = 0..30_u64;
    let one = (0..8_u8, index, 0..3000_u64).prop_map(|(kind, index, millis)| match kind {
        0 => Happening::Request(index),
        1 => Happening::Accept(index),
        2 => Happening::Refuse(index),
        3 => Happening::End(index),
        4 | 5 => Happening::Stream(index),
        6 => Happening::Datagram(index),
        _ => Happening::Wait(millis),
    });
    proptest::collection::vec(one, 0..400)
}

/// The model: each number has one state, and streams that wait are in one list.
#[derive(Default)]
struct Model {
    states: BTreeMap<u64, Known>,
    waiting: Vec<(u64, u32, Time)>,
    /// The fates of all streams that are decided.
    delivered: Vec<(u64, u32)>,
    refused: Vec<(u32, Code)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Requested,
    Established,
    Ended,
    Refused,
}

impl Model {
    fn open(&self) -> usize {
        let open = |known: &&Known| matches!(known, Known::Requested | Known::Established);
        self.states.values().filter(open).count()
    }

    fn refuse_waiting(&mut self, index: u64, code: Code) {
        let refused = self.waiting.extract_if(.., |(of, ..)| *of == index);
        self.refused
            .extend(refused.map(|(_, stream, _)| (stream, code)));
    }

    fn on_stream(&mut self, now: Time, index: u64, stream: u32) {
        match self.states.get(&index) {
            Some(Known::Established) => self.delivered.push((index, stream)),
            Some(Known::Ended) => self.refused.push((stream, code::SESSION_GONE)),
            Some(Known::Refused) => self.refused.push((stream, code::BUFFERED_STREAM_REJECTED)),
            _ if self.waiting.len() < 16 => self.waiting.push((index, stream, now)),
            _ => self.refused.push((stream, code::BUFFERED_STREAM_REJECTED)),
        }
    }

    fn establish(&mut self, index: u64) {
        self.states.insert(index, Known::Established);
        let waited = self.waiting.extract_if(.., |(of, ..)| *of == index);
        self.delivered
            .extend(waited.map(|(_, stream, _)| (index, stream)));
    }

    fn expire(&mut self, now: Time) {
        let is_old = |arrived: Time| now - arrived >= Duration::from_secs(5);
        let refused = self
            .waiting
            .extract_if(.., |(.., arrived)| is_old(*arrived));
        let code = code::BUFFERED_STREAM_REJECTED;
        self.refused
            .extend(refused.map(|(_, stream, _)| (stream, code)));
    }
}

/// The table, with the fates of its streams.
struct Table {
    sessions: Sessions<u32>,
    delivered: Vec<(u64, u32)>,
    refused: Vec<(u32, Code)>,
}

impl Table {
    fn on_fate(&mut self, index: u64, fate: StreamFate<u32>) {
        match fate {
            StreamFate::Deliver(id, stream) => {
                assert_eq!(id, session(index));
                self.delivered.push((index, stream));
            }
            StreamFate::Wait => {}
            StreamFate::Refuse { stream, code, .. } => self.refused.push((stream, code)),
        }
    }

    fn poll(&mut self) {
        while let Some(event) = self.sessions.poll_event() {
            match event {
                Event::Stream(id, _, stream) => self.delivered.push((id.quarter(), stream)),
                Event::Refused(stream, code) => self.refused.push((stream, code)),
                Event::Decide(_) | Event::Datagram(..) => {}
            }
        }
    }
}

/// Applies one happening to both. Requests are slow enough for their rate.
fn happen(table: &mut Table, model: &mut Model, now: Time, stream: u32, happening: Happening) {
    let sessions = &mut table.sessions;
    match happening {
        Happening::Request(index) if !model.states.contains_key(&index) => {
            let limit = model.open() >= 16;
            let request = request(Dialect::NEWEST);
            let admission = sessions.on_request(now, session(index), &request, false);
            assert_eq!(matches!(admission, Admission::Open(_)), !limit);
            if limit {
                model.refuse_waiting(index, code::BUFFERED_STREAM_REJECTED);
            }
            let known = if limit {
                Known::Refused
            } else {
                Known::Requested
            };
            model.states.insert(index, known);
        }
        Happening::Accept(index) => {
            let is_requested = model.states.get(&index) == Some(&Known::Requested);
            assert_eq!(sessions.accept(session(index)).is_some(), is_requested);
            if is_requested {
                model.establish(index);
            }
        }
        Happening::Refuse(index) if model.states.get(&index) == Some(&Known::Requested) => {
            sessions.refuse(session(index));
            model.states.insert(index, Known::Refused);
            model.refuse_waiting(index, code::BUFFERED_STREAM_REJECTED);
        }
        Happening::End(index) => {
            sessions.on_ended(session(index));
            if matches!(
                model.states.get(&index),
                Some(Known::Requested | Known::Established)
            ) {
                model.states.insert(index, Known::Ended);
                model.refuse_waiting(index, code::SESSION_GONE);
            }
        }
        Happening::Stream(index) => {
            let fate = sessions.on_stream(now, session(index), UNI, stream);
            model.on_stream(now, index, stream);
            table.on_fate(index, fate.expect("within the granted requests"));
        }
        Happening::Datagram(index) => {
            let fate = sessions.on_datagram(now, session(index), Bytes::from_static(b"x"));
            let fate = fate.expect("within the granted requests");
            match model.states.get(&index) {
                Some(Known::Established) => assert!(matches!(fate, DatagramFate::Deliver(..))),
                Some(Known::Ended | Known::Refused) => assert_eq!(fate, DatagramFate::Drop),
                _ => assert!(!matches!(fate, DatagramFate::Deliver(..))),
            }
        }
        Happening::Request(_) | Happening::Refuse(_) | Happening::Wait(_) => {}
    }
}

proptest! {
    #[test]
    fn table_agrees_with_the_model(happenings in happenings()) {
        let mut table = Table { sessions: server(), delivered: Vec::new(), refused: Vec::new() };
        let mut model = Model::default();
        let mut now = NOW;
        for (stream, happening) in (0..).zip(happenings) {
            if let Happening::Wait(millis) = happening {
                now += Duration::from_millis(millis);
            }
            model.expire(now);
            table.sessions.on_timeout(now);
            happen(&mut table, &mut model, now, stream, happening);
            table.poll();
            prop_assert_eq!(table.sessions.len(), model.open());
            prop_assert_eq!(&table.delivered, &model.delivered);
            prop_assert_eq!(&table.refused, &model.refused);
            let next = table.sessions.next_timeout();
            prop_assert!(next.is_none_or(|next| next > now), "a timeout that has passed");
        }
    }
}
