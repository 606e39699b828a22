//! `tacit nisc eval`: a function of both sides' inputs by two messages that are files.

use super::{Author, SIGNATURE_ROOM, Signed, Trusted, is_kind, message, name, read, signed_by, what};
use crate::cli::Context;
use crate::cli::messages::{LARGEST_MESSAGES, write_all};
use crate::cli::output::destination;
use crate::cmd::eval::FormatArg;
use crate::cmd::eval::batch::{InputArgs, Table};
use crate::cmd::eval::form::Form;
use crate::cmd::eval::program::{self, ProgramArgs};
use crate::cmd::eval::single;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::crypto::{BitVec, Prg};
use tacit::job::eval::layout::Inputs;
use tacit::job::nisc::{Parties, Strings, function_memory};
use tacit::lang::Program;
use tacit::two_pc::circuit::named;
use tacit::two_pc::circuit::value::{Field, Format};
use tacit::two_pc::nisc::{Exchange, Function, QuestionFile};
use tacit::two_pc::{Owner, Prepared};
use tacit::{Error, Result, two_pc};
use tacit_ot::silent::nisc::Kind;

const AFTER: &str = "\
Example, Bob asks and Alice replies:
  bob    tacit nisc eval ask millionaires --input 5000000 --key bob-asks.key --out question \\
             --identity bob.key
  alice  tacit nisc eval reply millionaires --input 4000000 --question question --out reply \\
             --identity alice.key --peer bob.pub
  bob    tacit nisc eval open millionaires --key bob-asks.key --reply reply --peer alice.pub

The functions are those of tacit eval (tacit eval --list), circuit files and programs, with the
sender as the garbler and the receiver as the evaluator; and, without a circuit, andN and
inner-productN of two strings of N bits, and reverse-vole-FIELD, w = v + u*delta of the
sender's delta and v and the receiver's u (gf2, gf4, gf16, gf256, gf128, p61 or p128). Both
sides must use the same function and options.

One question works for any number of senders, each with one reply. Only the receiver learns the
results. A receiver that cheats learns no more than the function of one input for each reply. A
sender that cheats can make the receiver compute another function, and if it hears that a reply
was rejected, it may learn a bit of the input: accept replies only of senders that you trust to
follow the protocol, and do not reveal which reply failed. The first reply that fails a check
invalidates the key. Send a new question only to the other senders: it would show this one that
its reply was rejected.";

/// A function of the receiver's input and of each sender's, by one message each way.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    #[command(subcommand)]
    step: Step,
}

/// The function, of which both sides give the same.
#[derive(clap::Args)]
struct FunctionArgs {
    /// The name of a function, a Bristol file, or a program (FILE.garble.rs), as of tacit eval; or andN,
    /// inner-productN, reverse-vole-FIELD
    #[arg(value_name = "CIRCUIT|NAME|PROGRAM")]
    function: String,
    #[command(flatten)]
    program: ProgramArgs,
}

/// What a side gives: the function, its input, and where its message goes.
#[derive(clap::Args)]
struct SideArgs {
    #[command(flatten)]
    function: FunctionArgs,
    #[command(flatten)]
    input: InputArgs,
    /// How inputs are read: with signed, in two's complement
    #[arg(long, value_enum, default_value = "hex")]
    format: FormatArg,
    /// The file for the message
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    author: Author,
}

#[derive(clap::Args)]
struct OpenArgs {
    #[command(flatten)]
    function: FunctionArgs,
    /// How outputs are written
    #[arg(long, value_enum, default_value = "hex")]
    format: FormatArg,
    /// The secret key of the question
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The sender's reply
    #[arg(long, value_name = "FILE")]
    reply: PathBuf,
    #[command(flatten)]
    trusted: Trusted,
}

#[derive(clap::Subcommand)]
enum Step {
    /// The receiver's question on its input, for any number of senders
    Ask {
        #[command(flatten)]
        side: SideArgs,
        /// The file for the secret key of this question
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// A sender's reply, on its own input
    Reply {
        #[command(flatten)]
        side: SideArgs,
        /// The receiver's question
        #[arg(long, value_name = "FILE")]
        question: PathBuf,
        #[command(flatten)]
        trusted: Trusted,
    },
    /// The receiver opens a reply, and shows the result
    Open(OpenArgs),
}

/// The function, as it was loaded.
enum Loaded {
    Circuit { function: Box<named::Function>, prepared: Box<Prepared>, program: Option<Box<Program>> },
    Strings(Strings),
}

impl FunctionArgs {
    fn load(&self) -> Result<Loaded> {
        if let Some(strings) = Strings::find(&self.function) {
            self.program.refuse().map_err(|_| {
                Error::Usage("--function, --garbler-inputs, --constant and --bits are for files".into())
            })?;
            return Ok(Loaded::Strings(strings));
        }
        let program = self.program.load(&self.function)?;
        let function = match &program {
            Some(program) => program::function(&self.function, program),
            None => self.program.circuit(&self.function).map_err(|fault| match fault {
                Error::Usage(what) => Error::Usage(format!(
                    "{what}; andN, inner-productN and reverse-vole-FIELD are functions too"
                )),
                other => other,
            })?,
        };
        let prepared = Box::new(program::prepared(&function, program.as_ref())?);
        Ok(Loaded::Circuit { function: Box::new(function), prepared, program: program.map(Box::new) })
    }
}

impl Loaded {
    fn function(&self) -> Function<'_> {
        match self {
            Loaded::Circuit { prepared, .. } => Function::Circuit(prepared),
            Loaded::Strings(strings) => strings.function,
        }
    }

