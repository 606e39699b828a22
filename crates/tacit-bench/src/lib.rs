//! `tacit bench`: figures that anybody can take again.
//!
//! Two processes on this machine, this one and a copy of it that it starts, run a job over loopback TCP,
//! plain or under TLS, or over an emulated link. A warm-up is thrown away; the median of the repeats is the
//! figure.
#![forbid(unsafe_code)]
// They panic where nobody reads any more: `tacit_console::print` and `Context::result` do not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod base;
mod base_ot;
mod bound;
mod bounds;
mod compare;
mod correlations;
mod eval;
mod garble;
mod limits;
mod lpn;
mod measure;
mod net;
mod ot;
mod paper;
mod planner;
mod probe;
mod psi;
mod record;
mod report;
pub mod silent_paper;
mod stream;

use clap::Subcommand;
use measure::{Side, median};
use record::Record;
use serde_json::json;
use std::io::Read;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;
use tacit::crypto::simd;
use tacit::crypto::text::counted;
use tacit::net::{Agreement, Channel, Identity, Limits, LinkModel};
use tacit::{Error, Result, Security, Session, security_name};

const AFTER: &str = "\
Examples:
  tacit bench ot --protocol kos --kind cot --count 8388608 --json
  tacit bench ot --protocol iknp --kind rot --link wan --repeat 3
  tacit bench ot --of 16 --count 1000000
  tacit bench vole --field gf256 --count 1000000
  tacit bench triples --kind words --security semi-honest --count 100000
  tacit bench base-ot --protocol mrr21 --count 128
  tacit bench psi --count 1048576 --security malicious
  tacit bench eval aes128 --protocol wmk17 --security malicious
  tacit bench garble aes128 --copies 40
  tacit bench stream --security semi-honest --count 100000000 --repeat 1
  tacit bench net --tls
  tacit bench limits --json
  tacit bench bounds --json
  tacit bench planner --job wan:100000
  tacit bench paper kos15-table2 --quick
  tacit bench compare old.jsonl new.jsonl --threshold 10
  tacit bench report results.jsonl --output report.html --svg plots

A result has name, protocol, security, kind, count, threads, link, repeat, setup_ms, wall_ms (median),
wall_ms_min, wall_ms_max, offline_ms, online_ms, ns_per_item, cpu_ms_local, cpu_ms_peer, bytes_sent,
bytes_received, messages_sent, messages_received, rounds, peak_rss_bytes (the larger of the two processes),
kernels, commit, machine, and where it is known limit, limit_ns_per_item and times_limit: the rate of this
machine that binds the result, and how far from it the result is. Of ot, vole and triples also security_bits;
of vole, ot --of and triples cores and, where a check is made, statistical_bits; setup_bytes where a setup
sends any.";

/// What a benchmark has of the command that it is a part of.
pub struct Context {
    /// How it talks to the user.
    pub console: tacit_console::Context,
    /// The commit that the command was built from.
    pub commit: &'static str,
    /// Runs the command line of this process with more words at its end.
    pub again: fn(&[String]) -> Result<()>,
}

impl Deref for Context {
    type Target = tacit_console::Context;

    fn deref(&self) -> &tacit_console::Context {
        &self.console
    }
}

/// Measures a protocol between two processes on this machine.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// OT extension: correlated, random or chosen OTs
    Ot(ot::Args),
    /// Correlations w = v + u·Δ over a field
    Vole(correlations::VoleArgs),
    /// Beaver triples of bits, words or a field
    Triples(correlations::TriplesArgs),
    /// Base OT: one batch from nothing
    BaseOt(base_ot::Args),
    /// A function by garbled circuits
    Eval(eval::Args),
    /// Half-gates alone: independent gates, one circuit, or copies of it
    Garble(garble::Args),
    /// A program too long to hold, garbled while it is made
    Stream(stream::Args),
    /// The labels of an input from those of its ρ-probe encoding
    Probe(probe::Args),
    /// The LPN encoding of Ferret alone
    Lpn(lpn::Args),
    /// Private set intersection of two generated sets
    Psi(psi::Args),
    /// The channel itself: throughput and round trip
    Net(net::Args),
    /// What this machine can do at best: AES, GF(2^128), gathers, copies, loopback TCP and TLS
    Limits(limits::Args),
    /// The constants of the code and the bounds that it computes from them
    Bounds(bounds::Args),
    /// What the planner's picks cost over the best candidates: every one is measured
    Planner(planner::Args),
    /// Compares two files of results; fails when a figure became slower
    Compare(compare::Args),
    /// A table of a paper measured again, our figure beside its own
    Paper(paper::Args),
    /// One page with plots from files of results
    Report(report::Args),
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    match args.what {
        What::Ot(args) => ot::run(args, context),
        What::Vole(args) => correlations::vole(args, context),
        What::Triples(args) => correlations::triples(args, context),
        What::BaseOt(args) => base_ot::run(args, context),
        What::Eval(args) => eval::run(args, context),
        What::Garble(args) => garble::run(args, context),
        What::Stream(args) => stream::run(args, context),
        What::Probe(args) => probe::run(args, context),
        What::Lpn(args) => lpn::run(args, context),
        What::Psi(args) => psi::run(args, context),
        What::Net(args) => net::run(args, context),
        What::Limits(args) => limits::run(args, context),
        What::Bounds(args) => bounds::run(args, context),
        What::Planner(args) => planner::run(args, context),
        What::Compare(args) => compare::run(args, context),
        What::Paper(args) => paper::run(args, context),
        What::Report(args) => report::run(args, context),
    }
}

