//! Flows: the traffic of connections.

use std::time::Duration;

use courser_base::Time;
use courser_recovery::Algorithm;
use serde::Deserialize;
use toml::Spanned;

use super::units::{CountValue, SizeValue, TimeValue};
use crate::apps::{Amount, TransferDirection};
use crate::link::DuplexSpec;

/// A connection with its traffic.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The name, unique in the scenario.
    pub name: String,
    /// The name of the entry in the file, which several flows share if it has a count.
    pub group: String,
    /// The congestion controller at both ends.
    pub controller: Algorithm,
    /// The traffic of the connection.
    pub kind: Kind,
    /// The time at which the client connects.
    pub start: Time,
    /// The access link between the client and the shared link.
    pub access: Option<DuplexSpec>,
}

/// The traffic of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A bulk transfer in one direction.
    Bulk {
        /// The end that sends.
        direction: TransferDirection,
        /// The amount of data.
        amount: Amount,
    },
    /// Requests and responses, one at a time.
    Requests {
        /// The size of a request in bytes.
        request: u64,
        /// The size of a response in bytes.
        response: u64,
        /// The number of exchanges; `None` is until the end of the run.
        repeat: Option<u64>,
        /// The shortest time between the starts of two exchanges.
        interval: Duration,
    },
    /// A fixed number of bytes from the client at a fixed interval.
    Paced {
        /// The bytes of each write.
        size: u64,
        /// The interval between writes.
        interval: Duration,
        /// The time at which the client closes.
        end: Time,
    },
}

impl Kind {
    /// Returns the end that sends the payload.
    pub fn direction(&self) -> TransferDirection {
        match self {
            Self::Bulk { direction, .. } => *direction,
            Self::Requests { .. } => TransferDirection::Down,
            Self::Paced { .. } => TransferDirection::Up,
        }
    }

    /// Returns true if the flow ends on its own, provided that the network delivers its data.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Bulk { amount, .. } => matches!(amount, Amount::Bytes(_)),
            Self::Requests { repeat, .. } => repeat.is_some(),
            Self::Paced { .. } => false,
        }
    }
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "lowercase")]
enum KindName {
    #[default]
    Bulk,
    Requests,
    Ping,
    Paced,
}

#[derive(Deserialize, Clone, Copy, Debug, Default)]
#[serde(rename_all = "lowercase")]
enum DirectionName {
    #[default]
    Up,
    Down,
}

/// One `[[flow]]` of a scenario file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowTable {
    name: Option<String>,
    #[serde(default)]
    kind: KindName,
    controller: Option<Spanned<String>>,
    way: Option<Spanned<DirectionName>>,
    bytes: Option<Spanned<SizeValue>>,
    #[serde(default)]
    start: Option<TimeValue>,
    end: Option<Spanned<TimeValue>>,
    count: Option<Spanned<CountValue>>,
    spacing: Option<TimeValue>,
    access: Option<DuplexSpec>,
    request: Option<Spanned<SizeValue>>,
    response: Option<Spanned<SizeValue>>,
    repeat: Option<Spanned<u64>>,
    interval: Option<Spanned<TimeValue>>,
    size: Option<Spanned<SizeValue>>,
}

/// An error with its place.
pub(super) type Mistake = (Span, String);

/// A range of bytes in the file.
type Span = std::ops::Range<usize>;

/// The largest number of connections of one entry: 250 networks fit into the addresses.
const MAX_COUNT: u64 = 250;

impl FlowTable {
    /// Returns the flows of this entry, which starts at `span`.
    pub(super) fn flows(self, span: &Span) -> Result<Vec<Flow>, Mistake> {
        let controller = match &self.controller {
            None => Algorithm::default(),
            Some(name) => name
                .get_ref()
                .parse()
                .map_err(|error| (name.span(), format!("{error}")))?,
        };
        let kind = self.kind(span)?;
        let count = match &self.count {
            None => 1,
            Some(count) if (1..=MAX_COUNT).contains(&count.get_ref().0) => count.get_ref().0,
            Some(count) => {
                let seen = count.get_ref().0;
                let message = format!("count is {seen}, allowed is 1 to {MAX_COUNT}");
                return Err((count.span(), message));
            }
        };
        let group = self.name.unwrap_or_else(|| kind_name(&kind).to_owned());
        let start = Time::ZERO + self.start.map_or(Duration::ZERO, |start| start.0);
        let spacing = self.spacing.map_or(Duration::ZERO, |spacing| spacing.0);
        let flow = |index: u64| Flow {
            name: if count == 1 {
                group.clone()
            } else {
                format!("{group}-{}", index + 1)
            },
            group: group.clone(),
            controller,
            kind,
            start: start + spacing * u32::try_from(index).unwrap_or(u32::MAX),
            access: self.access.clone(),
        };
        Ok((0..count).map(flow).collect())
    }

