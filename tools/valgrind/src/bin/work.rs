//! The main jobs with fixed seeds, for callgrind to count the instructions of each.
//!
//! `make work`. Both parties run in this process, over a link in memory and without a thread more than one each,
//! so that counts hardly differ between two runs and do not depend on the machine's cores.
#![forbid(unsafe_code)]

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use tacit_2pc::authenticated::{Demand, Session, buckets::Level};
use tacit_2pc::circuit::named;
use tacit_2pc::{OutputTo, Owner, Prepared, semi_honest, wmk17};
use tacit_crypto::{BitVec, Block, Prg, workers};
use tacit_data::csv::Options as Csv;
use tacit_data::keys::Named;
use tacit_data::records::{KeySpec, Normalisation};
use tacit_data::table::Source;
use tacit_net::{Channel, LinkModel, Party};
use tacit_ot::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender};
use tacit_ot::silent::bcgikrs19::{Code, Config, SilentReceiver, SilentSender};
use tacit_ot::silent::ferret::setup::{receivers, senders};
use tacit_ot::silent::ferret::{self, Lanes, Params};
use tacit_ot::{CotReceiver, CotSender, Security, base};
use tacit_psi::circuit::{self, Reveal};
use tacit_psi::oprf;
use tacit_psi::oprf::private::{self, Private};
use tacit_psi::oprf::tags::{self, TagFile, Terms};
use tacit_psi::payload::{self, Duplicates, Side, Table};
use tacit_psi::sorted;
use tacit_psi::vole_psi::{self, Learns, Options};
use tacit_store::sealed::FileKey;
use tacit_valgrind::{request, wire};

