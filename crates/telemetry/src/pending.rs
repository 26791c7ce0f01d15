//! Records that wait for a sink.

use crate::{Http3Record, QpackRecord, Record, RecordsMissed};

/// Records of a part that has no [`Tap`](crate::Tap) of its own, until its owner passes them to one.
///
/// It starts disabled, and then costs one branch for each event. At most 256 records wait. Further ones are counted,
/// and [`take`](Self::take) ends with a [`Record::RecordsMissed`].
#[derive(Clone, Debug, Default)]
pub struct Pending(Option<Box<Waiting>>);

#[derive(Clone, Debug, Default)]
struct Waiting {
    records: Vec<Record>,
    missed: u64,
}

impl Pending {
    /// Starts or stops keeping records. Stopping drops the records that wait.
    pub fn set_on(&mut self, is_on: bool) {
        if is_on != self.is_on() {
            self.0 = is_on.then(Box::default);
        }
    }

    /// Returns true while records are kept.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true if records wait.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|waiting| !waiting.records.is_empty())
    }

    /// Keeps the record that `make` builds. While this is off, `make` never runs.
    #[inline]
    pub fn push(&mut self, make: impl FnOnce() -> Record) {
        if let Some(waiting) = &mut self.0 {
            if waiting.records.len() < MOST {
                waiting.records.push(make());
            } else {
                waiting.missed += 1;
            }
        }
    }

    /// Keeps a record of HTTP/3, like [`push`](Self::push).
    #[inline]
    pub fn http3(&mut self, make: impl FnOnce() -> Http3Record) {
        self.push(|| Record::Http3(make()));
    }

    /// Keeps a record of QPACK, like [`push`](Self::push).
    #[inline]
    pub fn qpack(&mut self, make: impl FnOnce() -> QpackRecord) {
        self.push(|| Record::Qpack(make()));
    }

    /// Moves all records of `other` to the end of these. `other` stays on.
    pub fn append(&mut self, other: &mut Self) {
        if let Some(from) = &mut other.0 {
            for record in from.records.drain(..) {
                self.push(|| record);
            }
            let missed = std::mem::take(&mut from.missed);
            if let Some(waiting) = &mut self.0 {
                waiting.missed += missed;
            }
        }
    }

    /// Takes all waiting records, oldest first.
    pub fn take(&mut self) -> Vec<Record> {
        let Some(waiting) = &mut self.0 else {
            return Vec::new();
        };
        let mut records = std::mem::take(&mut waiting.records);
        let count = std::mem::take(&mut waiting.missed);
        if count > 0 {
            records.push(Record::RecordsMissed(RecordsMissed { count }));
        }
        records
    }
}

/// The largest number of waiting records (limit K251). One call into HTTP/3 makes a few, unless the peer
/// sends instructions in bulk.
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QpackInstruction;

    fn instruction(index: u64) -> QpackRecord {
        QpackRecord::InstructionParsed(QpackInstruction::Duplicate { index })
    }

    #[test]
    fn disabled_pending_builds_no_record() {
        let mut pending = Pending::default();
        pending.push(|| unreachable!("it is off"));
        assert!(!pending.has_records());
        assert_eq!(pending.take(), []);
    }

    #[test]
    fn records_are_bounded_and_further_ones_counted() {
        let (mut first, mut second) = (Pending::default(), Pending::default());
        first.set_on(true);
        second.set_on(true);
        for index in 0..300 {
            first.qpack(|| instruction(index));
            second.qpack(|| instruction(index));
        }
        first.append(&mut second);
        let records = first.take();
        assert_eq!(records.len(), MOST + 1);
        assert_eq!(records[0], Record::Qpack(instruction(0)));
        let count = 2 * (300 - MOST as u64) + MOST as u64;
        let missed = Record::RecordsMissed(RecordsMissed { count });
        assert_eq!(records.last(), Some(&missed));
        assert!(!first.has_records() && !second.has_records());
        first.qpack(|| instruction(7));
        assert_eq!(first.take(), [Record::Qpack(instruction(7))]);
    }
}
