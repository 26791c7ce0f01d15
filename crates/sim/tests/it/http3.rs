//! HTTP/3 over links that lose, reorder and copy: the facade in virtual time.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use courser::{
    ClientConfig, ConnectionError, Endpoint, ServerConfig, TransportConfig, h3, runtime,
};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn server() -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let service = tower::service_fn(|request: Request<h3::Body>| async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await?.to_bytes();
            let answer = match path.as_str() {
                "/large" => vec![b'x'; LARGE],
                _ => [path.as_bytes(), b" ", &body].concat(),
            };
            Ok::<_, h3::Error>(Response::new(Full::new(Bytes::from(answer))))
        });
        let connection = incoming.await?;
        runtime::spawn(async move { h3::serve(connection, service).await });
    }
    Ok(())
}

/// The bytes that the link carries in a second.
const LARGE: usize = 2_400_000;

async fn client() -> Result<h3::Client> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn([h3::ALPN]);
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
    Ok(h3::Client::new(connecting.await?))
}

async fn post(client: h3::Client, number: usize, content: usize) -> Result {
    let content = Bytes::from(vec![b'x'; content]);
    let request = Request::post(format!("https://localhost/{number}"))
        .header("x-number", number)
        .header("x-same", "for all of them")
        .body(Full::new(content.clone()))?;
    let response = client.send(request).await?;
    let answer = response.into_body().collect().await?.to_bytes();
    assert_eq!(
        answer,
        [format!("/{number} ").as_bytes(), &content].concat()
    );
    Ok(())
}

/// Forty requests at once, then one after the other.
async fn exchange() -> Result<Duration> {
    let begun = runtime::now();
    let client = client().await?;
    let tasks: Vec<_> = (0..40)
        .map(|number| runtime::spawn(post(client.clone(), number, number * 500)))
        .collect();
    for task in tasks {
        task.await??;
    }
    for number in 40..50 {
        post(client.clone(), number, 10).await?;
    }
    Ok(runtime::now() - begun)
}

fn run(seed: u64, link: &str) -> Result<(Duration, u64)> {
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(&near, &far, &link.parse()?);
    far.spawn(server());
    let time = world.run_until_done(near.spawn(exchange()))??;
    Ok((time, world.digest()))
}

/// Blocked streams wait for the entries that they refer to, and for nothing else.
#[test]
fn requests_are_answered_on_links_that_lose_and_reorder() {
    for_each_seed(20, |seed| {
        for link in [
            "20mbit,20ms",
            "20mbit,20ms,3%",
            "20mbit,20ms,reorder=10%:15ms",
            "20mbit,20ms,duplicate=5%,1%",
        ] {
            let (time, _) = run(seed, link).expect("the request is answered");
            assert!(time < Duration::from_secs(10), "{link}: {time:?}");
        }
    });
}

