//! Further handshakes: a resumed session, a small first flight, version 2, an unknown protocol.

use std::net::SocketAddr;
use std::time::Duration;

use courser::{
    Connection, ConnectionError, Cryptography, EarlyData, KeyExchange, QuicVersion, Side, h3,
};
use courser_measure::{Failure, target};
use tokio::time::{sleep, timeout};

use crate::probe::connector::{
    Connector, NO_APPLICATION_PROTOCOL, PendingConnection, ProbeConnection, error_code,
};
use crate::probe::facts::{AddressChange, Refusal, ResumedConnection, SmallFirstFlight};
use crate::probe::recording_socket::RecordingSocket;
use crate::probe::requests::{HTTP_09, RequestClient, RequestTemplate};
use crate::probe::steps::first::{is_challenged, millis};

/// Resumes the session of the first connection with a request in early data. Then updates the keys and
/// migrates.
pub(crate) async fn resume(
    connector: &mut Connector,
    config: courser::ClientConfig,
    (protocol, settings): (&str, Option<h3::Settings>),
    template: &RequestTemplate,
    may_migrate: bool,
) -> Result<Option<Result<ResumedConnection, String>>, Failure> {
    let Some(pending) = connector.start(config.early_data(true))? else {
        return Ok(None);
    };
    let PendingConnection {
        connecting,
        endpoint,
        socket,
        records,
        began,
    } = pending;
    let connection = match connecting.early().await {
        Ok(connection) => connection,
        Err(error) => return Ok(Some(Err(error.to_string()))),
    };
    let probe = ProbeConnection {
        connection,
        endpoint,
        socket,
        records,
        began,
    };
    let connection = &probe.connection;
    let mut resumed = ResumedConnection::default();
    let early = early_client(connection, protocol, settings);
    if let Some(client) = &early
        && let Some(Ok(answer)) = client.request(template, None).await
    {
        resumed.early_status = answer.status.map(|status| status.as_u16());
    }
    match timeout(template.limit, connection.authenticated()).await {
        Ok(Ok(state)) => resumed.early_data = early_name(state).to_owned(),
        Ok(Err(error)) => return Ok(Some(Err(error.to_string()))),
        Err(_) => {
            return Ok(Some(Err(
                "the handshake did not complete in time".to_owned()
            )));
        }
    }
    let data = connection.handshake_data().unwrap_or_default();
    resumed.resumed = data.resumed;
    resumed.handshake_ms = millis(
        connection
            .stats()
            .handshake_time
            .unwrap_or_else(|| probe.began.elapsed()),
    );
    resumed.retry = probe.socket.log().retry;
    // HTTP/3 can start only once on a connection, so that none follows rejected early data.
    let client = match early {
        Some(_) if resumed.early_data == "rejected" => return Ok(Some(Ok(resumed))),
        Some(client) => client,
        None => RequestClient::of(connection, protocol),
    };
    if !matches!(client, RequestClient::Other) {
        // The handshake is confirmed after this request, as a key update requires.
        let _ = client.request(template, None).await;
        resumed.key_update = update_keys(&probe, &client, template).await;
        if may_migrate && resumed.key_update != Some(false) {
            resumed.migration = migrate(&probe, &client, template).await;
        }
    }
    probe.close().await;
    Ok(Some(Ok(resumed)))
}

/// Returns a client for requests in early data, if the session permits early data.
fn early_client(
    connection: &Connection,
    protocol: &str,
    settings: Option<h3::Settings>,
) -> Option<RequestClient> {
    match (connection.is_authenticated(), settings) {
        (false, Some(settings)) => {
            let config = h3::Config::new(Side::Client);
            Some(RequestClient::Http3(h3::Client::resume(
                connection.clone(),
                config,
                settings,
            )))
        }
        (false, None) if protocol == HTTP_09 => Some(RequestClient::of(connection, protocol)),
        _ => None,
    }
}

fn early_name(state: EarlyData) -> &'static str {
    match state {
        EarlyData::Accepted => "accepted",
        EarlyData::Rejected => "rejected",
        EarlyData::None | EarlyData::Offered => "none",
    }
}

