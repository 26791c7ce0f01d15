use super::*;

/// Moves `len` bytes from client to server and returns how long it took.
fn transfer(pair: &mut Pair, len: usize) -> Duration {
    let id = pair
        .client
        .connection()
        .streams()
        .open(Direction::Unidirectional)
        .expect("room");
    let data: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    let (mut written, mut received) = (0, Vec::with_capacity(len));
    let begun = pair.now;
    let mut accepted = None;
    for _ in 0..1_000_000 {
        while written < len {
            let streams = pair.client.connection().streams();
            match streams.write(id, &data[written..]) {
                Ok(n) => written += n,
                Err(crate::stream::WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
            if written == len {
                streams.finish(id).expect("open");
            }
        }
        pair.client.touch();
        let streams = pair.server.connection().streams();
        accepted = accepted.or_else(|| streams.accept(Direction::Unidirectional));
        if let Some(id) = accepted {
            let mut buffer = [0; 65_536];
            loop {
                match streams.read(id, &mut buffer) {
                    Ok(Some(n)) => received.extend_from_slice(&buffer[..n]),
                    Ok(None) => {
                        assert_eq!(received, data);
                        return pair.now - begun;
                    }
                    Err(crate::stream::ReadError::Blocked) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            pair.server.touch();
        }
        let before = pair.now;
        pair.run_until(Duration::from_secs(10), |pair| pair.now > before);
    }
    panic!("no end after {} of {len} bytes", received.len());
}

#[test]
fn ten_megabytes_arrive_unchanged() {
    let mut pair = Pair::connected();
    let time = transfer(&mut pair, 10_000_000);
    assert!(time < Duration::from_secs(3), "took {time:?}");
}

#[test]
fn transfer_survives_loss_and_reordering() {
    for seed in 0..10 {
        let mut pair = Pair::with(crate::testing::Setup {
            seed,
            ..Default::default()
        });
        pair.connect();
        pair.link.loss = 30;
        pair.link.reorder = 50;
        pair.link.duplicate = 20;
        transfer(&mut pair, 1_000_000);
    }
}
