//! The values of users that wait to be dropped. [`remains`](crate::shard::remains) has what happens to them.

use courser_base::Time;
use courser_base::foreign::Remains;
use courser_transport::ConnectionHandle;

/// Values that wait to be dropped, apart from those in the entries of connections.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Those whose connection has no handle any more, or that belong to none.
    pub(crate) others: Vec<Remains>,
    /// Connections in whose entries values wait.
    pub(crate) connections: Vec<ConnectionHandle>,
    /// When the driver last looked at them, or the first of them ended.
    pub(crate) since: Option<Time>,
    /// The driver is gone, and tasks drop the values of all connections.
    pub(crate) has_no_driver: bool,
}

/// Values of one connection, for a thread that may block.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) connection: Option<ConnectionHandle>,
    pub(crate) values: Vec<Remains>,
}

/// The values that have ended on one connection.
#[derive(Debug, Default)]
pub(crate) struct OfConnection {
    pub(crate) values: Vec<Remains>,
    /// The connection is in [`Ended::connections`].
    pub(crate) is_listed: bool,
    /// The driver has seen values, and no task of the connection has taken them since.
    has_waited: bool,
    /// A thread that may block drops earlier ones.
    pub(crate) is_handed_out: bool,
}

impl OfConnection {
    /// Takes the values, for a task of the connection to drop.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Remains> {
        self.has_waited = false;
        self.values.drain(..)
    }

    /// A look of the driver. Returns the values for a thread that may block if no task has taken any since the
    /// look before, and no thread is at work: it comes back for more.
    pub(crate) fn look(&mut self) -> Option<Vec<Remains>> {
        self.is_listed = false;
        if self.values.is_empty() || self.is_handed_out {
            return None;
        }
        if self.has_waited {
            return Some(self.hand_out());
        }
        (self.is_listed, self.has_waited) = (true, true);
        None
    }

    /// Takes the values, for a thread that may block.
    pub(crate) fn hand_out(&mut self) -> Vec<Remains> {
        (self.is_listed, self.has_waited) = (false, false);
        self.is_handed_out = !self.values.is_empty();
        std::mem::take(&mut self.values)
    }
}

#[cfg(test)]
mod tests {
    use courser_base::foreign::{self, Foreign};

    use super::*;

    /// Adds a value as it ends under a lock.
    fn add(ended: &mut OfConnection) {
        let hold = foreign::hold();
        drop(Foreign::<_>::new(()));
        foreign::route(None, |value| ended.values.push(value));
        ended.is_listed = true;
        drop(hold);
    }

    fn drop_by_task(ended: &mut OfConnection) {
        ended.take().for_each(Remains::end);
    }

    #[test]
    fn values_that_tasks_take_in_time_are_not_handed_out() {
        let mut ended = OfConnection::default();
        for _ in 0..10 {
            add(&mut ended);
            assert!(ended.look().is_none() && ended.is_listed);
            drop_by_task(&mut ended);
            // More have ended since, and the tasks run.
            add(&mut ended);
        }
        assert!(ended.look().is_none(), "seen for the first time");
        let values = ended.look().expect("no task came");
        assert_eq!(values.len(), 1);
        values.into_iter().for_each(Remains::end);
    }

    #[test]
    fn thread_that_is_at_work_gets_what_ends_meanwhile() {
        let mut ended = OfConnection::default();
        add(&mut ended);
        ended.hand_out().into_iter().for_each(Remains::end);
        add(&mut ended);
        assert!(ended.look().is_none() && ended.look().is_none());
        assert_eq!(ended.values.len(), 1);
        ended.is_handed_out = false;
        drop_by_task(&mut ended);
        assert!(ended.look().is_none() && !ended.is_listed);
    }
}
