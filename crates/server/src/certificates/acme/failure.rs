//! The reasons for which no certificate was obtained, in words for an operator.

use std::fmt;

use instant_acme::{Error, Problem};

use super::transfer::TransferError;

/// An attempt that obtained no certificate.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    reason: String,
    /// Advice for the operator.
    remedy: Option<&'static str>,
}

/// The kind of a failure, which determines the time of the next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The ACME server was not reached or has a fault of its own, or this machine could not do its part. Authorities
    /// do not count such failures.
    Uncounted,
    /// The ACME server refused the order or could not validate a name, and may count the failure.
    Refused,
    /// The ACME server does not know the account.
    UnknownAccount,
}

impl Failure {
    pub(super) fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
            remedy: None,
        }
    }

    /// The ACME server refused something, with this explanation (RFC 8555 §6.7). `about` is the name that could
    /// not be validated.
    pub(super) fn of_problem(problem: &Problem, about: Option<&str>) -> Self {
        let name = problem.r#type.as_deref().unwrap_or_default();
        let name = name
            .strip_prefix("urn:ietf:params:acme:error:")
            .unwrap_or(name);
        let mut reason = match about {
            Some(about) => format!("the ACME server could not validate {about}"),
            None => "the ACME server refused".to_owned(),
        };
        if let Some(detail) = &problem.detail {
            reason.push_str(": ");
            reason.push_str(detail.trim_end_matches('.'));
        }
        for part in &problem.subproblems {
            reason.push_str("; ");
            reason.push_str(&part.to_string());
        }
        if !name.is_empty() {
            reason.push_str(" (");
            reason.push_str(name);
            reason.push(')');
        }
        // The text goes to logs and to the status page, and the ACME server chooses its length.
        if let Some((end, _)) = reason.char_indices().nth(MAX_REASON) {
            reason.truncate(end);
            reason.push_str(" ...");
        }
        Self {
            kind: match name {
                "serverInternal" | "badNonce" => Kind::Uncounted,
                "accountDoesNotExist" => Kind::UnknownAccount,
                _ => Kind::Refused,
            },
            reason,
            remedy: remedy(name),
        }
    }

    /// Adds the reason for which a name could not be proven here.
    pub(super) fn local(reason: impl fmt::Display) -> Self {
        Self::new(Kind::Uncounted, reason.to_string())
    }
}

/// The longest explanation of an ACME server that is repeated, in characters (limit K408).
const MAX_REASON: usize = 1000;

/// Returns advice for an operator about a problem with this name (RFC 8555 §6.7).
fn remedy(name: &str) -> Option<&'static str> {
    match name {
        "connection" | "tls" => Some(
            "the ACME server must reach this server under the name: on TCP port 443 for TLS-ALPN-01, on TCP port \
             80 for HTTP-01",
        ),
        "dns" => Some("check the A and AAAA records of the name"),
        "unauthorized" | "incorrectResponse" => Some(
            "check that the A and AAAA records of the name lead to this server, and that no proxy in front of it \
             ends TLS",
        ),
        "caa" => Some("the CAA record of the name must permit this authority"),
        "rateLimited" => Some(
            "wait, and test with a staging server until the name is validated: its limits are higher",
        ),
        "rejectedIdentifier" | "unsupportedIdentifier" => {
            Some("the authority does not issue certificates for this name: remove it")
        }
        "externalAccountRequired" => Some(
            "the authority requires an account of its own: give the ID and the key that it has issued (external \
             account binding)",
        ),
        "userActionRequired" => Some("open the page that the message names, and confirm the terms"),
        "invalidContact" | "unsupportedContact" => Some("correct the contact address"),
        _ => None,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => Self::of_problem(&problem, None),
            Error::Other(other) => match other.downcast::<TransferError>() {
                Ok(error) => Self {
                    remedy: match *error {
                        TransferError::Untrusted(..) => {
                            Some("if the ACME server is your own, trust its root certificate")
                        }
                        _ => None,
                    },
                    ..Self::new(Kind::Uncounted, error.to_string())
                },
                Err(other) => Self::new(Kind::Uncounted, other.to_string()),
            },
            Error::Timeout(_) => Self::new(
                Kind::Uncounted,
                "the ACME server did not complete the order in time",
            ),
            error @ Error::Json(_) => Self::new(
                Kind::Uncounted,
                format!("the answer is not that of an ACME server: {error}"),
            ),
            error => Self::new(Kind::Uncounted, error.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match self.remedy {
            Some(remedy) => write!(f, ": {remedy}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(name: &str, detail: &str) -> Problem {
        Problem {
            r#type: Some(format!("urn:ietf:params:acme:error:{name}")),
            detail: Some(detail.to_owned()),
            status: None,
            subproblems: Vec::new(),
        }
    }

    #[test]
    fn failed_validation_names_the_cause_and_the_remedy() {
        let failure = Failure::of_problem(
            &problem("connection", "192.0.2.1: Connection refused."),
            Some("a.test"),
        );
        assert_eq!(failure.kind, Kind::Refused);
        let text = failure.to_string();
        for part in [
            "could not validate a.test: 192.0.2.1: Connection refused (connection): ",
            "TCP port 443",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn long_explanations_are_cut() {
        let text = |len| Failure::of_problem(&problem("", &"ä".repeat(len)), None).to_string();
        let prefix = "the ACME server refused: ".chars().count();
        assert!(!text(MAX_REASON - prefix - 5).contains("..."));
        let cut = text(1_000_000);
        assert_eq!(cut.chars().count(), MAX_REASON + 4);
        assert!(cut.ends_with(" ..."), "{cut}");
    }

    #[test]
    fn faults_of_the_server_are_not_refusals() {
        for (name, kind) in [
            ("serverInternal", Kind::Uncounted),
            ("badNonce", Kind::Uncounted),
            ("rateLimited", Kind::Refused),
            ("accountDoesNotExist", Kind::UnknownAccount),
        ] {
            assert_eq!(Failure::from(Error::Api(problem(name, "x"))).kind, kind);
        }
        let late = Failure::from(Error::Timeout(None));
        assert_eq!(late.kind, Kind::Uncounted);
    }
}
