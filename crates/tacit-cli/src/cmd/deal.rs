//! `tacit ot deal`, `tacit ot expand` and `tacit ot --seed`: silent OT with a trusted dealer.

use crate::cli::Context;
use crate::cli::messages::{CodeArg, read_from, write_all};
use crate::cli::output::{Output, destination};
use crate::cli::share::Share;
use serde_json::json;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::crypto::{BitVec, Prg};
use tacit::job::ot::{self as job, Role, Sink, Source};
use tacit::ot::{Kind, Sent};
use tacit::sealed::Locked;
use tacit::{Error, Result};
use tacit_ot::silent::dealer::{self, Params, ReceiverSeed, SenderSeed};
use zeroize::Zeroizing;

pub(super) const AFTER: &str = "\
Examples:
  dealer  tacit ot deal --count 10000000 --sender alice.seed --receiver bob.seed
  alice   tacit ot expand --seed alice.seed --out alice.npz
          (correlated OTs, without the network), or
          tacit ot --connect … --role sender --seed alice.seed --count 10000000 --kind rot \\
              --out alice.npz

The dealer knows every correlation: both sides must trust it not to collude with the other, and
to destroy its copies. A seed is as secret as the correlations, and can be used once: its file
is erased then. Never restore an old copy.";

/// A dealer's step.
#[derive(clap::Args)]
pub(super) struct DealArgs {
    /// How many correlated OTs, at most 2^24
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    count: u64,
    /// The public matrix
    #[arg(long, value_enum, default_value = "linear")]
    code: CodeArg,
    /// The file for the sender's seed
    #[arg(long, value_name = "FILE")]
    sender: PathBuf,
    /// The file for the receiver's seed
    #[arg(long, value_name = "FILE")]
    receiver: PathBuf,
}

/// Expands a seed.
#[derive(clap::Args)]
pub(super) struct ExpandArgs {
    /// Your seed
    #[arg(long, value_name = "FILE")]
    seed: PathBuf,
    /// The file for your share
    #[arg(long, value_name = "SHARE.npz")]
    out: PathBuf,
}

/// Runs `tacit ot deal`.
pub(super) fn deal(args: &DealArgs, context: &Context) -> Result<()> {
    let params = Params { code: args.code.into(), count: args.count as usize };
    let (sender, receiver) = dealer::deal(params, &mut Prg::from_os())?;
    let seeds: [(&Path, &[u8]); 2] =
        [(&args.sender, &sender.to_bytes()), (&args.receiver, &receiver.to_bytes())];
    write_all(&seeds, &[])?;
    let object = json!({
        "name": "ot deal",
        "count": args.count,
        "code": params.code.name(),
        "sender": args.sender,
        "receiver": args.receiver,
    });
    let text = format!(
        "send {} to the sender and {} to the receiver of {}, each over a channel that keeps it secret",
        args.sender.display(),
        args.receiver.display(),
        counted(args.count, "correlated OT")
    );
    context.result(&object, &text)
}

/// A seed from its file, which no other process can use meanwhile.
pub(super) struct Seed {
    mark: Mark,
    half: job::Seed,
}

/// What marks a seed as used.
struct Mark {
    path: PathBuf,
    file: Locked,
    left: Vec<u8>,
}

impl Mark {
    /// Wipes the seed, on the disk. Nothing that depends on it may leave before.
    fn used(self) -> Result<()> {
        self.file.write_at(0, &self.left).map_err(|e| Error::file(&self.path, "cannot be marked as used", e))
    }
}

impl Seed {
    fn load(file: &Path, role: Option<Role>) -> Result<Self> {
        let named = |e: &dyn Display| Error::Input(format!("{}: {e}", file.display()));
        let locked = Locked::open(file).map_err(|e| named(&e))?;
        let bytes = read_from(file, &*locked)?;
        let half = match role {
            Some(Role::Sender) => SenderSeed::from_bytes(&bytes).map(job::Seed::Sender),
            Some(Role::Receiver) => ReceiverSeed::from_bytes(&bytes).map(job::Seed::Receiver),
            None => SenderSeed::from_bytes(&bytes)
                .map(job::Seed::Sender)
                .or_else(|_| ReceiverSeed::from_bytes(&bytes).map(job::Seed::Receiver)),
        };
        let half = half.map_err(|e| named(&e))?;
        Ok(Seed { mark: Mark { path: file.to_owned(), file: locked, left: dealer::used(&bytes) }, half })
    }

    /// The seed that `tacit ot --seed` names, for `wanted` transfers.
    pub(super) fn open(file: &Path, role: Role, threads: usize, wanted: u64) -> Result<Self> {
        let seed = Seed::load(file, Some(role))?;
        if threads != 1 {
            let what = "a seed is expanded on one thread; leave it out".into();
            return Err(Error::Parameter { name: "threads", what });
        }
        let holds = seed.params().count as u64;
        if wanted > holds {
            let what = format!(
                "{}: has {holds}, not {wanted}",
                file.display(),
                holds = counted(holds, "correlation")
            );
            return Err(Error::Input(what));
        }
        Ok(seed)
    }

    fn params(&self) -> Params {
        match &self.half {
            job::Seed::Sender(seed) => seed.params(),
            job::Seed::Receiver(seed) => seed.params(),
        }
    }

    /// The source of correlations that it is.
    pub(super) fn source(self) -> Source<'static> {
        let mark = self.mark;
        Source::Seed(self.half, Box::new(move || mark.used()))
    }
}

/// Runs `tacit ot expand`.
pub(super) fn expand(args: &ExpandArgs, context: &Context) -> Result<()> {
    let seed = Seed::load(&args.seed, None)?;
    let count = seed.params().count as u64;
    let out = Output::create_archive(&args.out)?;
    let role = match seed.half {
        job::Seed::Sender(_) => Role::Sender,
        job::Seed::Receiver(_) => Role::Receiver,
    };
    let mut share = Share::new(out, Kind::Cot, count, role)?;
    match &seed.half {
        job::Seed::Sender(seed) => share.sent(Sent::Cot(seed.delta(), &Zeroizing::new(seed.expand())))?,
        job::Seed::Receiver(seed) => {
            let w = Zeroizing::new(seed.expand());
            share.received(&BitVec::from_lsbs(&w), &w)?;
        }
    }
    let code = seed.params().code.name();
    let out = share.settle()?;
    seed.mark.used()?;
    out.commit()?;
    let object = json!({ "name": "ot expand", "count": count, "code": code, "out": args.out });
    context.result(
        &object,
        &format!(
            "{count}; your share is in {}",
            destination(&args.out),
            count = counted(count, "correlated OT")
        ),
    )
}
