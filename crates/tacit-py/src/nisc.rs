//! Transfers and functions whose messages are bytes, and whose keys are files: `tacit.nisc`.

use crate::evaluate::{Found, LeftOpen, Rows, Source, inputs, usual};
use crate::fault;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tacit::job::eval::layout::Inputs;
use tacit::job::nisc::{self, Code, Job, Known, Letters, Opened, Params, Parties, Signer, Strings};
use tacit::lang::Program;
use tacit::ot::Layout;
use tacit::{Error, Result, Security};
use tacit_2pc::circuit::value::{self, Field, Format};
use tacit_2pc::nisc::{Exchange, Function, QuestionFile};
use tacit_2pc::{Owner, Prepared};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::PublicKey;
use tacit_net::keys::write_new;
use tacit_ot::silent::nisc::Kind;
use tacit_ot::silent::signed::{self, Whose};
use tacit_store::nisc::{ReceiverFile, SenderFile};
use zeroize::Zeroizing;

/// Who signs what is written, and whose messages are taken.
struct Sides {
    author: Signer,
    known: Known,
}

impl Sides {
    /// Beside `own`, or beside the identity, is remembered which key of the peer follows which.
    fn load(identity: Option<&Path>, peer: Option<&Path>, own: &Path) -> Result<Self> {
        let author = Signer::load(identity)?;
        let known = Known::load(peer, identity.unwrap_or(own), author.name())?;
        Ok(Sides { author, known })
    }

    /// The other side's message of `kind`, called `called` in errors, and who signed it.
    fn read<'a>(&self, called: &str, bytes: &'a [u8], kind: Kind) -> Result<(&'a [u8], Option<PublicKey>)> {
        let (message, author) = signed::open(bytes, self.known.whose()).map_err(|fault| of(called, fault))?;
        match Kind::of(message) {
            Some(found) if found == kind || (found, kind) == (Kind::LongReply, Kind::Reply) => {
                Ok((message, author))
            }
            Some(found) => Err(Error::Peer(format!("{called}: this is {found}; give {kind}"))),
            None => Err(Error::Peer(format!("{called}: this is not a message of tacit.nisc"))),
        }
    }
}

/// A fault of the message called so; one of a failed check, or of a key's file, is as it is.
fn of(called: &str, fault: tacit_ot::Error) -> Error {
    match fault {
        tacit_ot::Error::Malformed { what, .. } => Error::Peer(format!("{called}: {what}")),
        other => of_key(other),
    }
}

fn of_key(fault: tacit_ot::Error) -> Error {
    match fault {
        tacit_ot::Error::Malformed { what, .. } => Error::Input(format!("key: {what}")),
        tacit_ot::Error::Usage { what, .. } => Error::Usage(format!("key: {what}")),
        other => other.into(),
    }
}

/// The same of what a function's messages are made of.
fn of_function(called: &str, fault: tacit_2pc::Error) -> Error {
    match fault {
        tacit_2pc::Error::Ot(fault) => of(called, fault),
        tacit_2pc::Error::Usage { what, .. } => Error::Usage(what.to_owned()),
        other => other.into(),
    }
}

fn raised(py: Python<'_>) -> impl Fn(Error) -> PyErr + '_ {
    move |error| fault::raise(py, &error)
}

/// The receiver's key pair for `count` transfers: the secret one in a new file, the public one returned.
#[pyfunction]
#[pyo3(signature = (count, key, *, security="malicious", identity=None))]
pub(crate) fn nisc_keygen<'py>(
    py: Python<'py>,
    count: usize,
    key: PathBuf,
    security: &str,
    identity: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let security = match security {
        "malicious" => Security::Malicious,
        "semi-honest" => Security::SemiHonest,
        _ => return Err(fault::usage(py, "security= is \"malicious\" or \"semi-honest\"")),
    };
    let made = py.detach(|| {
        let sides = Sides::load(identity.as_deref(), None, &key)?;
        let job = Job { params: Params { code: Code::Linear, security, count } };
        let (secret, public) = job.keys(sides.author.name(), &mut Prg::from_os())?;
        let signed = sides.author.sign(&public)?;
        write_new(&key, 0o600, &secret.to_bytes())?;
        Ok(signed)
    });
    made.map(|bytes| PyBytes::new(py, &bytes)).map_err(raised(py))
}

