//! TLS 1.3 with both sides authenticated, over any link.
//!
//! Key exchange is X25519MLKEM768 and nothing else, so there is nothing to downgrade to. Peers know each
//! other by raw public keys (RFC 7250) pinned from files, or by certificates of an authority both trust.
//! Sessions are never resumed and no early data is sent.

use crate::certificate::{self, Certified, certificates, provider, read_pem, tls_error};
use crate::error::printable;
use crate::keys::{Identity, PublicKey, SIGNATURE, fingerprint_bytes, key_error, signed_bytes};
use crate::link::{Arrival, Interest, Link};
use crate::{Error, Party, Result};
use rustix::fd::BorrowedFd;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption, WebPkiServerVerifier};
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{
    AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, DistinguishedName,
    RootCertStore, ServerConfig, ServerConnection, SignatureScheme,
};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Names this use of TLS, so that a port of something else is not mistaken for a peer.
const ALPN: &[u8] = b"tacit/1";
/// Sealed bytes that wait for the link before the writer has to.
const SEALED: usize = 1 << 18;
const RAW: usize = 1 << 18;
/// Most sealed bytes of a handshake; a chain of certificates takes some ten thousand.
const MAX_HANDSHAKE: u64 = 1 << 18;

/// How this party proves who it is, and how it knows its peer.
#[derive(Clone)]
pub struct Tls {
    /// None where this side proves nothing.
    own: Option<Arc<CertifiedKey>>,
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

#[derive(Clone)]
enum Trust {
    Pinned(PublicKey),
    OneOf(Arc<BTreeSet<String>>),
    Authority {
        roots: Arc<RootCertStore>,
        peers: Arc<[ServerName<'static>]>,
    },
    /// Who calls proves nothing.
    Anyone,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.trust {
            Trust::Pinned(peer) => write!(f, "Tls([secret], pinned {peer:?})"),
            Trust::OneOf(peers) => write!(f, "Tls([secret], one of {} keys)", peers.len()),
            Trust::Authority { peers, .. } => write!(f, "Tls([secret], authority for {peers:?})"),
            Trust::Anyone => f.write_str("Tls([secret], anyone)"),
        }
    }
}

impl Tls {
    /// Proves `identity` and accepts the one peer that proves `peer`.
    pub fn pinned(identity: &Identity, peer: PublicKey) -> Result<Self> {
        Self::raw(identity, Trust::Pinned(peer))
    }

    /// Proves `identity` and accepts every peer that proves a key with one of these
    /// [fingerprints](PublicKey::fingerprint).
    pub fn one_of(identity: &Identity, peers: BTreeSet<String>) -> Result<Self> {
        Self::raw(identity, Trust::OneOf(Arc::new(peers)))
    }

    fn raw(identity: &Identity, trust: Trust) -> Result<Self> {
        let der = identity.pkcs8();
        let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(der.as_slice())).map_err(tls_error)?;
        let own = CertifiedKey::new(vec![CertificateDer::from(identity.public().spki())], key);
        Ok(Tls { own: Some(Arc::new(own)), trust, provider: Arc::new(provider()) })
    }

    /// The raw public key that this side proves and the fingerprints that it trusts; nothing with certificates.
    pub(crate) fn raw_keys(&self) -> Option<(PublicKey, Vec<[u8; 16]>)> {
        let own = PublicKey::from_spki(self.own.as_ref()?.cert.first()?)?;
        Some(match &self.trust {
            Trust::Pinned(peer) => (own, fingerprint_bytes(&peer.fingerprint()).into_iter().collect()),
            Trust::OneOf(peers) => (own, peers.iter().filter_map(|peer| fingerprint_bytes(peer)).collect()),
            Trust::Authority { .. } | Trust::Anyone => return None,
        })
    }

