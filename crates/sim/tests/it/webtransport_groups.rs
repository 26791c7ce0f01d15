//! Live media over a session of WebTransport whose path carries half of it: each group begins to arrive at once, the newest
//! one arrives whole, and old ones are reset (`webtransport-groups`).

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use courser::webtransport::{
    self, ApplicationCode, Config, ReadError, SendStream, Session, SessionRequest,
};
use courser::{ClientConfig, Endpoint, ServerConfig, Side, h3, runtime};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Five seconds, in which the send buffer does not fill.
const GROUPS: u64 = 50;
const FRAMES: usize = 10;
/// A group each time makes 2 Mbit/s.
const FRAME: usize = 2500;
const INTERVAL: Duration = Duration::from_millis(100);
/// The age at which a group is given up.
const MAX_AGE: Duration = Duration::from_millis(500);
const OLD: u32 = 11;

/// The end of groups that are too old.
#[derive(Clone, Copy)]
enum Ending {
    /// The transport resets them.
    Deadlines,
    /// The publisher resets those that are not acknowledged.
    Writers,
}

async fn write(group: &mut SendStream, number: u64) -> Result {
    group.write_all(&number.to_be_bytes()).await?;
    for _ in 0..FRAMES {
        group.write_chunk(Bytes::from(vec![7; FRAME])).await?;
    }
    Ok(group.finish()?)
}

/// Publishes a track: a stream for each group, the newest first.
async fn publish(session: Session, groups: u64, ending: Ending) -> Result {
    for number in 0..groups {
        let mut group = session.open_uni().await?;
        group.set_order(i64::try_from(number)?)?;
        if matches!(ending, Ending::Deadlines) {
            group.set_deadline(Some(MAX_AGE), OLD)?;
        }
        runtime::spawn(async move {
            match ending {
                // Dropping the handle leaves the deadline.
                Ending::Deadlines => write(&mut group, number).await,
                Ending::Writers => {
                    // A group that the send buffer has taken whole holds a place of the limit on streams: forgotten, it would
                    // delay the opening of later ones.
                    let delivered = async {
                        write(&mut group, number).await?;
                        group.stopped().await?;
                        Result::Ok(())
                    };
                    match runtime::timeout(MAX_AGE, delivered).await {
                        Ok(result) => result,
                        Err(_) => Ok(group.reset(OLD)?),
                    }
                }
            }
        });
        runtime::sleep(INTERVAL).await;
    }
    session.closed().await;
    Ok(())
}

async fn server(groups: u64, ending: Ending) -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    let incoming = endpoint.accept().await.ok_or("closed")?;
    let service = tower::service_fn(move |mut request| async move {
        let upgrade = webtransport::upgrade(&mut request);
        let accepted = upgrade.accept(move |session| publish(session, groups, ending));
        let response: http::Response<h3::Empty> = accepted.await;
        Ok::<_, Infallible>(response)
    });
    let mut settings = h3::Config::new(Side::Server);
    webtransport::enable(&mut settings, Side::Server, Config::new())?;
    h3::serve(incoming.await?, service).config(settings).await?;
    Ok(())
}

/// What a subscriber has seen.
#[derive(Debug, Default)]
struct Seen {
    /// The delay of the first frame of each group.
    begun: Vec<Duration>,
    whole: Vec<u64>,
    reset: u64,
}

async fn subscribe(groups: u64) -> Result<Seen> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn([h3::ALPN]);
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
    let mut settings = h3::Config::new(Side::Client);
    webtransport::enable(&mut settings, Side::Client, Config::new())?;
    let client = h3::Client::with_config(connecting.await?, settings);
    let request = SessionRequest::new("https://localhost/live".parse()?);
    let session = webtransport::connect(&client, request).await?;
    let began = runtime::now();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut tasks = Vec::new();
    for _ in 0..groups {
        let mut group = session.accept_uni().await?;
        let seen = seen.clone();
        tasks.push(runtime::spawn(async move {
            let mut all = Vec::new();
            let number = |all: &[u8]| {
                let number = all.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
                number.unwrap_or_default()
            };
            let end = loop {
                match group.read_chunk(usize::MAX).await {
                    Ok(Some(chunk)) => {
                        let had = all.len();
                        all.extend_from_slice(&chunk);
                        if had < 8 + FRAME && all.len() >= 8 + FRAME {
                            let published = INTERVAL * u32::try_from(number(&all))?;
                            let delay = (runtime::now() - began).saturating_sub(published);
                            seen.lock().map_err(|_| "poisoned")?.begun.push(delay);
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            let mut seen = seen.lock().map_err(|_| "poisoned")?;
            match end {
                Ok(()) => {
                    assert_eq!(all.len(), 8 + FRAMES * FRAME);
                    seen.whole.push(number(&all));
                }
                Err(error) => {
                    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(OLD))));
                    seen.reset += 1;
                }
            }
            Result::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    session.close(0, "");
    let seen = std::mem::take(&mut *seen.lock().map_err(|_| "poisoned")?);
    Ok(seen)
}

fn watch(seed: u64, groups: u64, ending: Ending) -> Seen {
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    let link = "1mbit,rtt=40ms,queue=2bdp".parse().expect("a link");
    world.join_machines(&near, &far, &link);
    far.spawn(server(groups, ending));
    let seen = world
        .run_until_done(near.spawn(subscribe(groups)))
        .expect("no deadlock")
        .expect("no error");
    let whole = seen.whole.len() as u64;
    assert_eq!(whole + seen.reset, groups, "{seen:?}");
    assert!(seen.whole.contains(&(groups - 1)), "the newest: {seen:?}");
    seen
}

/// Checks how many groups began within two intervals.
fn assert_prompt(seen: &Seen, least: u64) {
    let is_prompt = |delay: &&Duration| **delay <= 2 * INTERVAL;
    let prompt = seen.begun.iter().filter(is_prompt).count() as u64;
    assert!(prompt >= least, "{prompt} of {least}: {seen:?}");
}

#[test]
fn newest_group_arrives_whole_over_half_of_the_rate_and_old_ones_are_reset() {
    for_each_seed(5, |seed| {
        let seen = watch(seed, GROUPS, Ending::Deadlines);
        // Each group takes twice the time until the next one, which then precedes it.
        assert!(seen.reset >= GROUPS * 3 / 4, "{seen:?}");
        assert_prompt(&seen, GROUPS * 9 / 10);
    });
}

/// Old groups fill the send buffer, and the newest one is written all the same.
#[test]
fn newest_group_arrives_whole_while_old_ones_fill_the_send_buffer() {
    for_each_seed(5, |seed| {
        let groups = 3 * GROUPS;
        let seen = watch(seed, groups, Ending::Writers);
        assert!(seen.reset >= groups / 3, "{seen:?}");
        assert_prompt(&seen, groups * 9 / 10);
    });
}
