//! `tacit bench ot`: OT extension. Setup is the base OTs; a run makes all OTs into memory that the caller
//! owns.

use super::measure::{Runs, measure_phases};
use super::{Common, Subject};
use crate::Context;
use std::iter::repeat_with;
use tacit::Result;
use tacit::catalogue::{Assumption, Entry};
use tacit::crypto::{BitVec, Block, Buffer, Prg};
use tacit::net::Channel;
use tacit::ot::{self, AnyReceiver, AnySender, Job, Kind, Sets, in_parallel};
use tacit::ot::{CotReceiver, CotSender, CotToRot, OtReceiver, OtSender, RotReceiver, RotSender, RotToOt};
use tacit::plan::{self, Choice, Machine, Pick, Request};
use tacit_console::options::KindArg;
use tacit_console::options::Security;

/// OTs of a thread below which the silent protocols begin each run from nothing, unless the user says otherwise:
/// they make up to 10^7 at a time.
const FROM_NOTHING: usize = 1 << 20;

/// OT extension: correlated, random or chosen OTs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The protocol: auto, iknp, kos, softspoken, ferret, ferret-uni or silent
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
    /// The LPN set of ferret, a, b, c, d, e, paper or paper-setup, or of ferret-uni, main, a, b, setup, paper
    /// or paper-setup; without it, what suits count and link. The papers' sets protect nobody
    #[arg(long, value_name = "SET")]
    set: Option<String>,
    /// The code: of silent linear (default) or quasi-cyclic, of softspoken groups-2, groups-4 or groups-8
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// The base OT
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// Takes the parameters that suit this many OTs instead of --count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    tune_for: Option<u64>,
    /// Begins every run from nothing, base OTs included: what one job costs. There is no setup apart then.
    /// The default for fewer than 2^20 OTs a thread of a protocol that makes more at a time than is asked for,
    /// as such a run would take what an earlier one left over; --fresh=false measures that
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fresh: Option<bool>,
    /// Each party is sender and receiver at the same time, with --threads threads for each; --count is of
    /// both together
    #[arg(long)]
    both_ways: bool,
    /// Random 1-out-of-P transfers instead, of 2, 4, 16 or 256 messages each; every run begins from nothing
    #[arg(long, value_name = "P", conflicts_with_all = ["kind", "protocol", "set", "code", "tune_for", "both_ways"])]
    of: Option<usize>,
    /// What the other party of this benchmark picked for `auto`
    #[arg(long, hide = true, value_name = "P")]
    picked: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    if let Some(p) = args.of {
        let security = args.security.map_or(tacit::Security::Malicious, Into::into);
        let (role, kind) = (tacit::job::vole::Role::Sender, tacit::job::vole::Kind::OneOf(p));
        let job = tacit::job::vole::Job { role, kind, count: args.count, security };
        return super::correlations::correlate("ot", job, args.base_ot.as_deref(), &args.common, context);
    }
    let named = args.picked.as_deref().unwrap_or(&args.protocol);
    let security = match (args.security, named) {
        (Some(security), _) => security.into(),
        (None, "auto") => tacit::Security::Malicious,
        (None, name) => ot::protocol(name, tacit::Security::SemiHonest)?.security,
    };
    // Each direction has the streams of a job of its share.
    let ways = if args.both_ways { 2 } else { 1 };
    let (share, threads) = (args.count.div_ceil(ways), usize::from(args.common.threads));
    let mut common = args.common.clone();
    common.threads *= ways as u16;
    let ways = ways as usize;
    let link = common.link();
    let kind = Kind::from(args.kind);
    let request = |protocol| {
        let (set, code) = (args.set.as_deref(), args.code.as_deref());
        let choice = Choice { protocol, set, code, sets: Sets::Measuring };
        Request { count: args.tune_for.unwrap_or(share), kind, security, threads, choice }
    };
    let protocol = if named == "auto" {
        let picked = plan::pick(&request(None), &link.into(), &Machine::measure())?.protocol;
        common.tell.extend(["--picked".to_owned(), picked.name.to_owned()]);
        picked
    } else {
        ot::protocol(named, security)?
    };
    ot::check(protocol, &request(None).choice)?;
    // Both parties come to the same parameters, whatever each of them would measure.
    let pick = plan::pick(&request(Some(protocol.name)), &link.into(), &Machine::REFERENCE)?;
    let base_word = args.base_ot.as_ref().map(|name| format!("base {name}"));
    common.beside.push(("security_bits", pick.extension().security_bits().into()));
    let words = [Some(pick.extension().variant()).filter(|v| !v.is_empty()), base_word];
    common.variant = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let base = crate::base::base_ot(args.base_ot.as_deref(), security)?;
    super::record::check_memory("this benchmark", memory(&pick, kind, args.count))?;
    let lanes = ways * pick.streams(share, threads);
    let each = (args.count as usize).div_ceil(lanes);
    // A direction's streams share a setup, but for Ferret's, where each takes as long in it as in one of its
    // own.
    let setups = if pick.shares_setup() { ways } else { lanes };
    let job = Job { pick, kind, count: (each * lanes) as u64 };
    let subject = Subject {
        name: "ot",
        protocol: protocol.name.into(),
        security: job.pick.extension().protects().map(|_| security),
        kind: format!("{}{}", kind.name(), if args.both_ways { " both ways" } else { "" }),
        count: job.count,
        more: |_, _| Vec::new(),
    };
    let first = !common.is_peer();
    let fresh = args.fresh.unwrap_or(makes_many_at_once(protocol) && each < FROM_NOTHING);
    if first && args.fresh.is_none() && fresh {
        context.note("a run of so few OTs begins from nothing (--fresh); --fresh=false leaves the setup out");
    }
    let runs = Runs { repeat: common.repeat.into(), fresh };
    let agreement = job.agreement(&*base, first).with("fresh", fresh);
    common.run(context, &subject, agreement, |channels| {
        let setup = |channels: &mut [Channel], last: Vec<Lane>| {
            let sources = in_parallel(&mut channels[..setups], |lane, channel| {
                sources(&job, first != (lane % ways == 1), channel, &*base, lanes / setups)
            })?;
            let mut sources: Vec<_> = sources.into_iter().map(Vec::into_iter).collect();
            let sources = (0..lanes).filter_map(|lane| sources[lane % setups].next());
            let memory = last.into_iter().map(|last| last.memory).chain(repeat_with(Memory::default));
            Ok(sources.zip(memory).map(|(source, memory)| Lane { source, memory }).collect())
        };
        let once = |_, lane: &mut Lane, channel: &mut Channel, inputs: &mut dyn FnMut()| {
            lane.run(kind, channel, each, inputs)
        };
        let side = measure_phases(&mut channels[..lanes], runs, setup, once)?;
        if first && side.bytes_sent + side.bytes_received == 0 {
            context.note("no byte was sent: these OTs were left over from the warm-up or the setup");
        }
        Ok(side)
    })
}

