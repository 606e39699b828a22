//! `tacit vole`, and random 1-out-of-p transfers of `tacit ot --of`.

use crate::cli::Context;
use crate::cli::output::destination;
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::plan::{self, Picked};
use crate::cli::report::ReportArgs;
use crate::cli::share::{Arrays, archive, note_none};
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::crypto::Block;
use tacit::crypto::near::one_of;
use tacit::crypto::text::counted;
use tacit::data::npz::{Array, Element};
use tacit::job::vole::{Field, Inputs, Job, Kind, Role as Side, Sink};
use tacit::plan::Machine;
use tacit::{Result, security_name};
use tacit_console::options::Role;
use zeroize::Zeroizing;

const AFTER: &str = "\
Example:
  tacit vole --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role sender --count 1000000 --out sender.npz
  tacit vole --connect 127.0.0.1:7700 --identity bob.key --peer alice.pub \\
      --role receiver --count 1000000 --out receiver.npz

The sender's file has delta and v, the receiver's u and w, with w = v + u·delta over the field.";

/// Makes correlations of vector oblivious linear evaluation with the peer: w = v + u·Δ over a field.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Which side this is: the sender has Δ and v, the receiver u and w
    #[arg(long, value_enum, hide_possible_values = true, value_name = "sender|receiver")]
    role: Role,
    /// How many correlations; must match on both sides
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: u64,
    /// The field: gf128; gf4, gf16 or gf256 for u, the rest in GF(2^128); p61 (2^61 − 1) or p128 (2^128 − 159),
    /// semi-honest only. Must match on both sides
    #[arg(long, value_name = "FIELD", default_value = "gf128", value_parser = field)]
    field: Field,
    /// What kind of peer to protect against; must match on both sides
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// The base OT: mrr21 (default), mr19, csw20, roted (post-quantum), or co15 (semi-honest only); must match on
    /// both sides
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// Writes your share to this file, which only its owner can read
    #[arg(long, value_name = "SHARE.npz")]
    out: Option<PathBuf>,
    /// Prints what it would cost on the --link given, and starts nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    peer: PeerArgs,
}

fn field(name: &str) -> std::result::Result<Field, String> {
    Field::named(name).ok_or_else(|| format!("there is no field `{name}`; {}", one_of(name, Field::names())))
}

/// Runs `tacit vole`.
pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let job = Job {
        role: side(args.role),
        kind: Kind::Vole(args.field),
        count: args.count,
        security: args.security.into(),
    };
    let run = Run {
        job,
        name: "vole",
        peer: &args.peer,
        report: &args.report,
        base_ot: args.base_ot.as_deref(),
        security: args.security,
        out: args.out.as_deref(),
    };
    if args.dry_run { run.foresee(context) } else { run.make(context) }
}

pub(super) fn side(role: Role) -> Side {
    match role {
        Role::Sender => Side::Sender,
        Role::Receiver => Side::Receiver,
    }
}

/// A run and what it was asked with.
pub(super) struct Run<'a> {
    pub(super) job: Job,
    pub(super) name: &'static str,
    pub(super) peer: &'a PeerArgs,
    pub(super) report: &'a ReportArgs,
    pub(super) base_ot: Option<&'a str>,
    pub(super) security: Security,
    pub(super) out: Option<&'a Path>,
}

