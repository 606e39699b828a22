//! A proxy between two parties that damages what passes.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the party that connects.
    ToListener,
    /// From the party that listens.
    ToConnector,
}

/// What happens to the bytes at an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// One byte is XORed with this mask.
    Flip(u8),
    /// So many bytes vanish.
    Drop(usize),
    /// So many bytes come twice in a row.
    Duplicate(usize),
    /// So many bytes change places with as many that follow them.
    Reorder(usize),
    /// So many made-up bytes (0x5a) are put in.
    Insert(usize),
    /// The connection ends, both ways.
    Truncate,
    /// Everything waits for so long.
    Stall(Duration),
}

/// One fault. Offsets count the bytes of one direction of each connection, as they arrive at the proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Which way the bytes go that are harmed.
    pub direction: Direction,
    /// Where the harm begins.
    pub offset: u64,
    /// The harm.
    pub harm: Harm,
}

/// A running proxy. It serves connections until it is dropped; those under way go on until they end.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    rules: Vec<Rule>,
    to_listener: AtomicU64,
    to_connector: AtomicU64,
    struck: AtomicU64,
    stop: AtomicBool,
}

/// How long a fault that needs more bytes waits for them before it lets go of those it has.
const PATIENCE: Duration = Duration::from_millis(50);

impl Proxy {
    /// A proxy on a free loopback port that passes on to `target`.
    pub fn start(target: SocketAddr, rules: Vec<Rule>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            rules,
            to_listener: AtomicU64::new(0),
            to_connector: AtomicU64::new(0),
            struck: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let serving = shared.clone();
        std::thread::spawn(move || {
            while let Ok((inner, _)) = listener.accept() {
                if serving.stop.load(Ordering::SeqCst) {
                    return;
                }
                // A connection that cannot be passed on closes: one more fault for the parties to meet.
                let _ = join(&serving, inner, target);
            }
        });
        Ok(Proxy { address, shared })
    }

    /// Where to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes that arrived at the proxy for a direction, over all connections.
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.shared.counter(direction).load(Ordering::SeqCst)
    }

    /// Faults that really happened.
    pub fn struck(&self) -> u64 {
        self.shared.struck.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts; if it is gone already, all the better.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

impl Shared {
    fn counter(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::ToListener => &self.to_listener,
            Direction::ToConnector => &self.to_connector,
        }
    }
}

fn join(shared: &Arc<Shared>, inner: TcpStream, target: SocketAddr) -> Result<()> {
    let outer = TcpStream::connect(target)?;
    for stream in [&inner, &outer] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
    }
    let ways = [
        (Direction::ToListener, inner.try_clone()?, outer.try_clone()?),
        (Direction::ToConnector, outer, inner),
    ];
    for (direction, from, to) in ways {
        let shared = shared.clone();
        std::thread::spawn(move || {
            let mut way = Way::new(&shared, direction, to);
            // A party that leaves ends the way; the other one notices by itself.
            if way.run(from).is_err() {
                let _ = way.to.shutdown(Shutdown::Both);
            } else {
                let _ = way.to.shutdown(Shutdown::Write);
            }
        });
    }
    Ok(())
}

/// One direction of one connection.
struct Way<'a> {
    shared: &'a Shared,
    direction: Direction,
    to: TcpStream,
    rules: Vec<Rule>,
    position: u64,
    /// Bytes that a fault waits with, and how many it wants.
    held: Vec<u8>,
    wanted: usize,
}

impl<'a> Way<'a> {
    fn new(shared: &'a Shared, direction: Direction, to: TcpStream) -> Self {
        let mut rules: Vec<_> =
            shared.rules.iter().filter(|rule| rule.direction == direction).copied().collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.offset));
        Way { shared, direction, to, rules, position: 0, held: Vec::new(), wanted: 0 }
    }

    fn run(&mut self, mut from: TcpStream) -> Result<()> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return self.let_go(),
                Ok(n) => {
                    self.shared.counter(self.direction).fetch_add(n as u64, Ordering::SeqCst);
                    if self.pass(&buffer[..n])? {
                        let _ = from.shutdown(Shutdown::Both);
                        return Err(ErrorKind::ConnectionAborted.into());
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    self.let_go()?
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.let_go()?;
                    return Err(error);
                }
            }
        }
    }

    /// No more bytes come for the fault under way: passes on what it holds as it is.
    fn let_go(&mut self) -> Result<()> {
        self.wanted = 0;
        self.to.write_all(&std::mem::take(&mut self.held))
    }

    /// Passes bytes on with their faults; true when the connection is to end.
    fn pass(&mut self, mut bytes: &[u8]) -> Result<bool> {
        while !bytes.is_empty() {
            let next = self.rules.last().copied();
            if self.wanted > 0 {
                let step = bytes.len().min(self.wanted - self.held.len());
                self.held.extend_from_slice(&bytes[..step]);
                bytes = &bytes[step..];
                self.position += step as u64;
                if self.held.len() == self.wanted {
                    self.strike()?;
                }
                continue;
            }
            let until = next.map_or(u64::MAX, |rule| rule.offset.saturating_sub(self.position));
            let step = bytes.len().min(usize::try_from(until).unwrap_or(usize::MAX));
            self.to.write_all(&bytes[..step])?;
            bytes = &bytes[step..];
            self.position += step as u64;
            let Some(rule) = next.filter(|_| !bytes.is_empty()) else { continue };
            match rule.harm {
                Harm::Flip(_) => self.wanted = 1,
                Harm::Drop(n) | Harm::Duplicate(n) => self.wanted = n.max(1),
                Harm::Reorder(n) => self.wanted = 2 * n.max(1),
                Harm::Truncate => {
                    self.shared.struck.fetch_add(1, Ordering::SeqCst);
                    return Ok(true);
                }
                Harm::Insert(n) => {
                    self.strike()?;
                    self.to.write_all(&vec![0x5a; n])?;
                }
                Harm::Stall(pause) => {
                    self.strike()?;
                    std::thread::sleep(pause);
                }
            }
        }
        Ok(false)
    }

    /// The bytes of the fault under way are together: harms them and passes on what is left.
    fn strike(&mut self) -> Result<()> {
        self.wanted = 0;
        let mut held = std::mem::take(&mut self.held);
        let Some(rule) = self.rules.pop() else { return Ok(()) };
        self.shared.struck.fetch_add(1, Ordering::SeqCst);
        match rule.harm {
            Harm::Flip(mask) => held.iter_mut().for_each(|byte| *byte ^= mask),
            Harm::Drop(_) => held.clear(),
            Harm::Duplicate(n) => held.extend_from_within(..n.min(held.len())),
            Harm::Reorder(n) => held.rotate_left(n),
            Harm::Insert(_) | Harm::Truncate | Harm::Stall(_) => {}
        }
        self.to.write_all(&held)
    }
}
