//! The process's workers: one pool of threads, sized once by the cores that the process has.
//!
//! A caller cuts its work into parts, as many as [`count`] says or more, and takes part in it: where all workers
//! are busy, it does the work alone. Which parts there are may depend on [`count`], what comes of them must not.
//! Parts compute; none waits for a peer or a disk.

use crate::fence::fenced;
use rayon_core::{Scope, ThreadPool, ThreadPoolBuilder};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Parts that [`in_order`] makes beyond those at work.
pub const PARTS_AHEAD: usize = 2;
/// More threads than this are never used.
pub const MAX_THREADS: usize = 64;

thread_local! {
    /// Threads that this thread's work may use; 0 where nobody said.
    static LIMIT: Cell<usize> = const { Cell::new(0) };
}

/// Cores that this process has, by its affinity and its control group's limit.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS))
}

/// Threads that this thread's work may use, itself among them: all cores, unless [`limited`] says otherwise.
pub fn count() -> usize {
    match LIMIT.get() {
        0 => cores(),
        limit => limit,
    }
}

/// Does `work`, which may use so many threads; 0 stands for all cores. More parts than cores are no harm.
pub fn limited<T>(threads: usize, work: impl FnOnce() -> T) -> T {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            LIMIT.set(self.0);
        }
    }
    let _restore = Restore(LIMIT.replace(threads.min(MAX_THREADS)));
    work()
}

/// How long pieces of `len` items are, so that each thread has one and none is shorter than `least`.
pub fn share(len: usize, least: usize) -> usize {
    len.div_ceil(count()).max(least).max(1)
}

