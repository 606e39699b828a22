//! What happens to those who wait with a bucket.

use super::super::state::folder_of;
use super::super::words::encode;
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
        most_peer: u64::MAX,
    };
    let key = Arc::new(FileKey::from_bytes(&[1; 32]).unwrap());
    let mut state = State::new(folder, "job", terms, key);
    state.settle(Plan { name: RUN, key: [2; 32], own: 10, peer: 10, buckets: 2 }).unwrap();
    Job::new(state, first, 16, Arc::default(), Arc::new(|_: &str| {}))
}

/// Word of an attempt that never was ends the session, and word that nobody waits for leaves no line.
#[test]
fn failures_of_nothing_are_refused_and_fill_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let said = Arc::new(std::sync::Mutex::new(Vec::new()));
    let lines = said.clone();
    let mut job = job(folder.path(), false);
    job.lines = Arc::new(move |line: &str| lines.lock().unwrap().push(line.to_owned()));
    let mut inner = job.inner();
    job.happened(&mut inner, Event::Failed(0, 0)).unwrap_err();
    job.happened(&mut inner, Event::Failed(0, 1)).unwrap_err();
    job.happened(&mut inner, Event::Begin(0, 1)).unwrap();
    let before = said.lock().unwrap().len();
    for _ in 0..1000 {
        job.happened(&mut inner, Event::Failed(0, 1)).unwrap();
    }
    assert!(said.lock().unwrap().len() <= before + 1);
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
    job.inner().state.agreed = true;
    assert!(matches!(job.settled(&mut || false).0, Ok(Reply::Plan { name: RUN, .. })));
    let Ok(task) = job.offer(&RUN, 0, &[3; 32]).unwrap() else { panic!("it has ended") };
    let mut inner = job.inner();
    inner.state.settle(Plan { name: [8; 32], key: [2; 32], own: 10, peer: 10, buckets: 2 }).unwrap();
    job.happened(&mut inner, Event::Begin(0, 1)).unwrap();
    drop(inner);
    assert!(job.turn(&RUN, (0, task), Instant::now(), GRACE).is_err());
}

/// Nor is one of them offered under another plan.
#[test]
fn tasks_of_one_plan_do_not_wait_under_another() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), true);
    assert!(job.offer(&RUN, 0, &[3; 32]).unwrap().is_ok());
    job.inner().epoch = 1;
    let (mut ours, mut theirs) = tacit_net::memory::pair();
    let peer = std::thread::spawn(move || peer_settles(&mut theirs, || ()).map(drop));
    job.meet(&mut ours, 1).unwrap();
    peer.join().unwrap().unwrap();
    assert!(job.inner().state.agreed && job.inner().slots.is_empty());
}

/// What the second gateway does over one session until a plan is settled, and with `pause` before the coins.
fn peer_settles(channel: &mut Channel, pause: impl FnOnce()) -> Result<Plan> {
    meeting::meet(channel, Standing::Fresh)?;
    channel.send(&[1])?;
    channel.flush()?;
    channel.recv(&mut [0])?;
    let own = meeting::announce(channel, 10)?;
    let buckets = meeting::agree(channel, 2)?;
    pause();
    let plan = meeting::toss(channel, &mut Prg::from_os(), [10, own], buckets)?;
    meeting::together(channel, SETTLED)?;
    channel.send(&vec![0; 3 * plan.buckets as usize])?;
    channel.flush()?;
    let mut theirs = vec![0; 3 * plan.buckets as usize];
    channel.recv(&mut theirs)?;
    Ok(plan)
}