/// The options of every benchmark.
#[derive(clap::Args, Clone)]
pub struct Common {
    /// Computing threads of each party
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// The link between the parties: loopback, lan, wan or MBPS/ONE-WAY-MS such as 50/50
    #[arg(long, value_name = "NAME", default_value = "loopback")]
    link: LinkModel,
    /// Measured runs, after one that is thrown away
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Runs under TLS 1.3 instead of plain TCP
    #[arg(long)]
    tls: bool,
    /// Runs both parties as threads of one process, over the same sockets; CPU time and memory are then of
    /// both together
    #[arg(long)]
    in_process: bool,
    #[arg(long, hide = true, value_name = "ADDR", requires = "peer_keys")]
    peer_of: Option<String>,
    #[arg(long, hide = true, value_name = "DIR")]
    peer_keys: Option<PathBuf>,
    /// Words for the other party's command line: what this one decided.
    #[arg(skip)]
    tell: Vec<String>,
    /// The protocol's parameters in a word.
    #[arg(skip)]
    variant: String,
    /// Fields of the result that follow from the parameters.
    #[arg(skip)]
    beside: Vec<(&'static str, f64)>,
    /// Whether each party's threads are its own affair, and share one connection.
    #[arg(skip)]
    one_connection: bool,
}

/// What is measured, for the report.
struct Subject {
    name: &'static str,
    protocol: String,
    /// What it protects against; `None` if against nobody.
    security: Option<Security>,
    kind: String,
    count: u64,
    /// Fields of this benchmark alone, from the median in milliseconds and what this side measured.
    more: fn(f64, &Side) -> Vec<(&'static str, f64)>,
}

impl Subject {
    /// What the two processes agree on: the strictest for what protects nobody.
    fn session_security(&self) -> Security {
        self.security.unwrap_or(Security::Malicious)
    }
}

impl Common {
    /// The link between the parties.
    fn link(&self) -> LinkModel {
        self.link
    }

    /// Whether this process is the copy that the other one started.
    fn is_peer(&self) -> bool {
        self.peer_of.is_some()
    }

    /// Joins the two processes and lets each of them `measure`; the first one reports.
    fn run(
        &self,
        context: &Context,
        subject: &Subject,
        agreement: Agreement,
        measure: impl FnOnce(&mut [Channel]) -> Result<Side>,
    ) -> Result<()> {
        let agreement = agreement
            .with("benchmark", subject.name)
            .with("protocol", &subject.protocol)
            .with("kind", &subject.kind)
            .with("count", subject.count)
            .with("repeat", self.repeat);
        if let (Some(address), Some(keys)) = (&self.peer_of, &self.peer_keys) {
            let session = self.session(Session::connect(address), keys, PEER, OWN)?;
            let side = measure(session.security(subject.session_security()).open(agreement)?.channels())?;
            if self.in_process {
                if let Ok(mut place) = IN_PROCESS.lock() {
                    *place = Some(side);
                }
                return Ok(());
            }
            let line = serde_json::to_string(&side).map_err(|e| Error::Other(e.to_string()))?;
            return tacit_console::print(&line);
        }
        let keys = tempfile::tempdir().map_err(|e| Error::Other(format!("no temporary folder: {e}")))?;
        if self.tls {
            for name in [OWN, PEER] {
                Identity::generate()?.save(&keys.path().join(name), "bench")?;
            }
        }
        let address = tacit_console::machine::free_address()?;
        let session = self.session(Session::listen(&address), keys.path(), OWN, PEER)?;
        let mut peer = Peer::start(&address, keys.path(), self, context.again)?;
        let measured = session
            .security(subject.session_security())
            .open(agreement)
            .and_then(|mut s| measure(s.channels()));
        let theirs = peer.finish();
        let (ours, theirs) = match (measured, theirs) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            // The copy's own error says more than what its end does to us.
            (Err(error), Ok(_)) | (_, Err(error)) => return Err(error),
        };
        self.report(context, subject, &ours, &theirs)
    }

