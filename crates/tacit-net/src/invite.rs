//! Two people exchange their public keys by a code of a few words that one tells the other, by telephone say.
//!
//! SPAKE2 (Abdalla and Pointcheval 2005; RFC 9382 has the later form) turns the code's words into a key that
//! whoever does not know them cannot find out, but for one guess each time it takes part: one in 65,536. Under
//! that key both send their public keys, each with a signature that shows it has the private one. A code is good
//! for one attempt: after a wrong one it is spent, and who invited makes another.
//!
//! Where the two meet, at a relay or at a port, proves nothing and learns nothing: a relay sees the code's number,
//! which names the place, and never its words.

mod port;

use crate::cancel::Cancel;
use crate::keys::{PublicKey, SIGNATURE};
use crate::meeting::{Part, Route};
use crate::setup::{Options, Protection, bound, later, left};
use crate::tls::Tls;
use crate::waiting::{Event, News, Observer, Vigil};
use crate::{Agreement, Error, Identity, Limits, Party, Proxy, Result};
use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use spake2::{Ed25519Group, Password, Spake2};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tacit_crypto::Prg;
use tacit_crypto::near::nearest;
use zeroize::Zeroizing;

const WORDS: &str = include_str!("invite/words.txt");
const MAGIC: [u8; 16] = *b"tacit invite 1\r\n";
const PLACE_KEY: &str = "tacit 1 place of an invitation";
const SIGNED_KEY: &str = "tacit 1 key by invitation";
/// A group element of SPAKE2 with its side's mark.
const MESSAGE: usize = 33;
/// Longest comment that goes with a key.
const COMMENT: usize = 128;
/// Longest sealed message: key, signature, comment and tag.
const SEALED_KEY: usize = 32 + SIGNATURE + COMMENT + 16;
/// Time for the whole exchange, once both are there.
const EXCHANGE: Duration = Duration::from_secs(30);
/// Time for either side to show that it speaks this.
const GREETING: Duration = Duration::from_secs(10);
/// Time for a caller to show whether it has the code: at a relay others wait meanwhile.
const CALLER: Duration = Duration::from_secs(10);
/// Places at a relay are drawn below this first; ten times as many each time it is taken.
const PLACES_AT_FIRST: u64 = 100;
const PLACES_AT_MOST: u64 = 1_000_000;
/// Places that are tried until one is free.
const DRAWS: usize = 16;
/// How long a relay is called that has not answered yet: it may just be starting, or its name may be wrong.
const FIRST_CONTACT: Duration = Duration::from_secs(10);
/// The first pause before it is called again.
const CALL_AGAIN: Duration = Duration::from_millis(250);
/// Pause before a place that is taken is asked for again.
const PLACE_AGAIN: Duration = Duration::from_secs(2);
/// How long to wait for the other unless said otherwise.
const WAIT: Duration = Duration::from_secs(600);
/// How long a place may be vacant before that counts as waiting.
const VACANT: Duration = Duration::from_millis(500);
/// How long it may be before what that may mean is told: a stranger keeps the one who invites for half as long. Of a
/// short wait, a third.
const VACANT_TOLD: Duration = Duration::from_secs(20);

/// What one person tells the other: a number, which names a place, and two words, which are the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Code {
    place: u32,
    words: Zeroizing<String>,
}

impl Code {
    fn draw(place: u32) -> Self {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let mut random = Zeroizing::new([0; 2]);
        Prg::from_os().fill_bytes(&mut random[..]);
        // There are 256 of them.
        let [first, second] = [0, 1].map(|at| words[usize::from(random[at]) % words.len()]);
        Code { place, words: Zeroizing::new([first, "-", second].concat()) }
    }

    /// The code's number, which names the place and is no secret: at a port it is that of the port.
    pub fn number(&self) -> u32 {
        self.place
    }

    /// The code's text, which is a secret until it was used.
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{}-{}", self.place, self.words.as_str()))
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}, [secret])", self.place)
    }
}

impl FromStr for Code {
    type Err = Error;

