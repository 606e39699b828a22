//! Oblivious pseudorandom functions over Ristretto: RFC 9497's suite ristretto255-SHA512 in its three modes.
//!
//! - Source: RFC 9497, sections 2 to 4; hashing to the group by RFC 9380, section 5.3.1, and RFC 9496,
//!   section 4.3.4.
//! - Realises: the client gets F(k, x) of its inputs, the server nothing but their number. With
//!   [`Mode::Verifiable`] and [`Mode::PartiallyOblivious`] one proof shows that the whole batch was evaluated
//!   with the key that stands behind a public key known before.
//! - Assumptions: one-more gap Diffie–Hellman in Ristretto, SHA-512 as a random oracle. Every evaluation for
//!   a client that chooses its elements makes the key a little weaker: after Q of them an attack takes about
//!   2^126 / √Q group operations (RFC 9497, section 7.2.3).
//! - Bytes: 32 an input each way, and 64 a proof.
//! - Deviation: none. So a proof binds what RFC 9497 makes it bind, and neither session nor roles; it is a
//!   true statement on a public key and two lists of elements, whoever repeats it.
//!
//! ```
//! use tacit_crypto::Prg;
//! use tacit_psi::oprf::rfc9497::{Mode, ServerKey, Suite};
//! # fn main() -> tacit_psi::Result<()> {
//! let (suite, mut prg) = (Suite::new(Mode::Verifiable), Prg::from_os());
//! let key = ServerKey::generate(&mut prg);
//! let inputs = ["ann", "bob"];
//! let blinded = suite.blind(&inputs, &mut prg)?;
//! let evaluated = suite.evaluate(&key, blinded.elements(), b"", &mut prg)?;
//! let outputs = suite.finalize(&inputs, &blinded, &evaluated, key.public(), b"")?;
//! assert_eq!(outputs, suite.apply(&key, &inputs, b"")?);
//! # Ok(())
//! # }
//! ```

use super::NAME;
use crate::{Error, Result};
use sha2::{Digest, Sha512};
use std::sync::LazyLock;
use subtle::ConstantTimeEq;
use tacit_crypto::Prg;
use tacit_crypto::group::{Encoding, POINT_BYTES, Points, Scalars, UNIFORM_BYTES, is_identity_encoding};
use zeroize::{Zeroize, Zeroizing};

/// The suite's name in RFC 9497.
pub(crate) const SUITE: &str = "ristretto255-SHA512";
/// Bytes of the function's value.
pub(crate) const OUTPUT_BYTES: usize = 64;
/// Bytes of a proof.
pub(crate) const PROOF_BYTES: usize = 64;
/// The most inputs that one proof covers, and the most bytes of an input: their numbers take 16 bits.
pub const MOST: usize = u16::MAX as usize;

/// The function's value.
pub type Output = [u8; OUTPUT_BYTES];
/// A proof of equal discrete logarithms: challenge and response.
pub type Proof = [u8; PROOF_BYTES];

/// What the client can be sure of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Mode {
    /// OPRF: of nothing; the server may use another key for every input.
    Oblivious = 0,
    /// VOPRF: that one key, the public key's, was used for all inputs.
    Verifiable = 1,
    /// POPRF: the same, with a public text that both sides know as a further input.
    PartiallyOblivious = 2,
}

/// One mode of the suite.
#[derive(Clone, Debug)]
pub struct Suite {
    mode: Mode,
    context: Vec<u8>,
    /// The endings of what is hashed to the group and to a scalar: tag and its length.
    group_tag: Vec<u8>,
    scalar_tag: Vec<u8>,
}

/// A server's key pair. The secret is erased when dropped.
#[derive(Clone)]
pub struct ServerKey {
    secret: Scalars,
    public: Encoding,
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKey([secret])")
    }
}

impl ServerKey {
    /// A fresh key.
    pub fn generate(prg: &mut Prg) -> Self {
        Self::from_secret(random_nonzero(1, prg))
    }

    /// The key of a secret that [`to_bytes`](Self::to_bytes) gave; `None` if these bytes are no key.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let secret = Scalars::from_canonical(&[*bytes])?;
        (!secret.any_zero()).then(|| Self::from_secret(secret))
    }

    fn from_secret(secret: Scalars) -> Self {
        let public = Points::mul_base(&secret).encode()[0];
        ServerKey { secret, public }
    }

    /// The public key.
    pub fn public(&self) -> &Encoding {
        &self.public
    }

    /// The secret, to be sealed and kept.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.secret.to_bytes()[0])
    }
}

/// A client's inputs on their way: their blinds, which are erased when dropped, and their blinded elements.
pub struct Blinded {
    blinds: Scalars,
    points: Points,
    elements: Vec<Encoding>,
}