    fn session(&self, session: Session, keys: &Path, own: &str, peer: &str) -> Result<Session> {
        // A copy that fails before it connects is not waited for longer than this.
        let limits = Limits { accept: Some(Duration::from_secs(30)), ..Limits::default() };
        let connections = if self.one_connection { 1 } else { self.threads };
        let session = session.threads(connections.into()).link(self.link).limits(limits);
        if self.tls {
            session.keys(&keys.join(own), &keys.join(peer).with_extension("pub"))
        } else {
            session.plaintext()
        }
    }

    fn report(&self, context: &Context, subject: &Subject, ours: &Side, theirs: &Side) -> Result<()> {
        // Both started together; a run is over when both are.
        let walls: Vec<f64> = ours.wall_ms.iter().zip(&theirs.wall_ms).map(|(a, b)| a.max(*b)).collect();
        let wall = median(&walls);
        let setup_ms = ours.setup_ms.max(theirs.setup_ms);
        let mut record = Record {
            name: subject.name.into(),
            protocol: subject.protocol.clone(),
            security: subject.security.map_or("none", security_name).into(),
            kind: subject.kind.clone(),
            variant: self.variant.clone(),
            count: subject.count,
            threads: self.threads,
            link: self.link.to_string(),
            tls: self.tls,
            parties: if self.in_process { "threads" } else { "processes" }.into(),
            repeat: self.repeat.into(),
            fresh: ours.fresh,
            setup_ms,
            setup_bytes: ours.setup_bytes,
            wall_ms: wall,
            wall_ms_min: walls.iter().copied().fold(f64::INFINITY, f64::min),
            wall_ms_max: walls.iter().copied().fold(0.0, f64::max),
            ns_per_item: wall * 1e6 / subject.count.max(1) as f64,
            cpu_ms_local: median(&ours.cpu_ms),
            cpu_ms_peer: median(&theirs.cpu_ms),
            bytes_sent: ours.bytes_sent,
            bytes_received: ours.bytes_received,
            messages_sent: ours.messages_sent,
            messages_received: ours.messages_received,
            rounds: ours.rounds,
            peak_rss_bytes: ours.peak_rss_bytes.max(theirs.peak_rss_bytes),
            peak_rss_bytes_local: ours.peak_rss_bytes,
            peak_rss_bytes_peer: theirs.peak_rss_bytes,
            kernels: simd::Backend::active().name().into(),
            commit: context.commit.into(),
            machine: record::machine(),
            ..Record::default()
        };
        let offline: Vec<f64> =
            ours.offline_ms.iter().zip(&theirs.offline_ms).map(|(a, b)| a.max(*b)).collect();
        // Random correlations need nobody's input; everything else begins with one unless it says otherwise.
        let random = ["cot", "rot"].iter().any(|kind| record.kind.starts_with(kind))
            || ["vole", "triples"].contains(&subject.name);
        record.offline_ms = match random {
            true => wall,
            false => median(&offline).min(wall),
        };
        record.online_ms = wall - record.offline_ms;
        for (name, value) in self.beside.iter().copied().chain((subject.more)(wall, ours)) {
            record.more.insert(name.into(), json!(value));
        }
        bound::bind(&mut record, self.link)?;
        show(context, &record)
    }
}

/// Prints a result.
fn show(context: &Context, r: &Record) -> Result<()> {
    let mut text = format!(
        "{} {} {} {}: {} in {:.2} ms (median of {}, {:.2} to {:.2}), {:.3} ns each, setup {:.2} ms, \
         CPU {:.1} + {:.1} ms, {} and {} sent, {} and {} received, {}, {} MiB at most",
        r.name,
        r.protocol,
        r.kind,
        r.security,
        r.count,
        r.wall_ms,
        r.repeat,
        r.wall_ms_min,
        r.wall_ms_max,
        r.ns_per_item,
        r.setup_ms,
        r.cpu_ms_local,
        r.cpu_ms_peer,
        counted(r.bytes_sent, "byte"),
        counted(r.messages_sent, "message"),
        r.bytes_received,
        r.messages_received,
        counted(r.rounds, "round"),
        r.peak_rss_bytes >> 20,
    );
    if let (Some(limit), Some(times)) = (&r.limit, r.times_limit) {
        text += &format!(", {times:.2} times what {limit} allows");
    }
    for (name, value) in &r.more {
        if let Some(value) = value.as_f64() {
            text += &format!(", {name} {value:.3}");
        }
    }
    let object = serde_json::to_value(r).map_err(|e| Error::Other(e.to_string()))?;
    context.result(&object, &text)
}

/// Runs `tacit bench` with these words as a process of its own, so that nothing of this one is measured, and
/// reads its result.
fn measured(words: &[String]) -> Result<Record> {
    let fault = |e: String| Error::Other(format!("cannot run `tacit bench {}`: {e}", words.join(" ")));
    let program = std::env::current_exe().map_err(|e| fault(e.to_string()))?;
    // `NAME=VALUE` in front is for the environment.
    let set = words.iter().take_while(|word| word.contains('=')).count();
    let out = Command::new(program)
        .envs(words[..set].iter().filter_map(|word| word.split_once('=')))
        .args(["--json", "bench"])
        .args(&words[set..])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| fault(e.to_string()))?;
    if !out.status.success() {
        return Err(fault(tacit_console::fault::said(&String::from_utf8_lossy(&out.stderr))));
    }
    serde_json::from_slice(&out.stdout).map_err(|e| fault(e.to_string()))
}

