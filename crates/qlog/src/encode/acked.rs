//! Encodes what a frame acknowledges.

use std::ops::RangeInclusive;

use courser_base::EcnCounts;

use crate::json::{Object, array, plain};

pub(super) fn acked(o: &mut Object<'_>, ranges: &[RangeInclusive<u64>], ecn: Option<EcnCounts>) {
    o.array("acked_ranges", ranges, |out, range| {
        let last = (range.start() != range.end()).then_some(range.end());
        array(
            out,
            [Some(range.start()), last].into_iter().flatten(),
            plain,
        );
    });
    if let Some(ecn) = ecn {
        o.uint("ect1", ecn.ect1)
            .uint("ect0", ecn.ect0)
            .uint("ce", ecn.ce);
    }
}
