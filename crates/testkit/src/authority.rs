//! The certificates of one place: its own authority, what its servers show, and what its users bring.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::error::{Doing, Result};
use crate::files::write_private;

const CERTIFICATE_FILE: &str = "ca.pem";
const KEY_FILE: &str = "ca.key";

/// The authority of one place, kept in that place's folder. Each place has its own, so that a certificate of one
/// is worth nothing at another.
pub(crate) struct Authority {
    folder: PathBuf,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct CertifiedUser {
    /// The certificate, followed by nothing else.
    pub certificate_pem: String,
    /// Its private key (PKCS #8).
    pub key_pem: String,
}

/// Whether a user's certificate is still good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// Good for longer than any test runs.
    Current,
    /// Ran out long ago.
    Expired,
}

impl Authority {
    /// Makes a new authority in `folder`.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self> {
        let params = authority_params(name);
        let key = KeyPair::generate()?;
        let certificate_pem = params.self_signed(&key)?.pem();
        let path = folder.join(CERTIFICATE_FILE);
        fs::write(&path, &certificate_pem).doing("writing", &path)?;
        write_private(&folder.join(KEY_FILE), &key.serialize_pem())?;
        Ok(Self { folder: folder.to_owned(), certificate_pem, issuer: Issuer::new(params, key) })
    }

    /// Takes over the authority of that name that stands in `folder`.
    pub(crate) fn open(folder: &Path, name: &str) -> Result<Self> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).doing("reading", &path)
        };
        let certificate_pem = read(CERTIFICATE_FILE)?;
        let key = KeyPair::from_pem(&read(KEY_FILE)?)?;
        Ok(Self {
            folder: folder.to_owned(),
            certificate_pem,
            issuer: Issuer::new(authority_params(name), key),
        })
    }

    /// The authority's certificate.
    pub(crate) fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The file of the authority's certificate.
    pub(crate) fn certificate_file(&self) -> PathBuf {
        self.folder.join(CERTIFICATE_FILE)
    }

    /// Writes `serving.pem` and `serving.key`, for every server of this place, and gives their paths.
    pub(crate) fn serving_files(&self) -> Result<(PathBuf, PathBuf)> {
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "127.0.0.1");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = self.folder.join("serving.pem");
        fs::write(&certificate, params.signed_by(&key, &self.issuer)?.pem())
            .doing("writing", &certificate)?;
        let key_file = self.folder.join("serving.key");
        write_private(&key_file, &key.serialize_pem())?;
        Ok((certificate, key_file))
    }

    /// A client certificate: the user is its common name, the group its organization.
    pub(crate) fn user(&self, user: &str, group: Option<&str>, validity: Validity) -> Result<CertifiedUser> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        if validity == Validity::Expired {
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate()?;
        let certificate_pem = params.signed_by(&key, &self.issuer)?.pem();
        Ok(CertifiedUser { certificate_pem, key_pem: key.serialize_pem() })
    }
}

// The same for the same name: what the authority is called in the certificates that it signs.
fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("mailboat testbed {name}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// Writes the pair of keys with which a server signs and checks service account tokens; gives (private, public).
pub(crate) fn service_account_keys(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let key = KeyPair::generate()?;
    let private = folder.join("service-accounts.key");
    write_private(&private, &key.serialize_pem())?;
    let public = folder.join("service-accounts.pub");
    fs::write(&public, key.public_key_pem()).doing("writing", &public)?;
    Ok((private, public))
}
