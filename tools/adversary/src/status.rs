//! The statuses of responses, as far as they are seen without the dynamic table of QPACK.

use courser_wire::Reader;

/// Returns the status of a response whose HEADERS frame is at the beginning of `stream`, as far as it is there.
pub fn status(stream: &[u8]) -> Option<u16> {
    let mut reader = Reader::new(stream);
    if reader.varint().ok()? != HEADERS {
        return None;
    }
    reader.varint().ok()?;
    // The prefix of a section without references to the dynamic table (RFC 9204 §4.5.1).
    match *reader.rest() {
        [0, 0, first, ..] if (0xc0 + 24..0xff).contains(&first) => {
            STATUSES.get(usize::from(first - 0xc0 - 24)).copied()
        }
        [0, 0, 0xff, index, ..] => LATER_STATUSES.get(usize::from(index)).copied(),
        // A literal with the name of static entry 24.
        [0, 0, 0x5f, 9, len, ref value @ ..] => digits(len, value),
        _ => None,
    }
}

/// The statuses of the static entries from 24 on (RFC 9204 §A).
const STATUSES: [u16; 5] = [103, 200, 304, 404, 503];
/// Those from 63 on.
const LATER_STATUSES: [u16; 9] = [100, 204, 206, 302, 400, 403, 421, 425, 500];

/// Reads three digits, which may be in the code of RFC 7541 §B.
fn digits(len: u8, value: &[u8]) -> Option<u16> {
    let value = value.get(..usize::from(len & 0x7f))?;
    if len & 0x80 == 0 {
        return std::str::from_utf8(value).ok()?.parse().ok();
    }
    let bits = value
        .iter()
        .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let mut left = u32::try_from(8 * value.len()).ok()?;
    let mut take = |bits: u64, count: u32| {
        left = left.checked_sub(count)?;
        u16::try_from(bits >> left & ((1 << count) - 1)).ok()
    };
    let mut number = 0;
    for _ in 0..3 {
        // 0 to 2 have five bits, 3 to 9 have six of which the first five are 12 and above.
        let digit = match take(bits, 5)? {
            digit @ 0..=2 => digit,
            long @ 12..=15 => 2 * long + take(bits, 1)? - 22,
            _ => return None,
        };
        number = 10 * number + digit;
    }
    Some(number)
}

/// The type of HEADERS frames (RFC 9114 §7.2.2).
pub const HEADERS: u64 = 0x01;

#[cfg(test)]
mod tests;
