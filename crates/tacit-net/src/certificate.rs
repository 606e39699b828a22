//! What a certificate's key signs over a session, to be shown to others later: TLS itself proves the name to the
//! peer alone.
//!
//! Each side signs a message together with a value of the session that both have and nobody else could have
//! made ([`Certified::exporter`]). Whoever gets value, message, chain and signature can verify it.

use crate::keys::{is_anybodys, key_error};
use crate::{Error, Result};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, RootCertStore, SignatureScheme};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

const CONTEXT: &[u8] = b"tacit 2 certificate of a session\0";
/// The label of the exporter: none of those that keys come from.
pub(crate) const EXPORTER: &[u8] = b"EXPORTER-tacit-certificate";
/// Signatures that are made and accepted, those of TLS 1.3.
const SCHEMES: [SignatureScheme; 7] = [
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
];

/// A session whose sides know each other by certificates.
pub struct Certified {
    own: Arc<CertifiedKey>,
    peer: Vec<CertificateDer<'static>>,
    exporter: [u8; 32],
}

impl fmt::Debug for Certified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certified([secret], peer's chain of {})", self.peer.len())
    }
}

/// A signature by the key of a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// How it was made, as TLS 1.3 numbers it.
    pub scheme: u16,
    /// The signature.
    pub signature: Vec<u8>,
}

fn bytes(chain: &[CertificateDer<'_>]) -> Vec<Vec<u8>> {
    chain.iter().map(|certificate| certificate.to_vec()).collect()
}

fn bound(exporter: &[u8; 32], message: &[u8]) -> Vec<u8> {
    [CONTEXT, exporter, message].concat()
}

impl Certified {
    pub(crate) fn new(
        own: Arc<CertifiedKey>,
        peer: Vec<CertificateDer<'static>>,
        exporter: [u8; 32],
    ) -> Self {
        Certified { own, peer, exporter }
    }

    /// A value of this session, the same on both sides; it is no secret, and no key comes from it.
    pub fn exporter(&self) -> &[u8; 32] {
        &self.exporter
    }

    /// The local chain, the certificate itself first, in DER.
    pub fn own_chain(&self) -> Vec<Vec<u8>> {
        bytes(&self.own.cert)
    }

    /// The peer's, which TLS has verified.
    pub fn peer_chain(&self) -> Vec<Vec<u8>> {
        bytes(&self.peer)
    }

    /// Signs a message by the key of the local certificate, over this session.
    pub fn sign(&self, message: &[u8]) -> Result<Signed> {
        let none = || Error::Usage("the certificate's key signs by no scheme of TLS 1.3".to_owned());
        let signer = self.own.key.choose_scheme(&SCHEMES).ok_or_else(none)?;
        let signature = signer.sign(&bound(&self.exporter, message)).map_err(tls_error)?;
        Ok(Signed { scheme: signer.scheme().into(), signature })
    }
}

/// The content of an element of DER with this tag, and what follows it.
fn element(tag: u8, input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match (first, rest) {
        (0..=0x7f, rest) => (usize::from(first), rest),
        (0x81, [length, rest @ ..]) => (usize::from(*length), rest),
        (0x82, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    (found == tag && rest.len() >= length).then(|| rest.split_at(length))
}

/// Algorithm and key of a SubjectPublicKeyInfo.
fn key_of(info: &[u8]) -> Option<(&[u8], &[u8])> {
    key_within(element(0x30, info)?.0)
}

/// As [`key_of`], out of what is inside the outer sequence.
fn key_within(info: &[u8]) -> Option<(&[u8], &[u8])> {
    let (algorithm, rest) = element(0x30, info)?;
    let (&0, key) = element(0x03, rest)?.0.split_first()? else { return None };
    Some((algorithm, key))
}

/// Whether this key of a certificate is an Ed25519 key of small order. Keys of no other algorithm have 32 bytes.
fn is_small(key: Option<(&[u8], &[u8])>) -> bool {
    key.and_then(|(_, key)| key.try_into().ok()).is_some_and(is_anybodys)
}

/// An error where anybody can sign in a certificate's name, as its Ed25519 key is of small order: authorities may sign
/// such a key, because the proof that its owner has it can be made up too.
pub(crate) fn admit(certificate: &CertificateDer<'_>) -> std::result::Result<(), rustls::Error> {
    match is_small(key_of(&ParsedCertificate::try_from(certificate)?.subject_public_key_info())) {
        true => Err(rustls::Error::General("with the certificate's key anyone can sign".to_owned())),
        false => Ok(()),
    }
}

/// As [`admit`] for a certificate and those it came with: under an intermediate certificate of such a key, anybody can
/// make certificates for any name.
pub(crate) fn admit_all(
    leaf: &CertificateDer<'_>,
    more: &[CertificateDer<'_>],
) -> std::result::Result<(), rustls::Error> {
    admit(leaf)?;
    // One that cannot be read issues nothing, and paths are built without it.
    more.iter().filter(|one| ParsedCertificate::try_from(*one).is_ok()).try_for_each(admit)
}

/// The authorities in a PEM file. Errors: one by whose key anybody can sign, or that is no certificate.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for root in certificates(path)? {
        roots.add(root).map_err(|error| key_error(path, error))?;
    }
    match roots.roots.iter().any(|root| is_small(key_within(&root.subject_public_key_info))) {
        true => Err(key_error(path, "with an authority's key anyone can sign; remove its certificate")),
        false => Ok(roots),
    }
}

/// Whether the key of the chain's first certificate signed `message` over the session of `exporter`.
pub fn is_signed(chain: &[Vec<u8>], exporter: &[u8; 32], message: &[u8], signed: &Signed) -> bool {
    let verify = || {
        let leaf = CertificateDer::from(chain.first()?.as_slice());
        admit(&leaf).ok()?;
        let info = ParsedCertificate::try_from(&leaf).ok()?.subject_public_key_info();
        let (algorithm, key) = key_of(&info)?;
        let scheme = SCHEMES.into_iter().find(|scheme| u16::from(*scheme) == signed.scheme)?;
        let known = provider().signature_verification_algorithms.mapping;
        let (_, algorithms) = known.iter().find(|(known, _)| *known == scheme)?;
        let message = bound(exporter, message);
        let holds = algorithms.iter().any(|one| {
            one.public_key_alg_id().as_ref() == algorithm
                && one.verify_signature(key, &message, &signed.signature).is_ok()
        });
        holds.then_some(())
    };
    verify().is_some()
}

/// The DNS names of the first certificate in the PEM file `chain`; none where it has no readable ones.
pub fn names_in(chain: &Path) -> Result<Vec<String>> {
    let chain = certificates(chain)?;
    let leaf = chain.first().and_then(|leaf| webpki::EndEntityCert::try_from(leaf).ok());
    Ok(leaf.map_or_else(Vec::new, |leaf| leaf.valid_dns_names().map(str::to_owned).collect()))
}

/// Whether the chain's first certificate is for this name.
pub fn is_for(chain: &[Vec<u8>], name: &str) -> bool {
    let verify = || {
        let leaf = CertificateDer::from(chain.first()?.as_slice());
        let certificate = ParsedCertificate::try_from(&leaf).ok()?;
        let name = ServerName::try_from(name).ok()?;
        rustls::client::verify_server_name(&certificate, &name).ok()
    };
    verify().is_some()
}

/// Whether the chain leads to an authority in the PEM file `authorities`, as of `seconds` since 1970.
///
/// Errors: a chain that does not, and a file that holds no authority.
pub fn verify(chain: &[Vec<u8>], authorities: &Path, seconds: u64) -> Result<()> {
    let roots = Arc::new(self::authorities(authorities)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::new(provider())).build();
    let verifier = verifier.map_err(|error| Error::Tls(error.to_string()))?;
    let chain: Vec<CertificateDer<'_>> =
        chain.iter().map(|certificate| CertificateDer::from(certificate.as_slice())).collect();
    let (leaf, more) = chain.split_first().ok_or_else(|| Error::Tls("there is no certificate".to_owned()))?;
    admit_all(leaf, more).map_err(tls_error)?;
    let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    verifier.verify_client_cert(leaf, more, at).map(|_| ()).map_err(tls_error)
}

pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![kx_group::X25519MLKEM768],
        ..default_provider()
    }
}

