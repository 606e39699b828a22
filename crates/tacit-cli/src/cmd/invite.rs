//! `tacit invite` and `tacit join`: two people exchange their public keys by a code of a few words.

use crate::cli::fault::made_a_key;
use crate::cli::output::name;
use crate::cli::{Context, waiting};
use serde_json::json;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tacit::crypto::text::counted;
use tacit::net::durable::folder_of;
use tacit::net::invite::{self, Code, Introduced, Patience, Place};
use tacit::net::{Identity, Proxy, PublicKey};
use tacit::{Error, Result};

const AFTER_INVITE: &str = "\
Examples:
  tacit invite --via relay.example:7710
  tacit invite --listen 0.0.0.0:7700 --out bob.pub

It prints a code such as 7-walnut-harbour. Your peer types `tacit join CODE` with the same --via, or with \
--connect and your address. Afterwards each of you has the other's public key in a file.

Keep the code secret until it has been used: pass it on by phone, or in a chat that you both trust. It works \
once and expires after ten minutes (--minutes). An attacker who guesses has one try, with a chance of 1 in 65,536, and \
that try uses up the code.";

const AFTER_JOIN: &str = "\
Examples:
  tacit join 7-walnut-harbour --via relay.example:7710
  tacit join 7700-walnut-harbour --connect alice.example:7700 --out alice.pub

`tacit invite` on your peer's machine prints the CODE. If nobody answers with its number at the relay, join
says after 20 seconds what may be wrong, and goes on waiting (--minutes). With --connect it gives up after at
most 20 seconds: your peer must be waiting already.";

/// What both sides give.
#[derive(clap::Args)]
struct Common {
    /// Your private key; created if the file does not exist
    #[arg(long, value_name = "FILE", default_value = "tacit.key")]
    identity: PathBuf,
    /// The file for the peer's public key
    #[arg(long, value_name = "PUBFILE", default_value = "peer.pub")]
    out: PathBuf,
    /// A name for you, which the peer's file shows with your key, unverified
    #[arg(long, value_name = "TEXT", default_value = "", value_parser = super::keygen::comment)]
    comment: String,
    /// The HTTP proxy that leads to the relay: HOST:PORT, or http://USER:PASSWORD@HOST:PORT (default: that of
    /// HTTPS_PROXY, unless NO_PROXY has the host)
    #[arg(long, value_name = "ADDR", requires = "via")]
    proxy: Option<String>,
    /// How many minutes to wait for the peer, then give up; an invitation's code then expires
    #[arg(long, value_name = "MINUTES", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// The relay, HOST:PORT, at which both sides meet
    #[arg(long, value_name = "RELAY")]
    via: Option<String>,
}

/// Exchanges public keys with a peer: prints a code for you to tell the peer
#[derive(clap::Args)]
#[command(after_help = AFTER_INVITE)]
pub(crate) struct InviteArgs {
    #[command(flatten)]
    common: Common,
    /// Waits for the peer at this address instead of meeting at a relay
    #[arg(long, value_name = "ADDR", conflicts_with = "via")]
    listen: Option<String>,
}

/// Exchanges public keys with the peer who gave you the code
#[derive(clap::Args)]
#[command(after_help = AFTER_JOIN)]
pub(crate) struct JoinArgs {
    /// The code that your peer gave you, such as 7-walnut-harbour
    code: String,
    #[command(flatten)]
    common: Common,
    /// The address at which the peer listens, instead of meeting at a relay
    #[arg(long, value_name = "ADDR", conflicts_with = "via")]
    connect: Option<String>,
}

pub(super) fn invite(args: InviteArgs, context: &Context) -> Result<()> {
    let place = args.common.place(args.listen.as_deref(), "--listen ADDR")?;
    let (identity, patience) = args.common.ready(context)?;
    let identity = match identity {
        Some(identity) => identity,
        None => {
            let identity = Identity::generate()?;
            args.common.make(&identity, context)?;
            made_a_key();
            // Where names of files have several spellings, it may be one of these.
            args.common.out_is_free()?;
            identity
        }
    };
    let how = match (&args.common.via, &args.listen) {
        (Some(relay), _) => format!("--via {relay}"),
        (None, listen) => {
            let port =
                listen.as_deref().and_then(|listen| listen.rsplit_once(':')).map_or("PORT", |(_, port)| port);
            format!("--connect HOST:{port}\nHOST: the address of this machine")
        }
    };
    let minutes = counted(args.common.minutes, "minute");
    let mut shown = Ok(());
    let introduced = invite::invite(&place, &identity, &args.common.comment, &patience, |code| {
        let text = code.text();
        let words = format!(
            "code {code}\ntell it to your peer, who has {minutes} to run:\n  tacit join {code} {how}",
            code = text.as_str()
        );
        shown = context.result(&json!({ "name": "invitation", "code": text.as_str() }), &words);
    })?;
    shown?;
    args.common.keep(&introduced, &identity, context)
}