    /// Reads a code as a person types it: case and what stands between its parts do not matter.
    fn from_str(text: &str) -> Result<Self> {
        let form = "a code is a number and two words, such as 7-walnut-harbour";
        let lower = Zeroizing::new(text.to_lowercase());
        let parts: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
        let [place, first, second] = parts[..] else { return Err(Error::Usage(form.to_owned())) };
        let place = place.parse().map_err(|_| Error::Usage(form.to_owned()))?;
        for word in [first, second] {
            if !WORDS.split_whitespace().any(|known| known == word) {
                let near = nearest(word, WORDS.split_whitespace());
                let near =
                    near.map_or("check the spelling".to_owned(), |near| format!("did you mean `{near}`?"));
                let word = crate::shown(word);
                return Err(Error::Usage(format!("`{word}` is not a word that codes use; {near}")));
            }
        }
        Ok(Code { place, words: Zeroizing::new([first, "-", second].concat()) })
    }
}

/// Where two people meet who exchange keys.
#[derive(Clone, Debug)]
pub enum Place {
    /// At this relay.
    Relay(String),
    /// Where the one who invites listens, and the other connects to.
    Port(String),
}

/// Whose key was exchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Introduced {
    /// The other's public key.
    pub key: PublicKey,
    /// What it calls itself; printable, and nothing that was proved.
    pub comment: String,
}

/// How long to wait, and what ends the waiting.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    /// For the other to come; ten minutes unless said otherwise.
    pub wait: Option<Duration>,
    /// An HTTP proxy that leads to the relay.
    pub proxy: Option<Proxy>,
    /// What ends it from another thread.
    pub cancel: Cancel,
    /// Whom to tell of the waiting.
    pub observer: Observer,
}

impl Patience {
    fn end(&self) -> Instant {
        later(Instant::now(), self.wait.unwrap_or(WAIT))
    }

    fn options(&self, relay: &str, tls: Tls) -> Options {
        let mut options = Options::new(Agreement::new("invitation", "one", "other"), Protection::Tls(tls));
        options.limits = Limits { connect: FIRST_CONTACT.min(left(self.end())), ..Limits::default() };
        (options.via, options.proxy) = (Some(relay.to_owned()), self.proxy.clone());
        options.cancel = self.cancel.clone();
        options
    }

    /// The waiting at a relay for the one who has the code.
    fn vigil(&self, relay: &str, proof: String) -> Vigil {
        let (place, patience) = (format!("the relay {relay}"), self.wait.unwrap_or(WAIT));
        Vigil::new(&self.observer, Party::First, proof, place, Instant::now(), Some(patience))
    }
}

/// The key of a place at a relay: everybody who knows the number has it.
fn place_key(place: u32) -> Result<Identity> {
    let mut secret = [0; 32];
    secret[..4].copy_from_slice(&place.to_le_bytes());
    Identity::of_secret(PLACE_KEY, &secret)
}

/// Waits at `place` for the one who is told the code, which `tell` gets first, and exchanges keys with them.
///
/// Who leaves before it has shown whether it has the code has learned nothing of it, and the waiting goes on.
/// Errors: [`Error::WrongCode`] when somebody tried another code, after which this one is used up;
/// [`Error::NobodyJoined`]; those of the link.
pub fn invite(
    place: &Place,
    identity: &Identity,
    comment: &str,
    patience: &Patience,
    tell: impl FnMut(&Code),
) -> Result<Introduced> {
    let start = Instant::now();
    introduced(place, identity, comment, patience, tell).map_err(|error| match error {
        Error::NobodyMet { .. } | Error::NoPeer { .. } => Error::NobodyJoined { after: start.elapsed() },
        // The key that the relay saw is the place's.
        Error::NotServed { address, .. } => Error::NotServed { address, key: None },
        other => other,
    })
}