/// The workers; `None` where the system gives none. A forked process has none of its parent's threads.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<(ThreadPool, u32)>> = OnceLock::new();
    let make = || {
        let named = |worker| format!("tacit-worker-{worker}");
        let builder = ThreadPoolBuilder::new().num_threads((cores() - 1).max(1)).thread_name(named);
        Some((builder.build().ok()?, std::process::id()))
    };
    let (pool, process) = POOL.get_or_init(make).as_ref()?;
    (*process == std::process::id()).then_some(pool)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` with each of the `parts`, in any order; panics where it does.
pub fn each<T: Send>(parts: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    let parts: Vec<T> = parts.into_iter().collect();
    let threads = count().min(parts.len());
    let Some(pool) = (threads > 1).then(pool).flatten() else { return parts.into_iter().for_each(work) };
    let parts = Mutex::new(parts.into_iter());
    let next = || locked(&parts).next();
    let take = || {
        while let Some(part) = next() {
            work(part);
        }
    };
    let failed = Mutex::new(None);
    // A worker that panics is as silent as its caller may want to be.
    let work = |_: &Scope<'_>| {
        if let Err(panicked) = fenced(|| limited(1, take)) {
            *locked(&failed) = Some(panicked);
        }
    };
    pool.in_place_scope(|scope| {
        (1..threads).for_each(|_| scope.spawn(work));
        limited(1, take);
    });
    let failed = locked(&failed).take();
    if let Some(panicked) = failed {
        panic!("{panicked}");
    }
}

/// What `work` makes of each of the `parts`, in their order; panics where it does.
pub fn map<T: Send, R: Send>(parts: impl IntoIterator<Item = T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let parts: Vec<T> = parts.into_iter().collect();
    let mut results: Vec<Option<R>> = parts.iter().map(|_| None).collect();
    each(parts.into_iter().zip(&mut results), |(part, result)| *result = Some(work(part)));
    results.into_iter().flatten().collect()
}

/// A part, and who waits for its result.
type Waiting<T, R> = (T, SyncSender<R>);

/// Parts that no worker has taken, and workers that take them.
struct Queue<T, R> {
    parts: VecDeque<Waiting<T, R>>,
    workers: usize,
}

/// Makes parts by `make` on this thread until there is none, has workers do `work` with them, and hands the
/// results to `take` on this thread, in the parts' order. Once `take` says `false` no more parts are made; it
/// still gets the results of those that were. Errors of either end it at once.
pub fn in_order<T: Send, R: Send, E>(
    mut make: impl FnMut() -> Result<Option<T>, E>,
    work: impl Fn(T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<bool, E>,
) -> Result<(), E> {
    let threads = count();
    let Some(pool) = (threads > 1).then(pool).flatten() else {
        while let Some(part) = make()? {
            if !take(work(part))? {
                break;
            }
        }
        return Ok(());
    };
    let queue = Mutex::new(Queue { parts: VecDeque::new(), workers: 0 });
    // Whoever waits for the result of a part that panicked finds its sender gone.
    let done = |(part, result): Waiting<T, R>| {
        _ = fenced(|| limited(1, || work(part))).map(|made| result.send(made));
    };
    pool.in_place_scope(|scope| {
        let (mut made, mut goes_on): (VecDeque<Receiver<R>>, bool) = (VecDeque::new(), true);
        loop {
            while goes_on && made.len() < threads + PARTS_AHEAD {
                let Some(part) = make()? else {
                    goes_on = false;
                    break;
                };
                let (sender, receiver) = sync_channel(1);
                made.push_back(receiver);
                put(scope, &queue, (part, sender), threads - 1, &done);
            }
            let Some(first) = made.pop_front() else { return Ok(()) };
            goes_on &= take(result(&first, &queue, &done))?;
        }
    })
}

/// Puts a part into the queue, for a worker that is at work or for a new one, of which there are `most`.
fn put<'s, T: Send, R: Send>(
    scope: &Scope<'s>,
    queue: &'s Mutex<Queue<T, R>>,
    part: Waiting<T, R>,
    most: usize,
    done: &'s (impl Fn(Waiting<T, R>) + Sync),
) {
    let mut waiting = locked(queue);
    waiting.parts.push_back(part);
    if waiting.workers >= most {
        return;
    }
    waiting.workers += 1;
    scope.spawn(move |_| {
        loop {
            let mut waiting = locked(queue);
            let Some(part) = waiting.parts.pop_front() else {
                waiting.workers -= 1;
                return;
            };
            drop(waiting);
            done(part);
        }
    });
}

/// The result of a part that was put into the queue; this thread works as long as it is not there.
fn result<T, R>(of: &Receiver<R>, queue: &Mutex<Queue<T, R>>, done: &impl Fn(Waiting<T, R>)) -> R {
    loop {
        let next = match of.try_recv() {
            Ok(result) => return result,
            Err(TryRecvError::Empty) => locked(queue).parts.pop_front(),
            Err(TryRecvError::Disconnected) => None,
        };
        match next {
            Some(part) => done(part),
            None => return of.recv().expect("a worker panicked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_part_is_worked_on_once_by_as_many_threads_as_allowed() {
        for threads in [1, 2, 3, 8] {
            let [now, most] = [(); 2].map(|()| AtomicUsize::new(0));
            let work = |part: usize| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                // What a part does is not cut further.
                assert_eq!(count(), 1);
                now.fetch_sub(1, Ordering::SeqCst);
                part * part
            };
            let squares = limited(threads, || match threads {
                // Alone a thread may do what it likes.
                1 => map(0..100, |part| part * part),
                _ => map(0..100, work),
            });
            assert!(squares.into_iter().eq((0..100).map(|part| part * part)));
            assert!(most.into_inner() <= threads);
            assert_eq!(limited(threads, || share(1000, 10)), 1000usize.div_ceil(threads));
        }
        assert_eq!((count(), limited(0, count)), (cores(), cores()));
    }

    #[test]
    fn results_come_in_order_and_the_last_ones_too() {
        for threads in [1, 2, 8] {
            for stop in [0, 5, 1000] {
                let (mut made, mut taken) = (0, Vec::new());
                let make = || {
                    made += 1;
                    Ok::<_, ()>((made <= 200).then_some(made))
                };
                let take = |part: i32| {
                    taken.push(part);
                    Ok(part < stop)
                };
                limited(threads, || in_order(make, |part| part, take)).unwrap();
                // All that were made were taken.
                assert!(taken.iter().copied().eq(1..=taken.len() as i32));
                assert!(
                    taken.len() as i32 >= stop.clamp(1, 200) && taken.len() as i32 >= (made - 1).min(200)
                );
            }
            let failing = limited(threads, || in_order(|| Ok(Some(1)), |part: i32| part, Err));
            assert_eq!(failing, Err(1));
        }
    }

    #[test]
    fn a_panic_of_a_part_is_the_callers() {
        let panics = || limited(4, || each(0..10, |part| assert!(part != 7, "part seven")));
        assert!(fenced(panics).is_err());
        let in_order = || in_order(|| Ok(Some(7)), |part| assert!(part != 7), |()| Ok::<_, ()>(true));
        assert!(fenced(|| limited(4, in_order)).is_err());
        assert_eq!(limited(4, || map(0..3, |part| part)), [0, 1, 2]);
    }
}
