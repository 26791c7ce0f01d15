//! Processors for which there is no kernel: nothing is available, so no key exists.

use crate::kernel::Kernel;
use crate::schedule::{MASK_LEN, Rounds, SAMPLE_LEN, Schedule, TAG_LEN};

pub(crate) fn expand(_: Kernel, _: &[u8], _: &mut Rounds) {
    unavailable()
}

pub(crate) fn raise(_: Kernel, _: &mut Schedule) {
    unavailable()
}

pub(crate) fn seal(_: Kernel, _: &Schedule, _: u128, _: &[u8], _: &mut [u8]) -> [u8; TAG_LEN] {
    unavailable()
}

pub(crate) fn seal_from(
    _: Kernel,
    _: &Schedule,
    _: u128,
    _: &[u8],
    _: (&[u8], &mut [u8]),
) -> [u8; TAG_LEN] {
    unavailable()
}

pub(crate) fn open(
    _: Kernel,
    _: &Schedule,
    _: u128,
    _: (&[u8], &[u8; TAG_LEN]),
    _: &mut [u8],
) -> bool {
    unavailable()
}

pub(crate) fn mask(_: Kernel, _: &Rounds, _: &[u8; SAMPLE_LEN]) -> [u8; MASK_LEN] {
    unavailable()
}

fn unavailable() -> ! {
    unreachable!("no key exists without an available kernel")
}