/// A sender's answer to a public key, whose secret key goes to a new file.
#[pyfunction]
#[pyo3(signature = (public, key, *, identity=None, peer=None))]
pub(crate) fn nisc_answer<'py>(
    py: Python<'py>,
    public: Vec<u8>,
    key: PathBuf,
    identity: Option<PathBuf>,
    peer: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let made = py.detach(|| {
        let sides = Sides::load(identity.as_deref(), peer.as_deref(), &key)?;
        let (public, receiver) = sides.read("public", &public, Kind::PublicKey)?;
        let parties = Parties { sender: sides.author.name(), receiver };
        let (secret, answer) = nisc::answer(public, &parties, &mut Prg::from_os())?;
        let signed = sides.author.sign(&answer)?;
        write_new(&key, 0o600, &secret.to_bytes())?;
        Ok(signed)
    });
    made.map(|bytes| PyBytes::new(py, &bytes)).map_err(raised(py))
}

fn bits(choices: Vec<u8>) -> BitVec {
    let bools: Zeroizing<Vec<bool>> = Zeroizing::new(choices.iter().map(|byte| *byte != 0).collect());
    BitVec::from_bools(&bools)
}

fn receiver(key: &Path, choices: usize) -> Result<ReceiverFile> {
    let secret = ReceiverFile::open(key, b"").map_err(of_key)?;
    let count = secret.key().params().count;
    if count != choices {
        return Err(Error::Usage(format!("choices: {choices}, and the key is for {count}")));
    }
    Ok(secret)
}

/// The receiver's question for choices, a byte of 0 or 1 each. The key is marked before it is returned.
#[pyfunction]
#[pyo3(signature = (key, choices, *, identity=None))]
pub(crate) fn nisc_ask<'py>(
    py: Python<'py>,
    key: PathBuf,
    choices: Vec<u8>,
    identity: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let made = py.detach(|| {
        let sides = Sides::load(identity.as_deref(), None, &key)?;
        let secret = receiver(&key, choices.len())?;
        let question = secret.ask(&bits(choices)).map_err(of_key)?;
        let signed = sides.author.sign(question.message())?;
        question.release().map_err(of_key)?;
        Ok(signed)
    });
    made.map(|bytes| PyBytes::new(py, &bytes)).map_err(raised(py))
}

/// The sender's reply. `messages` is as [`transfer::own_messages`](crate::transfer::own_messages) takes them.
#[pyfunction]
#[pyo3(signature = (key, public, question, messages, *, identity=None, peer=None))]
pub(crate) fn nisc_reply<'py>(
    py: Python<'py>,
    key: PathBuf,
    public: Vec<u8>,
    question: Vec<u8>,
    messages: (String, usize, Bound<'py, PyAny>),
    identity: Option<PathBuf>,
    peer: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (form, width, data) = messages;
    let messages = crate::transfer::own_messages(py, &form, width, &data)?;
    let made = py.detach(|| {
        let sides = Sides::load(identity.as_deref(), peer.as_deref(), &key)?;
        let (public, author) = sides.read("public", &public, Kind::PublicKey)?;
        let (question, asker) = sides.read("question", &question, Kind::Question)?;
        // A stranger's question would spend the key. The peer's own keys may follow each other.
        if sides.known.is_anybody() && author.is_some() && asker != author {
            let what = "question: its signature is missing or by a different key than that of the receiver's \
                        public key; ask the receiver for both";
            return Err(Error::Peer(what.into()));
        }
        let secret = SenderFile::open(&key).map_err(of_key)?;
        let count = secret.params().count;
        if messages.len() != count {
            return Err(Error::Usage(format!("messages: {}, and the key is for {count}", messages.len())));
        }
        secret.check_public(public, b"").map_err(|fault| of("public", fault))?;
        let letters = Letters::of(&messages)?;
        let reply = letters.with(|chosen| secret.reply_long(public, b"", question, chosen));
        let reply = reply.map_err(|fault| of("question", fault))?;
        let signed = sides.author.sign(reply.message())?;
        reply.release().map_err(of_key)?;
        Ok(signed)
    });
    made.map(|bytes| PyBytes::new(py, &bytes)).map_err(raised(py))
}