/// Returns the arrival times of these responses, requested at once in this order.
async fn responses(priorities: Vec<h3::Priority>) -> Result<Vec<Duration>> {
    let client = client().await?;
    let begun = runtime::now();
    let tasks: Vec<_> = priorities
        .into_iter()
        .map(|priority| {
            let client = client.clone();
            runtime::spawn(async move {
                let request = Request::get("https://localhost/large")
                    .extension(priority)
                    .body(h3::Empty)?;
                let body = client.send(request).await?.into_body();
                assert_eq!(body.collect().await?.to_bytes().len(), LARGE);
                Result::Ok(runtime::now() - begun)
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.push(task.await??);
    }
    Ok(times)
}

fn times(priorities: &[(u8, bool)]) -> Vec<Duration> {
    let mut world = World::new(1);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    let link = "20mbit,20ms,queue=2bdp"
        .parse()
        .expect("the link specification is valid");
    world.join_machines(&near, &far, &link);
    far.spawn(server());
    let priorities = priorities.iter();
    let priorities = priorities.map(|&(urgency, incremental)| h3::Priority {
        urgency,
        incremental,
    });
    let asking = near.spawn(responses(priorities.collect()));
    world
        .run_until_done(asking)
        .expect("the world does not stall")
        .expect("the request is answered")
}

/// RFC 9218 §10: more urgent responses come first. Non-incremental ones come in the order of
/// requests, and incremental ones share the rate.
#[test]
fn responses_come_by_priority() {
    let second = Duration::from_secs(1);
    let at = |time: Duration, seconds: f64| (time.as_secs_f64() - seconds).abs() < 0.35;
    let by_urgency = times(&[(7, false), (3, false), (0, false)]);
    assert!(
        at(by_urgency[2], 1.2) && at(by_urgency[1], 2.2),
        "{by_urgency:?}"
    );
    assert!(at(by_urgency[0], 3.2), "{by_urgency:?}");
    // The seed determines which of the three tasks sends its request first.
    let mut by_order = times(&[(3, false); 3]);
    by_order.sort();
    assert!(by_order[1] > by_order[0] + second / 2, "{by_order:?}");
    assert!(by_order[2] > by_order[1] + second / 2, "{by_order:?}");
    let in_turns = times(&[(3, true); 3]);
    assert!(in_turns.iter().all(|&time| at(time, 3.1)), "{in_turns:?}");
}

#[test]
fn equal_seeds_give_equal_runs() {
    let link = "20mbit,20ms,2%";
    assert_eq!(
        run(3, link).expect("the request is answered"),
        run(3, link).expect("the request is answered")
    );
}

const IDLE: Duration = Duration::from_secs(3);

/// RFC 9114 §5.1: a response may take longer than the idle timeout.
#[test]
fn connection_stays_alive_while_a_response_is_pending() {
    async fn late_server() -> Result {
        let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
        let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
        let connection = endpoint
            .accept()
            .await
            .expect("the endpoint is open")
            .await?;
        let service = tower::service_fn(|_| async {
            runtime::sleep(2 * IDLE).await;
            Ok::<_, h3::Error>(Response::new(Full::new(Bytes::from("late"))))
        });
        h3::serve(connection, service).await?;
        Ok(())
    }

    async fn patient_client() -> Result<Duration> {
        let transport = TransportConfig {
            max_idle_timeout: Some(IDLE),
            ..TransportConfig::default()
        };
        let config = ClientConfig::with_roots([identity().certificate()])?
            .alpn([h3::ALPN])
            .transport_config(transport);
        let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
        let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
        let client = h3::Client::new(connecting.await?);
        let begun = runtime::now();
        let request = Request::get("https://localhost/").body(h3::Empty)?;
        let response = client.send(request).await?;
        assert!(runtime::now() - begun >= 2 * IDLE);
        assert_eq!(response.into_body().collect().await?.to_bytes(), "late");
        // No response is expected any more.
        let reason = client.quic().closed().await;
        assert!(matches!(reason, ConnectionError::TimedOut), "{reason}");
        Ok(runtime::now() - begun)
    }

    let mut world = World::new(1);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(
        &near,
        &far,
        &"20mbit,20ms"
            .parse()
            .expect("the link specification is valid"),
    );
    far.spawn(late_server());
    let took = world.run_until_done(near.spawn(patient_client()));
    let took = took
        .expect("the task ends")
        .expect("the request is answered");
    assert!(took < 4 * IDLE, "{took:?}");
}

/// Content whose end is found later, as a file's is.
struct LateEnd {
    content: Option<Bytes>,
    end: Pin<Box<runtime::Sleep>>,
}

impl Body for LateEnd {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        if let Some(content) = self.content.take() {
            return Poll::Ready(Some(Ok(Frame::data(content))));
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(None)
    }
}

/// Answers a request for `/LENGTH/DELAY` with so many bytes, whose end is found so many microseconds later.
async fn server_of_late_ends() -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let service = tower::service_fn(|request: Request<h3::Body>| async move {
        let mut parts = request.uri().path()[1..].split('/');
        let mut number = || {
            parts
                .next()
                .expect("two numbers")
                .parse()
                .expect("a number")
        };
        let (len, delay) = (number(), number());
        let body = LateEnd {
            content: Some(Bytes::from(vec![7; len as usize])),
            end: Box::pin(runtime::sleep(Duration::from_micros(delay))),
        };
        let response = Response::builder().header("content-length", len);
        Ok::<_, Infallible>(response.body(body).expect("valid fields"))
    });
    h3::serve(connection, service).await?;
    Ok(())
}

/// Returns true if the end of a response arrives together with the last of its content.
async fn ends_with_its_content(client: &h3::Client, len: usize, delay: u64) -> Result<bool> {
    let uri = format!("https://localhost/{len}/{delay}");
    let response = client.send(Request::get(uri).body(h3::Empty)?).await?;
    let (mut body, mut left) = (response.into_body(), len);
    while left > 0 {
        let frame = body.frame().await.ok_or("too short")??;
        left -= frame.into_data().map_err(|_| "trailers")?.len();
    }
    let is_together = body.is_end_stream();
    assert!(body.frame().await.is_none());
    Ok(is_together)
}

/// Content of a known length waits a millisecond for its end, so that both share a packet, and no longer.
#[test]
fn content_waits_a_millisecond_for_its_end() {
    let mut world = World::new(1);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    let link = "20mbit,20ms".parse().expect("a link");
    world.join_machines(&near, &far, &link);
    far.spawn(server_of_late_ends());
    let asking = near.spawn(async {
        let client = client().await?;
        for (len, delay, is_together) in [
            (12, 0, true),
            (12, 900, true),
            (12, 1_100, false),
            (1_000, 900, true),
            (1_000, 1_100, false),
            (12_000, 900, true),
            // The last of its packets leave later, because the pacer spreads them.
            (12_000, 50_000, false),
        ] {
            let found = ends_with_its_content(&client, len, delay).await?;
            assert_eq!(found, is_together, "{len} bytes, {delay} us");
        }
        Result::Ok(())
    });
    world
        .run_until_done(asking)
        .expect("ends")
        .expect("answered");
}
