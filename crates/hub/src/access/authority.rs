//! The hub's own certificate authority: what the server shows, and what certified users bring.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::User;
use crate::storage::{Storage, StorageError, kept_since_begin};

/// Where certificate and key are kept.
const KEPT_CERTIFICATE: &str = "authority.certificate";
const KEPT_KEY: &str = "authority.key";
/// How long the authority itself is good.
const AUTHORITY_YEARS: u64 = 20;
/// How long a certificate is good that it signs. Those of the server are made anew at every start.
const SIGNED_YEARS: u64 = 1;

/// A certificate authority of the hub's own, made at its first start and kept with its data. A backup holds it too, so
/// that users of a restored hub need no new credentials.
pub struct Authority {
    certificate_pem: String,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    now_seconds: u64,
}

/// A certificate and its key, as PEM.
pub struct Certified {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key (PKCS #8).
    pub key_pem: String,
}

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The kept key cannot be read, or a new one cannot be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A certificate cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// What is kept is no certificate.
    #[error("the kept authority is no certificate: restore a backup with `mailboat hub restore`")]
    Kept,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl Authority {
    /// The authority that a storage keeps, or at the first start a new one.
    pub fn of(storage: &mut dyn Storage, now_seconds: u64) -> Result<Self, AuthorityError> {
        let kept = (kept_since_begin(storage, KEPT_CERTIFICATE)?, kept_since_begin(storage, KEPT_KEY)?);
        let (certificate, key) = if let (Some(certificate), Some(key)) = kept {
            (certificate, key)
        } else {
            let key = KeyPair::generate()?;
            let certificate = authority_params(now_seconds).self_signed(&key)?.pem();
            let key = key.serialize_pem();
            storage.keep(&[(KEPT_KEY, key.as_bytes()), (KEPT_CERTIFICATE, certificate.as_bytes())])?;
            (certificate.into_bytes(), key.into_bytes())
        };
        let text = |bytes| String::from_utf8(bytes).map_err(|_| AuthorityError::Kept);
        let (certificate_pem, key) = (text(certificate)?, KeyPair::from_pem(&text(key)?)?);
        let (_, pem) =
            x509_parser::pem::parse_x509_pem(certificate_pem.as_bytes()).map_err(|_| AuthorityError::Kept)?;
        Ok(Self {
            certificate: CertificateDer::from(pem.contents),
            issuer: Issuer::new(authority_params(now_seconds), key),
            certificate_pem,
            now_seconds,
        })
    }

    /// The authority's certificate, by which clients know the server.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// A client certificate: the user is its common name, the group its organization.
    pub fn certify(&self, user: &str, group: Option<&str>) -> Result<Certified, AuthorityError> {
        let mut params = self.params();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate_pem = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Certified { certificate_pem, key_pem: key.serialize_pem() })
    }

    /// TLS for the server under these names and addresses. A client may bring a certificate of this authority; one of
    /// another ends the connection, none is for whoever brings a token.
    pub fn server_config(&self, names: &[String]) -> Result<ServerConfig, AuthorityError> {
        let mut params = self.params();
        params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
        let first = names.first().map_or("mailboat-hub", String::as_str);
        params.distinguished_name.push(DnType::CommonName, first);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        self.tls(vec![certificate.der().clone()], key, &[])
    }

    /// TLS for a server with a certificate that somebody else made, and for clients with certificates of this authority
    /// or of others that are trusted; all as PEM.
    pub fn server_config_given(
        &self,
        certificate_pem: &[u8],
        key_pem: &[u8],
        clients_pem: &[u8],
    ) -> Result<ServerConfig, AuthorityError> {
        let unread = |what: &str| AuthorityError::Tls(format!("{what} cannot be read as PEM"));
        let certificates = |pem, what| -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
            CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| unread(what))
        };
        let chain = certificates(certificate_pem, "the certificate")?;
        let clients = certificates(clients_pem, "the clients' authority")?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| unread("the key"))?;
        self.tls(chain, key, &clients)
    }

    fn tls(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        trusted: &[CertificateDer<'static>],
    ) -> Result<ServerConfig, AuthorityError> {
        let tls = |error: &dyn std::fmt::Display| AuthorityError::Tls(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for authority in trusted.iter().chain([&self.certificate]) {
            roots.add(authority.clone()).map_err(|error| tls(&error))?;
        }
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(|error| tls(&error))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| tls(&error))?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(|error| tls(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    fn params(&self) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        set_validity(&mut params, self.now_seconds, SIGNED_YEARS);
        params.use_authority_key_identifier_extension = true;
        params
    }
}

/// The user whom a certificate names, which TLS has checked.
pub fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
    (!name.is_empty()).then(|| User::authenticated(name, groups.map(str::to_owned)))
}

/// The same at every start: what the authority is called in the certificates that it signs.
fn authority_params(now_seconds: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "mailboat hub");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_validity(&mut params, now_seconds, AUTHORITY_YEARS);
    params
}

