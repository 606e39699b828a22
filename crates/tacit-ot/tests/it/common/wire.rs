//! Records what two parties write, for the tests of digests.
#![allow(dead_code)]

use tacit_crypto::simd::Backend;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::memory::{self, Record};
use tacit_net::{Channel, LinkModel, Party, SessionId};
use tacit_ot::base::roted::ParameterSet;
use tacit_ot::{BaseOt, Result};

/// The kind of frames with a protocol's bytes.
const DATA: u8 = 0xD7;

/// Runs a protocol and describes it in one line: bytes each way, digest of the wire and of the outputs.
pub(crate) fn line(
    name: &str,
    first: impl FnOnce(&mut Channel) -> Result<Vec<u8>> + Send,
    second: impl FnOnce(&mut Channel) -> Result<Vec<u8>> + Send,
) -> String {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let records: [Record; 2] = Default::default();
    let party = |link, party, record: &Record| Channel::new(record.of(link), party, SessionId([3; 32]));
    let mut one = party(a, Party::First, &records[0]);
    let mut two = party(b, Party::Second, &records[1]);
    let outputs = std::thread::scope(|scope| {
        let other = scope.spawn(move || second(&mut two).unwrap());
        let mine = first(&mut one).unwrap();
        drop(one);
        [mine, other.join().unwrap()]
    });
    let data = |(kind, payload)| (kind == DATA).then_some(payload);
    let wire =
        records.map(|record| record.frames().into_iter().filter_map(data).flatten().collect::<Vec<u8>>());
    let mut hasher = blake3::Hasher::new();
    for part in wire.iter().chain(&outputs) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    format!("{name} {}+{} {}\n", wire[0].len(), wire[1].len(), hasher.finalize().to_hex())
}

/// One line of the recorded digests of a base OT with parameters, over a channel.
pub(crate) fn base_ot_line(ot: &(dyn BaseOt + Sync), set: ParameterSet, n: usize) -> String {
    let prg = |seed| Prg::from_seed(Block::new(seed));
    let choices = BitVec::random(n, &mut prg(1));
    line(
        &format!("{} {set:?} {n}", ot.name()),
        |channel| {
            let mut pairs = vec![[Block::ZERO; 2]; n];
            ot.send(channel, &mut prg(2), &mut pairs)?;
            Ok(Block::as_bytes(pairs.as_flattened()).to_vec())
        },
        |channel| {
            let mut chosen = vec![Block::ZERO; n];
            ot.receive(channel, &mut prg(3), &choices, &mut chosen)?;
            Ok(Block::as_bytes(&chosen).to_vec())
        },
    )
}

/// The digests of a base OT with parameters in each of `sets`, as recorded.
pub(crate) fn assert_base_ot_is_as_recorded<O: BaseOt + Sync>(
    of_set: impl Fn(ParameterSet) -> O,
    sets: &[ParameterSet],
    recorded: &str,
) {
    let mut lines = String::new();
    for set in sets {
        for n in [1, 128] {
            lines += &base_ot_line(&of_set(*set), *set, n);
        }
    }
    assert_eq!(lines, recorded, "the wire format changed; if on purpose, raise the version");
}

/// Runs the test called `name`, its module included, again under every backend: it is chosen once a process.
pub(crate) fn assert_passes_on_every_backend(name: &str) {
    for backend in Backend::available() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", name]).env("TACIT_SIMD", backend.name());
        let said = again.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && text.contains("1 passed"), "{}: {text}", backend.name());
    }
}
