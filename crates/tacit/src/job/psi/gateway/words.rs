//! What is said to a gateway by its own cluster, and between two gateways.
//!
//! A connection inside the cluster is TLS in which the gateway proves a key that the token for all jobs
//! gives; the driver makes it of the token, and tasks have its public half with their job. It carries a head
//! of fixed length, one request, and its reply, each with a mark: a MAC of 32 bytes under the token that the
//! caller shows to have. The head says how long the request is: for a caller without a token the gateway holds
//! no more than a head. The marks of head and request bind a nonce of the gateway's, that of a reply one of the
//! caller's. The token itself never travels.

use super::super::buckets::MAX_BUCKETS;
use crate::{Blame, Error, Result};
use std::time::Duration;
use tacit_crypto::Prg;
use tacit_crypto::text::counted;
use tacit_net::{Agreement, Channel, Identity, Limits};
use zeroize::Zeroizing;

const MAGIC: [u8; 16] = *b"tacit gateway 04";
/// Longest request.
const MOST: usize = 1 << 22;
/// Bytes of a [`Head`].
pub(super) const LENGTH_OF_HEAD: usize = 2 + MAX_LABEL + 8 + 32;
/// Longest result of a bucket, and so longest reply: columns of matching rows make it long.
const MOST_OF_RESULT: usize = 1 << 30;
/// Bytes of a result that are taken at a time.
const PIECE: usize = 1 << 20;
/// Longest name of a job.
pub(super) const MAX_LABEL: usize = 128;

/// What lets its holder speak to a gateway: about all jobs, or about one.
#[derive(Clone)]
pub struct Token(pub(super) Zeroizing<[u8; 32]>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token([secret])")
    }
}

impl Token {
    /// The token for `label` alone, which the token for all jobs gives.
    pub(super) fn of_job(&self, label: &str) -> Token {
        let key = Zeroizing::new(blake3::derive_key("tacit 1 gateway: token of a job", &*self.0));
        Token(Zeroizing::new(*blake3::keyed_hash(&key, label.as_bytes()).as_bytes()))
    }

    /// Who a gateway with this token is in its cluster. That of a job gives another one, which nobody is.
    pub(super) fn identity(&self) -> Result<Identity> {
        Ok(Identity::of_secret("tacit 1 gateway: identity in its cluster", &self.0)?)
    }

    fn mark(&self, what: &str, nonce: &[u8; 32], body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(what.len() as u64).to_le_bytes()).update(what.as_bytes());
        hasher.update(nonce).update(body);
        hasher.finalize()
    }
}

/// What both gateways compare before a job begins, and for how long a side waits for the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Terms {
    pub protocol: String,
    pub role: String,
    pub peer_role: String,
    pub parameters: Vec<(String, String)>,
    /// Our distinct keys.
    pub own: u64,
    /// The fewest buckets that this side asks for.
    pub buckets: u64,
    /// Seconds in which nothing may move.
    pub patience: u64,
    /// The most keys that the peer may have; the peer does not hear of it.
    pub most_peer: u64,
}

impl Terms {
    pub(super) fn agreement(&self) -> Agreement {
        let whole = Agreement::new(&self.protocol, &self.role, &self.peer_role);
        self.parameters.iter().fold(whole, |whole, (name, value)| whole.with(name, value))
    }

