use super::*;
use crate::circuit::{evaluate, named};
use std::path::{Path, PathBuf};
use tacit_crypto::Block;
use tacit_net::Identity;

const NOBODY: Parties = Parties { sender: None, receiver: None };

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn prepared(name: &str) -> Prepared {
    Prepared::from_function(&named::find(name).unwrap()).unwrap()
}

/// Random inputs of one side.
fn inputs(circuit: &Prepared, owner: Owner, rows: usize, prg: &mut Prg) -> Vec<Vec<BitVec>> {
    let widths: Vec<usize> = (circuit.circuit().shape().inputs.iter().zip(circuit.owners()))
        .filter(|(_, of)| **of == owner)
        .map(|(width, _)| *width as usize)
        .collect();
    (0..rows).map(|_| widths.iter().map(|&width| BitVec::random(width, prg)).collect()).collect()
}

/// The plain result, of circuits whose first inputs are the garbler's.
fn plain(circuit: &Prepared, garbler: &Rows, evaluator: &Rows) -> Vec<Vec<BitVec>> {
    let row = |(mine, theirs): (&Vec<BitVec>, &Vec<BitVec>)| {
        evaluate(circuit.circuit(), &[mine.clone(), theirs.clone()].concat())
    };
    garbler.iter().zip(evaluator).map(row).collect()
}

/// A receiver's folder with its file.
struct Receiver {
    folder: tempfile::TempDir,
    question: Vec<u8>,
}

