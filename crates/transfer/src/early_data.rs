//! Connections before the transfers, whose TLS sessions permit early data (0-RTT).

use std::collections::HashSet;

use courser::Client;
use http::Uri;

/// Connects once to the server of each URL, so that the first request to it can be sent in early data.
/// Returns a note for each server. Failures are notes too, because the transfers repeat them.
pub async fn prepare_early_data(client: &Client, uris: impl Iterator<Item = Uri>) -> Vec<String> {
    let (mut servers, mut notes) = (HashSet::new(), Vec::new());
    for uri in uris {
        let Some(server) = uri.authority().cloned() else {
            continue;
        };
        if servers.insert(server.clone()) {
            notes.push(match client.prepare_early_data(&uri).await {
                Ok(true) => format!("Connected to {server} once, to get a TLS session"),
                Ok(false) => format!("No early data to {server}: its settings have not arrived"),
                Err(error) => format!("No early data to {server}: {error}"),
            });
        }
    }
    notes
}
