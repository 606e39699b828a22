//! `tacit bench limits`: what this machine can do at best, so that every other figure has something to stand
//! beside.

use super::measure::{median, peak_rss};
use super::record::{self, Record};
use super::{measured, show};
use crate::Context;
use serde_json::json;
use std::time::Duration;
use tacit::Result;
use tacit::crypto::simd;
use tacit::limits::Limit;

/// The rates that bound every protocol on this machine.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measured samples of each rate, after a warm-up that is thrown away
    #[arg(long, value_name = "R", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Milliseconds that a sample lasts at least
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    sample: u16,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    record::check_memory("the largest copy", 1 << 30)?;
    for limit in Limit::all() {
        show_limit(context, &kernel(context, limit, &args))?;
    }
    for tls in [false, true] {
        let record = link(tls, &args)?;
        if context.json {
            show(context, &record)?;
        } else {
            let field = |name: &str| record.more.get(name).and_then(|v| v.as_f64()).unwrap_or_default();
            let text = format!(
                "{:<20} {:>10.4} ns a byte, {:.2} GB/s, round trip {:.1} µs",
                record.protocol,
                record.ns_per_item,
                field("gigabytes_per_second"),
                field("round_trip_us")
            );
            context.result(&json!(null), &text)?;
        }
    }
    Ok(())
}

fn kernel(context: &Context, limit: Limit, args: &Args) -> Record {
    let (times, count) = limit.measure(args.repeat.into(), Duration::from_millis(args.sample.into()));
    let wall = |ns: f64| ns * count as f64 / 1e6;
    let ns = median(&times);
    Record {
        name: "limits".into(),
        protocol: limit.name(),
        security: "none".into(),
        kind: limit.unit().into(),
        // The samples' size follows the machine's speed and names nothing.
        count: 1,
        threads: 1,
        link: "none".into(),
        parties: "threads".into(),
        repeat: args.repeat.into(),
        wall_ms: wall(ns),
        wall_ms_min: wall(times.iter().copied().fold(f64::INFINITY, f64::min)),
        wall_ms_max: wall(times.iter().copied().fold(0.0, f64::max)),
        online_ms: wall(ns),
        ns_per_item: ns,
        cpu_ms_local: wall(ns),
        peak_rss_bytes: peak_rss(),
        kernels: simd::Backend::active().name().into(),
        commit: context.commit.into(),
        machine: record::machine(),
        more: [("items_per_ns".to_owned(), json!(1.0 / ns)), ("sample_items".to_owned(), json!(count))]
            .into(),
        ..Record::default()
    }
}

fn show_limit(context: &Context, record: &Record) -> Result<()> {
    if context.json {
        return show(context, record);
    }
    let spread = (record.wall_ms_max - record.wall_ms_min) / (2.0 * record.wall_ms) * 100.0;
    let text = format!(
        "{:<20} {:>10.4} ns a {} (±{spread:.0} %), {:.3} a ns",
        record.protocol,
        record.ns_per_item,
        record.kind,
        1.0 / record.ns_per_item
    );
    context.result(&json!(null), &text)
}

/// Loopback bandwidth and round trip, between two processes.
fn link(tls: bool, args: &Args) -> Result<Record> {
    let mut words: Vec<String> =
        ["net", "--count", "268435456", "--repeat"].into_iter().map(str::to_owned).collect();
    words.push(args.repeat.to_string());
    words.extend(tls.then(|| "--tls".to_owned()));
    let mut record = measured(&words)?;
    record.name = "limits".into();
    record.protocol = if tls { "loopback-tls" } else { "loopback-tcp" }.into();
    Ok(record)
}
