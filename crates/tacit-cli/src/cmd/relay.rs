//! `tacit relay`: a place where two sides behind firewalls meet.

use crate::cli::Context;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use tacit::crypto::text::counted;
use tacit::net::rendezvous::{Bounds, Event, Relay};
use tacit::net::{Cancel, PublicKeys};
use tacit::{Error, Result};
use tacit_serve::clock::Time;

const AFTER: &str = "\
Examples:
  tacit relay --listen 0.0.0.0:7710
  tacit relay --listen 0.0.0.0:7710 --allow alice.pub --allow bob.pub

Both sides use --via HOST:7710 instead of --listen and --connect. The relay connects sides that name each \
other's keys and forwards their data. The data is encrypted end to end: the relay sees both public keys, \
when they are connected and how much they send, and nothing else. It stores nothing.

docs/deploy.md has units and containers.";

/// Runs a relay where two sides meet that cannot reach each other
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// The address at which the relay listens
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7710")]
    listen: String,
    /// Serves only the owner of this public key; may be repeated. Without it the relay serves everyone
    #[arg(long, value_name = "PUBFILE")]
    allow: Vec<PathBuf>,
    /// The most pairs connected at once
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pairs: u16,
    /// The most gigabytes that a pair may send, both directions together
    #[arg(long, value_name = "GB", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    gigabytes: u64,
    /// The most hours that a pair may stay connected
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=8760))]
    hours: u64,
    /// Minutes without a byte after which a pair is disconnected
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
    let whom = if files.is_empty() { "anyone".to_owned() } else { counted(files.len(), "key") };
    let text = format!("relay: both sides reach it at {address}; it serves {whom}");
    context.result(&json!({ "name": "relay", "listen": address, "keys": files.len() }), &text)?;
    relay.serve().map_err(Error::from)
}

/// A line for what happened; strangers when their number has doubled.
fn told(event: &Event) {
    match event {
        Event::Met([one, two]) => say(&format!("relay: {one} and {two} connected")),
        Event::Parted([one, two], bytes, time, why) => {
            let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let (seconds, bytes) = (time.as_secs(), counted(*bytes, "byte"));
            say(&format!("relay: {one} and {two} disconnected after {bytes} and {seconds} s{why}"));
        }
        Event::TurnedAway(from, why, count) if count.is_power_of_two() => {
            say(&format!("relay: a connection from {from} was rejected ({count} so far): {why}"));
        }
        _ => {}
    }
}

/// A line with its time on standard error; a disk that is full ends no relay.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{} {line}", Time::now().text());
}
