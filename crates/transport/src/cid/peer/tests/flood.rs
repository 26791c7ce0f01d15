//! State and frames that a hostile peer can cause (attack A30).

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Asserts that no list exceeds its maximum.
fn assert_small(ids: &PeerIds) {
    assert!(ids.others.len() as u64 <= LIMIT, "{ids:?}");
    assert!(ids.retirements.open.len() <= MAX_RETIREMENTS, "{ids:?}");
    assert!(ids.seen.len() <= MAX_SEQUENCE_RANGES, "{ids:?}");
    assert!(ids.reported_tokens.len() as u64 <= LIMIT + 1, "{ids:?}");
    assert!(
        ids.others.capacity() <= 16 && ids.retirements.open.capacity() <= 32,
        "{ids:?}"
    );
}

/// Attack A30 by a peer that acknowledges nothing ends the connection at once.
#[test]
fn flood_without_acknowledgements_ends_the_connection() {
    let mut ids = peer_ids(1);
    let mut accepted = 0;
    for sequence in 1..=100_000 {
        if on_frame(&mut ids, &frame(sequence, sequence)).is_err() {
            break;
        }
        send(&mut ids);
        assert_small(&ids);
        accepted += 1;
    }
    assert_eq!(accepted, MAX_RETIREMENTS);
}

/// Attack A30 by a peer that acknowledges just in time: the connection continues in constant space,
/// and each frame of the peer costs us one frame.
#[test]
fn flood_with_acknowledgements_stays_small() {
    let mut ids = peer_ids(1);
    let mut sent = 0;
    for sequence in 1..=100_000 {
        on_frame(&mut ids, &frame(sequence, sequence)).unwrap();
        sent += send(&mut ids).len();
        if ids.retirements.open.len() == MAX_RETIREMENTS {
            let oldest = ids.retirements.open[0].sequence;
            ids.on_retirement_acked(oldest);
        }
        ids.poll_token_change();
        assert_small(&ids);
    }
    assert_eq!(sent, 100_000);
}

/// Attack A30 with losses, repetitions and reordering: still one retirement for each ID, beside
/// those repeated after a loss.
#[test]
fn flood_with_an_adversarial_pattern_stays_small() {
    let mut ids = peer_ids(1);
    let (mut sent, mut lost, mut state) = (0u64, 0u64, 1u64);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963);
        state >> 33
    };
    for step in 1..=100_000u64 {
        // Pairs arrive in the wrong order, so that the lower one is retired on arrival.
        let sequence = if step % 2 == 1 { step + 1 } else { step - 1 };
        let mark = if step % 2 == 1 { sequence } else { 0 };
        for _ in 0..=next() % 3 {
            on_frame(&mut ids, &frame(sequence, mark)).unwrap();
        }
        sent += send(&mut ids).len() as u64;
        let open: Vec<_> = ids
            .retirements
            .open
            .iter()
            .map(|open| open.sequence)
            .collect();
        for sequence in open {
            if ids.retirements.open.len() > 12 || next() % 2 == 0 {
                ids.on_retirement_acked(sequence);
            } else if next() % 4 == 0 {
                ids.on_retirement_lost(sequence);
                lost += 1;
            }
        }
        assert_small(&ids);
    }
    assert!(sent <= 100_000 + lost, "{sent} sent, {lost} lost");
}

/// Repetitions of old frames cause neither stored state nor a response.
#[test]
fn flood_of_repetitions_causes_no_response() {
    let mut ids = peer_ids(1);
    on_frame(&mut ids, &frame(2, 2)).unwrap();
    on_frame(&mut ids, &frame(1, 1)).unwrap();
    send(&mut ids);
    for _ in 0..100_000 {
        on_frame(&mut ids, &frame(1, 1)).unwrap();
        on_frame(&mut ids, &frame(2, 2)).unwrap();
    }
    assert!(!ids.has_frames_to_send());
    assert_small(&ids);
}

#[derive(Clone, Debug)]
enum Step {
    /// A frame that asks for all but the `kept` IDs before its own.
    Frame {
        sequence: u64,
        kept: u64,
        is_false: bool,
    },
    Switch,
    Reserve,
    SwitchTo(u64),
    Retire(u64),
    Send,
    Acked(usize),
    Lost(usize),
    Poll,
}

