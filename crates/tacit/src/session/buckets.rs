//! Intersections in buckets: the one kind of job that outlives its connection.

use super::Session;
use crate::job::psi::{Bucketed, Disk, InBuckets, Job};
use crate::job::{Observer, Ran};
use crate::{Error, Result};
use std::time::Instant;
use tacit_data::table::{Pass, Source};
use tacit_net::{Channel, Stats};

impl Session {
    /// As [`run_psi`](Self::run_psi) for a table whose keys do not fit in memory, as the one of the peer, which
    /// says so as well: see [`Job::run_in_buckets`]. `reading` is told now and then how many of the file's
    /// bytes have been read. Returns what the reading told, too.
    ///
    /// A connection that is lost once the buckets have begun is made again, for as long as the peer stays away
    /// no longer than twice the idle deadline of the [`limits`](Self::limits); with
    /// [`Resume`](crate::job::psi::Resume) the run can also go on after either process has ended, by the same
    /// call. A run that is complete here but for the peer's word is complete also if the peer does not come.
    pub fn run_psi_in_buckets(
        &self,
        job: &Job,
        source: &Source,
        most_peer_keys: u64,
        disk: &Disk<'_>,
        reading: impl FnMut(u64) + Send,
        observer: &dyn Observer,
    ) -> Result<(Ran<Bucketed>, Pass)> {
        let base = self.allow_psi(job)?;
        let disk = &Disk { at_once: self.threads, ..*disk };
        let agreement = job.agreement_in_buckets(&*base, disk);
        let mut pass = None;
        let keys = Box::new(|each: &mut dyn FnMut(Option<&[u8]>) -> Result<()>| {
            pass = Some(source.each_key(reading, |element| each(element.map(<[u8; 32]>::as_slice)))?);
            Ok(())
        });
        let mut run = InBuckets::new(job, &*base, keys, most_peer_keys, disk, observer)?;
        if disk.resume.is_some_and(|resume| resume.is_begun()) {
            // What is kept may be all that it takes.
            run.prepare()?;
        }
        let (mut session, mut stats, mut start) = (self.clone(), Stats::default(), None);
        while !run.is_confirmed() {
            let opened = session.open(agreement.clone());
            let mut opened = match opened {
                Ok(opened) => opened,
                Err(error) if run.is_complete() && is_absence(&error) => break,
                Err(error) => return Err(self.ended(error)),
            };
            start.get_or_insert_with(Instant::now);
            let is_open = opened.tls().is_none();
            if is_open {
                opened.channels().iter_mut().for_each(Channel::audit);
            }
            let ran = run
                .go_on(opened.channels())
                .and_then(|()| Ok(opened.channels().iter_mut().try_for_each(Channel::confirm)?));
            stats = stats.and(&opened.stats());
            drop(opened);
            match ran {
                Ok(()) => break,
                // The result is there; what failed is the comparison of what was sent, or the goodbye.
                Err(error) if run.is_confirmed() && !is_open && error.is_lost_link() => break,
                Err(error)
                    if error.is_lost_link() && run.progress().is_some() && !self.cancel.is_cancelled() =>
                {
                    observer.interrupted(&error);
                    let window = 2 * self.limits.idle;
                    session.limits.connect = window;
                    session.limits.accept = Some(window);
                }
                Err(error) => return Err(self.ended(error)),
            }
        }
        let result = run.finish()?;
        let pass = pass.ok_or_else(|| Error::Other("the table was not read".into()))?;
        let wall = start.map(|start| start.elapsed()).unwrap_or_default();
        Ok((Ran { result, wall, stats }, pass))
    }

    fn ended(&self, error: Error) -> Error {
        if self.cancel.is_cancelled() { tacit_net::Error::Cancelled.into() } else { error }
    }
}

/// Whether the peer was not there at all.
fn is_absence(error: &Error) -> bool {
    use tacit_net::Error as Net;
    matches!(error, Error::Net(Net::Unreachable { .. } | Net::NoPeer { .. } | Net::Unresolved { .. }))
}
