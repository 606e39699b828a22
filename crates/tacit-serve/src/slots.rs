//! Requests that are served at the same time, and the memory that their runs may take.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Held {
    all: u64,
    peers: BTreeMap<String, u64>,
    jobs: BTreeMap<String, u64>,
    memory: u64,
    /// Connections that have a thread, whether they are served or refused.
    visits: u64,
}

/// Counts what is taken; what was taken comes back when its [`Place`] is dropped.
#[derive(Clone, Default)]
pub struct Slots(Arc<Mutex<Held>>);

/// What is counted.
enum Kind {
    Visit,
    Peer(String),
    Job(String),
    Memory(u64),
}

/// Something taken.
pub struct Place {
    slots: Slots,
    kind: Kind,
}

impl Slots {
    fn held(&self) -> MutexGuard<'_, Held> {
        // A holder that panicked has changed a number or not; both are right.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, kind: Kind) -> Option<Place> {
        Some(Place { slots: self.clone(), kind })
    }

    /// A connection, of at most `most`.
    pub fn visit(&self, most: u64) -> Option<Place> {
        let mut held = self.held();
        if held.visits >= most {
            return None;
        }
        held.visits += 1;
        self.place(Kind::Visit)
    }

    /// A request of `peer`, of at most `most` in all and `most_each` of one peer.
    pub fn request(&self, peer: &str, most: u64, most_each: u64) -> Option<Place> {
        let mut held = self.held();
        let own = held.peers.get(peer).copied().unwrap_or(0);
        if held.all >= most || own >= most_each {
            return None;
        }
        held.all += 1;
        held.peers.insert(peer.to_owned(), own + 1);
        self.place(Kind::Peer(peer.to_owned()))
    }

    /// A request of `job`, of at most `most`.
    pub fn job(&self, job: &str, most: u64) -> Option<Place> {
        let mut held = self.held();
        let own = held.jobs.get(job).copied().unwrap_or(0);
        if own >= most {
            return None;
        }
        held.jobs.insert(job.to_owned(), own + 1);
        self.place(Kind::Job(job.to_owned()))
    }

    /// `bytes` of memory, of at most `most` in all.
    pub fn memory(&self, bytes: u64, most: u64) -> Option<Place> {
        let mut held = self.held();
        let sum = held.memory.checked_add(bytes).filter(|sum| *sum <= most)?;
        held.memory = sum;
        self.place(Kind::Memory(bytes))
    }

    /// Memory that is left of `most`.
    pub fn memory_left(&self, most: u64) -> u64 {
        most.saturating_sub(self.held().memory)
    }

    /// Memory that runs hold.
    pub fn memory_held(&self) -> u64 {
        self.held().memory
    }

    /// Connections that have a thread.
    pub fn visits(&self) -> u64 {
        self.held().visits
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        let less = |counts: &mut BTreeMap<String, u64>, name: &str| {
            if let Some(count) = counts.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(name);
                }
            }
        };
        match &self.kind {
            Kind::Visit => held.visits -= 1,
            Kind::Peer(peer) => {
                held.all -= 1;
                less(&mut held.peers, peer);
            }
            Kind::Job(job) => less(&mut held.jobs, job),
            Kind::Memory(bytes) => held.memory -= bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_most_at_once_and_all_comes_back() {
        let slots = Slots::default();
        let one = slots.request("bob", 3, 2).unwrap();
        let two = slots.request("bob", 3, 2).unwrap();
        assert!(slots.request("bob", 3, 2).is_none(), "of one peer");
        let three = slots.request("carol", 3, 2).unwrap();
        assert!(slots.request("dave", 3, 2).is_none(), "in all");
        drop(one);
        assert!(slots.request("dave", 3, 2).is_some());
        drop((two, three));
        let memory = slots.memory(70, 100).unwrap();
        assert!(slots.memory(31, 100).is_none() && slots.memory(u64::MAX, 100).is_none());
        assert_eq!(slots.memory_left(100), 30);
        drop(memory);
        let (job, visit) = (slots.job("match", 1).unwrap(), slots.visit(1).unwrap());
        assert!(slots.job("match", 1).is_none() && slots.visit(1).is_none());
        drop((job, visit));
        let held = slots.held();
        assert_eq!((held.all, held.peers.len(), held.jobs.len(), held.memory, held.visits), (0, 0, 0, 0, 0));
    }
}
