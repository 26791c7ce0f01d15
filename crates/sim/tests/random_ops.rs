//! Random operations of two applications over random faults: whatever they do, in whatever
//! network, what must be true is true.
//!
//! `COURSER_RUNS=100000` runs so many seeds, `COURSER_SEED=17` runs one, and
//! `COURSER_SHOW=1` tells what each has chosen and done, and with `COURSER_SHOW=packets` what was
//! sent and what arrived.

mod common;

mod random_ops {
    pub mod actor;
    pub mod book;
    pub mod judge;
    pub mod network;
    pub mod run;
    pub mod settings;
    pub mod stream;
}

use std::collections::BTreeMap;

use courser_sim::trace::TraceEvent;
use random_ops::judge::judge;
use random_ops::run::Run;

#[test]
fn whatever_applications_and_networks_do() {
    let mut done = BTreeMap::new();
    common::for_each_seed(2000, |seed| {
        let mut run = Run::new(seed);
        let shows = std::env::var_os("COURSER_SHOW").is_some();
        if shows {
            eprintln!("seed {seed}: {:#?}", run.choices);
        }
        if std::env::var("COURSER_SHOW").is_ok_and(|it| it == "packets") {
            let show = |event: &TraceEvent| eprintln!("{event:?}");
            run.world.on_trace(Box::new(show));
        }
        run.chaos();
        run.calm();
        let ended_at = run.end();
        judge(&run, ended_at);
        for (what, count) in &run.book.borrow().done {
            *done.entry(*what).or_insert(0) += count;
        }
        if shows {
            eprintln!("seed {seed}: {:#?}", run.book.borrow());
        }
    });
    eprintln!("{done:?}");
}
