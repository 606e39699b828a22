//! Secrets marked undefined: under memcheck each branch and each index on one of them is a fault, and so is each
//! on anything computed from them, until it is sent (the idea of ctgrind, Langley 2010).
//!
//! `make undefined`. Every case runs whole, both parties with secrets of their own: seeds, choices, inputs, keys.
//! What is public and was computed from a secret without being sent is declared by `public`, with the reason.
//! The first case is a branch on a secret, which must be found.
#![forbid(unsafe_code)]

use std::hint::black_box;
use tacit_2pc::authenticated::{Demand, Session, buckets::Level};
use tacit_2pc::circuit::named;
use tacit_2pc::{OutputTo, Owner, Prepared, semi_honest};
use tacit_crypto::field::{F61, F128, Field};
use tacit_crypto::group::{Points, Scalars, Table};
use tacit_crypto::hash::{self, Mitccrh};
use tacit_crypto::{BitVec, Block, Prg, commit, gf128, transcript::Transcript};
use tacit_net::{Channel, Identity, LinkModel};
use tacit_ot::convert::{CotToRot, Derandomised, RotToOt};
use tacit_ot::extension::softspoken::Groups;
use tacit_ot::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender};
use tacit_ot::extension::{SoftReceiver, SoftSender};
use tacit_ot::ole::{Bit, Gf128, OleReceiver, OleSender, Ring, Word};
use tacit_ot::silent::bcgikrs19::{Code, Config, SilentReceiver, SilentSender};
use tacit_ot::silent::ferret::setup::{receivers, senders};
use tacit_ot::silent::ferret::{self, Lanes, Params};
use tacit_ot::vole::{Gf128Receiver, Gf128Sender, SilentVoleReceiver, SilentVoleSender};
use tacit_ot::{
    BaseOt, ChosenCotReceiver, ChosenCotSender, CotReceiver, CotSender, RotReceiver, RotSender, Security,
    VoleReceiver, VoleSender, base,
};
use tacit_store::sealed::{FileKey, Keys, Purpose};
use tacit_valgrind::request::{self, undefined};
use tacit_valgrind::wire;

#[global_allocator]
static ALLOCATOR: request::Forgetting = request::Forgetting;

