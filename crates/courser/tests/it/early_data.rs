//! Early data (0-RTT), answers to it (0.5-RTT), and its refusal. RFC 9001 §4.6.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::relay::Relay;
use crate::common::{loopback, pattern, until, within};
use courser::{
    ClientConfig, Connecting, Connection, EarlyData, EarlyDataOptions, Endpoint, Identity,
    Incoming, ReadError, ReadToEndError, ServerConfig, StoppedError, WriteError,
};

/// A client and a server that support early data.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    identity: Identity,
}

fn server_config(identity: &Identity) -> ServerConfig {
    ServerConfig::with_identity(identity)
        .expect("matching key")
        .alpn(["test"])
        .early_data(EarlyDataOptions::default())
}

impl Pair {
    fn new() -> Self {
        let identity = Identity::dev().expect("random numbers");
        let server = Endpoint::server(server_config(&identity), loopback()).expect("a port");
        let mut client = Endpoint::client(loopback()).expect("a port");
        let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
        client.set_default_client_config(config.alpn(["test"]).early_data(true));
        Self {
            client,
            server,
            identity,
        }
    }

    /// Creates a pair whose client has tickets and address tokens of its server.
    async fn met() -> Self {
        let pair = Self::new();
        let address = pair.server.local_addr().expect("bound");
        pair.meet_at(address).await;
        pair
    }

    /// Gives the client tickets of the server, and address tokens for connections to `address`, which reaches the
    /// server. Tokens belong to a name and a port.
    async fn meet_at(&self, address: SocketAddr) {
        let (client, server) = self.connect_to(address).await;
        assert_eq!(client.early_data(), EarlyData::None);
        // Tickets precede what the server sends after its handshake.
        let mut send = server.open_uni().await.expect("open");
        send.write_all(b"welcome").await.expect("written");
        send.finish().expect("not finished");
        let mut receive = within(10, client.accept_uni()).await.expect("opened");
        within(10, receive.read_to_end(10)).await.expect("read");
        until(|| client.stats().frames_received.new_token > 0).await;
        client.close(0u32.into(), b"");
        within(10, server.closed()).await;
    }

    /// Makes the server forget the sessions of its clients.
    fn forget_sessions(&self) {
        let config = server_config(&self.identity);
        let set = self.server.set_server_config(Some(config));
        set.expect("a configuration like the last one");
    }

    /// Returns both ends of a connection as soon as they can be used, the client's first.
    async fn connect(&self) -> (Connection, Connection) {
        self.connect_to(self.server.local_addr().expect("bound"))
            .await
    }

    async fn connect_to(&self, address: SocketAddr) -> (Connection, Connection) {
        let connecting = self.client.connect(address, "localhost");
        let connecting = connecting.expect("configured").early();
        let accept = async {
            let incoming = self.server.accept().await.expect("open");
            incoming.accept().expect("valid").early().await
        };
        let (client, server) = within(10, async { tokio::join!(connecting, accept) }).await;
        (client.expect("usable"), server.expect("usable"))
    }

    /// Returns a relay in front of the server that holds back the packets which complete a handshake there.
    fn hold_finished(&self) -> Relay {
        let relay = Relay::new(self.server.local_addr().expect("bound"));
        relay.hold_finished();
        relay
    }

    /// Returns a client's connection without waiting for its handshake.
    async fn early_client(&self) -> Connection {
        let address = self.server.local_addr().expect("bound");
        self.early_client_to(address).await
    }

    async fn early_client_to(&self, address: SocketAddr) -> Connection {
        let connecting = self.client.connect(address, "localhost");
        let connection = connecting
            .expect("configured")
            .early()
            .await
            .expect("usable");
        assert_eq!(connection.early_data(), EarlyData::Offered);
        connection
    }
}

/// RFC 9110 §4.3.1: a port is part of an origin, and the server at another port cannot decrypt the ticket.
#[tokio::test]
async fn servers_at_two_ports_of_one_name_both_accept_early_data() {
    let pair = Pair::met().await;
    let second = Endpoint::server(server_config(&pair.identity), loopback()).expect("a port");
    let other = Pair {
        client: pair.client.clone(),
        server: second,
        identity: pair.identity.clone(),
    };
    // Offers no ticket of the first server.
    other
        .meet_at(other.server.local_addr().expect("bound"))
        .await;
    for pair in [&pair, &other] {
        let (client, server) = pair.connect().await;
        assert_eq!(server.early_data(), EarlyData::Accepted);
        let fate = within(10, client.authenticated()).await;
        assert_eq!(fate.expect("alive"), EarlyData::Accepted);
    }
}

