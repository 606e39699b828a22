//! What OT extension writes on the wire and returns, with fixed seeds, against a recorded baseline: a change
//! of one byte of a protocol shows here. Frames are taken off first; where they are cut is the channel's
//! business.

use crate::common::{self, Dealer, prg};
use crate::wire::line;
use std::fmt::Write;
use std::sync::Arc;
use tacit_crypto::{BitVec, Block};
use tacit_ot::convert::{CotToRot, Derandomised, RotToOt};
use tacit_ot::extension::code::{LinearCode, MatrixCode};
use tacit_ot::extension::softspoken::Groups;
use tacit_ot::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender, OosReceiver, OosSender};
use tacit_ot::extension::{SoftReceiver, SoftSender};
use tacit_ot::{
    ChosenCotReceiver, ChosenCotSender, CotReceiver, CotSender, RotReceiver, RotSender, Security,
};

fn cot_line(name: &str, n: usize, mut s: impl CotSender + Send, mut r: impl CotReceiver + Send) -> String {
    line(
        name,
        |channel| {
            let mut out = vec![Block::ZERO; n];
            s.extend(channel, &mut out)?;
            Ok(Block::as_bytes(&out).to_vec())
        },
        |channel| {
            let mut out = vec![Block::ZERO; n];
            r.extend(channel, &mut out)?;
            Ok(Block::as_bytes(&out).to_vec())
        },
    )
}

fn kos() -> (KosSender, KosReceiver) {
    common::run(
        |channel| KosSender::setup(channel, &Dealer(1), &mut prg(2)),
        |channel| KosReceiver::setup(channel, &Dealer(1), &mut prg(3)),
    )
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    let (sender, receiver) = common::run(
        |channel| IknpSender::setup(channel, &Dealer(1), &mut prg(2)),
        |channel| IknpReceiver::setup(channel, &Dealer(1), &mut prg(3)),
    );
    lines += &cot_line("iknp-cot 10000", 10_000, sender, receiver);
    for security in [Security::Malicious, Security::SemiHonest] {
        // Its weights bind the session's id, so it is set up in the recorded session.
        lines += &line(
            &format!("softspoken-cot {security:?} 9000"),
            |channel| {
                let mut sender =
                    SoftSender::begin(channel, &Dealer(1), &mut prg(2), security, Groups::default())?(
                        channel,
                    )?;
                let mut out = vec![Block::ZERO; 9000];
                sender.extend(channel, &mut out)?;
                Ok(Block::as_bytes(&out).to_vec())
            },
            |channel| {
                let mut receiver =
                    SoftReceiver::begin(channel, &Dealer(1), &mut prg(3), security, Groups::default())?(
                        channel,
                    )?;
                let mut out = vec![Block::ZERO; 9000];
                receiver.extend(channel, &mut out)?;
                Ok(Block::as_bytes(&out).to_vec())
            },
        );
    }
    let (sender, receiver) = kos();
    lines += &cot_line("kos-cot 1", 1, sender, receiver);
    let (sender, receiver) = kos();
    lines += &cot_line("kos-cot 400000", 400_000, sender, receiver);
    // Its weights bind the session's id, so it is set up in the recorded session.
    lines += &line(
        "kos-cot-by-hash 9000",
        |channel| {
            let mut sender = KosSender::begin_by_hash(channel, &Dealer(1), &mut prg(2))?(channel)?;
            let mut out = vec![Block::ZERO; 9000];
            sender.extend(channel, &mut out)?;
            Ok(Block::as_bytes(&out).to_vec())
        },
        |channel| {
            let mut receiver = KosReceiver::begin_by_hash(channel, &Dealer(1), &mut prg(3))?(channel)?;
            let mut out = vec![Block::ZERO; 9000];
            receiver.extend(channel, &mut out)?;
            Ok(Block::as_bytes(&out).to_vec())
        },
    );
    let (mut sender, mut receiver) = kos();
    lines += &cot_line("kos-cot-fork 300", 300, sender.fork(), receiver.fork());
    let (sender, receiver) = kos();
    let mut sender = CotToRot::new(sender);
    let mut receiver = CotToRot::new(receiver);
    lines += &line(
        "kos-rot 1000",
        |channel| {
            let mut out = vec![[Block::ZERO; 2]; 1000];
            sender.extend(channel, &mut out)?;
            Ok(Block::as_bytes(out.as_flattened()).to_vec())
        },
        |channel| {
            let mut out = vec![Block::ZERO; 1000];
            let choices = receiver.extend(channel, &mut out)?;
            Ok([Block::as_bytes(&out), choices.as_bytes()].concat())
        },
    );
    let (sender, receiver) = kos();
    let (mut sender, mut receiver) = (Derandomised::new(sender), Derandomised::new(receiver));
    lines += &line(
        "kos-derandomised 1000",
        |channel| {
            let mut out = vec![Block::ZERO; 1000];
            sender.extend_chosen(channel, &mut out)?;
            Ok(Block::as_bytes(&out).to_vec())
        },
        |channel| {
            let mut out = vec![Block::ZERO; 1000];
            receiver.extend_chosen(channel, &BitVec::random(1000, &mut prg(6)), &mut out)?;
            Ok(Block::as_bytes(&out).to_vec())
        },
    );
    let (sender, receiver) = kos();
    let mut sender = RotToOt::new(CotToRot::new(sender));
    let mut receiver = RotToOt::new(CotToRot::new(receiver));
    let lengths = [0, 1, 15, 16, 17, 1000];
    lines += &line(
        "ot-strings 6",
        |channel| {
            sender.send_strings(channel, &lengths.map(|n| [vec![1u8; n], vec![2; n]]))?;
            Ok(Vec::new())
        },
        |channel| {
            let choices = BitVec::from_bools(&[true, false, true, false, true, false]);
            Ok(receiver.receive_strings(channel, &choices, &lengths)?.concat())
        },
    );
    lines += &oos_line();
    let recorded = include_str!("../ot_extension.digests");
    let mut report = String::new();
    for (old, new) in recorded.lines().zip(lines.lines()).filter(|(old, new)| old != new) {
        writeln!(report, "recorded {old}\n     now {new}").unwrap();
    }
    assert!(lines == recorded, "the wire or the outputs changed:\n{report}all lines now:\n{lines}");
}

fn oos_line() -> String {
    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::concatenated(64));
    let other = code.clone();
    line(
        "oos 40000",
        move |channel| {
            let mut sender = OosSender::<2, 6>::setup(channel, &Dealer(1), code, &mut prg(2))?;
            let mut rows = vec![[Block::ZERO; 6]; 40_000];
            sender.extend(channel, &mut rows)?;
            Ok(Block::as_bytes(rows.as_flattened()).to_vec())
        },
        move |channel| {
            let mut receiver = OosReceiver::<2, 6>::setup(channel, &Dealer(1), other, &mut prg(3))?;
            let inputs: Vec<[Block; 2]> = (0..40_000).map(|i| [Block::new(i), Block::new(i * i)]).collect();
            let mut rows = vec![[Block::ZERO; 6]; 40_000];
            receiver.extend(channel, &inputs, &mut rows)?;
            Ok(Block::as_bytes(rows.as_flattened()).to_vec())
        },
    )
}
