//! `tacit fingerprint`: the fingerprint of a key file, to compare with what the peer says.

use crate::cli::Context;
use crate::cli::output::name;
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::Result;
use tacit::crypto::text::counted;
use tacit::net::PublicKeys;

const AFTER: &str = "\
Examples:
  tacit fingerprint bob.pub         the key that Bob gave you: read it to him by phone
  tacit fingerprint alice.key       your own, the same for its public half until a successor is named";

/// Shows the fingerprint of a key file, private or public.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// A file of `tacit keygen`: FILE.key or FILE.pub
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let is_public = args.file.extension().is_some_and(|end| end.eq_ignore_ascii_case("pub"));
    // Of a public file that is not there it says whom to ask.
    let keys = if is_public { PublicKeys::load(&args.file) } else { PublicKeys::of_file(&args.file) }?;
    let fingerprint = keys.newest().fingerprint();
    let mut object = json!({ "name": "fingerprint", "file": args.file, "fingerprint": fingerprint });
    let mut text = fingerprint;
    let all = keys.all();
    if all.len() > 1 {
        object["chain"] = all.iter().map(|(key, _)| json!(key.fingerprint())).collect();
        text += &format!("\nthe newest of {}, each followed by the next:", counted(all.len(), "key"));
        keys.lines().iter().for_each(|line| text += &format!("\n  {line}"));
    }
    if let Some((public, newest)) = follower(&args.file, &keys) {
        object["followed_by"] = json!(newest);
        text += &format!("\nthis key was followed by {newest}, as {} says", name(&public));
    }
    context.result(&object, &text)
}

/// The public file beside a private key, and the newest key in it, where that is another one.
fn follower(file: &Path, keys: &PublicKeys) -> Option<(PathBuf, String)> {
    let public = file.with_extension("pub");
    let named = (public != file).then(|| PublicKeys::load(&public).ok())??;
    let is_followed = named.contains(&keys.newest()) && named.newest() != keys.newest();
    is_followed.then(|| (public, named.newest().fingerprint()))
}
