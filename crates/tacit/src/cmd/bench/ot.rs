//! `tacit bench ot`: OT extension. Setup is the base OTs; a run makes all OTs into memory that the caller owns.

use super::{Common, Subject, measure::measure};
use crate::cli::Context;
use crate::cli::peer::Security;
use crate::cmd::ot::KindArg;
use tacit::Result;
use tacit::crypto::{BitVec, Block, Prg};
use tacit::net::Channel;
use tacit::ot::{self, AnyReceiver, AnySender, Job, Kind, Tuning};
use tacit::ot::{CotReceiver, CotSender, CotToRot, OtReceiver, OtSender, RotReceiver, RotSender, RotToOt};

/// OT extension: correlated, random or chosen OTs.
#[derive(clap::Args)]
pub struct Args {
    /// The protocol: auto, iknp, kos, ferret, ferret-uni or silent
    #[arg(long, value_name = "P", default_value = "auto")]
    protocol: String,
    /// Against which peer to protect; without it, what the protocol gives
    #[arg(long, value_enum)]
    security: Option<Security>,
    /// What is made
    #[arg(long, value_enum, default_value = "cot")]
    kind: KindArg,
    /// OTs in a run, over all threads together
    #[arg(long, value_name = "N", default_value_t = 1 << 23, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    count: u64,
    /// The LPN set of ferret: a, b, c, d, e, paper or paper-setup; without it, what suits count and link
    #[arg(long, value_name = "SET")]
    set: Option<String>,
    /// The code of silent: linear (default) or quasi-cyclic
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// The base OT
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    let security = match (args.security, args.protocol.as_str()) {
        (Some(security), _) => security.into(),
        (None, "auto") => tacit::Security::Malicious,
        (None, name) => ot::protocol(name, tacit::Security::SemiHonest)?.security,
    };
    let protocol = ot::protocol(&args.protocol, security)?;
    let base = ot::base_ot(args.base_ot.as_deref(), security)?;
    let threads = usize::from(args.common.threads);
    let each = (args.count as usize).div_ceil(threads);
    let pair = if args.kind == KindArg::Cot { 32 } else { 64 };
    super::record::check_memory("this benchmark", args.count.saturating_mul(pair))?;
    let tuning = Tuning::choose(args.set.as_deref(), each as u64, security, &args.common.link())?
        .with_code(args.code.as_deref(), Some(protocol))?;
    let job = Job { protocol, kind: args.kind.into(), count: (each * threads) as u64, tuning };
    let subject = Subject {
        name: "ot",
        protocol: protocol.name.into(),
        security,
        kind: job.kind.name().into(),
        count: job.count,
        more: |_, _| Vec::new(),
    };
    let sender = !args.common.is_peer();
    let repeat = args.common.repeat.into();
    args.common.run(context, &subject, job.agreement(&*base, sender), |channels| {
        if sender {
            measure(
                channels,
                repeat,
                |_, channel| Sender::new(&job, channel, &*base),
                |_, s, c| s.run(c, each),
            )
        } else {
            measure(
                channels,
                repeat,
                |_, channel| Receiver::new(&job, channel, &*base, each),
                |_, r, c| r.run(c, each),
            )
        }
    })
}

/// One lane of the sender, with its output.
enum Sender {
    Cot(AnySender, Vec<Block>),
    Rot(CotToRot<AnySender>, Vec<[Block; 2]>),
    Ot(RotToOt<CotToRot<AnySender>>, Vec<[Block; 2]>),
}

impl Sender {
    fn new(job: &Job, channel: &mut Channel, base: &dyn tacit::ot::BaseOt) -> Result<Self> {
        let mut prg = Prg::from_os();
        let cot = job.protocol.senders_with(channel, base, &mut prg, 1, job.tuning)?.remove(0);
        channel.flush()?;
        Ok(match job.kind {
            Kind::Cot => Sender::Cot(cot, Vec::new()),
            Kind::Rot => Sender::Rot(CotToRot::new(cot, &mut prg), Vec::new()),
            Kind::Ot => Sender::Ot(RotToOt::new(CotToRot::new(cot, &mut prg)), Vec::new()),
        })
    }

    fn run(&mut self, channel: &mut Channel, n: usize) -> Result<()> {
        // The warm-up writes the pages; neither setup nor a measured run pays for them.
        match self {
            Sender::Cot(cot, out) => {
                out.resize(n, Block::ONE);
                cot.extend(channel, out)?
            }
            Sender::Rot(rot, out) => {
                out.resize(n, [Block::ONE; 2]);
                rot.extend(channel, out)?
            }
            Sender::Ot(ot, messages) => {
                messages.resize(n, [Block::ONE; 2]);
                ot.send(channel, messages)?
            }
        }
        Ok(())
    }
}

/// One lane of the receiver, with its output.
enum Receiver {
    Cot(AnyReceiver, Vec<Block>),
    Rot(CotToRot<AnyReceiver>, Vec<Block>),
    Ot(RotToOt<CotToRot<AnyReceiver>>, BitVec, Vec<Block>),
}

impl Receiver {
    fn new(job: &Job, channel: &mut Channel, base: &dyn tacit::ot::BaseOt, n: usize) -> Result<Self> {
        let mut prg = Prg::from_os();
        let cot = job.protocol.receivers_with(channel, base, &mut prg, 1, job.tuning)?.remove(0);
        channel.flush()?;
        let out = Vec::new();
        Ok(match job.kind {
            Kind::Cot => Receiver::Cot(cot, out),
            Kind::Rot => Receiver::Rot(CotToRot::new(cot, &mut prg), out),
            Kind::Ot => {
                Receiver::Ot(RotToOt::new(CotToRot::new(cot, &mut prg)), BitVec::random(n, &mut prg), out)
            }
        })
    }

    fn run(&mut self, channel: &mut Channel, n: usize) -> Result<()> {
        let (Receiver::Cot(_, out) | Receiver::Rot(_, out) | Receiver::Ot(_, _, out)) = self;
        out.resize(n, Block::ONE);
        match self {
            Receiver::Cot(cot, out) => cot.extend(channel, out)?,
            Receiver::Rot(rot, out) => drop(rot.extend(channel, out)?),
            Receiver::Ot(ot, choices, out) => ot.receive(channel, choices, out)?,
        }
        Ok(())
    }
}
