//! `tacit bench psi`: the intersection of two generated sets, base OTs and checks included in every run, and
//! what may be revealed of it.

mod tags;

use super::measure::{Runs, by_lane, measure_phases};
use super::{Common, Subject};
use crate::Context;
use tacit::crypto::near::one_of;
use tacit::crypto::{Block, Prg, workers};
use tacit::job::psi::{Job, Protocol};
use tacit::net::{Agreement, Channel};
use tacit::psi::circuit::{self, Aggregate, Column, Of};
use tacit::psi::link;
use tacit::psi::paxos::{self, Learns, MAX_ELEMENTS, Options, Phase, Progress};
use tacit::psi::payload::{self, Duplicates, Side, Table};
use tacit::psi::{oprf, sorted, vole_psi};
use tacit::{Error, Result};
use tacit_console::options::Security;

/// Private set intersection of two generated sets.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The protocol: auto, paxos, vole or oprf
    #[arg(long, value_name = "P", default_value = "auto")]
    protocol: String,
    /// What is revealed of the intersection
    #[arg(long, value_enum, default_value = "rows")]
    reveal: Reveal,
    /// Against which peer to protect
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// Elements of each set, half of them common; with oprf queries, half of them with a tag in the file
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=MAX_ELEMENTS as u64))]
    count: u64,
    /// Tags in the file that oprf's queries are looked up in, which is made before anything is measured
    #[arg(long, value_name = "N", default_value_t = 1 << 24, value_parser = clap::value_parser!(u64).range(1..=tags::MOST))]
    tags: u64,
    #[arg(long, hide = true, value_name = "DIR")]
    tags_in: Option<std::path::PathBuf>,
    /// The base OT
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// What is revealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Reveal {
    /// The own matching elements
    Rows,
    /// The matches and eight bytes of the other side's for each
    Payload,
    /// How many are common
    Count,
    /// The sum of the other side's numbers over the common elements
    Sum,
    /// That sum and how many numbers it adds up
    Mean,
    /// Shares of which elements are common
    Shares,
    /// Nothing: both sides get identifiers that match where elements do
    Link,
}

impl Reveal {
    /// The kind in a record.
    fn kind(self) -> &'static str {
        match self {
            Reveal::Rows => "set",
            Reveal::Payload => "payload",
            Reveal::Count => "count",
            Reveal::Sum => "sum",
            Reveal::Mean => "mean",
            Reveal::Shares => "shares",
            Reveal::Link => "link",
        }
    }

    /// Whether a circuit decides what is revealed.
    fn is_computed(self) -> bool {
        !matches!(self, Reveal::Rows | Reveal::Payload | Reveal::Link)
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let name = args.protocol.as_str();
    let vole = match name {
        oprf::NAME if args.common.threads != 1 => {
            return Err(Error::Usage("queries run in one thread; leave --threads out".into()));
        }
        oprf::NAME => return tags::run(args, context),
        "auto" if args.reveal != Reveal::Rows => true,
        "auto" => {
            Job::new(Learns::Both, args.security.into()).fastest(
                args.count,
                args.count,
                &args.common.link.into(),
            ) == Protocol::Vole
        }
        paxos::NAME if args.reveal == Reveal::Rows => false,
        paxos::NAME => return Err(Error::Usage("paxos reveals only rows; use vole".into())),
        vole_psi::NAME => true,
        other => {
            return Err(Error::Usage(format!(
                "there is no PSI protocol `{other}`; {}",
                one_of(other, ["auto", "paxos", "vole", "oprf"])
            )));
        }
    };
    if args.common.threads != 1 && !vole {
        return Err(Error::Usage("paxos runs in one thread; leave --threads out, or take vole".into()));
    }
    let security = args.security.into();
    let malicious = security == tacit::Security::Malicious;
    if args.reveal == Reveal::Shares && malicious {
        return Err(Error::Usage("--reveal shares is semi-honest alone; add --security semi-honest".into()));
    }
    let strict = args.reveal.is_computed() && malicious;
    let most = match args.reveal.is_computed() {
        true if malicious => sorted::MAX_ELEMENTS,
        true => circuit::MAX_ELEMENTS,
        false => MAX_ELEMENTS,
    } as u64;
    if args.count > most {
        return Err(Error::Usage(format!("--count is {most} at most for what is to be revealed")));
    }
    let needed = match vole {
        true if strict => {
            let reveal = tacit::job::psi::Reveal::Count;
            2 * Job { reveal, ..Job::new(Learns::Both, security) }.memory(args.count, args.count)
        }
        true => 2 * vole_memory(args.count, args.reveal)?,
        false => 2 * Job::new(Learns::Both, security).memory(args.count, args.count),
    };
    super::record::check_memory("this benchmark", needed)?;
    let base = crate::base::base_ot(args.base_ot.as_deref(), security)?;
    let subject = Subject {
        name: "psi",
        protocol: match vole {
            true if strict => sorted::NAME,
            true if args.reveal == Reveal::Link => link::NAME,
            true => vole_psi::NAME,
            false => paxos::NAME,
        }
        .into(),
        security: Some(security),
        kind: args.reveal.kind().into(),
        count: args.count,
        more: |_, _| Vec::new(),
    };
    // The connecting side learns the result.
    let receives = args.common.is_peer();
    let party = Party::new(&args, receives, vole)?;
    let repeat = args.common.repeat.into();
    let mut common = args.common.clone();
    common.one_connection = true;
    common.variant = args.base_ot.as_ref().map_or_else(String::new, |name| format!("base {name}"));
    common.run(context, &subject, Agreement::new("bench", "party", "party"), |channels| {
        measure_phases(
            channels,
            Runs { repeat, fresh: false },
            by_lane(|_, _| Ok(Prg::from_os())),
            |_, prg, channel, inputs| {
                let learns = match (args.reveal, receives) {
                    (Reveal::Shares | Reveal::Link, _) => Learns::Both,
                    (_, true) => Learns::Me,
                    (_, false) => Learns::Peer,
                };
                let options = Options {
                    learns,
                    security,
                    min_peer_elements: 0,
                    max_peer_elements: args.count,
                    base: &*base,
                };
                let mut told = |phase, _, _| {
                    if phase != Phase::Setup {
                        inputs();
                    }
                };
                let threads = args.common.threads.into();
                workers::limited(threads, || party.once(channel, prg, &options, &mut told))
            },
        )
    })
}

