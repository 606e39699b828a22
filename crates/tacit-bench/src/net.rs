//! `tacit bench net`: how fast bytes pass from one process to the other, and how long a round trip takes.

use super::{Common, Subject, measure::measure};
use crate::Context;
use tacit::link::round_trip;
use tacit::net::Agreement;
use tacit::{Result, Security};

/// The channel itself: throughput and round trip.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bytes that pass in a run, over all threads together
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: u64,
    /// Bytes handed to the channel at a time
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 17, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    piece: u32,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let threads = u64::from(args.common.threads);
    let pieces = args.count.div_ceil(threads * u64::from(args.piece));
    let subject = Subject {
        name: "net",
        protocol: if args.common.tls { "tls" } else { "tcp" }.into(),
        security: Some(if args.common.tls { Security::Malicious } else { Security::SemiHonest }),
        kind: "bytes".into(),
        count: pieces * u64::from(args.piece) * threads,
        more: |wall_ms, side| {
            let bytes = side.bytes_sent.max(side.bytes_received) as f64;
            vec![("gigabytes_per_second", bytes / wall_ms / 1e6), ("round_trip_us", side.setup_ms * 1e3)]
        },
    };
    let sender = !args.common.is_peer();
    let repeat = args.common.repeat.into();
    args.common.run(context, &subject, Agreement::new("bench", "party", "party"), |channels| {
        let trip = round_trip(&mut channels[0])?;
        let mut side = measure(
            channels,
            repeat,
            |_, _| Ok(vec![0u8; args.piece as usize]),
            |_, buffer, channel| {
                for _ in 0..pieces {
                    if sender {
                        channel.send(buffer)?;
                    } else {
                        channel.recv(buffer)?;
                    }
                }
                Ok(())
            },
        )?;
        // The round trip is all the setup there is.
        side.setup_ms = trip.as_secs_f64() * 1e3;
        Ok(side)
    })
}
