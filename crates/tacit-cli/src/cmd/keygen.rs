//! `tacit keygen`: a key pair that names one party.

use crate::cli::Context;
use crate::cli::output::{name, sync_folder};
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::Result;
use tacit::net::{Identity, PublicKey};

const AFTER: &str = "\
Examples:
  tacit keygen --out alice.key      writes alice.key (private, mode 600) and alice.pub (for the peer)

Tell the peer the fingerprint over another way than the file, for instance by telephone.";

/// Makes a key pair that names one party.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// Where the private key goes; the public one goes beside it, ending in .pub
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// A word for people in the public file, such as a name or an e-mail address
    #[arg(long, value_name = "TEXT", default_value = "")]
    comment: String,
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
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

/// Writes a fresh key pair; returns the public key and its path.
pub fn make(path: &Path, comment: &str) -> Result<(PublicKey, PathBuf)> {
    let identity = Identity::generate()?;
    let public = identity.save(path, comment)?;
    sync_folder(path);
    Ok((identity.public(), public))
}