/// Key files in the folder that the two processes share.
const OWN: &str = "own.key";
const PEER: &str = "peer.key";

/// What the other party measured where it is a thread of this process.
static IN_PROCESS: Mutex<Option<Side>> = Mutex::new(None);

/// The other party: a copy of this process, or a thread that runs the same command line.
enum Peer {
    Process(Child),
    Thread(Option<JoinHandle<Result<()>>>),
}

impl Peer {
    fn start(
        address: &str,
        keys: &Path,
        common: &Common,
        again: fn(&[String]) -> Result<()>,
    ) -> Result<Self> {
        let fault = |e: std::io::Error| Error::Other(format!("cannot start the other party: {e}"));
        let keys = keys.to_string_lossy().into_owned();
        let mut more = ["--quiet", "--peer-of", address, "--peer-keys", &keys].map(str::to_owned).to_vec();
        more.extend(common.tell.iter().cloned());
        if common.in_process {
            let thread = std::thread::Builder::new().name("peer".into()).spawn(move || again(&more));
            return Ok(Peer::Thread(Some(thread.map_err(fault)?)));
        }
        let child = Command::new(std::env::current_exe().map_err(fault)?)
            .args(std::env::args_os().skip(1))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(fault)?;
        Ok(Peer::Process(child))
    }

    fn finish(&mut self) -> Result<Side> {
        match self {
            Peer::Process(child) => Self::finish_process(child),
            Peer::Thread(thread) => {
                let bug = || {
                    Error::Other("the thread of the other party ended unexpectedly; please report it".into())
                };
                thread.take().ok_or_else(bug)?.join().map_err(|_| bug())??;
                IN_PROCESS.lock().ok().and_then(|mut place| place.take()).ok_or_else(bug)
            }
        }
    }

    fn finish_process(child: &mut Child) -> Result<Side> {
        let fault = |e: String| Error::Peer(format!("the other party of the benchmark: {e}"));
        let (mut out, mut err) = (String::new(), String::new());
        if let (Some(stdout), Some(stderr)) = (&mut child.stdout, &mut child.stderr) {
            stdout.read_to_string(&mut out).map_err(|e| fault(e.to_string()))?;
            stderr.read_to_string(&mut err).map_err(|e| fault(e.to_string()))?;
        }
        let status = child.wait().map_err(|e| fault(e.to_string()))?;
        if !status.success() {
            return Err(fault(tacit_console::fault::said(&err)));
        }
        serde_json::from_str(&out).map_err(|e| fault(e.to_string()))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Peer::Process(child) = self {
            // After a regular end there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