fn introduced(
    place: &Place,
    identity: &Identity,
    comment: &str,
    patience: &Patience,
    mut tell: impl FnMut(&Code),
) -> Result<Introduced> {
    let mut door = match place {
        Place::Relay(relay) => Door::Relay(relay, None),
        Place::Port(address) => {
            let socket = bound(address)?;
            let code = Code::draw(u32::from(socket.local_addr()?.port()));
            tell(&code);
            Door::Port(socket, code)
        }
    };
    let (end, alone) = (patience.end(), AtomicBool::new(false));
    loop {
        let heard = match &mut door {
            Door::Relay(relay, Some(code)) => {
                Heard::of(wait_again(relay, code, patience, end)?, code, &alone)
            }
            Door::Relay(relay, told) => {
                let (code, stream) = wait_at_relay(relay, patience, end, &mut tell)?;
                let code = told.insert(code);
                stream.and_then(|stream| Heard::of(stream, code, &alone))
            }
            Door::Port(socket, code) => Some(port::heard(socket, code, patience, end)?),
        };
        if let Some(heard) = heard {
            return heard.answer(identity, comment);
        }
    }
}

/// Where the one who invites waits.
enum Door<'a> {
    /// At this relay, and the code once it was told.
    Relay(&'a str, Option<Code>),
    Port(TcpListener, Code),
}

/// What shows who the other is, for people.
fn proof(code: &Code) -> String {
    format!("with the code {}-…", code.place)
}

/// The relay as the place of the code is waited at there.
fn place_of(code: &Code, relay: &str, patience: &Patience, vigil: &mut Vigil) -> Result<Route> {
    let tls = Tls::one_of(&place_key(code.place)?, BTreeSet::new())?;
    Route::new(relay, &patience.options(relay, tls), &mut |reason| vigil.go_on(Some(reason)))
}

/// Waits alone at the place of a code that was told; a call that fails is made again.
fn wait_again(relay: &str, code: &Code, patience: &Patience, end: Instant) -> Result<TcpStream> {
    let mut vigil = patience.vigil(relay, proof(code));
    let place = place_of(code, relay, patience, &mut vigil)?;
    let failed = &mut |news: News<'_>| {
        if let News::Failed(error) = news {
            vigil.go_on(Some(&error.to_string()));
        }
    };
    loop {
        match place.meet(Part::Alone, (end, end), failed) {
            // Where our last call was cut off, the relay takes a while to know that it is gone.
            Err(Error::AddressInUse { .. }) if left(end) > PLACE_AGAIN => std::thread::sleep(PLACE_AGAIN),
            Err(Error::AddressInUse { address }) => {
                let reason = "another side waits under this code: make a new one".to_owned();
                return Err(Error::TurnedAway { address, reason });
            }
            met => return Ok(met?.0),
        }
    }
}

/// Draws a code whose place at the relay is free, tells it, and waits there; without a connection where the
/// relay was lost after that.
fn wait_at_relay(
    relay: &str,
    patience: &Patience,
    end: Instant,
    tell: &mut dyn FnMut(&Code),
) -> Result<(Code, Option<TcpStream>)> {
    let (mut among, mut pause) = (PLACES_AT_FIRST, CALL_AGAIN);
    let start = Instant::now();
    let first = later(start, FIRST_CONTACT).min(end);
    let mut vigil = patience.vigil(relay, "with a code".to_owned()).until_reached(FIRST_CONTACT);
    for _ in 0..DRAWS {
        let mut random = [0; 8];
        Prg::from_os().fill_bytes(&mut random);
        let code = Code::draw(1 + (u64::from_le_bytes(random) % (among - 1)) as u32);
        let mut told = false;
        let seated = &mut || {
            if !std::mem::replace(&mut told, true) {
                tell(&code);
            }
        };
        match place_of(&code, relay, patience, &mut vigil)?.meet_once(Part::Alone, end, seated) {
            Ok((stream, _)) if told => return Ok((code, Some(stream))),
            // Somebody waits there already, or lies in wait: nobody can want a code that nobody was told.
            Ok(_) | Err(Error::AddressInUse { .. }) => among = (among * 10).min(PLACES_AT_MOST),
            Err(_) if told && !left(end).is_zero() => return Ok((code, None)),
            Err(error @ Error::NoRelay { .. }) if !left(first).is_zero() => {
                vigil.go_on(Some(&error.single().to_string()));
                std::thread::sleep(pause.min(left(first)));
                pause *= 2;
            }
            Err(Error::NoRelay { address, reason, .. }) => {
                return Err(Error::NoRelay { address, after: start.elapsed(), reason });
            }
            Err(error) => return Err(error),
        }
    }
    let reason = "others wait at every place that was tried".to_owned();
    Err(Error::TurnedAway { address: relay.to_owned(), reason })
}

