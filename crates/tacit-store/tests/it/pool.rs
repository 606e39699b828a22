//! Pools: what comes out is correlated, once and never again whatever happens, and every damage has its own
//! error.

use crate::common::{Dealer, assert_correlated, prg, run};
use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tacit_crypto::Block;
use tacit_net::memory;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::silent::ferret::{Config, FerretReceiver, FerretSender, Lanes, Params};
use tacit_ot::{CotReceiver, CotSender, Error, Result, Security};
use tacit_store::pool::{
    CHUNK, Header, Pool, PoolError, PoolKey, PoolReceiver, PoolSender, make_receiver, make_sender,
};
use tacit_store::sealed::FileError;
use tempfile::TempDir;

/// Where the copies of the position and the chunks begin, as the format says.
const SLOTS: [usize; 2] = [4096, 8192];
const SLOT: usize = 40;
const CHUNKS: usize = 12_288;
const COUNT: u64 = 2 * CHUNK as u64 + 1000;

fn key(byte: u8) -> PoolKey {
    PoolKey::from_bytes(&[byte; 32]).unwrap()
}

/// Both halves of a pool of `count`, the sender's under key 1, the receiver's under key 2.
fn make(seed: u128, count: u64) -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (mut s, mut r) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
    let (one, two): (Header, Header) = run(
        |channel| {
            let mut prg = prg(seed);
            let mut kos = KosSender::setup(channel, &Dealer(seed), &mut prg)?;
            let mut done = 0;
            let progress = &mut |n| done = n;
            let header = make_sender(
                channel,
                &mut prg,
                &mut kos,
                Security::Malicious,
                count,
                &key(1),
                &mut s,
                progress,
            )?;
            assert_eq!(done, count);
            Ok(header)
        },
        |channel| {
            let mut prg = prg(!seed);
            let mut kos = KosReceiver::setup(channel, &Dealer(seed), &mut prg)?;
            make_receiver(
                channel,
                &mut prg,
                &mut kos,
                Security::Malicious,
                count,
                &key(2),
                &mut r,
                &mut |_| (),
            )
        },
    );
    assert_eq!((one.id, one.count, one.security), (two.id, count, Security::Malicious));
    let (sender, receiver) = (dir.path().join("s.pool"), dir.path().join("r.pool"));
    fs::write(&sender, s.into_inner()).unwrap();
    fs::write(&receiver, r.into_inner()).unwrap();
    (dir, sender, receiver)
}

fn take(sender: &Path, receiver: &Path, sizes: &[usize]) -> (Block, Vec<Block>, Vec<Block>) {
    let ((delta, v), w) = run(
        |channel| {
            let mut pool = PoolSender::setup(channel, Pool::open(sender, &key(1))?)?;
            let mut out = Vec::new();
            for n in sizes {
                let mut piece = vec![Block::ONES; *n];
                pool.extend(channel, &mut piece)?;
                out.extend(piece);
            }
            Ok((pool.delta(), out))
        },
        |channel| {
            let mut pool = PoolReceiver::setup(channel, Pool::open(receiver, &key(2))?)?;
            let mut out = Vec::new();
            for n in sizes {
                let mut piece = vec![Block::ONES; *n];
                pool.extend(channel, &mut piece)?;
                out.extend(piece);
            }
            Ok(out)
        },
    );
    (delta, v, w)
}

fn refusal<T: std::fmt::Debug>(result: Result<T>) -> PoolError {
    match result {
        Err(Error::Store(error)) => *error.downcast().unwrap(),
        other => panic!("a fault of the pool wanted: {other:?}"),
    }
}

