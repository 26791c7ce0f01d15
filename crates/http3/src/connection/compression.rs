//! QPACK in both directions, with the state that only field sections use.

use courser_qpack::{Decoder, Encoder, Progress};
use courser_telemetry::{FieldSection, Pending};

use super::blocked::BlockedSections;
use super::config::Config;
use super::section_cache::{Caches, DecodedSection, Head, Message};
use crate::budget::InstructionBudget;
use crate::error::{Code, Error};
use crate::fields::{Collector, FieldLimits, FieldsError, FieldsToSend, Kind, LineCache};
use crate::settings::Settings;

/// The result of decoding a section.
#[derive(Debug)]
pub enum Section<T> {
    /// The section was decoded. It may be a valid message or not.
    Decoded(Result<T, FieldsError>),
    /// The stream is blocked. Decode the section again after [`Event::Unblocked`](super::Event::Unblocked),
    /// before anything else of its stream.
    Blocked,
}

/// The field sections of a connection: encoder and decoder with their streams, blocked sections, and a cache of
/// decoded ones.
///
/// Sections and instructions offset each other here. Requests, settings and the control stream are handled
/// elsewhere.
#[derive(Debug)]
pub(super) struct Compression {
    encoder: Encoder,
    decoder: Decoder,
    /// The limits for sections of the peer.
    limits: FieldLimits,
    blocked: BlockedSections,
    /// Largest number of bytes of blocked sections.
    most_blocked: usize,
    cache: LineCache,
    pub(super) section_cache: Caches,
    /// The size of the section that was decoded last, or `None` if it may not be cached.
    decoded_size: Option<u64>,
    /// Buffer for the encoded section.
    section: Vec<u8>,
    pub(super) budget: InstructionBudget,
    /// True if the decoder stream has more to send than Section Acknowledgments.
    has_prompt_answers: bool,
}

impl Compression {
    pub(super) fn new(config: &Config, seed: u64) -> Self {
        Self {
            encoder: Encoder::new(config.encoder, seed),
            decoder: Decoder::new(config.decoder),
            limits: config.limits,
            blocked: BlockedSections::default(),
            most_blocked: config.blocked_bytes,
            cache: LineCache::default(),
            section_cache: Caches::default(),
            decoded_size: None,
            section: Vec::new(),
            budget: InstructionBudget::new(),
            has_prompt_answers: false,
        }
    }

    /// Sets the limits of the peer's decoder.
    pub(super) fn set_peer_limits(&mut self, settings: &Settings) {
        self.encoder.set_peer_limits(
            settings.qpack_max_table_capacity,
            settings.qpack_blocked_streams,
        );
    }

    /// Processes bytes of the peer's decoder stream.
    pub(super) fn on_decoder_stream(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let before = self.encoder.cancellations();
        self.encoder.on_decoder_stream(chunk)?;
        let count = self.encoder.cancellations() - before;
        self.budget.spend_cancellations(count)
    }

    /// Processes bytes of the peer's encoder stream, which may [unblock](Self::poll_unblocked) streams.
    pub(super) fn on_encoder_stream(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let before = self.decoder.state();
        self.decoder.on_encoder_stream(chunk)?;
        self.has_prompt_answers |= self.decoder.has_answers();
        self.budget.spend_inserts(self.decoder.state() - before)
    }

    /// Returns the next stream that is no longer blocked.
    pub(super) fn poll_unblocked(&mut self) -> Option<u64> {
        self.decoder.poll_unblocked()
    }

    /// Returns the bytes that wait to be sent on the encoder stream.
    pub(super) fn instructions(&mut self) -> &mut Vec<u8> {
        self.encoder.instructions()
    }

    /// Returns the bytes that wait to be sent on the decoder stream, to be sent now.
    pub(super) fn answers(&mut self) -> &mut Vec<u8> {
        self.has_prompt_answers = false;
        self.decoder.answers()
    }

    /// Returns true if bytes wait to be sent on the decoder stream.
    pub(super) fn has_answers(&self) -> bool {
        self.decoder.has_answers()
    }

    /// Returns true if only Section Acknowledgments wait there.
    pub(super) fn may_delay_answers(&self) -> bool {
        !self.has_prompt_answers && self.decoder.has_answers()
    }

