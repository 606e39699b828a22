//! What the two sides say to each other before a run and after it: one JSON object a message.

use crate::listed::Listed;
use crate::terms::{Accept, Go, Offer, VERSION};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tacit::net::{Agreement, Channel, Limits};
use tacit::{Error, Result};

/// Bytes of a message, at most.
const LARGEST_MESSAGE: usize = 1 << 16;
/// Bytes of a question in a request, at most: an offer has it too, and escapes in JSON take up to six times as many.
pub(crate) const MOST_QUESTION: usize = 1 << 13;
/// Time for a message that takes its sender no work.
pub(crate) const PROMPT: Duration = Duration::from_secs(30);

/// A request for a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The job's name.
    pub job: String,
    /// The kind of result and its columns, if the first that is allowed will not do.
    pub reveal: Option<String>,
    /// Who shall get the result: `service`, `client` or `both`.
    pub result: Option<String>,
    /// The public key of the client's records, in hexadecimal digits, where TLS shows a certificate instead.
    pub key: Option<String>,
    /// The question, of a job that answers them: its canonical text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// A no, with the rule that says so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    /// The rule's name, as the policy file has it.
    pub rule: String,
    /// Why, in words.
    pub what: String,
}

/// The end of a run, as one side has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Close {
    /// Its commitment to its result, if it got one.
    pub result: Option<String>,
}

/// Every message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Message {
    /// A request.
    Ask(Ask),
    /// Which jobs may the peer ask for?
    List,
    /// One of them.
    Listed(Box<Listed>),
    /// There are no more.
    Listing(u64),
    /// What is offered.
    Offer(Box<Offer>),
    /// The offer is taken.
    Accept(Accept),
    /// The offer is not taken.
    Decline,
    /// The run begins.
    Go(Go),
    /// Of a question: what the service puts in is ready, and the run may go on.
    Ready,
    /// There is no run.
    Refusal(Refusal),
    /// The run is over.
    Close(Close),
    /// A signature on the record's common part.
    Signature(String),
}

/// What both sides agree on before they talk about runs.
pub(crate) fn agreement(role: &str, peer_role: &str) -> Agreement {
    Agreement::new("request", role, peer_role)
        .with("version of requests", VERSION)
        .with("security", "malicious")
}

/// Sends one message; returns its bytes.
pub(crate) fn send(channel: &mut Channel, message: &Message) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(message).map_err(|e| Error::Other(format!("a message: {e}")))?;
    if bytes.len() > LARGEST_MESSAGE {
        return Err(Error::Other("a message of a request is too long; send fewer columns".into()));
    }
    channel.send_sized(&bytes)?;
    channel.flush()?;
    Ok(bytes)
}

/// Receives one message within `patience`; returns it and its bytes.
pub(crate) fn receive(channel: &mut Channel, patience: Duration) -> Result<(Message, Vec<u8>)> {
    let before = channel.limits();
    channel.set_limits(Limits { read: patience, idle: patience, ..before });
    let received = channel.recv_sized(LARGEST_MESSAGE);
    channel.set_limits(before);
    let bytes = received?;
    let message = serde_json::from_slice(&bytes)
        .map_err(|_| Error::Peer("the peer sent a message of a request that makes no sense".into()))?;
    Ok((message, bytes))
}

/// The error for a message that was not due.
pub(crate) fn out_of_turn() -> Error {
    Error::Peer("the peer sent a message of a request out of turn; run the same release on both sides".into())
}
