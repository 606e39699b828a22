//! What the two sides say to each other outside the buckets: how far they are, what they settle, and that all
//! is done.

use super::capacity::capacity;
use super::checkpoint::Plan;
use super::{ATTEMPTS, MAX_BUCKETS, OVERFLOW_BITS};
use crate::{Error, Result};
use tacit_crypto::Prg;
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::text::counted;
use tacit_crypto::transcript::Transcript;
use tacit_net::{Channel, Party};

const MAGIC: [u8; 16] = *b"tacit buckets-04";

/// How far a side is when the two meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::job::psi) enum Standing {
    /// Nothing was settled.
    Fresh,
    /// The run of this name was settled and goes on.
    Under([u8; 32]),
    /// The run of this name ended for good.
    Ended([u8; 32]),
}

/// What follows from both sides' standing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::job::psi) enum Verdict {
    /// Both are under the same name.
    GoOn,
    /// Nothing stands that both know: it is settled, anew if need be.
    Settle,
    /// The peer has ended the run for good.
    EndedThere,
    /// What the two sides hold does not belong together; the side named has lost its part.
    Missing(&'static str),
}

impl Verdict {
    /// Of `own` and the `peer`'s standing; `may_settle` where this side knows a plan under which nothing was
    /// begun, so that a peer that knows nothing of it can be believed.
    pub(in crate::job::psi) fn of(own: Standing, peer: Standing, may_settle: bool) -> Self {
        match (own, peer) {
            (Standing::Under(ours), Standing::Under(theirs)) if ours == theirs => Verdict::GoOn,
            (Standing::Under(ours), Standing::Ended(theirs)) if ours == theirs => Verdict::EndedThere,
            // Ended before it kept what was settled, and no bucket has begun; the peer decides by the same
            // rule.
            (Standing::Fresh, Standing::Fresh | Standing::Under(_)) => Verdict::Settle,
            (Standing::Under(_), Standing::Fresh) if may_settle => Verdict::Settle,
            // Two lines were lost while plans were tossed, and each side kept another one.
            (Standing::Under(_), Standing::Under(_)) if may_settle => Verdict::Settle,
            (Standing::Under(_), Standing::Fresh) => Verdict::Missing("the other side"),
            (Standing::Fresh, Standing::Ended(_)) => Verdict::Missing("this side"),
            _ => Verdict::Missing("either side"),
        }
    }
}

/// The error where one side has lost what the other goes on from.
pub(in crate::job::psi) fn missing(side: &str) -> Error {
    Error::Peer(format!(
        "{side} has no stored state of this run, so the two sides cannot continue; remove the state on both sides and start again"
    ))
}

/// Both sides' standing; returns the peer's.
pub(in crate::job::psi) fn meet(channel: &mut Channel, own: Standing) -> Result<Standing> {
    let (kind, name) = match own {
        Standing::Fresh => (0, [0; 32]),
        Standing::Under(name) => (1, name),
        Standing::Ended(name) => (2, name),
    };
    channel.send(&MAGIC)?;
    channel.send(&[kind])?;
    channel.send(&name)?;
    channel.flush()?;
    let (mut magic, mut kind, mut name) = ([0; 16], [0], [0; 32]);
    channel.recv(&mut magic)?;
    if magic != MAGIC {
        let what = "the peer does not run this version of buckets; use one release on both sides";
        return Err(Error::Peer(what.into()));
    }
    channel.recv(&mut kind)?;
    channel.recv(&mut name)?;
    match kind {
        [0] => Ok(Standing::Fresh),
        [1] => Ok(Standing::Under(name)),
        [2] => Ok(Standing::Ended(name)),
        _ => Err(Error::Peer("the peer's message about its progress is not valid".into())),
    }
}

/// Both sides' numbers of keys; returns the peer's.
pub(in crate::job::psi) fn announce(channel: &mut Channel, own: u64) -> Result<u64> {
    channel.send_u64(own)?;
    channel.flush()?;
    Ok(channel.recv_u64()?)
}

/// The larger of the numbers of buckets that the two sides want.
pub(in crate::job::psi) fn agree(channel: &mut Channel, wanted: u64) -> Result<u64> {
    channel.send_u64(wanted)?;
    channel.flush()?;
    let theirs = channel.recv_u64()?;
    if !theirs.is_power_of_two() || theirs > MAX_BUCKETS {
        return Err(Error::Peer(format!(
            "the peer asks for {theirs}, which is not a valid number of buckets",
            theirs = counted(theirs, "bucket")
        )));
    }
    Ok(wanted.max(theirs))
}

/// An error unless padded buckets keep a cheating peer to the order of the `most` keys that it may have: to twice as many,
/// or to what as many buckets as we want have room for.
pub(in crate::job::psi) fn bounded(peer: u64, buckets: u64, most: u64, wanted: u64) -> Result<()> {
    let room = |keys: u64, buckets: u64| buckets.saturating_mul(capacity(keys, buckets, OVERFLOW_BITS));
    let tested = room(peer, buckets);
    if tested <= most.saturating_mul(2) || buckets <= wanted || tested <= room(most, wanted) {
        return Ok(());
    }
    Err(Error::Peer(format!(
        "the peer has {} and asks for {}, with which it could test {}, more than the {most} allowed; raise the limit, or have the peer use fewer",
        counted(peer, "key"),
        counted(buckets, "bucket"),
        counted(tested, "key"),
    )))
}

