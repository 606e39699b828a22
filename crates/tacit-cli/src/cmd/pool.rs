//! `tacit ot pool`: correlations made ahead, kept encrypted, each used at most once; and `tacit ot --pool`,
//! which uses them.

use crate::cli::Context;
use crate::cli::output::Output;
use crate::cli::peer::{PeerArgs, Security};
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::job::Ran;
use tacit::job::pool::{Job, maker};
use tacit::net::Identity;
use tacit::ot::Choice;
use tacit::pool::{Fuse, Header, Pool, PoolError, PoolKey};
use tacit::{Error, Result, ot, security_name};
use tacit_console::options::Role;

pub(super) const AFTER: &str = "\
Examples:
  tacit ot pool make --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role sender --count 10000000 --file alice.pool
  tacit ot pool info alice.pool --identity alice.key
  tacit ot --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role sender --count 1000 --pool alice.pool --out share.npz

A pool is encrypted with the identity key, or with --pool-key. Never restore one from a backup:
correlations used since would be used again, and only an honest peer would report that its
position is ahead. A failed check invalidates the pool of the run: make a new one on both
sides.";

/// The subcommands of `tacit ot pool`.
#[derive(Subcommand)]
pub(super) enum PoolCommand {
    /// Makes a pool with the peer: correlated OTs for later
    Make(Box<MakeArgs>),
    /// Shows the content of a pool and how much of it is left
    Info(InfoArgs),
    /// Skips correlations, so that a pool catches up with the peer's
    Skip(SkipArgs),
}