    /// Checks that the peer reads the decoder stream.
    pub(super) fn check_answers(&mut self) -> Result<(), Error> {
        if self.decoder.answers().len() > MAX_ANSWERS {
            return Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "the peer does not read decoder instructions",
            ));
        }
        Ok(())
    }

    /// Cancels the sections of a stream that will not be decoded.
    pub(super) fn cancel(&mut self, stream: u64) {
        self.decoder.cancel(stream);
        self.has_prompt_answers |= self.decoder.has_answers();
        self.blocked.remove(stream);
    }

    /// Encodes these fields. `credit` returns the number of bytes that may be added to the encoder stream.
    pub(super) fn encode(
        &mut self,
        stream: u64,
        fields: &FieldsToSend<'_>,
        credit: impl FnOnce() -> usize,
    ) -> &[u8] {
        self.budget.on_section();
        self.section.clear();
        let lines = || fields.lines();
        self.encoder
            .encode_within(stream, lines, credit, &mut self.section);
        &self.section
    }

    /// Decodes a header section, or clones it from the cache if an identical one was decoded recently. A section
    /// that is recorded is always decoded.
    pub(super) fn decode_header_section<T: Message>(
        &mut self,
        stream: u64,
        section: &[u8],
        kind: Kind,
        recorded: &mut Option<FieldSection>,
        finish: impl FnOnce(&mut Collector<'_>) -> Result<Head<T>, FieldsError>,
    ) -> Result<Section<Head<T>>, Error> {
        self.check_answers()?;
        let state = self.decoder.state();
        let entry = T::cache(&mut self.section_cache).find(section, state);
        if recorded.is_none()
            && let Some((head, required)) = T::cache(&mut self.section_cache).get(entry)
        {
            self.decoder.repeat(stream, required);
            self.blocked.remove(stream);
            self.budget.on_section();
            return Ok(Section::Decoded(Ok(head)));
        }
        let decoded = self.decode(stream, section, kind, recorded, finish)?;
        if let Section::Decoded(Ok(head)) = &decoded
            && let Some(size) = self.decoded_size
        {
            let seen = DecodedSection {
                section,
                state,
                required: self.decoder.required(),
                size,
            };
            T::cache(&mut self.section_cache).on_decoded(entry, &seen, head);
        }
        Ok(decoded)
    }

    /// Decodes a section, and appends its field lines to `recorded`.
    pub(super) fn decode<T>(
        &mut self,
        stream: u64,
        section: &[u8],
        kind: Kind,
        recorded: &mut Option<FieldSection>,
        finish: impl FnOnce(&mut Collector<'_>) -> Result<T, FieldsError>,
    ) -> Result<Section<T>, Error> {
        let mut collector = Collector::new(kind, self.limits, &mut self.cache);
        let progress = self.decoder.decode(stream, section, |line| {
            if let Some(recorded) = recorded {
                let (name, value) = (line.name.as_bytes(), line.value.as_bytes());
                recorded.push(name, value, line.is_sensitive);
            }
            collector.line(&line);
        })?;
        match progress {
            Progress::Decoded => {
                let message = finish(&mut collector);
                self.decoded_size = collector.size_without_secrets();
                self.blocked.remove(stream);
                self.budget.on_section();
                Ok(Section::Decoded(message))
            }
            Progress::Blocked if self.blocked.add(stream, section.len(), self.most_blocked) => {
                Ok(Section::Blocked)
            }
            Progress::Blocked => Err(Error::stream(
                Code::EXCESSIVE_LOAD,
                "blocked field sections exceed the limit of bytes",
            )),
        }
    }

    /// Returns the number of bytes of all blocked sections.
    pub(super) const fn blocked_bytes(&self) -> usize {
        self.blocked.bytes()
    }

    /// Returns the number of bytes held in dynamic tables, buffers and caches.
    pub(super) fn memory(&self) -> usize {
        self.encoder.memory() + self.decoder.memory() + self.section_cache.memory()
    }

    pub(super) fn set_recording(&mut self, is_on: bool) {
        self.encoder.records().set_enabled(is_on);
        self.decoder.records().set_enabled(is_on);
    }

    /// Moves the records of encoder and decoder to `pending`.
    pub(super) fn take_records(&mut self, pending: &mut Pending) {
        pending.append(self.encoder.records());
        pending.append(self.decoder.records());
    }
}

/// Largest number of bytes that wait for the decoder stream (RFC 9204 §7.3).
const MAX_ANSWERS: usize = 64 * 1024;
