//! Which limit of the machine or the link binds a result, and how far from it the result is.
//!
//! A lower bound, not a model: of each protocol only the operations that no implementation of it can do
//! without are counted, those of the busier side, and of all bounds the largest one counts alone.

use super::base;
use super::record::Record;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;
use tacit::catalogue::{Item, Kind, Runs, YAO};
use tacit::job::triples::Kind as Triple;
use tacit::limits::Limit;
use tacit::net::LinkModel;
use tacit::{Error, Result, Security, security_name};

/// What the busier side must compute for one item: of a protocol's run what its entry says, of a part of one
/// what is said here.
fn work(record: &Record) -> Vec<(Limit, f64)> {
    match record.name.as_str() {
        // Ten entries a row and their indices, shared by the rows in lockstep.
        "lpn" => {
            let shared = if record.kind.contains(" 4 lanes") { 4.0 } else { 1.0 };
            vec![(Limit::AesFixed, 2.5 / shared), (Limit::Gather(1 << 18), 10.0 / shared)]
        }
        "garble" | "evaluate" => (YAO.floor)(item(record)),
        // Two leaves a correlation, and of a transfer a hash of each message.
        "vole" => vec![(Limit::AesFixed, 2.0)],
        "ot" if record.kind.starts_with("rot 1 of ") => {
            vec![(Limit::AesFixed, 2.0 + record.kind["rot 1 of ".len()..].parse().unwrap_or(0.0))]
        }
        "triples" => triples(record),
        // A label written.
        "probe" => vec![(Limit::Copy(512 << 10), 16.0)],
        _ => base::find(&record.protocol).map_or_else(Vec::new, |entry| (entry.floor)(item(record))),
    }
}

/// OTs both ways, or the three hashes that a side makes of each of three triples at least.
fn triples(record: &Record) -> Vec<(Limit, f64)> {
    let (kind, field) = match record.kind.split_once(' ') {
        Some((kind, field)) => (kind, Some(field)),
        None => (&record.kind[..], None),
    };
    let ots = Triple::named(kind, field).map_or(0.0, |kind| 2.0 * kind.ots() as f64);
    match base::find(&record.protocol) {
        Some(entry) if matches!(entry.runs, Runs::Extension(_)) => {
            let each = (entry.floor)(Item { hashed: true, security: Security::SemiHonest });
            each.into_iter().map(|(limit, times)| (limit, times * ots)).collect()
        }
        _ => vec![(Limit::AesRekeyed, 9.0)],
    }
}

fn item(record: &Record) -> Item {
    let malicious = record.security == security_name(Security::Malicious);
    let security = if malicious { Security::Malicious } else { Security::SemiHonest };
    Item { hashed: record.kind != Kind::Cot.name(), security }
}

/// Fills in the limit that binds the result, where one is known.
pub(crate) fn bind(record: &mut Record, link: LinkModel) -> Result<()> {
    let count = record.count.max(1) as f64;
    let threads = f64::from(record.threads.max(1));
    let mut bounds: Vec<(String, f64)> =
        work(record).iter().map(|(limit, times)| (limit.name(), limit.quick() * times / threads)).collect();
    let bytes = record.bytes_sent.max(record.bytes_received) as f64 / count;
    if link.is_unshaped() {
        // Under TLS as well, all bytes pass through TCP.
        if bytes > 0.0 {
            bounds.push(("loopback-tcp".into(), bytes * loopback_ns_per_byte()?));
        }
    } else {
        bounds.push(("bandwidth of the link".into(), bytes * 8e3 / link.megabits()));
        // Where messages pass each other their delays overlap, and so many were not waited for.
        let waited = record.rounds as f64 * link.delay().as_secs_f64() * 1e9 / count;
        if waited <= record.ns_per_item {
            bounds.push(("delay of the link".into(), waited));
        }
    }
    let largest = bounds.into_iter().filter(|(_, ns)| *ns > 0.0).max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((name, ns)) = largest {
        record.limit = Some(name);
        record.limit_ns_per_item = Some(ns);
        record.times_limit = Some(record.ns_per_item / ns);
    }
    Ok(())
}