/// Meets the one who made the `code` and exchanges keys with them. Errors: [`Error::WrongCode`],
/// [`Error::NoInvitation`] if nobody answers with its number for as long as `patience` lasts; those of the link.
pub fn join(
    place: &Place,
    code: &Code,
    identity: &Identity,
    comment: &str,
    patience: &Patience,
) -> Result<Introduced> {
    let mut stream = match place {
        Place::Relay(address) => {
            let tls = Tls::pinned(&Identity::generate()?, place_key(code.place)?.public())?;
            let start = Instant::now();
            let mut vigil = patience.vigil(address, proof(code)).until_reached(FIRST_CONTACT);
            let (first, end) = (later(start, FIRST_CONTACT), patience.end());
            let options = patience.options(address, tls);
            let route = Route::new(address, &options, &mut |reason| vigil.go_on(Some(reason)))?;
            let told_after = VACANT_TOLD.min(patience.wait.unwrap_or(WAIT) / 3);
            let (mut since, mut told) = (None, false);
            let met = route.meet(Part::Connecting, (first, end), &mut |news| match news {
                // Whoever calls sees as much: a place has somebody, or the caller waits.
                News::Waits => {
                    let vacant = since.get_or_insert_with(Instant::now).elapsed();
                    if vacant >= VACANT {
                        vigil.hear(&News::Waits);
                    }
                    if vacant >= told_after && !std::mem::replace(&mut told, true) {
                        let (address, number) = (address.clone(), code.place);
                        patience.observer.tell(&Event::Vacant { address, number, vacant });
                    }
                }
                failed => vigil.hear(&failed),
            });
            let met = met.map_err(|error| match error {
                Error::NobodyMet { address, after } => {
                    Error::NoInvitation { address, number: code.place, after }
                }
                Error::NotServed { address, .. } => Error::NotServed { address, key: None },
                other => other,
            });
            met?.0
        }
        Place::Port(address) => {
            let (stream, keyed) = port::called(address, code, patience)?;
            return exchanged(stream, &keyed, identity, comment);
        }
    };
    let keyed = Keyed::of(&mut stream, code, false, EXCHANGE)?;
    exchanged(stream, &keyed, identity, comment)
}

/// Sends this side's key, and takes the other's.
fn exchanged(mut stream: TcpStream, keyed: &Keyed, identity: &Identity, comment: &str) -> Result<Introduced> {
    let end = later(Instant::now(), EXCHANGE);
    send_sealed(&mut stream, &keyed.seal().close(identity, comment, false)?, end)?;
    let sealed = receive(&mut stream, end).map_err(|error| match error {
        // Who finds the code wrong hangs up.
        Error::Lost { .. } | Error::Closed { .. } => Error::WrongCode,
        other => other,
    })?;
    of_another(keyed.seal().open(&sealed, true)?, identity)
}

/// Both say that they speak this, by the `end`.
fn greet(stream: &mut TcpStream, end: Instant) -> Result<()> {
    send(stream, &MAGIC, end)?;
    let mut magic = [0; MAGIC.len()];
    fill(stream, &mut magic, end)?;
    if magic == MAGIC { Ok(()) } else { Err(Error::NotTacit { saw: crate::error::printable(&magic) }) }
}

/// The other's element of SPAKE2 for ours, `mine`, for which it has so much time.
fn elements(stream: &mut TcpStream, mine: &[u8], invites: bool, time: Duration) -> Result<Vec<u8>> {
    let end = later(Instant::now(), time);
    greet(stream, end.min(later(Instant::now(), GREETING)))?;
    let mut theirs = vec![0; MESSAGE];
    if invites {
        send(stream, mine, end)?;
        fill(stream, &mut theirs, end)?;
    } else {
        fill(stream, &mut theirs, end)?;
        send(stream, mine, end)?;
    }
    Ok(theirs)
}

/// What SPAKE2 over a stream gives.
struct Keyed {
    shared: Zeroizing<Vec<u8>>,
    transcript: Vec<u8>,
}