/// proof: pools 3.3
#[test]
fn correlations_come_out_once_until_none_is_left() {
    let (_dir, sender, receiver) = make(1, COUNT);
    let mut seen = HashSet::new();
    let mut deltas = HashSet::new();
    for sizes in [&[1, CHUNK - 1, 0, 2][..], &[777], &[CHUNK + 3]] {
        let (delta, v, w) = take(&sender, &receiver, sizes);
        assert_correlated(delta, &v, &w);
        deltas.insert(delta);
        assert!(v.iter().all(|v| seen.insert(*v)), "a correlation came out twice");
    }
    assert_eq!(deltas.len(), 1);
    let used = (CHUNK + 2 + 777 + CHUNK + 3) as u64;
    let left = COUNT - used;
    let mut pool = Pool::open(&sender, &key(1)).unwrap();
    assert_eq!((pool.position(), pool.left()), (used, left));
    pool.skip_to(used).unwrap();
    drop(pool);
    // More than is left: an error, nothing handed out and nothing used up.
    let (s, r) = memory::run(
        |channel| {
            let mut pool = PoolSender::setup(channel, Pool::open(&sender, &key(1)).unwrap()).unwrap();
            let mut out = vec![Block::ONES; left as usize + 1];
            let error = refusal(pool.extend(channel, &mut out));
            assert!(out.iter().all(|b| *b == Block::ZERO));
            pool.extend(channel, &mut out[..left as usize]).unwrap();
            (error, pool.delta(), out)
        },
        |channel| {
            let mut pool = PoolReceiver::setup(channel, Pool::open(&receiver, &key(2)).unwrap()).unwrap();
            let mut out = vec![Block::ONES; left as usize];
            pool.extend(channel, &mut out).unwrap();
            (refusal(pool.extend(channel, &mut [Block::ZERO])), out)
        },
    );
    assert!(
        matches!(s.0, PoolError::Exhausted { wanted, left: l } if wanted == left + 1 && l == left),
        "{:?}",
        s.0
    );
    assert!(matches!(r.0, PoolError::Exhausted { wanted: 1, left: 0 }), "{:?}", r.0);
    assert_correlated(s.1, &s.2[..left as usize], &r.1);
    assert!(s.2[..left as usize].iter().all(|v| seen.insert(*v)));
}

#[test]
fn nothing_secret_stands_in_the_file() {
    let (_dir, sender, receiver) = make(2, 300);
    let (s, r) = (fs::read(&sender).unwrap(), fs::read(&receiver).unwrap());
    let (delta, v, w) = take(&sender, &receiver, &[300]);
    let holds = |file: &[u8], block: &Block| file.windows(16).any(|window| window == block.to_bytes());
    assert!(
        !holds(&s, &delta) && !v[..20].iter().any(|v| holds(&s, v)) && !w[..20].iter().any(|w| holds(&r, w))
    );
    assert!(!format!("{:?}", Pool::open(&sender, &key(1)).unwrap()).contains(&delta.to_hex()));
}

