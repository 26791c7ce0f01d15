//! Further handshakes: a resumed session, a small first flight, version 2, an unknown protocol.

use std::net::SocketAddr;
use std::time::Duration;

use courser::{
    Connection, ConnectionError, Cryptography, EarlyData, KeyExchange, QuicVersion, Side, h3,
};
use courser_measure::{Failure, target};
use tokio::time::{sleep, timeout};

use crate::probe::dial::{Dialler, Dialling, Line, NO_APPLICATION_PROTOCOL, error_code};
use crate::probe::facts::{Move, Refusal, Resumed, Small};
use crate::probe::steps::first::{is_challenged, millis};
use crate::probe::talk::{Asker, HTTP_09, Talk};
use crate::probe::tap::Tap;

/// Resumes the session of the first connection, with a request in early data; then updates keys and
/// migrates.
pub(crate) async fn resume(
    dialler: &mut Dialler,
    config: courser::ClientConfig,
    (protocol, settings): (&str, Option<h3::Settings>),
    asker: &Asker,
    may_migrate: bool,
) -> Result<Option<Result<Resumed, String>>, Failure> {
    let Some(dialling) = dialler.start(config.early_data(true))? else {
        return Ok(None);
    };
    let Dialling {
        connecting,
        endpoint,
        tap,
        records,
        begun,
    } = dialling;
    let connection = match connecting.early().await {
        Ok(connection) => connection,
        Err(error) => return Ok(Some(Err(error.to_string()))),
    };
    let line = Line {
        connection,
        endpoint,
        tap,
        records,
        begun,
    };
    let connection = &line.connection;
    let mut resumed = Resumed::default();
    let early = early_talk(connection, protocol, settings);
    if let Some(talk) = &early
        && let Some(Ok(answer)) = talk.ask(asker, None).await
    {
        resumed.early_status = answer.status.map(|status| status.as_u16());
    }
    match timeout(asker.limit, connection.authenticated()).await {
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
            .unwrap_or_else(|| line.begun.elapsed()),
    );
    resumed.retry = line.tap.log().retry;
    // HTTP/3 runs once on a connection; one whose early data was refused carries no more of it.
    let talk = match early {
        Some(_) if resumed.early_data == "rejected" => return Ok(Some(Ok(resumed))),
        Some(talk) => talk,
        None => Talk::of(connection, protocol),
    };
    if !matches!(talk, Talk::Other) {
        // The handshake is confirmed by then, which an update of keys requires.
        let _ = talk.ask(asker, None).await;
        resumed.key_update = update_keys(&line, &talk, asker).await;
        if may_migrate && resumed.key_update != Some(false) {
            resumed.migration = migrate(&line, &talk, asker).await;
        }
    }
    line.close().await;
    Ok(Some(Ok(resumed)))
}

/// Returns the protocol for requests in early data, if the session permits any.
fn early_talk(
    connection: &Connection,
    protocol: &str,
    settings: Option<h3::Settings>,
) -> Option<Talk> {
    match (connection.is_authenticated(), settings) {
        (false, Some(settings)) => {
            let config = h3::Config::new(Side::Client);
            Some(Talk::Http3(h3::Client::resume(
                connection.clone(),
                config,
                settings,
            )))
        }
        (false, None) if protocol == HTTP_09 => Some(Talk::of(connection, protocol)),
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

async fn update_keys(line: &Line, talk: &Talk, asker: &Asker) -> Option<bool> {
    // The handshake must be confirmed, which a server may do a little later.
    let mut attempts = 0;
    while line.connection.force_key_update().is_err() {
        attempts += 1;
        if attempts == UPDATE_ATTEMPTS {
            return None;
        }
        sleep(BETWEEN_UPDATES).await;
    }
    let answer = talk.ask(asker, None).await?;
    Some(answer.is_ok())
}

/// Moves to another port with a fresh connection ID. Returns `None` if the server has given out none.
async fn migrate(line: &Line, talk: &Talk, asker: &Asker) -> Option<Move> {
    if line.records.observed().spare_ids == 0 {
        return None;
    }
    let before = line.records.observed().challenges;
    let peer = line.connection.remote_address();
    let local = SocketAddr::from((target::local_ip_for(peer.ip()), 0));
    let tap = Tap::bind(local).ok()?;
    line.endpoint.rebind_transport(tap.clone()).ok()?;
    let answer = talk.ask(asker, None).await?;
    Some(Move {
        survived: answer.is_ok() && tap.log().received > 0,
        validated: is_challenged(line, before).await,
    })
}

/// Offers only groups whose ClientHello fits into one datagram.
pub(crate) async fn small(
    dialler: &mut Dialler,
    protocols: &[String],
) -> Result<Option<Result<Small, String>>, Failure> {
    let groups = [
        KeyExchange::X25519,
        KeyExchange::Secp256r1,
        KeyExchange::Secp384r1,
    ];
    let config = dialler
        .config(protocols)?
        .cryptography(Cryptography::default().groups(groups))?;
    let line = match dialler.connect(config).await? {
        None => return Ok(None),
        Some(Err(error)) => return Ok(Some(Err(error.to_string()))),
        Some(Ok(line)) => line,
    };
    let log = line.tap.log();
    let data = line.connection.handshake_data().unwrap_or_default();
    let time = line
        .connection
        .stats()
        .handshake_time
        .unwrap_or_else(|| line.begun.elapsed());
    let small = Small {
        group: data.key_exchange.unwrap_or_default(),
        early_bytes: [log.sent_early, log.received_early],
        exceeds_three_times: log.exceeds_three_times,
        handshake_ms: millis(time),
    };
    line.close().await;
    Ok(Some(Ok(small)))
}

/// Begins in version 1, prefers version 2, and returns the version that the server moved to.
pub(crate) async fn version2(
    dialler: &mut Dialler,
    protocols: &[String],
) -> Result<Option<Result<u32, String>>, Failure> {
    let versions = [QuicVersion::V2, QuicVersion::V1];
    let config = dialler
        .config(protocols)?
        .versions(versions)
        .first_version(QuicVersion::V1);
    let line = match dialler.connect(config).await? {
        None => return Ok(None),
        Some(Err(error)) => return Ok(Some(Err(error.to_string()))),
        Some(Ok(line)) => line,
    };
    let version = line.connection.stats().version.value();
    line.close().await;
    Ok(Some(Ok(version)))
}

/// Offers a protocol that no server supports, which must be refused (RFC 9001 §8.1).
pub(crate) async fn unknown_alpn(dialler: &mut Dialler) -> Result<Option<Refusal>, Failure> {
    let config = dialler.config(&["courser-probe-no-such-protocol".to_owned()])?;
    Ok(match dialler.connect(config).await? {
        None => None,
        Some(Ok(line)) => {
            line.close().await;
            Some(Refusal::Accepted)
        }
        // The server has completed its part without a protocol, and TLS of this client refuses that.
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

const UPDATE_ATTEMPTS: u32 = 20;
const BETWEEN_UPDATES: Duration = Duration::from_millis(25);
