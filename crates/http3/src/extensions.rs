//! Extensions of HTTP/3 that an application implements (RFC 9114 §9).

use std::fmt;
use std::sync::Arc;

use courser_wire::MAX_VARINT;
use thiserror::Error;

use crate::error::Code;
use crate::frame::FrameType;
use crate::settings;
use crate::stream_type::StreamType;

/// The settings, stream types and frame types that an application uses on a connection in addition to those of
/// this crate.
///
/// Types that are not claimed are ignored or refused as RFC 9114 §9 requires. Both ends of a connection normally
/// claim the same types, and announce a setting ([`setting`](Self::setting),
/// [`announced_by`](Self::announced_by)) by which each detects support of the other.
///
/// The default claims nothing and discards unknown settings of the peer. [`new`](Self::new) claims nothing
/// either, but keeps them. Clones share their content.
///
/// ```
/// use courser_http3::{Code, Extensions};
/// // The wire format of WebTransport, draft-ietf-webtrans-http3-12.
/// let extensions = Extensions::new()
///     .setting(0xc671_706a, 1)?
///     .announced_by(0xc671_706a)
///     .unidirectional_stream(0x54)?
///     .bidirectional_stream(0x41)?
///     .refuse_with(Code::from_value(0x3994_bd84));
/// # Ok::<(), courser_http3::ClaimError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extensions(Option<Arc<Claims>>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Claims {
    /// Settings to send, with their values.
    settings: Vec<(u64, u64)>,
    /// The setting with which the peer announces its support.
    announced_by: Option<u64>,
    /// Claimed types of unidirectional streams.
    unidirectional: Vec<u64>,
    /// Claimed first integers of bidirectional streams.
    bidirectional: Vec<u64>,
    /// Claimed frame types, with their streams and longest payloads.
    frames: Vec<(u64, FrameStream, usize)>,
    refusal: Code,
}

/// The streams that carry frames of a claimed type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameStream {
    /// The control streams of both ends.
    Control,
    /// Request streams, in both directions.
    Request,
}

/// The reason why a setting or a type cannot be claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// HTTP/2 uses the value, and HTTP/3 forbids it (RFC 9114 §7.2.8, §11.2.1, §11.2.2).
    #[error("{0:#x} is a number of HTTP/2 that HTTP/3 forbids")]
    Http2(u64),
    /// The value has the form `0x1f * n + 0x21`, which is reserved without a meaning (RFC 9114 §6.2.3, §7.2.4.1,
    /// §7.2.8).
    #[error("{0:#x} is reserved, so that peers ignore unknown numbers")]
    Reserved(u64),
    /// courser implements the value, or refuses it as RFC 9114 requires (server push).
    #[error("{0:#x} is defined by HTTP/3 or an extension that courser implements")]
    Defined(u64),
    /// The value was claimed before.
    #[error("{0:#x} is claimed twice")]
    Twice(u64),
    /// The type, or the value of a setting, exceeds 2^62 - 1.
    #[error("{0:#x} exceeds 2^62 - 1")]
    OutOfRange(u64),
    /// There are already 16 claims of this kind.
    #[error("more than 16 claims of a kind")]
    TooMany,
    /// A payload longer than 64 KiB was requested.
    #[error("a payload of {0} bytes exceeds 65536")]
    TooLong(usize),
}

impl Extensions {
    /// Creates extensions that claim nothing, and keep the peer's unknown settings.
    pub fn new() -> Self {
        Self(Some(Arc::new(Claims {
            settings: Vec::new(),
            announced_by: None,
            unidirectional: Vec::new(),
            bidirectional: Vec::new(),
            frames: Vec::new(),
            refusal: Code::EXCESSIVE_LOAD,
        })))
    }