/// A job's name, and its run in a folder of its own.
type Job = (&'static str, fn(&Path));

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

/// A side of an intersection: its elements, of which the peer has half, and what it knows of the job.
fn side<T: Send>(
    n: u64,
    security: Security,
    run: impl Fn(&mut Channel, &mut Prg, &[[u8; 32]], &Options<'_>) -> T + Sync,
) -> (T, T) {
    let party = |channel: &mut Channel| {
        let me = channel.party() == Party::Second;
        let first = if me { n / 2 } else { 0 };
        let elements: Vec<[u8; 32]> = (first..first + n)
            .map(|number| {
                let mut element = [0; 32];
                prg(u128::from(number) + 1000).fill_bytes(&mut element);
                element
            })
            .collect();
        let learns = if me { Learns::Peer } else { Learns::Me };
        let base = base::default();
        let options =
            Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
        run(channel, &mut prg(2 + u128::from(me)), &elements, &options)
    };
    wire::run(party, party)
}

fn rows(security: Security) {
    let (found, _) = side(1000, security, |channel, prg, elements, options| {
        vole_psi::run(channel, prg, elements, options, &mut |_, _, _| ()).expect("both are honest")
    });
    assert_eq!(found.matches.map(|matches| matches.len()), Some(500));
}

fn payload(security: Security) {
    let (found, _) = side(300, security, |channel, prg, elements, options| {
        let mut table = Table::new(["a", "b"]).expect("two names");
        for element in 0..elements.len() as u32 {
            table.push(element, [Some(&b"a cell"[..]), Some(&b"another"[..])]).expect("two cells");
        }
        let side = match options.learns {
            Learns::Me => Side::Asks(&["b"]),
            _ => Side::Gives(&table, Duplicates::Refuse),
        };
        payload::run(channel, prg, elements, side, options, &mut |_, _, _| ()).expect("both are honest")
    });
    assert_eq!(found.received.map(|received| received.matches.len()), Some(150));
}

fn count(security: Security, n: u64) {
    let aggregate = match security {
        Security::SemiHonest => circuit::aggregate,
        Security::Malicious => sorted::aggregate,
    };
    let (found, _) = side(n, security, |channel, prg, elements, options| {
        let run = aggregate(channel, prg, elements, Reveal::Count, 0.into(), options, &mut |_, _, _| ());
        run.expect("both are honest").result
    });
    assert!(matches!(found, Some(circuit::Aggregate::Count(count)) if count == n / 2));
}

/// `n` correlations of streams that the sides set up.
fn correlated<S: CotSender, R: CotReceiver>(
    n: usize,
    sender: impl FnOnce(&mut Channel, &mut Prg) -> tacit_ot::Result<S> + Send,
    receiver: impl FnOnce(&mut Channel, &mut Prg) -> tacit_ot::Result<R> + Send,
) {
    let (sent, received) = wire::run(
        |channel| sender(channel, &mut prg(2))?.extend(channel, &mut vec![Block::ZERO; n]),
        |channel| receiver(channel, &mut prg(3))?.extend(channel, &mut vec![Block::ZERO; n]),
    );
    sent.and(received).expect("both are honest");
}

fn base_ot(name: &str) {
    const N: usize = 128;
    let ot = base::by_name(name).expect("a base OT");
    let choices = BitVec::random(N, &mut prg(1));
    let (sent, received) = wire::run(
        |channel| ot.send(channel, &mut prg(2), &mut vec![[Block::ZERO; 2]; N]),
        |channel| ot.receive(channel, &mut prg(3), &choices, &mut vec![Block::ZERO; N]),
    );
    sent.and(received).expect("both are honest");
}

fn kos() {
    let base = base::default();
    let receiver = |channel: &mut Channel, prg: &mut Prg| KosReceiver::setup(channel, &*base, prg);
    correlated(20_000, |channel, prg| KosSender::setup(channel, &*base, prg), receiver);
}

fn ferret() {
    let config = ferret::Config { params: Params::E, lanes: Lanes::One, security: Security::Malicious };
    let base = base::default();
    correlated(
        20_000,
        |channel, prg| Ok(senders(channel, &*base, prg, config, 1)?.remove(0)),
        |channel, prg| Ok(receivers(channel, &*base, prg, config, 1)?.remove(0)),
    );
}

fn silent() {
    let config = Config { code: Code::QuasiCyclic, security: Security::Malicious };
    let base = base::default();
    correlated(
        3000,
        |channel, prg| SilentSender::setup(channel, &*base, prg, config),
        |channel, prg| SilentReceiver::setup(channel, &*base, prg, config),
    );
}

fn function(name: &str) -> Prepared {
    Prepared::from_function(&named::find(name).expect("a function")).expect("a circuit")
}

fn yao() {
    let function = function("aes128");
    let rows = |seed| vec![vec![BitVec::random(128, &mut prg(seed))]; 2];
    let base = base::default();
    let (garbled, evaluated) = wire::run(
        |channel| {
            let mut prg = prg(3);
            let mut cot = IknpSender::setup(channel, &*base, &mut prg).expect("an honest receiver");
            semi_honest::garble(channel, &mut cot, &function, &rows(1), OutputTo::Both, &mut prg)
        },
        |channel| {
            let mut cot = IknpReceiver::setup(channel, &*base, &mut prg(4)).expect("an honest sender");
            semi_honest::evaluate(channel, &mut cot, &function, &rows(2), OutputTo::Both)
        },
    );
    assert!(garbled.expect("honest") == evaluated.expect("honest"));
}

fn authenticated() {
    let function = function("add32");
    let config = Demand::of(&function).ferret(&LinkModel::LOOPBACK, Level::ALONE);
    let base = base::default();
    let party = |channel: &mut Channel, role: Owner, seed| {
        let mut session = Session::setup(channel, role, &*base, config, &mut prg(seed))?;
        session.run(channel, &function, OutputTo::Both, &BitVec::random(32, &mut prg(seed + 2)))
    };
    let (a, b) =
        wire::run(|channel| party(channel, Owner::Garbler, 1), |channel| party(channel, Owner::Evaluator, 2));
    assert!(a.expect("honest") == b.expect("honest"));
}

fn cut_and_choose() {
    let function = function("add32");
    let job = wmk17::Job::new(&function, OutputTo::Evaluator);
    let base = base::default();
    let input = |seed| BitVec::random(32, &mut prg(seed));
    let (garbled, evaluated) = wire::run(
        |channel| {
            let mut prg = prg(1);
            wmk17::Garbler::setup(channel, &*base, &mut prg)?.run(channel, &job, &input(3), &mut prg)
        },
        |channel| {
            let mut prg = prg(2);
            wmk17::Evaluator::setup(channel, &*base, &mut prg)?.run(channel, &job, &input(4), &mut prg)
        },
    );
    garbled.expect("honest");
    assert!(evaluated.expect("honest").is_some());
}

/// A file of tags is published, and a client asks for some of them.
fn query(folder: &Path) {
    let elements: Vec<[u8; 8]> = (0..256u64).map(u64::to_le_bytes).collect();
    let (tag_path, private_path) = (folder.join("set.tags"), folder.join("set.oprf"));
    let key = || FileKey::from_bytes(&[7; 32]).expect("32 bytes");
    let terms = Terms { lifetime: 1000, per_client: 1000, key: String::new() };
    let mut prg = prg(1);
    let mut out = File::create(&tag_path).expect("a file");
    let published = tags::publish(&mut out, &elements, terms, NonZeroUsize::MIN, &mut prg, &mut |_| ());
    let mut out = File::create(&private_path).expect("a file");
    private::create(&mut out, &published.expect("a publication"), &key(), &mut prg).expect("a key");
    drop(out);
    let private = Mutex::new(Private::open(&private_path, &key()).expect("the key"));
    let mut file = TagFile::open(File::open(&tag_path).expect("a file")).expect("tags");
    let (publication, digest) = (file.publication().clone(), *file.digest());
    let (served, tags) = wire::run(
        |channel| {
            let client = private::client(None);
            oprf::serve(channel, &mut self::prg(2), &private, &client, u64::MAX, &mut |_| ())
        },
        |channel| {
            let asked = &elements[..64];
            oprf::query(channel, &mut self::prg(3), &publication, &digest, asked, &mut |_| ())
        },
    );
    served.expect("an honest client");
    let found = file.contains(&tags.expect("an honest server")).expect("an answer");
    assert_eq!(oprf::matches(&found).len(), 64);
}

/// Reads a table's keys: e-mail addresses, with other columns behind them.
fn read(folder: &Path, kind: &str, quote: &str) {
    let path = folder.join("table.csv");
    let line = |row: u32| {
        let cell = |text: &str| format!("{quote}{text}{quote}");
        let cells = [&format!("User{row}@Example.com"), "Lindqvist", "12 Elm Street", "Utrecht"].map(cell);
        cells.join(",") + "\n"
    };
    let text: String = (0..3000).map(line).collect();
    std::fs::write(&path, "k,name,street,city\n".to_owned() + &text).expect("a file");
    let named = [Named::parse(&format!("k:{kind}")).expect("a type")];
    let spec = KeySpec::named(named, Normalisation::default());
    let keys = workers::limited(1, || {
        Source::open(&path, spec, Csv::default()).expect("a table").read_keys(|_| ()).expect("keys")
    });
    assert_eq!(keys.elements().len(), 3000);
}

const JOBS: &[Job] = &[
    ("base OT mrr21", |_| base_ot("mrr21")),
    ("base OT roted", |_| base_ot("roted")),
    ("ot kos", |_| kos()),
    ("ot ferret", |_| ferret()),
    ("ot silent", |_| silent()),
    ("psi rows vole semi-honest", |_| rows(Security::SemiHonest)),
    ("psi rows vole malicious", |_| rows(Security::Malicious)),
    ("psi payload malicious", |_| payload(Security::Malicious)),
    ("psi count semi-honest", |_| count(Security::SemiHonest, 100)),
    ("psi count malicious", |_| count(Security::Malicious, 4)),
    ("eval yao", |_| yao()),
    ("eval authenticated", |_| authenticated()),
    ("eval wmk17", |_| cut_and_choose()),
    ("tags", query),
    ("csv text", |folder| read(folder, "text", "")),
    ("csv email quoted", |folder| read(folder, "email", "\"")),
];

fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    for (name, job) in JOBS {
        if !only.is_empty() && !only.iter().any(|only| name.starts_with(only.as_str())) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        request::restart_count();
        job(folder.path());
        request::write_count(name);
        println!("{name}");
    }
}