    /// As [`Identity::sign`](crate::Identity::sign), by the raw key that this side proves.
    pub(crate) fn sign(&self, context: &str, message: &[u8]) -> Result<[u8; SIGNATURE]> {
        let none = || Error::Usage("no raw key that signs".to_owned());
        let own = self.own.as_ref().ok_or_else(none)?;
        let signer = own.key.choose_scheme(&[SignatureScheme::ED25519]).ok_or_else(none)?;
        let signature = signer.sign(&signed_bytes(context, message)).map_err(tls_error)?;
        signature.try_into().map_err(|_| none())
    }

    /// Proves itself by the certificate chain and key in the PEM files `chain` and `key`, and accepts a peer
    /// with a certificate for the name `peer` of an authority in the PEM file `authorities`. The certificates
    /// must be valid for both ends of TLS, server and client.
    pub fn authority(authorities: &Path, chain: &Path, key: &Path, peer: &str) -> Result<Self> {
        Self::authority_of(authorities, chain, key, &BTreeSet::from([peer.to_owned()]))
    }

    /// As [`authority`](Self::authority) for a side that listens and accepts every peer with a certificate
    /// for one of these names.
    pub fn authority_of(
        authorities: &Path,
        chain: &Path,
        key: &Path,
        peers: &BTreeSet<String>,
    ) -> Result<Self> {
        let provider = provider();
        let roots = certificate::authorities(authorities)?;
        let own = PrivateKeyDer::from_pem_slice(&read_pem(key)?).map_err(|error| key_error(key, error))?;
        let own = provider.key_provider.load_private_key(own).map_err(|error| key_error(key, error))?;
        let own = CertifiedKey::new(certificates(chain)?, own);
        own.keys_match().map_err(|_| key_error(key, "is not the key of the certificate"))?;
        let name = |peer: &String| {
            let odd = |_| Error::Usage(format!("`{peer}` is not a name that a certificate can have"));
            ServerName::try_from(peer.clone()).map_err(odd)
        };
        let peers = peers.iter().map(name).collect::<Result<Arc<[_]>>>()?;
        let trust = Trust::Authority { roots: Arc::new(roots), peers };
        Ok(Tls { own: Some(Arc::new(own)), trust, provider: Arc::new(provider) })
    }

    /// How the peer proves who it is, for people.
    pub(crate) fn proof(&self) -> String {
        match &self.trust {
            Trust::Pinned(peer) => format!("fingerprint {}", peer.fingerprint()),
            Trust::OneOf(peers) => format!("fingerprint, one of {}", peers.len()),
            Trust::Authority { .. } => "by certificate".to_owned(),
            Trust::Anyone => "none".to_owned(),
        }
    }

    /// Opens TLS over `link`; [`Party::First`] is the server.
    pub(crate) fn open(&self, link: Box<dyn Link>, party: Party, deadline: Instant) -> Result<TlsLink> {
        let found = Arc::new(Mutex::new(None));
        let mut connection = match party {
            Party::First => Connection::Server(self.server(&found)?),
            Party::Second => Connection::Client(self.client(&found)?),
        };
        connection.set_buffer_limit(Some(SEALED));
        let mut tls = TlsLink {
            link,
            connection,
            raw: vec![0; RAW].into_boxed_slice(),
            start: 0,
            end: 0,
            opening: Vec::new(),
            opened: false,
            name: None,
            certified: match &self.trust {
                Trust::Authority { .. } => self.own.clone(),
                _ => None,
            },
        };
        if let Err(error) = tls.handshake(deadline) {
            tls.part();
            let found = found.lock().ok().and_then(|found| *found);
            return Err(match (&self.trust, found) {
                (Trust::Pinned(expected), Some(found)) => {
                    Error::WrongPeer { expected: expected.fingerprint(), found: found.fingerprint() }
                }
                (Trust::OneOf(peers), Some(found)) => {
                    let expected = format!("one of {}", peers.len());
                    Error::WrongPeer { expected, found: found.fingerprint() }
                }
                _ => error,
            });
        }
        if let (Trust::Authority { peers, .. }, Some(certificate)) = (&self.trust, tls.shown()) {
            let name = named(certificate, peers).map_err(tls_error)?;
            tls.name = Some(name.to_str().into_owned());
        }
        tls.opened = true;
        tls.opening = Vec::new();
        Ok(tls)
    }

