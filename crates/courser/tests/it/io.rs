//! Streams as tokio's readers and writers, and other features of streams.

use crate::common::{Pair, pair, pair_with, pattern, until, within};
use std::task::Poll;

use bytes::Bytes;
use courser::{
    Connection, ReadError, ReadExactError, ReadToEndError, RecvStream, SendStream, TransportConfig,
    WriteError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Creates one stream from the client to the server, with both connections.
async fn stream() -> (Pair, Connection, Connection, SendStream, RecvStream) {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("open");
    // The first byte announces the stream to the peer.
    send.write_all(b"!").await.expect("written");
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    receive.read_exact(&mut [0]).await.expect("first byte");
    (pair, client, server, send, receive)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_copy_transfers_a_whole_stream() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    let data = pattern(3, 3_000_000);
    let expected = data.clone();
    let writer = crate::common::spawn(async move {
        let copied = tokio::io::copy(&mut &data[..], &mut send)
            .await
            .expect("copied");
        assert_eq!(copied, 3_000_000);
        send.shutdown().await.expect("finished");
    });
    let mut back = Vec::new();
    within(30, tokio::io::copy(&mut receive, &mut back))
        .await
        .expect("copied");
    writer.await.expect("no panic");
    assert!(back == expected);
}

#[tokio::test]
async fn tokio_buffers_read_lines_from_streams() {
    use tokio::io::{AsyncBufReadExt, BufReader, BufWriter};
    let (_pair, _client, _server, send, receive) = stream().await;
    let mut writer = BufWriter::new(send);
    for line in 0..1000 {
        writer
            .write_all(format!("line {line}\n").as_bytes())
            .await
            .expect("written");
    }
    writer.shutdown().await.expect("flushed");
    let mut lines = BufReader::new(receive).lines();
    for line in 0..1000 {
        let read = within(10, lines.next_line()).await.expect("read");
        assert_eq!(read, Some(format!("line {line}")));
    }
    assert_eq!(lines.next_line().await.expect("read"), None);
}

#[tokio::test]
async fn chunks_arrive_without_loss() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    let data = pattern(5, 500_000);
    let expected = data.clone();
    let writer = crate::common::spawn(async move {
        let data = Bytes::from(data);
        let mut chunks: Vec<_> = (0..100)
            .map(|i| data.slice(i * 5000..(i + 1) * 5000))
            .collect();
        send.write_all_chunks(&mut chunks).await.expect("written");
        assert!(chunks.iter().all(Bytes::is_empty));
        send.finish().expect("not finished");
    });
    let mut back = Vec::new();
    let mut places: [Bytes; 4] = Default::default();
    while let Some(count) = within(10, receive.read_chunks(&mut places))
        .await
        .expect("read")
    {
        assert!((1..=4).contains(&count));
        places[..count]
            .iter()
            .for_each(|chunk| back.extend_from_slice(chunk));
    }
    assert_eq!(receive.read_chunks(&mut places).await, Ok(None));
    assert_eq!(receive.read_chunk(1).await, Ok(None));
    writer.await.expect("no panic");
    assert!(back == expected);
}

#[tokio::test]
async fn read_chunk_honours_its_limit() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    send.write_all(&pattern(1, 1000)).await.expect("written");
    send.finish().expect("not finished");
    let mut total = 0;
    while let Some(chunk) = within(10, receive.read_chunk(7)).await.expect("read") {
        assert!((1..=7).contains(&chunk.len()));
        total += chunk.len();
    }
    assert_eq!(total, 1000);
}

#[tokio::test]
async fn empty_writes_and_reads_are_harmless() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    assert_eq!(send.write(&[]).await, Ok(0));
    send.write_all(&[]).await.expect("nothing");
    send.write_chunk(Bytes::new()).await.expect("nothing");
    assert_eq!(receive.read(&mut []).await, Ok(Some(0)));
    assert_eq!(receive.read_chunks(&mut []).await, Ok(Some(0)));
    send.finish().expect("not finished");
    assert_eq!(within(10, receive.read_to_end(0)).await, Ok(Vec::new()));
}

#[tokio::test]
async fn early_end_reports_how_many_bytes_were_read() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    send.write_all(b"abc").await.expect("written");
    send.finish().expect("not finished");
    let error = within(10, receive.read_exact(&mut [0; 4])).await;
    assert_eq!(error, Err(ReadExactError::FinishedEarly(3)));
}

#[tokio::test]
async fn read_to_end_stops_at_its_limit() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    send.write_all(&[0; 101]).await.expect("written");
    send.finish().expect("not finished");
    let error = within(10, receive.read_to_end(100)).await;
    assert_eq!(error, Err(ReadToEndError::TooLong { limit: 100 }));
}

#[tokio::test]
async fn reset_reaches_the_reader_with_its_code() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    send.reset(9u32.into()).expect("open");
    let error = within(10, receive.read_chunk(10)).await;
    assert_eq!(error, Err(ReadError::Reset(9u32.into())));
    assert!(error.is_err_and(|error| error.is_reset()));
    // The result stays the same.
    assert_eq!(
        receive.read(&mut [0]).await,
        Err(ReadError::Reset(9u32.into()))
    );
    assert!(send.write(b"more").await.is_err());
    assert!(send.reset(1u32.into()).is_err());
}

