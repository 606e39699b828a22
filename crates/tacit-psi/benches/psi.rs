//! Whole intersections, set-up and checks included, between two processes over loopback TCP:
//! `cargo bench -p tacit-psi --bench psi -- [--protocol paxos|vole] [--count N] [--security malicious|semi-honest] [--both] [--repeat R]`.
//!
//! Prints, for each repetition of the party that learns the result, wall time from connected channel to result, time to the end of each
//! phase, bytes, rounds, and both processes' highest memory use. The parties share half of their elements.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;
use tacit_crypto::Prg;
use tacit_net::tcp::TcpLink;
use tacit_net::{Channel, Party, SessionId};
use tacit_ot::{Security, base};
use tacit_psi::paxos::{self, Learns, Options, Phase};
use tacit_psi::vole_psi;

const CHILD: &str = "TACIT_PSI_BENCH_CHILD";

struct Job {
    vole: bool,
    count: u64,
    security: Security,
    both: bool,
    repeat: usize,
}

impl Job {
    fn from_arguments() -> Self {
        let mut job = Job { vole: true, count: 0, security: Security::Malicious, both: false, repeat: 5 };
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
                _ => {}
            }
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
        "{protocol}, {} elements a side, {security}{}",
        job.count,
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
    let options = Options { learns, security: job.security, max_peer_elements: 1 << 24, base: &*base };
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
        let run = if job.vole { vole_psi::run } else { paxos::run };
        let outcome = run(&mut channel, &mut Prg::from_os(), &elements, &options, &mut progress).unwrap();
        let wall = begin.elapsed().as_secs_f64() * 1e3;
        if let Some(matches) = outcome.matches {
            assert_eq!(matches.len() as u64, job.count - job.count / 2);
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