    fn exchange(&self, rows: usize) -> Result<Exchange<'_>> {
        let exchange = Exchange::new(self.function(), rows).map_err(plain)?;
        let [_, reply] = exchange.message_bytes();
        // With room for a signature: nobody could read a larger one.
        if reply > LARGEST_MESSAGES - SIGNATURE_ROOM {
            return Err(Error::Usage(format!(
                "a reply would have {}, more than the {LARGEST_MESSAGES} allowed; use a smaller circuit or \
                 fewer rows",
                counted(usize::try_from(reply).unwrap_or(usize::MAX), "byte")
            )));
        }
        let needed = function_memory(self.function(), &exchange);
        crate::cmd::check_memory("this exchange", needed, "use a smaller circuit or fewer rows")?;
        Ok(exchange)
    }

    fn fields(&self, owner: Owner) -> &[Field] {
        match self {
            Loaded::Circuit { function, .. } => function.fields(owner),
            Loaded::Strings(strings) => match owner {
                Owner::Garbler => &strings.sender,
                Owner::Evaluator => &strings.receiver,
            },
        }
    }

    /// The rows of one side's inputs.
    fn rows(&self, args: &InputArgs, owner: Owner, format: FormatArg) -> Result<Vec<Vec<BitVec>>> {
        let fields = format.fields(self.fields(owner));
        let inputs = match self {
            Loaded::Circuit { program: Some(program), .. } => Inputs::Literals(program, owner),
            _ => Inputs::Numbers(&fields),
        };
        args.check()?;
        if !args.batch {
            return Ok(vec![single(inputs, &args.input)?]);
        }
        Ok(Table::read(args, inputs)?.rows().to_vec())
    }

    fn form(self, format: FormatArg) -> Form {
        match self {
            Loaded::Circuit { function, program, .. } => {
                Form::new(&function, format, program.map(|program| *program))
            }
            Loaded::Strings(strings) => Form::of(&strings.output, format, None),
        }
    }
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let (object, text) = match args.step {
        Step::Ask { side, key } => ask(&side, &key)?,
        Step::Reply { side, question, trusted } => reply(&side, &question, &trusted)?,
        Step::Open(args) => open(args, context)?,
    };
    context.result(&object, &text)
}

fn ask(side: &SideArgs, key: &Path) -> Result<(Value, String)> {
    let loaded = side.function.load()?;
    let rows = loaded.rows(&side.input, Owner::Evaluator, side.format)?;
    let (exchange, author) = (loaded.exchange(rows.len())?, side.author.load()?);
    let (secret, question) = exchange.ask(&rows, author.name(), &mut Prg::from_os()).map_err(plain)?;
    write_all(&[(key, &secret)], &[(&side.out, &author.sign(&question)?)])?;
    let text = format!(
        "send the question in {} to the senders; keep {} secret\na sender learns the function{}, and nothing \
         about your input; its reply is not checked",
        destination(&side.out),
        name(key),
        if rows.len() == 1 { "" } else { ", how many rows there are" },
    );
    let mut object = step("ask", &side.function.function, rows.len());
    object["out"] = json!(side.out);
    object["reply_bytes"] = json!(exchange.message_bytes()[1]);
    Ok((object, text))
}

