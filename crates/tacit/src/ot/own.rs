//! What the parties bring to chosen OT: messages of the sender's, choices of the receiver's.

use crate::{Error, Result};
use tacit_crypto::text::counted;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// What the sender's messages are. The receiver is told it, with their width, before it sends a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Blocks of 16 bytes.
    Blocks,
    /// Bytes, in all messages equally many.
    Bytes,
    /// Bytes of any number: a one bit and zeros fill them up to the width.
    Strings,
    /// Text in UTF-8, filled up as [`Strings`](Form::Strings).
    Text,
}

const EVERY_FORM: [Form; 4] = [Form::Blocks, Form::Bytes, Form::Strings, Form::Text];

impl Form {
    /// Its name in results: `blocks`, `bytes`, `strings` or `text`.
    pub fn name(self) -> &'static str {
        match self {
            Form::Blocks => "blocks",
            Form::Bytes => "bytes",
            Form::Strings => "strings",
            Form::Text => "text",
        }
    }

    /// Its number in messages.
    pub(crate) fn code(self) -> u8 {
        EVERY_FORM.iter().position(|form| *form == self).unwrap_or(0) as u8
    }

    pub(crate) fn of_code(code: u8) -> Option<Form> {
        EVERY_FORM.get(usize::from(code)).copied()
    }

    fn is_filled(self) -> bool {
        matches!(self, Form::Strings | Form::Text)
    }
}

/// How the messages lie: what each is, and how many bytes it takes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// What a message is.
    pub form: Form,
    /// Bytes of each message as it travels, one more than the longest of [`Form::Strings`] and
    /// [`Form::Text`].
    pub width: usize,
}

/// A byte behind every string, before the zeros.
const FILL: u8 = 0x80;

impl Layout {
    /// Messages of one block, which both sides draw that bring nothing.
    pub const BLOCKS: Layout = Layout { form: Form::Blocks, width: 16 };

    /// Bytes of the longest message that has room.
    pub fn longest(self) -> usize {
        self.width - usize::from(self.form.is_filled())
    }

    /// The message in these `width` bytes; to be asked once all transfers are made.
    ///
    /// Whatever a sender sent is a message: an error would tell it which of a pair was chosen. So would the
    /// time, as long as more transfers follow: it depends on the message.
    pub fn message(self, row: &[u8]) -> &[u8] {
        if !self.form.is_filled() {
            return row;
        }
        match row.iter().rposition(|byte| *byte != 0) {
            Some(at) if row[at] == FILL => &row[..at],
            _ => row,
        }
    }

    /// Tells the receiver, and waits until it takes them: no transfer is used up for messages that it does not; a
    /// dealer's seed, which is opened before, is.
    pub(super) fn announce(self, channel: &mut Channel) -> Result<()> {
        let form = u128::from(self.form.code());
        channel.send_block(Block::new(form | (self.width as u128) << 64))?;
        channel.flush()?;
        let mut taken = [0];
        channel.recv(&mut taken)?;
        match taken {
            [1] => Ok(()),
            _ => Err(Error::Peer(format!(
                "the peer does not accept messages of {}, or of this form; see its output",
                counted(self.longest(), "byte")
            ))),
        }
    }

    /// What was [announced](Self::announce), if `takes` takes it, of `most` bytes a message at most; and tells the
    /// sender.
    pub(super) fn taken(
        channel: &mut Channel,
        most: u64,
        takes: impl FnOnce(Self) -> Result<()>,
    ) -> Result<Self> {
        let layout = Self::announced(channel, most).and_then(|layout| takes(layout).map(|()| layout));
        // A sender that is gone already needs no word.
        let told = channel.send(&[u8::from(layout.is_ok())]).and_then(|()| channel.flush());
        let layout = layout?;
        told?;
        Ok(layout)
    }

    fn announced(channel: &mut Channel, most: u64) -> Result<Self> {
        let told = channel.recv_block()?;
        let broken = |what: &str| Error::Peer(format!("the sender's messages are announced {what}"));
        let form = usize::try_from(told.low()).ok().and_then(|form| EVERY_FORM.get(form));
        let form = *form.ok_or_else(|| broken("in an unknown form"))?;
        let width = usize::try_from(told.high()).map_err(|_| broken("longer than memory"))?;
        let layout = Layout { form, width };
        if width == 0 || form == Form::Blocks && layout != Layout::BLOCKS {
            return Err(broken("with an invalid length"));
        }
        if layout.longest() as u64 > most {
            let what = format!(
                "the sender's longest message has {}, more than the {most} accepted",
                counted(layout.longest(), "byte")
            );
            return Err(Error::Parameter { name: "max-message", what });
        }
        Ok(layout)
    }
}