    fn kind(&self, span: &Span) -> Result<Kind, Mistake> {
        self.refuse_inapplicable_keys()?;
        let missing = |what: &str| (span.clone(), format!("this flow needs {what}"));
        let interval = self.interval.as_ref().map(|it| (it.span(), it.get_ref().0));
        if let Some((span, interval)) = &interval
            && interval.is_zero()
        {
            return Err((span.clone(), "interval is 0, allowed is more".to_owned()));
        }
        let interval = interval.map(|(_, interval)| interval);
        let end = self.end.as_ref().map(|end| Time::ZERO + end.get_ref().0);
        let size = |size: &Option<Spanned<SizeValue>>, default: u64| {
            size.as_ref().map_or(default, |size| size.get_ref().0)
        };
        let repeat = self.repeat.as_ref().map(|repeat| *repeat.get_ref());
        Ok(match self.kind {
            KindName::Bulk => Kind::Bulk {
                direction: match self.way.as_ref().map(Spanned::get_ref) {
                    Some(DirectionName::Down) => TransferDirection::Down,
                    Some(DirectionName::Up) | None => TransferDirection::Up,
                },
                amount: match (&self.bytes, end) {
                    (Some(bytes), _) => Amount::Bytes(bytes.get_ref().0),
                    (None, Some(end)) => Amount::Until(end),
                    (None, None) => Amount::Endless,
                },
            },
            KindName::Requests => Kind::Requests {
                request: size(&self.request, 512),
                response: size(&self.response, 4000),
                repeat,
                interval: interval.unwrap_or_default(),
            },
            KindName::Ping => Kind::Requests {
                request: 1,
                response: 1,
                repeat,
                interval: interval.unwrap_or(PING_INTERVAL),
            },
            KindName::Paced => Kind::Paced {
                size: self
                    .size
                    .as_ref()
                    .map(|size| size.get_ref().0)
                    .ok_or_else(|| missing("size, bytes to write at a time"))?,
                interval: interval.ok_or_else(|| missing("interval, how often to write"))?,
                end: end.unwrap_or(Time::MAX),
            },
        })
    }

    /// Refuses keys that have no meaning for this kind of flow.
    fn refuse_inapplicable_keys(&self) -> Result<(), Mistake> {
        use KindName::{Bulk, Paced, Ping, Requests};
        let size = |size: &Option<Spanned<SizeValue>>| size.as_ref().map(Spanned::span);
        let given: [(&str, Option<Span>, &[KindName]); 8] = [
            ("way", self.way.as_ref().map(Spanned::span), &[Bulk]),
            ("bytes", size(&self.bytes), &[Bulk]),
            ("end", self.end.as_ref().map(Spanned::span), &[Bulk, Paced]),
            ("request", size(&self.request), &[Requests]),
            ("response", size(&self.response), &[Requests]),
            (
                "repeat",
                self.repeat.as_ref().map(Spanned::span),
                &[Requests, Ping],
            ),
            (
                "interval",
                self.interval.as_ref().map(Spanned::span),
                &[Requests, Ping, Paced],
            ),
            ("size", size(&self.size), &[Paced]),
        ];
        for (name, span, kinds) in given {
            if let Some(span) = span
                && !kinds.contains(&self.kind)
            {
                let kinds: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
                let message = format!(
                    "{name} does not apply to kind \"{}\", only to \"{}\"",
                    format!("{:?}", self.kind).to_lowercase(),
                    kinds.join("\", \"").to_lowercase()
                );
                return Err((span, message));
            }
        }
        if let (Some(_), Some(end)) = (&self.bytes, &self.end) {
            let message = "a flow ends after bytes or at an end, not both";
            return Err((end.span(), message.to_owned()));
        }
        Ok(())
    }
}

fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bulk { .. } => "bulk",
        Kind::Requests { .. } => "requests",
        Kind::Paced { .. } => "paced",
    }
}

/// The default interval of pings: often enough to observe a queue, and too seldom to fill it.
const PING_INTERVAL: Duration = Duration::from_millis(100);
