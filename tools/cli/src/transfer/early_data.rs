//! Connects to servers before the transfers, for TLS sessions that permit early data (0-RTT).

use std::collections::HashSet;

use courser::Client;
use courser::client::Prepared;
use http::Uri;
use http::uri::Authority;

/// Connects once to the server of each URL, so that the first request to it can be sent in early data.
/// Returns a note for each server. Failures are only notes because the transfers will report them.
pub(crate) async fn prepare_early_data(
    client: &Client,
    uris: impl Iterator<Item = Uri>,
) -> Vec<String> {
    let (mut servers, mut notes) = (HashSet::new(), Vec::new());
    for uri in uris {
        let Some(server) = uri.authority().cloned() else {
            continue;
        };
        if servers.insert(server.clone()) {
            notes.push(match client.prepare_early_data(&uri).await {
                Ok(prepared) => describe(prepared, &server),
                Err(error) => format!("No early data to {server}: {error}"),
            });
        }
    }
    notes
}

fn describe(prepared: Prepared, server: &Authority) -> String {
    let reason = match prepared {
        Prepared::Ready => return format!("Connected to {server} once, to get a TLS session"),
        Prepared::Off => "this client does not use HTTP/3",
        Prepared::NotHttp3 => {
            "the first connection was not HTTP/3 (--http3 tries it without an announcement)"
        }
        Prepared::NoSettings => "the server's SETTINGS have not arrived",
        _ => "it is not available",
    };
    format!("No early data to {server}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_described() {
        let server = Authority::from_static("a.test");
        let reasons = [
            (Prepared::Ready, "Connected to a.test once"),
            (Prepared::Off, "does not use HTTP/3"),
            (Prepared::NotHttp3, "--http3"),
            (Prepared::NoSettings, "SETTINGS have not arrived"),
        ];
        for (prepared, part) in reasons {
            let text = describe(prepared, &server);
            assert!(text.contains(part) && text.contains("a.test"), "{text}");
        }
    }
}
