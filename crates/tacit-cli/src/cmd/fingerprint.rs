//! `tacit fingerprint`: the fingerprint of a key file, to compare with what the peer says.

use crate::cli::Context;
use serde_json::json;
use std::path::PathBuf;
use tacit::Result;
use tacit::crypto::text::counted;
use tacit::net::PublicKeys;

const AFTER: &str = "\
Examples:
  tacit fingerprint bob.pub         the key that Bob gave us: read it to him over the telephone
  tacit fingerprint alice.key       our own, which its public half has too";

/// Shows the fingerprint of a key file, private or public.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// A file of `tacit keygen`: FILE.key or FILE.pub
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let keys = PublicKeys::of_file(&args.file)?;
    let fingerprint = keys.newest().fingerprint();
    let mut object = json!({ "name": "fingerprint", "file": args.file, "fingerprint": fingerprint });
    let mut text = fingerprint;
    if let Some(words) = keys.words() {
        object["chain"] = keys.all().iter().map(|(key, _)| json!(key.fingerprint())).collect();
        text += &format!("\nof {} that followed each other: {words}", counted(keys.all().len(), "key"));
    }
    context.result(&object, &text)
}