    /// Adds a setting to send (RFC 9114 §7.2.4).
    ///
    /// # Errors
    ///
    /// Returns an error for settings of HTTP/2 and of this crate, for reserved ones, and for more than 16.
    pub fn setting(self, id: u64, value: u64) -> Result<Self, ClaimError> {
        check_number(id)?;
        check_number(value)?;
        if settings::is_forbidden(id) {
            return Err(ClaimError::Http2(id));
        }
        if settings::is_known(id) {
            return Err(ClaimError::Defined(id));
        }
        self.claim(|claims| {
            check_count(&claims.settings, |&(known, _)| known, id)?;
            claims.settings.push((id, value));
            Ok(())
        })
    }

    /// Uses the claimed streams and frames only with peers that send this setting with a value other than 0 (RFC
    /// 9114 §9). Other peers are treated as if nothing was claimed, once their SETTINGS have arrived.
    #[must_use]
    pub fn announced_by(self, id: u64) -> Self {
        self.change(|claims| claims.announced_by = Some(id))
    }

    /// Claims a type of unidirectional streams in both directions (RFC 9114 §6.2).
    ///
    /// # Errors
    ///
    /// Returns an error for types of this crate and of server push, for reserved ones, and for more than 16.
    pub fn unidirectional_stream(self, stream_type: u64) -> Result<Self, ClaimError> {
        check_number(stream_type)?;
        if StreamType::from_value(stream_type) != StreamType::Unknown {
            return Err(ClaimError::Defined(stream_type));
        }
        self.claim(|claims| {
            check_count(&claims.unidirectional, |&known| known, stream_type)?;
            claims.unidirectional.push(stream_type);
            Ok(())
        })
    }

    /// Claims bidirectional streams that start with this integer, in both directions. The rest of such a stream
    /// is not a sequence of frames. On a client's stream the integer is in the position of a frame type;
    /// anywhere else it is a connection error of type `H3_FRAME_ERROR`.
    ///
    /// # Errors
    ///
    /// Returns an error for frame types of HTTP/2 and of this crate, for reserved ones, and for more than 16.
    pub fn bidirectional_stream(self, signal: u64) -> Result<Self, ClaimError> {
        check_frame(signal)?;
        self.claim(|claims| {
            check_free(&claims.frames, |&(known, ..)| known, signal)?;
            check_count(&claims.bidirectional, |&known| known, signal)?;
            claims.bidirectional.push(signal);
            Ok(())
        })
    }

    /// Claims a frame type on these streams, with payloads of up to `longest` bytes. Longer ones of the peer are
    /// a connection error of type `H3_EXCESSIVE_LOAD`. On other streams the type remains unknown.
    ///
    /// # Errors
    ///
    /// Returns an error for frame types of HTTP/2 and of this crate, for reserved ones, for payloads longer than
    /// 64 KiB, and for more than 16.
    pub fn frame(
        self,
        frame_type: u64,
        stream: FrameStream,
        longest: usize,
    ) -> Result<Self, ClaimError> {
        check_frame(frame_type)?;
        if longest > LONGEST_PAYLOAD {
            return Err(ClaimError::TooLong(longest));
        }
        self.claim(|claims| {
            check_free(&claims.bidirectional, |&known| known, frame_type)?;
            check_count(&claims.frames, |&(known, ..)| known, frame_type)?;
            claims.frames.push((frame_type, stream, longest));
            Ok(())
        })
    }

    /// Sets the code for claimed streams that are refused because the queue of the application is full. Default
    /// `H3_EXCESSIVE_LOAD`.
    #[must_use]
    pub fn refuse_with(self, code: Code) -> Self {
        self.change(|claims| claims.refusal = code)
    }

    /// Returns the code of [`refuse_with`](Self::refuse_with).
    pub fn refusal(&self) -> Code {
        self.0
            .as_ref()
            .map_or(Code::EXCESSIVE_LOAD, |claims| claims.refusal)
    }

    /// Returns true for the default, which discards unknown settings.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true if this type of unidirectional streams is claimed.
    pub fn has_unidirectional(&self, stream_type: u64) -> bool {
        self.0
            .as_ref()
            .is_some_and(|claims| claims.unidirectional.contains(&stream_type))
    }

