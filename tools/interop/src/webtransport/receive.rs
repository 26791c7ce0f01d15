//! The end that requests files.

use std::path::Path;
use std::time::Duration;

use courser::webtransport::Session;
use courser_measure::Failure;
use futures_util::future::try_join_all;

use super::send::ended;
use super::{Way, files};

/// Requests files of an endpoint, and writes them to its folder in `downloads`.
pub(super) async fn request(
    session: &Session,
    way: Way,
    (endpoint, names): (&str, &[String]),
    downloads: &Path,
) -> Result<(), Failure> {
    match way {
        Way::Bidirectional => {
            let each = names.iter().map(|name| async move {
                let (mut send, mut receive) = session.open_bi().await.map_err(ended)?;
                send.write_all(&files::request(name)).await.map_err(ended)?;
                send.finish().map_err(ended)?;
                let content = receive.read_to_end(MAX_FILE).await.map_err(ended)?;
                files::write(downloads, endpoint, name, &content).await
            });
            try_join_all(each).await.map(drop)
        }
        Way::Unidirectional => {
            let requests = names.iter().map(|name| async move {
                let mut send = session.open_uni().await.map_err(ended)?;
                send.write_all(&files::request(name)).await.map_err(ended)?;
                send.finish().map_err(ended)
            });
            let pushes = names.iter().map(|_| async move {
                let mut receive = session.accept_uni().await.map_err(ended)?;
                let bytes = receive.read_to_end(MAX_FILE).await.map_err(ended)?;
                store(downloads, endpoint, &bytes).await
            });
            tokio::try_join!(try_join_all(requests), try_join_all(pushes)).map(drop)
        }
        Way::Datagrams => {
            let requests = async {
                for name in names {
                    let sent = session.datagrams().send(&files::request(name));
                    sent.map_err(ended)?;
                    tokio::time::sleep(BETWEEN_DATAGRAMS).await;
                }
                Ok(())
            };
            let pushes = async {
                for _ in names {
                    let received = session.datagrams().receive().await;
                    let bytes = received.ok_or_else(|| ended("the session has ended"))?;
                    store(downloads, endpoint, &bytes).await?;
                }
                Ok(())
            };
            tokio::try_join!(requests, pushes).map(drop)
        }
    }
}

async fn store(downloads: &Path, endpoint: &str, bytes: &[u8]) -> Result<(), Failure> {
    let (name, content) = files::pushed(bytes)?;
    files::write(downloads, endpoint, name, content).await
}

/// Largest size of a file in bytes.
const MAX_FILE: usize = 64 << 20;
/// Datagrams are not repeated, and the queues of the link are short.
const BETWEEN_DATAGRAMS: Duration = Duration::from_millis(20);
