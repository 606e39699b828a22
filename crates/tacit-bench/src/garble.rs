//! `tacit bench garble`: half-gates alone, garbling and evaluating apart, in one thread and without a link.

use super::measure::{Side, cpu_ms, peak_rss};
use super::record::check_memory;
use super::{Common, Subject};
use crate::Context;
use std::time::Instant;
use tacit::crypto::{Block, Prg};
use tacit::job::eval::load;
use tacit::net::LinkModel;
use tacit::two_pc::circuit::{Builder, Circuit, FIRST_INPUT, Order, Plan};
use tacit::two_pc::garble::{
    Copy, Evaluate, Garble, GarblingScheme, HalfGates, HalfGatesEvaluator, HalfGatesGarbler,
};
use tacit::{Error, Result, Security};

/// AND gates of a piece: what a protocol garbles before it sends.
const PIECE_GATES: usize = 2048;
/// Gates of the circuit called `independent`.
const INDEPENDENT: u32 = 4096;

/// Half-gates alone: garbling, then evaluating.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `independent` for gates of which none needs another, the name of a function, or a Bristol file
    #[arg(value_name = "CIRCUIT|NAME", default_value = "independent")]
    function: String,
    /// Copies side by side, each with a Δ of its own, as a cut-and-choose has them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    copies: u16,
    /// Measures one of the two only
    #[arg(long, value_name = "WHAT", value_parser = ["garble", "evaluate"])]
    only: Option<String>,
    /// AND gates of a run, at least
    #[arg(long, value_name = "N", default_value_t = 1 << 22, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: u64,
    /// Measured runs, after one that is thrown away
    #[arg(long, value_name = "R", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let circuit = if args.function == "independent" { independent()? } else { load(&args.function)?.circuit };
    let copies = usize::from(args.copies);
    let start = Instant::now();
    // One copy fills the vectors with gates of a layer, several with a gate of each.
    let plan = Plan::new(&circuit, if copies == 1 { Order::Layered } else { Order::Sequential });
    let setup_ms = start.elapsed().as_secs_f64() * 1e3;
    let each = plan.ands() * copies as u64;
    if each == 0 {
        return Err(Error::Usage(format!(
            "{}: has no AND gate, so there is nothing to measure",
            args.function
        )));
    }
    // A label of every copy in each slot, of the garbler and of the evaluator.
    check_memory("this benchmark", (2 * size_of::<Block>() * copies * plan.slots()) as u64)?;
    let mut bench = Bench::new(&plan, copies, args.count.div_ceil(each));
    for what in ["garble", "evaluate"] {
        if args.only.as_deref().is_some_and(|only| only != what) {
            continue;
        }
        let once: &mut dyn FnMut() =
            if what == "garble" { &mut || bench.garble() } else { &mut || bench.evaluate() };
        let side = timed(args.repeat, setup_ms, once);
        let subject = Subject {
            name: what,
            protocol: HalfGates::NAME.into(),
            security: Some(Security::SemiHonest),
            kind: format!("{} x{copies}", args.function),
            count: each * bench.executions,
            more: |_, _| Vec::new(),
        };
        report_alone(context, &subject, &side)?;
    }
    Ok(())
}

/// Reports what one thread did without a peer.
pub(crate) fn report_alone(context: &Context, subject: &Subject, side: &Side) -> Result<()> {
    let common = Common {
        threads: 1,
        link: LinkModel::LOOPBACK,
        repeat: side.wall_ms.len() as u16,
        tls: false,
        in_process: true,
        peer_of: None,
        peer_keys: None,
        tell: Vec::new(),
        variant: String::new(),
        beside: Vec::new(),
        one_connection: true,
    };
    let nobody = Side { wall_ms: vec![0.0; side.wall_ms.len()], cpu_ms: vec![0.0], ..Side::default() };
    common.report(context, subject, side, &nobody)
}

fn independent() -> Result<Circuit> {
    let mut builder = Builder::new();
    let (x, y) = (builder.input(INDEPENDENT), builder.input(INDEPENDENT));
    let both = builder.and_bits(&x, &y);
    builder.finish(&[both]).map_err(|e| Error::Other(e.to_string()))
}

/// A garbler and an evaluator of the same copies, and the one piece of tables that passes between them, hot
/// in the caches as in a protocol. The times do not depend on what the tables hold.
struct Bench<'a> {
    plan: &'a Plan,
    executions: u64,
    piece: usize,
    garbler: HalfGatesGarbler,
    evaluator: HalfGatesEvaluator,
    tables: Vec<Block>,
}

impl<'a> Bench<'a> {
    fn new(plan: &'a Plan, copies: usize, executions: u64) -> Self {
        let mut prg = Prg::from_os();
        let copies: Vec<Copy> =
            (0..copies).map(|_| Copy { delta: prg.block() | Block::ONE, start: prg.block() }).collect();
        let starts: Vec<Block> = copies.iter().map(|copy| copy.start).collect();
        let (mut garbler, mut evaluator) = (HalfGatesGarbler::new(&copies), HalfGatesEvaluator::new(&starts));
        let mut labels = vec![Block::ZERO; copies.len()];
        for input in 0..plan.input_bits() as u32 {
            prg.fill_blocks(&mut labels);
            garbler.set_zero_labels(FIRST_INPUT + input, &labels);
            evaluator.set_labels(FIRST_INPUT + input, &labels);
        }
        let piece = (PIECE_GATES / copies.len()).max(1);
        let largest = plan.pieces(piece).map(|piece| piece.ands).max().unwrap_or(0);
        let tables = vec![Block::ZERO; HalfGates::BLOCKS_PER_AND * largest * copies.len()];
        Bench { plan, executions, piece, garbler, evaluator, tables }
    }

    fn garble(&mut self) {
        let blocks = HalfGates::BLOCKS_PER_AND * self.garbler.lanes();
        for _ in 0..self.executions {
            for piece in self.plan.pieces(self.piece) {
                self.garbler.garble(piece, &mut self.tables[..blocks * piece.ands]);
            }
        }
    }

    fn evaluate(&mut self) {
        let blocks = HalfGates::BLOCKS_PER_AND * self.evaluator.lanes();
        for _ in 0..self.executions {
            for piece in self.plan.pieces(self.piece) {
                self.evaluator.evaluate(piece, &self.tables[..blocks * piece.ands]);
            }
        }
    }
}

/// Times `once` after a warm-up.
pub(crate) fn timed(repeat: u16, setup_ms: f64, mut once: impl FnMut()) -> Side {
    once();
    let mut side = Side { setup_ms, ..Side::default() };
    for _ in 0..repeat {
        let (cpu, start) = (cpu_ms(), Instant::now());
        once();
        side.wall_ms.push(start.elapsed().as_secs_f64() * 1e3);
        side.cpu_ms.push(cpu_ms() - cpu);
    }
    side.peak_rss_bytes = peak_rss();
    side
}
