//! `tacit ot`: n oblivious transfers between two processes, and on request each side's share in a file.

use crate::cli::Context;
use crate::cli::output::{Output, name};
use crate::cli::peer::{PeerArgs, Security, learned};
use crate::cmd::{deal, pool};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use tacit::crypto::{BitVec, Block, Prg};
use tacit::data::npz::{self, Array, Element, Writer};
use tacit::ot::{AnyReceiver, AnySender, Job, Kind, Sent, Tuning};
use tacit::plan::{Choice, Machine, Pick, Request};
use tacit::pool::{Pool, PoolReceiver, PoolSender};
use tacit::{Error, Result, ot, security_name};
use tacit_console::options::KindArg;
use zeroize::Zeroizing;

const AFTER: &str = "\
Examples:
  tacit ot --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role sender --count 1000000 --out sender.npz
  tacit ot --connect 127.0.0.1:7700 --identity bob.key --peer alice.pub \\
      --role receiver --count 1000000 --out receiver.npz
  tacit ot --role sender --count 1000000 --link wan --dry-run

Three lines of Python check a correlated OT:
  import numpy as np
  s, r = np.load(\"sender.npz\"), np.load(\"receiver.npz\")
  assert (r[\"w\"] == s[\"v\"] ^ r[\"u\"][:, None] * s[\"delta\"]).all()";

/// `--role`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Role {
    /// Holds both messages, or Δ
    Sender,
    /// Holds the choices
    Receiver,
}

/// What `tacit ot` does besides transfers.
#[derive(clap::Subcommand)]
enum Command {
    /// Correlations made ahead, kept in an encrypted file
    #[command(subcommand, after_help = pool::AFTER)]
    Pool(pool::PoolCommand),
    /// A trusted dealer's step: a short seed for each side, which expands to correlated OTs
    #[command(after_help = deal::AFTER)]
    Deal(deal::DealArgs),
    /// Expands a dealer's seed to our share of its correlated OTs, without the network
    Expand(deal::ExpandArgs),
}

/// Where the correlations come from when no protocol runs.
enum Ready {
    Pool(Box<Pool>),
    Seed(deal::Seed),
}

/// Makes n oblivious transfers with the peer.
#[derive(clap::Args)]
#[command(after_help = AFTER, after_long_help = long_help())]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Which side of the transfers this is
    #[arg(long, value_enum, required = true)]
    role: Option<Role>,
    /// How many transfers; both sides must say the same
    #[arg(long, value_name = "N", required = true, value_parser = clap::value_parser!(u64).range(0..=1 << 40))]
    count: Option<u64>,
    /// The protocol: auto, iknp (semi-honest), kos, ferret, ferret-uni or silent (malicious, little traffic); both sides
    /// must say the same
    #[arg(long, value_name = "P", default_value = "auto")]
    protocol: String,
    /// The LPN set of ferret, a, b, c, d or e, or of ferret-uni, main, a, b or setup; without it, what suits
    /// count and link
    #[arg(long, value_name = "SET")]
    set: Option<String>,
    /// With ferret, all traffic comes first and the rest needs no peer; both sides must say the same
    #[arg(long, conflicts_with_all = ["pool", "seed"])]
    up_front: bool,
    /// The code of silent: linear (default) or quasi-cyclic; both sides must say the same
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// What is made; both sides must say the same
    #[arg(long, value_enum, default_value = "cot")]
    kind: KindArg,
    /// Against which peer to protect; both sides must say the same
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// The base OT: mrr21 (default), mr19, csw20, roted (post-quantum), or co15 (semi-honest only);
    /// both sides must say the same
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// Writes our share to this file, readable by its owner alone
    #[arg(long, value_name = "SHARE.npz")]
    out: Option<PathBuf>,
    /// Takes the transfers out of this pool of `tacit ot pool make` instead of running a protocol
    #[arg(long, value_name = "FILE.pool", conflicts_with_all = ["protocol", "set", "code", "base_ot", "post_quantum"])]
    pool: Option<PathBuf>,
    /// Takes the transfers out of this seed of `tacit ot deal` instead of running a protocol
    #[arg(long, value_name = "SEED", conflicts_with_all = ["pool", "protocol", "set", "code", "base_ot", "post_quantum"])]
    seed: Option<PathBuf>,
    /// The key file of the pool, if it was not made with the identity key
    #[arg(long, value_name = "FILE", requires = "pool")]
    pool_key: Option<PathBuf>,
    /// Prints what each protocol would cost on the --link given, and starts nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    peer: PeerArgs,
}

/// The help's end at full length: with what every protocol rests on.
fn long_help() -> String {
    format!(
        "{AFTER}\n\nWhat protocols rest on, and what --post-quantum refuses:\n\n{}",
        tacit::assumptions::table()
    )
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    match args.command {
        None => {}
        Some(Command::Pool(command)) => return pool::run(command, context),
        Some(Command::Deal(args)) => return deal::deal(&args, context),
        Some(Command::Expand(args)) => return deal::expand(&args, context),
    }
    let Some(count) = args.count else {
        return Err(Error::Usage("give --role and --count; see `tacit help ot`".into()));
    };
    // A name that does not serve is refused before anything else.
    let named = ot::protocol(&args.protocol, args.security.into())?;
    Tuning::default().with_code(args.code.as_deref(), Some(named))?;
    ot::check_set(ot::Sets::Session, args.set.as_deref(), named)?;
    let protocol = Some(args.protocol.as_str()).filter(|name| *name != "auto");
    let (set, code) = (args.set.as_deref(), args.code.as_deref());
    let choice = Choice { protocol, set, code, ..Choice::default() };
    if args.dry_run {
        return dry_run(&args, count, choice, context);
    }
    let Some(role) = args.role else {
        return Err(Error::Usage("give --role and --count; see `tacit help ot`".into()));
    };
    let ready = match (&args.pool, &args.seed) {
        (Some(file), _) => {
            let pool = pool::open(file, args.pool_key.as_deref(), &args.peer, args.security, count)?;
            Some(Ready::Pool(Box::new(pool)))
        }
        (None, Some(file)) => Some(Ready::Seed(deal::Seed::open(file, role, &args.peer, count)?)),
        (None, None) => None,
    };
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    // The pool goes to the protocol; what burns it when a check fails stays here.
    let fuse = match &ready {
        Some(Ready::Pool(pool)) => Some(pool.fuse()),
        _ => None,
    };
    let base = session.base()?;
    let out = args.out.as_deref().map(Output::create_archive).transpose()?;
    let mut share = out.map(|out| Share::new(out, args.kind.into(), count, role)).transpose()?;
    let Pick { protocol, tuning } = match &ready {
        Some(Ready::Pool(_)) => Pick { protocol: &ot::POOL, tuning: Tuning::default() },
        Some(Ready::Seed(_)) => Pick { protocol: &ot::DEALT, tuning: Tuning::default() },
        None => session.choose_ot(args.kind.into(), count, choice)?,
    };
    if ready.is_none() {
        session.allow(protocol.name)?;
    }
    let mut job = Job { protocol, kind: args.kind.into(), count, tuning };
    if args.up_front {
        job = job.up_front(args.peer.threads())?;
    }

    let sender = role == Role::Sender;
    let progress = context.progress("OT", count, "OT");
    let mut done = 0;
    let mut advance = |n: usize| {
        done += n as u64;
        progress.set(done);
    };
    let agreement = job.agreement(&*base, sender);
    let ran = session.run(agreement, |opened| {
        let start = Instant::now();
        let channels = opened.channels();
        match role {
            Role::Sender => {
                let mut each = |part: Sent<'_>| {
                    advance(match &part {
                        Sent::Cot(_, v) => v.len(),
                        Sent::Pairs(pairs) => pairs.len(),
                    });
                    share.as_mut().map_or(Ok(()), |share| share.sent(part))
                };
                match (ready, channels.first_mut()) {
                    (Some(ready), Some(channel)) => {
                        let cots = vec![match ready {
                            Ready::Pool(pool) => AnySender::new(PoolSender::setup(channel, *pool)?),
                            Ready::Seed(seed) => seed.sender(channel)?,
                        }];
                        job.send_from(channels, cots, &mut Prg::from_os(), &mut each)?;
                    }
                    _ => job.send(channels, &*base, &mut each)?,
                }
            }
            Role::Receiver => {
                let mut each = |choices: &BitVec, messages: &[Block]| {
                    advance(messages.len());
                    share.as_mut().map_or(Ok(()), |share| share.received(choices, messages))
                };
                match (ready, channels.first_mut()) {
                    (Some(ready), Some(channel)) => {
                        let cots = vec![match ready {
                            Ready::Pool(pool) => AnyReceiver::new(PoolReceiver::setup(channel, *pool)?),
                            Ready::Seed(seed) => seed.receiver(channel)?,
                        }];
                        job.receive_from(channels, cots, &mut Prg::from_os(), &mut each)?;
                    }
                    _ => job.receive(channels, &*base, &mut each)?,
                }
            }
        }
        Ok(start.elapsed())
    });
    let (wall, stats) = pool::watch(args.pool.as_deref().zip(fuse.as_ref()), ran)?;
    progress.finish();
    if let Some(share) = share {
        share.finish()?;
    }

    let what = if sender { "nothing of our messages but one of each pair" } else { "nothing of our choices" };
    let other_learns = learned(args.security, &format!("how many OTs we made, and {what}"));
    let ns_per_item = wall.as_nanos() as f64 / count.max(1) as f64;
    let object = json!({
        "name": "ot",
        "protocol": protocol.name,
        "base_ot": base.name(),
        "kind": job.kind.name(),
        "role": if sender { "sender" } else { "receiver" },
        "security": security_name(args.security.into()),
        "count": count,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "ns_per_item": ns_per_item,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": other_learns,
        "out": args.out,
    });
    let text = format!(
        "{} {} by {} ({}) in {:.3} s, {ns_per_item:.1} ns each; {} bytes sent, {} received, {} rounds{}; \
         the other side learned {other_learns}",
        count,
        job.kind.name(),
        protocol.name,
        security_name(args.security.into()),
        wall.as_secs_f64(),
        stats.bytes_sent,
        stats.bytes_received,
        stats.rounds,
        args.out.as_ref().map_or_else(String::new, |out| format!("; our share is in {}", name(out))),
    );
    context.result(&object, &text)
}

