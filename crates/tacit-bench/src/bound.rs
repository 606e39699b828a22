//! Which limit of the machine or the link binds a result, and how far from it the result is.
//!
//! A lower bound, not a model: of each protocol only the operations that no implementation of it can do
//! without are counted, those of the busier side, and of all bounds the largest one counts alone.

use super::record::Record;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;
use tacit::limits::Limit;
use tacit::net::LinkModel;
use tacit::{Error, Result};

/// What the busier side must compute for one item.
fn work(record: &Record) -> Vec<(Limit, f64)> {
    let hashed = if record.kind == "cot" { 0.0 } else { 1.0 };
    match (record.name.as_str(), record.protocol.as_str()) {
        // 128 columns of one bit are a block; the receiver expands both seeds of each and hashes once, the
        // sender expands one and hashes twice.
        ("ot", "iknp") => vec![(Limit::AesFixed, 2.0 + hashed)],
        ("ot", "kos") => vec![(Limit::AesFixed, 2.0 + hashed), (Limit::MultiplyAdd, 1.0)],
        // A leaf of the tree and the indices of the ten entries, which four rows share.
        ("ot", "ferret") => {
            vec![(Limit::AesFixed, 1.0 + 2.5 / 4.0 + 2.0 * hashed), (Limit::Gather(1 << 20), 2.5)]
        }
        // A leaf of the tree; indices of ten entries, and the entries, of a table of nine megabytes.
        ("ot", "ferret-uni") => {
            vec![(Limit::AesFixed, 1.0 + 2.5 + 2.0 * hashed), (Limit::Gather(8 << 20), 10.0)]
        }
        // Two leaves.
        ("ot", "silent") => vec![(Limit::AesFixed, 2.0 + 2.0 * hashed)],
        // Ten entries a row and their indices, shared by the rows in lockstep.
        ("lpn", _) => {
            let shared = if record.kind.contains(" 4 lanes") { 4.0 } else { 1.0 };
            vec![(Limit::AesFixed, 2.5 / shared), (Limit::Gather(1 << 18), 10.0 / shared)]
        }
        // Two exponentiations of points that are not known ahead.
        ("base-ot", "co15" | "csw20" | "mr19" | "mrr21" | "pvw08") => vec![(Limit::PointMultiply, 2.0)],
        // Four hashes an AND gate at the garbler, and two at the evaluator, under two keys.
        ("eval" | "stream", "yao") | ("garble" | "evaluate", _) => vec![(Limit::AesRekeyed, 2.0)],
        // The same in every copy, of which there are 44 at least.
        ("eval" | "stream", "wmk17") => vec![(Limit::AesRekeyed, 2.0 * 44.0)],
        // A label written.
        ("probe", _) => vec![(Limit::Copy(512 << 10), 16.0)],
        // Both seeds of each column of the store's rows.
        ("psi", "paxos") => {
            let columns = if record.security == "malicious" { 768.0 } else { 512.0 };
            vec![(Limit::AesFixed, 2.0 * 2.0 * columns / 128.0)]
        }
        // Of 1.29 slots, the code over two positions each: two permutations of rows that lie far apart.
        ("psi", "vole") => vec![(Limit::Gather(64 << 20), 2.0 * 2.0 * 1.29)],
        // Blinded, and the blind taken off.
        ("psi", "oprf") => vec![(Limit::PointMultiply, 2.0)],
        _ => Vec::new(),
    }
}

/// Fills in the limit that binds the result, where one is known.
pub fn bind(record: &mut Record, link: LinkModel) -> Result<()> {
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
        let waited = record.rounds as f64 * link.delay().as_secs_f64() * 1e9;
        bounds.push(("delay of the link".into(), waited / count));
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

    #[test]
    fn every_benchmark_has_a_limit() {
        let protocols =
            tacit::ot::names().into_iter().filter(|name| *name != "auto").map(|name| ("ot", name));
        let base = tacit_ot::base::NAMES.into_iter().chain(crate::base::NAMES).map(|name| ("base-ot", name));
        let others = [
            ("eval", "yao"),
            ("eval", "wmk17"),
            ("stream", "yao"),
            ("stream", "wmk17"),
            ("garble", "half-gates"),
            ("evaluate", "half-gates"),
            ("probe", "wmk17"),
            ("lpn", "ferret"),
            ("psi", "paxos"),
            ("psi", "vole"),
            ("psi", "oprf"),
            ("net", "tcp"),
            ("net", "tls"),
        ];
        for (name, protocol) in protocols.chain(base).chain(others) {
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
