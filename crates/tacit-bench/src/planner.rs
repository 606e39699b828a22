//! `tacit bench planner`: what the planner's pick costs over the best candidate, every one of them measured.

use super::record::Record;
use super::{measured, show};
use crate::Context;
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeMap;
use std::str::FromStr;
use tacit::net::LinkModel;
use tacit::plan::{self, Candidate, Choice, Machine, Request};
use tacit::{Error, Result};
use tacit_console::options::KindArg;
use tacit_console::options::Security;

/// The regret of the planner: for each job and link, the pick's time over the best candidate's.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A job, as LINK:COUNT; can be given again. Without it, eight from loopback to 10 Mbit/s
    #[arg(long, value_name = "LINK:COUNT")]
    job: Vec<Task>,
    /// Jobs of this kind alone; correlated and random OT unless given
    #[arg(long, value_enum)]
    kind: Option<KindArg>,
    /// Jobs of this security alone; both unless given
    #[arg(long, value_enum)]
    security: Option<Security>,
    /// Runs of each candidate, after one that is thrown away; a third of them for those that are expected to
    /// take over 0.3 s
    #[arg(long, value_name = "R", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
}

/// So many OTs over a link.
#[derive(Clone, Copy, Debug)]
struct Task {
    link: LinkModel,
    count: u64,
}

impl FromStr for Task {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        const FORM: &str = "give LINK:COUNT, such as wan:100000 or 50/50:262144, up to 2^32 OTs";
        let (link, count) = text.rsplit_once(':').ok_or(FORM)?;
        let count = count.parse().ok().filter(|count| (1..=1 << 32).contains(count)).ok_or(FORM)?;
        Ok(Task { link: link.parse().map_err(|_| FORM)?, count })
    }
}

/// From loopback to 10 Mbit/s, where different protocols win.
const TASKS: [&str; 8] = [
    "loopback:10000",
    "loopback:1048576",
    "loopback:8388608",
    "lan:1048576",
    "1000/5:1048576",
    "wan:262144",
    "50/50:262144",
    "10/40:65536",
];

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let tasks: Vec<Task> = match args.job.is_empty() {
        true => TASKS.iter().filter_map(|task| task.parse().ok()).collect(),
        false => args.job,
    };
    let kinds = args.kind.map_or(vec![KindArg::Cot, KindArg::Rot], |kind| vec![kind]);
    let securities = args.security.map_or(vec![Security::SemiHonest, Security::Malicious], |one| vec![one]);
    let machine = Machine::measure();
    for task in tasks {
        for kind in &kinds {
            for security in &securities {
                show(context, &regret(task, *kind, *security, args.repeat, &machine)?)?;
            }
        }
    }
    Ok(())
}

/// The record of the pick for one job, with the regret and all candidates beside it.
fn regret(task: Task, kind: KindArg, security: Security, repeat: u16, machine: &Machine) -> Result<Record> {
    let Task { link, count } = task;
    let choice = Choice::default();
    let request = Request { count, kind: kind.into(), security: security.into(), threads: 1, choice };
    // The fastest by prediction comes first: the pick.
    let candidates = plan::ot(&request, &link.into(), machine)?;
    let records = candidates
        .iter()
        .map(|candidate| {
            let runs = if predicted(candidate) > 300.0 { repeat.div_ceil(3) } else { repeat };
            let words = [
                ["--protocol", candidate.protocol],
                ["--count", &count.to_string()],
                ["--kind", &word(kind)],
                ["--security", &word(security)],
                ["--link", &link.to_string()],
                ["--repeat", &runs.to_string()],
            ];
            let words = ["ot", "--fresh"].iter().chain(words.as_flattened());
            measured(&words.map(|word| (*word).to_owned()).collect::<Vec<_>>())
        })
        .collect::<Result<Vec<Record>>>()?;
    weigh(&candidates, records)
}

/// An option's value as the command line has it.
fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn predicted(candidate: &Candidate) -> f64 {
    candidate.time.as_secs_f64() * 1e3
}

/// The first candidate's record, and how far its time is from the best one's, by the least and by the median
/// of the runs: the least is what other work of the machine has not slowed.
fn weigh(candidates: &[Candidate], records: Vec<Record>) -> Result<Record> {
    let over = |time: fn(&Record) -> f64| {
        let best = records.iter().map(time).fold(f64::INFINITY, f64::min);
        records.first().map(|pick| time(pick) / best)
    };
    let (least, median) = (over(|r| r.wall_ms_min), over(|r| r.wall_ms));
    let best = records.iter().min_by(|a, b| a.wall_ms_min.total_cmp(&b.wall_ms_min));
    let best = best.map(|best| best.protocol.clone());
    let all: BTreeMap<&str, _> = candidates
        .iter()
        .zip(&records)
        .map(|(candidate, record)| {
            let measured = json!({
                "predicted_ms": predicted(candidate),
                "wall_ms": record.wall_ms,
                "wall_ms_min": record.wall_ms_min,
                "variant": record.variant,
            });
            (candidate.protocol, measured)
        })
        .collect();
    let all = json!(all);
    let pick = records.into_iter().next().zip(candidates.first());
    let (mut record, picked) = pick.ok_or_else(|| Error::Other("the planner has no candidate".into()))?;
    record.name = "planner".into();
    record.more.insert("regret".into(), json!(least));
    record.more.insert("regret_median".into(), json!(median));
    record.more.insert("predicted_ms".into(), json!(predicted(picked)));
    record.more.insert("best".into(), json!(best));
    record.more.insert("candidates".into(), all);
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_regret_is_the_picks_time_over_the_bests() {
        let timed = |protocol: &str, wall_ms, wall_ms_min| Record {
            name: "ot".into(),
            protocol: protocol.into(),
            wall_ms,
            wall_ms_min,
            ..Record::default()
        };
        let candidate = |protocol, milliseconds| Candidate {
            protocol,
            variant: String::new(),
            security: tacit::Security::Malicious,
            time: Duration::from_millis(milliseconds),
            bytes: 1,
            base_batches: 0,
            rounds: 1,
            assumptions: Vec::new(),
        };
        let candidates = [candidate("kos", 8), candidate("ferret", 9), candidate("silent", 90)];
        let records = vec![timed("kos", 12.0, 10.0), timed("ferret", 9.0, 8.0), timed("silent", 99.0, 98.0)];
        let record = weigh(&candidates, records.clone()).unwrap();
        assert_eq!(
            (record.name.as_str(), record.protocol.as_str(), record.wall_ms),
            ("planner", "kos", 12.0)
        );
        assert_eq!((record.more["regret"].as_f64(), &record.more["best"]), (Some(1.25), &json!("ferret")));
        assert!((record.more["regret_median"].as_f64().unwrap() - 4.0 / 3.0).abs() < 1e-12);
        assert_eq!(record.more["candidates"]["silent"]["predicted_ms"], 90.0);
        let record = weigh(&candidates[1..], records[1..].to_vec()).unwrap();
        assert_eq!((record.more["regret"].as_f64(), &record.more["best"]), (Some(1.0), &json!("ferret")));
        assert!(weigh(&[], Vec::new()).is_err());
    }

    #[test]
    fn jobs_are_a_link_and_a_count() {
        for task in TASKS {
            let Task { link, count } = task.parse().unwrap();
            assert_eq!(format!("{link}:{count}"), task);
        }
        for wrong in ["", "lan", "lan:", "lan:0", "lan:-1", "nowhere:5", ":5", "50/50/5:5", "lan:4294967297"]
        {
            assert!(wrong.parse::<Task>().is_err(), "{wrong}");
        }
    }
}