/// The run's name and a key that neither side chose, bound to the session and to what was announced.
pub(in crate::job::psi) fn toss(
    channel: &mut Channel,
    prg: &mut Prg,
    [own, peer]: [u64; 2],
    buckets: u64,
) -> Result<Plan> {
    let first = channel.party() == Party::First;
    let [one, two] = if first { [own, peer] } else { [peer, own] };
    let mut transcript = Transcript::new("tacit psi buckets v4");
    transcript.append("session", &channel.session_id().0);
    transcript.append_u64("instance", channel.next_instance());
    transcript.append_u64("keys of the first", one);
    transcript.append_u64("keys of the second", two);
    transcript.append_u64("buckets", buckets);
    let mut context = [0; 32];
    transcript.clone().challenge_bytes("coin", &mut context);
    let (mut mine, mut theirs) = ([0; 32], [0; 32]);
    prg.fill_bytes(&mut mine);
    if first {
        let (commitment, opening) = commit(&context, &mine, prg);
        channel.send(&commitment.0)?;
        channel.flush()?;
        channel.recv(&mut theirs)?;
        channel.send(&mine)?;
        channel.send(&opening.0)?;
        channel.flush()?;
    } else {
        let mut commitment = Commitment([0; 32]);
        channel.recv(&mut commitment.0)?;
        channel.send(&mine)?;
        channel.flush()?;
        let mut opening = Opening(Default::default());
        channel.recv(&mut theirs)?;
        channel.recv(&mut opening.0)?;
        if !verify(&context, &theirs, &commitment, &opening) {
            return Err(Error::Peer(
                "the peer's coin is not the one that it committed to; it cheated".into(),
            ));
        }
    }
    let [one, two] = if first { [mine, theirs] } else { [theirs, mine] };
    transcript.append("coin of the first", &one);
    transcript.append("coin of the second", &two);
    let (mut key, mut name) = ([0; 32], [0; 32]);
    transcript.challenge_bytes("key", &mut key);
    transcript.challenge_bytes("name", &mut name);
    Ok(Plan { name, key, own, peer, buckets })
}

/// Which buckets are done on both sides, and how often each was begun on the side that counts more; `done`
/// and `begun` are ours.
pub(in crate::job::psi) fn compare(channel: &mut Channel, done: &mut [bool], begun: &mut [u8]) -> Result<()> {
    let own: Vec<u8> = done.iter().map(|done| u8::from(*done)).collect();
    channel.send(&own)?;
    channel.send(begun)?;
    channel.flush()?;
    let mut theirs = vec![0; own.len()];
    channel.recv(&mut theirs)?;
    for (done, theirs) in done.iter_mut().zip(theirs) {
        *done &= theirs == 1;
    }
    let mut theirs = vec![0; begun.len()];
    channel.recv(&mut theirs)?;
    for (begun, theirs) in begun.iter_mut().zip(theirs) {
        *begun = (*begun).max(theirs.min(ATTEMPTS));
    }
    Ok(())
}

/// Tells the peer that we are at this point, and waits until it is there too.
pub(in crate::job::psi) fn together(channel: &mut Channel, at: &[u8; 4]) -> Result<()> {
    channel.send(at)?;
    channel.flush()?;
    let mut theirs = [0; 4];
    channel.recv(&mut theirs)?;
    if theirs != *at {
        return Err(Error::Peer(
            "the peer's message is out of order, so it does not follow the protocol".into(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of `tools/models/settlement.py`, which has what they lead to.
    #[test]
    fn what_two_standings_come_to() {
        use Standing::{Ended, Fresh, Under};
        let (one, two) = ([1; 32], [2; 32]);
        for may in [false, true] {
            assert_eq!(Verdict::of(Under(one), Under(one), may), Verdict::GoOn);
            assert_eq!(Verdict::of(Under(one), Ended(one), may), Verdict::EndedThere);
            for other in [Fresh, Under(two)] {
                assert_eq!(Verdict::of(Under(one), other, may) == Verdict::Settle, may, "{other:?}");
                assert_eq!(Verdict::of(Fresh, other, may), Verdict::Settle);
            }
            for (own, peer) in [(Fresh, Ended(one)), (Under(one), Ended(two)), (Ended(one), Under(one))] {
                assert!(matches!(Verdict::of(own, peer, may), Verdict::Missing(_)), "{own:?} {peer:?}");
            }
        }
    }

    /// proof: buckets 2.2
    #[test]
    fn buckets_that_the_peer_asks_for_do_not_stretch_a_limit() {
        let is_bounded = |peer, buckets, most, wanted| bounded(peer, buckets, most, wanted).is_ok();
        // One key in 1,024 buckets is a place in each.
        assert!(!is_bounded(1, 1024, 1, 1));
        assert!(!is_bounded(1, 1024, 100, 1) && !is_bounded(100, 64, 100, 1));
        // What we want ourselves, and what is within twice the limit.
        assert!(is_bounded(1, 1024, 1, 1024) && is_bounded(100, 64, 100, 64) && is_bounded(100, 1, 100, 1));
        assert!(is_bounded(900, 16, 1000, 8) && is_bounded(1 << 20, 64, 1 << 20, 1));
        assert!(is_bounded(1 << 30, 1024, u64::MAX, 1));
        let error = bounded(1, 1024, 1, 1).unwrap_err().to_string();
        assert!(error.contains("1 key and asks for 1024 buckets"), "{error}");
    }
}
