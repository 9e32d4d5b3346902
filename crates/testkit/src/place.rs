//! What a center and an edge have in common: a URL, an authority, and users with tokens.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::access::{Access, Credential};
use crate::authority::{Authority, CertifiedUser, Validity};
use crate::error::{Doing, Error, Result};
use crate::files::write_private;
use crate::random;

/// The user who may do everything at a place.
pub const ADMIN: &str = "admin";

const TOKENS_FOLDER: &str = "tokens";
const KUBECONFIGS_FOLDER: &str = "kubeconfigs";

/// A user of a place, with the groups that its token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups, besides `system:authenticated`.
    pub groups: Vec<String>,
}

impl User {
    /// A user in the given groups.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> Self {
        Self { name: name.into(), groups: groups.iter().map(|&group| group.to_owned()).collect() }
    }
}

pub(crate) struct Place {
    name: String,
    folder: PathBuf,
    url: String,
    authority: Authority,
    tokens: BTreeMap<String, String>,
}

impl Place {
    /// Makes a place's folder, authority and tokens.
    pub(crate) fn create(name: &str, folder: PathBuf, url: String, users: &[User]) -> Result<Self> {
        for part in [folder.clone(), folder.join(TOKENS_FOLDER), folder.join(KUBECONFIGS_FOLDER)] {
            fs::create_dir_all(&part).doing("creating", &part)?;
        }
        let authority = Authority::create(&folder, name)?;
        let mut tokens = BTreeMap::new();
        let mut token_lines = Vec::new();
        for user in users {
            let token = random::token()?;
            write_private(&folder.join(TOKENS_FOLDER).join(&user.name), &token)?;
            let groups = user.groups.join(",");
            token_lines.push(format!("{token},{name},{name},\"{groups}\"\n", name = user.name));
            tokens.insert(user.name.clone(), token);
        }
        let place = Self { name: name.to_owned(), folder, url, authority, tokens };
        write_private(&place.token_auth_file(), &token_lines.concat())?;
        Ok(place)
    }

    /// Reads what [`Place::create`] wrote in another process.
    pub(crate) fn open(name: &str, folder: PathBuf, url: String) -> Result<Self> {
        let authority = Authority::open(&folder, name)?;
        let tokens_folder = folder.join(TOKENS_FOLDER);
        let mut tokens = BTreeMap::new();
        for entry in fs::read_dir(&tokens_folder).doing("listing", &tokens_folder)? {
            let path = entry.doing("listing", &tokens_folder)?.path();
            let user = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            tokens.insert(user, fs::read_to_string(&path).doing("reading", &path)?);
        }
        Ok(Self { name: name.to_owned(), folder, url, authority, tokens })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn ca_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The file for `--token-auth-file`.
    pub(crate) fn token_auth_file(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    pub(crate) fn token(&self, user: &str) -> Result<&str> {
        self.tokens.get(user).map(String::as_str).ok_or_else(|| Error::NoSuchUser {
            place: self.name.clone(),
            user: user.to_owned(),
            known: self.tokens.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }

    /// Access as a user with a token; `prefix` is appended to the URL.
    pub(crate) fn access(&self, user: &str, prefix: &str) -> Result<Access> {
        Ok(self.access_with(Credential::Token(self.token(user)?.to_owned()), prefix))
    }

    pub(crate) fn access_with(&self, credential: Credential, prefix: &str) -> Access {
        Access { url: format!("{}{prefix}", self.url), ca_pem: Some(self.ca_pem().to_owned()), credential }
    }

    /// Writes (once) and names the kubeconfig of a user; `view` tells the files of one user apart.
    pub(crate) fn kubeconfig(&self, user: &str, prefix: &str, view: &str) -> Result<PathBuf> {
        let access = self.access(user, prefix)?;
        let file =
            if view.is_empty() { user.to_owned() } else { format!("{user}@{}", view.replace(':', ".")) };
        let path = self.folder.join(KUBECONFIGS_FOLDER).join(file + ".yaml");
        if !path.exists() {
            let context = if view.is_empty() { self.name.clone() } else { view.to_owned() };
            access.write_kubeconfig(&context, &path)?;
        }
        Ok(path)
    }

    pub(crate) fn certificate(
        &self,
        user: &str,
        group: Option<&str>,
        validity: Validity,
    ) -> Result<CertifiedUser> {
        self.authority.user(user, group, validity)
    }
}
