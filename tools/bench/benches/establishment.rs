//! Establishes and ends connections on loopback, TLS and sockets included, and counts the allocations of both ends,
//! which share the one thread of the runtime. AWS-LC allocates by the C library, which is not counted.

mod common;

use common::World;
use divan::{AllocProfiler, Bencher};
use tokio::runtime::Builder;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 100, sample_size = 1)]
fn establish(bencher: Bencher<'_, '_>) {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a thread");
    let world = runtime.block_on(async { World::new() });
    // The connection that this returns ends after the measurement.
    bencher.bench_local(|| runtime.block_on(world.connect()));
}

#[divan::bench(sample_count = 100, sample_size = 1)]
fn establish_and_close(bencher: Bencher<'_, '_>) {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a thread");
    let world = runtime.block_on(async { World::new() });
    bencher.bench_local(|| {
        runtime.block_on(async {
            let connection = world.connect().await;
            connection.close(0u32.into(), b"");
            connection.closed().await
        })
    });
}
