//! What programs may use in a world: intervals, blocking work, files.

use std::collections::BTreeMap;
use std::time::Duration;

use courser::runtime;
use courser_sim::World;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn ticks_of_an_interval_follow_virtual_time() -> Result {
    let mut world = World::new(1);
    let machine = world.machine("clock", [10, 0, 0, 1]);
    let times = machine.spawn(async {
        let begin = runtime::now();
        let mut ticks = runtime::interval(SECOND);
        let mut times = Vec::new();
        for _ in 0..4 {
            let due = ticks.tick().await;
            times.push((due - begin, runtime::now() - begin));
            // The third tick is late, and the fourth is not.
            runtime::sleep(if times.len() == 2 {
                SECOND * 3 / 2
            } else {
                SECOND / 10
            })
            .await;
        }
        times
    });
    let at = Duration::from_millis;
    let expected = [(0, 0), (1000, 1000), (2000, 2500), (3000, 3000)];
    let expected = expected.map(|(due, taken)| (at(due), at(taken)));
    assert_eq!(world.run_until_done(times)?, expected);
    Ok(())
}

#[test]
fn skipped_and_delayed_ticks_follow_virtual_time() -> Result {
    for (missed, expected) in [
        (runtime::MissedTicks::Burst, [0, 1000, 2000]),
        (runtime::MissedTicks::Skip, [0, 4000, 5000]),
        (runtime::MissedTicks::Delay, [0, 4500, 5500]),
    ] {
        let mut world = World::new(1);
        let machine = world.machine("clock", [10, 0, 0, 1]);
        let times = machine.spawn(async move {
            let begin = runtime::now();
            let mut ticks = runtime::interval(SECOND).missed_ticks(missed);
            runtime::sleep(SECOND * 7 / 2).await;
            let mut times = Vec::new();
            for _ in 0..3 {
                times.push((ticks.tick().await - begin).as_millis());
            }
            times
        });
        assert_eq!(world.run_until_done(times)?, expected, "{missed:?}");
    }
    Ok(())
}

#[test]
fn blocking_work_takes_no_virtual_time() -> Result {
    let mut world = World::new(1);
    let machine = world.machine("worker", [10, 0, 0, 1]);
    let result = machine.spawn(async {
        let begin = runtime::now();
        let handle = runtime::spawn_blocking(|| (1..=1000u64).sum::<u64>());
        assert!(handle.is_finished());
        (handle.await, runtime::now() - begin)
    });
    assert_eq!(world.run_until_done(result)?, (Ok(500_500), Duration::ZERO));
    Ok(())
}

#[test]
fn files_belong_to_their_machine_and_end_with_it() -> Result {
    let mut world = World::new(1);
    let [near, far] =
        [("near", 1), ("far", 2)].map(|(name, last)| world.machine(name, [10, 0, 0, last]));
    let (here, there) = (near.directory()?, far.directory()?);
    assert_ne!(here, there);
    assert_eq!(near.directory()?, here, "one directory for each machine");
    let path = here.join("log");
    let write = path.clone();
    let task = near.spawn(async move {
        for line in 0..3 {
            let write = write.clone();
            runtime::spawn_blocking(move || std::fs::write(write, format!("line {line}")))
                .await??;
            runtime::sleep(SECOND).await;
        }
        Result::Ok(())
    });
    world.run_until_done(task)??;
    assert_eq!(std::fs::read_to_string(&path)?, "line 2");
    assert_eq!(std::fs::read_dir(&there)?.count(), 0);
    drop((near, far, world));
    assert!(!path.exists() && !here.exists());
    Ok(())
}

/// A program that keeps its state on the disk repeats its run from the seed.
#[test]
fn same_seed_gives_the_same_run_with_files() -> Result {
    let run = |seed| {
        let mut world = World::new(seed);
        let machine = world.machine("disk", [10, 0, 0, 1]);
        let directory = machine.directory()?;
        let task = machine.spawn(async move {
            let mut sizes = BTreeMap::new();
            for _ in 0..5 {
                let wait = runtime::random_seed()?[0];
                runtime::sleep(Duration::from_millis(wait.into())).await;
                let path = directory.join("state");
                let size = runtime::spawn_blocking(move || {
                    std::fs::write(&path, vec![0; wait.into()])?;
                    std::fs::metadata(&path)
                });
                sizes.insert(wait, size.await??.len());
            }
            Result::Ok(sizes)
        });
        let sizes = world.run_until_done(task)??;
        Result::Ok((sizes, world.digest()))
    };
    assert_eq!(run(3)?, run(3)?);
    assert_ne!(run(3)?, run(4)?);
    Ok(())
}
