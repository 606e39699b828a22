//! Meeting at a port: one side listens at it, and hears all who call at once; the other calls.

use super::{Code, EXCHANGE, GREETING, Heard, Keyed, Patience, WAIT, proof};
use crate::address::resolve;
use crate::crowd::makes_room;
use crate::setup::{later, left};
use crate::tcp::await_fd;
use crate::waiting::Vigil;
use crate::{Error, Party, Result, link::Interest};
use std::io::ErrorKind;
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Callers at a port who are listened to at once.
const AT_ONCE: usize = 64;
/// Between looks at what callers said and whether somebody calls.
const LOOK: Duration = Duration::from_millis(100);
/// How long a port is called, and its name is looked up.
const CALL: Duration = Duration::from_secs(10);

/// What the first caller at a port says that shows whether it has the code. All who are there are listened to at once:
/// one that is silent keeps nobody else away.
pub(super) fn heard(socket: &TcpListener, code: &Code, patience: &Patience, end: Instant) -> Result<Heard> {
    let address = socket.local_addr()?.to_string();
    let (tell, told) = mpsc::channel();
    let (place, start, wait) = (address.clone(), Instant::now(), patience.wait.unwrap_or(WAIT));
    let mut vigil = Vigil::new(&patience.observer, Party::First, proof(code), place, start, Some(wait));
    std::thread::scope(|scope| {
        let mut callers = Callers(Vec::new());
        for number in 0.. {
            let (stream, from) = loop {
                patience.cancel.check()?;
                vigil.go_on(None);
                for (number, heard) in told.try_iter() {
                    let at = callers.0.iter().position(|caller| caller.number == number);
                    let caller = at.map(|at| callers.0.remove(at));
                    if let Some(heard) = heard {
                        // This one is answered.
                        caller.into_iter().for_each(Caller::keep);
                        return Ok(heard);
                    }
                }
                if left(end).is_zero() {
                    return Err(Error::NoPeer { address, after: wait, callers: String::new() });
                }
                await_fd(socket, Interest::Read, LOOK.min(left(end)))?;
                match socket.accept() {
                    Ok(caller) => break caller,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    // Files may be short for a moment.
                    Err(_) => std::thread::sleep(LOOK),
                }
            };
            let Ok(copy) = stream.try_clone() else { continue };
            let keyed = Arc::new(AtomicBool::new(false));
            callers.add(Caller { number, from: from.ip(), stream: Some(copy), keyed: keyed.clone() });
            let tell = tell.clone();
            let listen = move || _ = tell.send((number, Heard::of(stream, code, &keyed)));
            if std::thread::Builder::new().spawn_scoped(scope, listen).is_err() {
                callers.0.pop();
            }
        }
        unreachable!("numbers do not end")
    })
}

/// Who is listened to at a port; hung up on when dropped, which ends the thread that listens.
struct Callers(Vec<Caller>);

struct Caller {
    number: u64,
    from: IpAddr,
    stream: Option<TcpStream>,
    /// It has done its part of SPAKE2, which costs it as much as us.
    keyed: Arc<AtomicBool>,
}

impl Caller {
    /// It is not hung up on.
    fn keep(mut self) {
        self.stream = None;
    }
}

impl Callers {
    /// Where there are many, the one that [makes room](makes_room) is hung up on: of those who only came, if there is
    /// one.
    fn add(&mut self, caller: Caller) {
        if self.0.len() >= AT_ONCE {
            let silent = |at: &usize| !self.0[*at].keyed.load(Ordering::Relaxed);
            let mut from: Vec<usize> = (0..self.0.len()).filter(silent).collect();
            if from.is_empty() {
                from = (0..self.0.len()).collect();
            }
            if let Some(at) = makes_room(from.iter().map(|at| self.0[*at].from)) {
                self.0.remove(from[at]);
            }
        }
        self.0.push(caller);
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            // Whoever has hung up already needs no more.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Calls the one who listens at `address`, tells what it waits for meanwhile, and gives up after [`CALL`].
pub(super) fn called(address: &str, code: &Code, patience: &Patience) -> Result<(TcpStream, Keyed)> {
    let (call, caller) = mpsc::channel();
    let (to, with, limit) = (address.to_owned(), code.clone(), CALL.min(left(patience.end())));
    let calling = move || {
        // Nobody listens any more where the waiting was ended.
        let mut met = |reason: &str| _ = call.send(Err(reason.to_owned()));
        let _ = call.send(Ok(dial(&to, limit, &mut met).and_then(|mut stream| {
            let keyed = Keyed::of(&mut stream, &with, false, EXCHANGE)?;
            Ok((stream, keyed))
        })));
    };
    std::thread::Builder::new().name("tacit-join".to_owned()).spawn(calling)?;
    let (place, start) = (address.to_owned(), Instant::now());
    let mut vigil =
        Vigil::new(&patience.observer, Party::Second, proof(code), place, start, Some(limit + GREETING));
    let mut obstacle = None;
    loop {
        patience.cancel.check()?;
        match caller.recv_timeout(LOOK) {
            Ok(Ok(done)) => return done,
            Ok(Err(reason)) => obstacle = Some(reason),
            Err(mpsc::RecvTimeoutError::Timeout) => vigil.go_on(obstacle.as_deref()),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Error::lost("while keys were exchanged"));
            }
        }
    }
}