impl Keyed {
    fn of(stream: &mut TcpStream, code: &Code, invites: bool, time: Duration) -> Result<Self> {
        stream.set_nonblocking(false)?;
        let names =
            ["tacit 1 who invites", "tacit 1 who joins"].map(|name| spake2::Identity::new(name.as_bytes()));
        let password = Password::new(code.text().as_bytes());
        let (state, mine) = match invites {
            true => Spake2::<Ed25519Group>::start_a(&password, &names[0], &names[1]),
            false => Spake2::<Ed25519Group>::start_b(&password, &names[0], &names[1]),
        };
        let theirs = elements(stream, &mine, invites, time)?;
        let shared = Zeroizing::new(state.finish(&theirs).map_err(|_| Error::WrongCode)?);
        let [first, second] = if invites { [&mine, &theirs] } else { [&theirs, &mine] };
        let transcript = [MAGIC.as_slice(), &code.place.to_le_bytes(), first, second].concat();
        Ok(Keyed { shared, transcript })
    }

    fn seal(&self) -> Seal<'_> {
        Seal { shared: &self.shared, transcript: &self.transcript }
    }
}

/// What shows the one who invites whether the other has the code. The one who joins says it first. What the one who
/// invites has sent until then tells nothing of the code, so there may be several others, and none of them has had an
/// attempt; opening it is the attempt.
struct Heard {
    stream: TcpStream,
    keyed: Keyed,
    sealed: Vec<u8>,
}

impl Heard {
    /// `None` where the other left, or said something else, before that.
    fn of(mut stream: TcpStream, code: &Code, is_keyed: &AtomicBool) -> Option<Self> {
        let end = later(Instant::now(), CALLER);
        let keyed = Keyed::of(&mut stream, code, true, CALLER).ok()?;
        is_keyed.store(true, Ordering::Relaxed);
        let sealed = receive(&mut stream, end).ok()?;
        Some(Heard { stream, keyed, sealed })
    }

    /// Takes the other's key, and sends this side's. The code is used up, whatever comes of it.
    fn answer(mut self, identity: &Identity, comment: &str) -> Result<Introduced> {
        let seal = self.keyed.seal();
        let introduced = seal.open(&self.sealed, false)?;
        let own = seal.close(identity, comment, true)?;
        send_sealed(&mut self.stream, &own, later(Instant::now(), EXCHANGE))?;
        of_another(introduced, identity)
    }
}

fn of_another(introduced: Introduced, identity: &Identity) -> Result<Introduced> {
    match introduced.key == identity.public() {
        true => Err(Error::Usage("both sides use the same key: each needs its own".to_owned())),
        false => Ok(introduced),
    }
}

/// What both keys are sent under.
struct Seal<'s> {
    shared: &'s [u8],
    transcript: &'s [u8],
}

impl Seal<'_> {
    /// The key of what the one who invites sends, or the other. It seals one message.
    fn key(&self, invites: bool) -> Result<LessSafeKey> {
        let context =
            ["tacit 1 invitation, who joins", "tacit 1 invitation, who invites"][usize::from(invites)];
        let key = Zeroizing::new(blake3::derive_key(context, self.shared));
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key[..]);
        Ok(LessSafeKey::new(key.map_err(|_| Error::Usage("no key from the code".to_owned()))?))
    }

    fn close(&self, identity: &Identity, comment: &str, invites: bool) -> Result<Vec<u8>> {
        let comment: String = comment.chars().filter(|c| !c.is_control()).collect();
        let comment = &comment.as_bytes()[..comment.floor_char_boundary(COMMENT)];
        let signature = identity.sign(SIGNED_KEY, &[self.transcript, &[u8::from(invites)]].concat())?;
        let mut message = [&identity.public().to_bytes(), signature.as_slice(), comment].concat();
        let sealed = self.key(invites)?.seal_in_place_append_tag(
            Nonce::assume_unique_for_key([0; 12]),
            Aad::from(self.transcript),
            &mut message,
        );
        sealed.map_err(|_| Error::Usage("the message cannot be sealed".to_owned()))?;
        Ok(message)
    }

    fn open(&self, sealed: &[u8], invites: bool) -> Result<Introduced> {
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let opened = self.key(invites)?.open_in_place(nonce, Aad::from(self.transcript), &mut sealed);
        let opened = opened.map_err(|_| Error::WrongCode)?;
        let (Some((key, rest)), malformed) = (opened.split_first_chunk::<32>(), "a key without its parts")
        else {
            return Err(Error::Malformed("a key without its parts"));
        };
        let Some((signature, comment)) = rest.split_first_chunk::<SIGNATURE>() else {
            return Err(Error::Malformed(malformed));
        };
        let key = PublicKey::from_bytes(*key);
        if !key.verify(SIGNED_KEY, &[self.transcript, &[u8::from(invites)]].concat(), signature) {
            return Err(Error::Malformed("the peer does not have the key that it shows"));
        }
        Ok(Introduced { key, comment: crate::shown(&String::from_utf8_lossy(comment)) })
    }
}

