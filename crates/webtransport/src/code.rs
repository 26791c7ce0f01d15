//! Error codes: those of the protocol, and those of applications (draft-ietf-webtrans-http3-16 §4.4, §9.5).

use std::fmt;

use courser_http3::Code;

/// The code for streams whose session is not known and that cannot wait for it.
pub const BUFFERED_STREAM_REJECTED: Code = Code::from_value(0x3994_bd84);
/// The code for streams whose session has ended.
pub const SESSION_GONE: Code = Code::from_value(0x170d_7b68);
/// The code for sessions whose peer exceeds a limit, or sends an invalid one.
pub const FLOW_CONTROL_ERROR: Code = Code::from_value(0x045d_4487);
/// The code for sessions without the application protocol that the client requires.
pub const ALPN_ERROR: Code = Code::from_value(0x0817_b3dd);
/// The code for connections that a client has opened for WebTransport only, to a server without it.
pub const REQUIREMENTS_NOT_MET: Code = Code::from_value(0x212c_0d48);

/// Returns the name of a code of WebTransport, such as `WT_SESSION_GONE`, or that of HTTP/3.
pub const fn name(code: Code) -> Option<&'static str> {
    match code.value() {
        0x3994_bd84 => Some("WT_BUFFERED_STREAM_REJECTED"),
        0x170d_7b68 => Some("WT_SESSION_GONE"),
        0x045d_4487 => Some("WT_FLOW_CONTROL_ERROR"),
        0x0817_b3dd => Some("WT_ALPN_ERROR"),
        0x212c_0d48 => Some("WT_REQUIREMENTS_NOT_MET"),
        _ => code.name(),
    }
}

/// An error code that an application chooses for a stream or a session, in all dialects of 32 bits.
///
/// On streams it is sent as a code of HTTP/3. The conversion leaves out the reserved ones (RFC 9114 §8.1).
///
/// ```
/// use courser_webtransport::ApplicationCode;
/// let code = ApplicationCode(7).to_http3();
/// assert_eq!(code.value(), 0x52e4_a40f_a8e2);
/// assert_eq!(ApplicationCode::from_http3(code), Some(ApplicationCode(7)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ApplicationCode(pub u32);

impl ApplicationCode {
    /// Returns the code to send in RESET_STREAM_AT, RESET_STREAM and STOP_SENDING frames.
    pub const fn to_http3(self) -> Code {
        let code = self.0 as u64;
        Code::from_value(FIRST + code + code / (RESERVED_EVERY - 1))
    }

    /// Returns the code of the application in a received code, or `None` for codes outside their range and for
    /// reserved ones inside. The stream has ended in either case, and the application learns of a reset without a
    /// code.
    pub const fn from_http3(code: Code) -> Option<Self> {
        let value = code.value();
        if value < FIRST || value > LAST || (value - 0x21).is_multiple_of(RESERVED_EVERY) {
            return None;
        }
        let shifted = value - FIRST;
        // At most `u32::MAX`, because the value is at most `LAST`.
        Some(Self((shifted - shifted / RESERVED_EVERY) as u32))
    }
}

impl From<u32> for ApplicationCode {
    fn from(code: u32) -> Self {
        Self(code)
    }
}

impl fmt::Display for ApplicationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The code of HTTP/3 for the application code 0.
const FIRST: u64 = 0x52e4_a40f_a8db;
/// The code of HTTP/3 for the application code 2^32 - 1.
const LAST: u64 = 0x52e5_ac98_3162;
/// Every so manieth code of HTTP/3 is reserved.
const RESERVED_EVERY: u64 = 0x1f;

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-ietf-webtrans-http3-16 §4.4; WT-h3-061, WT-v-012.
    #[test]
    fn codes_of_32_bits_are_mapped_and_back() {
        assert_eq!(ApplicationCode(0).to_http3().value(), FIRST);
        assert_eq!(ApplicationCode(u32::MAX).to_http3().value(), LAST);
        let around = (0..32).flat_map(|bit| {
            let power = 1_u32 << bit;
            [power - 1, power, power.wrapping_add(1)]
        });
        for code in around.chain(0..200).chain([255, 256, 100_000, u32::MAX]) {
            let mapped = ApplicationCode(code).to_http3();
            assert_ne!((mapped.value() - 0x21) % 0x1f, 0, "{code} is reserved");
            let back = ApplicationCode::from_http3(mapped);
            assert_eq!(back, Some(ApplicationCode(code)), "{code}");
        }
    }

    /// draft-ietf-webtrans-http3-16 §4.4; WT-h3-062.
    #[test]
    fn reserved_codes_inside_the_range_are_none_of_an_application() {
        let reserved = (FIRST..FIRST + 200).filter(|code| (code - 0x21) % 0x1f == 0);
        let mut count = 0;
        for code in reserved {
            assert_eq!(ApplicationCode::from_http3(Code::from_value(code)), None);
            count += 1;
        }
        assert!((6..=7).contains(&count));
    }

    /// draft-ietf-webtrans-http3-16 §4.4; WT-h3-063.
    #[test]
    fn codes_outside_the_range_are_none_of_an_application() {
        let outside = [0, 0x100, FIRST - 1, LAST + 1, (1 << 62) - 1];
        for code in outside.map(Code::from_value).into_iter().chain([
            SESSION_GONE,
            BUFFERED_STREAM_REJECTED,
            Code::NO_ERROR,
        ]) {
            assert_eq!(ApplicationCode::from_http3(code), None, "{code}");
        }
    }

    #[test]
    fn codes_have_their_registered_names() {
        assert_eq!(name(SESSION_GONE), Some("WT_SESSION_GONE"));
        assert_eq!(name(Code::ID_ERROR), Some("H3_ID_ERROR"));
        assert_eq!(name(Code::from_value(1)), None);
    }
}
