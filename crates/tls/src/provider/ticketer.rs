//! Session tickets that the server does not store. RFC 5077 §4, RFC 8446 §4.6.1.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use rustls::Error;
use rustls::crypto::GetRandomFailed;
use rustls::server::ProducesTickets;
use rustls::ticketer::TicketRotator;
use zeroize::Zeroizing;

/// Returns a producer of session tickets for a server. Tickets are valid for 12 hours, and their keys are replaced
/// every 6 hours.
///
/// A ticket is a name of its key, a random nonce and the session, sealed with AES-256-GCM.
///
/// # Errors
/// Returns an error if the system has no random numbers.
pub fn ticketer() -> Result<Arc<dyn ProducesTickets>, Error> {
    let rotator = TicketRotator::new(KEY_LIFETIME, || Ok(Box::new(TicketKey::new()?)))?;
    Ok(Arc::new(rotator))
}

/// A key of tickets. A server with less than 2^32 tickets in 6 hours repeats a random nonce with a probability below
/// 2^-32.
struct TicketKey {
    key: RandomizedNonceKey,
    name: [u8; NAME_LEN],
    /// The length of the longest ticket, because longer ones are not ours and need not be opened.
    longest: AtomicUsize,
}

impl TicketKey {
    fn new() -> Result<Self, GetRandomFailed> {
        let random = SystemRandom::new();
        let mut key = Zeroizing::new([0; 32]);
        let mut name = [0; NAME_LEN];
        random.fill(&mut *key).map_err(|_| GetRandomFailed)?;
        random.fill(&mut name).map_err(|_| GetRandomFailed)?;
        Ok(Self {
            key: RandomizedNonceKey::new(&AES_256_GCM, &*key).map_err(|_| GetRandomFailed)?,
            name,
            longest: AtomicUsize::new(0),
        })
    }
}

impl ProducesTickets for TicketKey {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // A key opens tickets for as long again as it seals them.
        2 * KEY_LIFETIME
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = session.to_vec();
        let name = Aad::from(&self.name);
        let nonce = self.key.seal_in_place_append_tag(name, &mut sealed).ok()?;
        let ticket = [&self.name[..], nonce.as_ref(), &sealed].concat();
        self.longest.fetch_max(ticket.len(), Ordering::Relaxed);
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > self.longest.load(Ordering::Relaxed) {
            return None;
        }
        let sealed = ticket.strip_prefix(&self.name)?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut session = sealed.to_vec();
        let opened =
            self.key
                .open_in_place(Nonce::from(nonce), Aad::from(&self.name), &mut session);
        let len = opened.ok()?.len();
        session.truncate(len);
        Some(session)
    }
}

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKey(..)")
    }
}

/// The time in seconds for which a key seals tickets.
const KEY_LIFETIME: u32 = 6 * 60 * 60;
/// The length of the name of a key in bytes, as RFC 5077 §4 recommends.
const NAME_LEN: usize = 16;

#[cfg(test)]
mod tests;