    pub(super) fn write(&self, out: &mut Writer) {
        for text in [&self.protocol, &self.role, &self.peer_role] {
            out.text(text);
        }
        out.number(self.parameters.len() as u64);
        for (name, value) in &self.parameters {
            out.text(name);
            out.text(value);
        }
        for number in [self.own, self.buckets, self.patience, self.most_peer] {
            out.number(number);
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (protocol, role, peer_role) = (from.text()?, from.text()?, from.text()?);
        let count = from.number()?;
        let parameters = (0..count).map(|_| Ok((from.text()?, from.text()?))).collect::<Result<Vec<_>>>()?;
        let [own, buckets, patience, most_peer] =
            [from.number()?, from.number()?, from.number()?, from.number()?];
        if !buckets.is_power_of_two() || buckets > MAX_BUCKETS {
            return Err(unknown());
        }
        Ok(Terms { protocol, role, peer_role, parameters, own, buckets, patience, most_peer })
    }
}

/// What the cluster asks of its gateway.
pub(super) enum Request {
    /// Settles a job with the peer, or finds what was settled.
    Open { label: String, terms: Terms },
    /// How far a job is.
    Status { label: String },
    /// A task is ready to run this bucket.
    Bucket { label: String, run: [u8; 32], number: u32, digest: [u8; 32], patience: u64 },
    /// What a task's run of the bucket gave: so many bytes of this BLAKE3 hash, which follow.
    Result {
        label: String,
        run: [u8; 32],
        number: u32,
        attempt: u8,
        received: bool,
        length: u64,
        hash: [u8; 32],
    },
    /// A check failed in a task.
    Cheated { label: String, run: [u8; 32] },
}

/// What it answers.
pub(super) enum Reply {
    /// As settled: name and bucket key, sizes, buckets, and whether this side is the first.
    Plan { name: [u8; 32], key: [u8; 32], own: u64, peer: u64, buckets: u64, first: bool },
    /// How often each bucket was begun, and which have ended.
    Status { begun: Vec<u8>, ended: Vec<u8>, received: bool },
    /// Run it now: what follows on this connection is the peer's task's.
    Go { attempt: u8, session: [u8; 32] },
    /// The bucket has ended, with this result.
    Ended { result: Zeroizing<Vec<u8>> },
    /// Its slot is wanted for an earlier bucket: come again.
    Deferred,
    /// The attempt came to nothing: come again.
    Again,
    /// It was noted.
    Noted,
    /// A fault, by whose it is.
    Refused { blame: u8, text: String },
}

pub(super) fn refuse(error: &Error) -> Reply {
    let blame = match error.blame() {
        Blame::Usage => 0,
        Blame::Input => 1,
        Blame::Peer => 2,
        Blame::Other => 3,
    };
    Reply::Refused { blame, text: error.to_string() }
}

/// The error that a refusal stands for.
pub(super) fn refused(blame: u8, text: String) -> Error {
    match blame {
        0 => Error::Usage(text),
        1 => Error::Input(text),
        2 => Error::Peer(text),
        _ => Error::Other(text),
    }
}

fn unknown() -> Error {
    Error::Input("the gateway and its caller are of different releases".to_owned())
}

/// Puts fields one behind the other.
#[derive(Default)]
pub(super) struct Writer(pub Zeroizing<Vec<u8>>);

impl Writer {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn texts(&mut self, texts: &[String]) {
        self.number(texts.len() as u64);
        texts.iter().for_each(|text| self.text(text));
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }
}

/// Takes them apart.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn cut(&mut self, length: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length).ok_or_else(unknown)?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.cut(8)?.try_into().map_err(|_| unknown())?))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        self.cut(usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub(super) fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| unknown())
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>> {
        let count = self.number()?;
        (0..count).map(|_| self.text()).collect()
    }

    pub(super) fn array(&mut self) -> Result<[u8; 32]> {
        self.bytes()?.try_into().map_err(|_| unknown())
    }

    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Result<T> {
        T::try_from(self.number()?).map_err(|_| unknown())
    }
}

impl Request {
    /// The job that it is about.
    pub(super) fn label(&self) -> &str {
        match self {
            Request::Open { label, .. }
            | Request::Status { label }
            | Request::Bucket { label, .. }
            | Request::Result { label, .. }
            | Request::Cheated { label, .. } => label,
        }
    }

