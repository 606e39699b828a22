//! `tacit bench base-ot`: one batch of base OTs, with everything that they need.

use super::{Common, Subject, measure::measure};
use crate::cli::Context;
use tacit::crypto::{BitVec, Block, Prg};
use tacit::net::Agreement;
use tacit::ot::base_ot;
use tacit::{Result, Security};

/// Base OT: one batch from nothing.
#[derive(clap::Args)]
pub struct Args {
    /// The protocol: co15, csw20, mr19, mrr21 or pvw08
    #[arg(long, value_name = "P", default_value = "mrr21")]
    protocol: String,
    /// OTs in the batch
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    count: u32,
    #[command(flatten)]
    common: Common,
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    let base = base_ot(Some(&args.protocol), Security::SemiHonest)?;
    let count = args.count as usize;
    let threads = u64::from(args.common.threads);
    let subject = Subject {
        name: "base-ot",
        protocol: args.protocol.clone(),
        security: base.security(),
        kind: "rot".into(),
        count: u64::from(args.count) * threads,
        more: |_, _| Vec::new(),
    };
    let sender = !args.common.is_peer();
    let repeat = args.common.repeat.into();
    args.common.run(context, &subject, Agreement::new("bench", "party", "party"), |channels| {
        measure(
            channels,
            repeat,
            |_, _| Ok(Prg::from_os()),
            |_, prg, channel| {
                if sender {
                    base.send(channel, prg, &mut vec![[Block::ZERO; 2]; count])?;
                } else {
                    let choices = BitVec::random(count, prg);
                    base.receive(channel, prg, &choices, &mut vec![Block::ZERO; count])?;
                }
                Ok(())
            },
        )
    })
}