impl Receiver {
    fn new(exchange: &Exchange<'_>, inputs: &Rows, owner: Option<PublicKey>, prg: &mut Prg) -> Self {
        let (secret, question) = exchange.ask(inputs, owner, prg).unwrap();
        let receiver = Receiver { folder: tempfile::tempdir().unwrap(), question };
        std::fs::write(receiver.path(), &*secret).unwrap();
        receiver
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    fn open(&self, function: Function<'_>, reply: &[u8]) -> Result<Vec<Vec<BitVec>>> {
        open(&self.path(), function, reply)
    }
}

fn open(path: &Path, function: Function<'_>, reply: &[u8]) -> Result<Vec<Vec<BitVec>>> {
    QuestionFile::open(path)?.evaluate(function, reply, None)
}

#[test]
fn functions_of_one_and_many_rows_give_the_plain_result_to_the_receiver_of_any_number_of_senders() {
    let prg = &mut prg(1);
    for (name, rows) in [("millionaires", 1), ("add7", 17), ("mul16", 16), ("aes128", 2), ("eq3", 33)] {
        let circuit = prepared(name);
        let exchange = Exchange::new(Function::Circuit(&circuit), rows).unwrap();
        let mine = inputs(&circuit, Owner::Evaluator, rows, prg);
        let receiver = Receiver::new(&exchange, &mine, None, prg);
        let mut sizes = vec![receiver.question.len() as u64];
        for _ in 0..2 {
            let theirs = inputs(&circuit, Owner::Garbler, rows, prg);
            let reply = exchange.reply(&receiver.question, &NOBODY, &theirs, prg).unwrap();
            let outputs = receiver.open(Function::Circuit(&circuit), &reply).unwrap();
            assert_eq!(outputs, plain(&circuit, &theirs, &mine), "{name}");
            sizes.push(reply.len() as u64);
        }
        sizes.truncate(2);
        assert_eq!(sizes, exchange.message_bytes(), "{name}");
    }
}

#[test]
fn ands_and_inner_products_are_those_of_the_bits() {
    let prg = &mut prg(2);
    for (bits, rows) in [(1, 1), (7, 3), (128, 1), (1001, 2)] {
        let strings = |prg: &mut Prg| -> Vec<Vec<BitVec>> {
            (0..rows).map(|_| vec![BitVec::random(bits as usize, prg)]).collect()
        };
        for function in [Function::And(bits), Function::InnerProduct(bits)] {
            let exchange = Exchange::new(function, rows).unwrap();
            let (mine, theirs) = (strings(prg), strings(prg));
            let receiver = Receiver::new(&exchange, &mine, None, prg);
            let reply = exchange.reply(&receiver.question, &NOBODY, &theirs, prg).unwrap();
            assert_eq!(
                [receiver.question.len() as u64, reply.len() as u64],
                exchange.message_bytes(),
                "{bits}"
            );
            let outputs = receiver.open(function, &reply).unwrap();
            for ((output, x), y) in outputs.iter().zip(&mine).zip(&theirs) {
                let and: Vec<bool> = x[0].iter().zip(y[0].iter()).map(|(x, y)| x && y).collect();
                let sum = and.iter().fold(false, |sum, bit| sum ^ bit);
                let expected = match function {
                    Function::And(_) => BitVec::from_bools(&and),
                    _ => BitVec::from_bools(&[sum]),
                };
                assert_eq!(*output, [expected], "{bits}");
            }
        }
    }
}

/// What the messages of an inner product say beyond it is random: their sum is zero or the product's.
///
/// proof: nisc 8.4
#[test]
fn masks_of_an_inner_product_add_up_to_zero_in_each_row_and_are_new_each_time() {
    let exchange = Exchange::new(Function::InnerProduct(9), 3).unwrap();
    let mine = BitVec::random(27, &mut prg(3));
    let mut seen = Vec::new();
    for seed in 0..8 {
        let [zero, one] = exchange.masked(9, &mine, &mut prg(100 + seed));
        let [zero, mut one] = [zero, one].map(|bytes| BitVec::from_bytes(&bytes, 27));
        for row in 0..3 {
            assert!(!(row * 9..row * 9 + 9).fold(false, |sum, i| sum ^ zero.get(i)));
        }
        one.xor_assign(&zero);
        assert_eq!(one, mine);
        assert!(!seen.contains(&zero));
        seen.push(zero);
    }
}

#[test]
fn what_belongs_to_another_function_or_party_is_refused_and_costs_nothing() {
    let prg = &mut prg(4);
    let [add, sub, other] = ["add8", "sub8", "add9"].map(prepared);
    let one = |function| Exchange::new(function, 1).unwrap();
    let exchange = one(Function::Circuit(&add));
    let mine = inputs(&add, Owner::Evaluator, 1, prg);
    let theirs = inputs(&add, Owner::Garbler, 1, prg);
    let receiver = Receiver::new(&exchange, &mine, None, prg);
    let before = std::fs::read(receiver.path()).unwrap();
    let reply = exchange.reply(&receiver.question, &NOBODY, &theirs, prg).unwrap();
    let says = |result: Result<Vec<u8>>, what: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(what), "{error}: {what}");
    };
    let no_file = |result: Result<Vec<Vec<BitVec>>>, what: &str| says(result.map(|_| Vec::new()), what);
    // Of the same widths, and of others.
    let swapped = Prepared::new(add.circuit().clone(), vec![Owner::Evaluator, Owner::Garbler]).unwrap();
    for circuit in [&sub, &other, &swapped] {
        let theirs = inputs(circuit, Owner::Garbler, 1, prg);
        let function = Function::Circuit(circuit);
        says(one(function).reply(&receiver.question, &NOBODY, &theirs, prg), "another function");
        no_file(receiver.open(function, &reply), "another function");
    }
    let and = [vec![BitVec::zeros(8)]];
    says(one(Function::And(8)).reply(&receiver.question, &NOBODY, &and, prg), "another function");
    let two = Exchange::new(Function::Circuit(&add), 2).unwrap();
    let both = [theirs.clone(), theirs.clone()].concat();
    says(two.reply(&receiver.question, &NOBODY, &both, prg), "another number of rows");
    says(exchange.reply(&receiver.question, &NOBODY, &both, prg), "one input a row");
    says(exchange.reply(&reply, &NOBODY, &theirs, prg), "another kind");
    no_file(receiver.open(Function::Circuit(&add), &receiver.question), "another kind");
    // Another question on the same input; another sender's name; another receiver's.
    let again = Receiver::new(&exchange, &mine, None, prg);
    no_file(again.open(Function::Circuit(&add), &reply), "belongs to another session");
    let alice = Identity::generate().unwrap().public();
    let named = Parties { sender: Some(alice), receiver: None };
    let hers = exchange.reply(&receiver.question, &named, &theirs, prg).unwrap();
    no_file(receiver.open(Function::Circuit(&add), &hers), "other parties");
    let to_alice = Parties { sender: None, receiver: Some(alice) };
    let for_her = exchange.reply(&receiver.question, &to_alice, &theirs, prg).unwrap();
    no_file(receiver.open(Function::Circuit(&add), &for_her), "other parties");
    assert_eq!(std::fs::read(receiver.path()).unwrap(), before);
    assert_eq!(receiver.open(Function::Circuit(&add), &reply).unwrap(), plain(&add, &theirs, &mine));
    assert!(Exchange::new(Function::Circuit(&add), 0).is_err());
    assert!(Exchange::new(Function::And(1 << 24), 2).is_err());
    assert!(Exchange::new(Function::And(u32::MAX), usize::MAX).is_err());
}

