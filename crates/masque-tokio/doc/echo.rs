// A network in memory, whose hosts answer each ping and return other packets to their senders.

#[derive(Clone, Default)]
pub struct Echo(std::sync::Arc<std::sync::Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    packets: std::collections::VecDeque<bytes::Bytes>,
    waker: Option<std::task::Waker>,
    sent: u64,
}

impl Echo {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sends a packet to a client.
    pub fn push(&self, packet: bytes::Bytes) {
        let mut waiting = self.waiting();
        waiting.packets.push_back(packet);
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    /// Returns the number of packets that were sent to the network.
    #[allow(dead_code)]
    pub fn sent(&self) -> u64 {
        self.waiting().sent
    }

    fn answer(packet: &[u8]) -> bytes::Bytes {
        let is_ipv4 = packet[0] >> 4 == 4;
        let destination = match courser_masque::ip::Header::parse(packet) {
            Ok(header) => header.destination,
            Err(_) => return bytes::Bytes::new(),
        };
        if let Some(reply) = courser_masque::ip::icmp::echo_reply(packet, destination) {
            return reply.into();
        }
        // Checksums are the same in both directions.
        let (begin, len) = if is_ipv4 { (12, 4) } else { (8, 16) };
        let mut reply = packet.to_vec();
        reply[begin..begin + 2 * len].rotate_left(len);
        reply.into()
    }
}

impl courser::masque::Device for Echo {
    fn send_many(&self, packets: &mut Vec<bytes::Bytes>) -> std::io::Result<usize> {
        let count = packets.len();
        self.waiting().sent += count as u64;
        packets.drain(..).for_each(|packet| self.push(Self::answer(&packet)));
        Ok(count)
    }

    fn poll_receive_many(
        &self,
        cx: &mut std::task::Context<'_>,
        packets: &mut Vec<bytes::Bytes>,
        limit: usize,
    ) -> std::task::Poll<std::io::Result<usize>> {
        let mut waiting = self.waiting();
        let count = waiting.packets.len().min(limit);
        if count == 0 {
            waiting.waker = Some(cx.waker().clone());
            return std::task::Poll::Pending;
        }
        packets.extend(waiting.packets.drain(..count));
        std::task::Poll::Ready(Ok(count))
    }

    fn mtu(&self) -> usize {
        1500
    }
}
