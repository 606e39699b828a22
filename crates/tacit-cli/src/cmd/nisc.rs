//! `tacit nisc`: oblivious transfers and functions whose messages are files.

mod eval;
mod letters;

use crate::cli::Context;
use crate::cli::messages::{CodeArg, LARGEST_MESSAGES, beginning, write_all};
use crate::cli::output::{Output, destination, name, open as open_file, write_fault};
use crate::cli::own;
use crate::cli::peer::Security;
use crate::cli::share::Arrays;
use letters::Given;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tacit::crypto::text::counted;
use tacit::crypto::{BitVec, Block, Prg};
use tacit::data::npz::{Array, Element};

use tacit::job::nisc::{self, Job, Known, Opened, Params, Parties, Signer};
use tacit::net::PublicKey;
use tacit::ot::Layout;
use tacit::two_pc::nisc::is_secret;
use tacit::{Error, Result};
use tacit_ot::silent::nisc::{Kind, ReceiverKey, SenderKey};
use tacit_ot::silent::signed::{self, Whose};
use tacit_store::nisc::{Pending, ReceiverFile, SenderFile};
use zeroize::Zeroizing;

const AFTER: &str = "\
Examples, Bob receives and Alice sends:
  bob    tacit nisc keygen --count 1000 --out ot.key --identity bob.key
  alice  tacit nisc answer --public ot.pub --key for-bob.key --out answer \\
             --identity alice.key --peer bob.pub
  both   tacit nisc expand …                         random OTs, without the network
  bob    tacit nisc ask --key ot.key --choices choices.txt --out question --identity bob.key
  alice  tacit nisc reply --key for-bob.key --public ot.pub --question question \\
             --messages pairs.txt --out reply --identity alice.key --peer bob.pub
  bob    tacit nisc open --key ot.key --choices choices.txt --answer answer \\
             --question question --reply reply --out messages.txt --peer alice.pub

keygen writes ot.key, which Bob keeps, and ot.pub, which he sends to the senders. Choices are
the digits 0 and 1. A line of messages has two of 32 hex digits, or two bits; a line of the
result has one. Messages of any length are in the columns m0 and m1 of a table, arrays m0 and
m1 (.npz), or bytes (.bin), as in tacit ot: the receiver learns the length of the longest.
A key works either for expand or for chosen messages: a receiver's key for one question, a
sender's for one reply. The key file records the use. Never restore an old copy.

An answer that fails its check reveals bits of the receiver's key to its sender, so the key is
then invalidated, and all senders need a new one. Anyone can cause that, and anyone can present
a public key as Bob's, unless messages are signed: with --identity a message carries its
author's signature, and with --peer only that author's messages are accepted. An answer is
bound to its signer and to the signer of the public key, so that nobody else can present it as
their own.";

/// By whom the message that is written is signed.
#[derive(clap::Args)]
struct Author {
    /// Signs the message with this private key of `tacit keygen`
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

/// Whose messages are taken.
#[derive(clap::Args)]
struct Trusted {
    /// Accepts the peer's messages only if this public key, or a successor in its file, has signed them
    #[arg(long, value_name = "PUBFILE")]
    peer: Option<PathBuf>,
}

impl Author {
    /// The own file beside which is remembered which key of the peer follows which.
    fn beside<'a>(&'a self, key: &'a Path) -> &'a Path {
        self.identity.as_deref().unwrap_or(key)
    }