/// From the first of last year's January, so that a clock that is a little behind does no harm, to the first of
/// January after so many years.
fn set_validity(params: &mut CertificateParams, now_seconds: u64, years: u64) {
    let today = mailboat_machinery::time::rfc3339(now_seconds);
    let year = today.get(..4).and_then(|year| year.parse().ok()).unwrap_or(2026_i32);
    let years = i32::try_from(years).unwrap_or(1);
    params.not_before = date_time_ymd(year - 1, 1, 1);
    params.not_after = date_time_ymd(year + years + 1, 1, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    const NOW: u64 = 1_790_000_000;

    fn der(pem: &str) -> CertificateDer<'static> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        CertificateDer::from(pem.contents)
    }

    #[test]
    fn the_authority_stays_the_same_over_restarts() {
        let mut storage = Memory::default();
        let first = Authority::of(&mut storage, NOW).unwrap();
        let second = Authority::of(&mut storage, NOW + 400 * 86_400).unwrap();
        assert_eq!(first.certificate_pem(), second.certificate_pem());
    }

    #[test]
    fn a_certificate_names_its_user_and_group() {
        let authority = Authority::of(&mut Memory::default(), NOW).unwrap();
        let certified = authority.certify("alice", Some("system:masters")).unwrap();
        let user = user_of(&der(&certified.certificate_pem)).unwrap();
        assert_eq!(user.name, "alice");
        assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
        assert!(user.is_master());
    }

    /// A whole handshake in memory: the server is known by its authority, and the client by its certificate.
    #[test]
    fn both_sides_know_each_other() {
        let authority = Authority::of(&mut Memory::default(), NOW).unwrap();
        let other = Authority::of(&mut Memory::default(), NOW).unwrap();
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let server = Arc::new(authority.server_config(&names).unwrap());
        let certified = authority.certify("alice", None).unwrap();
        let foreign = other.certify("alice", Some("system:masters")).unwrap();
        assert_eq!(handshake(&server, &authority, Some(&certified)), Ok(Some("alice".to_owned())));
        assert_eq!(handshake(&server, &authority, None), Ok(None));
        assert!(handshake(&server, &authority, Some(&foreign)).is_err(), "another authority's user");
        assert!(handshake(&server, &other, None).is_err(), "a client that trusts another authority");

        // With a certificate of another authority, whose users are trusted as well.
        let shown = other.certify("127.0.0.1", None).unwrap();
        let (certificate, key) = (shown.certificate_pem.as_bytes(), shown.key_pem.as_bytes());
        let trusted = other.certificate_pem().as_bytes();
        let given = authority.server_config_given(certificate, key, trusted).unwrap();
        assert_eq!(given.alpn_protocols, server.alpn_protocols);
        let unread = authority.server_config_given(b"no", key, trusted).unwrap_err().to_string();
        assert!(unread.contains("TLS cannot be set up"), "{unread}");
    }

    fn handshake(
        server: &Arc<ServerConfig>,
        trusted: &Authority,
        brings: Option<&Certified>,
    ) -> Result<Option<String>, String> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let client = match brings {
            None => client.with_no_client_auth(),
            Some(brings) => {
                let key = KeyPair::from_pem(&brings.key_pem).unwrap().serialize_der();
                let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
                client.with_client_auth_cert(vec![der(&brings.certificate_pem)], key).unwrap()
            }
        };
        let name = "127.0.0.1".try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = rustls::ServerConnection::new(Arc::clone(server)).unwrap();
        let said = |error: rustls::Error| error.to_string();
        for _ in 0..8 {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                server.read_tls(&mut rest).unwrap();
                server.process_new_packets().map_err(said)?;
            }
            let mut bytes = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                client.read_tls(&mut rest).unwrap();
                client.process_new_packets().map_err(said)?;
            }
        }
        assert!(!server.is_handshaking() && !client.is_handshaking());
        Ok(server.peer_certificates().and_then(|chain| user_of(chain.first()?)).map(|user| user.name))
    }
}
