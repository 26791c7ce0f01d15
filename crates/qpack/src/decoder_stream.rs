//! Instructions from the decoder to the encoder (RFC 9204 §4.4).

use courser_telemetry::QpackInstruction;

use crate::error::Malformed;
use crate::prefix_int;

/// An instruction that the decoder sends to the encoder (§4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Instruction {
    SectionAcknowledgment { stream: u64 },
    StreamCancellation { stream: u64 },
    InsertCountIncrement(u64),
}

impl Instruction {
    /// Decodes the instruction at the start of `bytes`.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let first = *bytes.first().ok_or(Malformed::Incomplete)?;
        if first & 0x80 != 0 {
            let stream = prefix_int::decode(bytes, 7)?;
            return Ok(Self::SectionAcknowledgment { stream });
        }
        let value = prefix_int::decode(bytes, 6)?;
        Ok(match first & 0x40 {
            0 => Self::InsertCountIncrement(value),
            _ => Self::StreamCancellation { stream: value },
        })
    }

    /// Returns the instruction as it is recorded.
    pub(crate) const fn record(self) -> QpackInstruction {
        match self {
            Self::SectionAcknowledgment { stream } => {
                QpackInstruction::SectionAcknowledgment { stream }
            }
            Self::StreamCancellation { stream } => QpackInstruction::StreamCancellation { stream },
            Self::InsertCountIncrement(increment) => {
                QpackInstruction::InsertCountIncrement { increment }
            }
        }
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::SectionAcknowledgment { stream } => prefix_int::encode(out, 0x80, 7, stream),
            Self::StreamCancellation { stream } => prefix_int::encode(out, 0x40, 6, stream),
            Self::InsertCountIncrement(count) => prefix_int::encode(out, 0, 6, count),
        }
    }
}
