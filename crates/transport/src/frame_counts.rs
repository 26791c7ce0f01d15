//! Counts of frames by type.

use courser_wire::frame::Frame;

/// Adds one to a counter. Frames that carry bulk transfers have counters that cannot overflow.
macro_rules! add_one {
    (u64, $counter:expr) => {
        $counter += 1
    };
    (u32, $counter:expr) => {
        $counter = $counter.saturating_add(1)
    };
}

macro_rules! frame_counts {
    ([] $(
        #[doc = $about:literal]
        $variant:ident $name:literal $qlog_name:literal $spec:literal
        [$($counter:ident: $count:ident)?] { $($types:tt)* }
    )*) => {
        /// Counts of frames by type, in one direction. PADDING is not counted.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct FrameCounts {
            $($(#[doc = $about] pub $counter: u64,)?)*
        }

        impl std::ops::AddAssign for FrameCounts {
            fn add_assign(&mut self, other: Self) {
                $($(self.$counter += other.$counter;)?)*
            }
        }

        /// The counts as a connection stores them, with 32 bits for rare frames.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct FrameTally {
            $($(pub(crate) $counter: $count,)?)*
        }

        impl FrameTally {
            /// Counts a received frame.
            #[inline]
            pub(crate) fn on_received(&mut self, frame: &Frame<'_>) {
                match frame {
                    $(Frame::$variant { .. } => { $(add_one!($count, self.$counter);)? })*
                }
            }
        }

        impl From<FrameTally> for FrameCounts {
            fn from(tally: FrameTally) -> Self {
                Self {
                    $($($counter: tally.$counter.into(),)?)*
                }
            }
        }
    };
}

courser_wire::frames!(frame_counts[]);
