//! `tacit triples`: shares of Beaver triples for both sides.

use crate::cli::Context;
use crate::cli::output::destination;
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::plan;
use crate::cli::report::ReportArgs;
use crate::cli::share::{Arrays, archive, note_none};
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::crypto::Block;
use tacit::crypto::text::counted;
use tacit::data::npz::{Array, Element};
use tacit::job::triples::{self, By, Job, Kind, Sink};
use tacit::job::vole::Field;
use tacit::plan::Machine;
use tacit::{Result, security_name};

const AFTER: &str = "\
Examples:
  tacit triples --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --kind words --security semi-honest --count 100000 --out alice.npz
  tacit triples --connect 127.0.0.1:7700 --identity bob.key --peer alice.pub \\
      --kind words --security semi-honest --count 100000 --out bob.npz
  tacit triples --kind bits --count 1000000 --link wan --dry-run

Three lines of Python check the triples of words:
  import numpy as np
  x, y = np.load(\"alice.npz\"), np.load(\"bob.npz\")
  assert ((x[\"a\"] + y[\"a\"]) * (x[\"b\"] + y[\"b\"]) == x[\"c\"] + y[\"c\"]).all()

Against a malicious peer, the default, there are triples of bits, with MACs.";

/// What triples are made of.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum KindArg {
    /// AND of bits, shares added by XOR
    Bits,
    /// Products of integers modulo 2^64
    Words,
    /// Products in the --field
    Field,
}

/// Makes Beaver triples with the peer: each side gets random shares of a and b, and a share of their product c.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// What a, b and c are: bits, words (integers modulo 2^64) or elements of a field. Must match on both sides
    #[arg(long, value_enum, hide_possible_values = true, value_name = "bits|words|field")]
    kind: KindArg,
    /// The field of --kind field: gf128 (default), p61 (2^61 − 1) or p128 (2^128 − 159). Must match on both sides
    #[arg(long, value_name = "FIELD")]
    field: Option<String>,
    /// The number of triples; must match on both sides
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: u64,
    /// What kind of peer to protect against; words and fields are semi-honest only. Must match on both sides
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// With --security semi-honest, the OT extension: auto (default), iknp, kos, softspoken, ferret, ferret-uni or silent. Must
    /// match on both sides
    #[arg(long, value_name = "P", default_value = "auto", hide_default_value = true)]
    protocol: String,
    /// The base OT: mrr21 (default), mr19, csw20, roted (post-quantum), or co15 (semi-honest only). Must match on
    /// both sides
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// Writes your share to this file, which only its owner can read
    #[arg(long, value_name = "SHARE.npz")]
    out: Option<PathBuf>,
    /// Prints what each protocol would cost on the --link given, and starts nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    peer: PeerArgs,
}

impl Args {
    fn kind(&self) -> Result<Kind> {
        let name = match self.kind {
            KindArg::Bits => "bits",
            KindArg::Words => "words",
            KindArg::Field => "field",
        };
        Kind::named(name, self.field.as_deref())
    }

    /// The protocol that is insisted on.
    fn protocol(&self) -> Option<&str> {
        Some(self.protocol.as_str()).filter(|name| *name != "auto")
    }
}

/// Runs `tacit triples`.
pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let (kind, protocol) = (args.kind()?, args.protocol());
    triples::check(kind, args.security.into(), protocol, args.peer.threads())?;
    if args.dry_run {
        return dry_run(&args, kind, context);
    }
    note_none(args.out.as_deref(), context);
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    let base = session.base()?;
    let page = args.report.open(|| args.peer.sides(&[]))?;
    let checked = args.security == Security::Malicious;
    let mut share =
        args.out.as_deref().map(|out| Share::create(out, kind, args.count, checked)).transpose()?;
    let job = session.choose_triples(kind, args.count, protocol)?;
    let what = format!("making {} by {}", counted(job.count, "triple"), job.protocol());
    let instead = "use fewer threads, or make them in several runs";
    crate::cmd::check_memory(&what, job.memory(args.peer.threads()), instead)?;
    let progress = context.progress("triples", job.count, "triple");
    let ran = session.run_triples(&job, &mut share, &progress)?;
    progress.finish();
    if let Some(share) = share {
        share.arrays.finish()?;
    }
    let other_learns = job.has_learned();
    let ns_per_item = ran.wall.as_nanos() as f64 / job.count.max(1) as f64;
    let object = json!({
        "name": "triples",
        "kind": kind.name(),
        "field": kind.field().map(Field::name),
        "protocol": job.protocol(),
        "base_ot": base.name(),
        "security": security_name(job.security()),
        "count": job.count,
        "wall_ms": ran.wall.as_secs_f64() * 1e3,
        "ns_per_item": ns_per_item,
        "bytes_sent": ran.stats.bytes_sent,
        "bytes_received": ran.stats.bytes_received,
        "rounds": ran.stats.rounds,
        "other_side_learned": other_learns,
        "out": args.out,
    });
    if let Some(page) = page {
        page.write(&object, context)?;
    }
    context.result(&object, &text(&args, &job, &ran, ns_per_item, &other_learns))
}

fn text(args: &Args, job: &Job, ran: &tacit::job::Ran<()>, ns_per_item: f64, other_learns: &str) -> String {
    let with = if matches!(job.by, By::Authenticated) { " with MACs" } else { "" };
    let out = args.out.as_deref().map(|out| format!("; your share is in {}", destination(out)));
    format!(
        "{} over {}{with} by {} ({}) in {:.3} s, {ns_per_item:.1} ns each; {} sent, {} received, {}{}; the other side \
         learned {other_learns}",
        counted(job.count, "triple"),
        job.kind.title(),
        job.protocol(),
        security_name(job.security()),
        ran.wall.as_secs_f64(),
        counted(ran.stats.bytes_sent, "byte"),
        ran.stats.bytes_received,
        counted(ran.stats.rounds, "round"),
        out.unwrap_or_default(),
    )
}

fn dry_run(args: &Args, kind: Kind, context: &Context) -> Result<()> {
    let (security, link) = (args.security.into(), args.peer.link().into());
    let (threads, machine) = (args.peer.threads(), Machine::measure());
    // All of them, so that the table has what the protocol that is named is compared with.
    let named = args.protocol();
    if let Some(name) = named {
        tacit::ot::protocol(name, security)?;
    }
    let base = args.peer.base(args.base_ot.as_deref(), args.security)?;
    let all = triples::estimate(kind, args.count, security, threads, None, &link, &machine)?;
    let all = plan::from_base(all, &args.peer, &*base, &link, &machine)?;
    plan::show(context, "triples", args.count, &link, &all, named.into(), &triples::will_learn(security))
}

/// A side's share in a NumPy archive.
struct Share {
    arrays: Arrays,
    /// Arrays before those of the shares.
    first: usize,
}

const SHARE_ARRAYS: [&str; 3] = ["a", "b", "c"];
const MAC_ARRAYS: [&str; 3] = ["mac_a", "mac_b", "mac_c"];
const KEY_ARRAYS: [&str; 3] = ["key_a", "key_b", "key_c"];

impl Share {
    fn create(target: &Path, kind: Kind, n: u64, checked: bool) -> Result<Self> {
        let blocks = |name| Array::new(name, Element::U64, &[n, 2]);
        let mut arrays = Vec::new();
        if checked {
            arrays.push(Array::new("delta", Element::U64, &[2]));
        }
        let first = arrays.len();
        arrays.extend(SHARE_ARRAYS.map(|name| match kind.element_bytes() {
            1 => Array::new(name, Element::U8, &[n]),
            8 => Array::new(name, Element::U64, &[n]),
            _ => blocks(name),
        }));
        if checked {
            arrays.extend(MAC_ARRAYS.into_iter().chain(KEY_ARRAYS).map(blocks));
        }
        Ok(Share { arrays: Arrays::new(archive(target)?, &arrays)?, first })
    }

    /// Appends to three arrays, of which this is the first.
    fn three(&mut self, first: usize, parts: [&[u8]; 3]) -> Result<()> {
        for (array, bytes) in (first..).zip(parts) {
            self.arrays.append(array, bytes)?;
        }
        Ok(())
    }
}

impl Sink for Share {
    fn delta(&mut self, delta: Block) -> Result<()> {
        self.arrays.append(0, &delta.to_bytes())
    }

    fn shares(&mut self, abc: [&[u8]; 3]) -> Result<()> {
        self.three(self.first, abc)
    }

    fn tags(&mut self, macs: [&[Block]; 3], keys: [&[Block]; 3]) -> Result<()> {
        self.three(self.first + SHARE_ARRAYS.len(), macs.map(Block::as_bytes))?;
        self.three(self.first + SHARE_ARRAYS.len() + MAC_ARRAYS.len(), keys.map(Block::as_bytes))
    }
}
