//! `tacit ot deal`, `tacit ot expand` and `tacit ot --seed`: silent OT with a trusted dealer.

use super::nisc::{CodeArg, read_from, write_all};
use super::ot::{Role, Share};
use crate::cli::Context;
use crate::cli::output::Output;
use crate::cli::peer::PeerArgs;
use serde_json::json;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use tacit::crypto::{BitVec, Prg};
use tacit::net::Channel;
use tacit::ot::{AnyReceiver, AnySender, Kind, Sent};
use tacit::sealed::Locked;
use tacit::{Error, Result};
use tacit_ot::silent::dealer::{self, DealtReceiver, DealtSender, Params, ReceiverSeed, SenderSeed};
use zeroize::Zeroizing;

pub const AFTER: &str = "\
Examples:
  dealer  tacit ot deal --count 10000000 --sender alice.seed --receiver bob.seed
  alice   tacit ot expand --seed alice.seed --out alice.npz          correlated OTs, without the network
  or      tacit ot --connect … --role sender --seed alice.seed --count 10000000 --kind rot --out alice.npz

The dealer knows every correlation: both sides must trust it not to side with the other, and to destroy its copies. A
seed is as secret as what it expands to, and serves once: its file is wiped then. Never put an old copy back.";

/// A dealer's step.
#[derive(clap::Args)]
pub struct DealArgs {
    /// How many correlated OTs, at most 2^24
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    count: u64,
    /// The public matrix
    #[arg(long, value_enum, default_value = "linear")]
    code: CodeArg,
    /// Where the sender's seed goes
    #[arg(long, value_name = "FILE")]
    sender: PathBuf,
    /// Where the receiver's seed goes
    #[arg(long, value_name = "FILE")]
    receiver: PathBuf,
}

/// Expands a seed.
#[derive(clap::Args)]
pub struct ExpandArgs {
    /// Our seed
    #[arg(long, value_name = "FILE")]
    seed: PathBuf,
    /// Where our share goes
    #[arg(long, value_name = "SHARE.npz")]
    out: PathBuf,
}

/// Runs `tacit ot deal`.
pub fn deal(args: &DealArgs, context: &Context) -> Result<()> {
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
        "{} goes to the sender and {} to the receiver of {} correlated OTs, each over a channel that keeps it secret",
        args.sender.display(),
        args.receiver.display(),
        args.count
    );
    context.result(&object, &text)
}

enum Half {
    Sender(SenderSeed),
    Receiver(ReceiverSeed),
}

/// A seed from its file, which no other process can use meanwhile.
pub struct Seed {
    mark: Mark,
    half: Half,
}

/// What marks a seed as used.
struct Mark {
    path: PathBuf,
    file: Locked,
    left: Vec<u8>,
}

impl Mark {
    /// Wipes the seed, on the disk. Nothing that hangs on it may leave before.
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
            Some(Role::Sender) => SenderSeed::from_bytes(&bytes).map(Half::Sender),
            Some(Role::Receiver) => ReceiverSeed::from_bytes(&bytes).map(Half::Receiver),
            None => SenderSeed::from_bytes(&bytes)
                .map(Half::Sender)
                .or_else(|_| ReceiverSeed::from_bytes(&bytes).map(Half::Receiver)),
        };
        let half = half.map_err(|e| named(&e))?;
        Ok(Seed { mark: Mark { path: file.to_owned(), file: locked, left: dealer::used(&bytes) }, half })
    }

    /// The seed that `tacit ot --seed` names, for `wanted` transfers.
    pub fn open(file: &Path, role: Role, peer: &PeerArgs, wanted: u64) -> Result<Self> {
        let seed = Seed::load(file, Some(role))?;
        if peer.threads() != 1 {
            return Err(Error::Usage("--seed is expanded by one thread; leave --threads out".into()));
        }
        let holds = seed.params().count as u64;
        if wanted > holds {
            let what = format!("{}: holds {holds} correlations, not {wanted}", file.display());
            return Err(Error::Input(what));
        }
        Ok(seed)
    }

    fn params(&self) -> Params {
        match &self.half {
            Half::Sender(seed) => seed.params(),
            Half::Receiver(seed) => seed.params(),
        }
    }

    /// The sender's source of correlations.
    pub fn sender(self, channel: &mut Channel) -> Result<AnySender> {
        let Half::Sender(seed) = self.half else { return Err(other_role()) };
        let sender = DealtSender::setup(channel, seed)?;
        self.mark.used()?;
        Ok(AnySender::new(sender))
    }

    /// The receiver's source of correlations.
    pub fn receiver(self, channel: &mut Channel) -> Result<AnyReceiver> {
        let Half::Receiver(seed) = self.half else { return Err(other_role()) };
        let receiver = DealtReceiver::setup(channel, seed)?;
        self.mark.used()?;
        Ok(AnyReceiver::new(receiver))
    }
}

fn other_role() -> Error {
    Error::Usage("the seed is for the other role".into())
}

/// Runs `tacit ot expand`.
pub fn expand(args: &ExpandArgs, context: &Context) -> Result<()> {
    let seed = Seed::load(&args.seed, None)?;
    let count = seed.params().count as u64;
    let out = Output::create_archive(&args.out)?;
    let role = match seed.half {
        Half::Sender(_) => Role::Sender,
        Half::Receiver(_) => Role::Receiver,
    };
    let mut share = Share::new(out, Kind::Cot, count, role)?;
    match &seed.half {
        Half::Sender(seed) => share.sent(Sent::Cot(seed.delta(), &Zeroizing::new(seed.expand())))?,
        Half::Receiver(seed) => {
            let w = Zeroizing::new(seed.expand());
            share.received(&BitVec::from_lsbs(&w), &w)?;
        }
    }
    let code = seed.params().code.name();
    let out = share.settle()?;
    seed.mark.used()?;
    out.commit()?;
    let object = json!({ "name": "ot expand", "count": count, "code": code, "out": args.out });
    context.result(&object, &format!("{count} correlated OTs; our share is in {}", args.out.display()))
}
