//! `tacit gateway`: joins the tasks of two parties' clusters, one gateway a party.

use crate::cli::peer::{PeerArgs, Security};
use crate::cli::{Context, fault};
use serde_json::json;
use std::path::PathBuf;
use tacit::job::psi::gateway::{Gateway, Setup};
use tacit::net::Identity;
use tacit::sealed::FileKey;
use tacit::{Error, Result};

const AFTER: &str = "\
Examples:
  tacit gateway --listen 0.0.0.0:7700 --identity us.key --peer them.pub \\
      --cluster 127.0.0.1:7701 --state /var/lib/tacit/gateway
  tacit gateway --connect us.example:7700 --identity them.key --peer us.pub \\
      --cluster 127.0.0.1:7701 --state /var/lib/tacit/gateway

Each party has one gateway. Spark's driver and tasks reach their own party's at --cluster; the
other party reaches them only through it. The state directory has the jobs, encrypted with the
identity key, and the file `token`, which lets the driver open jobs. A restarted gateway
continues its jobs. See docs/spark.md.";

/// Connects the tasks of two parties' clusters, with one gateway per party
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten)]
    peer: PeerArgs,
    /// The address of the gateway for your own driver and tasks; TLS, with the token
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7701")]
    cluster: String,
    /// The directory of the jobs and of the token for the driver
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
    /// The most buckets that run at a time
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    at_once: u16,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let session = args.peer.session(Security::Malicious, context)?;
    let Some(identity) = args.peer.identity() else {
        let what = "a gateway needs TLS, and encrypts its state with the key of `tacit keygen`: give it, and \
                    the peer's";
        return Err(Error::Parameter { name: "identity", what: what.into() });
    };
    fault::outlive_panics();
    let gateway = Gateway::start(Setup {
        session,
        cluster: args.cluster,
        key: FileKey::from_identity(&Identity::load(identity)?),
        at_once: args.at_once.into(),
        lines: Box::new(tacit_console::say),
        state: args.state.clone(),
    })?;
    let cluster = gateway.cluster_address().to_string();
    let listen = gateway.peer_address().map(|address| address.to_string());
    let token = args.state.join("token");
    let text = match &listen {
        Some(listen) => format!("gateway: the cluster finds it at {cluster}, the peer's gateway at {listen}"),
        None => format!("gateway: the cluster finds it at {cluster}"),
    };
    context
        .result(&json!({ "name": "gateway", "cluster": cluster, "listen": listen, "token": token }), &text)?;
    gateway.wait()
}
