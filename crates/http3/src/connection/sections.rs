//! Field sections in both directions.

use courser_qpack::Progress;
use courser_telemetry::{FieldSection, Http3Frame, Http3Record, Http3StreamType};
use http::{HeaderMap, Request, Response};

use super::repeats::{Head, Message, Seen};
use super::{Connection, MOST_INSTRUCTIONS, UniStream};
use crate::error::{Code, Error};
use crate::fields::{Collector, FieldsError, FieldsToSend, Kind, Protocol, RequestError};
use crate::frame;

/// The outcome of decoding a section.
#[derive(Debug)]
pub enum Section<T> {
    /// The section was decoded. It is a valid message or not.
    Decoded(Result<T, FieldsError>),
    /// The stream is blocked. Decode the section again after
    /// [`Event::Unblocked`](super::Event::Unblocked), before anything else of its stream.
    Blocked,
}

/// The header section of a request, and the length that its content must have.
pub type RequestHead = (Request<()>, Option<u64>);
/// The header section of a response, interim or final, and the length that its content should have.
pub type ResponseHead = (Response<()>, Option<u64>);

impl Connection {
    /// Decodes the header section of a request. [`RequestStream`](crate::RequestStream) does it for
    /// whole messages.
    ///
    /// # Errors
    ///
    /// Returns an error of the connection if the section cannot be decoded, and an error of the stream
    /// if it would be blocked while too many bytes are blocked already.
    pub fn decode_request(
        &mut self,
        stream: u64,
        section: &[u8],
    ) -> Result<Section<RequestHead>, Error> {
        let extended_connect = self.config.extended_connect;
        self.decode_head(stream, section, Kind::Request, |collector| {
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
        self.decode_head(stream, section, Kind::Response, |collector| {
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
        self.check_answers()?;
        self.decode(stream, section, Kind::Trailers, |collector| {
            collector.finish_trailers()
        })
    }

    /// Appends a HEADERS frame with these fields to `out`. The inserts that it refers to wait on the
    /// [encoder stream](super::UniStream::Encoder) and should leave first.
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

    /// Appends a HEADERS frame like [`encode`](Self::encode), within the credit of the encoder stream.
    ///
    /// `credit` returns the bytes that flow control allows on it. It is called if the section may need
    /// insertions, and no instruction is started that the credit does not cover as a whole (RFC 9204
    /// §2.1.3).
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
        let settings = self.peer_settings.as_ref().or(self.remembered.as_ref());
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
        self.on_section();
        if fields.is_final_response() {
            self.outcomes.on_response(stream);
        }
        self.section.clear();
        if fields.is_request() {
            self.record(|| Http3Record::StreamTypeSet {
                by_peer: false,
                stream,
                stream_type: Http3StreamType::Request,
            });
        }
        // The type of the stream leaves in front of the first instruction.
        let first = u64::from(!self.has_begun[UniStream::Encoder as usize]);
        let credit = || {
            let credit = credit().saturating_sub(first);
            usize::try_from(credit)
                .map_or(MOST_INSTRUCTIONS, |credit| credit.min(MOST_INSTRUCTIONS))
        };
        let lines = || fields.lines();
        self.encoder
            .encode_within(stream, lines, credit, &mut self.section);
        frame::encode_header(out, frame::HEADERS, self.section.len());
        out.extend_from_slice(&self.section);
        let len = self.section.len() as u64;
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
    /// Returns [`RequestError::ExtendedConnect`] for an extended CONNECT before the server's settings
    /// have enabled it.
    pub fn check_request(&self, parts: &http::request::Parts) -> Result<(), RequestError> {
        let is_extended = parts.extensions.get::<Protocol>().is_some();
        let is_enabled = self
            .peer_settings
            .is_some_and(|settings| settings.enable_connect_protocol);
        if is_extended && !is_enabled {
            return Err(RequestError::ExtendedConnect);
        }
        Ok(())
    }

    /// Decodes a header section, or clones it from the cache if an identical one came lately.
    fn decode_head<T: Message>(
        &mut self,
        stream: u64,
        section: &[u8],
        kind: Kind,
        finish: impl FnOnce(&mut Collector<'_>) -> Result<Head<T>, FieldsError>,
    ) -> Result<Section<Head<T>>, Error> {
        self.check_answers()?;
        let state = self.decoder.state();
        let place = T::cache(&mut self.repeats).place(section, state);
        if !self.is_recording()
            && let Some((head, required)) = T::cache(&mut self.repeats).get(place)
        {
            self.decoder.repeat(stream, required);
            self.blocked.remove(stream);
            self.on_section();
            return Ok(Section::Decoded(Ok(head)));
        }
        let decoded = self.decode(stream, section, kind, finish)?;
        if let Section::Decoded(Ok(head)) = &decoded
            && let Some(size) = self.decoded_size
        {
            let seen = Seen {
                section,
                state,
                required: self.decoder.required(),
                size,
            };
            T::cache(&mut self.repeats).on_decoded(place, &seen, head);
        }
        Ok(decoded)
    }

    fn decode<T>(
        &mut self,
        stream: u64,
        section: &[u8],
        kind: Kind,
        finish: impl FnOnce(&mut Collector<'_>) -> Result<T, FieldsError>,
    ) -> Result<Section<T>, Error> {
        let mut collector = Collector::new(kind, self.config.limits, &mut self.cache);
        let mut recorded = self.records.begin_section();
        let progress = self.decoder.decode(stream, section, |line| {
            if let Some(recorded) = &mut recorded {
                let (name, value) = (line.name.as_bytes(), line.value.as_bytes());
                recorded.push(name, value, line.is_sensitive);
            }
            collector.line(&line);
        })?;
        Ok(match progress {
            Progress::Decoded => {
                let message = finish(&mut collector);
                self.decoded_size = collector.size_without_secrets();
                if let Some(recorded) = recorded {
                    self.record(|| Http3Record::FrameParsed {
                        stream,
                        frame: Http3Frame::Headers {
                            len: section.len() as u64,
                            section: recorded,
                        },
                    });
                }
                self.blocked.remove(stream);
                self.on_section();
                Section::Decoded(message)
            }
            Progress::Blocked => {
                let most = self.config.blocked_bytes;
                if !self.blocked.add(stream, section.len(), most) {
                    return Err(Error::stream(
                        Code::EXCESSIVE_LOAD,
                        "more bytes of sections wait for the table than allowed",
                    ));
                }
                Section::Blocked
            }
        })
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
