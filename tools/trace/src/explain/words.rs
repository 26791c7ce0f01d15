//! Describes causes and remedies in sentences.

use courser_units::{bits, seconds, size, three_digits};

use super::cause::Cause;
use super::direction::Direction;
use super::facts::TraceFacts;
use super::finding::Finding;
use super::ledger::Stretch;
use super::receiver::Receiver;
use super::sender::Sender;

/// The source of the figures in sentences.
pub(super) struct Case<'a> {
    pub(super) direction: Direction,
    pub(super) facts: &'a TraceFacts,
    pub(super) sender: &'a Sender,
    pub(super) receiver: &'a Receiver,
    /// The mean rate in bits per second, without handshakes and outages.
    pub(super) rate: f64,
}

impl Case<'_> {
    /// Returns a sentence that states the fact. `time` is the time of the cause in seconds.
    pub(super) fn text(&self, cause: Cause, time: f64) -> String {
        let rtt = seconds(self.facts.base_rtt());
        let is_sent = self.direction == Direction::Sent;
        let sender = if is_sent { "this end" } else { "the peer" };
        let receiver = if is_sent { "the peer" } else { "this end" };
        match cause {
            Cause::Handshake => self.handshake(time),
            Cause::Amplification => "the server had sent three times what it had received from an \
                                     address that was not validated yet"
                .to_owned(),
            Cause::Application => match is_sent {
                true => "this end had nothing to send".to_owned(),
                false => "this end had not requested more, or waited a round trip for the response"
                    .to_owned(),
            },
            Cause::PeerApplication => {
                "the peer sent nothing, although neither flow control nor losses kept it from \
                 sending"
                    .to_owned()
            }
            Cause::Idle => "no data was sent for a second or longer".to_owned(),
            Cause::StreamFlowControl => format!(
                "{sender} had used up the flow control credit of its streams{}",
                self.window_of(false)
            ),
            Cause::ConnectionFlowControl => format!(
                "{sender} had used up the flow control credit of the connection{}",
                self.window_of(true)
            ),
            Cause::SlowReader => format!(
                "{receiver} had received all data and gave no further credit: its application \
                 reads more slowly than data arrives"
            ),
            Cause::HeadOfLine => format!(
                "{sender} had used up the flow control credit, because lost data kept {receiver} from reading what \
                 had come after it: {}",
                self.losses()
            ),
            Cause::StreamLimit => {
                format!("{sender} had reached the limit on the number of concurrent streams")
            }
            Cause::SlowStart => format!(
                "the congestion window was still growing, at most twofold per round trip of {rtt}"
            ),
            of_network => self.text_of_network(of_network),
        }
    }

    fn handshake(&self, time: f64) -> String {
        let facts = self.facts;
        let mut text = format!("the handshake took {}", seconds(time));
        if facts.counts.retries > 0 {
            text += ", with a round trip for a Retry";
        }
        if facts.counts.version_negotiations > 0 {
            text += ", with a round trip for Version Negotiation";
        }
        let is_long = facts.min_rtt.is_none_or(|rtt| time > rtt * 3.0);
        if facts.counts.probe_timeouts > 0 && is_long {
            text += ", and packets of it were lost";
        }
        text
    }

    /// Returns the sentence for a cause in the network, or in the sender's reaction to it.
    fn text_of_network(&self, cause: Cause) -> String {
        let facts = self.facts;
        let counts = &facts.counts;
        let rtt = seconds(facts.base_rtt());
        let is_sent = self.direction == Direction::Sent;
        match cause {
            Cause::Loss => format!(
                "losses kept the congestion window small, although no queue stood in the path: {}",
                self.losses()
            ),
            Cause::Policer => format!(
                "packets were lost in bulk although no queue stood in the path, as behind a \
                 policer or a very short queue: {}",
                self.losses()
            ),
            Cause::Reordering => format!(
                "{} of {} packets declared lost had only arrived late",
                counts.spurious, counts.lost
            ),
            Cause::PersistentCongestion => {
                "after an outage the congestion window was reset to its \
                                            minimum, and grew again from there"
                    .to_owned()
            }
            Cause::Bottleneck => self.bottleneck(),
            Cause::Ecn => format!(
                "routers marked {} packets (ECN) instead of dropping them: the path was full at {}",
                counts.ce_marks,
                bits(self.rate)
            ),
            Cause::Pacing => {
                let rate = facts.pacing_rate.map(|rate| bits(rate as f64));
                let rate = rate.unwrap_or_else(|| "an unknown rate".to_owned());
                format!(
                    "the pacer held packets back at {rate} although the congestion window allowed more"
                )
            }
            Cause::AckDelay => format!(
                "the peer delayed its acknowledgements by {} on average, at a round trip of {rtt}",
                seconds(facts.ack_delay())
            ),
            Cause::Window if is_sent => "the congestion window was full".to_owned(),
            Cause::Window => "data arrived unevenly: the window, the application or the processor \
                              of the peer set the pace"
                .to_owned(),
            Cause::ProbeTimeout => match is_sent {
                true => format!(
                    "the last packets of a flight were lost, and were sent again only after a probe timeout \
                     ({} in all)",
                    counts.probe_timeouts
                ),
                false => "data stalled behind missing packets for longer than a \
                          retransmission takes"
                    .to_owned(),
            },
            Cause::Blackout => self.blackout(),
            Cause::PathMtu => {
                let mtu = facts.mtu_min.map(|mtu| format!(", to {mtu} bytes"));
                format!(
                    "the path stopped carrying datagrams of the size in use, until the size was \
                     reduced{}",
                    mtu.unwrap_or_default()
                )
            }
            Cause::PathChange => format!(
                "the connection migrated to another path ({} times), which was at first unusable or not \
                 validated",
                counts.path_changes.max(1)
            ),
            // The other causes have their sentence above.
            other => other.name().to_owned(),
        }
    }

    fn blackout(&self) -> String {
        match self.facts.close_trigger.as_deref() {
            Some("idle_timeout") => {
                "nothing arrived until the idle timeout closed the connection".to_owned()
            }
            _ => {
                "nothing arrived for several probe timeouts: the path carried no packets".to_owned()
            }
        }
    }

    fn losses(&self) -> String {
        let counts = &self.facts.counts;
        match self.direction {
            Direction::Sent => format!(
                "{} of {} packets, {}",
                counts.lost,
                counts.packets_sent,
                percent(counts.lost as f64 / counts.packets_sent.max(1) as f64)
            ),
            Direction::Received => format!(
                "{} of the peer's packets did not arrive, {}",
                self.receiver.lost,
                percent(self.receiver.loss_share())
            ),
        }
    }

    fn bottleneck(&self) -> String {
        let rate = bits(self.rate);
        let facts = self.facts;
        if self.direction == Direction::Received {
            return format!(
                "data arrived without a pause at {rate}: the path, or the peer's sender, was at its limit"
            );
        }
        let queue = facts.queued_rtt.zip(facts.min_rtt);
        let queue = queue.map(|(now, least)| {
            let (now, least) = (seconds(now), seconds(least));
            format!(" (round trips of up to {now}, {least} without a queue)")
        });
        format!(
            "the path was full at {rate}: packets waited in a queue{}",
            queue.unwrap_or_default()
        )
    }

    /// Returns the window of the receiver and the rate that it allows.
    fn window_of(&self, is_connection: bool) -> String {
        let credit = match self.direction {
            Direction::Sent => &self.sender.credit,
            Direction::Received => &self.receiver.credit,
        };
        let Some(window) = credit.initial_window(is_connection) else {
            return String::new();
        };
        let rate = bits(window as f64 * 8.0 / self.facts.base_rtt());
        format!(
            ", which began with {} and allows about {rate} at a round trip of {}",
            size(window),
            seconds(self.facts.base_rtt())
        )
    }

    /// Returns the remedy as a sentence.
    pub(super) fn advice(&self, cause: Cause) -> String {
        let is_sent = self.direction == Direction::Sent;
        let receiver = if is_sent { "the peer" } else { "this end" };
        match cause {
            Cause::Handshake => "resume sessions (0-RTT), shorten the certificate chain, or keep \
                                 connections open"
                .to_owned(),
            Cause::Amplification => "shorten the certificate chain, compress it (RFC 8879), or \
                                     let clients present tokens (NEW_TOKEN)"
                .to_owned(),
            Cause::Application => match is_sent {
                true => "write earlier, or larger pieces: the network could carry more. An \
                         application that writes as fast as it can is limited by its processor \
                         or disk"
                    .to_owned(),
                false => "request more at once, or earlier".to_owned(),
            },
            Cause::PeerApplication => "look at the peer: it needs time to produce data".to_owned(),
            Cause::SlowStart => "transfer more over one connection, or let it begin with a larger \
                                 window (Careful Resume)"
                .to_owned(),
            Cause::StreamFlowControl => format!(
                "raise the stream window of {receiver} (courser: stream_receive_window), or use \
                 more streams"
            ),
            Cause::ConnectionFlowControl => {
                format!("raise the connection window of {receiver} (courser: receive_window)")
            }
            Cause::SlowReader => format!("let the application of {receiver} read faster"),
            Cause::HeadOfLine => format!(
                "raise the windows of {receiver}, so that they hold what arrives while lost data is sent again (courser: \
                 stream_receive_window, receive_window), use more streams, or repair the path"
            ),
            Cause::StreamLimit => {
                format!("raise the stream limit of {receiver} (courser: max_bidi_streams)")
            }
            Cause::Loss => {
                "repair the path, or use BBR, which tolerates losses without a queue".to_owned()
            }
            Cause::Policer => "send below the rate of the policer (courser: max_send_rate), or \
                               use BBR"
                .to_owned(),
            Cause::Reordering => "find the part of the path that reorders, such as parallel \
                                  links without a hash over flows"
                .to_owned(),
            Cause::PersistentCongestion | Cause::Blackout => {
                "find the outage of the path; more bandwidth does not help".to_owned()
            }
            Cause::Bottleneck => "nothing at the ends: only a faster path allows more".to_owned(),
            Cause::Ecn => "nothing at the ends: the path signals that it is full".to_owned(),
            Cause::Pacing => {
                "raise the limit of the rate (courser: max_send_rate), if one is set".to_owned()
            }
            Cause::AckDelay => "lower the ACK delay of the peer (courser: max_ack_delay), or let \
                                it acknowledge more often"
                .to_owned(),
            Cause::Window => "record a trace at the sending end, which shows the reason".to_owned(),
            Cause::ProbeTimeout => "look for losses at the end of transfers: short queues, or \
                                    socket buffers that overflow"
                .to_owned(),
            Cause::PathMtu => "let routers send ICMP Packet Too Big, or limit the datagram size \
                               (courser: mtu_max)"
                .to_owned(),
            Cause::PathChange => "keep the address of the client stable: check NAT timeouts and \
                                  changes of networks"
                .to_owned(),
            Cause::Idle => String::new(),
        }
    }

    /// Returns the features of packets that the path dropped.
    fn features_given_up(&self) -> Vec<Finding> {
        let each = self.facts.given_up.iter().map(|(feature, at)| {
            let (cause, text, advice) = given_up(feature);
            untimed(cause, text, advice, Some(Stretch { from: *at, to: *at }))
        });
        each.collect()
    }

    /// Returns observations without a time of their own.
    pub(super) fn notes(&self) -> Vec<Finding> {
        let facts = self.facts;
        let counts = &facts.counts;
        let mut notes = self.features_given_up();
        let mut note = |cause, text: String, advice: &str, at: Option<Stretch>| {
            notes.push(untimed(cause, text, advice, at));
        };
        if let Some(at) = facts.ecn_failed {
            note(
                Cause::Ecn,
                "validation of ECN failed: the path or the peer removes marks".to_owned(),
                "no action is needed, unless you control the path",
                Some(Stretch { from: at, to: at }),
            );
        }
        if facts.blocked.waits > 0 {
            let (waits, time) = (facts.blocked.waits, seconds(facts.blocked.seconds));
            let streams = if waits == 1 { "stream" } else { "streams" };
            note(
                Cause::PeerApplication,
                format!(
                    "{waits} {streams} waited for insertions into the dynamic table of QPACK, for {time} in all"
                ),
                "if that is long, allow the peer no blocked streams (courser: \
                 h3::Config::decoder), at the cost of larger header sections",
                facts.blocked.longest,
            );
        }
        if counts.records_dropped > 0 {
            note(
                Cause::Application,
                format!(
                    "{} records are missing in the trace",
                    counts.records_dropped
                ),
                "figures are too low: write traces to a faster disk",
                None,
            );
        }
        if counts.dropped > counts.packets_received / 100 && counts.dropped > 1 {
            note(
                Cause::Handshake,
                format!(
                    "{} packets were received and dropped: duplicates, or packets without keys",
                    counts.dropped
                ),
                "look at `courser qlog stats` for the reasons",
                None,
            );
        }
        if counts.spurious > 0 {
            note(
                Cause::Reordering,
                format!(
                    "{} of {} packets declared lost arrived late",
                    counts.spurious, counts.lost
                ),
                "look for reordering in the path",
                None,
            );
        }
        notes
    }
}