fn step() -> impl Strategy<Value = Step> {
    let frame = (0..40u64, 0..LIMIT, 0..60u8).prop_map(|(sequence, kept, lie)| Step::Frame {
        sequence,
        kept,
        is_false: lie == 0,
    });
    prop_oneof![
        6 => frame,
        2 => Just(Step::Switch),
        1 => Just(Step::Reserve),
        1 => (0..40u64).prop_map(Step::SwitchTo),
        1 => (0..40u64).prop_map(Step::Retire),
        3 => Just(Step::Send),
        4 => (0..16usize).prop_map(Step::Acked),
        2 => (0..16usize).prop_map(Step::Lost),
        1 => Just(Step::Poll),
    ]
}

/// The IDs of a peer and the expected state, computed without regard to cost.
struct Model {
    ids: PeerIds,
    accepted: BTreeSet<u64>,
    retired: BTreeSet<u64>,
    mark: u64,
    told: BTreeSet<ResetToken>,
    /// True once a false frame may have been accepted, so that the true one contradicts it.
    has_lied: bool,
}

impl Model {
    fn new() -> Self {
        Self {
            ids: PeerIds::new(id(0)),
            accepted: BTreeSet::from([0]),
            retired: BTreeSet::new(),
            mark: 0,
            told: BTreeSet::new(),
            has_lied: false,
        }
    }

    /// Applies a step. Returns false if the connection is over.
    fn apply(&mut self, step: Step) -> bool {
        let ids = &mut self.ids;
        match step {
            Step::Frame {
                sequence,
                kept,
                is_false,
            } => return self.on_frame(sequence, kept, is_false),
            Step::Switch => drop(ids.switch_to_next()),
            Step::Reserve => drop(ids.reserve()),
            Step::SwitchTo(sequence) => drop(ids.switch_to(sequence)),
            Step::Retire(sequence) => ids.give_up(sequence),
            Step::Send => self.retired.extend(send(ids)),
            Step::Acked(index) => {
                if let Some(sequence) = self.in_flight(index) {
                    self.ids.on_retirement_acked(sequence);
                }
            }
            Step::Lost(index) => {
                if let Some(sequence) = self.in_flight(index) {
                    self.ids.on_retirement_lost(sequence);
                }
            }
            Step::Poll => self.poll_tokens(),
        }
        true
    }

    fn on_frame(&mut self, sequence: u64, kept: u64, is_false: bool) -> bool {
        let mut frame = frame(sequence, sequence.saturating_sub(kept));
        self.has_lied |= is_false;
        if is_false {
            frame.id = id(sequence + 1);
        }
        let result = on_frame(&mut self.ids, &frame);
        match result {
            Ok(()) => {}
            Err(VIOLATION) => assert!(self.has_lied || sequence == 0, "{:?}", self.ids),
            Err(LIMIT_ERROR) => assert_eq!(self.ids.retirements.open.len(), MAX_RETIREMENTS),
            Err(other) => panic!("{other}"),
        }
        self.accepted.insert(sequence);
        self.mark = self.mark.max(frame.retire_prior_to);
        result.is_ok()
    }

    fn in_flight(&self, index: usize) -> Option<u64> {
        let open = self.ids.retirements.open.iter();
        let mut in_flight = open.filter(|retirement| retirement.is_in_flight);
        in_flight.nth(index).map(|retirement| retirement.sequence)
    }

    fn poll_tokens(&mut self) {
        while let Some(change) = self.ids.poll_token_change() {
            match change {
                TokenChange::Added(token) => assert!(self.told.insert(token)),
                TokenChange::Removed(token) => assert!(self.told.remove(&token)),
            }
        }
        assert!(
            self.told
                .iter()
                .eq(self.ids.used_tokens().collect::<BTreeSet<_>>())
        );
    }

    fn check(&self) {
        let Self { ids, mark, .. } = self;
        assert_small(ids);
        let open = ids.retirements.open.iter();
        let open: Vec<_> = open.map(|retirement| retirement.sequence).collect();
        for sequence in &self.accepted {
            let is_held = ids.id_of(*sequence).is_some();
            let is_retired = open.contains(sequence) || self.retired.contains(sequence);
            assert!(is_held != is_retired, "{sequence}: {ids:?}");
        }
        // Only the current ID may be below Retire Prior To, if there is no other.
        assert!(
            ids.others.iter().all(|held| held.sequence >= *mark),
            "{ids:?}"
        );
        assert!(
            ids.current_sequence() >= *mark || ids.others.is_empty(),
            "{ids:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn every_id_is_held_or_retired(steps in prop::collection::vec(step(), 0..120)) {
        let mut model = Model::new();
        for step in steps {
            if !model.apply(step) {
                break;
            }
            model.check();
        }
    }
}
