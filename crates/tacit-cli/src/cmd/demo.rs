//! `tacit demo`: the main job on one machine, from keys to a checked result; then the same by a service.

mod service;

use crate::cli::Context;
use crate::cli::fault;
use crate::cli::output::{Output, name};
use crate::cli::progress::{Mode, style};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tacit::crypto::text::counted;
use tacit::data::csv::{Options, Source};
use tacit::data::generate::{Settings, Side, write_table};
use tacit::data::records::{Element, KeySet, KeySpec, Normalisation, plain_join};
use tacit::{Error, Result};

const AFTER: &str = "\
Examples:
  tacit demo
  tacit demo --rows 1000000 --dir /tmp/demo";

/// The columns that name a person in the generated files.
const KEY: &str = "email,birthdate";

/// Intersects two generated files in two processes, then by a service with a policy, and checks the results.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// People in each party's file
    #[arg(long, value_name = "N", default_value_t = 120_000, value_parser = clap::value_parser!(u32).range(10..=4_000_000))]
    rows: u32,
    /// The seed of the generated files
    #[arg(long, value_name = "SEED", default_value_t = 2026)]
    seed: u64,
    /// The directory for keys, files and the result
    #[arg(long, value_name = "DIR", default_value = "demo-data")]
    dir: PathBuf,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let dir = &args.dir;
    prepare(dir)?;
    let settings = Settings {
        people: [args.rows, args.rows],
        common: args.rows / 10 * 3,
        seed: args.seed,
        ..Settings::default()
    };
    for (party, side) in PARTIES.iter().zip([Side::Shop, Side::Insurer]) {
        let rows = generate(&dir.join(party.input), &settings, side)?;
        context.note(&format!(
            "{}: {rows} (seed {})",
            name(&dir.join(party.input)),
            args.seed,
            rows = counted(rows, "generated row")
        ));
        keygen(&dir.join(party.key))?;
    }

    let address = crate::cmd::free_address()?;
    let start = Instant::now();
    let bars = MultiProgress::with_draw_target(match context.progress {
        Mode::Bar => ProgressDrawTarget::stderr(),
        _ => ProgressDrawTarget::hidden(),
    });
    let mut running = Vec::new();
    for (way, party, peer) in
        [("--listen", &PARTIES[0], &PARTIES[1]), ("--connect", &PARTIES[1], &PARTIES[0])]
    {
        let words = [
            "psi",
            way,
            &address,
            "--identity",
            party.key,
            "--peer",
            peer.public,
            "--input",
            party.input,
            "--key",
            KEY,
            "--result",
            "both",
            "--security",
            "malicious",
            "--output",
            party.output,
        ];
        context.note(&format!("{}: tacit {}", party.name, words.join(" ")));
        running.push(Process::start(dir, party.name, &words, &bars)?);
    }
    let ended: Vec<Result<Value>> = running.iter_mut().map(Process::finish).collect();
    let wall = start.elapsed();
    let results = both(ended)?;

    let expected = check(dir, settings.common as usize)?;
    let service = service::run(context, dir, &results[1]["own_keys"], &bars)?;
    report(context, &results, expected, wall, &service)
}

/// What one of the two parties is called and owns.
#[derive(Clone, Copy)]
struct Party {
    name: &'static str,
    key: &'static str,
    public: &'static str,
    input: &'static str,
    output: &'static str,
}

const PARTIES: [Party; 2] = [
    Party {
        name: "Shop",
        key: "shop.key",
        public: "shop.pub",
        input: "shop.csv",
        output: "shop-matches.csv",
    },
    Party {
        name: "Insurer",
        key: "insurer.key",
        public: "insurer.pub",
        input: "insurer.csv",
        output: "insurer-matches.csv",
    },
];

/// Marks a folder whose files a demo made, so that the next one may make them anew.
const MARK: &str = ".tacit-demo";

/// Makes the folder, or clears away what an earlier demo left in it. Files that no demo made are not touched.
fn prepare(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|e| Error::file(dir, "cannot be made; choose another --dir", e))?;
    let names = PARTIES.map(|party| [party.key, party.public, party.input, party.output]);
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let files = names.as_flattened().iter().map(|file| dir.join(file));
    let mut stale: Vec<PathBuf> = files.filter(is_there).collect();
    let mark = dir.join(MARK);
    // All of these together are a demo's without a mark.
    let is_demo = mark.exists() || stale.len() == names.as_flattened().len();
    stale.extend(service::files(dir).into_iter().filter(is_there));
    if let (Some(file), false) = (stale.first(), is_demo) {
        return Err(Error::Input(format!(
            "{}: this file is not from a demo, so it is not replaced; choose another --dir",
            name(file)
        )));
    }
    std::fs::write(&mark, "`tacit demo` replaces the keys and tables in this folder.\n")
        .map_err(|e| Error::file(&mark, "cannot be written; choose another --dir", e))?;
    stale.iter().try_for_each(|file| {
        std::fs::remove_file(file)
            .map_err(|e| Error::file(file, "cannot be replaced; choose another --dir", e))
    })
}

fn generate(path: &Path, settings: &Settings, side: Side) -> Result<u64> {
    let file = Output::create(path)?;
    let mut buffered = BufWriter::new(file);
    let fault = |e| Error::file(path, "cannot be written; is the disk full?", e);
    let rows = write_table(settings, side, &mut buffered).map_err(fault)?;
    buffered.into_inner().map_err(|e| fault(e.into_error()))?.commit()?;
    Ok(rows)
}

/// A fresh key pair.
fn keygen(path: &Path) -> Result<()> {
    crate::cmd::keygen::make(path, "demo").map(|_| ())
}

