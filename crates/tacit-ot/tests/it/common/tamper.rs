//! What comes over the wire of a protocol is changed, taken from another session or played again: an error
//! and no output, or outputs that are right all the same.

use tacit_crypto::{Block, Prg};
use tacit_net::memory::{self, Record};
use tacit_net::testing::Tap;
use tacit_net::{Channel, Link, LinkModel, Party, SessionId};
use tacit_ot::{Error, Result};

pub(crate) type Fits = Box<dyn Fn(&[Block], &[Block]) -> bool + Sync>;
pub(crate) type Side = Box<dyn Fn(&mut Channel, u128) -> Result<Vec<Block>> + Sync>;

/// Both sides of a protocol from a seed, and whether what they have put out fits together.
pub(crate) struct Protocol {
    pub name: &'static str,
    pub send: Side,
    pub receive: Side,
    pub fits: Fits,
}

/// The kind of frames with a protocol's bytes.
const DATA: u8 = 0xD7;

/// Whether an error says that the peer did wrong.
fn blames(error: &Error) -> bool {
    let oversized = matches!(error, Error::Net(tacit_net::Error::Oversized { .. }));
    oversized || matches!(error, Error::Cheated { .. } | Error::Malformed { .. })
}

/// Whether a run ended with that: the other side may only see that its peer is gone.
fn noticed<A, B>(sent: &Result<A>, received: &Result<B>) -> bool {
    let [sent, received] = [sent.as_ref().err(), received.as_ref().err()];
    received.is_some_and(|e| blames(e) || matches!(e, Error::Net(_)) && sent.is_some_and(blames))
}

/// Runs a protocol whose two sides believe in the sessions `ids`, over links that `wrap` changes.
fn run(
    protocol: &Protocol,
    ids: [u8; 2],
    wrap: impl FnOnce(Box<dyn Link>, Box<dyn Link>) -> (Box<dyn Link>, Box<dyn Link>),
) -> (Result<Vec<Block>>, Result<Vec<Block>>) {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let (a, b) = wrap(a, b);
    memory::join(
        Channel::new(a, Party::First, SessionId([ids[0]; 32])),
        Channel::new(b, Party::Second, SessionId([ids[1]; 32])),
        |ch| (protocol.send)(ch, 1000),
        |ch| (protocol.receive)(ch, 2000),
    )
}

/// What the sender and the receiver of an honest run write.
fn written(protocol: &Protocol) -> [Vec<u8>; 2] {
    let records: [Record; 2] = Default::default();
    let (sent, received) = run(protocol, [1, 1], |a, b| (records[0].of(a), records[1].of(b)));
    assert!((protocol.fits)(&sent.unwrap(), &received.unwrap()), "{}: an honest run", protocol.name);
    let data = |(kind, payload)| (kind == DATA).then_some(payload);
    records.map(|record| record.frames().into_iter().filter_map(data).flatten().collect())
}

/// A flipped bit is caught, or does no harm.
pub(crate) fn assert_flips_are_caught(protocols: &[Protocol]) {
    const PLACES: usize = 24;
    for protocol in protocols {
        for (side, stream) in written(protocol).into_iter().enumerate() {
            let mut seeds = Prg::from_seed(Block::new(side as u128 + 5));
            let spread =
                (0..PLACES).map(|i| (i * stream.len() + seeds.below(stream.len() as u64) as usize) / PLACES);
            let mut caught = 0;
            let places: Vec<usize> = spread.chain([0, stream.len() - 1, stream.len() - 33]).collect();
            for &at in &places {
                let bit = seeds.below(8) as u8;
                let tap = Tap::default();
                tap.flip(at, 1 << bit);
                let (sent, received) = run(protocol, [1, 1], |a, b| match side {
                    0 => (tap.of(a), b),
                    _ => (a, tap.of(b)),
                });
                let what = format!("{}: byte {at} of {} of side {side}", protocol.name, stream.len());
                caught += noticed(&sent, &received) as usize;
                match (sent, received) {
                    (Ok(sent), Ok(received)) => assert!((protocol.fits)(&sent, &received), "{what}"),
                    (sent, received) => {
                        assert!(noticed(&sent, &received), "{what}: {:?}, {:?}", sent.err(), received.err());
                    }
                }
            }
            // Two kinds of change do no harm half of the time: of a message of an OT that the receiver does
            // not take (the trees of VOLE, of the short form and of the paper's come by such OTs), and of a
            // column of KOS where Δ has a 0.
            let of_ots = protocol.name.starts_with("vole") || protocol.name.ends_with("short form");
            let half = side == 1 || of_ots;
            let least = if half { places.len() / 4 } else { places.len() };
            assert!(caught >= least, "{} side {side}: {caught} of {}", protocol.name, places.len());
        }
    }
}

/// Parties of different sessions do not come to an end.
pub(crate) fn assert_sessions_cannot_be_swapped(protocols: &[Protocol]) {
    for protocol in protocols {
        let (sent, received) = run(protocol, [1, 2], |a, b| (a, b));
        assert!(noticed(&sent, &received), "{}: {:?}, {:?}", protocol.name, sent.err(), received.err());
    }
}

/// A sender that says word by word what an honest one said in another session.
pub(crate) fn assert_no_replay(protocols: &[Protocol]) {
    for protocol in protocols {
        let [stream, _] = written(protocol);
        let (a, b) = memory::links(LinkModel::LOOPBACK);
        let (_, received) = memory::join(
            Channel::new(a, Party::First, SessionId([2; 32])),
            Channel::new(b, Party::Second, SessionId([2; 32])),
            |ch| {
                ch.send(&stream)?;
                ch.flush()?;
                let mut byte = [0];
                while ch.recv(&mut byte).is_ok() {}
                Ok::<(), Error>(())
            },
            |ch| (protocol.receive)(ch, 3000),
        );
        assert!(noticed(&Ok(()), &received), "{}: {:?}", protocol.name, received.err());
    }
}