    fn own(&self) -> Result<Arc<CertifiedKey>> {
        self.own.clone().ok_or_else(|| Error::Usage("who is called proves who it is".to_owned()))
    }

    fn client(&self, found: &Found) -> Result<ClientConnection> {
        let builder = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(tls_error)?;
        let (mut config, name) = match &self.trust {
            Trust::Pinned(_) | Trust::OneOf(_) | Trust::Anyone => {
                let verifier = Pin::new(&self.trust, &self.provider, found);
                let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
                let name = ServerName::try_from("tacit").map_err(|error| Error::Tls(error.to_string()))?;
                let config = match &self.own {
                    Some(own) => {
                        let own = AlwaysResolvesClientRawPublicKeys::new(own.clone());
                        builder.with_client_cert_resolver(Arc::new(own))
                    }
                    None => builder.with_no_client_auth(),
                };
                (config, name)
            }
            Trust::Authority { roots, peers } => {
                let [peer] = &**peers else {
                    return Err(Error::Usage("a side that connects accepts one name".to_owned()));
                };
                let verifier = Served::new(roots, &self.provider)?;
                let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
                let own = rustls::sign::SingleCertAndKey::from(self.own()?);
                (builder.with_client_cert_resolver(Arc::new(own)), peer.clone())
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.enable_sni = false;
        config.resumption = Resumption::disabled();
        ClientConnection::new(Arc::new(config), name).map_err(tls_error)
    }

    fn server(&self, found: &Found) -> Result<ServerConnection> {
        let builder = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(tls_error)?;
        let mut config = match &self.trust {
            Trust::Pinned(_) | Trust::OneOf(_) => {
                let verifier = Pin::new(&self.trust, &self.provider, found);
                let own = AlwaysResolvesServerRawPublicKeys::new(self.own()?);
                builder.with_client_cert_verifier(Arc::new(verifier)).with_cert_resolver(Arc::new(own))
            }
            Trust::Anyone => {
                let own = AlwaysResolvesServerRawPublicKeys::new(self.own()?);
                builder.with_no_client_auth().with_cert_resolver(Arc::new(own))
            }
            Trust::Authority { roots, peers } => {
                let verifier = Named::new(roots, &self.provider, peers.clone())?;
                let own = rustls::sign::SingleCertAndKey::from(self.own()?);
                builder.with_client_cert_verifier(Arc::new(verifier)).with_cert_resolver(Arc::new(own))
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        ServerConnection::new(Arc::new(config)).map_err(tls_error)
    }
}

/// TLS by which the side that is called alone proves who it is, for callers that show over the link what they
/// have and own no key. No session is opened by it.
#[derive(Clone, Debug)]
pub struct OneSided(Tls);

impl OneSided {
    /// The side that is called, and proves `identity`.
    pub fn called(identity: &Identity) -> Result<Self> {
        Tls::raw(identity, Trust::Anyone).map(OneSided)
    }

    /// The side that calls the one that proves `called`.
    pub fn calling(called: PublicKey) -> Self {
        OneSided(Tls { own: None, trust: Trust::Pinned(called), provider: Arc::new(provider()) })
    }

    /// Opens it over `link`. Errors: who is called proves another key, or speaks no TLS, and those of the
    /// link.
    pub fn open(&self, link: Box<dyn Link>, deadline: Instant) -> Result<Box<dyn Link>> {
        let party = if self.0.own.is_some() { Party::First } else { Party::Second };
        Ok(Box::new(self.0.open(link, party, deadline)?))
    }
}

type Found = Arc<Mutex<Option<PublicKey>>>;

/// Accepts raw public keys that are trusted, and remembers any other that was shown.
struct Pin {
    trust: Trust,
    provider: Arc<CryptoProvider>,
    found: Found,
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin")
    }
}

impl Pin {
    fn new(trust: &Trust, provider: &Arc<CryptoProvider>, found: &Found) -> Self {
        Pin { trust: trust.clone(), provider: provider.clone(), found: found.clone() }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> std::result::Result<(), rustls::Error> {
        let Some(key) = PublicKey::from_spki(certificate) else {
            return Err(rustls::Error::InvalidCertificate(CertificateError::BadEncoding));
        };
        let is_trusted = match &self.trust {
            Trust::Pinned(expected) => key == *expected,
            Trust::OneOf(peers) => peers.contains(&key.fingerprint()),
            Trust::Authority { .. } | Trust::Anyone => false,
        };
        if is_trusted {
            return Ok(());
        }
        if let Ok(mut found) = self.found.lock() {
            *found = Some(key);
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(certificate.as_ref());
        verify_tls13_signature_with_raw_key(
            message,
            &key,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn no_tls12() -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".to_owned()))
    }
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Pin::no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pin {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> std::result::Result<ClientCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Pin::no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// The server's check of the client's certificate: of an authority that is trusted, and for the peer's name.
/// TLS itself checks only the former there, and a client that is refused later than in the handshake would
/// not be told.
#[derive(Debug)]
pub(crate) struct Named {
    authority: Arc<dyn ClientCertVerifier>,
    peers: Arc<[ServerName<'static>]>,
}

impl Named {
    pub(crate) fn new(
        roots: &Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
        peers: Arc<[ServerName<'static>]>,
    ) -> Result<Self> {
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        let authority = verifier.build().map_err(|error| Error::Tls(error.to_string()))?;
        Ok(Named { authority, peers })
    }
}

/// The one of these names that the certificate is for. One that is for several would be whichever it likes.
fn named<'n>(
    certificate: &CertificateDer<'_>,
    peers: &'n [ServerName<'static>],
) -> std::result::Result<&'n ServerName<'static>, rustls::Error> {
    certificate::admit(certificate)?;
    let certificate = ParsedCertificate::try_from(certificate)?;
    let mut fault = rustls::Error::InvalidCertificate(CertificateError::NotValidForName);
    let mut found = None;
    for peer in peers {
        match rustls::client::verify_server_name(&certificate, peer) {
            Ok(()) if found.is_some() => {
                let several = CertificateError::ApplicationVerificationFailure;
                return Err(rustls::Error::InvalidCertificate(several));
            }
            Ok(()) => found = Some(peer),
            Err(error) => fault = error,
        }
    }
    found.ok_or(fault)
}

impl ClientCertVerifier for Named {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authority.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> std::result::Result<ClientCertVerified, rustls::Error> {
        certificate::admit_all(certificate, chain)?;
        let verified = self.authority.verify_client_cert(certificate, chain, now)?;
        named(certificate, &self.peers)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Pin::no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.authority.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authority.supported_verify_schemes()
    }
}

/// The client's check of the server's certificate, as [`Named`] is the server's of the client's.
#[derive(Debug)]
pub(crate) struct Served(Arc<WebPkiServerVerifier>);

impl Served {
    pub(crate) fn new(roots: &Arc<RootCertStore>, provider: &Arc<CryptoProvider>) -> Result<Self> {
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        Ok(Served(verifier.map_err(|error| Error::Tls(error.to_string()))?))
    }
}

impl ServerCertVerifier for Served {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        revocation: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        certificate::admit_all(certificate, chain)?;
        self.0.verify_server_cert(certificate, chain, name, revocation, now)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Pin::no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// A link inside TLS.
pub(crate) struct TlsLink {
    link: Box<dyn Link>,
    connection: Connection,
    /// Sealed bytes that arrived and are not opened yet: `raw[start..end]`.
    raw: Box<[u8]>,
    start: usize,
    end: usize,
    /// The first bytes that arrived, for the error when they are not TLS.
    opening: Vec<u8>,
    opened: bool,
    /// The name that the peer's certificate is for.
    name: Option<String>,
    /// The local certificate, where peers know each other by certificates.
    certified: Option<Arc<CertifiedKey>>,
}

/// What a TLS handshake came to.
pub(crate) struct Negotiated {
    /// Key exchange group.
    pub(crate) group: String,
    /// Cipher suite.
    pub(crate) suite: String,
    /// A hash of the peer's public key.
    pub(crate) peer: [u8; 32],
    /// That key, where it came raw.
    pub(crate) key: Option<PublicKey>,
    /// The name that its certificate is for, where it came in one.
    pub(crate) name: Option<String>,
    /// What signs by the certificates' keys, where there are some.
    pub(crate) certified: Option<Certified>,
}

/// Lets TLS write to the link; the link's own errors pass through unchanged.
struct Out<'a>(&'a mut dyn Link);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> std::io::Result<usize> {
        match self.0.try_write(slices) {
            Ok(0) => Err(ErrorKind::WouldBlock.into()),
            Ok(n) => Ok(n),
            Err(error) => Err(std::io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn unwrap_io(error: std::io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(Error::Io)
}

impl TlsLink {
    pub(crate) fn exporter(&self) -> Result<Vec<u8>> {
        let secret = self.connection.export_keying_material([0u8; 32], b"EXPORTER-tacit-session", None);
        Ok(secret.map_err(tls_error)?.to_vec())
    }

    /// What was agreed on, and whose key the peer proved.
    pub(crate) fn negotiated(&self) -> Result<Negotiated> {
        let group = self.connection.negotiated_key_exchange_group();
        let suite = self.connection.negotiated_cipher_suite();
        Ok(Negotiated {
            group: group.map_or("none".to_owned(), |group| format!("{:?}", group.name())),
            suite: suite.map_or("none".to_owned(), |suite| format!("{:?}", suite.suite())),
            peer: self.peer()?,
            key: self.shown().and_then(|key| PublicKey::from_spki(key)),
            name: self.name.clone(),
            certified: self.certified()?,
        })
    }

    fn certified(&self) -> Result<Option<Certified>> {
        let Some(own) = &self.certified else { return Ok(None) };
        let exporter = self.connection.export_keying_material([0u8; 32], certificate::EXPORTER, None);
        let peer = self.connection.peer_certificates().unwrap_or_default().to_vec();
        Ok(Some(Certified::new(own.clone(), peer, exporter.map_err(tls_error)?)))
    }

    fn shown(&self) -> Option<&CertificateDer<'static>> {
        self.connection.peer_certificates().and_then(<[_]>::first)
    }

    /// A hash of the peer's public key, raw or out of its certificate: both in the form of certificates.
    fn peer(&self) -> Result<[u8; 32]> {
        let shown = self.shown().ok_or_else(|| Error::Tls("the peer showed no key".to_owned()))?;
        let mut hasher = blake3::Hasher::new_derive_key("tacit 1 peer of a session");
        if PublicKey::from_spki(shown).is_some() {
            hasher.update(shown);
        } else {
            let certificate = ParsedCertificate::try_from(shown).map_err(tls_error)?;
            hasher.update(&certificate.subject_public_key_info());
        }
        Ok(*hasher.finalize().as_bytes())
    }

    fn handshake(&mut self, deadline: Instant) -> Result<()> {
        let start = Instant::now();
        loop {
            let flushed = self.push();
            if !self.connection.is_handshaking() && flushed.as_ref().is_ok_and(|&done| done) {
                return Ok(());
            }
            let (_, announced) = self.link.wire_bytes();
            if announced > MAX_HANDSHAKE {
                return Err(Error::Oversized { announced, allowed: MAX_HANDSHAKE });
            }
            // Even when writing fails, the peer's reason may have arrived.
            match self.take_in()? {
                Arrival::Bytes(_) => continue,
                Arrival::End => return Err(Error::lost("during the TLS handshake")),
                Arrival::Nothing => flushed?,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let interest = if self.connection.wants_write() { Interest::Both } else { Interest::Read };
            if left.is_zero() || !self.link.wait(interest, left)? {
                let awaited = "the peer's part of the TLS handshake".to_owned();
                return Err(Error::Timeout { after: start.elapsed(), awaited });
            }
        }
    }

    /// Sends the alert and waits a moment for the peer to take it: closing at once could lose it.
    fn part(&mut self) {
        let _ = self.push();
        self.link.finish();
        let deadline = Instant::now() + Duration::from_millis(300);
        while let Ok(arrival) = self.link.try_read(&mut [IoSliceMut::new(&mut self.raw)]) {
            let left = deadline.saturating_duration_since(Instant::now());
            match arrival {
                Arrival::End => return,
                _ if left.is_zero() => return,
                Arrival::Bytes(_) => {}
                Arrival::Nothing => _ = self.link.wait(Interest::Read, left),
            }
        }
    }

    /// Moves sealed bytes to the link; true when none are left.
    fn push(&mut self) -> Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Out(&mut *self.link)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(unwrap_io(error)),
            }
        }
        self.link.try_flush()
    }

    /// Moves sealed bytes from the link into TLS; whether it brought plaintext is another matter.
    fn take_in(&mut self) -> Result<Arrival> {
        if self.start == self.end {
            match self.link.try_read(&mut [IoSliceMut::new(&mut self.raw)])? {
                Arrival::Bytes(n) => (self.start, self.end) = (0, n),
                other => return Ok(other),
            }
            if !self.opened && self.opening.len() < 64 {
                let shown = self.end.min(64 - self.opening.len());
                self.opening.extend_from_slice(&self.raw[..shown]);
            }
        }
        let mut rest = &self.raw[self.start..self.end];
        let before = rest.len();
        // TLS takes 4 KiB a call, so a whole record is handed over before it is looked at.
        while !rest.is_empty() && matches!(self.connection.read_tls(&mut rest), Ok(n) if n > 0) {}
        let taken = before - rest.len();
        self.start += taken;
        if let Err(error) = self.connection.process_new_packets() {
            let _ = self.push();
            return Err(self.explain(error));
        }
        Ok(Arrival::Bytes(taken))
    }

    /// An error of TLS, or a better one when the peer never spoke TLS.
    fn explain(&self, error: rustls::Error) -> Error {
        let plain = !matches!(self.opening.as_slice(), [0x14..=0x17, 0x03, ..]);
        if self.opened || !plain {
            return tls_error(error);
        }
        let saw = match self.opening.get(4..9) {
            Some(b"TACIT") => "a Tacit greeting without TLS".to_owned(),
            _ => printable(&self.opening),
        };
        Error::NotTacit { saw }
    }
}

impl Link for TlsLink {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        self.push()?;
        let n = self.connection.writer().write_vectored(slices).map_err(Error::Io)?;
        self.push()?;
        Ok(n)
    }

    fn try_flush(&mut self) -> Result<bool> {
        self.push()
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        loop {
            let Some(slice) = slices.iter_mut().find(|slice| !slice.is_empty()) else {
                return Ok(Arrival::Nothing);
            };
            match self.connection.reader().read(slice) {
                Ok(0) => return Ok(Arrival::End),
                Ok(n) => return Ok(Arrival::Bytes(n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(unwrap_io(error)),
            }
            match self.take_in()? {
                Arrival::Bytes(_) => {}
                other => return Ok(other),
            }
        }
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        let busy = self.connection.wants_write();
        let ready =
            self.link.wait(if busy && interest.reads() { Interest::Both } else { interest }, timeout)?;
        if busy {
            self.push()?;
        }
        Ok(ready)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.link.descriptor()
    }

    fn is_cancelled(&self) -> bool {
        self.link.is_cancelled()
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.link.wire_bytes()
    }

    fn finish(&mut self) {
        self.connection.send_close_notify();
        // A connection that is gone already needs no goodbye.
        let _ = self.push();
        self.link.finish();
    }
}