/// What is said under a code: as it comes, which nobody has sealed, and sealed by somebody who has the code.
/// Returns whose key came out of the second.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzzed(bytes: &[u8]) -> Option<Introduced> {
    let seal = Seal { shared: &[9; 32], transcript: b"what was said" };
    assert!(matches!(seal.open(bytes, true), Err(Error::WrongCode)), "what nobody sealed is opened");
    let mut message = bytes.to_vec();
    let nonce = Nonce::assume_unique_for_key([0; 12]);
    let key = seal.key(true).expect("a key of 32 bytes");
    key.seal_in_place_append_tag(nonce, Aad::from(seal.transcript), &mut message).expect("a short message");
    seal.open(&message, true).ok()
}

/// What somebody says who is honest, before it is sealed.
#[cfg(feature = "fuzzing")]
pub(crate) fn said(identity: &Identity, comment: &str) -> Result<Vec<u8>> {
    let seal = Seal { shared: &[9; 32], transcript: b"what was said" };
    let mut sealed = seal.close(identity, comment, true)?;
    let nonce = Nonce::assume_unique_for_key([0; 12]);
    let opened = seal.key(true)?.open_in_place(nonce, Aad::from(seal.transcript), &mut sealed);
    opened.map(|plain| plain.to_vec()).map_err(|_| Error::WrongCode)
}

fn send(stream: &mut TcpStream, bytes: &[u8], end: Instant) -> Result<()> {
    stream.set_write_timeout(Some(left(end).max(Duration::from_millis(1))))?;
    stream.write_all(bytes).map_err(|error| Error::socket(error, "while keys were exchanged"))
}

fn send_sealed(stream: &mut TcpStream, sealed: &[u8], end: Instant) -> Result<()> {
    let length = (sealed.len() as u16).to_le_bytes();
    send(stream, &[&length, sealed].concat(), end)
}

fn receive(stream: &mut TcpStream, end: Instant) -> Result<Vec<u8>> {
    let mut length = [0; 2];
    fill(stream, &mut length, end)?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > SEALED_KEY {
        return Err(Error::Oversized { announced: length as u64, allowed: SEALED_KEY as u64 });
    }
    let mut sealed = vec![0; length];
    fill(stream, &mut sealed, end)?;
    Ok(sealed)
}

