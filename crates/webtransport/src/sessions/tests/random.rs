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
    Wait(u64),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    // Few requests, so that all of their states meet.
    let index = 0..30_u64;
    let one = (0..5_u8, index, 0..3000_u64).prop_map(|(kind, index, millis)| match kind {
        0 => Happening::Request(index),
        1 => Happening::Accept(index),
        2 => Happening::Refuse(index),
        3 => Happening::End(index),
        _ => Happening::Wait(millis),
    });
    proptest::collection::vec(one, 0..400)
}

/// The model: each number has one state.
#[derive(Default)]
struct Model(BTreeMap<u64, Known>);

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
        self.0.values().filter(open).count()
    }
}

/// Applies one happening to both. Requests are slow enough for their rate.
fn happen(sessions: &mut Sessions, model: &mut Model, now: Time, happening: Happening) {
    match happening {
        Happening::Request(index) if !model.0.contains_key(&index) => {
            let limit = model.open() >= 16;
            let request = request(Dialect::NEWEST);
            let admission = sessions.on_request(now, session(index), &request, false);
            assert_eq!(matches!(admission, Admission::Open(_)), !limit);
            let known = if limit {
                Known::Refused
            } else {
                Known::Requested
            };
            model.0.insert(index, known);
        }
        Happening::Accept(index) => {
            let is_requested = model.0.get(&index) == Some(&Known::Requested);
            assert_eq!(sessions.accept(session(index)).is_some(), is_requested);
            if is_requested {
                model.0.insert(index, Known::Established);
            }
        }
        Happening::Refuse(index) if model.0.get(&index) == Some(&Known::Requested) => {
            sessions.refuse(session(index));
            model.0.insert(index, Known::Refused);
        }
        Happening::End(index) => {
            sessions.on_ended(session(index));
            if let Some(known @ (Known::Requested | Known::Established)) = model.0.get_mut(&index) {
                *known = Known::Ended;
            }
        }
        Happening::Request(_) | Happening::Refuse(_) | Happening::Wait(_) => {}
    }
}

proptest! {
    #[test]
    fn table_agrees_with_the_model(happenings in happenings()) {
        let mut sessions = server();
        let mut model = Model::default();
        let mut now = NOW;
        for happening in happenings {
            if let Happening::Wait(millis) = happening {
                now += Duration::from_millis(millis);
            }
            happen(&mut sessions, &mut model, now, happening);
            prop_assert_eq!(sessions.len(), model.open());
        }
    }
}
