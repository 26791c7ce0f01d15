use super::path::*;
use super::*;

#[test]
fn explore() {
    for megabits in [10, 100, 1000] {
        for rtt in [10, 50, 200, 600] {
            for loss in [0, 1, 10, 30] {
                if megabits == 1000 && loss == 1 {
                    continue;
                }
                let spec = PathSpec::new(megabits, rtt).loss(loss);
                let mut world = World::with_bbr(spec);
                let t0 = world.now;
                let a = world.utilisation(3000);
                world.queue_delays.clear();
                let b = world.utilisation(3000);
                let c = world.utilisation(24000);
                let q = world.median_queue_delay();
                let st = &world.flows[0].states;
                let drain = st.iter().find(|s| s.1 == "drain").map(|s| s.0 - t0);
                let bbr = world.flows[0].bbr();
                println!(
                    "{megabits} Mbit {rtt} ms loss {loss}/1000: 0-3s {a} 3-6s {b} 6-30s {c} medq {:?} drain at {:?} states {} lost {} maxbw {} lt {:?}",
                    q,
                    drain,
                    st.len(),
                    world.flows[0].lost_packets,
                    bbr.max_bw.get().as_bytes_per_second() / 1250 * 100 / (megabits * 100).max(1),
                    bbr.inflight_longterm.map(|l| l * 100 / spec.bdp())
                );
            }
        }
    }
}

#[test]
fn explore_share() {
    for (megabits, rtt) in [(100, 50), (20, 30), (50,100)] {
        for queue in [5, 10, 40] {
            for n in [2, 8] {
                for gap in [0, 1700] {
                    for (mix, name) in [(Algorithm::Bbr, "bbr"), (Algorithm::Cubic, "cubic")] {
                    if name == "cubic" && n == 8 { continue; }
                    let spec = PathSpec::new(megabits, rtt).queue(queue);
                    let mut world = World::new(spec);
                    for flow in 0..n {
                        let a = if flow % 2 == 1 { mix } else { Algorithm::Bbr };
                        world.add(a, Duration::from_millis(flow * gap));
                    }
                    world.run(Duration::from_secs(60));
                    world.queue_delays.clear();
                    let shares = world.run(Duration::from_secs(60));
                    let total: u64 = shares.iter().sum();
                    let probe_rtts: Vec<usize> = world.flows.iter().map(|f| f.states.iter().filter(|s| s.1 == "probe_rtt").count()).collect();
                    println!("{megabits} Mbit {rtt} ms q {queue}/10 n {n} gap {gap} {name}: jain {} util {} medq {:?} shares% {:?} probertts {:?}", jain(&shares), total * 100 / (spec.rate * 60), world.median_queue_delay(), shares.iter().map(|s| s*100/total).collect::<Vec<_>>(), probe_rtts);
                    }
                }
            }
        }
    }
}