/// A second gateway stops before the coins of a session, settles over another one, and then goes on with the first: what
/// has begun under the plan stays as it is.
#[test]
fn a_session_that_another_has_replaced_settles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let key = Arc::new(FileKey::from_bytes(&[1; 32]).unwrap());
    let state = State::new(folder.path(), "job", job(folder.path(), true).terms(), key.clone());
    let job = Job::new(state, true, 16, Arc::default(), Arc::new(|_: &str| {}));
    let ((mut ours, mut theirs), (go, wait)) = (tacit_net::memory::pair(), std::sync::mpsc::channel::<()>());
    std::thread::scope(|scope| {
        let job = &job;
        let stale = scope.spawn(move || {
            job.inner().epoch = 1;
            job.meet(&mut ours, 1)
        });
        let late = scope.spawn(move || {
            let settled = peer_settles(&mut theirs, || wait.recv().unwrap());
            drop(theirs);
            settled.is_ok()
        });
        // It has come as far as the coins, which are counted before they are tossed.
        while !folder_of(folder.path(), "job").join("tosses").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        job.inner().epoch = 2;
        let (mut ours, mut theirs) = tacit_net::memory::pair();
        let peer = scope.spawn(move || peer_settles(&mut theirs, || ()).unwrap());
        job.meet(&mut ours, 2).unwrap();
        let plan = peer.join().unwrap();
        let begun = {
            let mut inner = job.inner();
            assert!(inner.state.agreed && inner.state.plan.as_ref().unwrap().name == plan.name);
            inner.state.buckets[0] = Bucket { begun: 2, digest: Some([3; 32]), ..Bucket::default() };
            inner.state.save().unwrap();
            inner.state.buckets.len()
        };
        go.send(()).unwrap();
        assert!(stale.join().unwrap().unwrap_err().is_lost_link());
        assert!(!late.join().unwrap(), "the first session has settled a plan");
        let kept = |state: &State| (state.plan.as_ref().unwrap().name, state.buckets[0].begun, state.agreed);
        assert_eq!(kept(&job.inner().state), (plan.name, 2, true));
        job.inner().state.close();
        let state = State::load(&folder_of(folder.path(), "job"), key.clone()).unwrap().unwrap();
        assert_eq!((kept(&state), state.buckets.len()), ((plan.name, 2, true), begun));
    });
}

/// What the peer says over a session at any step of the meeting, once another has taken its place, changes nothing;
/// and nothing is said over one that comes too late.
#[test]
fn a_session_that_was_replaced_changes_nothing_at_any_step() {
    let begin = |theirs: &mut Channel, standing| -> Result<()> {
        meeting::meet(theirs, standing)?;
        theirs.send(&[1])?;
        theirs.flush()?;
        Ok(theirs.recv(&mut [0])?)
    };
    let ends = |job: &Job, theirs: &mut Channel| -> Result<()> {
        meeting::meet(theirs, Standing::Ended(RUN))?;
        job.inner().epoch = 2;
        theirs.send(&[1])?;
        theirs.flush()?;
        Ok(theirs.recv(&mut [0])?)
    };
    let settles = |job: &Job, theirs: &mut Channel| -> Result<()> {
        begin(theirs, Standing::Fresh)?;
        meeting::announce(theirs, 10)?;
        job.inner().epoch = 2;
        meeting::agree(theirs, 2).map(drop)
    };
    let compares = |job: &Job, theirs: &mut Channel| -> Result<()> {
        begin(theirs, Standing::Under(RUN))?;
        theirs.recv(&mut [0; 6])?;
        job.inner().epoch = 2;
        theirs.send(&[1; 6])?;
        Ok(theirs.flush()?)
    };
    type Step<'a> = &'a (dyn Fn(&Job, &mut Channel) -> Result<()> + Sync);
    let steps: [Step<'_>; 3] = [&ends, &settles, &compares];
    for (at, step) in steps.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path(), true);
        job.inner().epoch = 1;
        let (mut ours, mut theirs) = tacit_net::memory::pair();
        std::thread::scope(|scope| {
            let job = &job;
            let peer = scope.spawn(move || step(job, &mut theirs));
            assert!(job.meet(&mut ours, 1).unwrap_err().is_lost_link(), "{at}");
            peer.join().unwrap().unwrap();
        });
        let inner = job.inner();
        assert!(inner.state.over.is_none() && !inner.state.agreed, "{at}");
        assert!(inner.state.buckets.iter().all(|bucket| bucket.begun == 0), "{at}");
        assert!(!folder_of(folder.path(), "job").join("tosses").exists(), "{at}: no coins");
    }
    let late: [fn(&Job, &mut Channel) -> Result<()>; 2] =
        [|job, ours| job.meet(ours, 1), |job, ours| job.compare(ours, 1)];
    for (at, step) in late.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path(), true);
        job.inner().epoch = 2;
        let (mut ours, mut theirs) = tacit_net::memory::pair();
        let heard = std::thread::spawn(move || theirs.recv(&mut [0]).is_ok());
        assert!(step(&job, &mut ours).unwrap_err().is_lost_link(), "{at}");
        drop(ours);
        assert!(!heard.join().unwrap(), "{at}");
    }
}

