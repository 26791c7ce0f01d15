//! Driving TLS: bytes in and out, keys, transport parameters. RFC 9001 §4.

use std::time::Duration;

use courser_base::Time;
use courser_wire::TransportErrorCode;
use courser_wire::transport_parameters::TransportParameters;

use super::Handshake;
use super::ids::parameter_error;
use super::step::{Step, Turn, tls_error, unexpected_message};
use crate::error::TransportError;
use crate::space::SpaceId;

impl Handshake {
    /// Has TLS read what has arrived and write what it has to send, until other parts have to
    /// follow. `None` when all is done for now. While TLS is in a task, what has arrived waits
    /// (limit K01).
    ///
    /// # Errors
    ///
    /// The error that ends the handshake.
    pub(crate) fn next_step(&mut self) -> Result<Option<Step>, TransportError> {
        loop {
            let step = match self.turn {
                Turn::Read => match self.read()? {
                    true => None,
                    false => return Ok(None),
                },
                Turn::Write => self.write()?,
                Turn::Settle => self.settle(),
                Turn::Complete => self.look_for_end()?,
            };
            if step.is_some() {
                return Ok(step);
            }
        }
    }

    /// Has TLS read the next bytes. False when there are none, or a task reads them.
    fn read(&mut self) -> Result<bool, TransportError> {
        if self.tls.is_in_task() {
            return Ok(false);
        }
        for id in SpaceId::ALL {
            let Some(bytes) = self.crypto.read(id) else {
                continue;
            };
            let Some(tls) = self.tls.here_mut() else {
                return Err(unexpected_message());
            };
            if self.offloads_tls {
                self.tls.ask(id.level(), bytes);
                return Ok(false);
            }
            tls.read(id.level(), &bytes).map_err(tls_error)?;
            self.turn = Turn::Write;
            return Ok(true);
        }
        Ok(false)
    }

    /// Queues what TLS writes. Parameters of the peer come before the keys made along with them.
    fn write(&mut self) -> Result<Option<Step>, TransportError> {
        if let Some(change) = self.keys.take() {
            return Ok(Some(Step::Keys(change)));
        }
        let Some(tls) = self.tls.here_mut() else {
            self.turn = Turn::Settle;
            return Ok(None);
        };
        let mut out = Vec::new();
        self.keys = tls.write(&mut out);
        self.crypto.write(self.writing, &out);
        if self.keys.is_none() && out.is_empty() {
            self.turn = Turn::Settle;
        }
        if let Some(parameters) = self.new_parameters()? {
            return Ok(Some(Step::Parameters(parameters)));
        }
        Ok(self.keys.take().map(Step::Keys))
    }

    /// Decodes the peer's parameters as soon as TLS has read them.
    fn new_parameters(&self) -> Result<Option<Box<TransportParameters>>, TransportError> {
        if self.peer_parameters.is_some() {
            return Ok(None);
        }
        let tls = self.tls.here();
        let Some(bytes) = tls.and_then(|tls| tls.peer_transport_parameters()) else {
            return Ok(None);
        };
        let parameters = TransportParameters::decode(bytes, self.side().peer())
            .map_err(|error| parameter_error(error.to_string()))?;
        Ok(Some(Box::new(parameters)))
    }

    /// Checks the peer's parameters against the connection IDs of its packets (RFC 9000 §7.3).
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR for an ID that differs.
    pub(crate) fn check_parameters(
        &self,
        parameters: &TransportParameters,
    ) -> Result<(), TransportError> {
        self.ids.check(parameters)
    }

    /// Keeps the peer's parameters, which all parts have accepted.
    pub(crate) fn keep_parameters(&mut self, parameters: Box<TransportParameters>) {
        self.peer_parameters = Some(parameters);
    }

    /// The keys of Handshake packets are installed: TLS goes on at their level.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when Initial data is left over.
    pub(crate) fn on_handshake_keys(&mut self) -> Result<(), TransportError> {
        self.writing = SpaceId::Handshake;
        self.read_next_level(SpaceId::Handshake)
    }

    /// The secrets of 1-RTT packets are installed: TLS writes at their level.
    pub(crate) fn on_one_rtt_keys(&mut self) {
        self.writing = SpaceId::Application;
    }

    /// No byte of a level may be left over when the next one begins (RFC 9001 §4.1.3).
    fn read_next_level(&mut self, next: SpaceId) -> Result<(), TransportError> {
        let reading = std::mem::replace(&mut self.reading, next);
        if self.crypto.has_unread(reading) {
            let reason = "CRYPTO data left over at the old encryption level";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }

    fn settle(&mut self) -> Option<Step> {
        self.turn = Turn::Complete;
        if self.data.is_some() || self.peer_parameters.is_none() {
            return None;
        }
        self.data = Some(self.tls.here()?.handshake_data());
        Some(Step::DataReady)
    }

    fn look_for_end(&mut self) -> Result<Option<Step>, TransportError> {
        self.turn = Turn::Read;
        let Some(tls) = self.tls.here() else {
            return Ok(None);
        };
        let has_keys = self.writing == SpaceId::Application;
        if self.is_complete || tls.is_handshaking() || !has_keys {
            return Ok(None);
        }
        if self.peer_parameters.is_none() {
            // RFC 9001 §8.2: missing_extension.
            let code = TransportErrorCode::crypto(109);
            let reason = "the peer sent no transport parameters";
            return Err(TransportError::new(code, reason));
        }
        self.data = Some(tls.handshake_data());
        Ok(Some(Step::Complete))
    }

    /// Completes the handshake. Returns the time that it has taken.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when data of the Handshake level is left over.
    pub(crate) fn complete(&mut self, now: Time) -> Result<Duration, TransportError> {
        if let Some(tls) = self.tls.here() {
            self.peer_certificates = tls.peer_certificates();
            self.exporter = tls.exporter();
        }
        self.read_next_level(SpaceId::Application)?;
        self.is_complete = true;
        if self.side().is_server() {
            self.conclusion.begin();
        }
        Ok(now - self.started)
    }
}
