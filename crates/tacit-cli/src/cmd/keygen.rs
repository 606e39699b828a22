//! `tacit keygen`: a key pair that names one party.

use crate::cli::Context;
use crate::cli::output::name;
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::Result;
use tacit::crypto::text::counted;
use tacit::net::{Identity, PublicKey, PublicKeys, name_successor};

const AFTER: &str = "\
Examples:
  tacit keygen --out alice.key      writes alice.key (private, mode 600) and alice.pub (for the peer)
  tacit keygen --out alice-2027.key --successor-of alice.key
      makes a new key that alice.pub names from now on: give that file to the peer

Tell the peer the fingerprint by another channel than the file, for instance by phone.
A successor needs no phone call: the old key signs it. Peers accept the old key for --overlap
more days.";

/// Makes a key pair that names one party.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// The file for the private key; the public one goes next to it, ending in .pub
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// A comment for the public key file, such as a name or an e-mail address
    #[arg(long, value_name = "TEXT", default_value = "", value_parser = comment)]
    comment: String,
    /// Makes the successor of this key: the old public key file names it, with a signature
    #[arg(long, value_name = "FILE")]
    successor_of: Option<PathBuf>,
    /// Days for which the old key is accepted as well as its successor, at most 90
    #[arg(long, value_name = "DAYS", default_value_t = 30, requires = "successor_of", value_parser = clap::value_parser!(u64).range(0..=90))]
    overlap: u64,
}

/// Characters of a comment, at most: more are not shown to the peer.
const LONGEST_COMMENT: usize = 100;

/// A comment for a public file, which is one line.
pub(super) fn comment(text: &str) -> std::result::Result<String, String> {
    let length = text.chars().count();
    if length > LONGEST_COMMENT {
        return Err(format!("{length} characters; a comment has at most {LONGEST_COMMENT}"));
    }
    if text.chars().any(char::is_control) {
        return Err("a comment is one line, without control characters".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    if let Some(old) = &args.successor_of {
        return succeed(&args, old, context);
    }
    let (key, public) = make(&args.out, &args.comment)?;
    let object =
        json!({ "name": "keygen", "private": args.out, "public": public, "fingerprint": key.fingerprint() });
    let text = format!(
        "{} is the private key: keep it\n{} is the public key: give it to the peer\nfingerprint {}",
        name(&args.out),
        name(&public),
        key.fingerprint()
    );
    context.result(&object, &text)
}

fn succeed(args: &Args, old: &Path, context: &Context) -> Result<()> {
    let (key, public) = name_successor(old, &args.out, &args.comment, args.overlap)?;
    let named_in = old.with_extension("pub");
    let object = json!({
        "name": "keygen", "private": args.out, "public": public, "fingerprint": key.fingerprint(),
        "successor_of": old, "named_in": named_in, "overlap_days": args.overlap,
    });
    let before = PublicKeys::load(&named_in)?.all().len() > 2;
    let text = format!(
        "{} is the private key: keep it\n{} and {} (the same) name the new key: send one to the peer, to \
         replace the old file\n{}the old key is accepted for {}; delete it after that\nfingerprint {}",
        name(&args.out),
        name(&public),
        name(&named_in),
        if before {
            "public key files of earlier keys do not name it: do not pass them on any more\n"
        } else {
            ""
        },
        counted(args.overlap, "more day"),
        key.fingerprint()
    );
    context.result(&object, &text)
}

/// Writes a fresh key pair; returns the public key and its path.
pub(super) fn make(path: &Path, comment: &str) -> Result<(PublicKey, PathBuf)> {
    let identity = Identity::generate()?;
    let public = identity.save(path, comment)?;
    Ok((identity.public(), public))
}
