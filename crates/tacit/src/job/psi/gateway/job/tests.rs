//! What happens to those who wait with a bucket.

use super::*;
use tacit_store::sealed::FileKey;

const RUN: [u8; 32] = [7; 32];

fn job(folder: &std::path::Path, first: bool) -> Job {
    let terms = Terms {
        protocol: "psi".to_owned(),
        role: "sender".to_owned(),
        peer_role: "receiver".to_owned(),
        parameters: Vec::new(),
        own: 10,
        buckets: 2,
        patience: 60,
    };
    let key = Arc::new(FileKey::from_bytes(&[1; 32]).unwrap());
    let mut state = State::new(folder, "job", terms, key);
    state.settle(Plan { name: RUN, key: [2; 32], own: 10, peer: 10, buckets: 2 }).unwrap();
    Job::new(state, first, 16, Arc::default(), Arc::new(|_: &str| {}))
}

/// An attempt may come to nothing before its task has heard that it is to run: it waits on, and the peer
/// hears of it.
#[test]
fn a_task_that_has_not_heard_of_its_attempt_waits_on() {
    for first in [true, false] {
        for lost in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let job = job(folder.path(), first);
            let Ok(task) = job.offer(&RUN, 0, &[3; 32]).unwrap() else { panic!("it has ended") };
            let mut inner = job.inner();
            job.happened(&mut inner, Event::Offer(0)).unwrap();
            if first {
                job.decide(&mut inner).unwrap();
            } else {
                job.happened(&mut inner, Event::Begin(0, 1)).unwrap();
            }
            assert!(inner.slots[&0].running.is_some() && inner.slots[&0].waiting.is_empty());
            inner.outgoing.clear();
            if lost {
                inner.lose();
            } else {
                job.happened(&mut inner, Event::Failed(0, 1)).unwrap();
                assert_eq!(inner.outgoing, [Event::Offer(0)]);
            }
            assert!(inner.slots[&0].running.is_none());
            assert_eq!(inner.slots[&0].waiting, [task]);
            // The next attempt is its own.
            job.happened(&mut inner, Event::Offer(0)).unwrap();
            if first {
                job.decide(&mut inner).unwrap();
            } else {
                job.happened(&mut inner, Event::Begin(0, 2)).unwrap();
            }
            drop(inner);
            let turn = job.turn(&RUN, (0, task), Instant::now(), GRACE).unwrap();
            assert!(matches!(turn, Turn::Run(2)));
        }
    }
}

/// A gateway that ended while a plan was settled may have it alone: then another one is settled, and a task that ran
/// under the first would meet one of the second, which both would take for cheating.
#[test]
fn a_plan_is_given_out_once_both_have_it_and_its_tasks_do_not_run_under_another() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), false);
    assert!(job.settled(&mut || false).0.is_err());
    job.inner().agreed = true;
    assert!(matches!(job.settled(&mut || false).0, Ok(Reply::Plan { name: RUN, .. })));
    let Ok(task) = job.offer(&RUN, 0, &[3; 32]).unwrap() else { panic!("it has ended") };
    let mut inner = job.inner();
    inner.state.settle(Plan { name: [8; 32], key: [2; 32], own: 10, peer: 10, buckets: 2 }).unwrap();
    job.happened(&mut inner, Event::Begin(0, 1)).unwrap();
    drop(inner);
    assert!(job.turn(&RUN, (0, task), Instant::now(), GRACE).is_err());
}

/// The coins for a plan are tossed three times at most, whatever gateway goes on with the job.
#[test]
fn tosses_are_counted_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let terms = job(tempfile::tempdir().unwrap().path(), true).terms();
    let key = Arc::new(FileKey::from_bytes(&[1; 32]).unwrap());
    let tosses: Vec<bool> = (0..5)
        .map(|_| State::new(folder.path(), "another job", terms.clone(), key.clone()).toss().unwrap())
        .collect();
    assert_eq!(tosses, [true, true, true, false, false]);
}
