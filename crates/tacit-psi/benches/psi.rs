//! Whole intersections, set-up and checks included, between two processes over loopback TCP;
//! `--reveal count`, `sum` and `shares` are semi-honest whatever `--security` says: `cargo bench -p tacit-psi
//! --bench psi -- [--protocol paxos|vole] [--count N] [--security malicious|semi-honest] [--both] [--reveal
//! rows|payload|count|sum|shares] [--repeat R]`.
//!
//! Prints, for each repetition of the party that learns the result, wall time from connected channel to
//! result, time to the end of each phase, bytes, rounds, and both processes' highest memory use. The parties
//! share half of their elements.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;
use tacit_crypto::Prg;
use tacit_net::tcp::TcpLink;
use tacit_net::{Channel, Party, SessionId};
use tacit_ot::{Security, base};
use tacit_psi::paxos::{self, Learns, Options, Phase, Progress};
use tacit_psi::payload::{Duplicates, Side, Table};
use tacit_psi::{circuit, payload, vole_psi};

const CHILD: &str = "TACIT_PSI_BENCH_CHILD";

struct Job {
    vole: bool,
    count: u64,
    security: Security,
    both: bool,
    reveal: String,
    repeat: usize,
}

impl Job {
    fn from_arguments() -> Self {
        let (security, reveal) = (Security::Malicious, "rows".to_owned());
        let mut job = Job { vole: true, count: 0, security, both: false, reveal, repeat: 5 };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a value");
            match argument.as_str() {
                "--count" => job.count = value().parse().expect("a number"),
                "--repeat" => job.repeat = value().parse().expect("a number"),
                "--security" => {
                    job.security = match value().as_str() {
                        "malicious" => Security::Malicious,
                        "semi-honest" => Security::SemiHonest,
                        other => panic!("no security is called {other}"),
                    };
                }
                "--protocol" => {
                    job.vole = match value().as_str() {
                        vole_psi::NAME => true,
                        paxos::NAME => false,
                        other => panic!("no protocol is called {other}"),
                    };
                }
                "--both" => job.both = true,
                "--reveal" => job.reveal = value(),
                _ => {}
            }
        }
        match job.reveal.as_str() {
            "rows" | "payload" => {}
            "count" | "sum" => job.security = Security::SemiHonest,
            "shares" => (job.security, job.both) = (Security::SemiHonest, true),
            other => panic!("nothing is called {other}"),
        }
        job
    }
}

fn main() {
    let job = Job::from_arguments();
    match std::env::var(CHILD) {
        Ok(address) => party(&job, TcpStream::connect(address).unwrap(), Party::Second),
        Err(_) if job.count > 0 => parent(&job),
        Err(_) => {
            for (count, repeat) in [(2048, 9), (1 << 16, 3), (1 << 20, 3)] {
                parent(&Job { count, repeat, ..Job::from_arguments() });
            }
        }
    }
}

