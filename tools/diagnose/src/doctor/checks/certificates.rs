//! Checks a certificate file of a server.

use std::path::Path;
use std::time::{Duration, SystemTime};

use courser_measure::certificate::{Certificate, length_in_order};
use courser_measure::tls;
use courser_units::date;

use crate::FITS_FIRST_FLIGHT;
use crate::doctor::report::counted;
use crate::finding::Finding;

/// Checks the chain in a PEM file: its dates, names, order and size.
pub(crate) fn check(path: &Path, now: SystemTime) -> Vec<Finding> {
    let place = path.display().to_string();
    let chain = match tls::certificates(path) {
        Ok(chain) => chain,
        Err(failure) => {
            let why = "a server cannot start without its certificate";
            return vec![Finding::bad(&place, failure.to_string(), why)];
        }
    };
    let read: Option<Vec<_>> = chain.iter().map(Certificate::parse).collect();
    let Some(read) = read else {
        let why = "clients refuse a chain with a certificate that they cannot read";
        return vec![Finding::bad(&place, "damaged", why).fix(format!(
            "openssl x509 -in {place} -noout -text   # shows where"
        ))];
    };
    let short = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut found = vec![names(&short, &read[0])];
    found.extend(
        read.iter()
            .enumerate()
            .map(|(index, it)| validity(&short, index, it, now)),
    );
    found.push(order(&short, &read));
    found.push(size(&short, &read));
    found
}

fn names(file: &str, leaf: &Certificate) -> Finding {
    let check = format!("{file} names");
    if leaf.names.is_empty() {
        let why = "clients compare the name of the server with the subject alternative names only";
        return Finding::bad(&check, "no subject alternative names", why)
            .fix("request a certificate with a name (openssl req -addext subjectAltName=DNS:example.org)");
    }
    let first: Vec<_> = leaf.names.iter().take(4).map(String::as_str).collect();
    let mut saw = first.join(", ");
    if let Some(more @ 1..) = leaf.names.len().checked_sub(first.len()) {
        saw = format!("{saw} and {more} more");
    }
    Finding::good(&check, format!("{saw} ({} key)", leaf.key))
}

fn validity(file: &str, index: usize, certificate: &Certificate, now: SystemTime) -> Finding {
    let check = match index {
        0 => format!("{file} dates"),
        _ => format!("{file} dates of certificate {}", index + 1),
    };
    let (from, until) = (date(certificate.not_before), date(certificate.not_after));
    let renew =
        "certbot renew   # or the command of your certificate authority, or courser serve --acme";
    let Ok(left) = certificate.not_after.duration_since(now) else {
        let why = "clients refuse it";
        return Finding::bad(&check, format!("expired on {until}"), why).fix(renew);
    };
    if certificate.not_before > now {
        let why = "clients refuse it until then, unless the clock of this machine is wrong";
        return Finding::bad(&check, format!("not valid before {from}"), why)
            .fix("date -u   # compare");
    }
    let days = left.as_secs() / DAY.as_secs();
    let saw = format!(
        "valid until {until} ({} left)",
        counted(usize::try_from(days).unwrap_or(usize::MAX), "day")
    );
    let life = certificate
        .not_after
        .duration_since(certificate.not_before)
        .unwrap_or_default();
    let why = "clients refuse it after that date; automatic renewal would have happened by now";
    // Certificates are usually renewed when a third of their lifetime is left. The limit is 21 days.
    if left < (life / 3).min(21 * DAY) {
        return Finding::weak(&check, saw, why).fix(renew);
    }
    Finding::good(&check, saw)
}

/// Checks the order of the chain, because servers send it as it is in the file (RFC 8446 §4.4.2).
fn order(file: &str, chain: &[Certificate]) -> Finding {
    let check = format!("{file} chain");
    let name = |it: &Certificate| {
        it.common_name
            .clone()
            .unwrap_or_else(|| it.names.first().cloned().unwrap_or_default())
    };
    let path: Vec<_> = chain.iter().map(name).collect();
    let saw = path.join(" <- ");
    let in_order = length_in_order(chain);
    if in_order < chain.len() {
        let why = "the next certificate must be that of the issuer (RFC 8446 §4.4.2); otherwise many clients cannot build a path to a root";
        let issuer = chain[in_order - 1].issuer_name.clone().unwrap_or_default();
        return Finding::bad(
            &check,
            format!(
                "certificate {in_order} was issued by '{issuer}', and another one follows: {saw}"
            ),
            why,
        )
        .fix("cat server.pem intermediate.pem > chain.pem");
    }
    match chain {
        [leaf] if !leaf.is_self_signed() => {
            let issuer = leaf.issuer_name.clone().unwrap_or_default();
            let why = "clients that do not know the issuer cannot build a path to a root, unless the issuer is a root itself";
            Finding::weak(
                &check,
                format!("{saw} alone, without its issuer '{issuer}'"),
                why,
            )
            .fix("cat server.pem intermediate.pem > chain.pem")
        }
        [leaf] => {
            let why = "only clients that are configured to trust this certificate accept it";
            Finding::fact(&check, format!("{}, self-signed", name(leaf))).because(why)
        }
        [.., last] if last.is_self_signed() => {
            let why = "clients have the root already; its bytes delay the handshake";
            Finding::fact(&check, format!("{saw}, with the root"))
                .because(why)
                .fix("remove the last certificate of the file")
        }
        _ => Finding::good(&check, saw),
    }
}

/// Checks the size of the chain against the anti-amplification limit (RFC 9000 §8.1).
fn size(file: &str, chain: &[Certificate]) -> Finding {
    let check = format!("{file} size");
    let bytes: usize = chain.iter().map(|it| it.bytes).sum();
    let saw = format!("{bytes} bytes in {}", counted(chain.len(), "certificate"));
    if bytes <= FITS_FIRST_FLIGHT {
        return Finding::good(&check, format!("{saw}, fits the first flight"));
    }
    let why = "the first flight of a server is limited to three times the client's first datagram (RFC 9000 §8.1): \
               a longer chain costs clients without certificate compression a round trip";
    Finding::fact(&check, saw)
        .because(why)
        .fix("use an ECDSA key, and leave the root and cross-signed certificates out")
}

const DAY: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests;