    pub(super) fn write(&self, out: &mut Writer) {
        match self {
            Request::Open { label, terms } => {
                out.number(0);
                out.text(label);
                terms.write(out);
            }
            Request::Status { label } => {
                out.number(1);
                out.text(label);
            }
            Request::Bucket { label, run, number, digest, patience } => {
                out.number(2);
                out.text(label);
                out.bytes(run);
                out.number((*number).into());
                out.bytes(digest);
                out.number(*patience);
            }
            Request::Result { label, run, number, attempt, received, length, hash } => {
                out.number(3);
                out.text(label);
                out.bytes(run);
                out.number((*number).into());
                out.number((*attempt).into());
                out.number((*received).into());
                out.number(*length);
                out.bytes(hash);
            }
            Request::Cheated { label, run } => {
                out.number(4);
                out.text(label);
                out.bytes(run);
            }
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self> {
        let kind = from.number()?;
        let label = from.text()?;
        if label.is_empty() || label.len() > MAX_LABEL {
            return Err(no_label());
        }
        Ok(match kind {
            0 => Request::Open { label, terms: Terms::read(from)? },
            1 => Request::Status { label },
            2 => {
                let (run, number, digest) = (from.array()?, from.small()?, from.array()?);
                Request::Bucket { label, run, number, digest, patience: from.number()? }
            }
            3 => {
                let (run, number, attempt) = (from.array()?, from.small()?, from.small()?);
                let (received, length, hash) = (from.number()? == 1, from.number()?, from.array()?);
                Request::Result { label, run, number, attempt, received, length, hash }
            }
            4 => Request::Cheated { label, run: from.array()? },
            _ => return Err(unknown()),
        })
    }
}

impl Reply {
    pub(super) fn write(&self, out: &mut Writer) {
        match self {
            Reply::Plan { name, key, own, peer, buckets, first } => {
                out.number(0);
                out.bytes(name);
                out.bytes(key);
                for number in [*own, *peer, *buckets, u64::from(*first)] {
                    out.number(number);
                }
            }
            Reply::Status { begun, ended, received } => {
                out.number(1);
                out.bytes(begun);
                out.bytes(ended);
                out.number((*received).into());
            }
            Reply::Go { attempt, session } => {
                out.number(2);
                out.number((*attempt).into());
                out.bytes(session);
            }
            Reply::Ended { result } => {
                out.number(3);
                out.bytes(result);
            }
            Reply::Deferred => out.number(4),
            Reply::Again => out.number(5),
            Reply::Noted => out.number(6),
            Reply::Refused { blame, text } => {
                out.number(7);
                out.number((*blame).into());
                out.text(text);
            }
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self> {
        Ok(match from.number()? {
            0 => Reply::Plan {
                name: from.array()?,
                key: from.array()?,
                own: from.number()?,
                peer: from.number()?,
                buckets: from.number()?,
                first: from.number()? == 1,
            },
            1 => {
                let (begun, ended) = (from.bytes()?.to_vec(), from.bytes()?.to_vec());
                Reply::Status { begun, ended, received: from.number()? == 1 }
            }
            2 => Reply::Go { attempt: from.small()?, session: from.array()? },
            3 => Reply::Ended { result: Zeroizing::new(from.bytes()?.to_vec()) },
            4 => Reply::Deferred,
            5 => Reply::Again,
            6 => Reply::Noted,
            7 => Reply::Refused { blame: from.small()?, text: from.text()? },
            _ => return Err(unknown()),
        })
    }
}

pub(super) fn unknown_token() -> Error {
    let what = "the gateway does not know the token: name the file that it wrote when it was started";
    Error::Input(what.to_owned())
}

pub(super) fn turned_away() -> Error {
    Error::Input("a caller without the token was turned away".to_owned())
}

fn nonce() -> [u8; 32] {
    let mut nonce = [0; 32];
    Prg::from_os().fill_bytes(&mut nonce);
    nonce
}

/// The caller's half: shows that it has `token`, asks, with the bytes `behind` the request, and returns the
/// answer, whose mark was checked; waits for it as long as `patience` says.
pub(super) fn ask(
    channel: &mut Channel,
    token: &Token,
    request: &Request,
    behind: &[u8],
    patience: Duration,
) -> Result<Reply> {
    let (mut magic, mut theirs, ours) = ([0; 16], [0; 32], nonce());
    channel.recv(&mut magic)?;
    channel.recv(&mut theirs)?;
    if magic != MAGIC {
        return Err(Error::Input("what answers there is not a gateway of this release".to_owned()));
    }
    channel.set_limits(Limits { read: patience, idle: patience, ..channel.limits() });
    let mut body = Writer::default();
    request.write(&mut body);
    let (opens, label) = (matches!(request, Request::Open { .. }), request.label());
    let head = Head { opens, label: label.to_owned(), length: body.0.len() as u64, nonce: ours }.bytes()?;
    channel.send(&head)?;
    channel.send(token.mark("head", &theirs, &head).as_bytes())?;
    channel.send(&body.0)?;
    channel.send(token.mark("request", &theirs, &body.0).as_bytes())?;
    channel.send(behind)?;
    channel.flush()?;
    let body = Zeroizing::new(channel.recv_sized(MOST_OF_RESULT + MOST)?);
    let mut mark = [0; 32];
    channel.recv(&mut mark)?;
    if token.mark("reply", &ours, &body) != mark {
        return Err(unknown_token());
    }
    match Reply::read(&mut Reader(&body))? {
        Reply::Refused { blame, text } => Err(refused(blame, text)),
        reply => Ok(reply),
    }
}

/// What a caller is answered with.
pub(super) struct Asked {
    token: Token,
    nonce: [u8; 32],
}

/// What is known of a request before any of it is received.
pub(super) struct Head {
    /// Whether it opens a job, for which the token for all jobs is shown.
    pub opens: bool,
    pub label: String,
    pub length: u64,
    /// The caller's.
    pub nonce: [u8; 32],
}

impl Head {
    pub(super) fn bytes(&self) -> Result<[u8; LENGTH_OF_HEAD]> {
        let label = self.label.as_bytes();
        if label.is_empty() || label.len() > MAX_LABEL {
            return Err(no_label());
        }
        let mut out = [0; LENGTH_OF_HEAD];
        (out[0], out[1]) = (self.opens.into(), label.len() as u8);
        out[2..2 + label.len()].copy_from_slice(label);
        out[2 + MAX_LABEL..LENGTH_OF_HEAD - 32].copy_from_slice(&self.length.to_le_bytes());
        out[LENGTH_OF_HEAD - 32..].copy_from_slice(&self.nonce);
        Ok(out)
    }

    /// Of bytes that nobody vouches for yet.
    pub(super) fn read(bytes: &[u8; LENGTH_OF_HEAD]) -> Result<Self> {
        let mut from = Reader(bytes);
        let [opens, length] = *from.cut(2)? else { return Err(unknown()) };
        let label = from.cut(MAX_LABEL)?.get(..length.into()).ok_or_else(unknown)?;
        let label = String::from_utf8(label.to_vec()).map_err(|_| unknown())?;
        let (length, nonce) = (from.number()?, from.cut(32)?.try_into().map_err(|_| unknown())?);
        Ok(Head { opens: opens == 1, label, length, nonce })
    }
}

fn no_label() -> Error {
    Error::Usage(format!("a job's name has 1 to {MAX_LABEL} bytes"))
}

/// The gateway's half: hears a request. Who has not the token of its job, or the one for all jobs where a job
/// is opened, is told that and nothing else, and is heard no further than its head.
pub(super) fn hear(channel: &mut Channel, all: &Token) -> Result<(Request, Asked)> {
    let ours = nonce();
    channel.send(&MAGIC)?;
    channel.send(&ours)?;
    channel.flush()?;
    let mut bytes = [0; LENGTH_OF_HEAD];
    channel.recv(&mut bytes)?;
    let mut mark = [0; 32];
    channel.recv(&mut mark)?;
    let head = Head::read(&bytes)?;
    let token = if head.opens { all.clone() } else { all.of_job(&head.label) };
    // Two hashes are compared in constant time.
    if token.mark("head", &ours, &bytes) != mark {
        // An answer under no token: all that it says is that this one was wrong.
        channel.send_sized(&[])?;
        channel.send(&[0; 32])?;
        channel.flush()?;
        return Err(turned_away());
    }
    if head.length > MOST as u64 {
        return Err(unknown());
    }
    let mut body = Zeroizing::new(vec![0; head.length as usize]);
    channel.recv(&mut body)?;
    channel.recv(&mut mark)?;
    if token.mark("request", &ours, &body) != mark {
        return Err(turned_away());
    }
    let request = Request::read(&mut Reader(&body))?;
    if matches!(request, Request::Open { .. }) != head.opens || request.label() != head.label {
        return Err(unknown());
    }
    Ok((request, Asked { token, nonce: head.nonce }))
}

/// Takes the result that follows a request.
pub(super) fn take(channel: &mut Channel, length: u64, hash: &[u8; 32]) -> Result<Zeroizing<Vec<u8>>> {
    if length > MOST_OF_RESULT as u64 {
        return Err(Error::Input(format!(
            "a bucket's result has {length}, more than the {MOST_OF_RESULT} allowed; use more buckets, or ask for fewer columns",
            length = counted(length, "byte")
        )));
    }
    let mut result = Zeroizing::new(Vec::new());
    while (result.len() as u64) < length {
        let at = result.len();
        result.resize(at + PIECE.min(length as usize - at), 0);
        channel.recv(&mut result[at..])?;
    }
    if blake3::hash(&result) != *hash {
        return Err(Error::Input("a bucket's result changed on its way to the gateway".to_owned()));
    }
    Ok(result)
}

impl Asked {
    pub(super) fn answer(&self, channel: &mut Channel, reply: &Reply) -> Result<()> {
        let mut body = Writer::default();
        reply.write(&mut body);
        channel.send_sized(&body.0)?;
        channel.send(self.token.mark("reply", &self.nonce, &body.0).as_bytes())?;
        Ok(channel.flush()?)
    }
}

/// What gateways tell each other while a job goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A task waits with this bucket.
    Offer(u32),
    /// None waits with it any more.
    Withdraw(u32),
    /// The first gateway begins this attempt at it.
    Begin(u32, u8),
    /// The attempt's result is on the disk.
    Held(u32, u8),
    /// The attempt came to nothing.
    Failed(u32, u8),
    /// The job has ended for good.
    Over,
    /// All buckets have ended, on both sides so far as we know.
    Complete,
}

pub(super) const EVENT: usize = 6;
/// The most events of a message.
const MOST_EVENTS: usize = 1 << 14;

/// One exchange: both sides send what has happened, and hear it.
pub(super) fn exchange(channel: &mut Channel, events: &[Event]) -> Result<Vec<Event>> {
    let bytes: Vec<u8> = events.iter().flat_map(|event| encode(*event)).collect();
    channel.send_sized(&bytes)?;
    channel.flush()?;
    let bytes = channel.recv_sized(MOST_EVENTS * EVENT)?;
    let (events, rest) = bytes.as_chunks::<EVENT>();
    let events: Option<Vec<Event>> = events.iter().map(decode).collect();
    match events.filter(|_| rest.is_empty()) {
        Some(events) => Ok(events),
        None => Err(Error::Peer("the other gateway's message is not valid".to_owned())),
    }
}

pub(super) fn encode(event: Event) -> [u8; EVENT] {
    let (kind, number, attempt) = match event {
        Event::Offer(number) => (1, number, 0),
        Event::Withdraw(number) => (2, number, 0),
        Event::Begin(number, attempt) => (3, number, attempt),
        Event::Held(number, attempt) => (4, number, attempt),
        Event::Failed(number, attempt) => (5, number, attempt),
        Event::Over => (6, 0, 0),
        Event::Complete => (7, 0, 0),
    };
    let [a, b, c, d] = number.to_le_bytes();
    [kind, a, b, c, d, attempt]
}

pub(super) fn decode(bytes: &[u8; EVENT]) -> Option<Event> {
    let [kind, a, b, c, d, attempt] = *bytes;
    let number = u32::from_le_bytes([a, b, c, d]);
    Some(match kind {
        1 => Event::Offer(number),
        2 => Event::Withdraw(number),
        3 => Event::Begin(number, attempt),
        4 => Event::Held(number, attempt),
        5 => Event::Failed(number, attempt),
        6 => Event::Over,
        7 => Event::Complete,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_net::memory;

    fn token(byte: u8) -> Token {
        Token(Zeroizing::new([byte; 32]))
    }

    /// What the gateway hears of a caller that sends a head, with a mark under `token`, and then is silent.
    fn head_alone(token: &Token, length: u64) -> String {
        let caller = |channel: &mut Channel| {
            let (mut magic, mut theirs) = ([0; 16], [0; 32]);
            channel.recv(&mut magic).unwrap();
            channel.recv(&mut theirs).unwrap();
            let head = Head { opens: true, label: "job".into(), length, nonce: [7; 32] }.bytes().unwrap();
            channel.send(&head).unwrap();
            channel.send(token.mark("head", &theirs, &head).as_bytes()).unwrap();
            channel.flush().unwrap();
            // It stays until the gateway has had enough of it.
            let _ = channel.recv(&mut [0; 1 << 10]);
        };
        let gateway = |channel: &mut Channel| {
            let short = Duration::from_millis(300);
            channel.set_limits(Limits { read: short, idle: short, ..channel.limits() });
            hear(channel, &super::tests::token(1)).map(|_| ()).unwrap_err().to_string()
        };
        memory::run(caller, gateway).1
    }

    #[test]
    fn nothing_is_received_for_a_caller_without_the_token_but_its_head() {
        // Before, the request came first and its mark behind it: the gateway waited here with 4 MiB at hand.
        assert_eq!(head_alone(&token(2), MOST as u64), turned_away().to_string());
        // With the token it waits for what was announced, if that is no more than a request may be.
        assert!(head_alone(&token(1), MOST as u64).contains("gave up"), "{}", head_alone(&token(1), 9));
        assert_eq!(head_alone(&token(1), MOST as u64 + 1), unknown().to_string());
    }

    #[test]
    fn a_request_is_heard_as_it_was_asked_and_a_label_binds_its_token() {
        let ask_of = |token: Token, label: &str| {
            let request = Request::Status { label: label.to_owned() };
            memory::run(
                move |channel| ask(channel, &token, &request, &[], Duration::from_secs(5)).map(|_| ()),
                |channel| {
                    let (request, asked) = hear(channel, &super::tests::token(1))?;
                    asked.answer(channel, &Reply::Noted)?;
                    Ok::<_, Error>(request.label().to_owned())
                },
            )
        };
        let (told, heard) = ask_of(token(1).of_job("mine"), "mine");
        assert_eq!((told.is_ok(), heard.unwrap().as_str()), (true, "mine"));
        let (told, heard) = ask_of(token(1).of_job("mine"), "yours");
        assert_eq!(told.unwrap_err().to_string(), unknown_token().to_string());
        assert_eq!(heard.unwrap_err().to_string(), turned_away().to_string());
        assert!(ask_of(token(1), &"x".repeat(MAX_LABEL + 1)).0.is_err());
    }
}