#[test]
fn every_damage_has_its_own_error() {
    let (_dir, sender, _) = make(3, COUNT);
    let whole = fs::read(&sender).unwrap();
    let open = |bytes: &[u8], k| {
        fs::write(&sender, bytes).unwrap();
        Pool::open(&sender, &key(k))
    };
    let changed = |at: usize, to: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= to;
        bytes
    };
    assert!(open(&whole, 1).is_ok());
    assert!(matches!(refusal(open(&whole, 9)), PoolError::File(FileError::WrongKey)));
    assert!(matches!(refusal(open(&whole[..whole.len() - 1], 1)), PoolError::File(FileError::Length { .. })));
    assert!(matches!(refusal(open(&whole[..5000], 1)), PoolError::File(FileError::Length { .. })));
    assert!(matches!(
        refusal(open(&[&whole[..], &[0]].concat(), 1)),
        PoolError::File(FileError::Length { .. })
    ));
    assert!(matches!(refusal(open(&whole[..100], 1)), PoolError::File(FileError::Other { .. })));
    assert!(matches!(refusal(open(&changed(0, 1), 1)), PoolError::File(FileError::Other { .. })));
    for (version, words) in [
        (0, "what older releases made is weaker"),
        (1, "of version 1, and this release reads only version 2: what older releases made is weaker"),
        (3, "reads only version 2; make a new one on both sides"),
    ] {
        let error = refusal(open(&changed(8, 2 ^ version), 1));
        assert!(
            matches!(error, PoolError::File(FileError::Version { found, .. }) if found == version.into())
        );
        assert!(error.to_string().contains(words) && error.to_string().contains("make a new one"), "{error}");
    }
    assert!(matches!(refusal(open(&changed(14, 1), 1)), PoolError::Burnt));
    for at in [12, 13, 15, 16, 23, 24, 55, 56, 87, 88, 119, 120, 135, 136, 151, 152, 183] {
        assert!(
            matches!(
                refusal(open(&changed(at, 1), 1)),
                PoolError::File(FileError::Damaged { what: "header" })
            ),
            "byte {at}"
        );
    }
    // One copy of the position may be lost, not both.
    for at in [SLOTS[0], SLOTS[0] + 20, SLOTS[1], SLOTS[1] + 39] {
        assert_eq!(open(&changed(at, 1), 1).unwrap().position(), 0, "byte {at}");
    }
    let mut both = changed(SLOTS[0], 1);
    both[SLOTS[1]] ^= 1;
    assert!(matches!(
        refusal(open(&both, 1)),
        PoolError::File(FileError::Damaged { what: "both copies of the position" })
    ));
    // A chunk: its correlations are refused, those of the others still come.
    let chunk = CHUNK * 16 + 16;
    let swapped =
        [&whole[..CHUNKS], &whole[CHUNKS + chunk..CHUNKS + 2 * chunk], &whole[CHUNKS + chunk..]].concat();
    for bytes in [changed(CHUNKS + 5, 1), changed(CHUNKS + chunk - 1, 128), swapped] {
        let pool = open(&bytes, 1).unwrap();
        let id = pool.header().id;
        let ((), ()) = memory::run(
            |channel| {
                let mut pool = PoolSender::setup(channel, pool).unwrap();
                let mut out = vec![Block::ONES; CHUNK];
                let error = refusal(pool.extend(channel, &mut out));
                assert!(
                    matches!(error, PoolError::File(FileError::Damaged { what: "a chunk of correlations" })),
                    "{error:?}"
                );
                assert!(out.iter().all(|b| *b == Block::ZERO));
                assert_eq!(pool.pool().position(), CHUNK as u64);
                pool.extend(channel, &mut out).unwrap();
            },
            |channel| {
                channel.recv(&mut [0; 32]).unwrap();
                channel.recv_u64().unwrap();
                channel.send(&id).unwrap();
                channel.send_u64(0).unwrap();
                channel.flush().unwrap();
            },
        );
    }
    assert!(matches!(PoolKey::from_bytes(&[1; 31]), Err(FileError::KeyFile)));
    assert!(matches!(PoolKey::from_bytes(&[1; 4097]), Err(FileError::KeyFile)));
    assert!(matches!(
        refusal(Pool::open(Path::new("/nowhere/at/all"), &key(1))),
        PoolError::File(FileError::Io { .. })
    ));
}

/// proof: pools 2.2
#[test]
fn pools_that_differ_are_told_apart() {
    let (_one, sender, receiver) = make(4, 100);
    let (_two, _, stranger) = make(5, 100);
    let greet = |s: &Path, r: &Path| {
        memory::run(
            |channel| PoolSender::setup(channel, Pool::open(s, &key(1))?).map(|_| ()),
            |channel| PoolReceiver::setup(channel, Pool::open(r, &key(2))?).map(|_| ()),
        )
    };
    let (s, r) = greet(&sender, &stranger);
    assert!(matches!(refusal(s), PoolError::OtherPool { .. }));
    assert!(matches!(refusal(r), PoolError::OtherPool { .. }));
    Pool::open(&receiver, &key(2)).unwrap().skip_to(40).unwrap();
    let (s, r) = greet(&sender, &receiver);
    let s = refusal(s);
    assert!(
        matches!(s, PoolError::Position { ours: 0, theirs: 40 }) && s.to_string().contains("skip to 40"),
        "{s}"
    );
    assert!(matches!(refusal(r), PoolError::Position { ours: 40, theirs: 0 }));
    let mut pool = Pool::open(&sender, &key(1)).unwrap();
    pool.skip_to(40).unwrap();
    assert!(matches!(refusal(pool.skip_to(39)), PoolError::Backward { position: 40, count: 100 }));
    assert!(matches!(refusal(pool.skip_to(101)), PoolError::Backward { .. }));
    // In use by somebody else, and the wrong half.
    assert!(matches!(refusal(Pool::open(&sender, &key(1))), PoolError::File(FileError::Busy)));
    drop(pool);
    let (delta, v, w) = take(&sender, &receiver, &[60]);
    assert_correlated(delta, &v, &w);
    let (r, _) = memory::run(
        |channel| PoolReceiver::setup(channel, Pool::open(&sender, &key(1)).unwrap()).map(|_| ()),
        |_| (),
    );
    assert!(matches!(refusal(r), PoolError::Role { found: "sender", wanted: "receiver" }));
}

