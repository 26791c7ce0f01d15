//! The progress of the handshake: its steps, and the parts that follow them. RFC 9001 §4.

use courser_base::Time;
use courser_crypto::KeyChange;
use courser_wire::packet::PacketKind;
use courser_wire::transport_parameters::TransportParameters;

use super::Connection;
use super::event::Event;
use super::state::State;
use crate::error::TransportError;
use crate::handshake::{EarlyData, EarlyKeys, Step};
use crate::observed::Observed;
use crate::space::SpaceId;

impl Connection {
    /// Passes the received CRYPTO data to TLS, and applies the results to the parts.
    ///
    /// # Errors
    ///
    /// The error that ends the handshake.
    pub(super) fn drive_handshake(&mut self, now: Time) -> Result<(), TransportError> {
        while let Some(step) = self.parts.handshake.next_step()? {
            match step {
                Step::EarlyKeys(keys) => {
                    self.install_early_keys(now, keys);
                }
                Step::EarlyDataStopped => {
                    self.discard_early_keys(now);
                }
                Step::Parameters(parameters) => self.on_peer_parameters(now, parameters)?,
                Step::Keys(change) => {
                    self.install_keys(now, change)?;
                }
                Step::DataReady => self.events.push_back(Event::HandshakeDataReady),
                Step::Complete => self.on_handshake_complete(now)?,
            }
        }
        Ok(())
    }

    /// Processes the peer's parameters, which also decide whether early data was accepted.
    fn on_peer_parameters(
        &mut self,
        now: Time,
        parameters: Box<TransportParameters>,
    ) -> Result<(), TransportError> {
        let early_data = self.parts.handshake.settle_early_data(&parameters)?;
        if early_data == Some(EarlyData::Rejected) {
            self.discard_early_keys(now);
            self.packets.recovery.forget_early_data(&mut self.parts);
            self.parts.streams.on_early_data_rejected();
            self.parts.datagrams.on_early_data_rejected();
            self.events.push_back(Event::EarlyDataRejected);
        }
        let idle_timeout = parameters.max_idle_timeout;
        self.take_parameters(now, parameters)?;
        self.watchdog.on_peer_timeout(idle_timeout);
        Ok(())
    }

    /// Completes the handshake, which confirms it for a server (RFC 9001 §4.1.2).
    fn on_handshake_complete(&mut self, now: Time) -> Result<(), TransportError> {
        let data = self.parts.handshake.data();
        let protocol = data.and_then(|data| data.protocol.as_deref());
        self.parts.trace.protocol(now, protocol);
        let next_number = self.packets.recovery.first_unused_number();
        let time = self.parts.handshake.complete(now, next_number)?;
        self.parts.streams.on_early_data_end();
        self.packets.recovery.on_handshake_complete();
        self.counters.handshake_time = Some(time);
        self.enter(now, State::Complete);
        self.begin_multipath()?;
        self.begin_candidates();
        self.events.push_back(Event::Connected);
        if self.packets.recovery.is_size_unconfirmed() {
            self.want_interface_mtu();
        }
        if self.parts.handshake.side().is_server() {
            self.confirm(now);
        }
        Ok(())
    }

    /// Confirms the handshake. Only 1-RTT keys are needed from now on (RFC 9001 §4.9.2).
    pub(super) fn confirm(&mut self, now: Time) {
        if !self.life.is_complete() {
            return;
        }
        self.enter(now, State::Confirmed);
        let uses_datagrams = self.parts.datagrams.are_used();
        self.packets
            .recovery
            .on_handshake_confirmed(now, uses_datagrams);
        for id in [SpaceId::Initial, SpaceId::Handshake] {
            self.discard_space(now, id);
        }
        self.parts.handshake.on_confirmed();
        self.events.push_back(Event::Confirmed);
        self.follow_preferred(now);
    }

    /// Passes the peer's parameters to the parts, after comparing them with the headers on the wire
    /// (RFC 9000 §7.3).
    fn take_parameters(
        &mut self,
        now: Time,
        parameters: Box<TransportParameters>,
    ) -> Result<(), TransportError> {
        self.parts.trace.parameters(now, true, &parameters);
        let original = self.parts.handshake.version().current();
        if self.parts.handshake.check_parameters(&parameters)? {
            self.move_version(now, original);
        }
        let parts = &mut self.parts;
        parts.bits.on_peer_parameter(parameters.grease_quic_bit);
        parts.streams.on_peer_parameters(&parameters);
        parts
            .datagrams
            .on_peer_parameter(parameters.max_datagram_frame_size);
        self.packets.recovery.on_peer_parameters(now, &parameters);
        parts.ids.on_peer_parameters(&parameters)?;
        let own = self.packets.recovery.config().address_observations;
        parts.observed = Observed::agree(own.to_parameter(), parameters.address_discovery);
        parts.handshake.keep_parameters(parameters);
        Ok(())
    }

    fn install_early_keys(&mut self, now: Time, keys: EarlyKeys) {
        let parts = &mut self.parts;
        parts.trace.early_keys(now, true);
        let version = parts.handshake.version().of_kind(PacketKind::ZeroRtt);
        let secret = keys.secret.of_version(version.value());
        self.packets.protection.install_zero_rtt(&secret);
        parts.streams.on_early_data_begin();
        if let Some(remembered) = &keys.remembered {
            parts.streams.on_peer_parameters(remembered);
            parts
                .datagrams
                .on_peer_parameter(remembered.max_datagram_frame_size);
        }
    }

    /// Discards the keys of 0-RTT packets (RFC 9001 §4.9.3).
    pub(super) fn discard_early_keys(&mut self, now: Time) {
        if self.packets.protection.discard_zero_rtt() {
            self.parts.trace.early_keys(now, false);
        }
    }

    fn install_keys(&mut self, now: Time, change: KeyChange) -> Result<(), TransportError> {
        self.parts.trace.keys(now, &change);
        let version = self.parts.handshake.version().current().value();
        match change {
            KeyChange::Handshake(secrets) => {
                let keys = secrets.of_version(version).key_pair();
                self.open_space(SpaceId::Handshake, keys);
                self.parts.handshake.on_handshake_keys()
            }
            KeyChange::OneRtt(secrets) => {
                if self.parts.handshake.side().is_client() {
                    self.discard_early_keys(now);
                }
                let secrets = secrets.of_version(version);
                self.packets.protection.install_one_rtt(secrets);
                self.parts.handshake.on_one_rtt_keys();
                Ok(())
            }
        }
    }
}
