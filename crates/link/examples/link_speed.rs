//! Measures the packets per second of a link on one core.
//!
//! `cargo run --profile dist -p courser-link --example link_speed [link] [packets]`

#![expect(clippy::disallowed_methods, reason = "measures real time")]

use std::env;
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser_base::{Ecn, Time};
use courser_link::{Link, LinkSpec, Packet};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = env::args().nth(1);
    let text = text.as_deref().unwrap_or("10gbit,20ms,1%,queue=1bdp");
    let count: u64 = env::args().nth(2).map_or(Ok(10_000_000), |n| n.parse())?;
    let spec: LinkSpec = text.parse()?;
    let mut link = Link::new(&spec, 1);
    let payload = Bytes::from(vec![0; 1_200]);
    // Slightly more than the rate, because headers are added, so that the queue is always in use.
    let gap = spec
        .rate
        .map_or(Duration::from_micros(1), |rate| rate.time_for(1_200));

    let start = Instant::now();
    let mut now = Time::ZERO;
    let mut received = 0_u64;
    for _ in 0..count {
        now += gap;
        let packet = Packet {
            source: ([10, 0, 0, 1], 1).into(),
            destination: ([10, 0, 0, 2], 2).into(),
            ecn: Ecn::Ect0,
            payload: payload.clone(),
        };
        link.send(now, packet);
        while link.next_time().is_some_and(|next| next <= now) {
            received += u64::from(link.poll(now).is_some());
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{text}");
    println!(
        "{:.2} million packets/s in, {received} of {count} out",
        count as f64 / seconds / 1e6
    );
    println!("{:?}", link.stats());
    Ok(())
}
