//! `tacit plan`: what a run would cost before anybody is asked.

use crate::cli::Context;
use crate::cli::peer::Security;
use clap::Subcommand;
use serde_json::json;
use tacit::crypto::text::counted;
use tacit::net::LinkModel;
use tacit::plan::cluster::{self, Clusters};
use tacit::plan::{Link, Machine};
use tacit::{Error, Result, security_name};

const AFTER: &str = "\
Examples:
  tacit plan psi --rows 1e9 --executors 100 --link 10000/5 --price core-hour=0.05 --price gb=0.02

Both sides are assumed to be equal: --rows distinct keys and --executors tasks at a time each,
with one core per task. docs/spark.md describes the model and the runs that it was fitted to.";

/// Estimates what a run would cost, without contacting the peer
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    job: Job,
}

/// What is planned.
#[derive(Subcommand)]
enum Job {
    /// An intersection of two clusters, by gateways: time, traffic, memory, price
    #[command(after_help = AFTER)]
    Psi(PsiArgs),
}

#[derive(clap::Args)]
struct PsiArgs {
    /// Distinct keys per side, such as 1e9 or 20000000
    #[arg(long, value_name = "N")]
    rows: String,
    /// Tasks that run at a time on each side, with one core each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    executors: u64,
    /// The link between the gateways: loopback, lan, wan or MBPS/ONE-WAY-MS
    #[arg(long, value_name = "NAME", default_value = "1000/5")]
    link: LinkModel,
    /// A price for each side: core-hour=PRICE, or gb=PRICE for 10^9 outgoing bytes; once each
    #[arg(long, value_name = "WHAT=PRICE")]
    price: Vec<String>,
    /// The number of buckets, a power of two (default: as the Python package picks)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    buckets: Option<u64>,
    /// Against which peer
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let Job::Psi(args) = args.job;
    let [core_hour, gigabyte] = prices(&args.price)?;
    if args.buckets.is_some_and(|buckets| !buckets.is_power_of_two()) {
        let what = "a power of two from 1 to 1024".to_owned();
        return Err(Error::Parameter { name: "buckets", what });
    }
    let clusters = Clusters {
        keys: count(&args.rows)?,
        executors: args.executors,
        link: Link::from(args.link),
        security: args.security.into(),
        machine: Machine::REFERENCE,
        buckets: args.buckets,
    };
    let bill = cluster::psi(&clusters)?;
    let price = bill.price(core_hour, gigabyte);
    let object = json!({
        "name": "plan psi",
        "rows": clusters.keys,
        "executors": clusters.executors,
        "security": security_name(clusters.security),
        "megabits": clusters.link.megabits,
        "round_trip_ms": clusters.link.round_trip.as_secs_f64() * 1e3,
        "buckets": bill.buckets,
        "places": bill.places,
        "seconds": bill.seconds,
        "engine_seconds": bill.engine_seconds,
        "computing_seconds": bill.computing_seconds,
        "relay_seconds": bill.relay_seconds,
        "link_seconds": bill.link_seconds,
        "bytes": bill.bytes,
        "core_hours": bill.core_hours,
        "task_memory_bytes": bill.task_memory,
        "price": price,
    });
    let mut lines = vec![
        format!(
            "{} a side in {} of {}",
            counted(clusters.keys, "key"),
            counted(bill.buckets, "bucket"),
            counted(bill.places, "place")
        ),
        format!(
            "time       {:>12.0} s: engine {:.0}, then the most of computing {:.0}, gateway {:.0} and link {:.0}",
            bill.seconds, bill.engine_seconds, bill.computing_seconds, bill.relay_seconds, bill.link_seconds
        ),
        format!("traffic    {:>12.2} GB, both directions together", bill.bytes as f64 / 1e9),
        format!("computing  {:>12.2} core-hours a side", bill.core_hours),
        format!("memory     {:>12.0} MB a task", bill.task_memory as f64 / 1e6),
    ];
    if !args.price.is_empty() {
        lines.push(format!("price      {price:>12.2} a side"));
    }
    context.result(&object, &lines.join("\n"))
}

/// A number of rows, in digits or as a power of ten.
fn count(text: &str) -> Result<u64> {
    let number = text.parse::<f64>().ok().filter(|n| n.fract() == 0.0 && (0.0..=1e12).contains(n));
    number.map(|number| number as u64).ok_or_else(|| Error::Parameter {
        name: "rows",
        what: format!("`{}` is not a whole number up to 1e12", tacit::net::shown(text)),
    })
}

/// Prices of a core's hour and of a gigabyte, 0 where none was said.
fn prices(said: &[String]) -> Result<[f64; 2]> {
    let mut prices = [None; 2];
    for text in said {
        let known = text.split_once('=').and_then(|(what, price)| {
            let at = ["core-hour", "gb"].iter().position(|name| *name == what)?;
            Some((at, price.parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0)?))
        });
        match known {
            Some((at, price)) if prices[at].is_none() => prices[at] = Some(price),
            _ => {
                let what =
                    format!("`{}`: give core-hour=PRICE and gb=PRICE, once each", tacit::net::shown(text));
                return Err(Error::Parameter { name: "price", what });
            }
        }
    }
    Ok(prices.map(Option::unwrap_or_default))
}
