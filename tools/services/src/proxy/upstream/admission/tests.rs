use std::net::IpAddr;

use super::*;

fn admission(capacity: usize, queue: usize) -> Arc<Admission> {
    let longest_wait = Duration::from_secs(10);
    Arc::new(Admission::new(capacity, queue, longest_wait))
}

fn client(address: &str) -> Option<ScopedIp> {
    let address: IpAddr = address.parse().expect(address);
    Some(address.into())
}

/// Admits requests of one client until the next one has to wait.
async fn fill(admission: &Arc<Admission>, address: &str) -> Vec<Permit> {
    let mut permits = Vec::new();
    loop {
        let admitted = admission.admit(client(address));
        match tokio::time::timeout(Duration::ZERO, admitted).await {
            Ok(permit) => permits.push(permit.expect("admitted")),
            Err(_) => return permits,
        }
    }
}

/// Starts requests of a client that wait in the queue.
async fn wait(
    admission: &Arc<Admission>,
    address: &'static str,
    count: usize,
) -> Vec<tokio::task::JoinHandle<Result<Permit, Cause>>> {
    let before = admission.stats().waiting;
    let start = |_| {
        let admission = admission.clone();
        tokio::spawn(async move { admission.admit(client(address)).await })
    };
    let waiting = (0..count).map(start).collect();
    while admission.stats().waiting < before + count {
        tokio::task::yield_now().await;
    }
    waiting
}

/// Attack A220.
#[tokio::test(start_paused = true)]
async fn one_address_leaves_a_fifth_to_others() {
    let admission = admission(100, 100);
    let first = fill(&admission, "192.0.2.1").await;
    assert_eq!(first.len(), 78);
    assert!(!fill(&admission, "198.51.100.1").await.is_empty());
    let network: Vec<_> = [fill(&admission, "192.0.2.2").await].into();
    assert!(network.len() + first.len() < 100);
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_are_bounded_in_number_by_source_and_in_time() {
    let admission = admission(1, 8);
    let only = fill(&admission, "192.0.2.1").await;
    assert_eq!(only.len(), 1);
    let waiting = wait(&admission, "192.0.2.1", 6).await;
    let refused = admission.admit(client("192.0.2.1")).await;
    assert_eq!(refused.expect_err("its share"), Cause::UpstreamBusy);
    let others = wait(&admission, "198.51.100.1", 2).await;
    let refused = admission.admit(client("203.0.113.1")).await;
    assert_eq!(refused.expect_err("full"), Cause::UpstreamBusy);
    for late in waiting.into_iter().chain(others) {
        let late = late.await.expect("no panic");
        assert_eq!(late.expect_err("late"), Cause::UpstreamQueueTimeout);
    }
    let stats = admission.stats();
    assert_eq!((stats.waiting, stats.refused, stats.timed_out), (0, 2, 8));
    let queue = &admission.table.lock().queue;
    assert!(queue.by_source.is_empty() && queue.turns.is_empty());
    assert_eq!((queue.counts.total, queue.counts.by_source.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn sources_take_turns() {
    let admission = admission(1, 100);
    let held = fill(&admission, "192.0.2.1").await;
    let (send, mut order) = tokio::sync::mpsc::unbounded_channel();
    for (address, count) in [("192.0.2.1", 20), ("198.51.100.1", 2)] {
        let before = admission.stats().waiting;
        for _ in 0..count {
            let (admission, send) = (admission.clone(), send.clone());
            tokio::spawn(async move {
                let permit = admission.admit(client(address)).await;
                let _ = send.send(address);
                drop(permit);
            });
        }
        while admission.stats().waiting < before + count {
            tokio::task::yield_now().await;
        }
    }
    drop((held, send));
    let mut turns = Vec::new();
    while let Some(address) = order.recv().await {
        turns.push(address);
    }
    let few = |turns: &[&str]| turns.iter().filter(|it| **it == "198.51.100.1").count();
    assert_eq!((turns.len(), few(&turns), few(&turns[..4])), (22, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn requests_that_leave_free_their_places() {
    let admission = admission(1, 4);
    let held = fill(&admission, "192.0.2.1").await;
    let waiting = wait(&admission, "192.0.2.1", 3).await;
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    for aborted in waiting {
        assert!(aborted.await.is_err());
    }
    assert_eq!(admission.stats().waiting, 0);
    let mut last = wait(&admission, "192.0.2.1", 1).await;
    drop(held);
    let permit = last.remove(0).await.expect("no panic");
    drop(permit.expect("the only one"));
    let table = admission.table.lock();
    assert_eq!(
        (table.admitted.total, table.admitted.by_source.len()),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn larger_capacity_admits_waiting_requests() {
    let admission = admission(0, 100);
    let waiting = wait(&admission, "192.0.2.1", 5).await;
    admission.set_capacity(4);
    tokio::task::yield_now().await;
    let admitted = waiting.iter().filter(|it| it.is_finished()).count();
    assert_eq!(
        (admitted, admission.stats().waiting),
        (3, 2),
        "its share of 4"
    );
}
