//! Tasks that wake themselves while they are polled, and are polled again in place.
//!
//! The two sides of a body are in one task here, and wake each other through its waker. A runtime answers that by queueing the
//! task and waking another thread to take it: two system calls and a change of the core for each request with a body. So
//! what wakes itself is polled again in place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use atomic_waker::AtomicWaker;
use tokio::task::coop;

/// How many times one poll goes through what has woken itself before it yields to other tasks.
const ROUNDS: usize = 8;

/// Polls a future in place until it no longer wakes itself.
#[derive(Debug)]
pub(crate) struct InPlace {
    wakes: Arc<Wakes>,
    /// The waker that [`Wakes`] hands to what is polled.
    waker: Waker,
}

impl Default for InPlace {
    fn default() -> Self {
        let wakes = Arc::new(Wakes::default());
        Self {
            waker: Waker::from(Arc::clone(&wakes)),
            wakes,
        }
    }
}

impl InPlace {
    /// Polls until `work` is ready or waits for something else. Different tasks may call it, one after the other.
    pub(crate) fn poll<T>(&self, cx: &mut Context<'_>, mut work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.wakes.task.register(cx.waker());
        let mut inner = Context::from_waker(&self.waker);
        for _ in 0..ROUNDS {
            self.wakes.begin();
            let polled = work(&mut inner);
            if polled.is_ready() || self.wakes.park() {
                return polled;
            }
            // Without a budget, sockets and channels are never ready.
            if !coop::has_budget_remaining() {
                break;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls once, outside of any task. A wake by what is polled is dropped.
    pub(crate) fn poll_once<T>(&self, work: impl FnOnce(&mut Context<'_>) -> T) -> T {
        self.wakes.begin();
        work(&mut Context::from_waker(&self.waker))
    }
}

/// Collects the wakes of what is polled. A wake during a poll is seen by that poll; any other one wakes the task that
/// polled last.
#[derive(Debug, Default)]
struct Wakes {
    state: AtomicU8,
    task: AtomicWaker,
}

const PARKED: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

impl Wakes {
    /// Begins a poll. Earlier wakes are part of it.
    fn begin(&self) {
        self.state.store(POLLED, SeqCst);
    }

    /// Ends a poll. False when something woke during it.
    fn park(&self) -> bool {
        self.state.compare_exchange(POLLED, PARKED, SeqCst, SeqCst).is_ok()
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, SeqCst) == PARKED {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A task that counts how often it is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Task {
        fn wakes(&self) -> usize {
            self.0.load(SeqCst)
        }
    }

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn what_wakes_itself_is_polled_again_in_place() {
        let (task, in_place) = (Arc::new(Task::default()), InPlace::default());
        let mut polls = 0;
        let polled = in_place.poll(&mut Context::from_waker(&task.clone().into()), |cx| {
            polls += 1;
            match polls {
                3 => Poll::Ready("done"),
                _ => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        });
        assert_eq!((polled, polls, task.wakes()), (Poll::Ready("done"), 3, 0));
    }

    #[test]
    fn a_wake_between_two_polls_wakes_the_task_that_polled_last() {
        let (first, second, in_place) = (Arc::new(Task::default()), Arc::new(Task::default()), InPlace::default());
        let mut waker = None;
        for (number, task) in [&first, &second].into_iter().enumerate() {
            let polled = in_place.poll(&mut Context::from_waker(&task.clone().into()), |cx| {
                waker = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
            assert!(polled.is_pending());
            assert_eq!((first.wakes(), second.wakes()), (number, 0));
            waker.take().unwrap().wake();
        }
        assert_eq!((first.wakes(), second.wakes()), (1, 1));
    }

    #[test]
    fn what_wakes_itself_without_an_end_yields_to_other_tasks() {
        let (task, in_place) = (Arc::new(Task::default()), InPlace::default());
        let mut polls = 0;
        let polled = in_place.poll(&mut Context::from_waker(&task.clone().into()), |cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, task.wakes()), (ROUNDS, 1));
    }

    #[tokio::test]
    async fn a_spent_budget_ends_the_rounds() {
        let in_place = InPlace::default();
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..1000 {
            sender.send(()).unwrap();
        }
        let mut polls = 0;
        let mut received = 0;
        let polled = std::future::poll_fn(|cx| {
            polls += 1;
            let first = in_place.poll(cx, |cx| {
                while receiver.poll_recv(cx).is_ready() {
                    received += 1;
                }
                Poll::<()>::Pending
            });
            Poll::Ready(first)
        });
        assert!(polled.await.is_pending());
        assert!((1..1000).contains(&received), "{received} within one budget");
        assert_eq!(polls, 1);
    }
}