    /// Returns true if bidirectional streams that start with this integer are claimed.
    pub fn has_bidirectional(&self, signal: u64) -> bool {
        self.0
            .as_ref()
            .is_some_and(|claims| claims.bidirectional.contains(&signal))
    }

    /// Returns true if any bidirectional streams are claimed.
    pub fn has_any_bidirectional(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|claims| !claims.bidirectional.is_empty())
    }

    /// Returns the longest payload of a frame type on these streams, if it is claimed.
    pub fn longest_frame(&self, frame_type: u64, stream: FrameStream) -> Option<usize> {
        let frames = &self.0.as_ref()?.frames;
        let found = frames
            .iter()
            .find(|(known, at, _)| (*known, *at) == (frame_type, stream));
        found.map(|(.., longest)| *longest)
    }

    /// Returns the setting of [`announced_by`](Self::announced_by).
    pub fn announcement(&self) -> Option<u64> {
        self.0.as_ref()?.announced_by
    }

    /// Returns the settings to send.
    pub(crate) fn settings(&self) -> &[(u64, u64)] {
        self.0
            .as_ref()
            .map_or(&[][..], |claims| claims.settings.as_slice())
    }

    /// Returns the type of a frame with this value on these streams.
    pub(crate) fn classify(&self, value: u64, stream: FrameStream) -> FrameType {
        let known = FrameType::from_value(value);
        if known != FrameType::Unknown || self.is_none() {
            return known;
        }
        if self.has_bidirectional(value) {
            return FrameType::Signal;
        }
        match self.longest_frame(value, stream) {
            Some(_) => FrameType::Claimed(value),
            None => FrameType::Unknown,
        }
    }

    fn claim(
        self,
        claim: impl FnOnce(&mut Claims) -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        let mut result = Ok(());
        let extensions = self.change(|claims| result = claim(claims));
        result.map(|()| extensions)
    }

    fn change(self, change: impl FnOnce(&mut Claims)) -> Self {
        let mut extensions = match self.0 {
            Some(_) => self,
            None => Self::new(),
        };
        if let Some(claims) = &mut extensions.0 {
            change(Arc::make_mut(claims));
        }
        extensions
    }
}

impl fmt::Display for FrameStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control stream",
            Self::Request => "request stream",
        })
    }
}

fn check_frame(frame_type: u64) -> Result<(), ClaimError> {
    check_number(frame_type)?;
    match FrameType::from_value(frame_type) {
        FrameType::Unknown => Ok(()),
        FrameType::Http2 => Err(ClaimError::Http2(frame_type)),
        _ => Err(ClaimError::Defined(frame_type)),
    }
}

const fn check_number(value: u64) -> Result<(), ClaimError> {
    if value > MAX_VARINT {
        return Err(ClaimError::OutOfRange(value));
    }
    Ok(())
}

/// Checks that `list` can take `value`: the list is not full, and `value` is neither in it nor reserved.
fn check_count<T>(list: &[T], number: impl Fn(&T) -> u64, value: u64) -> Result<(), ClaimError> {
    if value >= 0x21 && (value - 0x21).is_multiple_of(0x1f) {
        return Err(ClaimError::Reserved(value));
    }
    check_free(list, number, value)?;
    if list.len() == MAX_CLAIMS {
        return Err(ClaimError::TooMany);
    }
    Ok(())
}

/// Checks that `list` does not contain `value`.
fn check_free<T>(list: &[T], number: impl Fn(&T) -> u64, value: u64) -> Result<(), ClaimError> {
    match list.iter().any(|known| number(known) == value) {
        true => Err(ClaimError::Twice(value)),
        false => Ok(()),
    }
}

/// Largest number of claims of a kind (limit K200), because each unknown frame is compared with all of them.
const MAX_CLAIMS: usize = 16;
/// Longest payload of a claimed frame in bytes (limit K201).
const LONGEST_PAYLOAD: usize = 65_536;

#[cfg(test)]
mod tests;
