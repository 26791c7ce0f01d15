//! Driving TLS: bytes in and out, keys, transport parameters. RFC 9001 §4.

use std::time::Duration;

use courser_base::Time;
use courser_crypto::KeyChange;
use courser_wire::TransportErrorCode;
use courser_wire::transport_parameters::TransportParameters;

use super::Handshake;
use super::early_data::{EarlyData, EarlyKeys, remember};
use super::ids::parameter_error;
use super::step::{Step, Turn, tls_error, unexpected_message};
use crate::error::TransportError;
use crate::space::SpaceId;

impl Handshake {
    /// Lets TLS read and write until other parts of the connection have to react: then returns the step.
    /// Returns `None` when TLS can do no more at present. While TLS is in a task, bytes that arrive wait
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
                Turn::Complete => self.check_completion()?,
            };
            if step.is_some() {
                return Ok(step);
            }
        }
    }

    /// Passes the next bytes to TLS. Returns false if there are none, or if a task reads them.
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
                self.tls.begin_task(id.level(), bytes);
                return Ok(false);
            }
            tls.read(id.level(), &bytes).map_err(tls_error)?;
            self.turn = Turn::Write;
            return Ok(true);
        }
        Ok(false)
    }

    /// Queues the bytes that TLS writes. Returns the peer's parameters before the keys that TLS derived at the
    /// same time.
    fn write(&mut self) -> Result<Option<Step>, TransportError> {
        if let Some(step) = self.early_step() {
            return Ok(Some(step));
        }
        if let Some(change) = self.keys.take() {
            return Ok(Some(Step::Keys(*change)));
        }
        let Some(tls) = self.tls.here_mut() else {
            self.turn = Turn::Settle;
            return Ok(None);
        };
        let mut out = Vec::new();
        self.keys = tls.write(&mut out).map(Box::new);
        self.crypto.write(self.writing, &out);
        let is_hello = self.side().is_client() && self.writing == SpaceId::Initial;
        let is_refused = is_hello && !out.is_empty() && self.early.on_client_hello();
        if self.keys.is_none() && out.is_empty() {
            self.turn = Turn::Settle;
        }
        if let Some(parameters) = self.new_parameters()? {
            return Ok(Some(Step::Parameters(parameters)));
        }
        if is_refused {
            return Ok(Some(Step::EarlyDataStopped));
        }
        if let Some(step) = self.early_step() {
            return Ok(Some(step));
        }
        Ok(self.keys.take().map(|keys| Step::Keys(*keys)))
    }

    /// Asks TLS once for the secret of 0-RTT packets. A client has it from the start, a server when it
    /// has read the ClientHello and derived the keys of the next level.
    fn early_step(&mut self) -> Option<Step> {
        let is_server = self.side().is_server();
        let is_time = !is_server || matches!(self.keys.as_deref(), Some(KeyChange::Handshake(_)));
        if self.early.was_asked() || !is_time {
            return None;
        }
        let Some(secret) = self.tls.here_mut()?.take_early_secret() else {
            self.early.on_none();
            return None;
        };
        if is_server {
            self.early.on_accepted();
            return Some(Step::EarlyKeys(EarlyKeys {
                secret,
                remembered: None,
            }));
        }
        let bytes = self.tls.here()?.remembered_parameters();
        let Some(remembered) = bytes.and_then(remember) else {
            self.early.on_none();
            return None;
        };
        self.early.on_offered(remembered.clone());
        Some(Step::EarlyKeys(EarlyKeys {
            secret,
            remembered: Some(remembered),
        }))
    }

    /// Settles the early data of a clientwhen the server's parameters have arrived, before other
    /// parts apply them. Returns the new state if early data was offered.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when the server accepts early data and lowers a limit (RFC 9000 §7.4.1).
    pub(crate) fn settle_early_data(
        &mut self,
        parameters: &TransportParameters,
    ) -> Result<Option<EarlyData>, TransportError> {
        let is_accepted = self
            .tls
            .here()
            .is_some_and(|tls| tls.is_early_data_accepted());
        self.early.settle(is_accepted, parameters)
    }

    /// Decodes the peer's parameters as soon as TLS has read them.
    fn new_parameters(&self) -> Result<Option<Box<TransportParameters>>, TransportError> {
        if self.is_complete || self.peer_parameters.is_some() {
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

    /// Checks the peer's parameters against the connection IDs and the versions of its packets
    /// (RFC 9000 §7.3, RFC 9368 §4). Returns true on a server that switches to another version.
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR for an ID that differs, VERSION_NEGOTIATION_ERROR for a version.
    pub(crate) fn check_parameters(
        &mut self,
        parameters: &TransportParameters,
    ) -> Result<bool, TransportError> {
        let has_moved = self.version.on_parameters(parameters)?;
        self.ids.check(parameters)?;
        let version = self.version.current().value();
        if let Some(tls) = self.tls.here_mut() {
            tls.on_version(version);
        }
        Ok(has_moved)
    }

    /// Stores the peer's parameters, which all parts have accepted.
    pub(crate) fn keep_parameters(&mut self, parameters: Box<TransportParameters>) {
        self.peer_parameters = Some(parameters);
    }

    /// Processes the installation of Handshake keys: TLS continues at their level.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when Initial data is left over.
    pub(crate) fn on_handshake_keys(&mut self) -> Result<(), TransportError> {
        self.writing = SpaceId::Handshake;
        self.read_next_level(SpaceId::Handshake)
    }

    /// Processes the installation of 1-RTT secrets: TLS writes at their level.
    pub(crate) fn on_one_rtt_keys(&mut self) {
        self.writing = SpaceId::Application;
    }

    /// Changes the level that TLS reads, and checks that no byte of the previous one is unread (RFC 9001 §4.1.3).
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

    fn check_completion(&mut self) -> Result<Option<Step>, TransportError> {
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

    /// Completes the handshake, and returns its duration. `next_number` is the number of the next 1-RTT
    /// packet.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION when data of the Handshake level is left over.
    pub(crate) fn complete(
        &mut self,
        now: Time,
        next_number: u64,
    ) -> Result<Duration, TransportError> {
        self.first_one_rtt = next_number;
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
