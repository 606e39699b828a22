//! IKNP, KOS and OOS: OT extension by matrices of columns, at a price of some 16 bytes an OT and little
//! computing.

use super::Assumption::{IdealCipher, RandomOracle};
use super::extension::{AnyReceiver, AnySender, Extension, Family, Kind, PIECE, Start, Work};
use super::{Entry, Runs, floor};
use crate::limits::Limit;
use std::sync::Arc;
use tacit_ot::Security::{Malicious, SemiHonest};
use tacit_ot::extension::kos::Setup;
use tacit_ot::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender, iknp, kos};
use tacit_ot::{CotReceiver, CotSender, Result, Security};

/// OT extension of Ishai, Kilian, Nissim and Petrank.
pub static IKNP: Entry = Entry {
    name: "iknp",
    security: SemiHonest,
    assumptions: &[IdealCipher],
    needs_base_ot: true,
    instead: "",
    note: "",
    floor: |item| vec![(Limit::AesFixed, COLUMNS_AES + item.hashes())],
    runs: Runs::Extension(Some(&IKNP_FAMILY)),
};

/// 128 columns of one bit are a block; the receiver expands both seeds of each and hashes once, the sender
/// expands one and hashes twice.
const COLUMNS_AES: f64 = 2.0;

static IKNP_FAMILY: Family =
    Family { hashing_ns: 2.5, ..Family::plain(|_, _, _| Arc::new(Iknp), |_, _, _| vec![Arc::new(Iknp)]) };

/// OT extension of Keller, Orsini and Scholl: IKNP with a check.
pub static KOS: Entry = Entry {
    name: "kos",
    security: Malicious,
    assumptions: &[IdealCipher, RandomOracle],
    floor: |item| vec![(Limit::AesFixed, COLUMNS_AES + item.hashes()), (Limit::MultiplyAdd, 1.0)],
    runs: Runs::Extension(Some(&KOS_FAMILY)),
    ..IKNP
};

static KOS_FAMILY: Family = Family::plain(|_, _, _| Arc::new(Kos), |_, _, _| vec![Arc::new(Kos)]);

/// OT extension of Orrù, Orsini and Scholl for one of many messages, which runs inside PaXoS.
pub(super) static OOS: Entry =
    Entry { name: "oos", floor: floor::unknown, runs: Runs::Extension(None), ..KOS };

/// What IKNP and KOS compute for one correlated OT, in ns on the reference machine, and what of it is KOS'
/// check.
const IKNP_COT_NS: f64 = 8.3;
const KOS_COT_NS: f64 = 9.8;
const KOS_CHECK_NS: f64 = 1.5;

/// The work of `share` OTs made in pieces, each with so many round trips.
fn work(share: u64, ns: f64, check: f64, bytes: fn(usize) -> u64, trips: f64) -> Work {
    let (n, piece) = (share as f64, PIECE as u64);
    Work {
        aes: n * (ns - check),
        multiply_add: n * check,
        gather: 0.0,
        alone: 0.0,
        streamed: (share / piece * bytes(PIECE) + bytes((share % piece) as usize)) as f64,
        awaited: 0.0,
        trips: trips * share.div_ceil(piece) as f64,
    }
}

/// Streams of one setup: the first, and its forks.
pub(super) fn forks<T>(mut first: T, streams: usize, fork: fn(&mut T) -> T) -> impl Iterator<Item = T> {
    let others: Vec<T> = (1..streams).map(|_| fork(&mut first)).collect();
    std::iter::once(first).chain(others)
}

/// [`forks`] of a sender.
pub(super) fn senders<T: CotSender + Send + 'static>(
    first: T,
    streams: usize,
    fork: fn(&mut T) -> T,
) -> Result<Vec<AnySender>> {
    Ok(forks(first, streams, fork).map(AnySender::new).collect())
}

/// [`forks`] of a receiver.
pub(super) fn receivers<T: CotReceiver + Send + 'static>(
    first: T,
    streams: usize,
    fork: fn(&mut T) -> T,
) -> Result<Vec<AnyReceiver>> {
    Ok(forks(first, streams, fork).map(AnyReceiver::new).collect())
}

#[derive(Debug)]
struct Iknp;

impl Extension for Iknp {
    fn senders(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnySender>> {
        senders(IknpSender::setup(at.channel, at.base, at.prg)?, streams, IknpSender::fork)
    }

    fn receivers(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnyReceiver>> {
        receivers(IknpReceiver::setup(at.channel, at.base, at.prg)?, streams, IknpReceiver::fork)
    }

    fn protects(&self) -> Option<Security> {
        Some(SemiHonest)
    }

    fn work(&self, share: u64, _: usize, _: Kind, _: usize) -> Work {
        work(share, IKNP_COT_NS, 0.0, iknp::bytes, 0.5)
    }
}

#[derive(Debug)]
struct Kos;

impl Extension for Kos {
    fn senders(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnySender>> {
        senders(KosSender::setup(at.channel, at.base, at.prg)?, streams, KosSender::fork)
    }

    fn receivers(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnyReceiver>> {
        receivers(KosReceiver::setup(at.channel, at.base, at.prg)?, streams, KosReceiver::fork)
    }

    fn begin_sender(&self, at: Start<'_>) -> Result<Setup<AnySender>> {
        let setup = KosSender::begin_by_hash(at.channel, at.base, at.prg)?;
        Ok(Box::new(move |channel| Ok(AnySender::new(setup(channel)?))))
    }

    fn begin_receiver(&self, at: Start<'_>) -> Result<Setup<AnyReceiver>> {
        let setup = KosReceiver::begin_by_hash(at.channel, at.base, at.prg)?;
        Ok(Box::new(move |channel| Ok(AnyReceiver::new(setup(channel)?))))
    }

    fn protects(&self) -> Option<Security> {
        Some(Malicious)
    }

    fn held(&self) -> u64 {
        kos::held()
    }

    fn work(&self, share: u64, _: usize, _: Kind, _: usize) -> Work {
        work(share, KOS_COT_NS, KOS_CHECK_NS, kos::bytes, 1.5)
    }
}