/// Bytes that a party holds at most, its elements included.
fn vole_memory(count: u64, reveal: Reveal) -> Result<u64> {
    // What a circuit computes on has three of the other side's strings for each element, and a second store.
    let each = if reveal.is_computed() { 500 } else { 64 };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let parameters = vole_psi::Parameters::new(count, count, tacit::Security::Malicious)?;
    let learns = if reveal == Reveal::Rows { Learns::Me } else { Learns::Both };
    let own = parameters.memory(learns).into_iter().max().unwrap_or(0);
    Ok((32 << 20) + own + each * count as u64)
}

/// One party's inputs, made before anything is measured.
struct Party {
    elements: Vec<[u8; 32]>,
    reveal: Reveal,
    vole: bool,
    common: u64,
    column: Column,
    table: Table,
}

/// The column that a payload is of.
const COLUMN: &str = "amount";

impl Party {
    fn new(args: &Args, receives: bool, vole: bool) -> Result<Self> {
        let elements = set(args.count, receives);
        // The side that learns nothing has the numbers: of each element its index.
        let numbers = if receives { 0 } else { args.count as u32 };
        let added = matches!(args.reveal, Reveal::Sum | Reveal::Mean);
        let mut column = Column::new(if added { elements.len() } else { 0 });
        for i in 0..if added { numbers } else { 0 } {
            column.add(i, Some(i.into()))?;
        }
        let mut table = Table::new([COLUMN])?;
        for i in 0..if args.reveal == Reveal::Payload { numbers } else { 0 } {
            table.push(i, [Some(&u64::from(i).to_le_bytes()[..])])?;
        }
        let common = args.count.div_ceil(2);
        Ok(Party { elements, reveal: args.reveal, vole, common, column, table })
    }

    /// One run; an error where the result is wrong.
    fn once(
        &self,
        channel: &mut Channel,
        prg: &mut Prg,
        options: &Options<'_>,
        told: &mut Progress<'_>,
    ) -> Result<()> {
        let Party { elements, common, .. } = self;
        let learns = options.learns != Learns::Peer;
        let right = match self.reveal {
            Reveal::Rows => {
                let run = if self.vole { vole_psi::run } else { paxos::run };
                let found = run(channel, prg, elements, options, told)?.matches;
                found.is_none_or(|found| found.len() as u64 == *common)
            }
            Reveal::Payload => {
                let asked = [COLUMN];
                let side =
                    if learns { Side::Asks(&asked) } else { Side::Gives(&self.table, Duplicates::Refuse) };
                let gained = payload::run(channel, prg, elements, side, options, told)?;
                gained.received.is_none_or(|received| {
                    let cell = |found: &payload::Match| {
                        let cell = found.rows.first()?.first()?.as_deref()?;
                        Some(cell == u64::from(found.element).to_le_bytes())
                    };
                    received.matches.len() as u64 == *common
                        && received.matches.iter().all(|found| cell(found) == Some(true))
                })
            }
            Reveal::Link => {
                let told = &mut |_, phase, done, total| told(phase, done, total);
                let linked = link::run(channel, prg, elements, options, told)?;
                let own = elements.len() as u64;
                (linked.identifiers.len() as u64, linked.peer_elements) == (own, own)
            }
            Reveal::Shares => {
                let shares = circuit::shares(channel, prg, elements, None, options, told)?;
                shares.bins() as u64 > self.common
            }
            Reveal::Count | Reveal::Sum | Reveal::Mean => {
                let of = if learns { Of::Peers } else { Of::Mine(&self.column) };
                let reveal = match self.reveal {
                    Reveal::Count => circuit::Reveal::Count,
                    Reveal::Sum => circuit::Reveal::Sum(of),
                    _ => circuit::Reveal::Mean(of),
                };
                let aggregate = match options.security {
                    tacit::Security::Malicious => sorted::aggregate,
                    tacit::Security::SemiHonest => circuit::aggregate,
                };
                let outcome = aggregate(channel, prg, elements, reveal, 1.into(), options, told)?;
                let (rows, total) = (*common, i128::from(*common) * (i128::from(*common) - 1) / 2);
                outcome.result.is_none_or(|result| match result {
                    Aggregate::Withheld => false,
                    Aggregate::Count(count) => count == rows,
                    Aggregate::Sum(sum) => sum == total,
                    Aggregate::Mean { sum, rows: added } => (sum, added) == (total, rows),
                })
            }
        };
        if right { Ok(()) } else { Err(Error::Other("a wrong result".into())) }
    }
}

/// The first half is common, the rest is the party's own.
fn set(count: u64, own: bool) -> Vec<[u8; 32]> {
    let mut common = Prg::from_seed(Block::new(1));
    let mut rest = Prg::from_seed(Block::new(2 + own as u128));
    let common_count = count.div_ceil(2);
    let draw = |i: u64| {
        let mut element = [0; 32];
        let prg = if i < common_count { &mut common } else { &mut rest };
        prg.fill_bytes(&mut element);
        element
    };
    (0..count).map(draw).collect()
}
