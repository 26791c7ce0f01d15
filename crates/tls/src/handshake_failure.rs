//! Kinds of failed handshakes, and the offer of the client that they depend on.

mod kind;
mod offer;

pub use self::kind::{
    HandshakeFailureKind, alert_in_text, is_about_certificates, kind_of_alert, kind_of_own_alert,
    kind_of_tls,
};
pub use self::offer::HandshakeOffer;
