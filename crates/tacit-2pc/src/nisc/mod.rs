//! Functions by two messages that are files: the receiver publishes a question on its input, any number of senders
//! answer with a file each, and the receiver alone learns each result.
//!
//! Source: BCGIKRS19, section 3.2, whose list of functions this follows. (4) A function as a circuit is reduced to
//! (1), oblivious transfer of strings, by a garbled circuit: Yao's, with half-gates (2014/756), of which the
//! receiver gets the labels of its input. (2) The AND of two strings of bits is one transfer of a bit for each
//! position, of 0 or of the sender's bit; (3) the inner product over GF(2) is the same under masks whose sum is
//! zero. Reverse VOLE is the product of a vector of the receiver's and a number of the sender's ([`VoleField`]). The
//! transfers are those of [`tacit_ot::silent::nisc`], whose keys, answers and replies these messages hold.
//!
//! | paper | here |
//! | --- | --- |
//! | R.Gen, R.Expand_in, R.Msg | [`Exchange::ask`] |
//! | S.Gen, S.Expand, S.Msg | [`Exchange::reply`] |
//! | R.Expand_out, R.Dec | [`QuestionFile::evaluate`] |
//!
//! - **Against a malicious receiver**: the transfers fix its input before anything is garbled, and it alone gets an
//!   output. So it learns the function of one input for each reply, and nothing else.
//! - **Against a malicious sender**: its view is the question, which hides the input as that of the transfers does.
//!   What it garbles nobody checks. It can make the receiver compute any other function of its input; one that fails
//!   for some inputs tells the sender of them if it sees the failure. So the result is one to trust only from a
//!   sender that keeps to the protocol: for the sender's side, semi-honest. Of an AND and of an inner product it
//!   can flip bits of the result, in reverse VOLE have another Δ for each bit of u, and guess at the key as in any
//!   transfer: no reply of theirs fails for some inputs.
//! - **A failed check spends the question**, as in the transfers: an answer that fails, and a garbled circuit whose
//!   outputs are none of the sender's labels. [`QuestionFile`] wipes its file before it says so.
//! - **Whose a message is**: sender and receiver are bound as in the transfers; function and number of rows are in
//!   the context of all hashes, and by name in each message.
//! - **Bytes**: the question is a public key and a bit for each bit of the receiver's input. A reply is an answer,
//!   and for each row 32 an AND gate, 16 a bit of the sender's input, 32 a bit of the receiver's and 32 an output
//!   bit; of an AND or inner product 2 bits a position; of reverse VOLE 32 a bit of u, 16 modulo 2^61 − 1.

mod file;
mod garbled;
mod messages;
mod vole;

#[cfg(feature = "fuzzing")]
pub use file::evaluate_once;
pub use file::{QuestionFile, is_secret};
pub use vole::VoleField;

use crate::parties::slots_of;
use crate::semi_honest::flatten_for;
use crate::{Error, Owner, Prepared, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Prg};
use tacit_net::PublicKey;
use tacit_ot::Security;
use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::silent::nisc::{Chosen, Params, Parties, ReceiverKey, SenderKey, Width};
use zeroize::Zeroizing;

const PROTOCOL: &str = "nisc eval";

/// The most bits of the receiver's input, over all rows.
pub const LARGEST: usize = 1 << 24;

/// What is computed.
#[derive(Clone, Copy)]
pub enum Function<'a> {
    /// A circuit, by garbling: the sender is [`Owner::Garbler`], the receiver [`Owner::Evaluator`].
    Circuit(&'a Prepared),
    /// The AND of two strings of so many bits.
    And(u32),
    /// The inner product of two such strings over GF(2): whether they share an odd number of ones.
    InnerProduct(u32),
    /// Reverse VOLE: of each row the sender gives Δ and v, the receiver u and gets v + u·Δ. Over a vector an honest
    /// sender gives the same Δ in all rows.
    ReverseVole(VoleField),
}

/// A function of so many rows, each with an input of either side.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    function: Function<'a>,
    rows: usize,
}

fn usage<T>(what: &'static str) -> Result<T> {
    Err(Error::Usage { protocol: PROTOCOL, what })
}

fn malformed(what: &'static str) -> Error {
    tacit_ot::Error::Malformed { protocol: PROTOCOL, what }.into()
}

/// The values of one side's inputs, or of the outputs, row by row.
pub type Rows = [Vec<BitVec>];