/// The messages that the receiver chose.
#[pyfunction]
#[pyo3(signature = (key, choices, answer, question, reply, *, peer=None))]
pub(crate) fn nisc_open<'py>(
    py: Python<'py>,
    key: PathBuf,
    choices: Vec<u8>,
    answer: Vec<u8>,
    question: Vec<u8>,
    reply: Vec<u8>,
    peer: Option<PathBuf>,
) -> PyResult<Bound<'py, PyAny>> {
    let count = choices.len();
    let opened = py.detach(|| {
        let sides = Sides::load(None, peer.as_deref(), &key)?;
        let (answer, author) = sides.read("answer", &answer, Kind::Answer)?;
        let (reply, of_reply) = sides.read("reply", &reply, Kind::Reply)?;
        if author != of_reply {
            let what =
                "reply: its signature is missing or by a different key than the answer's; ask the sender for \
                 both again";
            return Err(Error::Peer(what.into()));
        }
        // The question is this side's own.
        let (question, _) = signed::open(&question, Whose::Anybody).map_err(|fault| of("question", fault))?;
        let secret = receiver(&key, choices.len())?;
        let choices = bits(choices);
        if secret.key().asked(question).map_err(|fault| of("question", fault))? != choices {
            let what = "choices: the question asks for others; give those that it was made of";
            return Err(Error::Usage(what.into()));
        }
        let asked = secret.receive(answer, author, question).map_err(|fault| of("answer", fault))?;
        let opened = match Kind::of(reply) {
            Some(Kind::LongReply) => nisc::open_letters(&asked, reply),
            _ => nisc::open(&asked, &choices, reply).map(|blocks| {
                Opened::Rows(Layout::BLOCKS, Zeroizing::new(Block::as_bytes(&blocks).to_vec()))
            }),
        };
        opened.map_err(|fault| match fault {
            Error::Ot(fault) => of("reply", fault),
            other => other,
        })
    });
    match opened.map_err(raised(py))? {
        Opened::Bits(bits) => {
            Ok(pyo3::types::PyList::new(py, bits.iter().map(|bit| u8::from(*bit)))?.into_any())
        }
        Opened::Rows(layout, rows) => crate::transfer::messages(py, layout, &rows, count),
    }
}

/// A function of both sides, found.
enum Loaded {
    Circuit(Box<Prepared>, Option<Box<Program>>, [Vec<Field>; 3]),
    Strings(Strings),
}

impl Loaded {
    fn load(function: Source, open: LeftOpen) -> Result<Self> {
        if let Source::Named(name) = &function
            && let Some(strings) = Strings::find(name)
        {
            if !usual(&open) {
                let what = "entry, garbler_inputs, constants and bits are for programs and circuits' files";
                return Err(Error::Usage(what.into()));
            }
            return Ok(Loaded::Strings(strings));
        }
        let fields = |function: &tacit_2pc::circuit::named::Function| {
            [function.garbler.to_vec(), function.evaluator.to_vec(), function.outputs.to_vec()]
        };
        match function.find(open)? {
            Found::Program(program) => {
                let prepared = Prepared::from_function(program.function())?.from_source(program.digest());
                let fields = fields(program.function());
                Ok(Loaded::Circuit(Box::new(prepared), Some(program), fields))
            }
            Found::Held(function) => {
                Ok(Loaded::Circuit(Box::new(Prepared::from_function(&function)?), None, fields(&function)))
            }
            Found::Long(_) => Err(Error::Usage(
                "function: too large for a message; evaluate it with both sides online".into(),
            )),
        }
    }

    fn function(&self) -> Function<'_> {
        match self {
            Loaded::Circuit(prepared, ..) => Function::Circuit(prepared),
            Loaded::Strings(strings) => strings.function,
        }
    }

    fn rows(&self, rows: Rows, owner: Owner) -> Result<Vec<Vec<BitVec>>> {
        let takes = match (self, owner) {
            (Loaded::Circuit(_, Some(program), _), _) => Inputs::Literals(program, owner),
            (Loaded::Circuit(_, None, fields), Owner::Garbler) => Inputs::Numbers(&fields[0]),
            (Loaded::Circuit(_, None, fields), Owner::Evaluator) => Inputs::Numbers(&fields[1]),
            (Loaded::Strings(strings), Owner::Garbler) => Inputs::Numbers(&strings.sender),
            (Loaded::Strings(strings), Owner::Evaluator) => Inputs::Numbers(&strings.receiver),
        };
        inputs(rows, None, takes)
    }
}

/// What a program or a circuit's file leaves open, as a dictionary of the package's keywords.
fn left_open(py: Python<'_>, open: &Bound<'_, PyDict>) -> PyResult<LeftOpen> {
    let bits: String = open.get_item("bits")?.map_or(Ok("usual".into()), |bits| bits.extract())?;
    let get = |name: &str| open.get_item(name).map(|found| found.filter(|found| !found.is_none()));
    let entry: Option<String> = get("entry")?.map(|found| found.extract()).transpose()?;
    let garbler_inputs: Option<usize> = get("garbler_inputs")?.map(|found| found.extract()).transpose()?;
    let constants: Option<BTreeMap<String, String>> =
        get("constants")?.map(|found| found.extract()).transpose()?;
    LeftOpen::new(py, entry, garbler_inputs, constants.unwrap_or_default(), &bits)
}