/// Nor does a plan take the place of one under which anything was begun, whoever asks for it.
#[test]
fn a_job_that_has_begun_gets_no_other_plan() {
    let other = || Plan { name: [8; 32], key: [2; 32], own: 10, peer: 10, buckets: 2 };
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), true);
    let mut inner = job.inner();
    inner.state.settle(other()).unwrap();
    let refused = |state: &mut State, change: fn(&mut State)| {
        change(state);
        assert!(state.settle(other()).is_err());
    };
    refused(&mut inner.state, |state| state.buckets[1].begun = 1);
    refused(&mut inner.state, |state| (state.buckets[1].begun, state.over) = (0, Some(End::Attempts)));
    refused(&mut inner.state, |state| (state.over, state.confirmed) = (None, true));
    inner.state.confirmed = false;
    (inner.state.agreed, inner.state.received) = (true, true);
    inner.state.settle(other()).unwrap();
    assert!(!inner.state.agreed && !inner.state.received, "of the plan before");
}

/// Events on the way while another session takes the place of theirs are of another time.
#[test]
fn what_comes_late_over_a_session_that_was_replaced_is_not_heard() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), true);
    let (mut ours, mut theirs) = tacit_net::memory::pair();
    std::thread::scope(|scope| {
        job.inner().epoch = 1;
        let job = &job;
        let turns = scope.spawn(move || job.in_turns(&mut ours, 1));
        // It has looked whose session this is, and waits for what the peer says.
        theirs.recv_sized(64).unwrap();
        {
            let mut inner = job.inner();
            inner.epoch = 2;
            inner.state.buckets[0] = Bucket { begun: 2, held: Some(2), ended: true, ..Bucket::default() };
        }
        // In order, it would be a peer that does not keep to the job.
        let said: Vec<u8> = [Event::Failed(0, 1), Event::Offer(1)].into_iter().flat_map(encode).collect();
        theirs.send_sized(&said).unwrap();
        theirs.flush().unwrap();
        assert!(turns.join().unwrap().is_ok());
        let inner = job.inner();
        assert!(inner.state.over.is_none() && inner.peer_offers.is_empty());
    });
}

/// Whoever asks is told whose fault it is.
#[test]
fn a_full_disk_is_no_fault_of_the_peer() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), true);
    let full = Error::file(folder.path(), "cannot be written", std::io::ErrorKind::StorageFull.into());
    job.inner().stuck = Some(Refusal::of(&full));
    let said = job.settled(&mut || true).0.err().unwrap();
    assert_eq!((said.blame(), said.to_string()), (Blame::Input, full.to_string()));
    // Who asks again does not hear of it once more.
    job.reopen(&job.terms()).unwrap();
    assert!(job.inner().stuck.is_none());
    job.inner().state.agreed = true;
    assert!(matches!(job.settled(&mut || true).0, Ok(Reply::Plan { .. })));
}

/// A plan that this side has alone is not yet settled: why it came to nothing is said, until somebody asks anew.
#[test]
fn why_nothing_was_settled_is_said_with_a_plan_of_one_side_too() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), true);
    let no = Error::Input("the files differ".to_owned());
    job.refuse(&no);
    let said = job.settled(&mut || true).0.err().unwrap();
    assert!(said.to_string().contains("the files differ"), "{said}");
    job.reopen(&job.terms()).unwrap();
    assert!(job.inner().refusal.is_none());
    job.inner().state.agreed = true;
    job.refuse(&no);
    assert!(job.inner().refusal.is_none());
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
