//! `tacit circuit`: what a function is made of, as numbers, as a file, as a picture.

use crate::cli::Context;
use crate::cli::output::{Output, name, write_fault};
use crate::cmd::eval::program;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use tacit::crypto::hex;
use tacit::crypto::text::counted;
use tacit::job::eval::{Job, Options};
use tacit::net::LinkModel;
use tacit::plan::{EvalCandidate, Machine};
use tacit::two_pc::circuit::bristol::{self, Format};
use tacit::two_pc::circuit::draw;
use tacit::two_pc::circuit::named::Function;
use tacit::two_pc::{OutputTo, Owner, Prepared};
use tacit::{Error, Result, Security};

const AFTER: &str = "\
Examples:
  tacit circuit stats auction.garble.rs
  tacit circuit export mul32 --output mul32.txt
  tacit circuit draw millionaires4 --output millionaires.svg";

/// Shows what a function is made of, or writes it for other programs.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Gates by kind, depth, inputs, outputs, digests, and what an evaluation costs
    Stats {
        #[command(flatten)]
        function: Named,
    },
    /// Writes the circuit in a Bristol format
    Export {
        #[command(flatten)]
        function: Named,
        /// The format: Bristol Fashion, or the old one of two inputs and one output
        #[arg(long, value_enum, default_value = "fashion")]
        format: FormatArg,
        /// The file to write (default: standard output)
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Draws a small circuit as an SVG
    Draw {
        #[command(flatten)]
        function: Named,
        /// The file to write (default: standard output)
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Which function.
#[derive(clap::Args)]
struct Named {
    /// The name of a function (tacit eval --list), a Bristol file, or a program (FILE.garble.rs)
    #[arg(value_name = "CIRCUIT|NAME|PROGRAM")]
    function: String,
    #[command(flatten)]
    program: program::ProgramArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum FormatArg {
    /// Any number of inputs and outputs
    Fashion,
    /// Two inputs, the outputs joined to one
    Old,
}

impl Named {
    fn load(&self) -> Result<(Function, Option<[u8; 32]>)> {
        match self.program.load(&self.function)? {
            Some(program) => Ok((program::function(&self.function, &program), Some(program.digest()))),
            None => Ok((self.program.circuit(&self.function)?, None)),
        }
    }
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    match args.what {
        What::Stats { function } => {
            let (function, source) = function.load()?;
            stats(&function, source, context)
        }
        What::Export { function, format, output } => {
            let (function, _) = function.load()?;
            let format = if format == FormatArg::Old { Format::Old } else { Format::Fashion };
            let text = bristol::write(&function.circuit, format).ok_or_else(|| {
                Error::Usage(
                    "the old format has one or two inputs, and this function has a different number; use \
                     --format fashion"
                        .into(),
                )
            })?;
            give(&function, &text, output, context)
        }
        What::Draw { function, output } => {
            let (function, _) = function.load()?;
            let text = draw::svg(&function).ok_or_else(|| {
                Error::Usage(format!(
                    "{} has {} and {}, and a picture shows at most {}; choose a smaller size, or use tacit circuit stats",
                    tacit::net::shown(&function.name),
                    counted(function.circuit.gates().len(), "gate"),
                    counted(function.circuit.shape().input_bits(), "input bit"),
                    draw::DRAWN_GATES
                ))
            })?;
            give(&function, &text, output, context)
        }
    }
}

/// Writes `text` to the file, or to standard output.
fn give(function: &Function, text: &str, output: Option<PathBuf>, context: &Context) -> Result<()> {
    let mut object = json!({ "name": "circuit", "function": function.name, "bytes": text.len() });
    let Some(path) = output else {
        object["text"] = json!(text);
        return context.result(&object, text.trim_end());
    };
    let mut file = Output::create(&path)?;
    file.reserve(text.len() as u64)?;
    file.write_all(text.as_bytes()).map_err(|e| write_fault(&path, e))?;
    file.commit()?;
    object["output"] = json!(path);
    context.result(&object, &format!("{} written to {}", counted(text.len(), "byte"), name(&path)))
}

fn stats(function: &Function, source: Option<[u8; 32]>, context: &Context) -> Result<()> {
    let prepared = Prepared::from_function(function)?;
    let gates = function.circuit.stats();
    let shape = function.circuit.shape();
    let machine = Machine::measure();
    let (mut costs, mut lines) = (Vec::new(), Vec::new());
    for security in [Security::Malicious, Security::SemiHonest] {
        let (output_to, options) = (OutputTo::Both, Options::default());
        let job = Job { function: &prepared, role: Owner::Garbler, output_to, security, options };
        for link in [LinkModel::LOOPBACK, LinkModel::LAN, LinkModel::WAN] {
            let ways = job.estimate(1, 1, &link.into(), &machine);
            let Some(EvalCandidate { candidate, garbler_bytes, evaluator_bytes, .. }) = ways.first() else {
                continue;
            };
            let (bytes, time) = (garbler_bytes + evaluator_bytes, candidate.time.as_secs_f64());
            let security = tacit::security_name(security);
            lines.push(format!(
                "{security}, link {link}: {bytes}, about {time:.3} s",
                bytes = counted(bytes, "byte")
            ));
            costs.push(json!({
                "security": security,
                "protocol": candidate.protocol,
                "link": link.to_string(),
                "bytes": bytes,
                "estimated_ms": time * 1e3,
            }));
        }
    }
    let digest = hex(&function.circuit.digest());
    let object = json!({
        "name": "circuit",
        "function": function.name,
        "gates": gates.gates,
        "and": gates.and,
        "xor": gates.xor,
        "inv": gates.inv,
        "and_depth": gates.and_depth,
        "depth": gates.depth,
        "width": gates.width,
        "inputs": shape.inputs,
        "garbler_inputs": function.garbler.len(),
        "outputs": shape.outputs,
        "circuit_digest": digest,
        "source_digest": source.map(|digest| hex(&digest)),
        "costs": costs,
    });
    let widths = |widths: &[u32]| widths.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let (ours, theirs) = shape.inputs.split_at(function.garbler.len());
    let source = source.map(|digest| format!("\nprogram {}", hex(&digest))).unwrap_or_default();
    let text = format!(
        "{}: {} AND, {} XOR, {} INV; AND depth {}, depth {}, at most {} at one depth\n\
         bits: garbler {}; evaluator {}; outputs {}\ncircuit {digest}{source}\n{}",
        counted(gates.gates, "gate"),
        gates.and,
        gates.xor,
        gates.inv,
        gates.and_depth,
        gates.depth,
        counted(gates.width, "AND gate"),
        widths(ours),
        widths(theirs),
        widths(&shape.outputs),
        lines.join("\n")
    );
    context.result(&object, &text)
}