/// The message with another byte, and the digest of a forger's at its end.
fn forged(message: &[u8], at: usize, bit: u8) -> Vec<u8> {
    let mut out = message[..message.len() - 32].to_vec();
    out[at] ^= 1 << bit;
    let digest = messages::digest(&out);
    out.extend_from_slice(&digest);
    out
}

/// proof: nisc 8.3
#[test]
fn no_changed_byte_of_any_file_gives_another_result() {
    let prg = &mut prg(5);
    let add = prepared("add2");
    let function = Function::Circuit(&add);
    let exchange = Exchange::new(function, 1).unwrap();
    let mine = inputs(&add, Owner::Evaluator, 1, prg);
    let theirs = inputs(&add, Owner::Garbler, 1, prg);
    let receiver = Receiver::new(&exchange, &mine, None, prg);
    let reply = exchange.reply(&receiver.question, &NOBODY, &theirs, prg).unwrap();
    let secret = std::fs::read(receiver.path()).unwrap();
    let right = plain(&add, &theirs, &mine);
    // Damage: no byte goes unnoticed, nor a cut.
    for at in (0..300).chain((300..receiver.question.len()).step_by(7)) {
        let mut damaged = receiver.question.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(exchange.reply(&damaged, &NOBODY, &theirs, prg).is_err(), "byte {at} of the question");
    }
    let mut file = QuestionFile::open(&receiver.path()).unwrap();
    for at in 0..reply.len() {
        let mut damaged = reply.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = file.evaluate(function, &damaged, None).unwrap_err();
        assert!(!matches!(error, Error::Cheated { .. }), "byte {at} of the reply");
        assert!(at % 64 != 0 || file.evaluate(function, &reply[..at], None).is_err());
    }
    drop(file);
    for at in 0..secret.len() {
        let mut damaged = secret.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(receiver.path(), damaged).unwrap();
        assert!(receiver.open(function, &reply).is_err(), "byte {at} of the secret file");
    }
    // A forger's: refused, or harmless.
    let answer_ends = reply.len() - 32 - long_reply_len(&exchange);
    let steps = (0..answer_ends).step_by(answer_ends / 40).chain(answer_ends..reply.len() - 32);
    for at in steps {
        std::fs::write(receiver.path(), &secret).unwrap();
        let result = receiver.open(function, &forged(&reply, at, (at % 8) as u8));
        if let Ok(outputs) = result {
            assert!(at < answer_ends && outputs == right, "byte {at} of the reply");
        }
    }
    std::fs::write(receiver.path(), &secret).unwrap();
    let question = &receiver.question;
    for at in (0..question.len() - 200).step_by(5003).chain(question.len() - 100..question.len() - 32) {
        let Ok(reply) = exchange.reply(&forged(question, at, 0), &NOBODY, &theirs, prg) else { continue };
        assert!(receiver.open(function, &reply).is_err(), "byte {at} of the question");
    }
    assert_eq!(receiver.open(function, &reply).unwrap(), right);
}