/// A crash between any two steps of moving on, torn writes included, never brings a handed-out correlation
/// back.
///
/// proof: pools 3.1
#[test]
fn torn_positions() {
    let (_dir, sender, _) = make(6, 100);
    let old = fs::read(&sender).unwrap();
    Pool::open(&sender, &key(1)).unwrap().skip_to(70).unwrap();
    let new = fs::read(&sender).unwrap();
    // How many bytes of each copy had reached the disk; the second is touched when the first is there.
    for first in 0..=SLOT {
        for second in if first == SLOT { 0..=SLOT } else { 0..=0 } {
            let mut bytes = old.clone();
            bytes[SLOTS[0]..][..first].copy_from_slice(&new[SLOTS[0]..][..first]);
            bytes[SLOTS[1]..][..second].copy_from_slice(&new[SLOTS[1]..][..second]);
            fs::write(&sender, bytes).unwrap();
            let position = Pool::open(&sender, &key(1)).unwrap().position();
            // Nothing is handed out before both are there, and after the first one nothing goes back.
            assert_eq!(position, if first == SLOT { 70 } else { 0 }, "{first} and {second} bytes");
        }
    }
}

/// Kills a process that takes correlations, at any moment, again and again.
///
/// proof: pools 2.3, 3.1
#[test]
fn killed_at_any_time_nothing_comes_out_twice() {
    const TEST: &str = "pool::killed_at_any_time_nothing_comes_out_twice";
    if let Ok(path) = std::env::var("TACIT_POOL_OF_CHILD") {
        return child(Path::new(&path));
    }
    let (_dir, sender, _) = make(7, 400_000);
    let mut seen = HashSet::new();
    let mut kills = 0;
    for round in 0..25 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env("TACIT_POOL_OF_CHILD", &sender)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut lines =
            output.lines().map_while(std::result::Result::ok).filter(|line| line.starts_with("took "));
        let mut taken: Vec<String> = lines.by_ref().take(1 + round % 5).collect();
        std::thread::sleep(Duration::from_micros(370 * round as u64));
        process.kill().unwrap();
        kills += usize::from(!process.wait().unwrap().success());
        taken.extend(lines);
        for line in taken {
            // A line that the kill cut short is none.
            if line.ends_with('.') {
                assert!(seen.insert(line.clone()), "came out twice: {line}");
            }
        }
        let at = Pool::open(&sender, &key(1)).unwrap().position();
        assert!(at >= 7 * seen.len() as u64, "{at} after {} pieces", seen.len());
    }
    assert!(kills >= 20 && seen.len() >= 25, "{kills} kills, {} pieces", seen.len());
}

/// Takes seven at a time and says what it got, until it is killed.
fn child(path: &Path) {
    let pool = Pool::open(path, &key(1)).unwrap();
    let (id, position) = (pool.header().id, pool.position());
    memory::run(
        |channel| {
            let mut pool = PoolSender::setup(channel, pool).unwrap();
            let mut out = [Block::ZERO; 7];
            while pool.extend(channel, &mut out).is_ok() {
                println!("\ntook {}.", out[0].to_hex());
            }
        },
        |channel| {
            channel.send(&id).unwrap();
            channel.send_u64(position).unwrap();
            channel.flush().unwrap();
            channel.recv(&mut [0; 32]).unwrap();
            channel.recv_u64().unwrap();
        },
    );
}

