//! `courser perf server`, `courser perf client` and `courser perf compare`.

mod client;
mod log;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use courser::TransportConfig;
use courser::telemetry::SinkFactory;

pub(crate) use courser_perf::text::{agreed as describe_agreed, micros};

use self::log::Log;
use crate::args::{ClientArguments, CompareArguments, ServerArguments};
use crate::error::Failure;
use crate::output;
use crate::process::{RECORDS, pin, runtime, runtime_for, stop_signal};
use crate::values::DEFAULT_PORT;
use courser_measure::target::transport;
use courser_measure::tls::Identity;
use courser_measure::{CpuClock, sockets};
use courser_perf::{Figure, Pairs, PairsReport, Server, ServerOptions};

/// Runs `courser perf client` and returns its exit code.
pub(crate) fn client_main(arguments: &ClientArguments) -> Result<ExitCode, Failure> {
    pin(arguments.common.core)?;
    runtime()?.block_on(client::main(arguments))
}

/// Runs `courser perf server`.
pub(crate) fn server_main(arguments: &ServerArguments) -> Result<(), Failure> {
    pin(arguments.common.core)?;
    runtime_for(arguments.shards)?.block_on(serve(arguments))
}

/// Runs `courser perf compare` and returns its exit code. An interrupted comparison reports the pairs so far and
/// returns the exit code of a shell for SIGINT.
pub(crate) fn compare_main(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let mut figure = arguments.figure.clone().unwrap_or(Figure::Auto);
    if let Figure::Json { less_is_better, .. } = &mut figure {
        *less_is_better = arguments.less_is_better;
    }
    let pairs = Pairs {
        a: arguments.a.clone(),
        b: arguments.b.clone(),
        pairs: arguments.pairs,
        figure,
        timeout: arguments.timeout,
    };
    let on_pair = |_, report: &PairsReport| {
        if !arguments.json {
            output::line(report.last_pair());
        }
    };
    let report = runtime()?.block_on(pairs.run(on_pair, stop_signal()))?;
    output::line(if arguments.json {
        serde_json::to_string(&report).map_err(|error| Failure::new(error.to_string()))?
    } else {
        report.to_string()
    });
    let is_whole = report.pairs.len() == arguments.pairs as usize;
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        client::INTERRUPTED.into()
    })
}

async fn serve(arguments: &ServerArguments) -> Result<(), Failure> {
    let traces = RECORDS.sinks(arguments.common.qlog.as_deref(), "courser perf")?;
    let log = if arguments.common.json {
        Log::Json
    } else {
        Log::Text
    };
    let on_event = move |event| log.print(&event);
    let options = |listen| options(arguments, listen, traces.clone());
    let server = Server::bind(options(arguments.listen)?, on_event).await;
    let server = match (server, arguments.listen) {
        // Without IPv6 the default is 0.0.0.0.
        (Err(_), None) => {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT));
            Server::bind(options(Some(address))?, on_event).await?
        }
        (server, _) => server?,
    };
    if log == Log::Text {
        let endpoint = std::slice::from_ref(server.endpoint());
        sockets::warnings(endpoint).iter().for_each(output::note);
        if arguments.cert.is_none() {
            output::note("using a certificate generated in memory: clients need --insecure");
        }
    }
    let (quic, tcp) = server.addresses()?;
    server
        .endpoint()
        .set_segmentation_offload(!arguments.common.no_udp_gso);
    log.listening("quic", quic);
    if let Some(tcp) = tcp {
        log.listening("tls over tcp", tcp);
    }
    let endpoint = server.endpoint().clone();
    server.run(stop_signal()).await;
    if log == Log::Text {
        sockets::drop_warning(&[endpoint])
            .iter()
            .for_each(output::note);
    }
    Ok(())
}

fn options(
    arguments: &ServerArguments,
    listen: Option<SocketAddr>,
    sinks: Option<Arc<dyn SinkFactory>>,
) -> Result<ServerOptions, Failure> {
    let identity = match (&arguments.cert, &arguments.key) {
        (Some(cert), Some(key)) => Identity::from_files(cert, key)?,
        _ => Identity::in_memory()?,
    };
    let default = SocketAddr::from((Ipv6Addr::UNSPECIFIED, DEFAULT_PORT));
    Ok(ServerOptions {
        listen: listen.unwrap_or(default),
        identity,
        transport: TransportConfig {
            sinks,
            capacity_rise: !arguments.common.no_capacity_rise,
            ..transport(arguments.common.cc, arguments.common.mtu)
        },
        versions: Some(arguments.common.quic_version.clone()).filter(|list| !list.is_empty()),
        early_data: arguments.early_data,
        tcp: arguments.tcp,
        webtransport: arguments.webtransport,
        shards: usize::from(arguments.shards),
        clock: CpuClock::Process,
    })
}
