//! Extensions of HTTP/3 that an application implements (RFC 9114 §9).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use courser_wire::MAX_VARINT;
use thiserror::Error;

use crate::error::Code;
use crate::frame::FrameType;
use crate::settings;
use crate::stream_type::StreamType;

/// The settings, stream types and frame types that an application uses on a connection in addition to those of
/// this crate, in groups.
///
/// Types that are not claimed are ignored or refused as RFC 9114 §9 requires. Both ends of a connection normally
/// claim the same types, and announce a setting ([`setting`](Self::setting),
/// [`announced_by`](Self::announced_by)) by which each detects support of the other.
///
/// The default claims nothing and discards unknown settings of the peer. [`new`](Self::new) creates a group that
/// claims nothing, but keeps them. [`and`](Self::and) joins groups, so that several parts of a program use a
/// connection independently: each group has its own announcements, queue and codes of refusal. The other methods
/// change the first group. Clones share their content.
///
/// ```
/// use courser_http3::{Code, Extensions, SessionCodes};
/// // The wire format of WebTransport. A peer announces it with the setting of draft-ietf-webtrans-http3-16,
/// // of drafts 13 to 14, of drafts 7 to 12, or of draft 2, which browsers of 2026 still send.
/// let webtransport = Extensions::new()
///     .named("webtransport")
///     .setting(0x2c7c_f000, 1)?
///     .setting(0x14e9_cd29, 1)?
///     .setting(0xc671_706a, 1)?
///     .setting(0x2b60_3742, 1)?
///     .announced_by(0x2c7c_f000)
///     .announced_by(0x14e9_cd29)
///     .announced_by(0xc671_706a)
///     .announced_by(0x2b60_3742)
///     .unidirectional_stream(0x54)?
///     .bidirectional_stream(0x41)?
///     .by_session(SessionCodes {
///         unknown: Code::from_value(0x3994_bd84),
///         over: Code::from_value(0x170d_7b68),
///     })
///     .grant_streams(1024, 1024);
/// // Another part of the program has a stream type of its own.
/// let chat = Extensions::new().named("chat").unidirectional_stream(0x7a11)?;
/// let extensions = webtransport.and(chat)?;
/// assert!(extensions.group("chat").is_some());
/// # Ok::<(), courser_http3::ClaimError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extensions(Option<Arc<Claims>>);

/// The claims of all groups. Each claim names its group, so that an unknown number is compared with one list.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Claims {
    groups: Vec<GroupRules>,
    /// Settings to send, with their values.
    settings: Vec<(u64, u64)>,
    /// Claimed types of unidirectional streams.
    unidirectional: Vec<(u64, Group)>,
    /// Claimed first integers of bidirectional streams.
    bidirectional: Vec<(u64, Group)>,
    /// Claimed frame types, with their streams and longest payloads.
    frames: Vec<(u64, FrameStream, usize, Group)>,
}

/// What applies to all claims of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
struct GroupRules {
    name: &'static str,
    /// The settings with which the peer announces its support.
    announced_by: Vec<u64>,
    refusal: Code,
    sessions: Option<SessionCodes>,
    /// The bidirectional and unidirectional streams that the peer may have open.
    streams: Option<(u64, u64)>,
    value: Option<GroupValue>,
}

/// The value that the user of a group keeps with it. Equal are clones of one value.
#[derive(Clone)]
struct GroupValue(Arc<dyn Any + Send + Sync>);

impl fmt::Debug for GroupValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupValue")
    }
}

impl PartialEq for GroupValue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for GroupValue {}

/// A group of [`Extensions`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Group(u8);

impl Group {
    /// The first group, or the only one.
    pub const FIRST: Self = Self(0);

    /// Returns the position of the group, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The codes with which streams are refused whose session does not accept them
/// ([`Extensions::by_session`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionCodes {
    /// For streams of sessions that nobody has registered in time, or of too many of them. In WebTransport,
    /// `WT_BUFFERED_STREAM_REJECTED`.
    pub unknown: Code,
    /// For streams of sessions that are over or were refused. In WebTransport, `WT_SESSION_GONE`.
    pub over: Code,
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
    /// There are already 16 claims of this kind in all groups.
    #[error("more than 16 claims of a kind")]
    TooMany,
    /// There are already 8 groups.
    #[error("more than 8 groups of extensions")]
    TooManyGroups,
    /// Two groups have the same name.
    #[error("two groups are named {0:?}: name them with Extensions::named")]
    SameName(&'static str),
    /// A payload longer than 64 KiB was requested.
    #[error("a payload of {0} bytes exceeds 65536")]
    TooLong(usize),
}

impl Extensions {
    /// Creates a group without a name that claims nothing, and keeps the peer's unknown settings.
    pub fn new() -> Self {
        Self(Some(Arc::new(Claims {
            groups: vec![GroupRules {
                name: "",
                announced_by: Vec::new(),
                refusal: Code::EXCESSIVE_LOAD,
                sessions: None,
                streams: None,
                value: None,
            }],
            settings: Vec::new(),
            unidirectional: Vec::new(),
            bidirectional: Vec::new(),
            frames: Vec::new(),
        })))
    }

