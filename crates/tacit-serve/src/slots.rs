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
    /// A client's way through a visit, as far as it got: what it takes in turn, and then gives back, the last
    /// first. One that is refused something gives back the rest.
    #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
    struct Way {
        taken: usize,
        leaves: bool,
    }

    /// What clients take in turn, and the most of each that there is.
    const TAKES: usize = 4;
    const MOST: [u64; TAKES] = [3, 2, 1, 100];
    const MOST_EACH: u64 = 1;

    /// The client's next step on the slots; whether it got what the others had left free.
    fn step(slots: &Slots, clients: &mut [(Way, Vec<Place>)], at: usize) {
        let (peers, jobs, bytes) = (["bob", "bob", "carol", "dave"], ["match", "count"], [60, 50, 40, 60]);
        let holds = |what: usize| clients.iter().enumerate().filter(move |(_, (way, _))| way.taken > what);
        let free = match clients[at].0.taken {
            0 => (holds(0).count() as u64) < MOST[0],
            1 => {
                let own = holds(1).filter(|(other, _)| peers[*other] == peers[at]).count() as u64;
                (holds(1).count() as u64) < MOST[1] && own < MOST_EACH
            }
            2 => (holds(2).filter(|(other, _)| other % 2 == at % 2).count() as u64) < MOST[2],
            _ => holds(3).map(|(other, _)| bytes[other]).sum::<u64>() + bytes[at] <= MOST[3],
        };
        let (way, places) = &mut clients[at];
        if way.leaves {
            way.taken -= 1;
            drop(places.pop());
            return;
        }
        let place = match way.taken {
            0 => slots.visit(MOST[0]),
            1 => slots.request(peers[at], MOST[1], MOST_EACH),
            2 => slots.job(jobs[at % 2], MOST[2]),
            _ => slots.memory(bytes[at], MOST[3]),
        };
        assert_eq!(place.is_some(), free, "client {at} at {}", way.taken);
        way.taken += usize::from(free);
        way.leaves = !free || way.taken == TAKES;
        places.extend(place);
    }

    /// Every call takes the lock once and holds it to its end, so what threads can do is what some order of
    /// calls does: all orders of four clients' are walked, each state once.
    #[test]
    fn in_every_order_of_four_clients_what_is_left_is_granted_and_no_more() {
        let (mut seen, mut todo) = (std::collections::BTreeSet::new(), vec![Vec::new()]);
        while let Some(order) = todo.pop() {
            let slots = Slots::default();
            let mut clients: [(Way, Vec<Place>); 4] = Default::default();
            order.iter().for_each(|&at| step(&slots, &mut clients, at));
            let state = clients.each_ref().map(|(way, _)| way.clone());
            if !seen.insert(state.clone()) {
                continue;
            }
            let going: Vec<usize> = (0..4).filter(|&at| !state[at].leaves || state[at].taken > 0).collect();
            if going.is_empty() {
                let held = slots.held();
                let left = (held.all, held.peers.len(), held.jobs.len(), held.memory, held.visits);
                assert_eq!(left, (0, 0, 0, 0, 0));
            }
            todo.extend(going.into_iter().map(|at| [&order[..], &[at]].concat()));
        }
        assert_eq!(seen.len(), 2632, "states");
    }
}
