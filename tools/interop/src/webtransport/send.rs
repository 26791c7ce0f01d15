//! The end that sends files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser::webtransport::{RecvStream, SendStream, Session};
use courser_measure::Failure;
use tokio::task::JoinSet;

use super::files;

/// The files of one endpoint.
#[derive(Clone, Debug)]
pub(super) struct Source {
    root: Arc<Path>,
    endpoint: Arc<str>,
}

impl Source {
    pub(super) fn new(root: PathBuf, endpoint: &str) -> Self {
        Self {
            root: root.into(),
            endpoint: endpoint.into(),
        }
    }

    async fn read(&self, request: &[u8]) -> Result<(String, Vec<u8>), Failure> {
        let name = files::requested(request)?;
        let content = files::read(&self.root, &self.endpoint, name).await?;
        Ok((name.to_owned(), content))
    }

    /// Answers requests until the session ends. A request that cannot be answered is reported and reset.
    pub(super) async fn serve(&self, session: &Session) {
        tokio::join!(
            self.bidirectional(session),
            self.unidirectional(session),
            self.datagrams(session)
        );
    }

    async fn bidirectional(&self, session: &Session) {
        let mut streams = JoinSet::new();
        while let Ok((send, receive)) = session.accept_bi().await {
            let source = self.clone();
            streams.spawn(async move { report(source.answer(send, receive).await) });
        }
        streams.join_all().await;
    }

    async fn answer(&self, mut send: SendStream, mut receive: RecvStream) -> Result<(), Failure> {
        let (_, content) = match self.request(&mut receive).await {
            Ok(file) => file,
            Err(failure) => {
                let _ = send.reset(REFUSED);
                return Err(failure);
            }
        };
        write(&mut send, &content).await
    }

    async fn unidirectional(&self, session: &Session) {
        let mut streams = JoinSet::new();
        while let Ok(mut receive) = session.accept_uni().await {
            let (source, session) = (self.clone(), session.clone());
            streams.spawn(async move {
                let pushed = async {
                    let (name, content) = source.request(&mut receive).await?;
                    let mut send = session.open_uni().await.map_err(ended)?;
                    write(&mut send, &files::push(&name, &content)).await
                };
                report(pushed.await);
            });
        }
        streams.join_all().await;
    }

    async fn request(&self, receive: &mut RecvStream) -> Result<(String, Vec<u8>), Failure> {
        let request = receive.read_to_end(MAX_REQUEST).await.map_err(ended)?;
        self.read(&request).await
    }

    async fn datagrams(&self, session: &Session) {
        while let Some(request) = session.datagrams().receive().await {
            let pushed = async {
                let (name, content) = self.read(&request).await?;
                let sent = session.datagrams().send(&files::push(&name, &content));
                sent.map_err(ended)
            };
            report(pushed.await);
        }
    }
}

async fn write(send: &mut SendStream, content: &[u8]) -> Result<(), Failure> {
    send.write_all(content).await.map_err(ended)?;
    send.finish().map_err(ended)
}

fn report(result: Result<(), Failure>) {
    if let Err(failure) = result {
        eprintln!("{failure}");
    }
}

pub(super) fn ended(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

/// Largest size of a request in bytes.
const MAX_REQUEST: usize = 4096;
/// The code of a request that cannot be answered, as other ends of the runner have it.
const REFUSED: u32 = 1234;
