//! `tacit relay`: a place where two sides behind firewalls meet.

use crate::cli::Context;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use tacit::net::rendezvous::{Bounds, Event, Relay};
use tacit::net::{Cancel, PublicKeys};
use tacit::{Error, Result};

const AFTER: &str = "\
Examples:
  tacit relay --listen 0.0.0.0:7710
  tacit relay --listen 0.0.0.0:7710 --allow alice.pub --allow bob.pub

Both sides give --via HOST:7710 in the place of --listen and --connect. The relay joins those that name each
other's keys, and passes what they send: it is encrypted from side to side, so the relay sees both public keys,
when they speak and how much, and nothing else. It keeps nothing. docs/deploy.md has units and containers.";

/// Runs a relay where two sides meet that cannot reach each other
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Where both sides find the relay
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7710")]
    listen: String,
    /// Serves the owner of this public key; repeat it for more. Without it, anybody
    #[arg(long, value_name = "PUBFILE")]
    allow: Vec<PathBuf>,
    /// Pairs that speak at once
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pairs: u16,
    /// Gigabytes that a pair may pass, both ways together
    #[arg(long, value_name = "GB", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    gigabytes: u64,
    /// Hours that a pair may speak
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=8760))]
    hours: u64,
    /// Minutes that a pair may be silent
    #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1440))]
    idle: u64,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let files = args.allow.iter().map(|file| PublicKeys::load(file));
    let files = files.collect::<std::result::Result<Vec<_>, _>>()?;
    let keys: Vec<_> = files.iter().flat_map(PublicKeys::accepted_keys).collect();
    let bounds = Bounds {
        pairs: args.pairs.into(),
        bytes: args.gigabytes * 1_000_000_000,
        time: Duration::from_secs(args.hours * 3600),
        idle: Duration::from_secs(args.idle * 60),
        ..Bounds::default()
    };
    let relay = Relay::bind(&args.listen, bounds, &keys, Cancel::default(), told)?;
    let address = relay.local_addr()?.to_string();
    let whom = if files.is_empty() { "anybody".to_owned() } else { format!("{} keys", files.len()) };
    let text = format!("relay: both sides find it at {address}; it serves {whom}");
    context.result(&json!({ "name": "relay", "listen": address, "keys": files.len() }), &text)?;
    relay.serve().map_err(Error::from)
}

/// A line for what happened; strangers when their number has doubled.
fn told(event: &Event) {
    match event {
        Event::Met([one, two]) => say(&format!("relay: {one} and {two} have met")),
        Event::Parted([one, two], bytes, time, why) => {
            let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let (seconds, bytes) = (time.as_secs(), *bytes);
            say(&format!("relay: {one} and {two} have parted after {bytes} bytes and {seconds} s{why}"));
        }
        Event::TurnedAway(from, why, count) if count.is_power_of_two() => {
            say(&format!("relay: {from} was turned away ({count} so far): {why}"));
        }
        _ => {}
    }
}

/// A line on standard error; a disk that is full ends no relay.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
