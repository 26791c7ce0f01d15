//! Records that wait for a sink.

use crate::{Http3Record, QpackRecord, Record, RecordsMissed};

/// Records of a part that has no [`Tap`](crate::Tap), kept until its owner passes them to one.
///
/// It starts disabled. While disabled, it costs one branch per event. At most 256 records are kept.
/// Further ones are counted, and [`take`](Self::take) reports them in a final
/// [`Record::RecordsMissed`].
#[derive(Clone, Debug, Default)]
pub struct Pending(Option<Box<Waiting>>);

#[derive(Clone, Debug, Default)]
struct Waiting {
    records: Vec<Record>,
    missed: u64,
}

impl Pending {
    /// Enables or disables it. Disabling drops the kept records.
    pub fn set_enabled(&mut self, is_enabled: bool) {
        if is_enabled != self.is_enabled() {
            self.0 = is_enabled.then(Box::default);
        }
    }

    /// Returns true while it is enabled.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true if any record is kept.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|waiting| !waiting.records.is_empty())
    }

    /// Keeps the record that `make` builds. While disabled, `make` is not called.
    #[inline]
    pub fn push(&mut self, make: impl FnOnce() -> Record) {
        if let Some(waiting) = &mut self.0 {
            if waiting.records.len() < MAX_RECORDS {
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

    /// Moves all records of `other` to the end of these. `other` stays enabled.
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

    /// Removes and returns all kept records, oldest first.
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

/// Maximum number of kept records (limit K251). One call into HTTP/3 creates a few, unless the peer
/// sends many instructions.
const MAX_RECORDS: usize = 256;

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
        pending.push(|| unreachable!("it is disabled"));
        assert!(!pending.has_records());
        assert_eq!(pending.take(), []);
    }

    #[test]
    fn records_are_bounded_and_further_ones_counted() {
        let (mut first, mut second) = (Pending::default(), Pending::default());
        first.set_enabled(true);
        second.set_enabled(true);
        for index in 0..300 {
            first.qpack(|| instruction(index));
            second.qpack(|| instruction(index));
        }
        first.append(&mut second);
        let records = first.take();
        assert_eq!(records.len(), MAX_RECORDS + 1);
        assert_eq!(records[0], Record::Qpack(instruction(0)));
        let count = 2 * (300 - MAX_RECORDS as u64) + MAX_RECORDS as u64;
        let missed = Record::RecordsMissed(RecordsMissed { count });
        assert_eq!(records.last(), Some(&missed));
        assert!(!first.has_records() && !second.has_records());
        first.qpack(|| instruction(7));
        assert_eq!(first.take(), [Record::Qpack(instruction(7))]);
    }
}
