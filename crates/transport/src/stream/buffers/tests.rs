use super::*;

fn buffers() -> Buffers {
    Buffers::new(ChunkPool::new(4), &StreamsConfig::default())
}

#[test]
fn small_buffers_are_small_and_reused() {
    let mut buffers = buffers();
    let buffer = buffers.take(1);
    assert_eq!(buffer.capacity(), MIN_BUFFER);
    let address = buffer.as_ptr();
    buffers.give(buffer);
    let again = buffers.take(10);
    assert_eq!(again.as_ptr(), address);
    assert!(again.is_empty());
}

#[test]
fn spare_buffer_grows_to_what_is_asked() {
    let mut buffers = buffers();
    buffers.give(Vec::with_capacity(64));
    assert!(buffers.take(1000).capacity() >= 1000);
    assert_eq!(buffers.spare_bytes, 0);
}

#[test]
fn spare_memory_is_bounded() {
    let mut buffers = buffers();
    for _ in 0..1000 {
        buffers.give(Vec::with_capacity(4 << 10));
        buffers.give(Vec::with_capacity(8 << 10));
    }
    assert!(buffers.spare_bytes <= SPARE_TOTAL);
    assert_eq!(buffers.spare.len() * SPARE, buffers.spare_bytes);
    buffers.shrink();
    assert_eq!(buffers.spare.capacity(), 0);
}

#[test]
fn one_medium_buffer_is_kept_and_serves_no_small_request() {
    let mut buffers = buffers();
    let buffer = buffers.take(5000);
    let address = buffer.as_ptr();
    buffers.give(buffer);
    buffers.give(Vec::with_capacity(BULK + 1));
    assert!(buffers.take(100).capacity() <= SPARE);
    let again = buffers.take(4500);
    assert_eq!(again.as_ptr(), address);
    assert!(buffers.take(4500).capacity() >= 4500);
}

#[test]
fn bulk_buffers_come_from_the_pool_and_return_when_the_last_bytes_drop() {
    let mut buffers = buffers();
    let mut buffer = buffers.take(BULK + 1);
    assert_eq!(buffer.capacity(), ChunkPool::CHUNK);
    buffer.extend_from_slice(b"hello");
    let bytes = buffers.share(buffer);
    let slice = bytes.slice(1..3);
    drop(bytes);
    assert_eq!(buffers.pool.kept(), 0);
    assert_eq!(slice, "el");
    drop(slice);
    assert_eq!(buffers.pool.kept(), 1);
}

#[test]
fn capacity_doubles_up_to_a_chunk() {
    assert_eq!(next_capacity(0, 5), 5);
    assert_eq!(next_capacity(64, 5), 128);
    assert_eq!(next_capacity(48 << 10, 5), ChunkPool::CHUNK);
    assert_eq!(next_capacity(0, 1 << 20), ChunkPool::CHUNK);
}

#[test]
fn open_chunk_fills_up_and_shared_chunk_does_not_grow() {
    let mut chunk = Chunk::Open(Vec::with_capacity(4));
    let spare = chunk.spare();
    assert_eq!(chunk.fill(&vec![7; spare + 3]), spare);
    assert_eq!((chunk.spare(), chunk.len()), (0, spare));
    let mut chunk = Chunk::Shared(Bytes::from_static(b"abc"));
    assert_eq!(
        (chunk.spare(), chunk.fill(b"d"), chunk.capacity()),
        (0, 0, 3)
    );
}