/// Reads exactly as many bytes, by the `end`.
fn fill(stream: &mut TcpStream, bytes: &mut [u8], end: Instant) -> Result<()> {
    let start = Instant::now();
    crate::meeting::fill(stream, bytes, end).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout {
            after: start.elapsed(),
            awaited: "the peer's part of the key exchange".to_owned(),
        },
        _ => Error::socket(error, "while keys were exchanged"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn there_are_256_words_all_different_and_a_code_is_read_as_people_type_it() {
        let words: BTreeSet<&str> = WORDS.split_whitespace().collect();
        assert_eq!((words.len(), WORDS.split_whitespace().count()), (256, 256));
        let code: Code = "7-walnut-harbour".parse().unwrap();
        for typed in ["7 walnut harbour", " 7-Walnut-Harbour\n", "07_WALNUT.harbour"] {
            assert_eq!(typed.parse::<Code>().unwrap(), code, "{typed}");
        }
        for wrong in [
            "walnut-harbour",
            "7-walnut",
            "7-walnut-harbor",
            "x-walnut-harbour",
            "7-walnut-harbour-tiger",
            "",
        ] {
            assert!(wrong.parse::<Code>().is_err(), "{wrong}");
        }
        assert_eq!(format!("{code:?}"), "Code(7, [secret])");
        let drawn = Code::draw(31);
        assert_eq!(drawn.text().parse::<Code>().unwrap(), drawn);
    }

    #[test]
    fn codes_are_drawn_from_all_words() {
        let mut seen = BTreeSet::new();
        for _ in 0..4000 {
            seen.extend(Code::draw(1).words.split('-').map(str::to_owned));
        }
        assert_eq!(seen.len(), 256);
    }

    /// At a relay callers take turns, and the one who joins waits its own out.
    #[test]
    fn silent_strangers_at_a_relay_keep_nobody_away_for_long() {
        use crate::rendezvous::{Bounds, Relay};
        use std::collections::BTreeSet;
        let cancel = Cancel::armed();
        let relay = Relay::bind("127.0.0.1:0", Bounds::default(), &[], cancel.clone(), |_| ()).unwrap();
        let address = relay.local_addr().unwrap().to_string();
        let place = Place::Relay(address.clone());
        let people = [(); 2].map(|()| Identity::generate().unwrap());
        let (told, vacant) = mpsc::channel();
        let observer = Observer::new(move |event| {
            if let Event::Vacant { vacant, .. } = event {
                told.send(*vacant).unwrap();
            }
        });
        let patience = Patience { wait: Some(Duration::from_secs(120)), ..Patience::default() };
        let joining = Patience { observer, ..patience.clone() };
        std::thread::scope(|scope| {
            scope.spawn(move || relay.serve().unwrap());
            let (tell, code) = mpsc::channel();
            let (inviting, own, waits) = (&place, &people[0], &patience);
            let inviter = scope
                .spawn(move || invite(inviting, own, "one", waits, |code| tell.send(code.clone()).unwrap()));
            let code: Code = code.recv().unwrap();
            // Each says so when it is at the relay, and holds what it has met.
            let (there, arrivals) = mpsc::channel();
            let (held, holds) = mpsc::channel();
            let key = place_key(code.place).unwrap().public();
            for stranger in 0..2 {
                let (there, held, address, patience) = (there.clone(), held.clone(), &address, &patience);
                scope.spawn(move || {
                    let tls = Tls::pinned(&Identity::generate().unwrap(), key).unwrap();
                    let options = patience.options(address, tls);
                    let route = Route::new(address, &options, &mut |_| ()).unwrap();
                    let end = patience.end();
                    let met = route.meet(Part::Connecting, (end, end), &mut |_| {
                        let _ = there.send(stranger);
                    });
                    let _ = there.send(stranger);
                    held.send(met.unwrap()).unwrap();
                });
            }
            let first = holds.recv().unwrap();
            let mut arrived = BTreeSet::new();
            while arrived.len() < 2 {
                arrived.insert(arrivals.recv().unwrap());
            }
            let start = Instant::now();
            let joined = join(&place, &code, &people[1], "two", &joining).unwrap();
            let took = start.elapsed();
            assert_eq!(
                (joined.key, inviter.join().unwrap().unwrap().key),
                (people[0].public(), people[1].public())
            );
            assert!(took < Duration::from_secs(45), "{took:?}");
            let told: Vec<Duration> = vacant.try_iter().collect();
            assert!(told.len() <= 1 && told.iter().all(|vacant| *vacant >= VACANT_TOLD), "{told:?}");
            drop((first, holds));
            cancel.cancel();
        });
    }

    #[test]
    fn the_time_that_is_told_is_the_time_that_was_waited() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let end = later(Instant::now(), Duration::from_millis(300));
        let error = fill(&mut stream, &mut [0; 4], end).unwrap_err();
        let Error::Timeout { after, .. } = error else { panic!("{error}") };
        assert!((Duration::from_millis(200)..Duration::from_secs(5)).contains(&after), "{after:?}");
    }
}