/// The smallest set: what a pool lends to Ferret.
fn config() -> Config {
    let config = |params| Config { params, lanes: Lanes::One, security: Security::Malicious };
    Params::ALL.into_iter().map(config).min_by_key(Config::reserve).unwrap()
}

/// A sender that runs Ferret on the pool's correlations but for what it tells of them: each seed of its trees
/// is another.
struct Lying(PoolSender);

impl CotSender for Lying {
    fn delta(&self) -> Block {
        self.0.delta()
    }

    fn extend(&mut self, channel: &mut tacit_net::Channel, out: &mut [Block]) -> Result<()> {
        self.0.extend(channel, out)?;
        out.iter_mut().for_each(|v| *v ^= Block::new(2));
        Ok(())
    }
}

/// An honest receiver of Ferret on its pool, against a sender that cheats or goes away; `seen` hears how the
/// run ended.
fn against(sender: &Path, receiver: &Path, cheats: bool, seen: impl FnOnce(Result<()>) + Send) {
    let (_, ()) = memory::run(
        |channel| -> Result<()> {
            let mut source = Lying(PoolSender::setup(channel, Pool::open(sender, &key(1)).unwrap())?);
            if !cheats {
                return Ok(());
            }
            let mut ferret = FerretSender::setup(channel, prg(1), config(), &mut source)?;
            ferret.extend(channel, &mut [Block::ZERO; 10])?;
            channel.flush()?;
            // It stays, so that only the check can end the run.
            while channel.recv(&mut [0]).is_ok() {}
            Ok(())
        },
        |channel| {
            let pool = Pool::open(receiver, &key(2)).unwrap();
            let fuse = pool.fuse();
            let mut source = PoolReceiver::setup(channel, pool).unwrap();
            let mut run = |source: &mut PoolReceiver| {
                let mut ferret = FerretReceiver::setup(channel, prg(2), config(), source)?;
                ferret.extend(channel, &mut [Block::ZERO; 10])
            };
            let ended = fuse.watch(run(&mut source));
            if let Err(Error::Cheated { .. }) = &ended {
                let mut out = [Block::ONES; 3];
                assert!(matches!(refusal(source.extend(channel, &mut out)), PoolError::Burnt));
                assert!(out == [Block::ZERO; 3]);
            }
            seen(ended);
        },
    );
}

fn assert_burnt(path: &Path) {
    let error = refusal(Pool::open(path, &key(2)));
    assert!(matches!(error, PoolError::Burnt), "{error}");
    assert!(error.to_string().contains("a check failed") && error.to_string().contains("tacit ot pool make"));
    let left = fs::read(path).unwrap();
    assert!(left.len() == CHUNKS && left[56..152].iter().all(|byte| *byte == 0), "salt or Δ are left");
}

/// proof: pools 2.4
#[test]
fn a_failed_check_burns_the_pool_for_every_later_process() {
    let (_dir, sender, receiver) = make(8, 2 * config().reserve() as u64);
    // A peer that goes away tells nothing, and costs what was taken out.
    against(&sender, &receiver, false, |ended| assert!(matches!(ended, Err(Error::Net(_))), "{ended:?}"));
    let position = Pool::open(&receiver, &key(2)).unwrap().position();
    assert_eq!(position, config().reserve() as u64);
    Pool::open(&sender, &key(1)).unwrap().skip_to(position).unwrap();
    against(&sender, &receiver, true, |ended| {
        assert!(matches!(ended, Err(Error::Cheated { .. })), "{ended:?}");
    });
    assert_burnt(&receiver);
}

/// The receiver's process dies between the mark and the report.
///
/// proof: pools 4.1
#[test]
fn a_crash_before_the_report_leaves_the_pool_burnt() {
    const TEST: &str = "pool::a_crash_before_the_report_leaves_the_pool_burnt";
    if let Some(paths) = std::env::var_os("TACIT_BURNT_POOLS") {
        let dir = Path::new(&paths);
        against(&dir.join("s.pool"), &dir.join("r.pool"), true, |ended| {
            assert!(matches!(ended, Err(Error::Cheated { .. })), "{ended:?}");
            std::process::abort();
        });
    }
    let (dir, _, receiver) = make(9, config().reserve() as u64);
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST])
        .env("TACIT_BURNT_POOLS", dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "{status}");
    assert_burnt(&receiver);
}