impl<'a> Exchange<'a> {
    /// Errors: `Usage` for no row, for a function to which the receiver has no input, and for more than
    /// [`LARGEST`] bits of it.
    pub fn new(function: Function<'a>, rows: usize) -> Result<Self> {
        let exchange = Exchange { function, rows };
        match exchange.bits().checked_mul(rows) {
            Some(0) if rows == 0 => usage("there is no row"),
            Some(0) => {
                usage("the receiver has no input, so there is nothing to ask; give it one, or swap the sides")
            }
            Some(1..=LARGEST) => Ok(exchange),
            _ => usage("the receiver's input has more than 2^24 bits; ask several questions"),
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bits of the receiver's input in a row.
    fn bits(&self) -> usize {
        match self.function {
            Function::Circuit(circuit) => {
                slots_of(circuit.circuit().shape(), circuit.owners(), Owner::Evaluator).len()
            }
            Function::And(bits) | Function::InnerProduct(bits) => bits as usize,
            Function::ReverseVole(field) => field.input_bits() as usize,
        }
    }

    /// Transfers.
    fn count(&self) -> usize {
        self.bits() * self.rows
    }

    /// The transfers' parameters.
    pub fn params(&self) -> Params {
        Params { code: Code::Linear, security: Security::Malicious, count: self.count() }
    }

    fn width(&self) -> Width {
        match self.function {
            Function::Circuit(_) => Width::Bytes(16),
            Function::And(_) | Function::InnerProduct(_) => Width::Bit,
            Function::ReverseVole(field) => Width::Bytes(field.message_bytes() as u32),
        }
    }

    /// Bytes that go with the transfers; `None` where they do not fit.
    fn attached(&self) -> Option<usize> {
        match self.function {
            Function::Circuit(circuit) => garbled::bytes(circuit, self.rows),
            Function::And(_) | Function::InnerProduct(_) | Function::ReverseVole(_) => Some(0),
        }
    }

    /// Bytes of a question and of a reply.
    pub fn message_bytes(&self) -> [u64; 2] {
        let [question, reply] = [messages::question_len(self), messages::reply_len(self)];
        [question, reply].map(|bytes| bytes.map_or(u64::MAX, |bytes| bytes as u64))
    }

    /// What the function is called in messages: both sides' must be equal.
    pub fn name(&self) -> [u8; 32] {
        let mut transcript = Transcript::new("tacit nisc function v1");
        match self.function {
            Function::Circuit(circuit) => {
                transcript.append("kind", b"half-gates");
                transcript.append("circuit", &circuit.digest());
                // A function that is built in and a file of its gates are two, as in `tacit eval`.
                transcript.append("called", circuit.name().unwrap_or_default().as_bytes());
                // Programs of the same gates may read the same literal as other values.
                transcript.append("source", circuit.source().as_ref().map_or(&[], |source| &source[..]));
                for owner in circuit.owners() {
                    transcript.append_u64("garbler's", u64::from(*owner == Owner::Garbler));
                }
            }
            Function::And(bits) => {
                transcript.append("kind", b"and");
                transcript.append_u64("bits", bits.into());
            }
            Function::InnerProduct(bits) => {
                transcript.append("kind", b"inner product");
                transcript.append_u64("bits", bits.into());
            }
            Function::ReverseVole(field) => {
                transcript.append("kind", b"reverse vole");
                transcript.append("field", field.name().as_bytes());
            }
        }
        let mut name = [0; 32];
        transcript.challenge_bytes("name", &mut name);
        name
    }

    /// What all hashes of the transfers are bound to.
    fn context(&self) -> Vec<u8> {
        [&b"tacit nisc function v1"[..], &self.name(), &(self.rows as u64).to_le_bytes()].concat()
    }

    /// One side's bits of all rows, row after row.
    fn flat(&self, owner: Owner, rows: &Rows) -> Result<Zeroizing<BitVec>> {
        if rows.len() != self.rows {
            return usage("one input a row");
        }
        match self.function {
            Function::Circuit(circuit) => {
                let shape = circuit.circuit().shape();
                flatten_for(PROTOCOL, shape, circuit.owners(), owner, rows).map(Zeroizing::new)
            }
            Function::And(bits) | Function::InnerProduct(bits) => concat(rows, &[bits]),
            Function::ReverseVole(field) => match owner {
                Owner::Garbler => concat(rows, &[field.element_bits(); 2]),
                Owner::Evaluator => concat(rows, &[field.input_bits()]),
            },
        }
    }

    /// The receiver's question on these inputs: what its secret file holds, for [`QuestionFile`], and what the
    /// senders get. `owner` signs what they get, if anybody does.
    ///
    /// Errors: `Usage` for other inputs than the function takes.
    pub fn ask(
        &self,
        inputs: &Rows,
        owner: Option<PublicKey>,
        prg: &mut Prg,
    ) -> Result<(Zeroizing<Vec<u8>>, Vec<u8>)> {
        // proof: nisc 8.1
        let choices = self.flat(Owner::Evaluator, inputs)?;
        let (key, public) = ReceiverKey::generate(self.params(), &self.context(), owner, prg)?;
        let question = key.ask(&choices)?;
        let secret = messages::secret(self, &key.to_bytes(), &question);
        Ok((secret, messages::question(self, &public, &question)))
    }

    /// How many rows a question asks for, of whatever function.
    ///
    /// Errors: `Malformed` for what is no question.
    pub fn rows_asked(question: &[u8]) -> Result<u64> {
        messages::rows_asked(question)
    }

    /// The reply of the sender in `parties` to a question of the receiver there, on the sender's inputs.
    ///
    /// Everything in it is drawn anew for each reply. Errors: `Malformed` for a question on another function, of
    /// other rows, or damaged; `Usage` for other inputs than the function takes.
    pub fn reply(&self, question: &[u8], parties: &Parties, inputs: &Rows, prg: &mut Prg) -> Result<Vec<u8>> {
        self.reply_with(question, parties, inputs, prg, |_, _| ())
    }

    /// [`reply`](Self::reply); `change` sees the messages and what goes with them before they are masked.
    fn reply_with(
        &self,
        question: &[u8],
        parties: &Parties,
        inputs: &Rows,
        prg: &mut Prg,
        change: impl FnOnce(&mut [Zeroizing<Vec<u8>>; 2], &mut Vec<u8>),
    ) -> Result<Vec<u8>> {
        let mine = self.flat(Owner::Garbler, inputs)?;
        let (public, asked) = messages::read_question(self, question)?;
        let context = self.context();
        let (key, answer) = SenderKey::answer(public, &context, parties, prg)?;
        let (mut messages, mut attached) = match self.function {
            // proof: nisc 8.2
            Function::Circuit(circuit) => garbled::garble(circuit, self.rows, self.bits(), &mine, prg)?,
            Function::And(_) => {
                let bytes = mine.as_bytes().to_vec();
                ([Zeroizing::new(vec![0; bytes.len()]), Zeroizing::new(bytes)], Vec::new())
            }
            // proof: nisc 8.4
            Function::InnerProduct(bits) => (self.masked(bits as usize, &mine, prg), Vec::new()),
            // proof: nisc 8.5
            Function::ReverseVole(field) => (field.messages(self.rows, &mine, prg), Vec::new()),
        };
        change(&mut messages, &mut attached);
        let [zero, one] = &messages;
        let chosen = Chosen { width: self.width(), messages: [zero, one], attached: &attached };
        let reply = key.reply_long(public, &context, asked, &chosen)?;
        Ok(messages::reply(self, &answer, &reply))
    }

    /// Both messages of each position, whose masks add up to zero in each row.
    fn masked(&self, bits: usize, mine: &BitVec, prg: &mut Prg) -> [Zeroizing<Vec<u8>>; 2] {
        let mut masks = Zeroizing::new(BitVec::random(mine.len(), prg));
        for row in 0..self.rows {
            let last = (row + 1) * bits - 1;
            let sum = (row * bits..last).fold(false, |sum, i| sum ^ masks.get(i));
            masks.set(last, sum);
        }
        let zero = Zeroizing::new(masks.as_bytes().to_vec());
        masks.xor_assign(mine);
        [zero, Zeroizing::new(masks.as_bytes().to_vec())]
    }

    /// The outputs of each row, from the receiver's messages and what came with them.
    fn outputs(&self, messages: &[u8], attached: &[u8]) -> Result<Vec<Vec<BitVec>>> {
        match self.function {
            Function::Circuit(circuit) => {
                garbled::evaluate(circuit, self.rows, self.bits(), messages, attached)
            }
            Function::And(bits) => {
                let all = BitVec::from_bytes(messages, self.count());
                Ok(all.split(vec![bits as usize; self.rows]).into_iter().map(|row| vec![row]).collect())
            }
            Function::InnerProduct(bits) => {
                let all = BitVec::from_bytes(messages, self.count());
                let sum =
                    |row: BitVec| vec![BitVec::from_bools(&[row.iter().fold(false, |sum, bit| sum ^ bit)])];
                Ok(all.split(vec![bits as usize; self.rows]).into_iter().map(sum).collect())
            }
            Function::ReverseVole(field) => Ok(field.outputs(messages)),
        }
    }
}

/// Rows of inputs that have these widths, one after the other.
fn concat(rows: &Rows, widths: &[u32]) -> Result<Zeroizing<BitVec>> {
    let fits =
        |row: &Vec<BitVec>| row.iter().map(|bits| bits.len()).eq(widths.iter().map(|&bits| bits as usize));
    if !rows.iter().all(fits) {
        return usage("a row has other inputs than the function takes from this party");
    }
    Ok(Zeroizing::new(BitVec::concat(&rows.iter().flatten().cloned().collect::<Vec<_>>())))
}

#[cfg(test)]
mod tests;
