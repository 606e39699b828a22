//! `tacit bench compare OLD NEW`: what became slower, beyond the noise of the two files.

use super::measure::median;
use super::record::{self, Record};
use crate::Context;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tacit::{Error, Result};

/// Compares two files of results and fails when a figure is slower than it may be.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The results before, one JSON object a line
    old: PathBuf,
    /// The results now
    new: PathBuf,
    /// How much slower a figure may be, in per cent; a difference within the noise is never counted
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = percent)]
    threshold: f64,
}

fn percent(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("give a percentage of 0 or more".into()),
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let (old, new) = (record::read(&args.old)?, record::read(&args.new)?);
    let lines = compare(&old, &new, args.threshold / 100.0)?;
    let mut slower = 0;
    for line in &lines {
        slower += usize::from(line.verdict == Verdict::Slower);
        let object = json!({
            "key": line.key,
            "old_ns_per_item": line.old,
            "new_ns_per_item": line.new,
            "ratio": line.ratio,
            "noise": line.noise,
            "verdict": line.verdict.name(),
        });
        let text = format!(
            "{:>6.3} ±{:.3}  {:<7} {:>12.3} → {:>12.3} ns  {}",
            line.ratio,
            line.noise,
            line.verdict.name(),
            line.old,
            line.new,
            line.key
        );
        context.result(&object, &text)?;
    }
    if slower > 0 {
        return Err(Error::Other(format!(
            "{slower} of {} figures are more than {} % slower than before; measure again on a quiet \
             machine, then look for the cause",
            lines.len(),
            args.threshold
        )));
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Faster,
    Same,
    Slower,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Same => "same",
            Verdict::Slower => "slower",
        }
    }
}

struct Line {
    key: String,
    old: f64,
    new: f64,
    ratio: f64,
    /// Half the spread of both figures together, relative to them.
    noise: f64,
    verdict: Verdict,
}

fn compare(old: &[Record], new: &[Record], threshold: f64) -> Result<Vec<Line>> {
    let mut machines: Vec<&str> = old.iter().chain(new).map(|record| record.machine.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    if machines.len() > 1 {
        let named = machines.iter().map(|m| if m.is_empty() { "one that is not named" } else { m });
        return Err(Error::Input(format!(
            "results of different machines are not compared: {}; measure both on one machine",
            named.collect::<Vec<_>>().join(", ")
        )));
    }
    let (old, new) = (by_key(old), by_key(new));
    let common = old.iter().filter_map(|(key, old)| new.get(key).map(|new| (key, old, new)));
    let lines: Vec<Line> = common
        .map(|(key, old, new)| {
            let (old, new) = (Figure::of(old), Figure::of(new));
            let ratio = if old.value > 0.0 { new.value / old.value } else { 1.0 };
            let noise = old.noise.hypot(new.noise);
            let verdict = match ratio {
                r if r > 1.0 + threshold.max(noise) => Verdict::Slower,
                r if r < 1.0 / (1.0 + threshold.max(noise)) => Verdict::Faster,
                _ => Verdict::Same,
            };
            Line { key: key.clone(), old: old.value, new: new.value, ratio, noise, verdict }
        })
        .collect();
    if lines.is_empty() {
        return Err(Error::Input(
            "the two files have no result in common; measure the same things again".into(),
        ));
    }
    Ok(lines)
}

fn by_key(records: &[Record]) -> BTreeMap<String, Vec<&Record>> {
    let mut map: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        map.entry(record.key()).or_default().push(record);
    }
    map
}

/// The median of all results of one thing, and half of their spread relative to it.
struct Figure {
    value: f64,
    noise: f64,
}

impl Figure {
    fn of(records: &[&Record]) -> Figure {
        let value = median(&records.iter().map(|r| r.ns_per_item).collect::<Vec<_>>());
        let wall = median(&records.iter().map(|r| r.wall_ms).collect::<Vec<_>>());
        let least = records.iter().map(|r| r.wall_ms_min).fold(f64::INFINITY, f64::min);
        let most = records.iter().map(|r| r.wall_ms_max).fold(0.0, f64::max);
        let noise = if wall > 0.0 { ((most - least) / (2.0 * wall)).max(0.0) } else { 0.0 };
        Figure { value, noise }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(protocol: &str, wall: f64, spread: f64) -> Record {
        Record {
            name: "ot".into(),
            protocol: protocol.into(),
            count: 1000,
            machine: "m".into(),
            wall_ms: wall,
            wall_ms_min: wall - spread,
            wall_ms_max: wall + spread,
            ns_per_item: wall * 1e3,
            ..Record::default()
        }
    }

    fn verdict(old: f64, new: f64, spread: f64) -> Verdict {
        compare(&[result("kos", old, spread)], &[result("kos", new, spread)], 0.1).unwrap()[0].verdict
    }

    #[test]
    fn only_what_beats_both_threshold_and_noise_counts() {
        assert_eq!(verdict(100.0, 105.0, 1.0), Verdict::Same);
        assert_eq!(verdict(100.0, 115.0, 1.0), Verdict::Slower);
        assert_eq!(verdict(100.0, 115.0, 20.0), Verdict::Same);
        assert_eq!(verdict(100.0, 80.0, 1.0), Verdict::Faster);
        assert_eq!(verdict(100.0, 80.0, 30.0), Verdict::Same);
    }

    #[test]
    fn other_machines_and_other_things_are_not_compared() {
        let mut other = result("kos", 100.0, 1.0);
        other.machine = "n".into();
        assert!(compare(&[result("kos", 100.0, 1.0)], &[other], 0.1).is_err());
        assert!(compare(&[result("kos", 100.0, 1.0)], &[result("iknp", 1.0, 0.1)], 0.1).is_err());
        let both = [result("kos", 100.0, 1.0), result("iknp", 1.0, 0.1)];
        assert_eq!(compare(&both, &both[1..], 0.1).unwrap().len(), 1);
    }
}
