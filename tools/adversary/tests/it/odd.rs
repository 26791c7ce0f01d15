//! Tests with peers that combine all unusual behaviour that the RFCs permit (fault F63).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use courser::{ClientConfig, Endpoint, ServerConfig, h3, runtime};
use courser_adversary::{Attack, AttackNode, Attacker, client_tls, odd};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::world::NodeId;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns random content.
fn content() -> Vec<u8> {
    let mut state = 1_u32;
    let bytes = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    bytes.take(60_000).collect()
}

/// Runs a world with an odd peer at 10.0.0.9:20000 and the node that `add` adds.
fn run(attack: Box<dyn Attack>, add: impl FnOnce(&mut World) -> NodeId) -> (World, NodeId) {
    let mut world = World::new(7);
    let other = add(&mut world);
    let target = "10.0.0.2:443".parse().expect("the address is valid");
    let attacker = Attacker::new(target, client_tls(b"h3"), [7; 32]);
    let address = "10.0.0.9:20000".parse().expect("the address is valid");
    let node = AttackNode::new(address, attacker, attack, Duration::from_millis(1));
    let node = world.add("odd", address.ip(), node);
    world.connect(node, other, &"2ms".parse().expect("the link is valid"));
    world
        .run_for(Duration::from_secs(5))
        .expect("time advances");
    (world, node)
}

/// Runs a server that echoes the content of each request.
async fn echo() -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        runtime::spawn(async move {
            let service = tower::service_fn(|request: Request<h3::Body>| async move {
                let content = request.into_body().collect().await?;
                Ok::<_, h3::Error>(Response::new(Full::new(content.to_bytes())))
            });
            h3::serve(incoming.await?, service).await?;
            Result::Ok(())
        });
    }
    Ok(())
}

#[test]
fn client_with_all_permitted_oddities_is_served() {
    let (world, node) = run(Box::new(odd::OddClient::new(content())), |world| {
        let far = world.machine("server", [10, 0, 0, 2]);
        far.spawn(echo());
        world.id_of(&far)
    });
    let node: &AttackNode = world.node(node).expect("the odd client");
    let attacker = node.attacker();
    assert!(attacker.counts().closes.is_empty(), "{attacker:?}");
    let connection = attacker.peek(0).expect("the only connection");
    let answer = odd::received(connection);
    assert!(answer.is_some(), "no complete response: {connection:?}");
    assert!(answer == Some(content()), "the echo differs");
    let issued = connection.seen().issued.back();
    let newest = issued.map(|(sequence, _)| *sequence);
    assert!(newest >= Some(4), "four IDs were retired: {newest:?}");
}

/// Uploads the content, and returns the content of the response.
async fn upload() -> Result<Vec<u8>> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn([h3::ALPN]);
    let endpoint = Endpoint::client("10.0.0.2:0".parse()?)?;
    let connecting = endpoint.connect_with(config, "10.0.0.9:20000".parse()?, "localhost")?;
    let client = h3::Client::new(connecting.await?);
    let body = Full::new(Bytes::from(content()));
    let request = Request::post("https://localhost/echo").body(body)?;
    let response = client.send(request).await?;
    assert_eq!(response.status(), 200);
    let received = response.into_body().collect().await?;
    let trailers = received.trailers().map(http::HeaderMap::len);
    assert_eq!(trailers, Some(1));
    Ok(received.to_bytes().to_vec())
}

#[test]
fn server_with_all_permitted_oddities_can_be_used() {
    let received = Arc::new(Mutex::new(None));
    let result = received.clone();
    let (world, node) = run(Box::<odd::OddServer>::default(), |world| {
        let near = world.machine("client", [10, 0, 0, 2]);
        near.spawn(async move {
            let uploaded = upload().await.map_err(|error| error.to_string());
            *result.lock().expect("no panic") = Some(uploaded);
        });
        world.id_of(&near)
    });
    let node: &AttackNode = world.node(node).expect("the odd server");
    let received = received.lock().expect("no panic").take();
    let received = received.unwrap_or_else(|| panic!("no response: {:?}", node.attacker()));
    let received = received.expect("the server responds");
    assert!(received == content(), "the echo differs");
}
