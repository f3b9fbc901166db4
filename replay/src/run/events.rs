//! What is due, in order of time; what is due at the same time, in order of age.
//!
//! Threads that go on are due soon, completions late, so what is new belongs near one of the two
//! ends: a sorted deque moves less than a heap does.

use std::collections::VecDeque;

use traces::units::Time;

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A request completes.
    Complete(u32),
    /// A request reaches the queue of the device.
    Issue(u32),
    /// A thread goes on.
    Thread(u32),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Events {
    due: VecDeque<(Time, What)>,
}

impl Events {
    /// `what` is due at `time`, after what is due then already.
    pub(super) fn schedule(&mut self, time: Time, what: What) {
        if self.is_next(time) {
            self.due.push_front((time, what));
        } else if self.due.back().is_some_and(|(last, _)| *last <= time) {
            self.due.push_back((time, what));
        } else {
            let at = self.due.partition_point(|(due, _)| *due <= time);
            self.due.insert(at, (time, what));
        }
    }

    /// The event that is due first.
    pub(super) fn next(&mut self) -> Option<(Time, What)> {
        self.due.pop_front()
    }

    /// Whether nothing else is due up to `time`, so that what is due then may be done at once.
    pub(super) fn is_next(&self, time: Time) -> bool {
        self.due.front().is_none_or(|(first, _)| *first > time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_time_and_then_of_age(
            times in prop::collection::vec(0_u64..20, 1..60),
            taken in prop::collection::vec(any::<bool>(), 60),
        ) {
            let mut events = Events::default();
            let mut due: Vec<(Time, What)> = Vec::new();
            for (age, (time, take)) in times.into_iter().zip(taken).enumerate() {
                let event = (Time(time), What::Thread(age as u32));
                events.schedule(event.0, event.1);
                due.push(event);
                due.sort_by_key(|(time, _)| *time);
                if take {
                    prop_assert_eq!(events.next(), Some(due.remove(0)));
                }
                prop_assert_eq!(
                    events.is_next(Time(10)),
                    due.iter().all(|(time, _)| *time > Time(10))
                );
            }
            for event in due {
                prop_assert_eq!(events.next(), Some(event));
            }
            prop_assert_eq!(events.next(), None);
        }
    }
}