/// A case's name, and what it does with secrets.
type Case = (&'static str, fn());

/// The same value, which nobody may branch on any more.
fn secret<T: Copy>(value: T) -> T {
    let value = [black_box(value)];
    undefined(&value);
    black_box(value)[0]
}

/// Declares a value that is public.
fn public<T: Copy>(value: T) -> T {
    let value = [black_box(value)];
    request::defined(&value);
    black_box(value)[0]
}

fn public_bits(bits: &BitVec) -> &BitVec {
    request::defined(bits.blocks());
    bits
}

/// A generator with a secret seed.
fn prg(seed: u128) -> Prg {
    Prg::from_seed(secret(Block::new(seed)))
}

/// The test is over: what the parties hold is compared.
fn shown(blocks: &[Block]) -> &[Block] {
    request::defined(blocks);
    blocks
}

fn secret_bits(len: usize, seed: u128) -> BitVec {
    let bits = BitVec::random(len, &mut Prg::from_seed(Block::new(seed)));
    undefined(bits.blocks());
    bits
}

/// Base OTs out of nothing, for what is set up by them: theirs are cases of their own, and take long.
struct Dealt;

impl BaseOt for Dealt {
    fn name(&self) -> &'static str {
        "dealt"
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn send(&self, _: &mut Channel, _: &mut Prg, out: &mut [[Block; 2]]) -> tacit_ot::Result<()> {
        prg(1000).fill_blocks(out.as_flattened_mut());
        Ok(())
    }

    fn receive(
        &self,
        channel: &mut Channel,
        random: &mut Prg,
        choices: &BitVec,
        out: &mut [Block],
    ) -> tacit_ot::Result<()> {
        let mut pairs = vec![[Block::ZERO; 2]; out.len()];
        self.send(channel, random, &mut pairs)?;
        for ((out, [zero, one]), choice) in out.iter_mut().zip(pairs).zip(choices.iter()) {
            *out = zero ^ (zero ^ one) & Block::mask(choice);
        }
        Ok(())
    }
}

fn base_ot(name: &str) {
    const N: usize = 9;
    let ot = base::by_name(name).expect("a base OT");
    let choices = secret_bits(N, 1);
    let (mut pairs, mut chosen) = ([[Block::ZERO; 2]; N], [Block::ZERO; N]);
    let (sent, received) = wire::run(
        |channel| ot.send(channel, &mut prg(2), &mut pairs),
        |channel| ot.receive(channel, &mut prg(3), &choices, &mut chosen),
    );
    sent.and(received).expect("both are honest");
    shown(pairs.as_flattened());
    for ((pair, chosen), choice) in pairs.iter().zip(shown(&chosen)).zip(public_bits(&choices).iter()) {
        assert!(*chosen == pair[usize::from(choice)]);
    }
}

/// Correlations of a stream that each side sets up: w = v ⊕ u·Δ.
fn correlated<S: CotSender, R: CotReceiver>(
    n: usize,
    sender: impl FnOnce(&mut Channel, &mut Prg) -> tacit_ot::Result<S> + Send,
    receiver: impl FnOnce(&mut Channel, &mut Prg) -> tacit_ot::Result<R> + Send,
) {
    let (sent, received) = wire::run(
        |channel| {
            let mut sender = sender(channel, &mut prg(2))?;
            let mut out = vec![Block::ZERO; n];
            sender.extend(channel, &mut out)?;
            Ok::<_, tacit_ot::Error>((sender.delta(), out))
        },
        |channel| {
            let mut receiver = receiver(channel, &mut prg(3))?;
            let mut out = vec![Block::ZERO; n];
            receiver.extend(channel, &mut out)?;
            Ok::<_, tacit_ot::Error>(out)
        },
    );
    let ((delta, v), w) = (sent.expect("an honest sender"), received.expect("an honest receiver"));
    let delta = shown(&[delta])[0];
    assert!(shown(&v).iter().zip(shown(&w)).all(|(v, w)| *w == *v ^ (delta & Block::mask(w.lsb()))));
}

fn silent(security: Security) {
    let config = Config { code: Code::QuasiCyclic, security };
    correlated(
        300,
        |channel, prg| SilentSender::setup(channel, &Dealt, prg, config),
        |channel, prg| SilentReceiver::setup(channel, &Dealt, prg, config),
    );
}

fn ferret(security: Security) {
    let config = ferret::Config { params: Params::E, lanes: Lanes::One, security };
    correlated(
        300,
        |channel, prg| Ok(senders(channel, &Dealt, prg, config, 1)?.remove(0)),
        |channel, prg| Ok(receivers(channel, &Dealt, prg, config, 1)?.remove(0)),
    );
}

fn transfers() {
    const N: usize = 200;
    let choices = secret_bits(N, 5);
    let (sent, received) = wire::run(
        |channel| {
            let mut sender = KosSender::setup(channel, &Dealt, &mut prg(2))?;
            let mut random = CotToRot::new(sender.fork());
            let mut pairs = vec![[Block::ZERO; 2]; N];
            random.extend(channel, &mut pairs)?;
            let mut out = vec![Block::ZERO; N];
            Derandomised::new(sender.fork()).extend_chosen(channel, &mut out)?;
            Ok::<_, tacit_ot::Error>(pairs)
        },
        |channel| {
            let mut receiver = KosReceiver::setup(channel, &Dealt, &mut prg(3))?;
            let mut random = CotToRot::new(receiver.fork());
            let mut chosen = vec![Block::ZERO; N];
            let choices_of = random.extend(channel, &mut chosen)?;
            let mut out = vec![Block::ZERO; N];
            Derandomised::new(receiver.fork()).extend_chosen(channel, &choices, &mut out)?;
            Ok::<_, tacit_ot::Error>((choices_of, chosen))
        },
    );
    let (pairs, (bits, chosen)) = (sent.expect("an honest sender"), received.expect("an honest receiver"));
    shown(pairs.as_flattened());
    let mut all = pairs.iter().zip(shown(&chosen)).zip(public_bits(&bits).iter());
    assert!(all.all(|((pair, chosen), bit)| *chosen == pair[usize::from(bit)]));
}

/// Strings, short ones and those that a stream of pads covers.
fn strings() {
    const LENGTHS: [usize; 4] = [1, 16, 17, 5000];
    let choices = secret_bits(LENGTHS.len(), 5);
    let pairs = LENGTHS.map(|length| [1u8, 2].map(|byte| vec![byte; length]));
    pairs.iter().flatten().for_each(|string| undefined(string));
    let (sent, received) = wire::run(
        |channel| {
            let sender = KosSender::setup(channel, &Dealt, &mut prg(2))?;
            RotToOt::new(CotToRot::new(sender)).send_strings(channel, &pairs)
        },
        |channel| {
            let receiver = KosReceiver::setup(channel, &Dealt, &mut prg(3))?;
            RotToOt::new(CotToRot::new(receiver)).receive_strings(channel, &choices, &LENGTHS)
        },
    );
    sent.expect("an honest sender");
    for (string, choice) in received.expect("an honest receiver").iter().zip(public_bits(&choices).iter()) {
        request::defined(string);
        assert!(string.iter().all(|byte| *byte == 1 + u8::from(choice)));
    }
}

fn vole_gf128(security: Security) {
    const N: usize = 300;
    let (sent, received) = wire::run(
        |channel| {
            let mut v = vec![Block::ZERO; N];
            Gf128Sender::setup(channel, &Dealt, &mut prg(2), security)?.extend(channel, &mut v)
        },
        |channel| {
            let (mut u, mut w) = (vec![Block::ZERO; N], vec![Block::ZERO; N]);
            let mut receiver = Gf128Receiver::setup(channel, &Dealt, &mut prg(3), security)?;
            receiver.extend(channel, &mut u, &mut w)
        },
    );
    sent.and(received).expect("both are honest");
}

fn vole_prime<F: Field>(security: Security) {
    const N: usize = 50;
    let delta = F::from_block(secret(Block::new(77)));
    let (sent, received) = wire::run(
        |channel| {
            let mut v = [F::ZERO; N];
            SilentVoleSender::setup(channel, &Dealt, &mut prg(2), delta, security)?.extend(channel, &mut v)
        },
        |channel| {
            let (mut u, mut w) = ([F::ZERO; N], [F::ZERO; N]);
            let mut receiver = SilentVoleReceiver::setup(channel, &Dealt, &mut prg(3), security)?;
            receiver.extend(channel, &mut u, &mut w)
        },
    );
    sent.and(received).expect("both are honest");
}

/// Products of random factors, in both directions.
fn ole<R: Ring>() {
    const N: usize = 3;
    let (sent, received) = wire::run(
        |channel| {
            let (mut x, mut s) = ([R::default(); N], [R::default(); N]);
            let rot = CotToRot::new(KosSender::setup(channel, &Dealt, &mut prg(2))?);
            OleSender::new(rot).extend(channel, &mut x, &mut s)?;
            Ok::<_, tacit_ot::Error>([x, s])
        },
        |channel| {
            let (mut y, mut t) = ([R::default(); N], [R::default(); N]);
            let rot = CotToRot::new(KosReceiver::setup(channel, &Dealt, &mut prg(3))?);
            OleReceiver::new(rot).extend(channel, &mut y, &mut t)?;
            Ok::<_, tacit_ot::Error>([y, t])
        },
    );
    let ([x, s], [y, t]) = (sent.expect("an honest sender"), received.expect("an honest receiver"));
    for i in 0..N {
        let mut off = [1; 16];
        (s[i] + t[i] - x[i] * y[i]).write(&mut off[..R::BYTES]);
        request::defined(&off);
        assert!(off[..R::BYTES].iter().all(|byte| *byte == 0));
    }
}

fn hashing() {
    let mut prg = prg(1);
    let mut blocks = vec![Block::ZERO; 77];
    prg.fill_blocks(&mut blocks);
    let mut out = vec![Block::ZERO; 77];
    hash::ccr_into(&blocks, &mut out);
    black_box((hash::ccr(blocks[0]), hash::tccr(blocks[1], Block::new(2))));
    // The start is public; what is hashed is not.
    let mitccrh = Mitccrh::new(Block::new(5));
    [1, 2, 3, 8].into_iter().for_each(|each| mitccrh.hash_blocks(9, each, &mut blocks));
    let mut pairs = vec![[Block::ZERO; 2]; 77];
    mitccrh.cot_to_rot_sender(3, secret(Block::new(6)), &blocks, &mut pairs);
    mitccrh.cot_to_rot_receiver(3, &blocks, &mut out);
    let mut digests = vec![[0; 32]; 19];
    hash::blake3_keyed(&secret([3; 32]), 64, &vec![secret([7; 64]); 19], &mut digests);
    let mut transcript = Transcript::new("test");
    transcript.append_blocks("secret", &blocks);
    black_box(transcript.challenge_block("more"));
    let (commitment, opening) = commit::commit(b"test", &secret([1; 40]), &mut prg);
    // A commitment is sent, and so is its opening before it is looked at.
    let (commitment, opening) =
        (commit::Commitment(public(commitment.0)), commit::Opening(public(opening.0)));
    assert!(commit::verify(b"test", &[1; 40], &commitment, &opening));
}

fn arithmetic() {
    let mut prg = prg(1);
    let mut blocks = vec![Block::ZERO; 64];
    prg.fill_blocks(&mut blocks);
    black_box(gf128::inner_product(&blocks[..32], &blocks[32..]));
    black_box(blocks.iter().fold(F61::ZERO, |sum, block| sum + F61::from_block(*block)));
    black_box(blocks.iter().fold(F128::ONE, |product, block| product * F128::from_block(*block)));
    black_box(BitVec::from_lsbs(&blocks).split([3, 61]));
}

fn group() {
    const N: usize = 9;
    let mut prg = prg(1);
    let scalars = Scalars::random(N, &mut prg);
    let mut uniform = [[0; 64]; N];
    prg.fill_bytes(uniform.as_flattened_mut());
    let points = Points::from_uniform(&uniform);
    let base = Points::mul_base(&scalars);
    let bits = secret_bits(N, 4);
    let chosen = Points::select(&points, &base, &bits).add(&points).sub(&base).neg();
    let table = Table::new(&Points::mul_base(&Scalars::random(1, &mut prg)), N);
    black_box((chosen.mul(&scalars).encode(), table.mul(&scalars).encode(), scalars.invert().to_bytes()));
}

fn function(name: &str) -> Prepared {
    Prepared::from_function(&named::find(name).expect("a function")).expect("a circuit")
}

fn yao() {
    let function = function("aes128");
    let rows = |seed| vec![vec![secret_bits(128, seed)]; 2];
    let (mine, theirs) = (rows(1), rows(2));
    let (garbled, evaluated) = wire::run(
        |channel| {
            let mut prg = prg(3);
            let mut cot = IknpSender::setup(channel, &Dealt, &mut prg).expect("an honest receiver");
            semi_honest::garble(channel, &mut cot, &function, &mine, OutputTo::Both, &mut prg)
        },
        |channel| {
            let mut cot = IknpReceiver::setup(channel, &Dealt, &mut prg(4)).expect("an honest sender");
            semi_honest::evaluate(channel, &mut cot, &function, &theirs, OutputTo::Both)
        },
    );
    let (mine, theirs) = (garbled.expect("honest"), evaluated.expect("honest"));
    for row in mine.iter().chain(&theirs).flatten() {
        row.iter().for_each(|value| _ = public_bits(value));
    }
    assert!(mine.is_some() && mine == theirs);
}

fn authenticated() {
    let function = function("add8");
    let config = Demand::of(&function).ferret(&LinkModel::LOOPBACK, Level::ALONE);
    let party = |channel: &mut Channel, role: Owner, seed| {
        let mut prg = prg(seed);
        let mut session = Session::setup(channel, role, &Dealt, config, &mut prg)?;
        session.run(channel, &function, OutputTo::Both, &secret_bits(8, seed))
    };
    let (a, b) =
        wire::run(|channel| party(channel, Owner::Garbler, 1), |channel| party(channel, Owner::Evaluator, 2));
    let (a, b) = (a.expect("honest").expect("an output"), b.expect("honest").expect("an output"));
    assert!(public_bits(&a) == public_bits(&b));
}

fn sealing() {
    const PURPOSE: Purpose = Purpose { sealing: "test: seal", mac: "test: mac", check: "test: check" };
    let key = FileKey::from_bytes(&secret([5; 32])).expect("32 bytes");
    let keys = Keys::new(&key, &[1; 32], &PURPOSE).expect("a key");
    let mut bytes = secret([9u8; 1000]).to_vec();
    let tag = keys.seal(1, 2, b"context", &mut bytes).expect("a sealed text");
    // What is sealed is written, and so is its tag.
    request::defined(&bytes);
    bytes.extend(public(tag));
    let opened = keys.open(1, 2, b"context", &mut bytes, "text").expect("what was sealed");
    request::defined(opened);
    assert!(opened.iter().all(|byte| *byte == 9));
}

fn key_handling() {
    let identity = Identity::of_secret("test", &secret([8; 32])).expect("a key");
    let signature = identity.sign("test", b"message").expect("a signature");
    black_box((identity.derive("test"), FileKey::from_identity(&identity)));
    let public_key = tacit_net::PublicKey::from_bytes(public(identity.public().to_bytes()));
    assert!(public_key.verify("test", b"message", &public(signature)));
}

/// Returns at the first byte that differs, as no comparison of secrets may.
fn early() {
    let (a, b) = (secret([1u8; 16]), secret([1u8; 16]));
    black_box(a.iter().zip(&b).position(|(a, b)| black_box(*a) != black_box(*b)));
}

const CASES: &[Case] = &[
    ("control", early),
    ("hashing", hashing),
    ("arithmetic", arithmetic),
    ("group", group),
    ("base OT co15", || base_ot("co15")),
    ("base OT csw20", || base_ot("csw20")),
    ("base OT mr19", || base_ot("mr19")),
    ("base OT mrr21", || base_ot("mrr21")),
    ("base OT roted", || base_ot("roted")),
    ("iknp", || {
        let receiver = |channel: &mut Channel, prg: &mut Prg| IknpReceiver::setup(channel, &Dealt, prg);
        correlated(300, |channel, prg| IknpSender::setup(channel, &Dealt, prg), receiver);
    }),
    ("kos", || {
        let receiver = |channel: &mut Channel, prg: &mut Prg| KosReceiver::setup(channel, &Dealt, prg);
        correlated(300, |channel, prg| KosSender::setup(channel, &Dealt, prg), receiver);
    }),
    ("softspoken, drawn", || {
        for groups in Groups::ALL {
            correlated(
                300,
                |channel, prg| SoftSender::setup(channel, &Dealt, prg, Security::Malicious, groups),
                |channel, prg| SoftReceiver::setup(channel, &Dealt, prg, Security::Malicious, groups),
            );
        }
    }),
    ("softspoken, by hash", || {
        let security = Security::Malicious;
        correlated(
            300,
            |channel, prg| SoftSender::begin(channel, &Dealt, prg, security, Groups::default())?(channel),
            |channel, prg| SoftReceiver::begin(channel, &Dealt, prg, security, Groups::default())?(channel),
        );
    }),
    ("random and chosen OTs", transfers),
    ("strings", strings),
    ("silent, semi-honest", || silent(Security::SemiHonest)),
    ("silent, malicious", || silent(Security::Malicious)),
    ("ferret, semi-honest", || ferret(Security::SemiHonest)),
    ("ferret, malicious", || ferret(Security::Malicious)),
    ("vole gf128, semi-honest", || vole_gf128(Security::SemiHonest)),
    ("vole gf128, malicious", || vole_gf128(Security::Malicious)),
    ("vole f61, malicious", || vole_prime::<F61>(Security::Malicious)),
    ("vole f128, malicious", || vole_prime::<F128>(Security::Malicious)),
    ("ole bits", ole::<Bit>),
    ("ole words", ole::<Word>),
    ("ole gf128", ole::<Gf128>),
    ("ole f61", ole::<F61>),
    ("ole f128", ole::<F128>),
    ("yao", yao),
    ("authenticated", authenticated),
    ("sealing", sealing),
    ("key handling", key_handling),
];

fn main() {
    if !request::is_running() {
        eprintln!("error: this is for valgrind; run `make undefined`");
        std::process::exit(2);
    }
    let only: Vec<String> = std::env::args().skip(1).collect();
    let mut failed = 0;
    for (name, case) in CASES {
        if !only.is_empty() && !only.iter().any(|only| name.starts_with(only.as_str())) {
            continue;
        }
        let before = request::faults();
        eprintln!("== {name}");
        case();
        let found = request::faults() - before;
        let is_right = (found > 0) == (*name == "control");
        println!("{name}: {found}{}", if is_right { "" } else { " (wrong)" });
        failed += u32::from(!is_right);
    }
    std::process::exit(i32::from(failed > 0));
}
