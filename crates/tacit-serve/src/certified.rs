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
            return Err(Error::Input("a chain of certificates is too long for a record; shorten it".into()));
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
        return if without { Ok(()) } else { Err(fault("a certificate lacks its session")) };
    }
    let exporter = common["session"].as_str().and_then(from_hex);
    let exporter: [u8; 32] = exporter.ok_or_else(|| fault("the session is not a hash"))?;
    let run = common["run"].as_str().unwrap_or_default();
    for side in sides {
        let part = &common[side.name()];
        let holds = || {
            let key = PublicKey::from_bytes(from_hex(part["key"].as_str()?)?);
            let (chain, name, signed) = read(&part["certificate"])?;
            let is_signed = certificate::is_signed(&chain, &exporter, &message(side, run, &key), &signed);
            (is_signed && certificate::is_for(&chain, name)).then_some(())
        };
        holds().ok_or_else(|| fault(&format!("the certificate of the {} is not valid", side.name())))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tacit::net::{Agreement, Identity, Listener, Options, Protection, Tls, connect};

    /// Certificates of one authority for these names, in files.
    fn certify(folder: &Path, names: &[&str]) {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        std::fs::write(folder.join("ca.pem"), parameters.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = rcgen::Issuer::new(parameters, key);
        for name in names {
            let key = rcgen::KeyPair::generate().unwrap();
            let parameters = rcgen::CertificateParams::new(vec![(*name).to_owned()]).unwrap();
            let certificate = parameters.signed_by(&key, &issuer).unwrap();
            std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
            std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
    }

    /// A session of the service and the client of these names.
    fn meet(folder: &Path, names: [&str; 2]) -> [Session; 2] {
        let options = |[name, peer]: [&str; 2], [role, other]: [&str; 2]| {
            let file = |ending: &str| folder.join(format!("{name}.{ending}"));
            let tls = Tls::authority(&folder.join("ca.pem"), &file("pem"), &file("key"), peer).unwrap();
            Options::new(Agreement::new("test", role, other), Protection::Tls(tls))
        };
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::scope(|scope| {
            let client = options([names[1], names[0]], ["b", "a"]);
            let client = scope.spawn(move || connect(&address, &client).unwrap());
            let service = listener.accept(&options(names, ["a", "b"])).unwrap();
            [service, client.join().unwrap()]
        })
    }

    /// A side that puts another key, name, signature, chain or session into the common part is refused, by the peer in
    /// the run and by whoever reads the record.
    #[test]
    fn a_certificate_proves_one_key_for_one_name_in_one_session() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["alice.example", "bob.example"];
        certify(folder.path(), &[names[0], names[1], "eve.example"]);
        let [service, client] = meet(folder.path(), names);
        let [alice, bob, other] = [0; 3].map(|_| Identity::generate().unwrap().public());
        let of = |session: &Session, side, run: &str, key| prove(session, side, run, key).unwrap().unwrap();
        let [ours, theirs] =
            [of(&service, Side::Service, "run", &alice), of(&client, Side::Client, "run", &bob)];
        let keys = |key: &PublicKey| json!({ "run": "run", "service": { "key": hex(&alice.to_bytes()) }, "client": { "key": hex(&key.to_bytes()) } });
        let filled = |key: &PublicKey, theirs: &Proof| {
            let mut common = keys(key);
            fill(&mut common, &service, Side::Service, [Some(&ours), Some(theirs)]).map(|()| common)
        };
        let common = filled(&bob, &theirs).unwrap();
        verify(&common).unwrap();

        // A proof for another key, run or side, of another session, by another name, or with a changed signature.
        assert!(filled(&other, &theirs).is_err());
        assert!(filled(&bob, &of(&client, Side::Client, "another", &bob)).is_err());
        assert!(filled(&bob, &of(&client, Side::Service, "run", &bob)).is_err());
        let [_service, again] = meet(folder.path(), names);
        assert!(filled(&bob, &of(&again, Side::Client, "run", &bob)).is_err());
        assert!(filled(&bob, &Proof { peer_name: "eve.example".into(), ..theirs.clone() }).is_err());
        let mut signature = theirs.signature.clone().into_bytes();
        let last = signature.len() - 1;
        signature[last] = if signature[last] == b'0' { b'1' } else { b'0' };
        let signature = String::from_utf8(signature).unwrap();
        assert!(filled(&bob, &Proof { signature, ..theirs.clone() }).is_err());
        let mut without = keys(&bob);
        assert!(fill(&mut without, &service, Side::Service, [Some(&ours), None]).is_err());

        // And the record that somebody changed afterwards.
        let [_elsewhere, eve] = meet(folder.path(), ["alice.example", "eve.example"]);
        let chain: Vec<String> = eve.certified().unwrap().own_chain().iter().map(|one| hex(one)).collect();
        for (pointer, value) in [
            ("/client/key", json!(hex(&other.to_bytes()))),
            ("/client/certificate/name", json!("eve.example")),
            ("/client/certificate/chain", json!(chain)),
            ("/client/certificate", Value::Null),
            ("/session", json!(hex(&[7; 32]))),
            ("/session", Value::Null),
            ("/run", json!("another")),
        ] {
            let mut changed = common.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert!(verify(&changed).is_err(), "{pointer}");
        }
    }
}
