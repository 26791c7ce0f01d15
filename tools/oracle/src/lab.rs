//! Gateways in front of upstream servers of every version, clients of every version, and what is wrong between them.

use std::collections::{BTreeMap, BTreeSet};
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
    clients: BTreeMap<(Version, UpstreamVersion), Client>,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The response.
    pub answer: Seen,
    /// What the upstream server got.
    pub upstream: Vec<Seen>,
    /// The response to a healthy request that was in flight on the same connection, in HTTP/2 and HTTP/3.
    pub neighbour: Option<Seen>,
}

/// How a request that must not pass was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A status of 400 to 599.
    Status(u16),
    /// A reset of its stream.
    Reset,
}

impl Answered {
    /// Returns how the request was refused.
    ///
    /// # Errors
    /// Says what happened instead: it reached the upstream server, or the answer is no refusal, or the healthy request
    /// beside it suffered.
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

    /// Returns the one request that the upstream server got, without the fields of the gateway.
    ///
    /// # Errors
    /// Says what happened instead.
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
    /// Starts an upstream server of each version, and a gateway before each. `start` gets the URL of the upstream server.
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

    /// Sends a request, on an earlier connection if that can be used, and returns what came of it.
    pub async fn send(
        &mut self,
        pair: (Version, UpstreamVersion),
        script: Script,
        request: &Request,
    ) -> Answered {
        self.upstream(pair.1).script(script);
        let mut client = self.client(pair).await;
        let answer = client.exchange(request).await;
        self.keep(pair, client);
        Answered {
            answer,
            upstream: self.upstream(pair.1).take().await,
            neighbour: None,
        }
    }

    /// Sends a request while a healthy one is in flight on the same connection, on a connection of its own.
    pub async fn send_beside(
        &mut self,
        pair: (Version, UpstreamVersion),
        script: Script,
        request: &Request,
    ) -> Answered {
        self.upstream(pair.1).script(script);
        let mut client = self.client(pair).await;
        let (answer, neighbour) = client.exchange_beside(request).await;
        self.keep(pair, client);
        Answered {
            answer,
            upstream: self.upstream(pair.1).take().await,
            neighbour,
        }
    }

    /// Returns a connection to the gateway, an earlier one if it can be used.
    pub async fn client(&mut self, pair: (Version, UpstreamVersion)) -> Client {
        match self.clients.remove(&pair) {
            Some(client) if client.is_usable() => client,
            _ => Client::connect(pair.0, self.gateway(pair.1)).await,
        }
    }

    /// Keeps a connection for later requests.
    pub fn keep(&mut self, pair: (Version, UpstreamVersion), client: Client) {
        self.clients.insert(pair, client);
    }
}

/// Returns every pair of versions.
pub(crate) fn pairs() -> impl Iterator<Item = (Version, UpstreamVersion)> {
    Version::ALL
        .into_iter()
        .flat_map(|client| UpstreamVersion::ALL.map(|upstream| (client, upstream)))
}

/// What a table found, and which pairs of versions it tried.
#[derive(Debug, Default)]
pub struct Findings {
    tried: BTreeMap<(Version, UpstreamVersion), usize>,
    wrong: Vec<String>,
    absent: BTreeSet<(Version, UpstreamVersion)>,
}

impl Findings {
    /// Notes a case of a pair, and what is wrong with it.
    pub fn note(
        &mut self,
        pair: (Version, UpstreamVersion),
        case: &str,
        result: Result<(), String>,
    ) {
        *self.tried.entry(pair).or_default() += 1;
        if let Err(what) = result {
            let (client, upstream) = pair;
            self.wrong
                .push(format!("{case} [{client} -> {upstream}] {what}"));
        }
    }

    /// Says that a table does not try a pair, because its cases do not exist there.
    pub fn leave_out(&mut self, pair: (Version, UpstreamVersion)) {
        self.absent.insert(pair);
    }

    /// Ends a table.
    ///
    /// # Panics
    /// Panics if anything was wrong, or a pair of versions was not tried.
    pub fn finish(self) {
        for pair in pairs() {
            let is_tried = self.tried.contains_key(&pair) || self.absent.contains(&pair);
            assert!(is_tried, "nothing was tried over {} -> {}", pair.0, pair.1);
        }
        print!("{self}");
        assert!(
            self.wrong.is_empty(),
            "{} cases are wrong:\n{}",
            self.wrong.len(),
            self.wrong.join("\n\n")
        );
    }
}

/// Writes the number of cases of each pair.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((client, upstream), count) in &self.tried {
            writeln!(f, "{client} -> {upstream:<3}  {count} cases")?;
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
