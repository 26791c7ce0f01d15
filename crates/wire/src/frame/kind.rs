//! Kinds of frames, with the names and properties that the table of frames lists for each.

use super::{Frame, FrameType};

macro_rules! frame_kind {
    ([] $(
        #[doc = $about:literal]
        $variant:ident $name:literal $qlog_name:literal $spec:literal
        [$($counter:ident: $count:ident)?] {
            $($(#[$about_type:meta])* $type:ident = $first:literal $(..=$last:literal)?, $packets:literal;)*
        }
    )*) => {
        /// A kind of frame. Types of frames that differ in their flags only are one kind.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum FrameKind {
            $(#[doc = $about] $variant,)*
        }

        impl FrameKind {
            /// All kinds of frames.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name in RFCs, such as `MAX_STREAMS`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the name in qlog, such as `max_streams`. draft-ietf-quic-qlog-quic-events-13 §8.13.
            pub const fn qlog_name(self) -> &'static str {
                match self {
                    $(Self::$variant => $qlog_name,)*
                }
            }

            /// Returns true if a packet with this frame must be acknowledged in time: for all frames but
            /// ACK, PADDING and CONNECTION_CLOSE. RFC 9002 §2.
            #[inline]
            pub const fn is_ack_eliciting(self) -> bool {
                match self {
                    $(Self::$variant => const { !has_letter($spec, b'N') },)*
                }
            }

            /// Returns true if the frame can be sent on a path without migrating the connection to it.
            /// RFC 9000 §9.1.
            #[inline]
            pub const fn is_probing(self) -> bool {
                match self {
                    $(Self::$variant => const { has_letter($spec, b'P') },)*
                }
            }
        }

        impl Frame<'_> {
            /// Returns the kind of the frame.
            #[inline]
            pub const fn kind(&self) -> FrameKind {
                match self {
                    $(Self::$variant { .. } => FrameKind::$variant,)*
                }
            }
        }

        impl FrameType {
            $($($(#[$about_type])* pub const $type: Self = Self($first);)*)*

            /// Returns the kind of the frames with this type; `None` if the type is unknown.
            pub const fn kind(self) -> Option<FrameKind> {
                match self.0 {
                    $($($first $(..=$last)? => Some(FrameKind::$variant),)*)*
                    _ => None,
                }
            }

            /// Returns the packets that may carry frames of this type, as in RFC 9000 Table 3; none for
            /// unknown types.
            pub(super) const fn packets(self) -> &'static str {
                match self.0 {
                    $($($first $(..=$last)? => $packets,)*)*
                    _ => "____",
                }
            }
        }
    };
}

crate::frames!(frame_kind[]);

/// Returns true if a column of the table has the letter.
pub(super) const fn has_letter(column: &str, letter: u8) -> bool {
    let column = column.as_bytes();
    let mut index = 0;
    while index < column.len() {
        if column[index] == letter {
            return true;
        }
        index += 1;
    }
    false
}

#[cfg(test)]
mod tests;
