//! The credit that the peer grants to this end.

/// A limit of the peer, the part of it that is used, and the report that it holds a writer back.
#[derive(Debug)]
pub(super) struct Credit {
    limit: u64,
    used: u64,
    report: Report,
}

/// Whether the peer learns that the limit holds a writer back. It does so once for each limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Report {
    None,
    Due,
    Sent,
}

impl Credit {
    pub(super) const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            report: Report::None,
        }
    }

    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Uses up to `wanted` and returns the used amount. A report is due if it is less than `wanted`.
    pub(super) const fn take(&mut self, wanted: u64) -> u64 {
        let left = self.limit - self.used;
        if wanted > left && matches!(self.report, Report::None) {
            self.report = Report::Due;
        }
        let taken = if wanted < left { wanted } else { left };
        self.used += taken;
        taken
    }

    pub(super) const fn give_back(&mut self, amount: u64) {
        debug_assert!(amount <= self.used, "more is given back than was taken");
        self.used = self.used.saturating_sub(amount);
    }

    /// Sets a higher limit. Returns false if it is not higher. A report that was not sent is no longer due.
    pub(super) const fn raise(&mut self, limit: u64) -> bool {
        if limit <= self.limit {
            return false;
        }
        self.limit = limit;
        self.report = Report::None;
        true
    }

    pub(super) fn is_report_due(&self) -> bool {
        self.report == Report::Due
    }

    /// Returns the limit to report, if a report is due.
    pub(super) fn report(&mut self) -> Option<u64> {
        if !self.is_report_due() {
            return None;
        }
        self.report = Report::Sent;
        Some(self.limit)
    }
}
