//! Transfers whose cause is known.

use std::time::Duration;

use courser_base::{Rate, Side, Time};
use courser_recovery::Algorithm;
use courser_sim::apps::{Amount, Bulk, Exchange, Paced, Serve, TransferDirection};
use courser_trace::explain::Cause;
use courser_transport::RetryPolicy;

use super::apps::{Many, Slow};
use super::{SERVER, Setup, Traces};

/// A transfer whose cause is known.
pub struct Scenario {
    /// A short description, for the table.
    pub about: &'static str,
    /// The end whose trace is explained.
    pub side: Side,
    /// The cause that an explanation must rank first.
    pub cause: Cause,
    /// Runs the transfer with a seed.
    pub run: fn(u64) -> Traces,
}

const MS: Duration = Duration::from_millis(1);
const KB: u64 = 1000;

fn up(bytes: u64) -> Bulk {
    Bulk::new(SERVER, TransferDirection::Up, Amount::Bytes(bytes))
}

fn down(bytes: u64) -> Bulk {
    Bulk::new(SERVER, TransferDirection::Down, Amount::Bytes(bytes))
}

fn with(seed: u64, link: &str, algorithm: Algorithm) -> Setup {
    Setup::on(seed, link).both(|config| config.congestion = algorithm)
}

const fn case(about: &'static str, side: Side, cause: Cause, run: fn(u64) -> Traces) -> Scenario {
    Scenario {
        about,
        side,
        cause,
        run,
    }
}