/// The sender's messages, in pairs; overwritten when dropped.
pub struct Messages {
    layout: Layout,
    /// Both messages of a pair one after the other, pair by pair.
    rows: Zeroizing<Vec<u8>>,
}

impl Messages {
    /// Pairs of blocks.
    pub fn blocks(pairs: &[[Block; 2]]) -> Self {
        let rows = Zeroizing::new(Block::as_bytes(pairs.as_flattened()).to_vec());
        Messages { layout: Layout::BLOCKS, rows }
    }

    /// Pairs of blocks, as [`bytes`](Self::bytes) of 16.
    pub fn of_blocks(rows: Zeroizing<Vec<u8>>) -> Result<Self> {
        Ok(Messages { layout: Layout::BLOCKS, ..Self::bytes(Layout::BLOCKS.width, rows)? })
    }

    /// Messages of `width` bytes: `rows` has both of a pair one after the other, pair by pair.
    ///
    /// An error unless `rows` are whole pairs of at least one byte a message.
    pub fn bytes(width: usize, rows: Zeroizing<Vec<u8>>) -> Result<Self> {
        match width.checked_mul(2) {
            Some(pair) if pair > 0 && rows.len().is_multiple_of(pair) => {
                Ok(Messages { layout: Layout { form: Form::Bytes, width }, rows })
            }
            _ => Err(Error::Usage(
                "the two messages of a pair need the same number of bytes, at least one".into(),
            )),
        }
    }

    /// Messages of any length. The receiver learns that of the longest, and of no other that it does not
    /// choose.
    pub fn strings<S: AsRef<[u8]>>(pairs: &[[S; 2]]) -> Self {
        Self::filled(Form::Strings, pairs)
    }

    /// Texts, as [`strings`](Self::strings).
    pub fn texts<S: AsRef<str>>(pairs: &[[S; 2]]) -> Self {
        let pairs: Vec<[&[u8]; 2]> =
            pairs.iter().map(|pair| [pair[0].as_ref().as_bytes(), pair[1].as_ref().as_bytes()]).collect();
        Self::filled(Form::Text, &pairs)
    }

    /// Texts that are UTF-8 already, as [`strings`](Self::strings).
    pub fn utf8<S: AsRef<[u8]>>(pairs: &[[S; 2]]) -> Self {
        Self::filled(Form::Text, pairs)
    }

    fn filled<S: AsRef<[u8]>>(form: Form, pairs: &[[S; 2]]) -> Self {
        let longest = pairs.as_flattened().iter().map(|message| message.as_ref().len()).max();
        let width = longest.unwrap_or(0) + 1;
        let mut rows = Zeroizing::new(vec![0; 2 * width * pairs.len()]);
        for (row, message) in rows.chunks_mut(width).zip(pairs.as_flattened()) {
            let message = message.as_ref();
            row[..message.len()].copy_from_slice(message);
            row[message.len()] = FILL;
        }
        Messages { layout: Layout { form, width }, rows }
    }

    /// How many pairs.
    pub fn len(&self) -> usize {
        self.rows.len() / (2 * self.layout.width)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How they lie.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The first messages of all pairs, one after the other, and the second ones, as they travel.
    pub(crate) fn planes(&self) -> [Zeroizing<Vec<u8>>; 2] {
        let mut planes = [0, 1].map(|_| Zeroizing::new(Vec::with_capacity(self.rows.len() / 2)));
        for (i, row) in self.rows.chunks(self.layout.width).enumerate() {
            planes[i % 2].extend_from_slice(row);
        }
        planes
    }

    /// `count` pairs from the pair `first` on, as they travel.
    pub(super) fn pairs(&self, first: u64, count: usize) -> &[u8] {
        let pair = 2 * self.layout.width;
        &self.rows[first as usize * pair..][..count * pair]
    }

    /// The same pairs as blocks, into `out`.
    pub(super) fn fill(&self, first: u64, out: &mut [[Block; 2]]) {
        let bytes = self.pairs(first, out.len()).as_chunks::<16>().0;
        for (block, bytes) in out.as_flattened_mut().iter_mut().zip(bytes) {
            *block = Block::from_bytes(*bytes);
        }
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Messages({} pairs, {:?}, [secret])", self.len(), self.layout)
    }
}

/// What a side brings to its transfers.
#[derive(Default)]
pub enum Own {
    /// Nothing: what chosen OT takes is drawn at random.
    #[default]
    Drawn,
    /// The sender's messages.
    Messages(Messages),
    /// The receiver's choices, and the longest message in bytes that it takes.
    Choices(Choices),
}

/// The receiver's choices.
pub struct Choices {
    /// A bit for each transfer.
    pub bits: BitVec,
    /// Bytes of the longest message that is taken.
    pub most: u64,
}

/// Bytes of the longest message that a receiver takes unless it says otherwise.
pub const MOST_MESSAGE: u64 = 1 << 20;

impl Own {
    /// How many transfers these are for; `None` for any number.
    pub fn len(&self) -> Option<u64> {
        match self {
            Own::Drawn => None,
            Own::Messages(messages) => Some(messages.len() as u64),
            Own::Choices(choices) => Some(choices.bits.len() as u64),
        }
    }

