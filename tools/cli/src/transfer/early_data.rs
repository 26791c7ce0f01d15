//! Connections before the transfers, whose TLS sessions permit early data (0-RTT).

use std::collections::HashSet;

use courser::Client;
use courser::client::Prepared;
use http::Uri;
use http::uri::Authority;

/// Connects once to the server of each URL, so that the first request to it can be sent in early data.
/// Returns a note for each server. Failures are notes too, because the transfers repeat them.
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
            "the connection before was not HTTP/3 (--http3 tries it without an announcement)"
        }
        Prepared::NoSettings => "its settings have not arrived",
        _ => "it cannot be prepared",
    };
    format!("No early data to {server}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_text() {
        let server = Authority::from_static("a.test");
        let reasons = [
            (Prepared::Ready, "Connected to a.test once"),
            (Prepared::Off, "does not use HTTP/3"),
            (Prepared::NotHttp3, "--http3"),
            (Prepared::NoSettings, "settings have not arrived"),
        ];
        for (prepared, part) in reasons {
            let text = describe(prepared, &server);
            assert!(text.contains(part) && text.contains("a.test"), "{text}");
        }
    }
}