#[tokio::test]
async fn a_request_in_early_data_is_answered_before_the_handshake_is_complete() {
    let pair = Pair::new();
    let relay = Relay::new(pair.server.local_addr().expect("bound"));
    pair.meet_at(relay.address).await;
    relay.hold_finished();
    let client = pair.early_client_to(relay.address).await;
    let (mut send, mut receive) = client.open_bi().await.expect("remembered limits");
    assert!(send.is_early() && receive.is_early());
    send.write_all(b"question").await.expect("enough credit");
    send.finish().expect("not finished");
    let incoming = within(10, pair.server.accept()).await.expect("open");
    let server = within(10, incoming.accept().expect("valid").early()).await;
    let server = server.expect("usable");
    assert_eq!(server.early_data(), EarlyData::Accepted);
    assert_eq!(server.peer_identity(), None);
    let (mut answer, mut question) = within(10, server.accept_bi()).await.expect("opened");
    assert!(question.is_early() && answer.is_early());
    let asked = within(10, question.read_to_end(100)).await.expect("read");
    assert_eq!(asked, b"question");
    answer.write_all(b"answer").await.expect("written");
    answer.finish().expect("not finished");
    let answered = within(10, receive.read_to_end(100)).await.expect("read");
    assert_eq!(answered, b"answer");
    until(|| relay.held_finished() > 0).await;
    assert_eq!(server.peer_identity(), None, "0.5-RTT");
    relay.release().await;
    for end in [&client, &server] {
        let fate = within(10, end.authenticated()).await;
        assert_eq!(fate, Ok(EarlyData::Accepted));
    }
    let (later, _) = client.open_bi().await.expect("open");
    assert!(!later.is_early());
}

#[tokio::test]
async fn refused_early_data_fails_its_streams_and_the_connection_continues() {
    let pair = Pair::met().await;
    pair.forget_sessions();
    let client = pair.early_client().await;
    let (mut send, mut receive) = client.open_bi().await.expect("remembered limits");
    send.write_all(b"early").await.expect("enough credit");
    let (stopped, early_id) = (send.stopped(), send.id());
    let reading = receive.read_to_end(100);
    let serve = async {
        let incoming = pair.server.accept().await.expect("open");
        incoming.accept().expect("valid").early().await
    };
    let (read, stopped, server) = within(10, async { tokio::join!(reading, stopped, serve) }).await;
    assert_eq!(
        read,
        Err(ReadToEndError::Read(ReadError::EarlyDataRejected))
    );
    assert_eq!(stopped, Err(StoppedError::EarlyDataRejected));
    let written = send.write(b"more").await;
    assert_eq!(written, Err(WriteError::EarlyDataRejected));
    assert!(send.finish().is_err() && receive.stop(1u32.into()).is_err());
    assert_eq!(client.authenticated().await, Ok(EarlyData::Rejected));
    let server = server.expect("usable");
    assert_eq!(server.early_data(), EarlyData::None);
    // The next stream has the same number. Nothing of the old handles reaches it.
    let (mut again, mut answer) = client.open_bi().await.expect("open");
    assert_eq!(again.id(), early_id);
    assert!(send.stats().is_err() && receive.stats().is_err());
    assert!(send.reset_at(1u32.into(), 0).is_err());
    let deadline = send.set_deadline(Some(Duration::from_millis(1)), 1u32.into());
    assert!(deadline.is_err());
    let rejected = Err(WriteError::EarlyDataRejected);
    assert_eq!(within(10, send.acknowledged()).await, rejected);
    let blocked = within(10, send.blocked()).await;
    assert_eq!(blocked.map(drop), rejected);
    drop((send, receive));
    again.write_all(b"again").await.expect("written");
    again
        .finish()
        .expect("the handle that was dropped has not finished it");
    let (mut reply, mut question) = within(10, server.accept_bi()).await.expect("opened");
    assert!(!question.is_early());
    let asked = within(10, question.read_to_end(100)).await.expect("read");
    assert_eq!(asked, b"again");
    reply.write_all(b"yes").await.expect("written");
    reply.finish().expect("not finished");
    let answered = within(10, answer.read_to_end(100)).await.expect("read");
    assert_eq!(answered, b"yes");
}

#[tokio::test]
async fn without_a_session_an_early_connection_waits_for_the_handshake() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    assert_eq!(client.authenticated().await, Ok(EarlyData::None));
    assert!(client.peer_identity().is_some());
    assert_eq!(
        within(10, server.authenticated()).await,
        Ok(EarlyData::None)
    );
}

