//! Gateways between clients and upstream servers of each version, and the findings of tables of cases.

use std::collections::BTreeMap;
use std::fmt;

use crate::client::Client;
use crate::gateway::Gateway;
use crate::message::{Request, Version};
use crate::seen::{End, Seen};
use crate::upstream::{Script, Upstream, UpstreamVersion};

/// A gateway for each version of the upstream server, and connections to them.
#[derive(Debug)]
pub struct Lab {
    squares: BTreeMap<UpstreamVersion, (Gateway, Upstream)>,
    clients: BTreeMap<Pair, Client>,
}

/// The versions on both sides of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pair {
    /// The version of the client.
    pub client: Version,
    /// The version of the upstream server.
    pub upstream: UpstreamVersion,
}

impl Pair {
    /// Returns every pair.
    pub fn all() -> impl Iterator<Item = Self> {
        let with = |client| UpstreamVersion::ALL.map(|upstream| Self { client, upstream });
        Version::ALL.into_iter().flat_map(with)
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.client, self.upstream)
    }
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The response.
    pub answer: Seen,
    /// The requests that the upstream server received.
    pub upstream: Vec<Seen>,
    /// The response to a healthy request that was in flight on the same connection, in HTTP/2 and HTTP/3.
    pub neighbour: Option<Seen>,
}

/// The way in which a gateway refused a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A status of 400 to 599.
    Status(u16),
    /// A reset of its stream.
    Reset,
}

impl Answered {
    /// Returns the way in which the request was refused.
    ///
    /// # Errors
    /// Returns a description if the request reached the upstream server, if the response is no refusal, or if the healthy
    /// request beside it failed.
    pub fn refusal(&self) -> Result<Refusal, String> {
        if let Some(seen) = self.upstream.first() {
            return Err(format!("reached the upstream server:\n{seen}"));
        }
        if let Some(neighbour) = &self.neighbour
            && (neighbour.status() != 200 || !neighbour.is_complete())
        {
            let what = &self.answer;
            return Err(format!("ended the request beside it:\n{neighbour}\n{what}"));
        }
        match (self.answer.status(), self.answer.end) {
            (status @ 400..600, End::Complete) => Ok(Refusal::Status(status)),
            (0, End::Reset(_)) => Ok(Refusal::Reset),
            _ => Err(format!("was answered with:\n{}", self.answer)),
        }
    }

    /// Returns the only request that the upstream server received, without the fields of the gateway.
    ///
    /// # Errors
    /// Returns a description if the upstream server received none or several.
    pub fn forwarded(&self) -> Result<Seen, String> {
        match &self.upstream[..] {
            [seen] => Ok(seen.clone().without(is_of_the_gateway)),
            [] => Err(format!("was not forwarded:\n{}", self.answer)),
            many => Err(format!("became {} requests:\n{}", many.len(), many[0])),
        }
    }
}

/// Returns true for fields that a gateway adds or replaces itself, and for those of a connection.
pub(crate) fn is_of_the_gateway(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-forwarded-")
        || matches!(
            name.as_str(),
            "via"
                | "forwarded"
                | "x-real-ip"
                | "x-request-id"
                | "date"
                | "alt-svc"
                | "connection"
                | "keep-alive"
        )
}

impl Lab {
    /// Starts an upstream server of each version, and a gateway in front of each. `start` receives the URL of the upstream
    /// server.
    pub async fn start(mut start: impl AsyncFnMut(&str) -> Gateway) -> Self {
        let mut squares = BTreeMap::new();
        for version in UpstreamVersion::ALL {
            let upstream = Upstream::start(version).await;
            let gateway = start(&upstream.url()).await;
            squares.insert(version, (gateway, upstream));
        }
        Self {
            squares,
            clients: BTreeMap::new(),
        }
    }

    /// Returns the gateway in front of an upstream server of this version.
    pub fn gateway(&self, upstream: UpstreamVersion) -> &Gateway {
        &self.squares[&upstream].0
    }

    /// Returns the upstream server of this version.
    pub fn upstream(&self, upstream: UpstreamVersion) -> &Upstream {
        &self.squares[&upstream].1
    }

    /// Sends a request and returns the outcome. Uses an earlier connection if it is still open.
    pub async fn send(&mut self, pair: Pair, script: Script, request: &Request) -> Answered {
        self.upstream(pair.upstream).script(script);
        let mut client = self.client(pair).await;
        let answer = client.exchange(request).await;
        self.keep(pair, client);
        Answered {
            answer,
            upstream: self.upstream(pair.upstream).take().await,
            neighbour: None,
        }
    }

    /// Sends a request while a healthy one is in flight on the same connection, on a connection of its own.
    pub async fn send_beside(&mut self, pair: Pair, script: Script, request: &Request) -> Answered {
        self.upstream(pair.upstream).script(script);
        let mut client = self.client(pair).await;
        let (answer, neighbour) = client.exchange_beside(request).await;
        self.keep(pair, client);
        Answered {
            answer,
            upstream: self.upstream(pair.upstream).take().await,
            neighbour,
        }
    }

    /// Returns a connection to the gateway, an earlier one if it is still open.
    pub async fn client(&mut self, pair: Pair) -> Client {
        if let Some(mut client) = self.clients.remove(&pair)
            && client.is_usable().await
        {
            return client;
        }
        Client::connect(pair.client, self.gateway(pair.upstream)).await
    }

    /// Keeps a connection for later requests.
    pub fn keep(&mut self, pair: Pair, client: Client) {
        self.clients.insert(pair, client);
    }
}

/// The findings of a table of cases.
#[derive(Debug, Default)]
pub struct Findings {
    /// The number of cases that ran in each square.
    squares: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Findings {
    /// Creates the findings of a table that must run cases in each of these squares.
    pub fn over<T: fmt::Display>(squares: impl IntoIterator<Item = T>) -> Self {
        let squares = squares.into_iter().map(|square| (square.to_string(), 0));
        Self {
            squares: squares.collect(),
            wrong: Vec::new(),
        }
    }

    /// Records the result of a case in a square.
    pub fn note(&mut self, square: impl fmt::Display, case: &str, result: Result<(), String>) {
        let square = square.to_string();
        if let Err(what) = result {
            self.wrong.push(format!("{case} [{square}] {what}"));
        }
        *self.squares.entry(square).or_default() += 1;
    }

    /// Prints the findings.
    ///
    /// # Panics
    /// Panics if a case failed, or if no case ran in one of the squares.
    pub fn finish(self) {
        print!("{self}");
        for (square, count) in &self.squares {
            assert!(*count > 0, "nothing was tried over {square}");
        }
        assert!(
            self.wrong.is_empty(),
            "{} cases are wrong:\n{}",
            self.wrong.len(),
            self.wrong.join("\n\n")
        );
    }
}

/// Prints the number of cases of each square.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (square, count) in &self.squares {
            writeln!(f, "{square:<9}  {count} cases")?;
        }
        Ok(())
    }
}

/// Returns an error unless both are equal.
pub(crate) fn equal<T: PartialEq + fmt::Debug>(
    what: &str,
    seen: T,
    expected: T,
) -> Result<(), String> {
    if seen == expected {
        Ok(())
    } else {
        Err(format!("{what}: {seen:?}, not {expected:?}"))
    }
}