/// The candidates for what was asked.
fn dry_run(args: &Args, count: u64, choice: Choice<'_>, context: &Context) -> Result<()> {
    let request = Request {
        count,
        kind: args.kind.into(),
        security: args.security.into(),
        threads: args.peer.threads(),
        choice: Choice { protocol: None, ..choice },
    };
    let link = args.peer.link().into();
    let candidates = tacit::plan::ot(&request, &link, &Machine::measure())?;
    let what = match args.kind {
        KindArg::Ot => {
            "how many OTs we make; of the sender the messages chosen and no others, of the receiver nothing"
        }
        _ => "how many OTs we make; of the sender one message of each pair, of the receiver nothing",
    };
    let learns = learned(args.security, what);
    crate::cli::plan::show(context, "ot", count, &link, &candidates, choice.protocol, &learns)
}

/// The share's file while it is being written.
pub struct Share {
    writer: Writer<Output>,
    target: PathBuf,
    delta_written: bool,
}

/// Indices of the arrays, in the order in which [`Share::new`] lays them out.
const FIRST: usize = 0;
const SECOND: usize = 1;

impl Share {
    /// Lays out the share of `n` transfers of `kind`, for which there must be room.
    pub fn new(mut out: Output, kind: Kind, n: u64, role: Role) -> Result<Self> {
        let blocks = |name| Array::new(name, Element::U64, &[n, 2]);
        let choices = Array::new("u", Element::U8, &[n]);
        let correlated = kind == Kind::Cot;
        let arrays = match (role, correlated) {
            (Role::Sender, true) => [Array::new("delta", Element::U64, &[2]), blocks("v")],
            (Role::Sender, false) => [blocks("m0"), blocks("m1")],
            (Role::Receiver, true) => [choices, blocks("w")],
            (Role::Receiver, false) => [choices, blocks("m")],
        };
        out.reserve(npz::length(&arrays))?;
        let target = out.target().to_owned();
        let writer = Writer::new(out, &arrays).map_err(|e| crate::cli::output::write_fault(&target, e))?;
        Ok(Share { writer, target, delta_written: false })
    }