/// A connection to `address`, which each of a name's addresses has its part of `limit` to give.
fn dial(address: &str, limit: Duration, met: &mut dyn FnMut(&str)) -> Result<TcpStream> {
    let start = Instant::now();
    let end = later(start, limit);
    let targets = resolve(address, limit, met)?;
    let mut reason = "the name has no address".to_owned();
    for (at, target) in targets.iter().enumerate() {
        let part = left(end) / (targets.len() - at) as u32;
        match TcpStream::connect_timeout(target, part.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(Error::Unreachable { address: address.to_owned(), after: start.elapsed(), reason })
}

#[cfg(test)]
mod tests {
    use super::super::{Introduced, MAGIC, Place, WORDS, invite, join};
    use super::*;
    use crate::Identity;
    use crate::waiting::{Event, Observer};
    use std::io::Write;
    use zeroize::Zeroizing;

    /// Runs `with` while the first of two waits at a port of its own choice; both, and what came of the invitation.
    fn invited(
        with: impl FnOnce(&Code, &Place, &Identity, &Patience),
    ) -> ([Identity; 2], Result<Introduced>) {
        let (tell, told) = mpsc::channel();
        let identities = [(); 2].map(|()| Identity::generate().unwrap());
        let patience = Patience { wait: Some(Duration::from_secs(60)), ..Patience::default() };
        let ended = std::thread::scope(|scope| {
            let inviter = scope.spawn(|| {
                let place = Place::Port("127.0.0.1:0".to_owned());
                invite(&place, &identities[0], "one", &patience, |code| tell.send(code.clone()).unwrap())
            });
            let code: Code = told.recv().unwrap();
            let place = Place::Port(format!("127.0.0.1:{}", code.place));
            with(&code, &place, &identities[1], &patience);
            inviter.join().unwrap()
        });
        (identities, ended)
    }

    /// Who comes in to be silent, before or after a greeting, in whatever number.
    #[test]
    fn silent_callers_keep_nobody_away() {
        let mut joined = None;
        let (identities, invited) = invited(|code, place, identity, patience| {
            let Place::Port(address) = place else { panic!("a port") };
            let silent: Vec<TcpStream> = (0..3 * AT_ONCE)
                .map(|at| {
                    let mut stream = TcpStream::connect(address).unwrap();
                    // Some of them were hung up on already.
                    let _ = stream.write_all(&MAGIC[..if at % 2 == 0 { MAGIC.len() } else { 0 }]);
                    stream
                })
                .collect();
            let start = Instant::now();
            joined = Some(join(place, code, identity, "two", patience).unwrap().key);
            assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
            drop(silent);
        });
        let [one, two] = identities.map(|identity| identity.public());
        assert_eq!((joined, invited.unwrap().key), (Some(one), two));
    }

    #[test]
    fn one_attempt_uses_up_a_code_however_many_callers_there_are() {
        let (_, invited) = invited(|code, place, identity, patience| {
            let guesses: Vec<Code> = WORDS
                .split_whitespace()
                .take(4)
                .map(|word| Code { place: code.place, words: Zeroizing::new(format!("{word}-{word}")) })
                .filter(|guess| guess != code)
                .collect();
            std::thread::scope(|scope| {
                let tries: Vec<_> = guesses
                    .iter()
                    .map(|guess| scope.spawn(move || join(place, guess, identity, "", patience).is_err()))
                    .collect();
                assert!(tries.into_iter().all(|one| one.join().unwrap()));
            });
            assert!(join(place, code, identity, "", patience).is_err());
        });
        assert!(matches!(invited, Err(Error::WrongCode)));
    }

    #[test]
    fn who_waits_with_a_code_hears_so_until_somebody_comes() {
        let (told, heard) = mpsc::channel();
        let observer = Observer::new(move |event| told.send(event.clone()).unwrap());
        let identities = [(); 2].map(|()| Identity::generate().unwrap());
        let patience = Patience { wait: Some(Duration::from_secs(60)), observer, ..Patience::default() };
        let (tell, code) = mpsc::channel();
        std::thread::scope(|scope| {
            let inviter = scope.spawn(|| {
                let place = Place::Port("127.0.0.1:0".to_owned());
                invite(&place, &identities[0], "", &patience, |code| tell.send(code.clone()).unwrap())
            });
            let code: Code = code.recv().unwrap();
            for _ in 0..2 {
                let event = heard.recv_timeout(Duration::from_secs(30)).unwrap();
                let Event::Waiting { party, proof, address, patience, obstacle, .. } = event else {
                    panic!("{event:?}")
                };
                assert_eq!((party, address), (Party::First, format!("127.0.0.1:{}", code.place)));
                assert_eq!((patience, obstacle), (Some(Duration::from_secs(60)), None));
                assert!(proof.contains(&code.place.to_string()) && !proof.contains(&*code.words), "{proof}");
            }
            let place = Place::Port(format!("127.0.0.1:{}", code.place));
            join(&place, &code, &identities[1], "", &Patience::default()).unwrap();
            inviter.join().unwrap().unwrap();
        });
        assert_eq!(heard.try_iter().last(), Some(Event::Over));
    }
}
