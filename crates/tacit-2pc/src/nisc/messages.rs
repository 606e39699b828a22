//! What the files hold.

use super::{Exchange, malformed};
use crate::Result;
use tacit_ot::silent::nisc::{BEGIN, Kind, Params, ReceiverKey, after_beginning, beginning, long_reply_len};
use zeroize::Zeroizing;

/// Bytes of a function's name.
const NAME: usize = 32;
/// Bytes before what a message holds: what it is, of which function and for how many rows.
const FUNCTION_HEAD: usize = BEGIN + NAME + 8;
/// Bytes of the hash at the end, which shows damage.
const DIGEST: usize = 32;

fn head(kind: Kind, exchange: &Exchange<'_>) -> Vec<u8> {
    [&beginning(kind)[..], &exchange.name(), &(exchange.rows() as u64).to_le_bytes()].concat()
}

pub(super) fn digest(message: &[u8]) -> [u8; DIGEST] {
    *blake3::Hasher::new_derive_key("tacit nisc function file v1").update(message).finalize().as_bytes()
}

/// Whether the digest at the end is that of all before.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    bytes.split_last_chunk::<DIGEST>().is_some_and(|(signed, found)| digest(signed) == *found)
}

/// The message of these parts, with its digest.
fn whole(kind: Kind, exchange: &Exchange<'_>, parts: [&[u8]; 2]) -> Vec<u8> {
    let mut out = head(kind, exchange);
    out.reserve_exact(parts[0].len() + parts[1].len() + DIGEST);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    let digest = digest(&out);
    out.extend_from_slice(&digest);
    out
}

/// What a message of `kind` and of this exchange holds, which must be as long as it says: before that, nothing of
/// it is looked at but its head.
fn read<'a>(message: &'a [u8], kind: Kind, exchange: &Exchange<'_>, len: Option<usize>) -> Result<&'a [u8]> {
    let cut = malformed("the file is cut short");
    let (name, rest) = after_beginning(message, kind)?.split_at_checked(NAME).ok_or(cut)?;
    if name != exchange.name() {
        return Err(malformed(
            "was made for another function; both sides give the same function, with the same options",
        ));
    }
    if rows_of(message) != Some(exchange.rows() as u64) {
        return Err(malformed("was made for another number of rows"));
    }
    if Some(message.len()) != len {
        return Err(malformed(
            "the file is damaged: its length is not that of its function; have it sent again",
        ));
    }
    if !is_whole(message) {
        return Err(malformed("the file is damaged; have it sent again"));
    }
    Ok(&rest[8..rest.len() - DIGEST])
}

fn rows_of(message: &[u8]) -> Option<u64> {
    let mut rows = [0; 8];
    rows.copy_from_slice(message.get(BEGIN + NAME..FUNCTION_HEAD)?);
    Some(u64::from_le_bytes(rows))
}

pub(super) fn rows_asked(question: &[u8]) -> Result<u64> {
    after_beginning(question, Kind::FunctionQuestion)?;
    rows_of(question).ok_or(malformed("the file is cut short"))
}

/// How many rows the secret file asks for.
pub(super) fn rows_of_secret(bytes: &[u8]) -> Result<u64> {
    rows_of(bytes).ok_or(malformed("the file is damaged; ask again with tacit nisc eval ask"))
}

/// Bytes of a public key, an answer and a question on its transfers.
fn lengths(params: Params) -> Option<[usize; 3]> {
    let [public, answer, question, _] = params.message_bytes().map(|bytes| usize::try_from(bytes).ok());
    Some([public?, answer?, question?])
}

pub(super) fn question_len(exchange: &Exchange<'_>) -> Option<usize> {
    let [public, _, question] = lengths(exchange.params())?;
    Some(FUNCTION_HEAD + public + question + DIGEST)
}

pub(super) fn reply_len(exchange: &Exchange<'_>) -> Option<usize> {
    let [_, answer, _] = lengths(exchange.params())?;
    let reply = long_reply_len(exchange.params(), exchange.width(), exchange.attached()?)?;
    (FUNCTION_HEAD + answer + DIGEST).checked_add(reply)
}

pub(super) fn question(exchange: &Exchange<'_>, public: &[u8], question: &[u8]) -> Vec<u8> {
    whole(Kind::FunctionQuestion, exchange, [public, question])
}

/// The public key and the question on its transfers.
pub(super) fn read_question<'a>(exchange: &Exchange<'_>, message: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    let body = read(message, Kind::FunctionQuestion, exchange, question_len(exchange))?;
    if Params::of(body)? != exchange.params() {
        return Err(malformed("the question has other parameters"));
    }
    let [public, ..] = lengths(exchange.params()).ok_or(malformed("the question is too long"))?;
    Ok(body.split_at(public))
}

pub(super) fn reply(exchange: &Exchange<'_>, answer: &[u8], reply: &[u8]) -> Vec<u8> {
    whole(Kind::FunctionReply, exchange, [answer, reply])
}

/// The answer and the reply to the question on its transfers.
pub(super) fn read_reply<'a>(exchange: &Exchange<'_>, message: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    let body = read(message, Kind::FunctionReply, exchange, reply_len(exchange))?;
    let [_, answer, _] = lengths(exchange.params()).ok_or(malformed("the reply is too long"))?;
    Ok(body.split_at(answer))
}

/// Where the receiver's key lies in the secret file.
pub(super) const KEY_AT: usize = FUNCTION_HEAD;
/// Bytes of the largest secret file.
pub(super) const LARGEST_SECRET: usize = FUNCTION_HEAD + ReceiverKey::LEN + super::LARGEST / 8 + 1024;

pub(super) fn secret(exchange: &Exchange<'_>, key: &[u8], question: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(whole(Kind::FunctionKey, exchange, [key, question]))
}

/// The key and the question.
pub(super) fn read_secret<'a>(exchange: &Exchange<'_>, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    let len = lengths(exchange.params())
        .map(|[_, _, question]| FUNCTION_HEAD + ReceiverKey::LEN + question + DIGEST);
    let body = read(bytes, Kind::FunctionKey, exchange, len)?;
    Ok(body.split_at(ReceiverKey::LEN))
}