#[tokio::test]
async fn stop_reaches_the_writer_with_its_code() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    let stopped = crate::common::spawn(send.stopped());
    receive.stop(5u32.into()).expect("open");
    assert!(receive.stop(5u32.into()).is_err());
    assert_eq!(receive.read(&mut [0]).await, Err(ReadError::ClosedStream));
    let code = within(10, stopped).await.expect("no panic");
    assert_eq!(code, Ok(Some(5u32.into())));
    let error = loop {
        match within(10, send.write(&[0; 1000])).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, WriteError::Stopped(_) | WriteError::ClosedStream),
        "{error:?}"
    );
}

/// Waits until the acknowledgement of the reset has made the transport discard the stream.
async fn until_discarded(send: &SendStream) {
    until(|| send.priority().is_err()).await;
}

#[tokio::test]
async fn stop_code_is_kept_for_a_late_caller() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("opened");
    send.write_all(b"unwanted").await.expect("written");
    let mut receive = within(10, server.accept_uni()).await.expect("accepted");
    receive.stop(9u32.into()).expect("open");
    until_discarded(&send).await;
    for _ in 0..2 {
        let error = within(10, send.write(b"more")).await.expect_err("stopped");
        assert_eq!(error, WriteError::Stopped(9u32.into()));
        assert_eq!(within(10, send.stopped()).await, Ok(Some(9u32.into())));
        assert_eq!(send.finish(), Ok(()), "the peer does not want the end");
    }
}

#[tokio::test]
async fn stop_code_after_finish_is_kept_too() {
    let transport = TransportConfig {
        stream_receive_window: 10_000,
        stream_receive_window_max: 10_000,
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("opened");
    // More than the peer accepts before it reads: the end is not delivered.
    send.write_all(&[0; 10_400]).await.expect("written");
    send.finish().expect("not finished");
    let mut receive = within(10, server.accept_uni()).await.expect("accepted");
    receive.stop(10u32.into()).expect("open");
    until_discarded(&send).await;
    assert_eq!(within(10, send.stopped()).await, Ok(Some(10u32.into())));
}

#[tokio::test]
async fn waiting_writer_fails_with_the_stop() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    // More than there is room for: the writer waits after the first poll.
    let more = vec![0; 100_000_000];
    let mut writing = std::pin::pin!(send.write_all(&more));
    let waits = std::future::poll_fn(|cx| Poll::Ready(writing.as_mut().poll(cx).is_pending()));
    assert!(waits.await);
    receive.stop(6u32.into()).expect("open");
    let error = within(10, writing).await.expect_err("stopped");
    assert_eq!(error, WriteError::Stopped(6u32.into()));
    assert!(error.is_stopped());
}

#[tokio::test]
async fn stopped_returns_none_to_all_tasks_after_delivery() {
    let (_pair, _client, _server, mut send, mut receive) = stream().await;
    let waiting: Vec<_> = (0..3)
        .map(|_| crate::common::spawn(send.stopped()))
        .collect();
    send.write_all(b"rest").await.expect("written");
    send.finish().expect("not finished");
    assert!(send.finish().is_err());
    assert_eq!(
        within(10, receive.read_to_end(10)).await.expect("read"),
        b"rest"
    );
    for task in waiting {
        assert_eq!(within(10, task).await.expect("no panic"), Ok(None));
    }
    assert_eq!(send.stopped().await, Ok(None));
}

#[tokio::test]
async fn priority_is_returned_as_set() {
    let (_pair, _client, _server, send, _receive) = stream().await;
    assert_eq!(send.priority(), Ok(0));
    send.set_priority(-3).expect("open");
    assert_eq!(send.priority(), Ok(-3));
}

#[tokio::test]
async fn flush_sends_without_waiting() {
    let (_pair, _client, server, mut send, mut receive) = stream().await;
    AsyncWriteExt::write_all(&mut send, b"now")
        .await
        .expect("written");
    let before = server.stats().packets_received;
    AsyncWriteExt::flush(&mut send).await.expect("sent");
    let mut buffer = [0; 3];
    within(10, AsyncReadExt::read_exact(&mut receive, &mut buffer))
        .await
        .expect("read");
    assert_eq!(&buffer, b"now");
    assert!(server.stats().packets_received > before);
}

#[tokio::test]
async fn both_ends_export_the_same_keys() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let (mut ours, mut theirs) = ([0; 32], [1; 32]);
    client
        .export_keying_material(&mut ours, b"label", b"context")
        .expect("connected");
    server
        .export_keying_material(&mut theirs, b"label", b"context")
        .expect("connected");
    assert_eq!(ours, theirs);
}

#[tokio::test]
async fn key_updates_lose_no_data() {
    let (_pair, client, server, mut send, mut receive) = stream().await;
    let data = pattern(11, 200_000);
    for (round, piece) in data.chunks(20_000).enumerate() {
        let side = if round % 2 == 0 { &client } else { &server };
        // An update may still be in progress; the next iteration begins another.
        let _ = side.force_key_update();
        send.write_all(piece).await.expect("written");
        let mut back = vec![0; piece.len()];
        within(10, receive.read_exact(&mut back))
            .await
            .expect("read");
        assert!(back == piece);
    }
    assert!(client.stats().key_updates > 0);
}

#[tokio::test]
async fn waiting_for_a_reset_fails_when_the_connection_closes() {
    let (_pair, _client, server, mut send, mut receive) = stream().await;
    send.write_all(b"part").await.expect("written");
    server.close(0u32.into(), b"");
    let error = within(10, receive.received_reset()).await;
    assert!(
        matches!(error, Err(ReadError::ConnectionLost(_))),
        "{error:?}"
    );
}
