//! OT extension over loopback TCP, two parties in two threads: `ot_extension [n] [repeats]`.
//!
//! Prints for each protocol the median wall time an OT over the repeats, the least and the largest, and each
//! party's CPU time. Protocols alternate; setup is apart and buffers are pre-faulted.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;
use tacit_crypto::{Block, Prg};
use tacit_net::tcp::TcpLink;
use tacit_net::{Channel, Party, SessionId};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::code::{LinearCode, MatrixCode};
use tacit_ot::extension::softspoken::Groups;
use tacit_ot::extension::{
    IknpReceiver, IknpSender, KosReceiver, KosSender, OosReceiver, OosSender, SoftReceiver, SoftSender,
};
use tacit_ot::{CotReceiver, CotSender, RotReceiver, RotSender, Security, base};

type Fault = Box<dyn std::error::Error + Send + Sync>;

fn channels() -> Result<(Channel, Channel), Fault> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let second = TcpStream::connect(listener.local_addr()?)?;
    let (first, _) = listener.accept()?;
    let id = SessionId([5; 32]);
    let link = |stream| TcpLink::new(stream).map(Box::new);
    Ok((Channel::new(link(first)?, Party::First, id), Channel::new(link(second)?, Party::Second, id)))
}

/// CPU time of this thread in nanoseconds, 0 where the system does not say.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}

struct Times {
    name: String,
    bytes: f64,
    wall: Vec<f64>,
    cpu: [Vec<f64>; 2],
}