/// Formats a share between 0 and 1 as per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// Returns an observation without a time of its own, made at `at` if that is known.
fn untimed(cause: Cause, text: String, advice: &str, at: Option<Stretch>) -> Finding {
    Finding {
        cause,
        seconds: 0.0,
        share: 0.0,
        of_all: false,
        text,
        advice: advice.to_owned(),
        stretches: u64::from(at.is_some()),
        evidence: at.into_iter().collect(),
    }
}

/// Returns the cause, the sentence and the remedy for a path that drops packets with a feature.
fn given_up(feature: &str) -> (Cause, String, &'static str) {
    let lost = |what: &str| format!("{what} were lost while others arrived, and were given up");
    match feature {
        "batches" => (
            Cause::ProbeTimeout,
            lost("batches of segmentation offload"),
            "look for the device that loses them: a driver, a tunnel, or a receiver that cuts merged \
             datagrams. Until then, turn segmentation offload off (courser: set_segmentation_offload)",
        ),
        "ecn" => (
            Cause::Ecn,
            lost("packets with an ECN mark"),
            "no action is needed, unless you control the path (courser: ecn)",
        ),
        "cleared_quic_bit" => (
            Cause::ProbeTimeout,
            lost("packets with a cleared QUIC bit"),
            "do not clear it (courser: grease_quic_bit)",
        ),
        other => (
            Cause::ProbeTimeout,
            lost(&format!("packets with the feature {other}")),
            "no action is needed, unless you control the path",
        ),
    }
}