    /// Names the first group, so that its user finds it.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        self.change_group(|group| group.name = name)
    }

    /// Adds the groups of `other` after those of `self`.
    ///
    /// # Errors
    ///
    /// Returns an error if both claim a number or have a name in common, and for more than 16 claims of a kind
    /// or 8 groups (limit K580).
    pub fn and(self, other: Self) -> Result<Self, ClaimError> {
        let Some(added) = other.0 else {
            return Ok(self);
        };
        if self.is_none() {
            return Ok(Self(Some(added)));
        }
        self.claim(|claims| claims.add(&added))
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
    /// 9114 §9). Other peers are treated as if the group claimed nothing, once their SETTINGS have arrived.
    ///
    /// If it is called for several settings, one of them is sufficient, for extensions whose versions announce
    /// themselves differently. Without any, all peers support the group.
    #[must_use]
    pub fn announced_by(self, id: u64) -> Self {
        self.change_group(|group| {
            if !group.announced_by.contains(&id) {
                group.announced_by.push(id);
            }
        })
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
            check_count(&claims.unidirectional, |&(known, _)| known, stream_type)?;
            claims.unidirectional.push((stream_type, Group::FIRST));
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
            check_count(&claims.bidirectional, |&(known, _)| known, signal)?;
            claims.bidirectional.push((signal, Group::FIRST));
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
            check_free(&claims.bidirectional, |&(known, _)| known, frame_type)?;
            check_count(&claims.frames, |&(known, ..)| known, frame_type)?;
            claims
                .frames
                .push((frame_type, stream, longest, Group::FIRST));
            Ok(())
        })
    }

    /// Sets the code for claimed streams that are refused because the queue of the application is full. Default
    /// `H3_EXCESSIVE_LOAD`.
    #[must_use]
    pub fn refuse_with(self, code: Code) -> Self {
        self.change_group(|group| group.refusal = code)
    }

    /// Delivers the claimed streams by session: after its type, each stream names the request to which it
    /// belongs with the variable-length integer of the request's stream ID, as in WebTransport.
    ///
    /// The integer is read before the stream is delivered, and streams of a session wait in a queue of their
    /// own. Another number than that of a request stream is a connection error of type `H3_ID_ERROR`.
    #[must_use]
    pub fn by_session(self, codes: SessionCodes) -> Self {
        self.change_group(|group| group.sessions = Some(codes))
    }

    /// Allows the peer to have at least this many bidirectional and unidirectional streams open on the
    /// connection, for peers that open many at once. Streams beyond those of the transport's configuration are
    /// granted when HTTP/3 starts. Requests count as bidirectional streams, but no more of them run at the same time on
    /// a server than the transport's configuration allows (limit K591).
    ///
    /// Where streams are delivered [by session](Self::by_session), the peer gets as many for each session that is open.
    #[must_use]
    pub fn grant_streams(self, bidirectional: u64, unidirectional: u64) -> Self {
        self.change_group(|group| group.streams = Some((bidirectional, unidirectional)))
    }

    /// Keeps a value with the group, such as the configuration of the extension, for the part of a program that
    /// implements it. It is the same for all connections.
    #[must_use]
    pub fn with_value(self, value: impl Any + Send + Sync) -> Self {
        let value = GroupValue(Arc::new(value));
        self.change_group(|group| group.value = Some(value))
    }

    /// Returns the value of [`with_value`](Self::with_value), if it has this type.
    pub fn value<T: Any>(&self, group: Group) -> Option<&T> {
        self.rules(group)?.value.as_ref()?.0.downcast_ref()
    }

    /// Returns the group of this name.
    pub fn group(&self, name: &str) -> Option<Group> {
        let mut groups = self.groups();
        groups.find(|group| self.rules(*group).is_some_and(|rules| rules.name == name))
    }

    /// Returns all groups in order.
    pub fn groups(&self) -> impl Iterator<Item = Group> + use<> {
        let count = self.0.as_ref().map_or(0, |claims| claims.groups.len());
        (0..MAX_GROUPS).take(count).map(Group)
    }

    /// Returns the code of [`refuse_with`](Self::refuse_with).
    pub fn refusal(&self, group: Group) -> Code {
        self.rules(group)
            .map_or(Code::EXCESSIVE_LOAD, |rules| rules.refusal)
    }

    /// Returns the codes of [`by_session`](Self::by_session), if the group uses it.
    pub fn session_codes(&self, group: Group) -> Option<SessionCodes> {
        self.rules(group)?.sessions
    }

    /// Returns the settings of [`announced_by`](Self::announced_by).
    pub fn announcements(&self, group: Group) -> &[u64] {
        self.rules(group)
            .map_or(&[][..], |rules| rules.announced_by.as_slice())
    }

    /// Returns the largest numbers of bidirectional and unidirectional streams of
    /// [`grant_streams`](Self::grant_streams), if any group uses it.
    pub fn granted_streams(&self) -> Option<(u64, u64)> {
        let groups = &self.0.as_ref()?.groups;
        let granted = groups.iter().filter_map(|group| group.streams);
        granted.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)))
    }

    /// Returns true for the default, which discards unknown settings.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the group that claims this type of unidirectional streams.
    pub fn unidirectional(&self, stream_type: u64) -> Option<Group> {
        find(&self.0.as_ref()?.unidirectional, stream_type)
    }

    /// Returns the group that claims bidirectional streams that start with this integer.
    pub fn bidirectional(&self, signal: u64) -> Option<Group> {
        find(&self.0.as_ref()?.bidirectional, signal)
    }

    /// Returns the group that claims a frame type on these streams.
    pub fn group_of_frame(&self, frame_type: u64, stream: FrameStream) -> Option<Group> {
        self.frame_claim(frame_type, stream).map(|(_, group)| group)
    }

    /// Returns true if any bidirectional streams are claimed.
    pub fn has_any_bidirectional(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|claims| !claims.bidirectional.is_empty())
    }

    /// Returns the longest payload of a frame type on these streams, if it is claimed.
    pub fn longest_frame(&self, frame_type: u64, stream: FrameStream) -> Option<usize> {
        self.frame_claim(frame_type, stream)
            .map(|(longest, _)| longest)
    }

    fn frame_claim(&self, frame_type: u64, stream: FrameStream) -> Option<(usize, Group)> {
        let frames = &self.0.as_ref()?.frames;
        let found = frames
            .iter()
            .find(|(known, at, ..)| (*known, *at) == (frame_type, stream));
        found.map(|(_, _, longest, group)| (*longest, *group))
    }

    fn rules(&self, group: Group) -> Option<&GroupRules> {
        self.0.as_ref()?.groups.get(group.index())
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
        if self.bidirectional(value).is_some() {
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

    /// Changes the first group.
    fn change_group(self, change: impl FnOnce(&mut GroupRules)) -> Self {
        self.change(|claims| {
            if let Some(group) = claims.groups.first_mut() {
                change(group);
            }
        })
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

impl Claims {
    /// Adds the groups of `other`.
    fn add(&mut self, other: &Self) -> Result<(), ClaimError> {
        let before = self.groups.len();
        for group in &other.groups {
            if self.groups.iter().any(|known| known.name == group.name) {
                return Err(ClaimError::SameName(group.name));
            }
            self.groups.push(group.clone());
        }
        if self.groups.len() > usize::from(MAX_GROUPS) {
            return Err(ClaimError::TooManyGroups);
        }
        // At most 8 groups, so it fits.
        let first = u8::try_from(before).unwrap_or(MAX_GROUPS);
        let moved = |group: Group| Group(group.0 + first);
        for &(id, value) in &other.settings {
            check_count(&self.settings, |&(known, _)| known, id)?;
            self.settings.push((id, value));
        }
        for &(stream_type, group) in &other.unidirectional {
            check_count(&self.unidirectional, |&(known, _)| known, stream_type)?;
            self.unidirectional.push((stream_type, moved(group)));
        }
        for &(signal, group) in &other.bidirectional {
            check_free(&self.frames, |&(known, ..)| known, signal)?;
            check_count(&self.bidirectional, |&(known, _)| known, signal)?;
            self.bidirectional.push((signal, moved(group)));
        }
        for &(frame_type, stream, longest, group) in &other.frames {
            check_free(&self.bidirectional, |&(known, _)| known, frame_type)?;
            check_count(&self.frames, |&(known, ..)| known, frame_type)?;
            self.frames
                .push((frame_type, stream, longest, moved(group)));
        }
        Ok(())
    }
}

/// Returns the group of a number in a list of claims.
fn find(list: &[(u64, Group)], value: u64) -> Option<Group> {
    let found = list.iter().find(|(known, _)| *known == value);
    found.map(|(_, group)| *group)
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
/// Largest number of groups (limit K580), because a byte has a bit for each.
const MAX_GROUPS: u8 = 8;
/// Longest payload of a claimed frame in bytes (limit K201).
const LONGEST_PAYLOAD: usize = 65_536;

#[cfg(test)]
mod tests;
