use std::mem::MaybeUninit;
use std::ptr;

use super::*;
use crate::kernel::Kernel;
use crate::processor;

/// Returns the bytes of powers, round keys and IV after a schedule was dropped.
#[allow(unsafe_code)]
fn memory_after_drop(schedule: Schedule) -> [Vec<Block>; 3] {
    let mut place = Box::new(MaybeUninit::new(schedule));
    let dropped = place.as_mut_ptr();
    // SAFETY: the schedule is dropped once. Its memory stays allocated and initialised, and arrays of
    // bytes are valid whatever their content is.
    unsafe {
        ptr::drop_in_place(dropped);
        [
            (&raw const (*dropped).powers).read_volatile().to_vec(),
            (&raw const (*dropped).rounds.keys).read_volatile().to_vec(),
            vec![(&raw const (*dropped).iv).read_volatile()],
        ]
    }
}

#[test]
fn dropped_keys_leave_zeros() {
    for key in [&[0x5a; 16][..], &[0x5a; 32]] {
        let mut schedule = Schedule::new(key);
        schedule.iv.fill(0xee);
        schedule.powers.as_flattened_mut().fill(0xee);
        schedule.rounds.keys.as_flattened_mut().fill(0xee);
        for blocks in memory_after_drop(schedule) {
            assert!(blocks.iter().all(|block| *block == [0; BLOCK_LEN]));
        }
    }
}

#[test]
fn every_kernel_computes_the_same_powers_and_round_keys() {
    for key in [&[0x5a; 16][..], &[0x5a; 32]] {
        let schedules: Vec<Schedule> = Kernel::ALL
            .iter()
            .copied()
            .filter(|kernel| kernel.is_available())
            .map(|kernel| {
                let mut schedule = Schedule::new(key);
                processor::expand(kernel, key, &mut schedule.rounds);
                processor::raise(kernel, &mut schedule);
                schedule
            })
            .collect();
        for other in schedules.iter().skip(1) {
            assert_eq!(schedules[0].powers, other.powers);
            assert_eq!(schedules[0].rounds.keys, other.rounds.keys);
        }
        for schedule in &schedules {
            let (powers, padding) = schedule.powers.split_at(POWERS);
            assert!(powers.iter().all(|power| *power != [0; BLOCK_LEN]));
            assert_eq!(padding, [[0; BLOCK_LEN]; PADDING]);
        }
    }
}

#[test]
#[should_panic(expected = "16 or 32 bytes")]
fn keys_of_other_lengths_are_refused() {
    Schedule::new(&[0; 24]);
}

#[test]
fn a_key_takes_less_than_a_kibibyte() {
    assert!(size_of::<Schedule>() <= 832, "{}", size_of::<Schedule>());
    assert!(size_of::<Rounds>() <= 256, "{}", size_of::<Rounds>());
}
