//! Field sections in and out.

use courser_qpack::Progress;
use http::{HeaderMap, Request, Response};

use super::Connection;
use super::repeats::{Head, Message, Seen};
use crate::error::{Code, Error};
use crate::fields::{Collector, FieldsError, FieldsToSend, Kind, Protocol, RequestError};
use crate::frame;

/// What became of a section.
#[derive(Debug)]
pub enum Section<T> {
    /// It was decoded, and makes a message or not.
    Decoded(Result<T, FieldsError>),
    /// It waits for the table: to be decoded again after
    /// [`Event::Unblocked`](super::Event::Unblocked), and no part of its stream before it.
    Blocked,
}

/// A request without its content, and the length that this must have.
pub type RequestHead = (Request<()>, Option<u64>);
/// A response, interim or final, without its content, and the length that this should have.
pub type ResponseHead = (Response<()>, Option<u64>);

impl Connection {
    /// Decodes the head of a request.
    ///
    /// # Errors
    ///
    /// Of the connection, if it cannot be decoded; of the stream, if it would have to wait and too
    /// much does already.
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

    /// Decodes the head of a response.
    ///
    /// # Errors
    ///
    /// As of [`decode_request`](Self::decode_request).
    pub fn decode_response(
        &mut self,
        stream: u64,
        section: &[u8],
    ) -> Result<Section<ResponseHead>, Error> {
        self.decode_head(stream, section, Kind::Response, |collector| {
            collector.finish_response()
        })
    }

    /// Decodes trailers.
    ///
    /// # Errors
    ///
    /// As of [`decode_request`](Self::decode_request).
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

    /// Appends a HEADERS frame with these fields to `out`. What it needs of the table waits on the
    /// [encoder stream](super::UniStream::Encoder) and should leave first.
    ///
    /// # Errors
    ///
    /// [`RequestError::TooLarge`] for more than the peer wants to read.
    pub fn encode(
        &mut self,
        stream: u64,
        fields: &FieldsToSend<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        self.check_size(fields)?;
        self.append_section(stream, fields, out);
        Ok(())
    }

    /// Whether the peer wants to read as much.
    ///
    /// # Errors
    ///
    /// [`RequestError::TooLarge`].
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

    /// As [`encode`](Self::encode), for fields that [`check_size`](Self::check_size) lets through.
    pub fn append_section(&mut self, stream: u64, fields: &FieldsToSend<'_>, out: &mut Vec<u8>) {
        self.instructions.on_section();
        self.section.clear();
        self.encoder
            .encode(stream, || fields.lines(), &mut self.section);
        frame::encode_header(out, frame::HEADERS, self.section.len());
        out.extend_from_slice(&self.section);
    }

    /// Whether a request may be sent as it is: an extended CONNECT needs the server's word.
    ///
    /// # Errors
    ///
    /// [`RequestError::ExtendedConnect`].
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

    /// As [`decode`](Self::decode), unless the section came lately.
    fn decode_head<T: Message>(
        &mut self,
        stream: u64,
        section: &[u8],
        kind: Kind,
        finish: impl FnOnce(&mut Collector<'_>) -> Result<Head<T>, FieldsError>,
    ) -> Result<Section<Head<T>>, Error> {
        self.check_answers()?;
        let state = self.decoder.state();
        let place = T::repeats(self).place(section, state);
        if let Some((head, required)) = T::repeats(self).get(place) {
            self.decoder.repeat(stream, required);
            self.blocked.remove(stream);
            self.instructions.on_section();
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
            T::repeats(self).on_decoded(place, &seen, head);
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
        let progress = self
            .decoder
            .decode(stream, section, |line| collector.line(&line))?;
        Ok(match progress {
            Progress::Decoded => {
                let message = finish(&mut collector);
                self.decoded_size = collector.size_without_secrets();
                self.blocked.remove(stream);
                self.instructions.on_section();
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
