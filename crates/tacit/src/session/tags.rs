//! Sessions about files of tags.

use super::Session;
use crate::job::tags::{Answering, PUBLICATION, Querying, TagFile};
use crate::job::{Observer, Ran};
use crate::{Error, Result};
use std::io::{Read, Seek};
use tacit_psi::oprf::{self, tags::TagsError};

/// Whether the two sides have different publications.
fn is_of_publications(error: &Error) -> bool {
    let Error::Net(tacit_net::Error::Mismatch { differences }) = error else { return false };
    differences.iter().any(|one| one.setting == PUBLICATION)
}

impl Session {
    /// Refuses what files of tags do not have: several threads, or what stands against a quantum computer.
    pub fn allow_tags(&self) -> Result<()> {
        self.allow(oprf::NAME)?;
        if self.asked_threads() != 1 {
            let what = "queries to a tag file run on one thread per side; leave it out".into();
            return Err(Error::Parameter { name: "threads", what });
        }
        Ok(())
    }

    /// Answers the queries of the peer; returns how many there were.
    pub fn answer_tags(&self, job: &Answering<'_>, observer: &dyn Observer) -> Result<Ran<u64>> {
        self.allow_tags()?;
        let ran = self.timed(job.agreement(), |opened| job.run(opened.channels(), observer));
        ran.map_err(|error| match is_of_publications(&error) {
            true => Error::Peer(
                "the client's file of tags is not of this publication; give it the current file of tags"
                    .into(),
            ),
            false => error,
        })
    }

    /// The places of those `elements` that are published in `file`, as the peer's answers tell.
    pub fn query_tags<E: AsRef<[u8]>>(
        &self,
        job: &Querying<'_>,
        file: &mut TagFile<impl Read + Seek>,
        elements: &[E],
        observer: &dyn Observer,
    ) -> Result<Ran<Vec<u32>>> {
        self.allow_tags()?;
        // Before there is a session that could wait for it.
        file.checked()?;
        let ran = self
            .timed(job.agreement(), |opened| job.run(opened.channels(), file, elements, observer))
            .map_err(|error| match is_of_publications(&error) {
                true => Error::Psi(tacit_psi::Error::Tags(TagsError::Outdated)),
                false => error,
            })?;
        // The session has ended: the publisher sees nothing any more of how long this takes, or how it ends.
        Ok(Ran { result: ran.result.opened(file)?, wall: ran.wall, stats: ran.stats })
    }
}
