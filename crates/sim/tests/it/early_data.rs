//! Early data (0-RTT) in virtual time: how soon requests arrive. RFC 9001 §4.6, RFC 8470.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser::{ClientConfig, Connection, EarlyData, EarlyDataOptions, Endpoint, ServerConfig};
use courser::{Side, h3, runtime};
use courser_sim::World;
use courser_sim::identity::identity;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The times at which requests arrived at the server, and whether they were early.
type Arrivals = Arc<Mutex<Vec<(Instant, bool)>>>;

async fn server(arrivals: Arrivals) -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let config = config.early_data(EarlyDataOptions::default());
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let arrivals = arrivals.clone();
        let service = tower::service_fn(move |request: Request<h3::Body>| {
            let is_early = request.extensions().get::<h3::EarlyData>().is_some();
            let mut arrivals = arrivals.lock().expect("the lock is not poisoned");
            arrivals.push((runtime::now(), is_early));
            async { Ok::<_, h3::Error>(Response::new(Full::new(Bytes::from_static(b"answer")))) }
        });
        runtime::spawn(async move {
            let connection = incoming.accept()?.early().await?;
            h3::serve(connection, service).await?;
            Result::Ok(())
        });
    }
    Ok(())
}

async fn connect(endpoint: &Endpoint, config: &ClientConfig) -> Result<Connection> {
    let to = "10.0.0.2:443".parse()?;
    let connecting = endpoint.connect_with(config.clone(), to, "localhost")?;
    Ok(connecting.early().await?)
}

async fn get(client: &h3::Client) -> Result {
    let request = Request::get("https://localhost/").body(h3::Empty)?;
    let response = client.send(request).await?;
    let answer = response.into_body().collect().await?.to_bytes();
    assert_eq!(answer, "answer");
    Ok(())
}

/// The time of the first packet of a resumed connection, and that of the response to its first request.
struct RequestTimes {
    start: Instant,
    answered: Instant,
}

/// Connects once to get a ticket, and sends a request on a second connection as soon as possible.
async fn client() -> Result<RequestTimes> {
    let config = ClientConfig::with_roots([identity().certificate()])?;
    let config = config.alpn([h3::ALPN]).early_data(true);
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let connection = connect(&endpoint, &config).await?;
    assert_eq!(connection.early_data(), EarlyData::None);
    let first_client = h3::Client::new(connection);
    get(&first_client).await?;
    let settings = first_client
        .settings()
        .await
        .expect("the settings precede the response");
    first_client.quic().close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    let start = runtime::now();
    let connection = connect(&endpoint, &config).await?;
    assert_eq!(connection.early_data(), EarlyData::Offered);
    let client = h3::Client::resume(connection, h3::Config::new(Side::Client), settings);
    get(&client).await?;
    let answered = runtime::now();
    let fate = client.quic().authenticated().await?;
    assert_eq!(fate, EarlyData::Accepted);
    Ok(RequestTimes { start, answered })
}

/// Returns the time until the request arrived, and until the response did.
fn run(link: &str) -> (Duration, Duration) {
    let arrivals = Arrivals::default();
    let mut world = World::new(1);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(
        &near,
        &far,
        &link.parse().expect("the link specification is valid"),
    );
    far.spawn(server(arrivals.clone()));
    let asked = world.run_until_done(near.spawn(client()));
    let asked = asked
        .expect("the task does not panic")
        .expect("the request is answered");
    let arrivals = arrivals.lock().expect("the lock is not poisoned");
    let [(_, false), (arrived, true)] = arrivals[..] else {
        panic!("{arrivals:?}");
    };
    (arrived - asked.start, asked.answered - asked.start)
}

#[test]
fn an_early_request_arrives_within_half_a_round_trip() {
    let one_way = Duration::from_millis(50);
    assert_eq!(run("50ms"), (one_way, 2 * one_way));
}

/// The first flight, less than 3000 bytes, takes 1.2 ms to leave at this rate, and the server's flight
/// with its certificate precedes the response.
#[test]
fn a_rate_delays_an_early_request_by_the_time_of_its_flight_alone() {
    let (arrived, answered) = run("20mbit,50ms");
    assert!(arrived < Duration::from_micros(51_200), "{arrived:?}");
    assert!(answered < Duration::from_millis(104), "{answered:?}");
}