/// Whether a protocol makes its correlations many at a time, so that a run may take what an earlier one left over.
pub(crate) fn makes_many_at_once(protocol: &Entry) -> bool {
    protocol.assumptions.iter().any(|one| matches!(one, Assumption::Lpn | Assumption::DualLpn))
}

/// Bytes that both parties together hold.
fn memory(pick: &Pick, kind: Kind, count: u64) -> u64 {
    let outputs = match kind {
        Kind::Cot => 32,
        Kind::Rot => 48,
        Kind::Ot => 96,
    };
    let piece = pick.piece(count, 1) as u64;
    count.saturating_mul(outputs).saturating_add(2 * piece * pick.working())
}

/// Random OTs made before there was an input, taken one after the other.
struct Made<'a, T>(&'a [T], BitVec);

impl<T: Copy> Made<'_, T> {
    fn take(&mut self, out: &mut [T]) {
        let (now, rest) = self.0.split_at(out.len());
        out.copy_from_slice(now);
        self.0 = rest;
    }
}

impl RotSender for Made<'_, [Block; 2]> {
    fn extend(&mut self, _: &mut Channel, out: &mut [[Block; 2]]) -> tacit_ot::Result<()> {
        self.take(out);
        Ok(())
    }
}

impl RotReceiver for Made<'_, Block> {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<BitVec> {
        let first = self.1.len() - self.0.len();
        self.take(out);
        // Chunks of chosen OT begin at whole bytes.
        Ok(BitVec::from_bytes(&self.1.as_bytes()[first / 8..], out.len()))
    }
}