    fn load(&self) -> Result<Signer> {
        Signer::load(self.identity.as_deref())
    }
}

/// A message of the other side's, and who signed it.
struct Signed {
    message: Zeroizing<Vec<u8>>,
    author: Option<PublicKey>,
}

impl Trusted {
    /// As [`Known::load`].
    fn load(&self, own: &Path, signer: Option<PublicKey>) -> Result<Known> {
        Known::load(self.peer.as_deref(), own, signer)
    }
}

/// The other side's message of this kind in this file.
fn message(known: &Known, path: &Path, kind: Kind) -> Result<Signed> {
    signed_by(path, kind, known.whose(), LARGEST_MESSAGES)
}

/// Room for a signature in front of a message.
const SIGNATURE_ROOM: u64 = 1024;

fn signed_by(path: &Path, kind: Kind, whose: Whose<'_>, most: u64) -> Result<Signed> {
    let (bytes, is_whole) = read_up_to(path, most.saturating_add(SIGNATURE_ROOM))?;
    is_kind(path, &bytes, kind)?;
    if !is_whole {
        return Err(Error::Peer(format!(
            "{}: larger than such a message can be; ask for it again",
            name(path)
        )));
    }
    let remedy =
        if matches!(whose, Whose::Peer(_)) { "; see --peer, and --identity of its author" } else { "" };
    let (message, author) = signed::open(&bytes, whose)
        .map_err(|e| Error::Peer(format!("{}: {}{remedy}", name(path), what(&e))))?;
    Ok(Signed { message: Zeroizing::new(message.to_vec()), author })
}

/// An error where the file holds something else than what it is given as.
fn is_kind(path: &Path, bytes: &[u8], wanted: Kind) -> Result<()> {
    let message = match signed::open(bytes, Whose::Anybody) {
        Ok((message, _)) => message,
        // Another kind may be longer than what was read of it, and not whole therefore.
        Err(_) if Kind::of(bytes).is_some() => bytes,
        Err(_) => return Ok(()),
    };
    let found = match Kind::of(message) {
        Some(kind) if kind == wanted || (kind, wanted) == (Kind::LongReply, Kind::Reply) => return Ok(()),
        Some(kind) => format!("this is {kind}"),
        None => "this is not a file of tacit nisc".to_owned(),
    };
    // One bit on the way makes a message look like a key, by its first bytes alone.
    let is_key = |bytes: &[u8]| {
        let [receiver, sender] = [ReceiverKey::LEN, SenderKey::LEN].map(|len| bytes.get(..len));
        receiver.is_some_and(|key| ReceiverKey::from_bytes(key, b"").is_ok())
            || sender.is_some_and(|key| SenderKey::from_bytes(key).is_ok())
            || is_secret(bytes)
    };
    let is_own = matches!(wanted, Kind::ReceiverKey | Kind::SenderKey | Kind::FunctionKey);
    let shown = is_key(message);
    let warning = if shown && !is_own { ", and never pass on the secret key" } else { "" };
    let fault = format!("{}: {found}; give {wanted}{warning}", name(path));
    Err(if shown || is_own { Error::Input(fault) } else { Error::Peer(fault) })
}

/// What a fault says of a message, without the protocol's name.
fn what(fault: &tacit_ot::Error) -> String {
    match fault {
        tacit_ot::Error::Malformed { what, .. } | tacit_ot::Error::Usage { what, .. } => (*what).to_owned(),
        other => other.to_string(),
    }
}

/// The message in `path`, of which `of` says who must have signed it too, if anybody has.
fn signed_alike(path: &Path, read: Signed, of: &Signed) -> Result<Zeroizing<Vec<u8>>> {
    if read.author != of.author {
        let fault = "its signature is missing or by a different key than the answer's; ask the sender for \
                     both again";
        return Err(Error::Peer(format!("{}: {fault}", name(path))));
    }
    Ok(read.message)
}

/// Oblivious transfers, and functions of both sides' inputs, whose messages are files: no connection, any number
/// of senders to one receiver.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(clap::Subcommand)]
enum Step {
    /// A function of the receiver's input and of each sender's, by one message each way
    Eval(eval::Args),
    /// The receiver's key pair
    Keygen {
        /// The number of OTs with every sender, at most 2^24
        #[arg(long, value_name = "N")]
        count: usize,
        /// The public matrix
        #[arg(long, value_enum, default_value = "linear")]
        code: CodeArg,
        /// Which kind of senders to protect against
        #[arg(long, value_enum, default_value = "malicious")]
        security: Security,
        /// The file for the secret key; the public one goes next to it, ending in .pub
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        author: Author,
    },
    /// A sender's answer to a public key
    Answer {
        /// The receiver's public key
        #[arg(long, value_name = "FILE")]
        public: PathBuf,
        /// The file for your secret key for this receiver
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The file for the answer
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        author: Author,
        #[command(flatten)]
        trusted: Trusted,
    },
    /// The random OTs of your side: u and m for the receiver, m0 and m1 for a sender
    Expand {
        /// Your secret key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// For the receiver: the sender's answer
        #[arg(long, value_name = "FILE")]
        answer: Option<PathBuf>,
        /// For the sender: the receiver's public key
        #[arg(long, value_name = "FILE", conflicts_with = "answer")]
        public: Option<PathBuf>,
        /// The file for the share
        #[arg(long, value_name = "SHARE.npz")]
        out: PathBuf,
        #[command(flatten)]
        trusted: Trusted,
    },
    /// The receiver's question for chosen messages
    Ask {
        /// The receiver's secret key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The choices, as digits 0 and 1
        #[arg(long, value_name = "FILE")]
        choices: PathBuf,
        /// The file for the question
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        author: Author,
    },
    /// The sender's reply to a question
    Reply {
        /// The sender's secret key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The receiver's public key
        #[arg(long, value_name = "FILE")]
        public: PathBuf,
        /// The receiver's question
        #[arg(long, value_name = "FILE")]
        question: PathBuf,
        /// A line for each OT: two messages of 32 hex digits, or two digits 0 or 1; or messages of any length, of
        /// the columns or arrays m0 and m1 (.csv, .parquet, .npz), or bytes pair by pair (.bin)
        #[arg(long, value_name = "FILE")]
        messages: PathBuf,
        /// The file for the reply
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        author: Author,
        #[command(flatten)]
        trusted: Trusted,
    },
    /// The receiver opens a reply
    Open {
        /// The receiver's secret key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The choices of the question
        #[arg(long, value_name = "FILE")]
        choices: PathBuf,
        /// The sender's answer
        #[arg(long, value_name = "FILE")]
        answer: PathBuf,
        /// Your question
        #[arg(long, value_name = "FILE")]
        question: PathBuf,
        /// The sender's reply
        #[arg(long, value_name = "FILE")]
        reply: PathBuf,
        /// The file for the messages, a line for each OT; .csv, .parquet and .npz have choices and messages
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        trusted: Trusted,
    },
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let (object, text) = match args.step {
        Step::Eval(args) => return eval::run(args, context),
        Step::Keygen { count, code, security, out, author } => {
            let params = Params { code: code.into(), security: security.into(), count };
            keygen(Job { params }, &out, &author.load()?)?
        }
        Step::Answer { public, key, out, author, trusted } => {
            let (beside, author) = (author.beside(&key), author.load()?);
            let known = trusted.load(beside, author.name())?;
            answer(&message(&known, &public, Kind::PublicKey)?, [&public, &key, &out], &author)?
        }
        Step::Expand { key, answer, public, out, trusted } => {
            expand(&key, answer.as_deref(), public.as_deref(), &out, &trusted.load(&key, None)?)?
        }
        Step::Ask { key, choices, out, author } => ask(&key, &choices, &out, &author.load()?)?,
        Step::Reply { key, public, question, messages, out, author, trusted } => {
            let (beside, author) = (author.beside(&key), author.load()?);
            let known = trusted.load(beside, author.name())?;
            let paths = [&key, &public, &question].map(PathBuf::as_path);
            let public = message(&known, &public, Kind::PublicKey)?;
            let asked = message(&known, &question, Kind::Question)?;
            // A stranger's question would spend the key. The peer's own keys may follow each other.
            if known.is_anybody() && public.author.is_some() && asked.author != public.author {
                let fault = "its signature is missing or by a different key than that of the receiver's \
                             public key; ask the receiver for both";
                return Err(Error::Peer(format!("{}: {fault}", name(&question))));
            }
            self::reply(paths, [&public.message, &asked.message], &messages, &out, &author)?
        }
        Step::Open { key, choices, answer, question, reply, out, trusted } => {
            let known = trusted.load(&key, None)?;
            let paths = [&key, &answer, &question, &reply].map(PathBuf::as_path);
            let answer = message(&known, &answer, Kind::Answer)?;
            let reply = signed_alike(&reply, message(&known, &reply, Kind::Reply)?, &answer)?;
            let question = signed_by(&question, Kind::Question, Whose::Anybody, LARGEST_MESSAGES)?.message;
            open(paths, &choices, &answer, [&question, &reply], &out)?
        }
    };
    context.result(&object, &text)
}

type Told = (Value, String);

fn told(step: &str, count: usize, out: &Path, text: String) -> Told {
    (json!({ "name": "nisc", "step": step, "count": count, "out": out }), text)
}

fn keygen(job: Job, out: &Path, author: &Signer) -> Result<Told> {
    let count = job.params.count;
    crate::cmd::check_memory(&counted(count, "OT"), job.memory(), "make them under several keys")?;
    let public_path = out.with_extension("pub");
    if public_path == out {
        return Err(Error::Usage("the secret key's name must not end in .pub".into()));
    }
    let (key, public) = job.keys(author.name(), &mut Prg::from_os()).map_err(plain)?;
    write_all(&[(out, &key.to_bytes())], &[(&public_path, &author.sign(&public)?)])?;
    let learns = job.sender_learns();
    let text = format!(
        "{} is the secret key: keep it\n{} is the public key for {count} with any number of senders\n\
         a sender learns {learns}",
        name(out),
        name(&public_path),
        count = counted(count, "OT")
    );
    let (mut object, text) = told("keygen", count, out, text);
    object["senders_learn"] = json!(learns);
    object["answer_bytes"] = json!(job.estimate().answer);
    Ok((object, text))
}

fn answer(public: &Signed, [path, key, out]: [&Path; 3], author: &Signer) -> Result<Told> {
    let parties = Parties { sender: author.name(), receiver: public.author };
    let (secret, answer) =
        nisc::answer(&public.message, &parties, &mut Prg::from_os()).map_err(|e| of_answered(path, e))?;
    write_all(&[(key, &secret.to_bytes())], &[(out, &author.sign(&answer)?)])?;
    let text = format!("send {} to the receiver; keep {} secret", destination(out), name(key));
    Ok(told("answer", secret.params().count, out, text))
}

fn expand(
    key: &Path,
    answer: Option<&Path>,
    public: Option<&Path>,
    out: &Path,
    known: &Known,
) -> Result<Told> {
    let blocks = |name, n| Array::new(name, Element::U64, &[n, 2]);
    let mut arrays: Vec<(Array, Zeroizing<Vec<u8>>)> = Vec::new();
    let count = if let Some(answer) = answer {
        let path = answer;
        let answer = message(known, path, Kind::Answer)?;
        let output = receiver(key)?
            .expand_out(&answer.message, answer.author)
            .map_err(|e| of_answer(key, path, &answer, e))?;
        let n = output.messages().len() as u64;
        let bits = Zeroizing::new(output.choices().iter().map(u8::from).collect());
        arrays.push((Array::new("u", Element::U8, &[n]), bits));
        arrays.push((blocks("m", n), Zeroizing::new(Block::as_bytes(output.messages()).to_vec())));
        n
    } else {
        let path = public.ok_or_else(|| Error::Usage("give --answer or --public".into()))?;
        let public = message(known, path, Kind::PublicKey)?;
        let messages = sender(key)?.expand(&public.message, b"").map_err(|e| of_file(key, path, e))?;
        let n = messages.len() as u64;
        for (i, name) in ["m0", "m1"].into_iter().enumerate() {
            let bytes = messages.iter().flat_map(|pair| pair[i].to_bytes()).collect();
            arrays.push((blocks(name, n), Zeroizing::new(bytes)));
        }
        n
    };
    let layout: Vec<Array> = arrays.iter().map(|(array, _)| array.clone()).collect();
    let mut file = Arrays::new(Output::create_archive(out)?, &layout)?;
    for (i, (_, bytes)) in arrays.iter().enumerate() {
        file.append(i, bytes)?;
    }
    file.finish()?;
    Ok(told(
        "expand",
        count as usize,
        out,
        format!("{}; your share is in {}", counted(count, "random OT"), destination(out)),
    ))
}

fn ask(key: &Path, choices: &Path, out: &Path, author: &Signer) -> Result<Told> {
    let secret = receiver(key)?;
    let choices = read_choices(choices, secret.key().params().count)?;
    let question = secret.ask(&choices).map_err(|e| of_file(key, key, e))?;
    write_once(out, question, author, key)?;
    Ok(told("ask", choices.len(), out, format!("send the question in {} to the senders", destination(out))))
}

fn reply(
    [key, public_path, question_path]: [&Path; 3],
    [public, question]: [&[u8]; 2],
    messages: &Path,
    out: &Path,
    author: &Signer,
) -> Result<Told> {
    let (secret, path) = (sender(key)?, messages);
    let count = secret.params().count;
    let given = Given::load(path, count)?;
    if given.count() != count {
        return Err(letters::other_count(path, &counted(given.count(), "message pair"), count));
    }
    secret.check_public(public, b"").map_err(|e| of_file(key, public_path, e))?;
    let reply = match &given {
        Given::Blocks(messages) => secret.reply(public, b"", question, messages),
        Given::Letters(letters) => letters.with(|chosen| secret.reply_long(public, b"", question, chosen)),
    };
    write_once(out, reply.map_err(|e| of_file(key, question_path, e))?, author, key)?;
    Ok(told("reply", count, out, format!("send the reply in {} to the receiver", destination(out))))
}

fn open(
    [key, answer_path, question_path, reply_path]: [&Path; 4],
    choices: &Path,
    answer: &Signed,
    [question, reply]: [&[u8]; 2],
    out: &Path,
) -> Result<Told> {
    let path = choices;
    let secret = receiver(key)?;
    let choices = read_choices(path, secret.key().params().count)?;
    if secret.key().asked(question).map_err(|e| of_file(key, question_path, e))? != choices {
        return Err(named(path, &"the question has other choices; give the file that it was made from"));
    }
    let asked = secret
        .receive(&answer.message, answer.author, question)
        .map_err(|e| of_answer(key, answer_path, answer, e))?;
    let opened = match Kind::of(reply) {
        Some(Kind::LongReply) => nisc::open_letters(&asked, reply),
        _ => nisc::open(&asked, &choices, reply)
            .map(|blocks| Opened::Rows(Layout::BLOCKS, Zeroizing::new(Block::as_bytes(&blocks).to_vec()))),
    };
    letters::write(out, &choices, opened.map_err(|e| of_answered(reply_path, e))?)?;
    Ok(told(
        "open",
        choices.len(),
        out,
        format!("{} in {}", counted(choices.len(), "message"), destination(out)),
    ))
}

/// Writes the one message for which `key` serves, which is marked before the message can leave: what goes to a
/// stream is held until then.
fn write_once(out: &Path, message: Pending<'_>, author: &Signer, key: &Path) -> Result<()> {
    let mut file = Output::create_archive(out)?.for_everyone()?;
    file.write_all(&author.sign(message.message())?).map_err(|e| write_fault(out, e))?;
    file.settle()?;
    message.release().map_err(|e| of_file(key, key, e))?;
    file.commit()
}

/// A fault of a sender's answer. One that fails its check has spent the key, on the disk, before a word is said.
fn of_answer(key: &Path, path: &Path, answer: &Signed, fault: tacit_ot::Error) -> Error {
    let tacit_ot::Error::Cheated { .. } = fault else { return of_file(key, path, fault) };
    // What was signed came as it was written.
    let who = match answer.author {
        Some(_) => "its sender cheated or runs a broken build",
        None => "it was changed in transit, or its sender cheated or runs a broken build",
    };
    Error::Peer(format!(
        "{}: fails its check ({who}); {} is invalidated, because this reveals bits of it to the sender: make \
         a new key with tacit nisc keygen, and ask its senders again",
        name(path),
        name(key)
    ))
}

/// A fault of what was asked for, without the protocol's name.
fn plain(fault: Error) -> Error {
    match fault {
        Error::Ot(tacit_ot::Error::Usage { what, .. }) => Error::Usage(what.to_owned()),
        other => other,
    }
}

/// A fault of a key's file names the file, and one of the message in `path` that one.
fn of_file(key: &Path, path: &Path, fault: tacit_ot::Error) -> Error {
    match fault {
        tacit_ot::Error::Store(fault) => named(key, &fault),
        other => of_answered(path, other.into()),
    }
}

/// A fault of the message in `path`, by its name.
fn of_answered(path: &Path, fault: Error) -> Error {
    match fault {
        Error::Ot(fault @ (tacit_ot::Error::Malformed { .. } | tacit_ot::Error::Cheated { .. })) => {
            Error::Peer(format!("{}: {}", name(path), what(&fault)))
        }
        other => plain(other),
    }
}

fn named(path: &Path, fault: &dyn Display) -> Error {
    Error::Input(format!("{}: {fault}", name(path)))
}

fn receiver(path: &Path) -> Result<ReceiverFile> {
    ReceiverFile::open(path, b"").map_err(|e| of_key(path, &e, Kind::ReceiverKey))
}

fn sender(path: &Path) -> Result<SenderFile> {
    SenderFile::open(path).map_err(|e| of_key(path, &e, Kind::SenderKey))
}

/// Why a key's file cannot be used: first of all, that it is another file.
fn of_key(path: &Path, fault: &tacit_ot::Error, wanted: Kind) -> Error {
    let other = read(path).ok().and_then(|bytes| is_kind(path, &bytes, wanted).err());
    other.unwrap_or_else(|| named(path, &what(fault)))
}

/// All of the file, or with `-` of standard input, which can be read once.
fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let (bytes, is_whole) = read_up_to(path, LARGEST_MESSAGES)?;
    if !is_whole {
        return Err(named(path, &"larger than any message of this command"));
    }
    Ok(bytes)
}

fn read_up_to(path: &Path, most: u64) -> Result<(Zeroizing<Vec<u8>>, bool)> {
    static IS_READ: AtomicBool = AtomicBool::new(false);
    if path != Path::new("-") {
        return beginning(path, open_file(path)?, most);
    }
    if IS_READ.swap(true, Ordering::Relaxed) {
        return Err(Error::Usage("standard input can be only one of the files; name the others".into()));
    }
    beginning(Path::new("standard input"), std::io::stdin().lock(), most)
}

fn read_choices(path: &Path, count: usize) -> Result<BitVec> {
    let bools = own::digits(path, &read(path)?)?;
    if bools.len() != count {
        return Err(named(
            path,
            &format!(
                "has {}; the key is for {count}",
                counted(bools.len(), "choice"),
                count = counted(count, "OT")
            ),
        ));
    }
    Ok(BitVec::from_bools(&bools))
}
