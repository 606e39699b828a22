//! What a job knows at one moment, under its lock.

use super::{DEFER, Inner, Slot};
use crate::Result;
use std::time::Duration;

impl Inner {
    /// Forces what must be there to the disk.
    pub(super) fn save(&mut self) -> Result<()> {
        if self.unsaved {
            // Where that fails no task must begin what the disk does not know.
            self.state.save().inspect_err(|_| self.lose())?;
            self.unsaved = false;
        }
        Ok(())
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.over.is_some() || self.state.confirmed || self.abandoned
    }

    pub(super) fn is_offered(&self, number: u32) -> bool {
        let is_free = |slot: &Slot| slot.running.is_none() && !slot.waiting.is_empty();
        !self.state.buckets[number as usize].ended && self.slots.get(&number).is_some_and(is_free)
    }

    /// After how long a task that waits with this bucket gives up its slot, which an earlier one may need:
    /// one that has not ended and that nobody here has come with, while the peer does not wait with this one.
    pub(super) fn stands_in_the_way(&self, number: u32) -> Option<Duration> {
        if self.peer_offers.contains(&number) {
            return None;
        }
        let is_here = |slot: &Slot| slot.running.is_some() || !slot.waiting.is_empty();
        let missing = (0..number).filter(|earlier| {
            !self.state.buckets[*earlier as usize].ended && !self.slots.get(earlier).is_some_and(is_here)
        });
        missing.map(|earlier| DEFER[usize::from(!self.peer_offers.contains(&earlier))]).min()
    }

    /// The session between the gateways is gone: what ran without a result here comes to nothing. What has
    /// one waits for the next session, which tells whether the peer has one too.
    pub(super) fn lose(&mut self) {
        self.peer_offers.clear();
        self.outgoing.clear();
        for (number, slot) in &mut self.slots {
            let held = self.state.buckets[*number as usize].held;
            if slot.running.as_ref().is_some_and(|running| held != Some(running.attempt)) {
                slot.give_up();
            }
            slot.peer_held = None;
        }
    }
}