/// The receiver's question on its rows of inputs, whose secret key goes to a new file.
#[pyfunction]
#[pyo3(signature = (function, rows, key, open, *, identity=None))]
pub(crate) fn nisc_eval_ask<'py>(
    py: Python<'py>,
    function: Source,
    rows: Rows,
    key: PathBuf,
    open: &Bound<'py, PyDict>,
    identity: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let open = left_open(py, open)?;
    let loaded = Loaded::load(function, open).map_err(raised(py))?;
    let rows = loaded.rows(rows, Owner::Evaluator).map_err(raised(py))?;
    let made = py.detach(|| {
        let sides = Sides::load(identity.as_deref(), None, &key)?;
        let exchange = exchange(&loaded, rows.len())?;
        let asked = exchange.ask(&rows, sides.author.name(), &mut Prg::from_os());
        let (secret, question) = asked.map_err(|fault| of_function("inputs", fault))?;
        let signed = sides.author.sign(&question)?;
        write_new(&key, 0o600, &secret)?;
        Ok(signed)
    });
    made.map(|bytes| PyBytes::new(py, &bytes)).map_err(raised(py))
}

fn exchange(loaded: &Loaded, rows: usize) -> Result<Exchange<'_>> {
    Exchange::new(loaded.function(), rows).map_err(|fault| of_function("function", fault))
}

/// A sender's reply to a question on a function, on its own rows of inputs.
#[pyfunction]
#[pyo3(signature = (function, rows, question, open, *, identity=None, peer=None))]
pub(crate) fn nisc_eval_reply<'py>(
    py: Python<'py>,
    function: Source,
    rows: Rows,
    question: Vec<u8>,
    open: &Bound<'py, PyDict>,
    identity: Option<PathBuf>,
    peer: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    if peer.is_some() && identity.is_none() {
        return Err(fault::usage(
            py,
            "peer: give identity= too; the peer's keys are remembered next to that file",
        ));
    }
    let open = left_open(py, open)?;
    let loaded = Loaded::load(function, open).map_err(raised(py))?;
    let rows = loaded.rows(rows, Owner::Garbler).map_err(raised(py))?;
    let made = py.detach(|| {
        let sides = Sides::load(identity.as_deref(), peer.as_deref(), Path::new(""))?;
        let (question, receiver) = sides.read("question", &question, Kind::FunctionQuestion)?;
        let wanted = Exchange::rows_asked(question).map_err(|fault| of_function("question", fault))?;
        if wanted != rows.len() as u64 {
            return Err(Error::Usage(format!("rows: {}, and the question asks for {wanted}", rows.len())));
        }
        let parties = Parties { sender: sides.author.name(), receiver };
        let reply = exchange(&loaded, rows.len())?.reply(question, &parties, &rows, &mut Prg::from_os());
        sides.author.sign(&reply.map_err(|fault| of_function("question", fault))?)
    });
    made.map(|bytes| PyBytes::new(py, &bytes)).map_err(raised(py))
}

/// The outputs of each row, in decimal or as literals of a program's language.
#[pyfunction]
#[pyo3(signature = (function, key, reply, open, *, signed=false, peer=None))]
pub(crate) fn nisc_eval_open<'py>(
    py: Python<'py>,
    function: Source,
    key: PathBuf,
    reply: Vec<u8>,
    open: &Bound<'py, PyDict>,
    signed: bool,
    peer: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let open = left_open(py, open)?;
    let loaded = Loaded::load(function, open).map_err(raised(py))?;
    let outputs = py.detach(|| {
        let sides = Sides::load(None, peer.as_deref(), &key)?;
        let (reply, author) = sides.read("reply", &reply, Kind::FunctionReply)?;
        let of_key = |fault| match of_function("key", fault) {
            Error::Peer(what) => Error::Input(what),
            other => other,
        };
        let mut file = QuestionFile::open(&key).map_err(of_key)?;
        file.fits(loaded.function()).map_err(of_key)?;
        file.evaluate(loaded.function(), reply, author).map_err(|fault| of_function("reply", fault))
    });
    let outputs = outputs.map_err(raised(py))?;
    let dict = PyDict::new(py);
    if let Loaded::Circuit(_, Some(program), _) = &loaded {
        let literal = |row: &Vec<BitVec>| match &program.faults(row)[..] {
            [] => vec![program.format(row)],
            faults => vec![format!("fault: {}", faults.join(", "))],
        };
        dict.set_item("literals", outputs.iter().map(literal).collect::<Vec<_>>())?;
    }
    let fields = match &loaded {
        Loaded::Circuit(_, _, [_, _, outputs]) => &outputs[..],
        Loaded::Strings(strings) => &strings.output[..],
    };
    let shown = |(field, bits): (&Field, &BitVec)| {
        let field = if signed { field.in_twos_complement() } else { *field };
        value::format(&field, bits, Format::Decimal)
    };
    let row = |row: &Vec<BitVec>| fields.iter().zip(row).map(shown).collect::<Vec<String>>();
    dict.set_item("outputs", outputs.iter().map(row).collect::<Vec<_>>())?;
    Ok(dict)
}