    fn append(&mut self, array: usize, bytes: &[u8]) -> Result<()> {
        self.writer.append(array, bytes).map_err(|e| crate::cli::output::write_fault(&self.target, e))
    }

    /// Adds what the sender made.
    pub fn sent(&mut self, part: Sent<'_>) -> Result<()> {
        match part {
            Sent::Cot(delta, v) => {
                if !self.delta_written {
                    self.delta_written = true;
                    self.append(FIRST, &delta.to_bytes())?;
                }
                self.append(SECOND, Block::as_bytes(v))
            }
            Sent::Pairs(pairs) => {
                for pieces in pairs.chunks(4096) {
                    for (side, array) in [FIRST, SECOND].into_iter().enumerate() {
                        let messages: Zeroizing<Vec<Block>> =
                            Zeroizing::new(pieces.iter().map(|pair| pair[side]).collect());
                        self.append(array, Block::as_bytes(&messages))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Adds what the receiver made.
    pub fn received(&mut self, choices: &BitVec, messages: &[Block]) -> Result<()> {
        let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(choices.iter().map(u8::from).collect());
        self.append(FIRST, &bytes)?;
        self.append(SECOND, Block::as_bytes(messages))
    }

    /// Puts the whole share in its place.
    pub fn finish(self) -> Result<()> {
        self.settle()?.commit()
    }

    /// The whole share on the disk, but not yet in its place.
    pub fn settle(self) -> Result<Output> {
        let mut out = self.writer.finish().map_err(|e| crate::cli::output::write_fault(&self.target, e))?;
        out.settle()?;
        Ok(out)
    }
}
