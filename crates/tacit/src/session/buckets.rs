//! Intersections in buckets: the one kind of job that outlives its connection.

use super::Session;
use crate::job::psi::{Bucketed, Disk, InBuckets, Job};
use crate::job::{Observer, Ran};
use crate::{Error, Result};
use std::time::{Duration, Instant};
use tacit_data::table::{Pass, Source};
use tacit_net::{Channel, Protection, Stats};

/// Connections in a row that may end without a bucket done.
const FRUITLESS: u32 = 10;
/// Between two of them that broke before they stood.
const BETWEEN: Duration = Duration::from_millis(200);

impl Session {
    /// As [`run_psi`](Session::run_psi) for tables whose keys do not fit in memory; both sides call it: see
    /// [`Job::run_in_buckets`]. `reading` is told now and then how many of the file's bytes have been read.
    /// Returns what the reading told, too.
    ///
    /// A connection that is lost is made again, where the peer stays away no longer than twice the idle
    /// deadline of the [`limits`](Session::limits); with [`Resume`](crate::job::psi::Resume) the run can also
    /// go on after either process has ended, by the same call. Neither is so without TLS. A run that is
    /// complete here but for the peer's word is complete also if the peer does not come.
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
        let disk = &Disk { at_once: self.asked_threads(), ..*disk };
        let agreement = job.agreement_in_buckets(&*base, disk);
        let mut pass = None;
        let keys = Box::new(|each: &mut dyn FnMut(Option<&[u8]>) -> Result<()>| {
            pass = Some(source.each_key(reading, |element| each(element.map(<[u8; 32]>::as_slice)))?);
            Ok(())
        });
        let is_plain = matches!(self.protection, Some(Protection::Plaintext));
        if is_plain && disk.resume.is_some() {
            let what = "without TLS, data damaged before a connection broke off would go unnoticed";
            return Err(Error::Parameter { name: "resume", what: what.into() });
        }
        let mut run = InBuckets::new(job, &*base, keys, most_peer_keys, disk, observer)?;
        if disk.resume.is_some_and(|resume| resume.is_begun()) {
            // What is kept may be all that it takes.
            run.prepare()?;
        }
        let (mut session, mut stats, mut start) = (self.clone(), Stats::default(), None);
        let (mut trying, mut fruitless) = (Instant::now(), 0);
        while !run.is_confirmed() {
            let before = run.progress();
            let is_begun = before.is_some() || disk.resume.is_some();
            let mut opened = match session.open(agreement.clone()) {
                Ok(opened) => opened,
                Err(error) if self.cancel.is_cancelled() => return Err(self.ended(error)),
                // Somebody was there, and the way to them broke.
                Err(error) if is_cut(&error) && is_begun && trying.elapsed() < session.limits.connect => {
                    std::thread::sleep(BETWEEN);
                    continue;
                }
                Err(error) if run.is_complete() && (is_cut(&error) || is_absence(&error)) => break,
                Err(error) => return Err(error),
            };
            start.get_or_insert_with(Instant::now);
            if is_plain {
                opened.channels().iter_mut().for_each(Channel::audit);
            }
            let ran = run.go_on(opened.channels());
            let ran = ran.and_then(|()| match is_plain {
                true => Ok(opened.channels().iter_mut().try_for_each(Channel::confirm)?),
                false => Ok(()),
            });
            stats = stats.and(&opened.stats());
            let ran = ran.map_err(|error| self.stopped(&mut opened, error));
            drop(opened);
            let Err(error) = ran else { break };
            fruitless = if run.progress() == before { fruitless + 1 } else { 0 };
            use tacit_net::{Cause, Error as Net};
            let is_worth = match &error {
                // Where both keep how far they are, the peer's command may be given again.
                Error::Net(Net::Closed { cause: Some(Cause::Interrupted) }) => disk.resume.is_some(),
                // A peer that says goodbye before anything was settled has a reason to.
                Error::Net(Net::Closed { .. }) => run.progress().is_some(),
                _ => true,
            };
            if is_plain
                || !error.is_lost_link()
                || !is_worth
                || fruitless > FRUITLESS
                || self.cancel.is_cancelled()
            {
                return Err(error);
            }
            observer.interrupted(&error);
            let window = 2 * self.limits.idle;
            (session.limits.connect, session.limits.accept) = (window, Some(window));
            trying = Instant::now();
        }
        let result = run.finish()?;
        let pass = pass.ok_or_else(|| Error::Other("the table was not read".into()))?;
        let wall = start.map(|start| start.elapsed()).unwrap_or_default();
        Ok((Ran { result, wall, stats }, pass))
    }
}

/// Whether a connection broke while it was made.
fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Net(tacit_net::Error::Closed { .. } | tacit_net::Error::Lost { .. }))
}

/// Whether the peer was not there at all.
fn is_absence(error: &Error) -> bool {
    use tacit_net::Error as Net;
    matches!(
        error,
        Error::Net(
            Net::Unreachable { .. }
                | Net::NoPeer { .. }
                | Net::Unresolved { .. }
                | Net::NoRelay { .. }
                | Net::RelayLost { .. }
                | Net::TurnedAway { .. }
                | Net::NobodyMet { .. }
        )
    )
}