async fn update_keys(
    probe: &ProbeConnection,
    client: &RequestClient,
    template: &RequestTemplate,
) -> Option<bool> {
    // The handshake must be confirmed, which may take the server a moment.
    let mut attempts = 0;
    while probe.connection.force_key_update().is_err() {
        attempts += 1;
        if attempts == KEY_UPDATE_ATTEMPTS {
            return None;
        }
        sleep(KEY_UPDATE_PAUSE).await;
    }
    let answer = client.request(template, None).await?;
    Some(answer.is_ok())
}

/// Migrates to another port with a fresh connection ID. Returns `None` if the server issued none.
async fn migrate(
    probe: &ProbeConnection,
    client: &RequestClient,
    template: &RequestTemplate,
) -> Option<AddressChange> {
    if probe.records.observed().spare_ids == 0 {
        return None;
    }
    let before = probe.records.observed().challenges;
    let peer = probe.connection.remote_address();
    let local = SocketAddr::from((target::local_ip_for(peer.ip()), 0));
    let socket = RecordingSocket::bind(local).ok()?;
    probe.endpoint.rebind_transport(socket.clone()).ok()?;
    let answer = client.request(template, None).await?;
    Some(AddressChange {
        survived: answer.is_ok() && socket.log().received > 0,
        validated: is_challenged(probe, before).await,
    })
}

/// Connects with a ClientHello that fits into one datagram, by offering only small key exchange groups.
pub(crate) async fn small(
    connector: &mut Connector,
    protocols: &[String],
) -> Result<Option<Result<SmallFirstFlight, String>>, Failure> {
    let groups = [
        KeyExchange::X25519,
        KeyExchange::Secp256r1,
        KeyExchange::Secp384r1,
    ];
    let config = connector
        .config(protocols)?
        .cryptography(Cryptography::default().groups(groups))?;
    let probe = match connector.connect(config).await? {
        None => return Ok(None),
        Some(Err(error)) => return Ok(Some(Err(error.to_string()))),
        Some(Ok(probe)) => probe,
    };
    let log = probe.socket.log();
    let data = probe.connection.handshake_data().unwrap_or_default();
    let time = probe
        .connection
        .stats()
        .handshake_time
        .unwrap_or_else(|| probe.began.elapsed());
    let small = SmallFirstFlight {
        group: data.key_exchange.unwrap_or_default(),
        early_bytes: [log.sent_early, log.received_early],
        exceeds_three_times: log.exceeds_three_times,
        handshake_ms: millis(time),
    };
    probe.close().await;
    Ok(Some(Ok(small)))
}

/// Connects with version 1 and a preference for version 2. Returns the version that the server chose.
pub(crate) async fn version2(
    connector: &mut Connector,
    protocols: &[String],
) -> Result<Option<Result<u32, String>>, Failure> {
    let versions = [QuicVersion::V2, QuicVersion::V1];
    let config = connector
        .config(protocols)?
        .versions(versions)
        .first_version(QuicVersion::V1);
    let probe = match connector.connect(config).await? {
        None => return Ok(None),
        Some(Err(error)) => return Ok(Some(Err(error.to_string()))),
        Some(Ok(probe)) => probe,
    };
    let version = probe.connection.stats().version.value();
    probe.close().await;
    Ok(Some(Ok(version)))
}

/// Offers a protocol that no server supports, which must be refused (RFC 9001 §8.1).
pub(crate) async fn unknown_alpn(connector: &mut Connector) -> Result<Option<Refusal>, Failure> {
    let config = connector.config(&["courser-probe-no-such-protocol".to_owned()])?;
    Ok(match connector.connect(config).await? {
        None => None,
        Some(Ok(probe)) => {
            probe.close().await;
            Some(Refusal::Accepted)
        }
        // The server completed its part without a protocol, which the TLS of this client refuses.
        Some(Err(ConnectionError::TransportError(own)))
            if own.code.alert() == Some(NO_APPLICATION_PROTOCOL) =>
        {
            Some(Refusal::Accepted)
        }
        Some(Err(error)) => Some(match error_code(&error) {
            Some(code) => Refusal::Code(code),
            None => Refusal::Other(error.to_string()),
        }),
    })
}

const KEY_UPDATE_ATTEMPTS: u32 = 20;
const KEY_UPDATE_PAUSE: Duration = Duration::from_millis(25);
