//! `tacit bench base-ot`: one batch of base OTs, with everything that they need.

use super::{Common, Subject, measure::measure, record::check_memory};
use crate::Context;
use crate::base::{self, rot_from_ot};
use tacit::crypto::{BitVec, Block, Prg};
use tacit::net::Agreement;
use tacit::ot::{RotReceiver, RotSender};
use tacit::{Result, Security};

/// Base OT: one batch from nothing.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The protocol: bdgm19, co15, csw20, mr19, mrr21, pvw08 or roted
    #[arg(long, value_name = "P", default_value = "mrr21")]
    protocol: String,
    /// OTs in the batch
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    count: u32,
    /// Makes random OT with uniform messages of it, by figure 2 of ROTed; where that is proved against a
    /// semi-honest peer only, the result says so
    #[arg(long)]
    uniform: bool,
    #[command(flatten)]
    common: Common,
}

/// Bytes that both parties hold, from the peaks of batches of 2^7 and 2^14.
fn memory(count: u64) -> u64 {
    (20 << 20) + 2_500 * count
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let ot = || base::base_ot(Some(&args.protocol), Security::SemiHonest);
    let chosen = ot()?;
    let security = match args.uniform {
        true if rot_from_ot::Sender::new(ot()?, Security::Malicious, Prg::from_os()).is_ok() => {
            Security::Malicious
        }
        true => Security::SemiHonest,
        false => chosen.security(),
    };
    let count = args.count as usize;
    let threads = u64::from(args.common.threads);
    let subject = Subject {
        name: "base-ot",
        protocol: args.protocol.clone(),
        security: Some(security),
        kind: if args.uniform { "rot, uniform" } else { "rot" }.into(),
        count: u64::from(args.count) * threads,
        more: |_, _| Vec::new(),
    };
    check_memory("this benchmark", memory(subject.count))?;
    let sender = !args.common.is_peer();
    let repeat = args.common.repeat.into();
    args.common.run(context, &subject, Agreement::new("bench", "party", "party"), |channels| {
        measure(
            channels,
            repeat,
            |_, _| Ok(Prg::from_os()),
            |_, prg, channel| {
                match (args.uniform, sender) {
                    (false, true) => chosen.send(channel, prg, &mut vec![[Block::ZERO; 2]; count])?,
                    (false, false) => {
                        let choices = BitVec::random(count, prg);
                        chosen.receive(channel, prg, &choices, &mut vec![Block::ZERO; count])?;
                    }
                    (true, true) => rot_from_ot::Sender::new(ot()?, security, prg.fork())?
                        .extend(channel, &mut vec![[Block::ZERO; 2]; count])?,
                    (true, false) => {
                        rot_from_ot::Receiver::new(ot()?, security, prg.fork())?
                            .extend(channel, &mut vec![Block::ZERO; count])?;
                    }
                }
                Ok(())
            },
        )
    })
}