fn reply(side: &SideArgs, question: &Path, trusted: &Trusted) -> Result<(Value, String)> {
    let (beside, author) = (side.author.beside(question), side.author.load()?);
    let known = trusted.load(beside, author.name())?;
    let loaded = side.function.load()?;
    let rows = loaded.rows(&side.input, Owner::Garbler, side.format)?;
    let asked = message(&known, question, Kind::FunctionQuestion)?;
    let wanted = Exchange::rows_asked(&asked.message).map_err(|e| of_message(question, e))?;
    if wanted != rows.len() as u64 {
        return Err(Error::Input(format!(
            "{}: asks for {}, and your input has {}; give the same number, with --batch for several",
            name(question),
            counted(usize::try_from(wanted).unwrap_or(usize::MAX), "row"),
            counted(rows.len(), "row"),
        )));
    }
    let exchange = loaded.exchange(rows.len())?;
    let parties = Parties { sender: author.name(), receiver: asked.author };
    let reply = exchange
        .reply(&asked.message, &parties, &rows, &mut Prg::from_os())
        .map_err(|e| of_message(question, e))?;
    write_all(&[], &[(&side.out, &author.sign(&reply)?)])?;
    let text = format!(
        "send the reply in {} to the receiver, who learns the result of this function of both inputs and \
         nothing else about yours",
        destination(&side.out)
    );
    let mut object = step("reply", &side.function.function, rows.len());
    object["out"] = json!(side.out);
    Ok((object, text))
}

fn open(args: OpenArgs, context: &Context) -> Result<(Value, String)> {
    let OpenArgs { function, format, key, reply, trusted } = args;
    let known = trusted.load(&key, None)?;
    let loaded = function.load()?;
    let mut file = QuestionFile::open(&key).map_err(|e| of_key(&key, e))?;
    let exchange = loaded.exchange(file.rows().map_err(|e| of_key(&key, e))?)?;
    file.fits(loaded.function()).map_err(|e| of_key(&key, e))?;
    let answered = signed_by(&reply, Kind::FunctionReply, known.whose(), exchange.message_bytes()[1])?;
    let outputs = file
        .evaluate(loaded.function(), &answered.message, answered.author)
        .map_err(|e| of_reply(&key, &reply, &answered, e))?;
    let form = loaded.form(format);
    for (flag, set) in form.flags(&outputs).filter(|(_, set)| *set > 0) {
        let of = counted(outputs.len(), "row");
        context.warn(&format!("note: {flag} in {set} of {of}: the result there is wrong"));
    }
    Ok(shown(&form, &function.function, &outputs))
}

fn step(step: &str, function: &str, rows: usize) -> Value {
    json!({ "name": "nisc eval", "step": step, "function": function, "rows": rows })
}

/// The outputs, a line a row.
fn shown(form: &Form, function: &str, outputs: &[Vec<BitVec>]) -> (Value, String) {
    let written = |format| outputs.iter().map(|row| form.written(row, format)).collect::<Vec<_>>();
    let mut object = step("open", function, outputs.len());
    object["outputs"] = json!(written(Format::Hex));
    object["decimals"] = json!(written(Format::Decimal));
    object["output_names"] = json!(form.names());
    let lines: Vec<String> = written(form.format).iter().map(|row| row.join(" ")).collect();
    (object, lines.join("\n"))
}

/// A fault of what was asked for, without the protocol's name.
fn plain(fault: two_pc::Error) -> Error {
    match fault {
        two_pc::Error::Usage { what, .. } => Error::Usage(what.to_owned()),
        other => other.into(),
    }
}

/// A fault of the message in `path`, by its name.
fn of_message(path: &Path, fault: two_pc::Error) -> Error {
    match fault {
        two_pc::Error::Ot(fault @ tacit_ot::Error::Malformed { .. }) => {
            Error::Peer(format!("{}: {}", name(path), what(&fault)))
        }
        other => plain(other),
    }
}

/// A fault of the key's file: first of all, that it is another file.
fn of_key(path: &Path, fault: two_pc::Error) -> Error {
    if let Some(other) = read(path).ok().and_then(|bytes| is_kind(path, &bytes, Kind::FunctionKey).err()) {
        return other;
    }
    let what = match &fault {
        two_pc::Error::Ot(fault) => what(fault),
        two_pc::Error::Usage { what, .. } => (*what).to_owned(),
        other => other.to_string(),
    };
    Error::Input(format!("{}: {what}", name(path)))
}

/// Why a reply cannot be opened. If it failed a check, the key was wiped on the disk before this is reported.
fn of_reply(key: &Path, path: &Path, reply: &Signed, fault: two_pc::Error) -> Error {
    match fault {
        two_pc::Error::Cheated { .. } | two_pc::Error::Ot(tacit_ot::Error::Cheated { .. }) => {
            let who = match reply.author {
                Some(_) => "its sender cheated or runs a broken build",
                None => "it was changed in transit, or its sender cheated or runs a broken build",
            };
            Error::Peer(format!(
                "{}: fails its check ({who}); {} is invalidated, because this can reveal bits of your input \
                 to the sender: send a new question only to the other senders, as this one would learn more \
                 of the same input",
                name(path),
                name(key)
            ))
        }
        two_pc::Error::Ot(tacit_ot::Error::Malformed { .. }) => of_message(path, fault),
        other => of_key(key, other),
    }
}