    /// Whether there is none; never where they are drawn.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Refuses what does not go with the job, or belongs to the other side.
    pub fn fits(&self, job: &super::Job, sender: bool) -> Result<()> {
        let parameter = |name, what: String| Err(Error::Parameter { name, what });
        let name = match self {
            Own::Drawn => return Ok(()),
            Own::Messages(_) => "messages",
            Own::Choices(_) => "choices",
        };
        if matches!(self, Own::Messages(_)) != sender {
            let whose = if sender { "receiver" } else { "sender" };
            return parameter(name, format!("these are the {whose}'s"));
        }
        if job.kind != super::Kind::Ot {
            return parameter(name, "go with kind ot: what the others transfer is drawn at random".into());
        }
        match self.len() {
            Some(len) if len != job.count => {
                parameter(name, format!("there are {len}, and the run is of {}", job.count))
            }
            _ => Ok(()),
        }
    }
}

/// The bits in pieces of `share`, the last one shorter.
pub(super) fn cut(bits: &BitVec, share: usize) -> Vec<BitVec> {
    let lengths = (0..bits.len()).step_by(share.max(1)).map(|at| share.min(bits.len() - at));
    bits.split(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_net::memory;

    #[test]
    fn strings_of_any_length_come_back_and_what_is_none_does_too() {
        let pairs = [["", "a"], ["Zürich\0", "\u{80}"], ["longest of them", "x"]];
        let messages = Messages::texts(&pairs);
        let layout = messages.layout();
        assert_eq!((messages.len(), layout.longest(), layout.form), (3, 15, Form::Text));
        for (row, text) in messages.pairs(0, 3).chunks(layout.width).zip(pairs.as_flattened()) {
            assert_eq!(layout.message(row), text.as_bytes());
        }
        // A sender that fills wrongly, or not at all.
        assert_eq!(layout.message(&[0; 16]), [0; 16]);
        assert_eq!(layout.message(&[7; 16]), [7; 16]);
        assert_eq!(Layout { form: Form::Bytes, width: 2 }.message(&[FILL, 0]), [FILL, 0]);
        let none: &[[&[u8]; 2]] = &[];
        assert!(Messages::strings(none).is_empty());
    }

    #[test]
    fn pairs_of_bytes_are_whole() {
        let bytes = |width, n| Messages::bytes(width, Zeroizing::new(vec![1; n]));
        assert_eq!(bytes(3, 12).unwrap().len(), 2);
        assert!(bytes(3, 9).is_err() && bytes(0, 0).is_err() && bytes(usize::MAX, 4).is_err());
    }

    #[test]
    fn what_is_announced_is_checked() {
        let told = |block: u128, most| {
            let (_, told) = memory::run(
                move |channel| {
                    channel.send_block(Block::new(block)).unwrap();
                    channel.flush().unwrap();
                },
                move |channel| Layout::announced(channel, most).map_err(|error| error.to_string()),
            );
            told
        };
        assert_eq!(told(16 << 64, 16), Ok(Layout::BLOCKS));
        assert_eq!(told(3 | 9 << 64, 8), Ok(Layout { form: Form::Text, width: 9 }));
        assert!(told(3 | 10 << 64, 8).unwrap_err().contains("more than the 8 accepted"));
        assert!(told(1 | 9 << 64, 8).unwrap_err().contains("more than the 8 accepted"));
        for wrong in [4 | 9 << 64, 17 << 64, 1, 3, 1 << 63 | 9 << 64] {
            assert!(told(wrong, u64::MAX).unwrap_err().contains("announced"), "{wrong}");
        }
    }
}