pub(super) fn join(args: JoinArgs, context: &Context) -> Result<()> {
    let code: Code = args.code.parse()?;
    let place = args.common.place(args.connect.as_deref(), "--connect ADDR")?;
    let (found, patience) = args.common.ready(context)?;
    if let Some(note) = args.connect.as_deref().and_then(|address| other_port(&code, address)) {
        context.note(&note);
    }
    let is_new = found.is_none();
    let identity = found.map_or_else(Identity::generate, Ok)?;
    let introduced = invite::join(&place, &code, &identity, &args.common.comment, &patience)?;
    if is_new {
        // Only now, so that a try that fails leaves nothing behind.
        args.common.make(&identity, context)?;
    }
    args.common.keep(&introduced, &identity, context)
}

/// What to check where the code was made at another port than that of `address`.
fn other_port(code: &Code, address: &str) -> Option<String> {
    let port: u16 = address.rsplit_once(':')?.1.parse().ok()?;
    (u32::from(port) != code.number()).then(|| {
        format!(
            "note: the code was made at port {}, and --connect has port {port}: check both, unless a router forwards \
             that port",
            code.number()
        )
    })
}

impl Common {
    fn place(&self, port: Option<&str>, option: &str) -> Result<Place> {
        match (&self.via, port) {
            (Some(relay), None) => Ok(Place::Relay(relay.clone())),
            (None, Some(address)) => Ok(Place::Port(address.to_owned())),
            _ => Err(Error::Usage(format!("give --via RELAY, the relay where both sides meet, or {option}"))),
        }
    }

    /// The identity, if it is there, and how long to wait. What cannot be written shows here.
    fn ready(&self, context: &Context) -> Result<(Option<Identity>, Patience)> {
        self.out_is_free()?;
        let folder = folder_of(&self.out);
        if !folder.is_dir() {
            let what = format!("{} is not a directory", name(folder));
            return Err(Error::Parameter { name: "out", what });
        }
        // The same folder may have several names.
        let place =
            |path: &Path| (folder_of(path).canonicalize().ok(), path.file_name().map(OsStr::to_owned));
        let public = self.identity.with_extension("pub");
        if [&public, &self.identity].into_iter().any(|own| *own == self.out || place(own) == place(&self.out))
        {
            let what =
                format!("{} is for your own key; choose another name for your peer's", name(&self.out));
            return Err(Error::Parameter { name: "out", what });
        }
        let identity = match self.identity.exists() {
            true => Some(Identity::load(&self.identity)?),
            false => {
                Identity::can_be_saved(&self.identity)?;
                None
            }
        };
        // A code is spent before the key of the partner is there to be written.
        PublicKey::can_be_saved(&self.out)?;
        let wait = Some(Duration::from_secs(60 * self.minutes));
        let observer = waiting::observer(context.progress, "your peer");
        let named = self.proxy.as_deref().map(Proxy::new);
        let proxy = named.or_else(|| self.via.as_deref().and_then(Proxy::from_environment));
        let patience = Patience { wait, proxy, observer, ..Patience::default() };
        Ok((identity, patience))
    }

    /// Writes the identity, which is new.
    fn make(&self, identity: &Identity, context: &Context) -> Result<()> {
        let public = identity.save(&self.identity, &self.comment)?;
        context.note(&format!("note: made {} and {}", name(&self.identity), name(&public)));
        Ok(())
    }

    fn out_is_free(&self) -> Result<()> {
        if !self.out.exists() {
            return Ok(());
        }
        let what = format!(
            "{} exists already and is not overwritten, because it is a public key; choose another name",
            name(&self.out)
        );
        Err(Error::Parameter { name: "out", what })
    }

    /// Writes the partner's key, and says what comes next.
    fn keep(&self, introduced: &Introduced, identity: &Identity, context: &Context) -> Result<()> {
        introduced.key.save(&self.out, &introduced.comment)?;
        let [own, theirs] = [identity.public(), introduced.key].map(|key| key.fingerprint());
        let object = json!({
            "name": "introduced", "peer": self.out, "fingerprint": theirs, "comment": introduced.comment,
            "identity": self.identity, "own_fingerprint": own,
        });
        let called = match introduced.comment.as_str() {
            "" => String::new(),
            comment => format!(" (it calls itself \"{comment}\", unverified)"),
        };
        let way = match &self.via {
            Some(relay) => format!(" --via {relay}"),
            None => String::new(),
        };
        let text = format!(
            "{} has your peer's public key{called}\npeer's fingerprint {theirs}\n\
             your fingerprint   {own}\n\
             on this machine, run your jobs with --identity {} --peer {}{way}",
            name(&self.out),
            name(&self.identity),
            name(&self.out)
        );
        context.result(&object, &text)
    }
}