/// The best of a few short transfers over a plain socket of this machine.
fn loopback_ns_per_byte() -> Result<f64> {
    const PIECE: usize = 1 << 17;
    const PIECES: usize = 512;
    let fault = |e: std::io::Error| Error::Other(format!("the loopback address: {e}"));
    let listener = TcpListener::bind("127.0.0.1:0").map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut stream = TcpStream::connect(address)?;
            let piece = vec![0u8; PIECE];
            (0..3 * PIECES).try_for_each(|_| stream.write_all(&piece))
        });
        let (mut stream, _) = listener.accept().map_err(fault)?;
        let mut piece = vec![0u8; PIECE];
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            for _ in 0..PIECES {
                stream.read_exact(&mut piece).map_err(fault)?;
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (PIECE * PIECES) as f64);
        }
        writer
            .join()
            .map_err(|_| Error::Other("a thread ended unexpectedly; please report it".into()))?
            .map_err(fault)?;
        Ok(best)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tacit::catalogue::ENTRIES;

    #[test]
    fn every_benchmark_has_a_limit() {
        // Whatever a session may run, and what benchmarks alone have.
        let every = ENTRIES.iter().copied().chain(base::ENTRIES);
        let runs = every.flat_map(|entry| {
            let jobs: &[&str] = match entry.runs {
                Runs::BaseOt(_) => &["base-ot"],
                Runs::Extension(Some(_)) => &["ot"],
                Runs::Computation(_) => &["eval", "stream"],
                Runs::Intersection(_) => &["psi"],
                _ => &[],
            };
            jobs.iter().map(|job| (*job, entry.name))
        });
        let parts = ["garble", "evaluate", "probe", "lpn"].map(|part| (part, ""));
        let others = parts.into_iter().chain([("net", "tcp"), ("net", "tls")]);
        for (name, protocol) in runs.chain(others) {
            let alone = ["garble", "evaluate", "probe", "lpn"].contains(&name);
            let mut record = Record {
                name: name.into(),
                protocol: protocol.into(),
                count: 1000,
                bytes_sent: if alone { 0 } else { 1_000_000 },
                ns_per_item: 1e4,
                ..Record::default()
            };
            bind(&mut record, LinkModel::LOOPBACK).unwrap();
            assert!(record.times_limit.is_some_and(|t| t > 0.0 && t.is_finite()), "{name} {protocol}");
        }
    }

    #[test]
    fn floors_are_those_of_the_entries() {
        let floor = |name: &str, protocol: &str, kind: &str, security: &str| {
            let [name, protocol, kind, security] = [name, protocol, kind, security].map(str::to_owned);
            work(&Record { name, protocol, kind, security, ..Record::default() })
        };
        assert_eq!(floor("ot", "iknp", "cot", "semi-honest"), [(Limit::AesFixed, 2.0)]);
        assert_eq!(
            floor("ot", "kos", "rot", "malicious"),
            [(Limit::AesFixed, 3.0), (Limit::MultiplyAdd, 1.0)]
        );
        assert_eq!(floor("psi", "paxos", "", "malicious"), [(Limit::AesFixed, 24.0)]);
        assert_eq!(floor("psi", "paxos", "", "semi-honest"), [(Limit::AesFixed, 16.0)]);
        assert_eq!(floor("base-ot", "pvw08", "rot", "malicious"), [(Limit::PointMultiply, 2.0)]);
        assert_eq!(floor("eval", "wmk17", "", "malicious"), [(Limit::AesRekeyed, 88.0)]);
        assert!(floor("base-ot", "roted", "rot", "malicious").is_empty());
        assert_eq!(floor("vole", "silent-vole", "gf128", "malicious"), [(Limit::AesFixed, 2.0)]);
        assert_eq!(floor("ot", "silent-vole", "rot 1 of 16", "malicious"), [(Limit::AesFixed, 18.0)]);
        assert_eq!(floor("triples", "iknp", "words", "semi-honest"), [(Limit::AesFixed, 128.0 * 3.0)]);
        assert_eq!(floor("triples", "iknp", "field p61", "semi-honest"), [(Limit::AesFixed, 122.0 * 3.0)]);
        assert_eq!(floor("triples", "authenticated", "bits", "malicious"), [(Limit::AesRekeyed, 9.0)]);
    }

    #[test]
    fn the_largest_bound_counts() {
        let link = LinkModel::new(8.0, Duration::from_millis(10)).unwrap();
        let mut record =
            Record { count: 1000, bytes_sent: 1_000_000, rounds: 2, ns_per_item: 2e6, ..Record::default() };
        bind(&mut record, link).unwrap();
        // A million bytes at a byte a microsecond are a second; two waits are 20 ms.
        assert_eq!(record.limit.as_deref(), Some("bandwidth of the link"));
        assert_eq!(record.limit_ns_per_item, Some(1e6));
        assert_eq!(record.times_limit, Some(2.0));
        record.bytes_sent = 1000;
        bind(&mut record, link).unwrap();
        assert_eq!(record.limit.as_deref(), Some("delay of the link"));
        assert_eq!(record.limit_ns_per_item, Some(20_000.0));
    }
}