impl Blinded {
    /// What goes to the server, one element an input.
    pub fn elements(&self) -> &[Encoding] {
        &self.elements
    }
}

impl std::fmt::Debug for Blinded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blinded({}, [secret])", self.elements.len())
    }
}

/// The server's answer to a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evaluated {
    /// One element for each of the client's.
    pub elements: Vec<Encoding>,
    /// That all of them were made with one key; zeros with [`Mode::Oblivious`].
    pub proof: Proof,
}

fn cheated(what: &'static str) -> Error {
    Error::Cheated { protocol: NAME, what }
}

/// As many uniform scalars other than zero.
fn random_nonzero(n: usize, prg: &mut Prg) -> Scalars {
    loop {
        // Repeated with probability n / 2^252.
        let scalars = Scalars::random(n, prg);
        if !scalars.any_zero() {
            return scalars;
        }
    }
}

/// The length of what takes part in a hash, as two bytes, the high one first.
fn length(bytes: &[u8]) -> [u8; 2] {
    (bytes.len() as u16).to_be_bytes()
}

/// The elements of a message; neither the identity nor any other encoding that RFC 9497 refuses is among
/// them.
fn decode(elements: &[Encoding]) -> Result<Points> {
    if elements.iter().any(is_identity_encoding) {
        return Err(cheated("an element is the identity"));
    }
    Points::decode(elements.as_flattened())
        .map_err(|_| cheated("an element is not a canonical encoding of a group element"))
}

