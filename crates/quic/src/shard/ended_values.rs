//! The values of users that have ended on one connection and wait to be dropped.
//!
//! [`DropQueue`](crate::shard::drop_queue::DropQueue) decides which thread drops them.

use courser_base::foreign::Remains;

/// The values that have ended on one connection.
#[derive(Debug, Default)]
pub(crate) struct EndedValues {
    values: Vec<Remains>,
    /// The connection is in the list of the queue.
    is_listed: bool,
    /// The driver has seen values, and no task of the connection has taken them since.
    has_waited: bool,
    /// A thread that may block drops earlier ones.
    is_handed_out: bool,
}

impl EndedValues {
    /// Adds a value. Returns true if the connection has to be listed, which it was not before.
    pub(crate) fn add(&mut self, value: Remains) -> bool {
        self.values.push(value);
        !std::mem::replace(&mut self.is_listed, true)
    }

    /// Takes the values, for a task of the connection to drop.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Remains> {
        self.has_waited = false;
        self.values.drain(..)
    }

    /// Returns true if the connection stays in the list.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Checks the values for the driver. Returns them for a thread that may block if no task has taken any since the
    /// last check, and no thread is dropping earlier ones, which then takes these too.
    pub(crate) fn check(&mut self) -> Option<Vec<Remains>> {
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
        self.take_next()
    }

    /// Takes more values, for the thread that has dropped the ones before.
    pub(crate) fn take_next(&mut self) -> Vec<Remains> {
        self.is_handed_out = !self.values.is_empty();
        std::mem::take(&mut self.values)
    }

    /// Returns the values of a connection that has no handle any more.
    pub(crate) fn into_values(self) -> Vec<Remains> {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use courser_base::foreign::{self, Foreign};

    use super::*;

    /// Adds a value as it ends under a lock.
    fn add(ended: &mut EndedValues) {
        let hold = foreign::hold();
        drop(Foreign::<_>::new(()));
        foreign::route(None, |value| {
            ended.add(value);
        });
        drop(hold);
    }

    fn drop_by_task(ended: &mut EndedValues) {
        ended.take().for_each(Remains::end);
    }

    #[test]
    fn values_that_tasks_take_in_time_are_not_handed_out() {
        let mut ended = EndedValues::default();
        for _ in 0..10 {
            add(&mut ended);
            assert!(ended.check().is_none() && ended.is_listed);
            drop_by_task(&mut ended);
            // More have ended since, and the tasks run.
            add(&mut ended);
        }
        assert!(ended.check().is_none(), "the first check");
        let values = ended.check().expect("no task has taken the values");
        assert_eq!(values.len(), 1);
        values.into_iter().for_each(Remains::end);
    }

    #[test]
    fn values_that_end_while_a_thread_works_are_left_to_it() {
        let mut ended = EndedValues::default();
        add(&mut ended);
        ended.hand_out().into_iter().for_each(Remains::end);
        add(&mut ended);
        assert!(ended.check().is_none() && ended.check().is_none());
        assert_eq!(ended.values.len(), 1);
        ended.is_handed_out = false;
        drop_by_task(&mut ended);
        assert!(ended.check().is_none() && !ended.is_listed);
    }
}
