//! Encoding and decoding of field sections.

use courser_telemetry::{FieldSection, Http3Frame, Http3Record, Http3StreamType};
use http::{HeaderMap, Request, Response};

use super::compression::Section;
use super::section_cache::{Head, Message};
use super::{Connection, MAX_INSTRUCTIONS, UniStream};
use crate::error::Error;
use crate::fields::{Collector, FieldsError, FieldsToSend, Kind, Protocol, RequestError};
use crate::frame;

/// The header section of a request, and the length that its content must have.
pub type RequestHead = (Request<()>, Option<u64>);
/// The header section of an interim or final response, and the length that its content should have.
pub type ResponseHead = (Response<()>, Option<u64>);

impl Connection {
    /// Decodes the header section of a request. [`RequestStream`](crate::RequestStream) does this for whole
    /// messages.
    ///
    /// # Errors
    ///
    /// Returns a connection error if the section cannot be decoded, and a stream error if it would be blocked
    /// while too many bytes are blocked already.
    pub fn decode_request(
        &mut self,
        stream: u64,
        section: &[u8],
    ) -> Result<Section<RequestHead>, Error> {
        let extended_connect = self.config.extended_connect;
        self.decode_header_section(stream, section, Kind::Request, |collector| {
            collector.finish_request(extended_connect)
        })
    }

    /// Decodes the header section of a response.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`decode_request`](Self::decode_request).
    pub fn decode_response(
        &mut self,
        stream: u64,
        section: &[u8],
    ) -> Result<Section<ResponseHead>, Error> {
        self.decode_header_section(stream, section, Kind::Response, |collector| {
            collector.finish_response()
        })
    }

    /// Decodes a trailer section.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`decode_request`](Self::decode_request).
    pub fn decode_trailers(
        &mut self,
        stream: u64,
        section: &[u8],
    ) -> Result<Section<HeaderMap>, Error> {
        self.compression.check_answers()?;
        let mut recorded = self.records.begin_section();
        let finish = |collector: &mut Collector<'_>| collector.finish_trailers();
        let decoded =
            self.compression
                .decode(stream, section, Kind::Trailers, &mut recorded, finish)?;
        self.on_section_parsed(stream, section, recorded, &decoded);
        Ok(decoded)
    }

    /// Appends a HEADERS frame with these fields to `out`. The inserts to which it refers wait on the [encoder
    /// stream](super::UniStream::Encoder) and should be sent first.
    ///
    /// # Errors
    ///
    /// Returns [`RequestError::TooLarge`] if the fields exceed the limit of the peer.
    pub fn encode(
        &mut self,
        stream: u64,
        fields: &FieldsToSend<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        self.encode_within(stream, fields, || u64::MAX, out)
    }

    /// Appends a HEADERS frame like [`encode`](Self::encode), within the flow control credit of the encoder
    /// stream.
    ///
    /// `credit` returns the number of bytes that flow control allows on it. It is called if the section may need
    /// inserts. An instruction is written only if the credit covers all of it (RFC 9204 §2.1.3).
    ///
    /// # Errors
    ///
    /// Returns the same error as [`encode`](Self::encode).
    pub fn encode_within(
        &mut self,
        stream: u64,
        fields: &FieldsToSend<'_>,
        credit: impl FnOnce() -> u64,
        out: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        self.check_size(fields)?;
        self.append_section(stream, fields, credit, out);
        Ok(())
    }

    /// Checks the size of these fields against the limit of the peer.
    ///
    /// # Errors
    ///
    /// Returns [`RequestError::TooLarge`] if they exceed it.
    pub fn check_size(&self, fields: &FieldsToSend<'_>) -> Result<(), RequestError> {
        let settings = self.peer.in_force();
        if let Some(allowed) = settings.and_then(|settings| settings.max_field_section_size) {
            let size = fields.size();
            if size > allowed {
                return Err(RequestError::TooLarge { size, allowed });
            }
        }
        Ok(())
    }

    /// Appends a HEADERS frame like [`encode_within`](Self::encode_within), for fields that
    /// [`check_size`](Self::check_size) has accepted.
    pub fn append_section(
        &mut self,
        stream: u64,
        fields: &FieldsToSend<'_>,
        credit: impl FnOnce() -> u64,
        out: &mut Vec<u8>,
    ) {
        self.budget.on_section();
        if fields.is_final_response() {
            self.outcomes.on_response(stream);
        }
        if fields.is_request() {
            self.record(|| Http3Record::StreamTypeSet {
                by_peer: false,
                stream,
                stream_type: Http3StreamType::Request,
            });
        }
        // The stream type is sent before the first instruction.
        let first = u64::from(!self.has_begun[UniStream::Encoder as usize]);
        let credit = || {
            let credit = credit().saturating_sub(first);
            usize::try_from(credit).map_or(MAX_INSTRUCTIONS, |credit| credit.min(MAX_INSTRUCTIONS))
        };
        let section = self.compression.encode(stream, fields, credit);
        frame::encode_header(out, frame::HEADERS, section.len());
        out.extend_from_slice(section);
        let len = section.len() as u64;
        self.record(|| Http3Record::FrameCreated {
            stream,
            frame: Http3Frame::Headers {
                len,
                section: recorded(fields),
            },
        });
    }

    /// Checks that the server accepts a request of this kind.
    ///
    /// # Errors
    ///
    /// Returns [`RequestError::ExtendedConnect`] for an extended CONNECT until the server's settings have
    /// enabled it.
    pub fn check_request(&self, parts: &http::request::Parts) -> Result<(), RequestError> {
        let is_extended = parts.extensions.get::<Protocol>().is_some();
        let is_enabled = self
            .peer
            .received()
            .is_some_and(|settings| settings.enable_connect_protocol);
        if is_extended && !is_enabled {
            return Err(RequestError::ExtendedConnect);
        }
        Ok(())
    }

    fn decode_header_section<T: Message>(
        &mut self,
        stream: u64,
        section: &[u8],
        kind: Kind,
        finish: impl FnOnce(&mut Collector<'_>) -> Result<Head<T>, FieldsError>,
    ) -> Result<Section<Head<T>>, Error> {
        let mut recorded = self.records.begin_section();
        let compression = &mut self.compression;
        let decoded =
            compression.decode_header_section(stream, section, kind, &mut recorded, finish)?;
        self.on_section_parsed(stream, section, recorded, &decoded);
        Ok(decoded)
    }

    /// Records a decoded section, and counts it as progress.
    fn on_section_parsed<T>(
        &mut self,
        stream: u64,
        section: &[u8],
        recorded: Option<FieldSection>,
        decoded: &Section<T>,
    ) {
        if let Section::Blocked = decoded {
            return;
        }
        if let Some(recorded) = recorded {
            self.record(|| Http3Record::FrameParsed {
                stream,
                frame: Http3Frame::Headers {
                    len: section.len() as u64,
                    section: recorded,
                },
            });
        }
        self.budget.on_section();
    }
}

/// Returns the field lines as they are recorded.
fn recorded(fields: &FieldsToSend<'_>) -> FieldSection {
    let mut section = FieldSection::default();
    for line in fields.lines() {
        section.push(line.name, line.value, line.is_sensitive);
    }
    section
}