impl Run<'_> {
    /// Prints what it would cost.
    pub(super) fn foresee(&self, context: &Context) -> Result<()> {
        let link = self.peer.link().into();
        let (base, machine) = (self.peer.base(self.base_ot, self.security)?, Machine::measure());
        let all = plan::from_base(self.job.estimate(&link, &machine)?, self.peer, &*base, &link, &machine)?;
        plan::show(context, self.name, self.job.count, &link, &all, Picked::Fastest, &self.job.will_learn())
    }

    pub(super) fn make(&self, context: &Context) -> Result<()> {
        let Run { job, .. } = self;
        job.check()?;
        let one = match job.kind {
            Kind::Vole(_) => "correlation",
            Kind::OneOf(_) => "OT",
        };
        let what = format!("making {}", counted(job.count, one));
        crate::cmd::check_memory(&what, job.memory(), "make them in several runs")?;
        note_none(self.out, context);
        let mut session = self.peer.session(self.security, context)?;
        if let Some(name) = self.base_ot {
            session = session.base_ot(name);
        }
        let base = session.base()?;
        let page = self.report.open(|| self.peer.sides(&[]))?;
        let mut share = self.out.map(|out| Share::create(out, job)).transpose()?;
        let progress = context.progress("VOLE", job.count, one);
        let ran = session.run_vole(job, &mut share, &progress)?;
        progress.finish();
        if let Some(share) = share {
            share.arrays.finish()?;
        }
        let other_learns = job.has_learned();
        let (field, of) = match job.kind {
            Kind::Vole(field) => (Some(field.name()), None),
            Kind::OneOf(p) => (None, Some(p)),
        };
        let ns_per_item = ran.wall.as_nanos() as f64 / job.count.max(1) as f64;
        let object = json!({
            "name": self.name,
            "field": field,
            "of": of,
            "base_ot": base.name(),
            "role": job.role.name(),
            "security": security_name(job.security),
            "count": job.count,
            "wall_ms": ran.wall.as_secs_f64() * 1e3,
            "ns_per_item": ns_per_item,
            "bytes_sent": ran.stats.bytes_sent,
            "bytes_received": ran.stats.bytes_received,
            "rounds": ran.stats.rounds,
            "other_side_learned": other_learns,
            "out": self.out,
        });
        let made = match job.kind {
            Kind::Vole(field) => format!("{} over {}", counted(job.count, one), field.title()),
            Kind::OneOf(p) => format!("{} of {}", counted(job.count, "random OT"), counted(p, "message")),
        };
        let text = format!(
            "{made} ({}) in {:.3} s, {ns_per_item:.1} ns each; {} sent, {} received, {}{}; the other side learned \
             {other_learns}",
            security_name(job.security),
            ran.wall.as_secs_f64(),
            counted(ran.stats.bytes_sent, "byte"),
            ran.stats.bytes_received,
            counted(ran.stats.rounds, "round"),
            self.out.map_or_else(String::new, |out| format!("; your share is in {}", destination(out))),
        );
        if let Some(page) = page {
            page.write(&object, context)?;
        }
        context.result(&object, &text)
    }
}

/// A side's share in a NumPy archive.
struct Share {
    arrays: Arrays,
    /// Whether elements are written as one word of eight bytes, not as two.
    narrow: bool,
    /// The array of v, or of messages: behind Δ where there is one.
    last: usize,
}

impl Share {
    fn create(target: &Path, job: &Job) -> Result<Self> {
        let n = job.count;
        let narrow = job.kind == Kind::Vole(Field::P61);
        let blocks = |name, axes: &[u64]| {
            let pair = if narrow { None } else { Some(2) };
            Array::new(name, Element::U64, &axes.iter().copied().chain(pair).collect::<Vec<_>>())
        };
        let bytes = |name| Array::new(name, Element::U8, &[n]);
        let arrays = match (job.kind, job.role) {
            (Kind::Vole(_), Side::Sender) => {
                vec![blocks("delta", if narrow { &[1] } else { &[] }), blocks("v", &[n])]
            }
            (Kind::Vole(Field::Sub(_)), Side::Receiver) => vec![bytes("u"), blocks("w", &[n])],
            (Kind::Vole(_), Side::Receiver) => vec![blocks("u", &[n]), blocks("w", &[n])],
            (Kind::OneOf(p), Side::Sender) => vec![blocks("m", &[n, p as u64])],
            (Kind::OneOf(_), Side::Receiver) => vec![bytes("u"), blocks("m", &[n])],
        };
        let last = arrays.len() - 1;
        Ok(Share { arrays: Arrays::new(archive(target)?, &arrays)?, narrow, last })
    }

    fn blocks(&mut self, array: usize, blocks: &[Block]) -> Result<()> {
        if !self.narrow {
            return self.arrays.append(array, Block::as_bytes(blocks));
        }
        let words =
            Zeroizing::new(blocks.iter().flat_map(|block| block.low().to_le_bytes()).collect::<Vec<_>>());
        self.arrays.append(array, &words)
    }
}

impl Sink for Share {
    fn sent(&mut self, delta: Option<Block>, v: &[Block]) -> Result<()> {
        if let Some(delta) = delta {
            self.blocks(0, &[delta])?;
        }
        self.blocks(self.last, v)
    }

    fn received(&mut self, u: Inputs<'_>, w: &[Block]) -> Result<()> {
        match u {
            Inputs::Bytes(bytes) => self.arrays.append(0, bytes)?,
            Inputs::Blocks(blocks) => self.blocks(0, blocks)?,
        }
        self.blocks(self.last, w)
    }
}