/// What `lanes` channels of one direction draw on, by one setup over `channel`, the first of them.
fn sources(
    job: &Job,
    sends: bool,
    channel: &mut Channel,
    base: &dyn tacit::ot::BaseOt,
    lanes: usize,
) -> Result<Vec<Source>> {
    let mut prg = Prg::from_os();
    let correlated = job.kind == Kind::Cot;
    let sources = if sends {
        let cots = job.pick.senders(channel, base, &mut prg, lanes)?;
        let source = |cot| match correlated {
            true => Source::CotSender(cot),
            false => Source::RotSender(CotToRot::new(cot)),
        };
        cots.into_iter().map(source).collect()
    } else {
        let cots = job.pick.receivers(channel, base, &mut prg, lanes)?;
        let source = |cot| match correlated {
            true => Source::CotReceiver(cot),
            false => Source::RotReceiver(CotToRot::new(cot)),
        };
        cots.into_iter().map(source).collect()
    };
    channel.flush()?;
    Ok(sources)
}

/// One channel of a party: where its OTs come from, and the memory that they fill. The warm-up writes the
/// pages; no measured run pays for them.
struct Lane {
    source: Source,
    memory: Memory,
}

enum Source {
    CotSender(AnySender),
    CotReceiver(AnyReceiver),
    RotSender(CotToRot<AnySender>),
    RotReceiver(CotToRot<AnyReceiver>),
}

struct Memory {
    /// Correlations, or messages of random OT, the sender's in pairs.
    made: Buffer,
    /// Of chosen OT: the receiver's choices, and its messages or the sender's pairs.
    choices: BitVec,
    chosen: Buffer,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { made: Buffer::zeros(0), choices: BitVec::default(), chosen: Buffer::zeros(0) }
    }
}

/// Room for `n` blocks.
fn room(memory: &mut Buffer, n: usize) -> &mut [Block] {
    if memory.len() != n {
        *memory = Buffer::zeros(n);
    }
    memory
}

impl Lane {
    fn run(&mut self, kind: Kind, channel: &mut Channel, n: usize, inputs: &mut dyn FnMut()) -> Result<()> {
        let Memory { made, choices, chosen } = &mut self.memory;
        match &mut self.source {
            Source::CotSender(cot) => cot.extend(channel, room(made, n))?,
            Source::CotReceiver(cot) => cot.extend(channel, room(made, n))?,
            Source::RotSender(rot) => {
                let pairs = room(made, 2 * n).as_chunks_mut().0;
                rot.extend(channel, pairs)?;
                if kind == Kind::Ot {
                    inputs();
                    let messages = room(chosen, 2 * n).as_chunks().0;
                    RotToOt::new(Made(pairs, BitVec::default())).send(channel, messages)?;
                }
            }
            Source::RotReceiver(rot) => {
                let random = rot.extend(channel, room(made, n))?;
                if kind == Kind::Ot {
                    inputs();
                    if choices.is_empty() {
                        *choices = BitVec::random(n, &mut Prg::from_os());
                    }
                    RotToOt::new(Made(made, random)).receive(channel, choices, room(chosen, n))?;
                }
            }
        }
        Ok(())
    }
}