/// Largest file of PEM that is read: one of all authorities that a system trusts has a few hundred KiB.
const MAX_PEM: u64 = 1 << 24;

/// The bytes of a file of PEM.
pub(crate) fn read_pem(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let (bytes, _) = crate::small::read(path, MAX_PEM).map_err(|error| key_error(path, error))?;
    if bytes.len() as u64 > MAX_PEM { Err(key_error(path, "too long for certificates")) } else { Ok(bytes) }
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = read_pem(path)?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| key_error(path, error))?;
    if found.is_empty() { Err(key_error(path, "holds no PEM certificate")) } else { Ok(found) }
}

pub(crate) fn tls_error(error: rustls::Error) -> Error {
    match error {
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired),
        ) => Error::Refused { alert: format!("{alert:?}") },
        error => Error::Tls(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::client::danger::ServerCertVerifier;
    use rustls::server::danger::ClientCertVerifier;

    /// The neutral point as a key, by which the signature of this point and 0 verifies on every message.
    struct Neutral;

    const NEUTRAL: [u8; 32] = {
        let mut bytes = [0; 32];
        bytes[0] = 1;
        bytes
    };

    impl rcgen::PublicKeyData for Neutral {
        fn der_bytes(&self) -> &[u8] {
            &NEUTRAL
        }

        fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
            &rcgen::PKCS_ED25519
        }
    }

    impl rcgen::SigningKey for Neutral {
        fn sign(&self, _: &[u8]) -> std::result::Result<Vec<u8>, rcgen::Error> {
            Ok([&NEUTRAL[..], &[0; 32]].concat())
        }
    }

    /// Parameters of an authority of this name.
    fn of_authority(name: &str) -> CertificateParams {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        parameters
    }

    /// Checks of a chain by TLS, of the client's and of the server's certificate.
    fn by_tls(roots: RootCertStore, chain: &[Vec<u8>]) -> [std::result::Result<(), rustls::Error>; 2] {
        let (roots, name) = (Arc::new(roots), ServerName::try_from("bob.example").unwrap());
        let chain: Vec<CertificateDer<'_>> =
            chain.iter().map(|one| CertificateDer::from(one.as_slice())).collect();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(crate::calendar::today() * 86_400));
        let client =
            crate::tls::Named::new(&roots, &Arc::new(provider()), vec![name.clone()].into()).unwrap();
        let server = crate::tls::Served::new(&roots, &Arc::new(provider())).unwrap();
        [
            client.verify_client_cert(&chain[0], &chain[1..], now).map(drop),
            server.verify_server_cert(&chain[0], &chain[1..], &name, &[], now).map(drop),
        ]
    }

    /// Whoever knows no private key makes certificates under an intermediate one of such a key.
    #[test]
    fn a_chain_in_which_anybody_can_sign_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let key = KeyPair::generate().unwrap();
        std::fs::write(&file, of_authority("root").self_signed(&key).unwrap().pem()).unwrap();
        let root = Issuer::new(of_authority("root"), key);
        let now = crate::calendar::today() * 86_400;
        let leaf = || CertificateParams::new(vec!["bob.example".to_owned()]).unwrap();
        let own = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();

        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let between = of_authority("between").signed_by(&key, &root).unwrap();
        let by = Issuer::new(of_authority("between"), key);
        let good = [leaf().signed_by(&own, &by).unwrap(), between].map(|one| one.der().to_vec());
        verify(&good, &file, now).unwrap();
        assert!(by_tls(authorities(&file).unwrap(), &good).iter().all(std::result::Result::is_ok));
        // What is no certificate issues nothing.
        let more = [&good[..], &[vec![0x30, 0]]].concat();
        verify(&more, &file, now).unwrap();
        assert!(by_tls(authorities(&file).unwrap(), &more).iter().all(std::result::Result::is_ok));

        let between = of_authority("between").signed_by(&Neutral, &root).unwrap();
        let by = Issuer::new(of_authority("between"), Neutral);
        let forged = [leaf().signed_by(&own, &by).unwrap(), between].map(|one| one.der().to_vec());
        let all =
            by_tls(authorities(&file).unwrap(), &forged).map(|checked| checked.unwrap_err().to_string());
        let audit = verify(&forged, &file, now).unwrap_err().to_string();
        for error in all.iter().chain([&audit]) {
            assert!(error.contains("anyone can sign"), "{error}");
        }
        // Such an authority itself.
        std::fs::write(&file, of_authority("root").self_signed(&Neutral).unwrap().pem()).unwrap();
        let by = Issuer::new(of_authority("root"), Neutral);
        let forged = [leaf().signed_by(&own, &by).unwrap().der().to_vec()];
        for error in [authorities(&file).unwrap_err(), verify(&forged, &file, now).unwrap_err()] {
            assert!(error.to_string().contains("ca.pem: with an authority's key anyone can sign"), "{error}");
        }
    }

    #[test]
    fn a_certificate_by_which_anybody_can_sign_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (key, mut parameters) = (KeyPair::generate().unwrap(), CertificateParams::default());
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authorities = folder.path().join("ca.pem");
        std::fs::write(&authorities, parameters.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(parameters, key);
        let of = || CertificateParams::new(vec!["bob.example".to_owned()]).unwrap();
        let own = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let [good, bad] = [of().signed_by(&own, &issuer), of().signed_by(&Neutral, &issuer)]
            .map(|made| made.unwrap().der().clone());
        let now = crate::calendar::today() * 86_400;
        verify(&[good.to_vec()], &authorities, now).unwrap();
        assert!(
            verify(&[bad.to_vec()], &authorities, now).unwrap_err().to_string().contains("anyone can sign")
        );
        assert!(admit(&good).is_ok() && admit(&bad).is_err());
        let made_up = Signed { scheme: 0x0807, signature: [&NEUTRAL[..], &[0; 32]].concat() };
        assert!(is_taken(&made_up.signature), "the library has it verify");
        assert!(!is_signed(&[bad.to_vec()], &[7; 32], b"a message", &made_up));
    }

    /// Whether the library takes the made-up signature.
    fn is_taken(signature: &[u8]) -> bool {
        let known = provider().signature_verification_algorithms.mapping;
        let of = known.iter().find(|(scheme, _)| *scheme == SignatureScheme::ED25519).unwrap().1;
        of.iter().any(|one| one.verify_signature(&NEUTRAL, b"whatever", signature).is_ok())
    }
}
