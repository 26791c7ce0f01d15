//! Transfers and small responses over one connection on loopback, TLS and sockets included. Both ends are in this
//! process, on a runtime with two threads.

mod common;

use common::{World, exchange};
use courser_quic::Connection;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

fn main() {
    divan::main();
}

/// One stream from the server to the client.
#[divan::bench(args = [64 * KB, MB, 5 * MB, 10 * MB, 32 * MB, 100 * MB], sample_count = 20, sample_size = 1)]
fn download(bencher: Bencher<'_, '_>, len: usize) {
    let (runtime, connection) = connected();
    bencher
        .counter(BytesCount::new(len))
        .bench_local(|| runtime.block_on(exchange(&connection, 0, len)));
}

/// One stream from the client to the server.
#[divan::bench(args = [64 * KB, MB, 5 * MB, 10 * MB, 32 * MB, 100 * MB], sample_count = 20, sample_size = 1)]
fn upload(bencher: Bencher<'_, '_>, len: usize) {
    let (runtime, connection) = connected();
    bencher
        .counter(BytesCount::new(len))
        .bench_local(|| runtime.block_on(exchange(&connection, len, 0)));
}

/// Responses of one byte, all requested at once.
#[divan::bench(args = [1, 10_000], sample_count = 20, sample_size = 1)]
fn responses_of_one_byte(bencher: Bencher<'_, '_>, count: usize) {
    let (runtime, connection) = connected();
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        runtime.block_on(async {
            let mut requests = JoinSet::new();
            for _ in 0..count {
                let connection = connection.clone();
                requests.spawn(async move { exchange(&connection, 0, 1).await });
            }
            requests.join_all().await
        });
    });
}

fn connected() -> (Runtime, Connection) {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads");
    let connection = runtime.block_on(async { World::new().connect().await });
    (runtime, connection)
}

const KB: usize = 1000;
const MB: usize = 1_000_000;
