use super::*;

/// A task that ends with each of these outcomes in turn and then runs without end, and the events about it.
struct Scene {
    tasks: Arc<Tasks>,
    reported: Arc<Mutex<Vec<(u64, String)>>>,
}

impl Scene {
    /// Runs for this many seconds of virtual time.
    async fn run(seconds: u64, outcome: impl Fn(u32) -> Outcome + Send + 'static) -> Self {
        let (tasks, reported) = (Arc::new(Tasks::default()), Arc::<Mutex<Vec<_>>>::default());
        let (began, sink) = (Instant::now(), reported.clone());
        let events = Events::to(move |event| {
            let at = began.elapsed().as_secs();
            sink.lock().push((at, event.to_string()));
        });
        let task = tasks.task("the clock");
        let mut runs = 0;
        let begin = || {
            runs += 1;
            let outcome = outcome(runs);
            async move {
                match outcome {
                    Outcome::Ends => Ok(()),
                    Outcome::Fails => Err("the spring is broken".into()),
                    Outcome::Panics => panic!("cuckoo"),
                    Outcome::RunsFor(seconds) => {
                        sleep(Duration::from_secs(seconds)).await;
                        Ok(())
                    }
                    Outcome::Runs => std::future::pending().await,
                }
            }
        };
        let running = keep_running(&task, &events, begin);
        let _ = tokio::time::timeout(Duration::from_secs(seconds), running).await;
        std::mem::forget(task);
        Self { tasks, reported }
    }

    fn reported(&self) -> Vec<(u64, String)> {
        self.reported.lock().clone()
    }
}

#[derive(Clone, Copy)]
enum Outcome {
    Ends,
    Fails,
    Panics,
    RunsFor(u64),
    Runs,
}

fn line(at: u64, text: &str) -> (u64, String) {
    (at, text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_end_is_reported_and_the_task_is_restarted() {
    let scene = Scene::run(100, |run| match run {
        1 => Outcome::RunsFor(10),
        2 => Outcome::Fails,
        3 => Outcome::Panics,
        _ => Outcome::Runs,
    })
    .await;
    assert_eq!(
        scene.reported(),
        [
            line(
                10,
                "the clock has stopped: it has ended; it is restarted in 1 s"
            ),
            line(
                11,
                "the clock has stopped: the spring is broken; it is restarted in 2 s"
            ),
            line(
                13,
                "the clock has stopped: it panicked: cuckoo; it is restarted in 4 s"
            ),
            line(18, "the clock runs again"),
        ]
    );
    assert!(scene.tasks.all_run() && scene.tasks.stopped().is_empty());
    assert_eq!(scene.tasks.ends(), 3);
}

#[tokio::test(start_paused = true)]
async fn task_that_fails_at_once_stays_stopped() {
    let scene = Scene::run(30, |_| Outcome::Ends).await;
    let at: Vec<_> = scene.reported().iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [0, 1, 3, 7, 15]);
    assert!(!scene.tasks.all_run());
    assert_eq!(scene.tasks.stopped(), ["the clock"]);
}

/// Limit K312: pauses grow to a minute, and start at one second again after a minute of running.
#[tokio::test(start_paused = true)]
async fn pauses_grow_to_a_minute_and_are_reset() {
    let scene = Scene::run(500, |run| match run {
        8 => Outcome::RunsFor(60),
        _ => Outcome::Fails,
    })
    .await;
    let reported = scene.reported();
    let pauses: Vec<_> = reported
        .iter()
        .filter_map(|(_, text)| {
            text.strip_suffix(" s")?
                .rsplit(' ')
                .next()?
                .parse::<u64>()
                .ok()
        })
        .collect();
    assert_eq!(pauses[..12], [1, 2, 4, 8, 16, 32, 60, 1, 2, 4, 8, 16]);
}

#[tokio::test(start_paused = true)]
async fn listener_that_panics_ends_no_task() {
    let tasks = Arc::new(Tasks::default());
    let task = tasks.task("the clock");
    let events = Events::to(|_| panic!("no listener"));
    let running = keep_running(&task, &events, || async { Ok(()) });
    let _ = tokio::time::timeout(Duration::from_secs(20), running).await;
    assert_eq!(tasks.ends(), 5);
    drop(task);
    assert!(tasks.all_run(), "a task that is gone is not waited for");
}

/// Fault F80: clients would try a closed port.
#[test]
fn http3_is_not_announced_while_its_task_is_stopped() {
    let tasks = Arc::new(Tasks::default());
    let task = tasks.task("QUIC");
    let announced = "h3=\":4433\"; ma=86400";
    let phases = crate::phase::Phases::new();
    let (settings, quic) = (crate::AltSvc::default(), Some(task.clone()));
    let header = crate::alt_svc::AltSvcHeader::new(settings, 4433, phases.part(), quic);
    let events = Events::default();
    assert_eq!(header.value(4433), announced);
    for _ in 0..2 {
        task.on_ended(&events, "it has failed".to_owned(), None);
        assert_eq!(header.value(4433), "clear");
        assert_eq!(tasks.stopped(), ["QUIC"]);
    }
    task.on_running(&events);
    assert_eq!(header.value(4433), announced);
    assert_eq!((tasks.all_run(), tasks.ends()), (true, 2));
}
