//! What both ends record of an extension is the same for every protocol of correlated OT: WMK17 binds it.

use tacit::crypto::{Block, Prg};
use tacit::net::{Channel, Recording, memory};
use tacit::ot::{Choice, CotReceiver, CotSender, base_ot, names, protocol};
use tacit::{Result, Security};

/// Requests of one stream: within a stock, and past it.
const REQUESTS: [usize; 3] = [300, 5, 20_000];

fn record(
    channel: &mut Channel,
    mut extend: impl FnMut(&mut Channel, &mut [Block]) -> Result<()>,
) -> [[u8; 32]; 3] {
    REQUESTS.map(|n| {
        let mut recording = Recording::new(channel);
        channel.record(&mut recording, |channel| extend(channel, &mut vec![Block::ZERO; n])).unwrap();
        recording.digest()
    })
}

#[test]
fn both_ends_of_an_extension_record_the_same() {
    for security in [Security::SemiHonest, Security::Malicious] {
        for name in names() {
            let Ok(found) = protocol(name, security) else { continue };
            let pick = found.pick(1 << 20, security, &Choice::default()).unwrap();
            let (a, b) = memory::run(
                |channel| {
                    let (base, mut prg) = (base_ot(None, security).unwrap(), Prg::from_os());
                    let mut sender = pick.senders(channel, &*base, &mut prg, 1).unwrap().remove(0);
                    record(channel, |channel, out| Ok(CotSender::extend(&mut sender, channel, out)?))
                },
                |channel| {
                    let (base, mut prg) = (base_ot(None, security).unwrap(), Prg::from_os());
                    let mut receiver = pick.receivers(channel, &*base, &mut prg, 1).unwrap().remove(0);
                    record(channel, |channel, out| Ok(CotReceiver::extend(&mut receiver, channel, out)?))
                },
            );
            assert_eq!(a, b, "{name}, {security:?}");
        }
    }
}