/// Times one run of both parties, in nanoseconds an OT.
fn time(
    times: &mut Times,
    n: usize,
    channels: &mut (Channel, Channel),
    first: impl FnOnce(&mut Channel) -> tacit_ot::Result<()> + Send,
    second: impl FnOnce(&mut Channel) -> tacit_ot::Result<()> + Send,
) -> Result<(), Fault> {
    let (a, b) = channels;
    let before = b.stats().bytes_sent;
    let start = Instant::now();
    let (one, two) = std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            let result = second(b);
            (result, cpu())
        });
        let mine = scope.spawn(move || {
            let result = first(a);
            (result, cpu())
        });
        (mine.join(), other.join())
    });
    times.wall.push(start.elapsed().as_nanos() as f64 / n as f64);
    for (party, joined) in [one, two].into_iter().enumerate() {
        let (result, cpu) = joined.map_err(|_| "a party panicked")?;
        result?;
        times.cpu[party].push(cpu / n as f64);
    }
    times.bytes = (channels.1.stats().bytes_sent - before) as f64 / n as f64;
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn main() -> Result<(), Fault> {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let n = numbers.first().copied().unwrap_or(1 << 23);
    let repeats = numbers.get(1).copied().unwrap_or(5);
    let mut channels = channels()?;
    let (mut iknp, mut iknp_rot) = pairs(
        &mut channels,
        |c, p| IknpSender::setup(c, &*base::default(), p),
        |c, p| IknpReceiver::setup(c, &*base::default(), p),
    )?;
    let (mut kos, mut kos_rot) = pairs(
        &mut channels,
        |c, p| KosSender::setup(c, &*base::default(), p),
        |c, p| KosReceiver::setup(c, &*base::default(), p),
    )?;
    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::concatenated(64));
    let ((mut oos_s, mut oos_r), _) = pairs(
        &mut channels,
        |c, p| OosSender::<2, 6>::setup(c, &*base::default(), code.clone(), p).map(Box::new),
        |c, p| OosReceiver::<2, 6>::setup(c, &*base::default(), code.clone(), p).map(Box::new),
    )?;
    let mut soft = Vec::new();
    for groups in Groups::ALL {
        soft.push(pairs(
            &mut channels,
            |c, p| SoftSender::setup(c, &*base::default(), p, Security::Malicious, groups),
            |c, p| SoftReceiver::setup(c, &*base::default(), p, Security::Malicious, groups),
        )?);
    }
    let rows = n / 4;
    let mut table: Vec<Times> = [
        "IKNP cot",
        "IKNP rot",
        "KOS cot",
        "KOS rot",
        "OOS [768,231]",
        "Soft 2 cot",
        "Soft 2 rot",
        "Soft 4 cot",
        "Soft 4 rot",
        "Soft 8 cot",
        "Soft 8 rot",
    ]
    .map(|name| Times { name: name.into(), bytes: 0.0, wall: vec![], cpu: [vec![], vec![]] })
    .into();
    let mut sent = vec![[Block::ONES; 2]; n];
    let mut got = vec![Block::ONES; n];
    let mut sender_rows = vec![[Block::ONES; 6]; rows];
    let mut receiver_rows = vec![[Block::ONES; 6]; rows];
    let inputs: Vec<[Block; 2]> = (0..rows as u128).map(|i| [Block::new(i * 77), Block::new(i)]).collect();
    for repeat in 0..=repeats {
        let cots = &mut sent.as_flattened_mut()[..n];
        time(&mut table[0], n, &mut channels, |c| iknp.0.extend(c, cots), |c| iknp.1.extend(c, &mut got))?;
        let cots = &mut sent.as_flattened_mut()[..n];
        time(&mut table[2], n, &mut channels, |c| kos.0.extend(c, cots), |c| kos.1.extend(c, &mut got))?;
        let second = |c: &mut Channel| iknp_rot.1.extend(c, &mut got).map(drop);
        time(&mut table[1], n, &mut channels, |c| iknp_rot.0.extend(c, &mut sent), second)?;
        let second = |c: &mut Channel| kos_rot.1.extend(c, &mut got).map(drop);
        time(&mut table[3], n, &mut channels, |c| kos_rot.0.extend(c, &mut sent), second)?;
        let second = |c: &mut Channel| oos_r.extend(c, &inputs, &mut receiver_rows);
        time(&mut table[4], rows, &mut channels, |c| oos_s.extend(c, &mut sender_rows), second)?;
        for ((cot, rot), [times, rot_times]) in soft.iter_mut().zip(table[5..].as_chunks_mut::<2>().0) {
            let ((sender, receiver), (rot_sender, rot_receiver)) = (cot, rot);
            let cots = &mut sent.as_flattened_mut()[..n];
            time(times, n, &mut channels, |c| sender.extend(c, cots), |c| receiver.extend(c, &mut got))?;
            let second = |c: &mut Channel| rot_receiver.extend(c, &mut got).map(drop);
            time(rot_times, n, &mut channels, |c| rot_sender.extend(c, &mut sent), second)?;
        }
        if repeat == 0 {
            // The first round warms up.
            for times in &mut table {
                times.wall.clear();
                times.cpu.iter_mut().for_each(Vec::clear);
            }
        }
    }
    println!("{n} OTs ({rows} rows of OOS), {repeats} repeats, ns an OT:");
    println!("protocol        median   least   most   CPU sender  receiver  bytes/OT");
    for t in &table {
        let bound = |f: fn(f64, f64) -> f64| t.wall.iter().copied().reduce(f).unwrap_or(0.0);
        println!(
            "{:14} {:7.2} {:7.2} {:6.2} {:12.2} {:9.2} {:9.3}",
            t.name,
            median(&t.wall),
            bound(f64::min),
            bound(f64::max),
            median(&t.cpu[0]),
            median(&t.cpu[1]),
            t.bytes
        );
    }
    Ok(())
}

type Both<S, R> = ((S, R), (CotToRot<S>, CotToRot<R>));

/// Two setups of one protocol, one of them as random OT.
fn pairs<S: Send, R: Send>(
    channels: &mut (Channel, Channel),
    sender: impl Fn(&mut Channel, &mut Prg) -> tacit_ot::Result<S> + Sync,
    receiver: impl Fn(&mut Channel, &mut Prg) -> tacit_ot::Result<R> + Sync,
) -> Result<Both<S, R>, Fault> {
    let mut once = || {
        let (a, b) = &mut *channels;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| receiver(b, &mut Prg::from_os()));
            let mine = sender(a, &mut Prg::from_os());
            Ok::<_, Fault>((mine?, other.join().map_err(|_| "the receiver panicked")??))
        })
    };
    let (plain, (s, r)) = (once()?, once()?);
    Ok((plain, (CotToRot::new(s), CotToRot::new(r))))
}