fn long_reply_len(exchange: &Exchange<'_>) -> usize {
    let attached = exchange.attached().unwrap();
    tacit_ot::silent::nisc::long_reply_len(exchange.params(), exchange.width(), attached).unwrap()
}

/// A sender that spoils the label of one value of one input bit is right half of the time, and after its first
/// wrong guess the file opens nothing more, the replies of honest senders included.
///
/// proof: nisc 8.3
#[test]
fn a_spoilt_label_is_a_guess_of_a_bit_and_a_wrong_one_wipes_the_file() {
    let prg = &mut prg(6);
    let circuit = prepared("add8");
    let function = Function::Circuit(&circuit);
    let exchange = Exchange::new(function, 1).unwrap();
    let mut passed = 0;
    for trial in 0..24 {
        let mine = inputs(&circuit, Owner::Evaluator, 1, prg);
        let theirs = inputs(&circuit, Owner::Garbler, 1, prg);
        let receiver = Receiver::new(&exchange, &mine, None, prg);
        let honest = exchange.reply(&receiver.question, &NOBODY, &theirs, prg).unwrap();
        let bit = trial % 8;
        let spoil = |messages: &mut [Zeroizing<Vec<u8>>; 2], _: &mut Vec<u8>| messages[1][16 * bit] ^= 2;
        let bad = exchange.reply_with(&receiver.question, &NOBODY, &theirs, prg, spoil).unwrap();
        let mut file = QuestionFile::open(&receiver.path()).unwrap();
        let result = file.evaluate(function, &bad, None);
        assert_eq!(result.is_ok(), !mine[0][0].get(bit), "trial {trial}");
        let right = plain(&circuit, &theirs, &mine);
        match result {
            Ok(outputs) => {
                assert_eq!(outputs, right);
                passed += 1;
                assert_eq!(file.evaluate(function, &honest, None).unwrap(), right);
            }
            Err(error) => {
                assert!(matches!(error, Error::Cheated { .. }), "{error}");
                assert!(file.evaluate(function, &honest, None).is_err());
                drop(file);
                let later = receiver.open(function, &honest).unwrap_err().to_string();
                assert!(
                    later.contains("failed its check") && later.contains("only to the other senders"),
                    "{later}"
                );
                let left = std::fs::read(receiver.path()).unwrap();
                let key = &left[messages::KEY_AT..messages::KEY_AT + ReceiverKey::LEN];
                assert!(key.ends_with(&[0; 48]), "the seed is gone");
            }
        }
    }
    assert!((4..=20).contains(&passed), "{passed} of 24 guesses were right");
}

/// proof: nisc 8.3
#[test]
fn spoilt_tables_labels_and_hashes_give_no_output_of_any_row() {
    let prg = &mut prg(7);
    let circuit = prepared("mul8");
    let function = Function::Circuit(&circuit);
    let exchange = Exchange::new(function, 3).unwrap();
    let mine = inputs(&circuit, Owner::Evaluator, 3, prg);
    let theirs = inputs(&circuit, Owner::Garbler, 3, prg);
    let receiver = Receiver::new(&exchange, &mine, None, prg);
    let secret = std::fs::read(receiver.path()).unwrap();
    let right = plain(&circuit, &theirs, &mine);
    let attached = exchange.attached().unwrap();
    let (mut caught, places) = (0, [0, 17, 600, attached / 2, attached - 33, attached - 1]);
    for at in places {
        std::fs::write(receiver.path(), &secret).unwrap();
        let spoil = |_: &mut [Zeroizing<Vec<u8>>; 2], attached: &mut Vec<u8>| attached[at] ^= 1;
        let bad = exchange.reply_with(&receiver.question, &NOBODY, &theirs, prg, spoil).unwrap();
        match receiver.open(function, &bad) {
            // What no row uses: half of a gate, a hash of the other value.
            Ok(outputs) => assert_eq!(outputs, right, "byte {at}"),
            Err(error) => {
                assert!(matches!(error, Error::Cheated { .. }), "byte {at}: {error}");
                caught += 1;
            }
        }
    }
    assert!(caught >= 2, "{caught} of {places:?}");
    // Garbled circuits of another size, under a MAC that fits.
    std::fs::write(receiver.path(), &secret).unwrap();
    let longer = |_: &mut [Zeroizing<Vec<u8>>; 2], attached: &mut Vec<u8>| attached.push(0);
    let bad = exchange.reply_with(&receiver.question, &NOBODY, &theirs, prg, longer).unwrap();
    assert!(receiver.open(function, &bad).unwrap_err().to_string().contains("length"));
}

