//! Random arrivals, departures and ends of groups.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;

/// What happens next in a random run.
#[derive(Debug, Clone)]
enum Event {
    /// A caller creates an agent in a workspace. There are few agents, so that many batches fail.
    Submit { workspace: u128, item: u8 },
    /// One of the callers drops its future.
    Abort(proptest::sample::Index),
    /// Some groups end.
    End(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1_u128..4, 0_u8..12).prop_map(|(workspace, item)| Event::Submit { workspace, item }),
        1 => any::<proptest::sample::Index>().prop_map(Event::Abort),
        2 => (1_usize..3).prop_map(Event::End),
    ]
}

struct Submitted {
    workspace: u128,
    item: u8,
    caller: Caller,
    aborted: bool,
}

/// Each caller that stays gets the verdict of its own batch. The accepted batches of a workspace are numbered in the
/// order of their arrival, and what callers that left had in flight is the only thing between them.
async fn run_events(events: Vec<Event>) {
    let bench = Bench::new(LIMITS);
    let mut submitted: Vec<Submitted> = Vec::new();
    for event in events {
        match event {
            Event::Submit { workspace, item } => {
                let caller = bench.submit(create(workspace, &item.to_string())).await;
                submitted.push(Submitted {
                    workspace,
                    item,
                    caller,
                    aborted: false,
                });
            }
            Event::Abort(index) if !submitted.is_empty() => {
                let one = index.get_mut(&mut submitted);
                one.caller.abort();
                one.aborted = true;
                tokio::task::yield_now().await;
            }
            Event::Abort(_) => {}
            Event::End(groups) => {
                bench.permit(groups);
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
    bench.end().await;
    assert!(bench.engine.most.load(Ordering::SeqCst) <= LIMITS.flights);
    let mut created: BTreeSet<(u128, u8)> = BTreeSet::new();
    let mut last: BTreeMap<u128, u64> = BTreeMap::new();
    let mut left: BTreeSet<(u128, u8)> = BTreeSet::new();
    for one in submitted {
        let agent = (one.workspace, one.item);
        match one.caller.await {
            Ok(Ok(committed)) => {
                assert!(created.insert(agent), "an agent is created once");
                let number = committed.numbers[1];
                let before = last.insert(one.workspace, number).unwrap_or(0);
                assert!(number > before, "in the order of arrival");
            }
            Ok(Err(CommitError::Conflict(0))) => {
                assert!(
                    created.contains(&agent) || left.contains(&agent),
                    "refused without a cause"
                );
            }
            Ok(Err(CommitError::Store(StoreError::Unavailable(_)))) => {}
            Ok(Err(other)) => panic!("{other}"),
            Err(gone) => {
                assert!(gone.is_cancelled() && one.aborted);
                left.insert(agent);
            }
        }
    }
    for number in 1..4 {
        let head = bench.value(&Key::log_head(workspace(number))).await;
        let entries: u64 = head.map_or(0, |head| std::str::from_utf8(&head.value).unwrap().parse().unwrap());
        let mut agents = 0;
        for item in 0..12 {
            let there = bench.value(&agent(number, &item.to_string())).await.is_some();
            agents += u64::from(there);
            assert!(
                there || !created.contains(&(number, item)),
                "an accepted batch is there"
            );
            assert!(!there || created.contains(&(number, item)) || left.contains(&(number, item)));
        }
        assert_eq!(entries, agents, "each batch is there as a whole or not at all");
    }
}

/// Requests of lanes: the lane, the place in the order of arrivals, the bytes.
type Flight = lanes::Group<u8, (u8, usize, u64)>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_callers_get_their_own_verdicts(events in proptest::collection::vec(event(), 1..80)) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(run_events(events));
    }

    /// No sequence of arrivals, reservations and ends loses a request, starts a lane twice, or exceeds a limit.
    #[test]
    fn lanes_keep_their_bounds_and_orders(steps in proptest::collection::vec((0_u8..5, 0_u64..700, any::<bool>(), any::<bool>(), any::<bool>()), 1..120)) {
        let mut lanes: lanes::Lanes<u8, (u8, usize, u64)> = lanes::Lanes::new(LIMITS);
        let mut flying: VecDeque<(Flight, bool)> = VecDeque::new();
        let (mut pushed, mut flown) = (0, BTreeMap::<u8, Vec<usize>>::new());
        let (mut accepted, mut reserved) = (0, false);
        for (number, (lane, bytes, land, slow, form)) in steps.into_iter().enumerate() {
            pushed += 1;
            accepted += usize::from(lanes.push(lane, bytes, (lane, number, bytes)).is_ok());
            if slow && let Some((_, is_slow)) = flying.iter_mut().find(|(_, slow)| !slow).filter(|_| land) {
                *is_slow = true;
                lanes.slowed();
            } else if land && let Some((group, slow)) = flying.pop_front() {
                lanes.landed(&group.lanes, slow);
            }
            reserved |= lanes.reserve(|| false);
            while (reserved && form)
                && let Some(group) = lanes.form(Some)
            {
                reserved = lanes.reserve(|| false);
                prop_assert!(group.requests.len() <= LIMITS.group);
                let bytes: u64 = group.requests.iter().map(|request| request.2).sum();
                prop_assert!(bytes <= LIMITS.bytes || group.requests.len() == 1);
                prop_assert!(flying.iter().all(|(other, _)| other.lanes.iter().all(|lane| !group.lanes.contains(lane))));
                for (lane, number, _) in &group.requests {
                    prop_assert!(group.lanes.contains(lane));
                    flown.entry(*lane).or_default().push(*number);
                }
                flying.push_back((group, false));
                prop_assert!(flying.len() <= LIMITS.most);
                prop_assert!(flying.iter().filter(|(_, slow)| !slow).count() <= LIMITS.flights);
            }
        }
        loop {
            reserved |= lanes.reserve(|| false);
            while reserved
                && let Some(group) = lanes.form(Some)
            {
                reserved = lanes.reserve(|| false);
                for (lane, number, _) in &group.requests {
                    flown.entry(*lane).or_default().push(*number);
                }
                flying.push_back((group, false));
            }
            let Some((group, slow)) = flying.pop_front() else { break };
            lanes.landed(&group.lanes, slow);
        }
        prop_assert!(lanes.is_idle());
        prop_assert!(accepted <= pushed);
        prop_assert_eq!(flown.values().map(Vec::len).sum::<usize>(), accepted, "nothing is lost");
        prop_assert!(flown.values().all(|numbers| numbers.is_sorted()), "each lane keeps its order");
    }
}