/// All transfers.
pub const SCENARIOS: &[Scenario] = &[
    case(
        "2 kB every 20 ms on 20 Mbit/s",
        Side::Client,
        Cause::Application,
        |seed| {
            let app =
                Paced::new(SERVER, 2 * KB, MS * 20).between(Time::ZERO, Time::ZERO + MS * 3000);
            Setup::on(seed, "20mbit,rtt=40ms").run(app, Serve::new())
        },
    ),
    case("1 kB every 5 s", Side::Client, Cause::Idle, |seed| {
        let app = Paced::new(SERVER, KB, MS * 5000).between(Time::ZERO, Time::ZERO + MS * 21_000);
        Setup::on(seed, "20mbit,rtt=40ms").run(app, Serve::new())
    }),
    case(
        "stream window of 64 KiB at 100 ms",
        Side::Client,
        Cause::StreamFlowControl,
        |seed| {
            Setup::on(seed, "100mbit,rtt=100ms")
                .server(|config| {
                    config.stream_receive_window = 65_536;
                    config.stream_receive_window_max = 65_536;
                })
                .run(up(1500 * KB), Serve::new())
        },
    ),
    case(
        "connection window of 64 KiB at 100 ms",
        Side::Client,
        Cause::ConnectionFlowControl,
        |seed| {
            Setup::on(seed, "100mbit,rtt=100ms")
                .server(|config| {
                    config.receive_window = 65_536;
                    config.receive_window_max = 65_536;
                })
                .run(up(1500 * KB), Serve::new())
        },
    ),
    case(
        "application of the server reads 1.6 Mbit/s",
        Side::Client,
        Cause::SlowReader,
        |seed| {
            let slow = Slow::new().reading(2000);
            Setup::on(seed, "100mbit,rtt=20ms").run(up(1000 * KB), slow)
        },
    ),
    case(
        "application of the server reads 1.6 Mbit/s",
        Side::Server,
        Cause::SlowReader,
        |seed| {
            let slow = Slow::new().reading(2000);
            Setup::on(seed, "100mbit,rtt=20ms").run(up(1000 * KB), slow)
        },
    ),
    case(
        "one stream at a time, 40 requests at 100 ms",
        Side::Client,
        Cause::StreamLimit,
        |seed| {
            Setup::on(seed, "100mbit,rtt=100ms")
                .server(|config| config.max_bidi_streams = 1)
                .run(Many::new(SERVER, 40), Serve::new())
        },
    ),
    case(
        "CUBIC on 10 Mbit/s, queue of 1 BDP",
        Side::Client,
        Cause::Bottleneck,
        |seed| {
            with(seed, "10mbit,rtt=40ms,queue=1bdp", Algorithm::Cubic)
                .run(up(6000 * KB), Serve::new())
        },
    ),
    case(
        "NewReno on 10 Mbit/s, queue of 500 ms",
        Side::Client,
        Cause::Bottleneck,
        |seed| {
            with(seed, "10mbit,rtt=40ms,queue=500ms", Algorithm::NewReno)
                .run(up(6000 * KB), Serve::new())
        },
    ),
    case(
        "BBR on 10 Mbit/s, queue of 2 BDP",
        Side::Client,
        Cause::Bottleneck,
        |seed| {
            with(seed, "10mbit,rtt=40ms,queue=2bdp", Algorithm::Bbr)
                .run(up(6000 * KB), Serve::new())
        },
    ),
    case(
        "20 Mbit/s fall to 2 Mbit/s",
        Side::Client,
        Cause::Bottleneck,
        |seed| {
            Setup::on(seed, "20mbit,rtt=40ms,queue=100ms,rate@1s=2mbit")
                .run(up(4000 * KB), Serve::new())
        },
    ),
    case(
        "download on 10 Mbit/s",
        Side::Client,
        Cause::Bottleneck,
        |seed| {
            with(seed, "10mbit,rtt=40ms,queue=1bdp", Algorithm::Cubic)
                .run(down(6000 * KB), Serve::new())
        },
    ),
    case(
        "CUBIC, 2 % random loss",
        Side::Client,
        Cause::Loss,
        |seed| {
            with(
                seed,
                "100mbit,rtt=40ms,loss=2%;100mbit,rtt=40ms",
                Algorithm::Cubic,
            )
            .run(up(3000 * KB), Serve::new())
        },
    ),
    case(
        "NewReno, 1 % random loss",
        Side::Client,
        Cause::Loss,
        |seed| {
            with(
                seed,
                "100mbit,rtt=40ms,loss=1%;100mbit,rtt=40ms",
                Algorithm::NewReno,
            )
            .run(up(4000 * KB), Serve::new())
        },
    ),
    case(
        "download with 2 % random loss",
        Side::Client,
        Cause::Loss,
        |seed| {
            with(
                seed,
                "100mbit,rtt=40ms;100mbit,rtt=40ms,loss=2%",
                Algorithm::Cubic,
            )
            .run(down(3000 * KB), Serve::new())
        },
    ),
    case(
        "policer at 10 Mbit/s on 100 Mbit/s",
        Side::Client,
        Cause::Policer,
        |seed| {
            with(
                seed,
                "100mbit,rtt=40ms,policer=10mbit:64k;100mbit,rtt=40ms",
                Algorithm::Cubic,
            )
            .run(up(5000 * KB), Serve::new())
        },
    ),
    case(
        "300 kB at 200 ms without a limit",
        Side::Client,
        Cause::SlowStart,
        |seed| Setup::on(seed, "1gbit,rtt=200ms").run(up(300 * KB), Serve::new()),
    ),
    case(
        "download of 300 kB at 200 ms",
        Side::Client,
        Cause::SlowStart,
        |seed| Setup::on(seed, "1gbit,rtt=200ms").run(down(300 * KB), Serve::new()),
    ),
    case(
        "rate limited to 5 Mbit/s by its configuration",
        Side::Client,
        Cause::Pacing,
        |seed| {
            Setup::on(seed, "100mbit,rtt=40ms")
                .client(|config| config.max_send_rate = Some(Rate::from_bytes_per_second(625_000)))
                .run(up(2000 * KB), Serve::new())
        },
    ),
    case(
        "one small request at 300 ms",
        Side::Client,
        Cause::Handshake,
        |seed| Setup::on(seed, "10mbit,rtt=300ms").run(up(10), Serve::new()),
    ),
    case(
        "first packets of the client are lost",
        Side::Client,
        Cause::Handshake,
        |seed| {
            Setup::on(seed, "10mbit,rtt=40ms,first=2;10mbit,rtt=40ms")
                .run(up(50 * KB), Serve::new())
        },
    ),
    case("Retry at 300 ms", Side::Client, Cause::Handshake, |seed| {
        Setup::on(seed, "10mbit,rtt=300ms")
            .host(|spec| spec.retry = RetryPolicy::Always)
            .run(up(10 * KB), Serve::new())
    }),
    case(
        "client is silent for 8 s after its first flight",
        Side::Server,
        Cause::Amplification,
        |seed| {
            Setup::on(seed, "10mbit,rtt=40ms,blackhole=5ms:8s;10mbit,rtt=40ms")
                .both(|config| config.handshake_timeout = MS * 40_000)
                .run(up(10 * KB), Serve::new())
        },
    ),
    case("outage of 4 s", Side::Client, Cause::Blackout, |seed| {
        Setup::on(seed, "20mbit,rtt=40ms,blackhole=500ms:4s").run(up(4000 * KB), Serve::new())
    }),
    case(
        "outage without an end",
        Side::Client,
        Cause::Blackout,
        |seed| {
            Setup::on(seed, "20mbit,rtt=40ms,blackhole=500ms:600s")
                .both(|config| config.max_idle_timeout = Some(MS * 10_000))
                .run(up(4000 * KB), Serve::new())
        },
    ),
    case(
        "single packets, 60 % of them lost",
        Side::Client,
        Cause::ProbeTimeout,
        |seed| {
            let app = Exchange::new(SERVER, 200, 200, Some(40));
            Setup::on(seed, "20mbit,rtt=10ms,loss=60%:1;20mbit,rtt=10ms").run(app, Serve::new())
        },
    ),
    case(
        "10 % of packets 40 ms late",
        Side::Client,
        Cause::Reordering,
        |seed| {
            with(
                seed,
                "100mbit,rtt=40ms,reorder=10%:40ms;100mbit,rtt=40ms",
                Algorithm::Cubic,
            )
            .run(up(3000 * KB), Serve::new())
        },
    ),
    case(
        "path MTU falls from 1500 to 1280 without a report",
        Side::Client,
        Cause::PathMtu,
        |seed| {
            Setup::on(seed, "1gbit,rtt=10ms,mtu=1500,mtu@40ms=1280;1gbit,rtt=10ms")
                .run(up(200 * KB), Serve::new())
        },
    ),
    case(
        "client changes its address every 1.5 s, at 200 ms",
        Side::Server,
        Cause::PathChange,
        |seed| {
            Setup::on(seed, "1gbit,rtt=200ms,rebind=addr:700ms:1500ms")
                .run(down(6000 * KB), Serve::new())
        },
    ),
    case(
        "CUBIC, CoDel that marks (ECN)",
        Side::Client,
        Cause::Ecn,
        |seed| {
            with(
                seed,
                "10mbit,rtt=40ms,queue=1s,aqm=codel-ecn;10mbit,rtt=40ms",
                Algorithm::Cubic,
            )
            .run(up(5000 * KB), Serve::new())
        },
    ),
    case("Prague, L4S queue", Side::Client, Cause::Ecn, |seed| {
        with(
            seed,
            "10mbit,rtt=40ms,queue=1s,aqm=l4s;10mbit,rtt=40ms",
            Algorithm::Prague,
        )
        .run(up(5000 * KB), Serve::new())
    }),
    case(
        "server needs 1 s for a response",
        Side::Client,
        Cause::PeerApplication,
        |seed| {
            let slow = Slow::new().answering(MS * 1000, 50_000);
            Setup::on(seed, "100mbit,rtt=20ms").run(Exchange::new(SERVER, 100, 0, Some(3)), slow)
        },
    ),
    case(
        "server writes 4 Mbit/s on 100 Mbit/s",
        Side::Server,
        Cause::Application,
        |seed| {
            let slow = Slow::new().answering(MS, 1_000_000).writing(5000);
            Setup::on(seed, "100mbit,rtt=20ms").run(Exchange::new(SERVER, 100, 0, Some(1)), slow)
        },
    ),
    case(
        "download with a stream window of 64 KiB at 100 ms",
        Side::Client,
        Cause::StreamFlowControl,
        |seed| {
            Setup::on(seed, "100mbit,rtt=100ms")
                .client(|config| {
                    config.stream_receive_window = 65_536;
                    config.stream_receive_window_max = 65_536;
                })
                .run(down(1500 * KB), Serve::new())
        },
    ),
    case(
        "download, outage of 4 s",
        Side::Client,
        Cause::Blackout,
        |seed| {
            Setup::on(seed, "20mbit,rtt=40ms,blackhole=500ms:4s").run(down(4000 * KB), Serve::new())
        },
    ),
    case(
        "voice: 160 bytes every 20 ms",
        Side::Client,
        Cause::Application,
        |seed| {
            let app = Paced::new(SERVER, 160, MS * 20).between(Time::ZERO, Time::ZERO + MS * 4000);
            Setup::on(seed, "2mbit,rtt=60ms,loss=1%").run(app, Serve::new())
        },
    ),
    case(
        "BBR on 50 Mbit/s, 1 % random loss",
        Side::Client,
        Cause::Bottleneck,
        |seed| {
            with(
                seed,
                "50mbit,rtt=30ms,queue=2bdp,loss=1%;50mbit,rtt=30ms",
                Algorithm::Bbr,
            )
            .run(up(12_000 * KB), Serve::new())
        },
    ),
    case(
        "NewReno on 5 Mbit/s, queue of 30 packets",
        Side::Client,
        Cause::Bottleneck,
        |seed| {
            with(seed, "5mbit,rtt=80ms,queue=30p", Algorithm::NewReno)
                .run(up(4000 * KB), Serve::new())
        },
    ),
    case(
        "download on 5 Mbit/s, sender's trace",
        Side::Server,
        Cause::Bottleneck,
        |seed| {
            with(
                seed,
                "20mbit,rtt=60ms;5mbit,rtt=60ms,queue=1bdp",
                Algorithm::Cubic,
            )
            .run(down(4000 * KB), Serve::new())
        },
    ),
    case("losses in bursts", Side::Client, Cause::Loss, |seed| {
        with(
            seed,
            "100mbit,rtt=60ms,gilbert=1%:40%:60%:0%;100mbit,rtt=60ms",
            Algorithm::Cubic,
        )
        .run(up(3000 * KB), Serve::new())
    }),
    case(
        "stream window of 256 KiB at 600 ms (satellite)",
        Side::Client,
        Cause::StreamFlowControl,
        |seed| {
            Setup::on(seed, "50mbit,rtt=600ms")
                .server(|config| config.stream_receive_window_max = 262_144)
                .run(up(6000 * KB), Serve::new())
        },
    ),
    case(
        "server writes 0.8 Mbit/s on 50 Mbit/s",
        Side::Server,
        Cause::Application,
        |seed| {
            let slow = Slow::new().answering(MS, 600_000).writing(1000);
            Setup::on(seed, "50mbit,rtt=40ms").run(Exchange::new(SERVER, 100, 0, Some(1)), slow)
        },
    ),
    case(
        "three requests, 800 ms for each response",
        Side::Client,
        Cause::PeerApplication,
        |seed| {
            let slow = Slow::new().answering(MS * 800, 2000);
            Setup::on(seed, "20mbit,rtt=50ms").run(Exchange::new(SERVER, 400, 0, Some(3)), slow)
        },
    ),
    case(
        "two outages of 2 s",
        Side::Client,
        Cause::Blackout,
        |seed| {
            Setup::on(seed, "10mbit,rtt=50ms,blackhole=400ms:2s:3s")
                .run(up(1500 * KB), Serve::new())
        },
    ),
    case(
        "capped at 1 Mbit/s, 50 Mbit/s path",
        Side::Client,
        Cause::Pacing,
        |seed| {
            Setup::on(seed, "50mbit,rtt=25ms")
                .client(|config| config.max_send_rate = Some(Rate::from_bytes_per_second(125_000)))
                .run(up(400 * KB), Serve::new())
        },
    ),
    case(
        "policer at 5 Mbit/s, NewReno",
        Side::Client,
        Cause::Policer,
        |seed| {
            with(
                seed,
                "50mbit,rtt=30ms,policer=5mbit:32k;50mbit,rtt=30ms",
                Algorithm::NewReno,
            )
            .run(up(3000 * KB), Serve::new())
        },
    ),
    case(
        "5 % of packets 60 ms late, NewReno",
        Side::Client,
        Cause::Reordering,
        |seed| {
            with(
                seed,
                "50mbit,rtt=30ms,reorder=5%:60ms;50mbit,rtt=30ms",
                Algorithm::NewReno,
            )
            .run(up(2000 * KB), Serve::new())
        },
    ),
    // Without losses the window is large enough for 100 Mbit/s.
    case(
        "BBR, stream window of 1.1 BDP, 3 % random loss",
        Side::Client,
        Cause::HeadOfLine,
        |seed| {
            with(
                seed,
                "100mbit,rtt=40ms,loss=3%;100mbit,rtt=40ms",
                Algorithm::Bbr,
            )
            .server(|config| {
                config.stream_receive_window = 550_000;
                config.stream_receive_window_max = 550_000;
            })
            .run(up(8000 * KB), Serve::new())
        },
    ),
    case(
        "application of the server reads 1.6 Mbit/s, 0.5 % loss",
        Side::Client,
        Cause::SlowReader,
        |seed| {
            let slow = Slow::new().reading(2000);
            let link = "100mbit,rtt=20ms,loss=0.5%;100mbit,rtt=20ms";
            Setup::on(seed, link).run(up(1500 * KB), slow)
        },
    ),
    case(
        "application of the server reads 1.6 Mbit/s, 0.5 % loss",
        Side::Server,
        Cause::SlowReader,
        |seed| {
            let slow = Slow::new().reading(2000);
            let link = "100mbit,rtt=20ms,loss=0.5%;100mbit,rtt=20ms";
            Setup::on(seed, link).run(up(1500 * KB), slow)
        },
    ),
];
