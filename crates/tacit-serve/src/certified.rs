//! Certificates in records: with them the keys of records are new ones whenever a side likes, so each side's
//! certificate signs which key is its own in this run, and the record holds name, chain and signature.

use crate::json::{from_hex, hex};
use crate::terms::{Proof, Side};
use serde_json::{Value, json};
use tacit::net::certificate::{self, Signed};
use tacit::net::{PublicKey, Session};
use tacit::{Error, Result};

/// Bytes of a chain, at most: a record holds two.
const LONGEST_CHAIN: usize = 1 << 16;

fn message(side: Side, run: &str, key: &PublicKey) -> Vec<u8> {
    [side.name().as_bytes(), b"\0", run.as_bytes(), b"\0", &key.to_bytes()].concat()
}

/// This side's proof that `key` signs its records in this run; none where TLS shows no certificates.
pub(crate) fn prove(session: &Session, side: Side, run: &str, key: &PublicKey) -> Result<Option<Proof>> {
    let (Some(certified), Some(name)) = (session.certified(), session.peer_name()) else { return Ok(None) };
    let Signed { scheme, signature } = certified.sign(&message(side, run, key))?;
    Ok(Some(Proof { peer_name: name.to_owned(), scheme, signature: hex(&signature) }))
}

/// Puts both sides' certificates into the common part; `proofs` are those of service and client, and `own` is
/// the side that calls.
///
/// Errors: a proof that is missing, or that does not hold.
pub(crate) fn fill(
    common: &mut Value,
    session: &Session,
    own: Side,
    proofs: [Option<&Proof>; 2],
) -> Result<()> {
    let fault = |what: &str| Error::Peer(format!("{what}; run the same release on both sides"));
    let Some(certified) = session.certified() else {
        return match proofs {
            [None, None] => Ok(()),
            _ => Err(fault("the peer proves a certificate that this session does not have")),
        };
    };
    let [Some(service), Some(client)] = proofs else {
        return Err(fault("the peer does not prove its certificate for the record"));
    };
    common["session"] = json!(hex(certified.exporter()));
    for (side, proof, name) in
        [(Side::Service, service, &client.peer_name), (Side::Client, client, &service.peer_name)]
    {
        let chain = if side == own { certified.own_chain() } else { certified.peer_chain() };
        if chain.iter().map(Vec::len).sum::<usize>() > LONGEST_CHAIN {
            return Err(Error::Input(
                "a chain of certificates is longer than a record holds; shorten it".into(),
            ));
        }
        let chain: Vec<String> = chain.iter().map(|certificate| hex(certificate)).collect();
        common[side.name()]["certificate"] =
            json!({ "name": name, "chain": chain, "scheme": proof.scheme, "signature": proof.signature });
    }
    verify(common).map_err(|_| fault("a certificate does not prove the key that signs the record"))
}

/// Whether the common part's certificates are for their names, and signed the keys that signed the record, in
/// this session; without a session there are none.
pub(crate) fn verify(common: &Value) -> Result<()> {
    let fault =
        |what: &str| Error::Input(format!("{what}; the record was changed, or belongs to another party"));
    let sides = [Side::Service, Side::Client];
    if common["session"].is_null() {
        let without = sides.iter().all(|side| common[side.name()]["certificate"].is_null());
        return if without { Ok(()) } else { Err(fault("a certificate is without its session")) };
    }
    let exporter = common["session"].as_str().and_then(from_hex);
    let exporter: [u8; 32] = exporter.ok_or_else(|| fault("the session is no hash"))?;
    let run = common["run"].as_str().unwrap_or_default();
    for side in sides {
        let part = &common[side.name()];
        let holds = || {
            let key = PublicKey::from_bytes(from_hex(part["key"].as_str()?)?);
            let (chain, name, signed) = read(&part["certificate"])?;
            let is_signed = certificate::is_signed(&chain, &exporter, &message(side, run, &key), &signed);
            (is_signed && certificate::is_for(&chain, name)).then_some(())
        };
        holds().ok_or_else(|| fault(&format!("the certificate of the {} does not hold", side.name())))?;
    }
    Ok(())
}

/// Chain, name and signature of a certificate in a record.
pub(crate) fn read(certificate: &Value) -> Option<(Vec<Vec<u8>>, &str, Signed)> {
    let members = certificate.as_object()?.len() == 4;
    let chain = certificate["chain"].as_array()?.iter().map(|one| bytes(one.as_str()?));
    let signed = Signed {
        scheme: u16::try_from(certificate["scheme"].as_u64()?).ok()?,
        signature: bytes(certificate["signature"].as_str()?)?,
    };
    members.then_some(())?;
    Some((chain.collect::<Option<_>>()?, certificate["name"].as_str()?, signed))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(|pair| from_hex::<1>(std::str::from_utf8(pair).ok()?));
    pairs.map(|byte| Some(byte?[0])).collect()
}
