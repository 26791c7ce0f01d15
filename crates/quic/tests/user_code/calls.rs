//! Every public function of an endpoint, a connection and its streams.

use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use courser::{AddressFilter, Algorithm, Connection, DatagramOptions, Direction, Endpoint, Rate};

/// Polls a future once, and drops it even if it is pending.
fn poll<F: Future>(future: F) -> Option<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

/// Calls all functions that neither close nor move the connection.
pub(crate) fn call_everything(connection: &Connection, endpoint: &Endpoint) {
    call_connection(connection);
    call_streams(connection);
    call_endpoint(endpoint);
}

fn call_connection(connection: &Connection) {
    connection.stats();
    connection.rtt();
    connection.side();
    connection.stable_id();
    connection.remote_address();
    connection.local_ip();
    connection.close_reason();
    connection.handshake_data();
    connection.peer_identity();
    connection.early_data();
    connection.is_authenticated();
    connection.max_datagram_size();
    connection.datagram_send_buffer_space();
    let _ = connection.export_keying_material(&mut [0; 32], b"EXPORTER-test", b"");
    let _ = connection.force_key_update();
    connection.set_congestion_controller(Algorithm::Bbr);
    connection.set_congestion_controller(Algorithm::Cubic);
    connection.keep_alive_while_busy(false);
    connection.set_sink(None);
    connection.set_max_concurrent_streams(Direction::Bidirectional, 100);
    connection.set_receive_window(1 << 20);
    connection.set_send_buffer_max(1 << 20);
    let _ = connection.send_datagram(Bytes::from_static(b"x"));
    let options = DatagramOptions::new().max_age(Duration::from_secs(1));
    let _ = connection.send_datagram_with(Bytes::from_static(b"x"), options);
    if let Ok(fate) = connection.send_datagram_tracked(Bytes::from_static(b"x"), options) {
        poll(fate);
    }
    poll(connection.send_datagram_wait(Bytes::from_static(b"x")));
    poll(connection.read_datagram());
    poll(connection.ping());
    poll(connection.closed());
    poll(connection.authenticated());
    poll(connection.migrate([127, 0, 0, 1].into()));
}

fn call_streams(connection: &Connection) {
    poll(connection.accept_bi());
    poll(connection.accept_uni());
    let Some(Ok((mut send, mut receive))) = poll(connection.open_bi()) else {
        return;
    };
    let _ = send.set_priority(1);
    let _ = send.priority();
    let _ = send.set_max_send_rate(Some(Rate::from_bytes_in(1 << 20, Duration::from_secs(1))));
    let _ = send.set_deadline(Some(Duration::from_secs(5)), 1u32.into());
    poll(send.write(b"x"));
    poll(send.write_chunk(Bytes::from_static(&[1; 2000])));
    send.flush();
    let _ = send.stats();
    poll(send.stopped());
    poll(send.acknowledged());
    poll(send.blocked());
    poll(receive.read_chunk(10));
    poll(receive.read_chunks(&mut [Bytes::new()]));
    poll(receive.read(&mut [0; 10]));
    let _ = receive.stats();
    let _ = receive.stop(1u32.into());
    let _ = send.reset_at(1u32.into(), 1);
    let _ = send.reset(1u32.into());
    if let Some(Ok(mut send)) = poll(connection.open_uni()) {
        let _ = send.finish();
    }
}

fn call_endpoint(endpoint: &Endpoint) {
    endpoint.stats();
    endpoint.shard_stats();
    endpoint.shard_count();
    endpoint.open_connections();
    endpoint.socket_counters();
    endpoint.receive_overflow();
    endpoint.capabilities();
    endpoint.set_segmentation_offload(true);
    endpoint.set_address_filter(AddressFilter::default());
    endpoint.set_busy(false);
    let _ = endpoint.set_server_config(None);
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
    drop(endpoint.connect(nowhere, "localhost"));
    poll(endpoint.accept());
    poll(endpoint.wait_idle());
    let _ = endpoint.local_addr();
}