/// However much of the mark has reached the disk: the pool is as before, as nothing was reported then, or it
/// opens no more.
///
/// proof: pools 4.1
#[test]
fn torn_marks() {
    let (_dir, _, receiver) = make(10, 100);
    let old = fs::read(&receiver).unwrap();
    Pool::open(&receiver, &key(2)).unwrap().fuse().burn().unwrap();
    assert_burnt(&receiver);
    let new = fs::read(&receiver).unwrap();
    for bytes in 0..=184 {
        fs::write(&receiver, [&new[..bytes], &old[bytes..]].concat()).unwrap();
        let opened = Pool::open(&receiver, &key(2));
        if bytes <= 14 {
            assert_eq!(opened.unwrap().position(), 0);
        } else {
            assert!(matches!(refusal(opened), PoolError::Burnt), "{bytes} bytes");
        }
    }
}

/// A source whose check fails at the second piece.
struct Failing(usize);

impl CotReceiver for Failing {
    fn extend(&mut self, _: &mut tacit_net::Channel, _: &mut [Block]) -> Result<()> {
        self.0 += 1;
        if self.0 == 1 { Ok(()) } else { Err(Error::Cheated { protocol: "test", what: "a check" }) }
    }
}

/// Whoever keeps the file of a pool whose making failed, whatever is added to it, has no pool.
///
/// proof: pools 2.1
#[test]
fn a_pool_whose_making_fails_is_none() {
    let (count, mut out) = ((1 << 20) + 1, Cursor::new(Vec::new()));
    let (_, made) = memory::run(
        |channel| {
            channel.send_block(Block::ONES)?;
            channel.flush()?;
            channel.recv_block()
        },
        |channel| {
            let (mut prg, mut source) = (prg(1), Failing(0));
            let security = Security::Malicious;
            make_receiver(channel, &mut prg, &mut source, security, count, &key(2), &mut out, &mut |_| ())
        },
    );
    assert!(matches!(made, Err(Error::Cheated { .. })));
    let mut bytes = out.into_inner();
    assert!(bytes.len() > 1 << 24, "the first piece was written");
    bytes.resize(CHUNKS + (count as usize).div_ceil(CHUNK) * (CHUNK * 16 + 16), 0);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.pool");
    fs::write(&path, bytes).unwrap();
    assert!(matches!(refusal(Pool::open(&path, &key(2))), PoolError::File(FileError::Other { .. })));
}

/// An old copy put back: an honest peer says that its position is ahead, a cheating one says ours and gets
/// the same again.
///
/// proof: pools 3.4
#[test]
fn who_notices_an_old_copy() {
    let (_dir, sender, receiver) = make(11, 100);
    let old = fs::read(&sender).unwrap();
    let (_, first, _) = take(&sender, &receiver, &[40]);
    fs::write(&sender, &old).unwrap();
    let (s, r) = memory::run(
        |channel| PoolSender::setup(channel, Pool::open(&sender, &key(1))?).map(|_| ()),
        |channel| PoolReceiver::setup(channel, Pool::open(&receiver, &key(2))?).map(|_| ()),
    );
    let [s, r] = [refusal(s), refusal(r)];
    assert!(matches!(s, PoolError::Position { ours: 0, theirs: 40 }), "{s}");
    assert!(
        s.to_string().contains("a cheating peer would not reveal") && r.to_string().contains("skip to 40")
    );
    let id = Pool::open(&sender, &key(1)).unwrap().header().id;
    let (again, _) = memory::run(
        |channel| {
            let mut pool = PoolSender::setup(channel, Pool::open(&sender, &key(1)).unwrap()).unwrap();
            let mut out = [Block::ZERO; 40];
            pool.extend(channel, &mut out).unwrap();
            out
        },
        |channel| {
            channel.send(&id)?;
            channel.send_u64(0)?;
            channel.flush()?;
            channel.recv(&mut [0; 32])?;
            channel.recv_u64()
        },
    );
    assert_eq!(again[..], first[..], "what the docs warn of");
}
