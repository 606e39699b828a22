//! Random 1-out-of-p OT over silent OT.

mod common;

use common::prg;
use tacit_crypto::Block;
use tacit_ot::convert::CotToRot;
use tacit_ot::one_of_many::OneOfMany;
use tacit_ot::silent::bcgikrs19::{Code, Config, SilentReceiver, SilentSender};
use tacit_ot::{Security, base};

#[test]
fn the_receiver_has_one_of_p_messages() {
    let config = Config { code: Code::Linear, security: Security::Malicious };
    for p in [2, 4, 16, 256] {
        let sizes = [1, 0, 300];
        let (sent, received) = common::run(
            |ch| {
                let silent = SilentSender::setup(ch, &*base::default(), &mut prg(1), config)?;
                let mut ot = OneOfMany::new(CotToRot::new(silent, &mut prg(2)), p)?;
                let mut all = Vec::new();
                for n in sizes {
                    let mut out = vec![Block::ZERO; n * p];
                    ot.send(ch, &mut out)?;
                    all.extend(out);
                }
                Ok(all)
            },
            |ch| {
                let silent = SilentReceiver::setup(ch, &*base::default(), &mut prg(3), config)?;
                let mut ot = OneOfMany::new(CotToRot::new(silent, &mut prg(4)), p)?;
                let mut all = Vec::new();
                for n in sizes {
                    let mut out = vec![Block::ZERO; n];
                    let choices = ot.receive(ch, &mut out)?;
                    all.extend(choices.iter().copied().zip(out));
                }
                Ok(all)
            },
        );
        assert_eq!(sent.len(), received.len() * p);
        let distinct: std::collections::HashSet<_> = sent.iter().map(|b| b.to_u128()).collect();
        assert_eq!(distinct.len(), sent.len(), "messages repeat at p = {p}");
        for (i, (choice, message)) in received.iter().enumerate() {
            assert!(*message == sent[i * p + *choice as usize], "OT {i} of p = {p}");
        }
        let kinds: std::collections::HashSet<_> = received.iter().map(|r| r.0).collect();
        assert!(kinds.len() > p.min(200) / 2, "few choices at p = {p}");
    }
    assert!(OneOfMany::new((), 3).is_err() && OneOfMany::new((), 512).is_err());
}
