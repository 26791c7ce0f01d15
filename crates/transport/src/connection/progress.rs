//! The progress of the handshake: its steps, and the parts that follow them. RFC 9001 §4.

use courser_base::{FourTuple, Time};
use courser_crypto::KeyChange;
use courser_wire::packet::PacketKind;
use courser_wire::transport_parameters::TransportParameters;

use super::Connection;
use super::event::Event;
use super::owners::Owners;
use super::spaces::{discard_space, open_space};
use super::state::State;
use super::versions::move_version;
use crate::error::TransportError;
use crate::handshake::{EarlyData, EarlyKeys, Step};
use crate::protection::PacketProtection;
use crate::recovery::LossRecovery;
use crate::space::SpaceId;

impl Connection {
    /// Drives TLS with what has arrived, and has the parts follow.
    ///
    /// # Errors
    ///
    /// The error that ends the handshake.
    pub(super) fn drive_handshake(&mut self, now: Time) -> Result<(), TransportError> {
        while let Some(step) = self.handshake.next_step()? {
            match step {
                Step::EarlyKeys(keys) => {
                    let (_, protection, mut owners) = self.split();
                    install_early_keys(now, keys, protection, &mut owners);
                }
                Step::EarlyDataStopped => {
                    let (_, protection, mut owners) = self.split();
                    discard_early_keys(now, protection, &mut owners);
                }
                Step::Parameters(parameters) => {
                    if self.handshake.settle_early_data(&parameters)? == Some(EarlyData::Rejected) {
                        let (recovery, protection, mut owners) = self.split();
                        discard_early_keys(now, protection, &mut owners);
                        recovery.forget_early_data(&mut owners);
                        owners.streams.on_early_data_rejected();
                        owners.datagrams.on_early_data_rejected();
                        self.events.push_back(Event::EarlyDataRejected);
                    }
                    let idle_timeout = parameters.max_idle_timeout;
                    let (recovery, protection, mut owners) = self.split();
                    take_parameters(now, parameters, recovery, protection, &mut owners)?;
                    self.idle.on_peer_timeout(idle_timeout);
                }
                Step::Keys(change) => {
                    let (recovery, protection, mut owners) = self.split();
                    install_keys(now, change, recovery, protection, &mut owners)?;
                }
                Step::DataReady => self.events.push_back(Event::HandshakeDataReady),
                Step::Complete => {
                    let (recovery, _, owners) = self.split();
                    let data = owners.handshake.data();
                    let protocol = data.and_then(|data| data.protocol.as_deref());
                    owners.trace.protocol(now, protocol);
                    let next_number = recovery.first_unused_number();
                    let time = owners.handshake.complete(now, next_number)?;
                    owners.streams.on_early_data_end();
                    recovery.on_handshake_complete();
                    let unproven = recovery.is_size_unproven();
                    let unproven = unproven.then(|| owners.paths.active().way());
                    self.counters.handshake_time = Some(time);
                    self.enter(now, State::Complete);
                    self.events.push_back(Event::Connected);
                    if let Some((FourTuple { peer, .. }, socket)) = unproven {
                        let wanted = Event::InterfaceMtuWanted { peer, socket };
                        self.events.push_back(wanted);
                    }
                    if self.handshake.side().is_server() {
                        // The server's handshake is confirmed when it is complete
                        // (RFC 9001 §4.1.2).
                        self.confirm(now);
                    }
                }
            }
        }
        Ok(())
    }

    /// Both ends have completed: only 1-RTT keys are needed from now on (RFC 9001 §4.9.2).
    pub(super) fn confirm(&mut self, now: Time) {
        if !self.life.is_complete() {
            return;
        }
        self.enter(now, State::Confirmed);
        let (recovery, protection, mut owners) = self.split();
        recovery.on_handshake_confirmed();
        for id in [SpaceId::Initial, SpaceId::Handshake] {
            discard_space(now, id, recovery, protection, &mut owners);
        }
        owners.handshake.on_confirmed();
        self.events.push_back(Event::Confirmed);
        self.migrations().follow_preferred(now);
    }
}

/// Hands the peer's parameters to the parts, once they are compared with what was seen on the wire
/// (RFC 9000 §7.3).
fn take_parameters(
    now: Time,
    parameters: Box<TransportParameters>,
    recovery: &mut LossRecovery,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) -> Result<(), TransportError> {
    owners.trace.parameters(now, true, &parameters);
    let original = owners.handshake.version().current();
    if owners.handshake.check_parameters(&parameters)? {
        move_version(now, original, protection, owners);
    }
    owners.bits.on_peer_parameter(parameters.grease_quic_bit);
    owners.streams.on_peer_parameters(&parameters);
    owners
        .datagrams
        .on_peer_parameter(parameters.max_datagram_frame_size);
    recovery.on_peer_parameters(now, &parameters);
    owners.ids.on_peer_parameters(&parameters)?;
    owners.handshake.keep_parameters(parameters);
    Ok(())
}

fn install_early_keys(
    now: Time,
    keys: EarlyKeys,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) {
    owners.trace.early_keys(now, true);
    let version = owners.handshake.version().of_kind(PacketKind::ZeroRtt);
    let secret = keys.secret.of_version(version.value());
    protection.install_zero_rtt(&secret);
    owners.streams.on_early_data_begin();
    if let Some(remembered) = &keys.remembered {
        owners.streams.on_peer_parameters(remembered);
        owners
            .datagrams
            .on_peer_parameter(remembered.max_datagram_frame_size);
    }
}

/// Discards the keys of 0-RTT packets (RFC 9001 §4.9.3).
pub(super) fn discard_early_keys(
    now: Time,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) {
    if protection.discard_zero_rtt() {
        owners.trace.early_keys(now, false);
    }
}

fn install_keys(
    now: Time,
    change: KeyChange,
    recovery: &mut LossRecovery,
    protection: &mut PacketProtection,
    owners: &mut Owners<'_>,
) -> Result<(), TransportError> {
    owners.trace.keys(now, &change);
    let version = owners.handshake.version().current().value();
    match change {
        KeyChange::Handshake(secrets) => {
            let keys = secrets.of_version(version).key_pair();
            open_space(SpaceId::Handshake, keys, recovery, protection, owners);
            owners.handshake.on_handshake_keys()
        }
        KeyChange::OneRtt(secrets) => {
            if owners.handshake.side().is_client() {
                discard_early_keys(now, protection, owners);
            }
            protection.install_one_rtt(secrets.of_version(version));
            owners.handshake.on_one_rtt_keys();
            Ok(())
        }
    }
}