impl Suite {
    /// The suite in a mode.
    pub fn new(mode: Mode) -> Self {
        let context = [b"OPRFV1-", &[mode as u8][..], b"-", SUITE.as_bytes()].concat();
        let tag = |label: &[u8]| {
            let mut tag = [label, &context].concat();
            tag.push(tag.len() as u8);
            tag
        };
        let (group_tag, scalar_tag) = (tag(b"HashToGroup-"), tag(b"HashToScalar-"));
        Suite { mode, context, group_tag, scalar_tag }
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The key pair that RFC 9497's section 3.2.1 derives from a seed and a text, which may be empty.
    pub fn derive_key(&self, seed: &[u8; 32], info: &[u8]) -> Result<ServerKey> {
        check_length(info)?;
        let tag = tag_of(&[b"DeriveKeyPair", &self.context]);
        for counter in 0..=u8::MAX {
            let secret = hash_to_scalar(&[seed, &length(info), info, &[counter]], &tag);
            if !secret.any_zero() {
                return Ok(ServerKey::from_secret(secret));
            }
        }
        Err(Error::Usage("this seed gives no key: take another"))
    }

    /// Blinds each input, of [`MOST`] bytes at most.
    pub fn blind<I: AsRef<[u8]>>(&self, inputs: &[I], prg: &mut Prg) -> Result<Blinded> {
        self.blind_with(inputs, random_nonzero(inputs.len(), prg))
    }

    fn blind_with<I: AsRef<[u8]>>(&self, inputs: &[I], blinds: Scalars) -> Result<Blinded> {
        let points = self.hash_to_group(inputs)?.mul(&blinds);
        let elements = points.encode();
        refuse_identity(&elements)?;
        Ok(Blinded { blinds, points, elements })
    }

    /// Evaluates a client's elements, [`MOST`] at most, and proves it where the mode asks for that.
    ///
    /// `info` is the public text of [`Mode::PartiallyOblivious`], and empty otherwise. Errors: what the
    /// client sent is no list of elements.
    pub fn evaluate(
        &self,
        key: &ServerKey,
        blinded: &[Encoding],
        info: &[u8],
        prg: &mut Prg,
    ) -> Result<Evaluated> {
        self.evaluate_with(key, blinded, info, random_nonzero(1, prg))
    }

    fn evaluate_with(
        &self,
        key: &ServerKey,
        blinded: &[Encoding],
        info: &[u8],
        nonce: Scalars,
    ) -> Result<Evaluated> {
        if blinded.len() > MOST {
            return Err(Error::Usage("a batch of the oblivious function has at most 65,535 elements"));
        }
        // proof: tags 2.5
        let points = decode(blinded)?;
        let (exponent, secret) = self.exponent(key, info)?;
        let evaluated = points.mul_same(&exponent);
        let elements = evaluated.encode();
        let proof = match self.mode {
            Mode::Oblivious => [0; PROOF_BYTES],
            Mode::Verifiable => {
                self.prove(&secret, &key.public, (blinded, &points), (&elements, &evaluated), &nonce)
            }
            Mode::PartiallyOblivious => {
                let public = Points::mul_base(&secret).encode()[0];
                self.prove(&secret, &public, (&elements, &evaluated), (blinded, &points), &nonce)
            }
        };
        Ok(Evaluated { elements, proof })
    }

    /// The function's values of the inputs that `blinded` was made of, once the proof has been checked
    /// against `public`.
    ///
    /// Errors: the server cheated, or there are more or fewer elements than inputs.
    pub fn finalize<I: AsRef<[u8]>>(
        &self,
        inputs: &[I],
        blinded: &Blinded,
        evaluated: &Evaluated,
        public: &Encoding,
        info: &[u8],
    ) -> Result<Vec<Output>> {
        let n = blinded.elements.len();
        if inputs.len() != n || n > MOST {
            return Err(Error::Usage("as many inputs as were blinded are expected, 65,535 at most"));
        }
        if evaluated.elements.len() != n {
            return Err(cheated("the server's elements are not as many as ours"));
        }
        let points = decode(&evaluated.elements)?;
        let (ours, theirs) = ((&blinded.elements[..], &blinded.points), (&evaluated.elements[..], &points));
        let holds = match self.mode {
            Mode::Oblivious => true,
            Mode::Verifiable => self.verify(public, ours, theirs, &evaluated.proof)?,
            Mode::PartiallyOblivious => {
                let tweak = Points::mul_base(&self.tweak(info)?);
                let tweaked = decode(&[*public])?.add(&tweak).encode()[0];
                self.verify(&tweaked, theirs, ours, &evaluated.proof)?
            }
        };
        // proof: tags 2.6
        if !holds {
            return Err(cheated("the proof that one key was used for all elements does not hold"));
        }
        let unblinded = points.mul(&blinded.blinds.invert());
        self.outputs(inputs, Zeroizing::new(unblinded.encode()).as_slice(), info)
    }

    /// The function itself, by who has the key.
    pub fn apply<I: AsRef<[u8]>>(&self, key: &ServerKey, inputs: &[I], info: &[u8]) -> Result<Vec<Output>> {
        let (exponent, _) = self.exponent(key, info)?;
        let elements = Zeroizing::new(self.hash_to_group(inputs)?.mul_same(&exponent).encode());
        refuse_identity(&elements)?;
        self.outputs(inputs, &elements, info)
    }

    /// What elements are multiplied by, and the secret behind it that a proof is about.
    fn exponent(&self, key: &ServerKey, info: &[u8]) -> Result<(Scalars, Scalars)> {
        if self.mode != Mode::PartiallyOblivious {
            if !info.is_empty() {
                return Err(Error::Usage("only the partially oblivious mode takes a public text"));
            }
            return Ok((key.secret.clone(), key.secret.clone()));
        }
        let secret = key.secret.add(&self.tweak(info)?);
        if secret.any_zero() {
            return Err(Error::Usage("this public text is the key's own inverse: take another"));
        }
        Ok((secret.invert(), secret))
    }

    /// The scalar that stands for a public text.
    fn tweak(&self, info: &[u8]) -> Result<Scalars> {
        check_length(info)?;
        Ok(hash_to_scalar(&[b"Info", &length(info), info], &self.scalar_tag))
    }

    fn outputs<I: AsRef<[u8]>>(
        &self,
        inputs: &[I],
        elements: &[Encoding],
        info: &[u8],
    ) -> Result<Vec<Output>> {
        let mut outputs = Vec::with_capacity(inputs.len());
        for (input, element) in inputs.iter().zip(elements) {
            let input = input.as_ref();
            check_length(input)?;
            let mut hash = Sha512::new();
            hash.update(length(input));
            hash.update(input);
            if self.mode == Mode::PartiallyOblivious {
                hash.update(length(info));
                hash.update(info);
            }
            hash.update(length(element));
            hash.update(element);
            hash.update(b"Finalize");
            outputs.push(hash.finalize().into());
        }
        Ok(outputs)
    }

    fn hash_to_group<I: AsRef<[u8]>>(&self, inputs: &[I]) -> Result<Points> {
        let mut uniform = Zeroizing::new(Vec::with_capacity(inputs.len()));
        for input in inputs {
            check_length(input.as_ref())?;
            uniform.push(expand(&[input.as_ref()], &self.group_tag));
        }
        Ok(Points::from_uniform(&uniform))
    }

    /// Weights of a batch's elements, from both lists and the public key (section 2.2.1).
    fn weights(&self, public: &Encoding, c: &[Encoding], d: &[Encoding]) -> Scalars {
        let tag = [b"Seed-", &self.context[..]].concat();
        let mut hash = Sha512::new();
        for part in [&public[..], &tag] {
            hash.update(length(part));
            hash.update(part);
        }
        let seed = hash.finalize();
        let mut wide = Vec::with_capacity(c.len());
        for (i, (c, d)) in c.iter().zip(d).enumerate() {
            let number = (i as u16).to_be_bytes();
            let parts = [&length(&seed)[..], &seed, &number, &length(c), c, &length(d), d, b"Composite"];
            wide.push(expand(&parts, &self.scalar_tag));
        }
        Scalars::from_wide(&wide)
    }

    fn challenge(&self, parts: [&Encoding; 5]) -> Scalars {
        let mut framed = Vec::with_capacity(5 * (2 + POINT_BYTES));
        for part in parts {
            framed.extend_from_slice(&length(part));
            framed.extend_from_slice(part);
        }
        hash_to_scalar(&[&framed, b"Challenge"], &self.scalar_tag)
    }

    /// That `d` is `secret` times `c` as `public` is `secret` times the generator (GenerateProof).
    fn prove(
        &self,
        secret: &Scalars,
        public: &Encoding,
        (c, c_points): (&[Encoding], &Points),
        (d, _): (&[Encoding], &Points),
        nonce: &Scalars,
    ) -> Proof {
        let m = c_points.combine_vartime(&self.weights(public, c, d));
        let z = m.mul(secret).encode()[0];
        let (t2, t3) = (Points::mul_base(nonce).encode()[0], m.mul(nonce).encode()[0]);
        let challenge = self.challenge([public, &m.encode()[0], &z, &t2, &t3]);
        let response = nonce.sub(&challenge.mul(secret));
        let mut proof = [0; PROOF_BYTES];
        proof[..32].copy_from_slice(&challenge.to_bytes()[0]);
        proof[32..].copy_from_slice(&response.to_bytes()[0]);
        proof
    }

    /// Whether a proof holds (VerifyProof).
    fn verify(
        &self,
        public: &Encoding,
        (c, c_points): (&[Encoding], &Points),
        (d, d_points): (&[Encoding], &Points),
        proof: &Proof,
    ) -> Result<bool> {
        let (halves, _) = proof.as_chunks::<32>();
        let scalars = [halves[0], halves[1]].map(|half| Scalars::from_canonical(&[half]));
        let [Some(challenge), Some(response)] = scalars else {
            return Err(cheated("a proof is not made of canonical scalars"));
        };
        let key = decode(&[*public])?;
        let weights = self.weights(public, c, d);
        let (m, z) = (c_points.combine_vartime(&weights), d_points.combine_vartime(&weights));
        let t2 = Points::mul_base(&response).add(&key.mul(&challenge)).encode()[0];
        let t3 = m.mul(&response).add(&z.mul(&challenge)).encode()[0];
        let expected = self.challenge([public, &m.encode()[0], &z.encode()[0], &t2, &t3]);
        Ok(expected.to_bytes()[0].ct_eq(&challenge.to_bytes()[0]).into())
    }
}

fn check_length(bytes: &[u8]) -> Result<()> {
    if bytes.len() > MOST {
        return Err(Error::Usage("an input of the oblivious function has at most 65,535 bytes"));
    }
    Ok(())
}

/// An own input that hashes to the identity; nobody knows one.
fn refuse_identity(elements: &[Encoding]) -> Result<()> {
    if elements.iter().any(is_identity_encoding) {
        return Err(Error::Usage("an input hashes to the identity element: leave it out"));
    }
    Ok(())
}

fn tag_of(parts: &[&[u8]]) -> Vec<u8> {
    let mut tag = parts.concat();
    tag.push(tag.len() as u8);
    tag
}

fn hash_to_scalar(parts: &[&[u8]], tag: &[u8]) -> Scalars {
    let mut wide = expand(parts, tag);
    let scalar = Scalars::from_wide(&[wide]);
    wide.zeroize();
    scalar
}

/// SHA-512 after its first block, which is zeros (RFC 9380's Z_pad).
static PADDED: LazyLock<Sha512> = LazyLock::new(|| Sha512::new_with_prefix([0; 128]));

/// 64 uniform bytes of the parts, joined (RFC 9380's expand_message_xmd); the tag has its length behind it.
fn expand(parts: &[&[u8]], tag: &[u8]) -> [u8; UNIFORM_BYTES] {
    let mut hash = PADDED.clone();
    for part in parts {
        hash.update(part);
    }
    hash.update([0, UNIFORM_BYTES as u8, 0]);
    hash.update(tag);
    let mut first = hash.finalize();
    let mut hash = Sha512::new();
    hash.update(first);
    first.as_mut_slice().zeroize();
    hash.update([1]);
    hash.update(tag);
    hash.finalize().into()
}

#[cfg(test)]
#[path = "rfc9497_vectors.rs"]
mod tests;