fn parent(job: &Job) {
    let security = if job.security == Security::Malicious { "malicious" } else { "semi-honest" };
    let protocol = if job.vole { vole_psi::NAME } else { paxos::NAME };
    println!(
        "{protocol}, {} elements a side, {}, {security}{}",
        job.count,
        job.reveal,
        if job.both { ", both learn" } else { "" }
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(CHILD, listener.local_addr().unwrap().to_string())
        .args(std::env::args().skip(1))
        .args(["--count", &job.count.to_string(), "--repeat", &job.repeat.to_string()])
        .spawn()
        .unwrap();
    party(job, listener.accept().unwrap().0, Party::First);
    assert!(child.wait().unwrap().success());
}

fn party(job: &Job, stream: TcpStream, party: Party) {
    let receives = party == Party::First;
    let start = if receives { 0 } else { job.count / 2 };
    let elements: Vec<[u8; 32]> =
        (start..start + job.count).map(|i| *blake3::hash(&i.to_le_bytes()).as_bytes()).collect();
    let link = Box::new(TcpLink::new(stream).unwrap());
    let mut channel = Channel::new(link, party, SessionId([9; 32]));
    let base = base::default();
    let learns = match (job.both, receives) {
        (true, _) => Learns::Both,
        (false, true) => Learns::Me,
        (false, false) => Learns::Peer,
    };
    let options = Options {
        learns,
        security: job.security,
        min_peer_elements: 0,
        max_peer_elements: 1 << 24,
        base: &*base,
    };
    let mut walls = Vec::new();
    for _ in 0..job.repeat {
        // Both wait until the other stands ready.
        channel.send_u64(0).unwrap();
        channel.recv_u64().unwrap();
        let before = channel.stats();
        let (begin, cpu) = (Instant::now(), cpu_ms());
        let mut ends: Vec<(Phase, f64)> = Vec::new();
        let mut progress = |phase, _, _| {
            let now = begin.elapsed().as_secs_f64() * 1e3;
            match ends.last_mut() {
                Some(last) if last.0 == phase => last.1 = now,
                _ => ends.push((phase, now)),
            }
        };
        let common = reveal(job, &mut channel, &elements, &options, &mut progress);
        let wall = begin.elapsed().as_secs_f64() * 1e3;
        if let Some(common) = common {
            assert_eq!(common, job.count - job.count / 2);
        }
        let stats = channel.stats().since(&before);
        let phases: Vec<String> = ends.iter().map(|(phase, at)| format!("{phase:?} {at:.1}")).collect();
        println!(
            "{} wall {wall:.1} ms, cpu {} ms, sent {}, received {}, rounds {}; until {}",
            if receives { "receiver" } else { "sender  " },
            cpu_ms() - cpu,
            stats.bytes_sent,
            stats.bytes_received,
            stats.rounds,
            phases.join(", ")
        );
        walls.push(wall);
    }
    walls.sort_by(f64::total_cmp);
    println!(
        "{} median {:.1} ms ({:.1} to {:.1}), peak memory {} MiB",
        if receives { "receiver" } else { "sender  " },
        walls[walls.len() / 2],
        walls[0],
        walls[walls.len() - 1],
        peak_kib() / 1024
    );
}

/// Runs once; returns the number of common elements, or a sum that equals it, where this side learns it.
fn reveal(
    job: &Job,
    channel: &mut Channel,
    elements: &[[u8; 32]],
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Option<u64> {
    let prg = &mut Prg::from_os();
    match job.reveal.as_str() {
        "payload" => {
            let mut table = Table::new(["amount"]).unwrap();
            let side = if options.learns == Learns::Me {
                Side::Asks(&["amount"])
            } else {
                (0..elements.len() as u32).for_each(|i| table.push(i, [Some(&b"12345678"[..])]).unwrap());
                Side::Gives(&table, Duplicates::Refuse)
            };
            let gained = payload::run(channel, prg, elements, side, options, progress).unwrap();
            gained.received.map(|received| received.matches.len() as u64)
        }
        "count" | "sum" => {
            let mut column = circuit::Column::new(elements.len());
            (0..elements.len() as u32).for_each(|i| column.add(i, Some(1)).unwrap());
            let reveal = match (job.reveal.as_str(), channel.party()) {
                ("count", _) => circuit::Reveal::Count,
                (_, Party::First) => circuit::Reveal::Sum(circuit::Of::Mine(&column)),
                _ => circuit::Reveal::Sum(circuit::Of::Peers),
            };
            let outcome =
                circuit::aggregate(channel, prg, elements, reveal, 10.into(), options, progress).unwrap();
            outcome.result.map(|result| match result {
                circuit::Aggregate::Count(count) => count,
                circuit::Aggregate::Sum(sum) => sum as u64,
                other => panic!("{other:?}"),
            })
        }
        "shares" => {
            circuit::shares(channel, prg, elements, None, options, progress).unwrap();
            None
        }
        _ => {
            let run = if job.vole { vole_psi::run } else { paxos::run };
            let outcome = run(channel, prg, elements, options, progress).unwrap();
            outcome.matches.map(|matches| matches.len() as u64)
        }
    }
}

/// CPU time of this process, from /proc, in steps of 10 ms; 0 where there is none.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<i64> = after_name.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // The state, which is no number, comes first; user and system time are fields 14 and 15.
    fields.get(10).zip(fields.get(11)).map_or(0, |(user, system)| (user + system) as u64 * 10)
}

/// The most memory that this process held, from /proc; 0 where there is none.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}