/// Makes a pool with the peer.
#[derive(clap::Args)]
pub(super) struct MakeArgs {
    /// Which half this is
    #[arg(long, value_enum)]
    role: Role,
    /// How many correlations; must match on both sides
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: u64,
    /// The new pool; must not exist
    #[arg(long, value_name = "FILE.pool")]
    file: PathBuf,
    /// Encrypts the pool with the bytes of this file, at least 32, instead of the identity key
    #[arg(long, value_name = "FILE")]
    pool_key: Option<PathBuf>,
    /// The protocol; must match on both sides
    #[arg(long, value_name = "P", default_value = "auto")]
    protocol: String,
    /// The LPN set of ferret or ferret-uni, as in `tacit ot`; must match on both sides
    #[arg(long, value_name = "SET")]
    set: Option<String>,
    /// The code of silent or softspoken, as in `tacit ot`; must match on both sides
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// What kind of peer to protect against; must match on both sides
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// The base OT; must match on both sides
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Names a pool and its key.
#[derive(clap::Args)]
pub(super) struct InfoArgs {
    /// The pool
    #[arg(value_name = "FILE.pool")]
    file: PathBuf,
    /// The private key that the pool was made with
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// The key file that the pool was made with
    #[arg(long, value_name = "FILE")]
    pool_key: Option<PathBuf>,
}

/// Names a pool, its key and the new position.
#[derive(clap::Args)]
pub(super) struct SkipArgs {
    #[command(flatten)]
    pool: InfoArgs,
    /// The new position
    #[arg(long, value_name = "N")]
    to: u64,
}

pub(super) fn run(command: PoolCommand, context: &Context) -> Result<()> {
    match command {
        PoolCommand::Make(args) => make(*args, context),
        PoolCommand::Info(args) => show(&args, &args.open()?, context),
        PoolCommand::Skip(args) => {
            let mut pool = args.pool.open()?;
            pool.skip_to(args.to).map_err(|e| named(&args.pool.file, e))?;
            show(&args.pool, &pool, context)
        }
    }
}

/// A fault of the pool with the file's name in front.
fn named(file: &Path, error: tacit_ot::Error) -> Error {
    match error {
        tacit_ot::Error::Store(fault) => Error::Input(format!("{}: {fault}", file.display())),
        other => other.into(),
    }
}

/// What a pool or a prepared state is sealed with.
pub(super) fn key(pool_key: Option<&Path>, identity: Option<&Path>) -> Result<PoolKey> {
    match (pool_key, identity) {
        (Some(file), _) => PoolKey::from_file(file).map_err(|e| named(file, e.into())),
        (None, Some(file)) => Ok(PoolKey::from_identity(&Identity::load(file)?)),
        (None, None) => {
            Err(Error::Usage("the file needs a key: give --identity FILE or --pool-key FILE".into()))
        }
    }
}

/// Opens the pool that `tacit ot --pool` names, for a run that asks for `security`.
pub(super) fn open(
    file: &Path,
    pool_key: Option<&Path>,
    peer: &PeerArgs,
    security: Security,
    wanted: u64,
) -> Result<Pool> {
    let pool = Pool::open(file, &key(pool_key, peer.identity())?).map_err(|e| named(file, e))?;
    let made = pool.header().security;
    if made == tacit::Security::SemiHonest && security == Security::Malicious {
        return Err(Error::Usage(format!(
            "{}: was made against a semi-honest peer only; add --security semi-honest or make another",
            file.display()
        )));
    }
    if peer.threads() != 1 {
        let what = "a pool is read on one thread; leave it out".into();
        return Err(Error::Parameter { name: "threads", what });
    }
    if wanted > pool.left() {
        let fault = PoolError::Exhausted { wanted, left: pool.left() };
        return Err(named(file, fault.into()));
    }
    Ok(pool)
}

/// What a run that used `pool` ended with; a failed check burns the pool, on the disk, before it is reported.
pub(super) fn watch<T>(pool: Option<(&Path, &Fuse)>, result: Result<T>) -> Result<T> {
    match (result, pool) {
        (Err(error), Some((file, fuse))) if error.is_failed_check() => {
            fuse.burn().map_err(|e| named(file, e))?;
            Err(Error::Peer(format!(
                "{error}; {} is invalidated: make a new pool on both sides with tacit ot pool make",
                file.display()
            )))
        }
        // Another protocol on the same pool may have burnt it meanwhile.
        (Ok(ended), Some((file, fuse))) => fuse.watch(Ok(ended)).map_err(|e| named(file, e)),
        (result, _) => result,
    }
}

impl InfoArgs {
    fn open(&self) -> Result<Pool> {
        let key = key(self.pool_key.as_deref(), self.identity.as_deref())?;
        Pool::open(&self.file, &key).map_err(|e| named(&self.file, e))
    }
}

/// What made a pool, in words; nothing where an earlier build made it, which did not record that.
pub(super) fn made_by(header: &Header) -> Option<String> {
    maker(header).map(|(protocol, variant)| match variant {
        "" => protocol.to_owned(),
        variant => format!("{protocol}, {variant}"),
    })
}

fn show(args: &InfoArgs, pool: &Pool, context: &Context) -> Result<()> {
    let header = pool.header();
    let maker = maker(header);
    let object = json!({
        "name": "ot pool",
        "file": args.file,
        "id": header.short_id(),
        "role": header.role.name(),
        "protocol": maker.map(|(protocol, _)| protocol),
        "variant": maker.map(|(_, variant)| variant).filter(|variant| !variant.is_empty()),
        "security": security_name(header.security),
        "count": header.count,
        "position": pool.position(),
        "left": pool.left(),
    });
    let text = format!(
        "pool {}: the {}'s half of {} by {} ({}), {} used, {} left",
        header.short_id(),
        header.role.name(),
        counted(header.count, "correlation"),
        made_by(header).unwrap_or_else(|| "a protocol that is not recorded".to_owned()),
        security_name(header.security),
        pool.position(),
        pool.left()
    );
    context.result(&object, &text)
}

fn make(args: MakeArgs, context: &Context) -> Result<()> {
    let protocol = ot::protocol(&args.protocol, args.security.into())?;
    let choice = Choice { set: args.set.as_deref(), code: args.code.as_deref(), ..Choice::default() };
    let pick = protocol.pick(args.count, protocol.security, &choice)?;
    let key = key(args.pool_key.as_deref(), args.peer.identity())?;
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    session.allow(protocol.name)?;
    let base = session.base()?;
    let mut out = Output::create_secret(&args.file)?;
    let variant = pick.extension().variant();
    let job = Job { role: args.role.into(), pick, choice, count: args.count };
    out.reserve(job.file_length())?;
    crate::cmd::check_memory("making the pool", job.memory(), "make it smaller")?;
    let progress = context.progress("pool", args.count, "OT");
    let Ran { result: header, wall, stats } =
        session.make_pool(&job, &key, &mut out, &progress).map_err(|e| match e {
            Error::Ot(e) => named(&args.file, e),
            other => other,
        })?;
    progress.finish();
    out.commit()?;
    let role = job.role.name();
    let object = json!({
        "name": "ot pool make",
        "file": args.file,
        "id": header.short_id(),
        "protocol": protocol.name,
        "variant": (!variant.is_empty()).then_some(&variant),
        "base_ot": base.name(),
        "role": role,
        "security": security_name(header.security),
        "count": header.count,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": job.learns(),
    });
    let text = format!(
        "pool {} of {} by {}{} in {:.3} s; the {role}'s half is in {}\n\
         the other side learned {}",
        header.short_id(),
        counted(header.count, "correlation"),
        protocol.name,
        if variant.is_empty() { String::new() } else { format!(", {variant}") },
        wall.as_secs_f64(),
        args.file.display(),
        job.learns(),
    );
    context.result(&object, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit::crypto::{Block, Prg};
    use tacit::net::{Channel, memory};
    use tacit::pool;
    use tacit_ot::CotReceiver;

    struct Zeros;

    impl CotReceiver for Zeros {
        fn extend(&mut self, _: &mut Channel, _: &mut [Block]) -> tacit_ot::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_failed_check_burns_the_pool_of_the_run_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.pool");
        let key = PoolKey::from_bytes(&[1; 32]).unwrap();
        let mut out = std::fs::File::create(&file).unwrap();
        memory::run(
            |channel| {
                channel.send_block(Block::ONES).unwrap();
                channel.flush().unwrap();
                channel.recv_block().unwrap();
            },
            |channel| {
                let security = tacit::Security::Malicious;
                let mut prg = Prg::from_os();
                pool::make_receiver(channel, &mut prg, &mut Zeros, security, 9, &key, &mut out, &mut |_| ())
                    .unwrap();
            },
        );
        let run = |result: Result<u8>| {
            let pool = Pool::open(&file, &key).unwrap();
            watch(Some((&file, &pool.fuse())), result)
        };
        assert_eq!(run(Ok(3)).unwrap(), 3);
        let malformed = tacit_ot::Error::Malformed { protocol: "test", what: "form" };
        run(Err(malformed.into())).unwrap_err();
        run(Err(Error::Peer("gone".into()))).unwrap_err();
        let cheated = tacit_ot::Error::Cheated { protocol: "test", what: "a check" };
        let said = run(Err(cheated.into())).unwrap_err();
        assert_eq!(said.blame(), tacit::Blame::Peer);
        let said = said.to_string();
        assert!(said.contains("cheated") && said.contains("r.pool is invalidated"), "{said}");
        let error = named(&file, Pool::open(&file, &key).unwrap_err()).to_string();
        assert!(
            error.contains("r.pool: the pool is invalidated") && error.contains("tacit ot pool make"),
            "{error}"
        );
    }
}