/// Returns both ends, the server's first, while the client's Finished is held back. The server has
/// written a greeting.
async fn greet(
    connecting: Connecting,
    incoming: Incoming,
    text: &[u8],
) -> (Connection, Connection) {
    let server = within(10, incoming.accept().expect("valid").early()).await;
    let server = server.expect("usable");
    let mut send = server
        .open_uni()
        .await
        .expect("the client's limits are known");
    send.write_all(text).await.expect("written");
    send.finish().expect("not finished");
    assert!(!send.is_early());
    let client = within(10, connecting).await.expect("handshake");
    (server, client)
}

async fn read_greeting(client: &Connection) -> Vec<u8> {
    let mut receive = within(10, client.accept_uni()).await.expect("opened");
    within(10, receive.read_to_end(10_000)).await.expect("read")
}

/// Fails if the handshake of a server is complete.
async fn assert_incomplete(server: &Connection) {
    let waits = tokio::time::timeout(Duration::ZERO, server.authenticated()).await;
    assert!(waits.is_err(), "the handshake is complete: {waits:?}");
}

/// Its stream to an address that is not validated waits for the client's Finished.
#[tokio::test]
async fn a_server_writes_before_the_handshake_is_complete() {
    let pair = Pair::new();
    let relay = pair.hold_finished();
    let connecting = pair.client.connect(relay.address, "localhost");
    let connecting = connecting.expect("configured");
    let incoming = within(10, pair.server.accept()).await.expect("open");
    assert!(!incoming.remote_address_validated());
    let (server, client) = greet(connecting, incoming, b"greeting").await;
    until(|| relay.held_finished() > 0).await;
    assert_incomplete(&server).await;
    relay.release().await;
    assert_eq!(read_greeting(&client).await, b"greeting");
}

/// Fails unless the client reads more than three times what it has sent, and less than a first
/// congestion window, while the server waits for its Finished (0.5-RTT, RFC 9001 §5.7).
async fn reads_before_the_handshake_is_complete(
    relay: &Relay,
    connecting: Connecting,
    incoming: Incoming,
) -> Connection {
    assert!(incoming.remote_address_validated());
    let text = pattern(8, 9_000);
    let (server, client) = greet(connecting, incoming, &text).await;
    assert!(read_greeting(&client).await == text, "the greeting differs");
    until(|| relay.held_finished() > 0).await;
    assert_incomplete(&server).await;
    relay.release().await;
    server
}

#[tokio::test]
async fn a_client_whose_address_retry_validated_reads_before_the_handshake_is_complete() {
    let pair = Pair::new();
    let relay = pair.hold_finished();
    let connecting = pair.client.connect(relay.address, "localhost");
    let connecting = connecting.expect("configured");
    let first = within(10, pair.server.accept()).await.expect("open");
    assert!(!first.remote_address_validated());
    first.retry().expect("it has no token");
    let incoming = within(10, pair.server.accept()).await.expect("open");
    let server = reads_before_the_handshake_is_complete(&relay, connecting, incoming).await;
    let fate = within(10, server.authenticated()).await;
    assert_eq!(fate, Ok(EarlyData::None));
}

#[tokio::test]
async fn a_client_whose_address_a_token_validated_reads_before_the_handshake_is_complete() {
    let pair = Pair::new();
    let relay = Relay::new(pair.server.local_addr().expect("bound"));
    pair.meet_at(relay.address).await;
    relay.hold_finished();
    let connecting = pair.client.connect(relay.address, "localhost");
    let connecting = connecting.expect("configured");
    let incoming = within(10, pair.server.accept()).await.expect("open");
    let server = reads_before_the_handshake_is_complete(&relay, connecting, incoming).await;
    within(10, server.authenticated()).await.expect("complete");
}

#[tokio::test]
async fn failed_handshake_fails_pending_calls() {
    let pair = Pair::met().await;
    let client = pair.early_client().await;
    let incoming = within(10, pair.server.accept()).await.expect("open");
    incoming.refuse();
    let error = within(10, client.authenticated()).await;
    assert!(error.is_err(), "{error:?}");
}

#[tokio::test]
async fn early_data_must_be_enabled_at_both_ends() {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity).expect("matching key");
    let server = Endpoint::server(config.alpn(["test"]), loopback()).expect("a port");
    let mut client = Endpoint::client(loopback()).expect("a port");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    client.set_default_client_config(config.alpn(["test"]).early_data(true));
    let pair = Pair {
        client,
        server,
        identity,
    };
    for _ in 0..2 {
        let (client, server) = pair.connect().await;
        assert_eq!(client.early_data(), EarlyData::None);
        let mut send = server.open_uni().await.expect("open");
        send.write_all(b"after the tickets").await.expect("written");
        send.finish().expect("not finished");
        let mut receive = within(10, client.accept_uni()).await.expect("opened");
        within(10, receive.read_to_end(100)).await.expect("read");
        assert_eq!(server.authenticated().await, Ok(EarlyData::None));
    }
}