/// Lengths that a file claims and does not have reserve nothing.
#[test]
fn hostile_lengths_are_refused_first() {
    let prg = &mut prg(8);
    let circuit = prepared("add8");
    let exchange = Exchange::new(Function::Circuit(&circuit), 1).unwrap();
    let mine = inputs(&circuit, Owner::Evaluator, 1, prg);
    let theirs = inputs(&circuit, Owner::Garbler, 1, prg);
    let receiver = Receiver::new(&exchange, &mine, None, prg);
    let mut huge = receiver.question.clone();
    huge[BEGIN_OF_ROWS..BEGIN_OF_ROWS + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(Exchange::rows_asked(&huge).unwrap(), u64::MAX);
    assert!(exchange.reply(&huge, &NOBODY, &theirs, prg).is_err());
    // The number of transfers in the public key's header.
    let mut other = receiver.question.clone();
    let count = BEGIN_OF_ROWS + 8 + 13;
    other[count..count + 8].copy_from_slice(&(1u64 << 24).to_le_bytes());
    assert!(exchange.reply(&forged(&other, count, 1), &NOBODY, &theirs, prg).is_err());
    for len in [0, 5, 11, 42, 43, 51, 60, 200] {
        assert!(exchange.reply(&receiver.question[..len], &NOBODY, &theirs, prg).is_err());
        assert!(receiver.open(Function::Circuit(&circuit), &receiver.question[..len]).is_err());
        std::fs::write(receiver.folder.path().join("cut"), &receiver.question[..len]).unwrap();
        assert!(QuestionFile::open(&receiver.folder.path().join("cut")).is_err());
    }
}

const BEGIN_OF_ROWS: usize = tacit_ot::silent::nisc::BEGIN + 32;

/// The number of a row's one output.
fn number(bits: &BitVec) -> u128 {
    bits.iter().enumerate().fold(0, |sum, (i, bit)| sum | u128::from(bit) << i)
}

fn bits(number: u128, width: u32) -> BitVec {
    BitVec::from_bools(&(0..width).map(|i| number >> i & 1 == 1).collect::<Vec<_>>())
}

/// a·b, by shifts of the polynomials and by additions modulo p: apart from the library's arithmetic.
fn times(field: VoleField, a: u128, b: u128) -> u128 {
    (0..128).rev().fold(0, |sum, i| {
        let doubled = plus(field, sum, sum, true);
        if b >> i & 1 == 1 { plus(field, doubled, a, false) } else { doubled }
    })
}

/// a + b, or twice a.
fn plus(field: VoleField, a: u128, b: u128, twice: bool) -> u128 {
    let modulo = |p: u128| {
        let (a, b) = (a % p, b % p);
        if a >= p - b { a - (p - b) } else { a + b }
    };
    match field {
        VoleField::P61 => modulo((1 << 61) - 1),
        VoleField::P128 => modulo(u128::MAX - 158),
        _ if twice => a << 1 ^ if a >> 127 == 1 { 0x87 } else { 0 },
        _ => a ^ b,
    }
}

#[test]
fn reverse_vole_of_every_field_is_v_plus_u_times_delta() {
    let prg = &mut prg(35);
    let gf256 = tacit_ot::vole::subfield::Subfield::new(8).unwrap();
    assert_eq!(gf256.embed(1), Block::ONE);
    for field in ["gf2", "gf4", "gf16", "gf256", "gf128", "p61", "p128"].map(|n| VoleField::named(n).unwrap())
    {
        let (of_u, wide) = (field.input_bits(), field.element_bits());
        let edges = [0, 1, u128::MAX >> (128 - of_u), u128::MAX >> (128 - of_u) << (of_u - 1)];
        let us: Vec<u128> = (edges.into_iter())
            .chain((0..5).map(|_| number(&BitVec::random(of_u as usize, prg))))
            .map(|u| u & (u128::MAX >> (128 - of_u)))
            .collect();
        let function = Function::ReverseVole(field);
        let exchange = Exchange::new(function, us.len()).unwrap();
        let mine: Vec<Vec<BitVec>> = us.iter().map(|u| vec![bits(*u, of_u)]).collect();
        let receiver = Receiver::new(&exchange, &mine, None, prg);
        for delta in [0, 1, u128::MAX >> (128 - wide), number(&BitVec::random(wide as usize, prg))] {
            let vs: Vec<u128> = us.iter().map(|_| number(&BitVec::random(wide as usize, prg))).collect();
            let theirs: Vec<Vec<BitVec>> =
                vs.iter().map(|v| vec![bits(delta, wide), bits(*v, wide)]).collect();
            let reply = exchange.reply(&receiver.question, &NOBODY, &theirs, prg).unwrap();
            assert_eq!([receiver.question.len() as u64, reply.len() as u64], exchange.message_bytes());
            let outputs = receiver.open(function, &reply).unwrap();
            for ((u, v), w) in us.iter().zip(&vs).zip(outputs) {
                let u = match field {
                    VoleField::Gf128 | VoleField::P61 | VoleField::P128 => *u,
                    _ => {
                        let field = tacit_ot::vole::subfield::Subfield::new(of_u as usize).unwrap();
                        field.embed(*u as u8).to_u128()
                    }
                };
                assert_eq!(number(&w[0]), plus(field, *v, times(field, delta, u), false), "{field:?}");
            }
        }
        // Other inputs than the function takes, and another field.
        assert!(exchange.reply(&receiver.question, &NOBODY, &mine, prg).is_err());
        let other = if field == VoleField::P61 { VoleField::P128 } else { VoleField::P61 };
        let other = Exchange::new(Function::ReverseVole(other), us.len()).unwrap();
        let theirs = vec![vec![BitVec::zeros(128); 2]; us.len()];
        assert!(other.reply(&receiver.question, &NOBODY, &theirs, prg).is_err());
    }
}

/// A sender with another Δ for each bit of u gets an affine function of the bits computed, and no reply fails.
///
/// proof: nisc 8.5
#[test]
fn a_sender_with_several_deltas_learns_of_no_refusal() {
    let prg = &mut prg(36);
    let function = Function::ReverseVole(VoleField::P61);
    let exchange = Exchange::new(function, 1).unwrap();
    for _ in 0..8 {
        let u = BitVec::random(61, prg);
        let receiver = Receiver::new(&exchange, &[vec![u.clone()]], None, prg);
        let theirs = [vec![BitVec::zeros(61), BitVec::zeros(61)]];
        let reply = exchange.reply_with(&receiver.question, &NOBODY, &theirs, prg, |planes, _| {
            // Of bit 3 a message beyond the field, of bit 5 one that the others do not make up for.
            planes[1][24..32].fill(0xff);
            planes[1][40] ^= 1;
        });
        assert_eq!(receiver.open(function, &reply.unwrap()).unwrap()[0][0].len(), 61);
        receiver.open(function, &exchange.reply(&receiver.question, &NOBODY, &theirs, prg).unwrap()).unwrap();
    }
}
