use super::*;

#[test]
fn latest_returned_buffer_is_reused_first() {
    let pool = ChunkPool::new(2);
    let (first, second) = (pool.take(), pool.take());
    let address = second.as_ptr();
    pool.give(first);
    pool.give(second);
    assert_eq!(pool.kept(), 2);
    let warmest = pool.take();
    assert_eq!(warmest.as_ptr(), address);
}

#[test]
fn pool_keeps_limited_number_and_only_whole_chunks() {
    let pool = ChunkPool::new(1);
    pool.give(Vec::with_capacity(10));
    assert_eq!(pool.kept(), 0);
    pool.give(pool.take());
    pool.give(Vec::with_capacity(ChunkPool::CHUNK));
    pool.give(Vec::with_capacity(ChunkPool::CHUNK));
    assert_eq!(pool.kept(), 1);
}

#[test]
fn buffer_comes_back_empty_and_clones_share() {
    let pool = ChunkPool::new(4);
    let mut chunk = pool.clone().take();
    chunk.extend_from_slice(b"secret");
    pool.clone().give(chunk);
    let chunk = pool.take();
    assert!(chunk.is_empty());
    assert_eq!(chunk.capacity(), ChunkPool::CHUNK);
}
