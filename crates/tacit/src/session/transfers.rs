//! Correlated OTs of a [`Session`], kept whole.

use super::Session;
use crate::job::ot::{Job, Role, Sink, Source};
use crate::job::{Observer, Ran, triples};
use crate::ot::{Kind, Sent};
use crate::plan::Choice;
use crate::{Error, Result, Security, plan};
use tacit_crypto::text::counted;
use tacit_crypto::{BitVec, Block};
use zeroize::Zeroize;

/// The sender's half of correlated OTs; overwritten when dropped.
///
/// The receiver holds a w for each v: w = v where its choice is 0, w = v ⊕ Δ where it is 1.
pub struct SentCots {
    /// Δ, one for all; its lowest bit is 1.
    pub delta: Block,
    /// A block v for each OT; its lowest bit is 0.
    pub v: Vec<Block>,
}

/// The receiver's half of correlated OTs, see [`SentCots`]; overwritten when dropped.
pub struct ReceivedCots {
    /// A block w for each OT; its lowest bit is the choice, which was drawn at random.
    pub w: Vec<Block>,
}

impl Drop for SentCots {
    fn drop(&mut self) {
        self.delta.zeroize();
        self.v.zeroize();
    }
}

impl Drop for ReceivedCots {
    fn drop(&mut self) {
        self.w.zeroize();
    }
}

impl std::fmt::Debug for SentCots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SentCots({} OTs, [secret])", self.v.len())
    }
}

impl std::fmt::Debug for ReceivedCots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceivedCots({} OTs, [secret])", self.w.len())
    }
}

impl Sink for SentCots {
    fn sent(&mut self, part: Sent<'_>) -> Result<()> {
        if let Sent::Cot(delta, v) = part {
            self.delta = delta;
            self.v.extend_from_slice(v);
        }
        Ok(())
    }

    fn received(&mut self, _: &BitVec, _: &[Block]) -> Result<()> {
        Ok(())
    }
}

impl Sink for ReceivedCots {
    fn sent(&mut self, _: Sent<'_>) -> Result<()> {
        Ok(())
    }

    fn received(&mut self, _: &BitVec, w: &[Block]) -> Result<()> {
        self.w.extend_from_slice(w);
        Ok(())
    }
}

impl Session {
    /// Makes `count` correlated OTs as their sender, by the protocol that is fastest on the link at the
    /// session's security. The peer calls [`receive_cots`](Self::receive_cots) with the same `count`.
    ///
    /// All of them stand in memory, 16 bytes each; [`run_ot`](Session::run_ot) hands out pieces of larger
    /// runs. Errors if `count` is more than memory can hold, or as `run_ot`.
    pub fn send_cots(&self, count: u64) -> Result<SentCots> {
        let mut sent = SentCots { delta: Block::ZERO, v: room(count)? };
        self.cots(Role::Sender, count, &mut sent)?;
        Ok(sent)
    }

    /// Makes `count` correlated OTs as their receiver, with choices drawn at random; see
    /// [`send_cots`](Self::send_cots).
    pub fn receive_cots(&self, count: u64) -> Result<ReceivedCots> {
        let mut received = ReceivedCots { w: room(count)? };
        self.cots(Role::Receiver, count, &mut received)?;
        Ok(received)
    }

    /// What makes `count` triples of `kind` at the session's security: of OT extensions the fastest on the link, or the
    /// one called `protocol`.
    ///
    /// Both sides must call it with the same values. Where the link decides, it is measured over a connection of its
    /// own. Errors as of [`triples::check`].
    pub fn choose_triples(
        &self,
        kind: triples::Kind,
        count: u64,
        protocol: Option<&str>,
    ) -> Result<triples::Job> {
        triples::check(kind, self.security, protocol, self.asked_threads())?;
        if self.security == Security::Malicious {
            return Ok(triples::Job { kind, count, by: triples::By::Authenticated });
        }
        let request = triples::request(kind, count, self.asked_threads(), protocol)?;
        let pick = plan::agree(&request, |settle| {
            let agreement = triples::terms("plan of triples", kind, count);
            let agreement = agreement.with("protocol", protocol.unwrap_or("auto"));
            self.run(agreement, |opened| settle(opened.channel()))
        })?;
        Ok(triples::Job { kind, count, by: triples::By::Transfers(pick) })
    }

    /// Makes the triples of `job` and hands our shares to `sink`.
    pub fn run_triples(
        &self,
        job: &triples::Job,
        sink: &mut dyn triples::Sink,
        observer: &dyn Observer,
    ) -> Result<Ran<()>> {
        self.allow(job.protocol())?;
        self.allow_level(job.security())?;
        let base = self.base()?;
        self.timed(job.agreement(&*base), |opened| job.run(opened.channels(), &*base, sink, observer))
    }

    fn cots(&self, role: Role, count: u64, sink: &mut dyn Sink) -> Result<()> {
        let pick = self.choose_ot(Kind::Cot, count, Choice::default())?;
        let job = Job::new(role, Kind::Cot, count, pick, self.asked_security());
        self.run_ot(&job, Source::Protocol, sink, &())?;
        Ok(())
    }
}

/// Room for `count` blocks, so that a secret is never left behind by a vector that grew.
fn room(count: u64) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let reserved = usize::try_from(count).ok().and_then(|count| blocks.try_reserve_exact(count).ok());
    reserved.ok_or_else(|| {
        Error::Usage(format!(
            "{count} do not fit into memory; make fewer, or use run_ot",
            count = counted(count, "OT")
        ))
    })?;
    Ok(blocks)
}
