//! `tacit doctor`: what this machine offers, and what the link to a peer is like.

use crate::cli::Context;
use crate::cli::peer::{PeerArgs, Security};
use serde_json::{Map, Value, json};
use tacit::Result;
use tacit::crypto::simd;
use tacit::crypto::text::counted;
use tacit::link::measure_link;
use tacit::net::Agreement;

const AFTER: &str = "\
Examples:
  tacit doctor
  tacit doctor --listen 0.0.0.0:7700 --identity alice.key --peer bob.pub
  tacit doctor --connect alice.example:7700 --identity bob.key --peer alice.pub";

/// Shows CPU features and chosen kernels; with a peer, the link's delay and bandwidth.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten)]
    peer: PeerArgs,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    machine(context)?;
    if args.peer.is_given() { link(&args.peer, context) } else { Ok(()) }
}

fn machine(context: &Context) -> Result<()> {
    let backend = simd::Backend::active();
    let levels: Vec<&str> = simd::Backend::available().iter().map(|b| b.name()).collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (have, lack): (Vec<_>, Vec<_>) = simd::features().into_iter().partition(|(_, there)| *there);
    let names = |list: &[(&'static str, bool)]| list.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let kernels: Map<String, Value> =
        backend.kernels().iter().map(|(kernel, which)| (kernel.to_string(), json!(which))).collect();
    let object = json!({
        "name": "doctor",
        "version": env!("CARGO_PKG_VERSION"),
        "commit": crate::cmd::COMMIT,
        "cpu": cpu_name(),
        "threads": threads,
        "features": names(&have),
        "features_missing": names(&lack),
        "levels": levels,
        "level": backend.name(),
        "kernels": kernels,
    });
    let list = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(" ") };
    let mut text = format!("tacit {} ({})\n", env!("CARGO_PKG_VERSION"), crate::cmd::COMMIT);
    text += &format!("processor   {} ({threads})\n", cpu_name(), threads = counted(threads, "thread"));
    text += &format!("features    {}\n", list(names(&have)));
    text += &format!("missing     {}\n", list(names(&lack)));
    text += &format!(
        "kernels     {} of {}; TACIT_SIMD=LEVEL,-FEATURE,… chooses another",
        backend.name(),
        levels.join(" | ")
    );
    for (kernel, which) in backend.kernels() {
        text += &format!("\n  {kernel:<12}{which}");
    }
    context.result(&object, &text)
}

fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("model name"));
    line.and_then(|rest| rest.split_once(':'))
        .map_or(std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// Round trips for the delay, then a second or so of bytes in each direction.
fn link(peer: &PeerArgs, context: &Context) -> Result<()> {
    let session = peer.session(Security::Malicious, context)?;
    let mut opened = session.open(Agreement::new("doctor", "examiner", "examiner"))?;
    let (delay, to_peer, from_peer) = measure_link(opened.channel())?;
    let ms = delay.as_secs_f64() * 1e3;
    let object = json!({
        "name": "doctor link",
        "round_trip_ms": ms,
        "one_way_ms": ms / 2.0,
        "megabits_to_peer": to_peer,
        "megabits_from_peer": from_peer,
    });
    let text = format!(
        "link        round trip {ms:.3} ms, {to_peer:.0} Mbit/s to the peer, {from_peer:.0} Mbit/s from it\n\
         emulate it  --link {:.0}/{:.2}",
        to_peer.min(from_peer),
        ms / 2.0
    );
    context.result(&object, &text)
}