/// Both results, or what every party that failed said.
fn both(ended: Vec<Result<Value>>) -> Result<Vec<Value>> {
    let errors: Vec<String> =
        ended.iter().filter_map(|end| end.as_ref().err().map(Error::to_string)).collect();
    if errors.is_empty() { ended.into_iter().collect() } else { Err(Error::Other(errors.join("; "))) }
}

fn this_command() -> Result<PathBuf> {
    std::env::current_exe().map_err(|e| Error::Other(format!("cannot find the command itself: {e}")))
}

/// One `tacit` under way.
struct Process {
    name: &'static str,
    child: Child,
    reader: Option<std::thread::JoinHandle<String>>,
}

impl Process {
    fn start(dir: &Path, name: &'static str, words: &[&str], bars: &MultiProgress) -> Result<Self> {
        let mut child = Command::new(this_command()?)
            .current_dir(dir)
            .args(["--json", "--progress-lines"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Error::Other(format!("cannot start another tacit: {e}")))?;
        let bar = bars.add(ProgressBar::no_length());
        bar.set_style(style("B"));
        bar.set_message(name);
        let reader = child.stderr.take().map(|err| std::thread::spawn(move || follow(err, &bar, name)));
        Ok(Process { name, child, reader })
    }

    /// What the party said at the end, or its error.
    fn finish(&mut self) -> Result<Value> {
        let (status, out, error) = self.end()?;
        if !status.success() {
            return Err(self.fault(&error));
        }
        serde_json::from_str(&out).map_err(|e| self.fault(&e))
    }

    /// How the party ended, its standard output, and its error if it said one.
    fn end(&mut self) -> Result<(ExitStatus, String, String)> {
        let mut out = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut out).map_err(|e| self.fault(&e))?;
        }
        let error = self.reader.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let status = self.child.wait().map_err(|e| self.fault(&e))?;
        Ok((status, out, error))
    }

    fn fault(&self, e: &dyn std::fmt::Display) -> Error {
        Error::Other(format!("{}: {e}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After a regular end there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Moves the bar by the child's progress lines; returns its error, if it said one.
fn follow(err: impl Read, bar: &ProgressBar, name: &'static str) -> String {
    let mut error = String::new();
    for line in BufReader::new(err).lines().map_while(std::result::Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["progress", label, done, total] => {
                let message = format!("{name} {}", label.replace('-', " "));
                if message != bar.message() {
                    bar.reset();
                    bar.unset_length();
                    bar.set_style(style(if label == "reading" { "B" } else { "" }));
                    bar.set_message(message);
                }
                bar.set_length(total.parse().unwrap_or(0));
                bar.set_position(done.parse().unwrap_or(0));
            }
            _ => {
                error = fault::said(&line);
            }
        }
    }
    bar.finish();
    error
}

/// The keys of a table of the demo.
fn read(path: &Path) -> Result<KeySet> {
    let columns = KEY.split(',').map(str::to_owned).collect();
    let spec = KeySpec::text(columns, Normalisation::default());
    let source = Source::open(path, spec, Options::default())?;
    Ok(source.read_keys(|_| ())?)
}

/// Joins both files in the clear and compares with what the two processes wrote; the number of matches.
fn check(dir: &Path, common: usize) -> Result<usize> {
    let inputs = [read(&dir.join(PARTIES[0].input))?, read(&dir.join(PARTIES[1].input))?];
    let joined = plain_join(inputs[0].elements(), inputs[1].elements());
    let expected: HashSet<&Element> =
        joined.iter().filter_map(|at| inputs[0].elements().get(*at as usize)).collect();
    if expected.len() != common {
        return Err(Error::Other(format!(
            "the plain join finds {}, {common} were generated",
            counted(expected.len(), "match")
        )));
    }
    for party in &PARTIES {
        same(party.output, &read(&dir.join(party.output))?, &expected)?;
    }
    Ok(expected.len())
}

/// Checks that two outputs hold the same keys.
fn check_same(dir: &Path, output: &str, other: &str) -> Result<()> {
    let known = read(&dir.join(other))?;
    same(output, &read(&dir.join(output))?, &known.elements().iter().collect())
}

fn same(output: &str, written: &KeySet, expected: &HashSet<&Element>) -> Result<()> {
    let found: HashSet<&Element> = written.elements().iter().collect();
    if found == *expected {
        return Ok(());
    }
    let what =
        format!("{output}: {} where the plain join has {}", counted(found.len(), "match"), expected.len());
    Err(Error::Other(what))
}

fn report(
    context: &Context,
    results: &[Value],
    matches: usize,
    wall: Duration,
    service: &service::Outcome,
) -> Result<()> {
    let mut text = format!(
        "{matches} on both sides, the same as a plain join of the two files\n",
        matches = counted(matches, "match")
    );
    for (party, result) in PARTIES.iter().zip(results) {
        text += &format!(
            "{:<8} {}, {}; {:.2} s, {} sent, {} received, {}\n",
            party.name,
            counted(&result["own_rows"], "row"),
            counted(&result["own_keys"], "key"),
            result["wall_ms"].as_f64().unwrap_or_default() / 1e3,
            counted(&result["bytes_sent"], "byte"),
            result["bytes_received"],
            counted(&result["rounds"], "round"),
        );
    }
    text += &format!(
        "TLS 1.3 with pinned keys, {} ({}), {:.2} s from start to end",
        results[0]["protocol"].as_str().unwrap_or_default(),
        results[0]["security"].as_str().unwrap_or_default(),
        wall.as_secs_f64()
    );
    text += &format!("\n\n{}", service.text);
    let object = json!({
        "name": "demo",
        "matches": matches,
        "checked": true,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "shop": results[0],
        "insurer": results[1],
        "service": service.object,
    });
    context.result(&object, &text)
}
