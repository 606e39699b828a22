//! What TLS costs KOS: two processes over loopback, plain and TLS in turns.
//!
//! `cargo run --release -p tacit-ot --example kos_over_tls`

use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tacit_crypto::{Block, Prg};
use tacit_net::{Agreement, Identity, Listener, Options, Protection, PublicKey, Tls, connect};
use tacit_ot::base::mrr21::Mrr21;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::{CotReceiver, CotSender};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const COUNT: usize = 1 << 23;
const REPEAT: usize = 4;
const KINDS: [&str; 6] = ["plain", "tls", "plain", "tls", "plain", "tls"];

fn options(kind: &str, folder: &Path, own: &str, peer: &str) -> Outcome<Options> {
    let protection = match kind {
        "plain" => Protection::Plaintext,
        _ => {
            let identity = Identity::load(&folder.join(own).with_extension("key"))?;
            Protection::Tls(Tls::pinned(
                &identity,
                PublicKey::load(&folder.join(peer).with_extension("pub"))?,
            )?)
        }
    };
    Ok(Options::new(Agreement::new("kos over tls", own, peer), protection))
}

fn receiver(folder: &Path, address: &str) -> Outcome<()> {
    let mut out = vec![Block::ZERO; COUNT];
    for kind in KINDS {
        let mut session = connect(address, &options(kind, folder, "receiver", "sender")?)?;
        let channel = session.channel();
        let mut kos = KosReceiver::setup(channel, &Mrr21, &mut Prg::from_os())?;
        for _ in 0..REPEAT {
            kos.extend(channel, &mut out)?;
            channel.send_u64(0)?;
            channel.recv_u64()?;
        }
    }
    Ok(())
}

fn sender(folder: &Path, listener: &Listener) -> Outcome<()> {
    let mut out = vec![Block::ZERO; COUNT];
    for kind in KINDS {
        let mut session = listener.accept(&options(kind, folder, "sender", "receiver")?)?;
        let channel = session.channel();
        let mut kos = KosSender::setup(channel, &Mrr21, &mut Prg::from_os())?;
        let mut times = Vec::new();
        for _ in 0..REPEAT {
            let start = Instant::now();
            kos.extend(channel, &mut out)?;
            channel.recv_u64()?;
            times.push(start.elapsed().as_nanos() as f64 / COUNT as f64);
            channel.send_u64(0)?;
            channel.flush()?;
        }
        // The first run touches its memory for the first time.
        println!("{kind:5} ns an OT: {times:.2?}");
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, folder, address] = arguments.as_slice() {
        return receiver(Path::new(folder), address);
    }
    let folder = std::env::temp_dir().join(format!("tacit-kos-over-tls-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    for name in ["sender", "receiver"] {
        Identity::generate()?.save(&folder.join(name).with_extension("key"), name)?;
    }
    let listener = Listener::bind("127.0.0.1:0")?;
    let mut peer = Command::new(std::env::current_exe()?)
        .arg(&folder)
        .arg(listener.local_addr()?.to_string())
        .spawn()?;
    let outcome = sender(&folder, &listener);
    peer.wait()?;
    std::fs::remove_dir_all(&folder)?;
    outcome
}
