//! The key log.

use std::io::Write as _;
use std::ptr::{self, NonNull};

use msquic::Status;
use msquic::ffi::{HQUIC, QUIC_PARAM_CONN_TLS_SECRETS, QUIC_TLS_SECRETS};
use peer_msquic::parameters;
use peers_common::key_log;

/// The secrets of a connection, which msquic fills in during the handshake.
pub(crate) struct Secrets(NonNull<QUIC_TLS_SECRETS>);

// SAFETY: nothing else owns the memory.
unsafe impl Send for Secrets {}

impl Secrets {
    /// Collects the secrets of a connection that has not started.
    pub(crate) fn collect(connection: HQUIC) -> Result<Self, Status> {
        // SAFETY: all fields are integers.
        let secrets: QUIC_TLS_SECRETS = unsafe { std::mem::zeroed() };
        // The memory is never freed, so that msquic may write to it at any time.
        let secrets = NonNull::from(Box::leak(Box::new(secrets)));
        let (value, length) = (
            secrets.as_ptr().cast_const().cast(),
            size_of::<QUIC_TLS_SECRETS>(),
        );
        // SAFETY: the connection is open, and the memory lives as long as the process.
        unsafe { parameters::set_bytes(connection, QUIC_PARAM_CONN_TLS_SECRETS, value, length) }?;
        Ok(Self(secrets))
    }

    /// Appends the secrets to the file in `SSLKEYLOGFILE`. Call it when the handshake is complete.
    pub(crate) fn log(&self) {
        // SAFETY: msquic writes no more secrets after the handshake.
        let secrets = unsafe { ptr::read(self.0.as_ptr()) };
        let random = hex(&secrets.ClientRandom);
        let is_set = secrets.IsSet;
        let length = usize::from(secrets.SecretLength);
        let mut text = String::new();
        for (label, secret, is_set) in [
            (
                "CLIENT_EARLY_TRAFFIC_SECRET",
                secrets.ClientEarlyTrafficSecret,
                is_set.ClientEarlyTrafficSecret(),
            ),
            (
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
                secrets.ClientHandshakeTrafficSecret,
                is_set.ClientHandshakeTrafficSecret(),
            ),
            (
                "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                secrets.ServerHandshakeTrafficSecret,
                is_set.ServerHandshakeTrafficSecret(),
            ),
            (
                "CLIENT_TRAFFIC_SECRET_0",
                secrets.ClientTrafficSecret0,
                is_set.ClientTrafficSecret0(),
            ),
            (
                "SERVER_TRAFFIC_SECRET_0",
                secrets.ServerTrafficSecret0,
                is_set.ServerTrafficSecret0(),
            ),
        ] {
            if is_set != 0 {
                text += &format!("{label} {random} {}\n", hex(&secret[..length]));
            }
        }
        if let Ok(Some(mut file)) = key_log::open() {
            // Runs without a key log fail, and say so.
            let _ = file.write_all(text.as_bytes());
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
