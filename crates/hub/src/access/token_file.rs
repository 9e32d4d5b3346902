//! Users with fixed tokens, from a file as kube-apiserver's `--token-auth-file` reads it.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::User;

/// Users by their tokens. The tokens themselves are not kept, only their digests.
#[derive(Clone, Debug, Default)]
pub struct TokenFile {
    users: HashMap<[u8; 32], User>,
}

/// Why the file cannot be read. It names the line, never what stands there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "line {line} of the token file {what}: a line is `token,user,uid` and may end in `,\"group1,group2\"`"
)]
pub struct BadTokenFile {
    line: usize,
    what: &'static str,
}

impl TokenFile {
    /// Reads the content of a file. Empty lines and those that begin with `#` are passed over.
    pub fn parse(text: &str) -> Result<Self, BadTokenFile> {
        let mut users = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let bad = |what| BadTokenFile { line: line_number, what };
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let fields = fields(line).ok_or_else(|| bad("has a quote that does not end"))?;
            let ([token, name, uid] | [token, name, uid, _]) = fields.as_slice() else {
                return Err(bad("has too few or too many fields"));
            };
            if token.is_empty() || name.is_empty() {
                return Err(bad("has no token or no user"));
            }
            let groups = fields.get(3).map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
            let mut user = User::authenticated(name, groups.map(str::to_owned));
            uid.clone_into(&mut user.uid);
            if users.insert(Sha256::digest(token).into(), user).is_some() {
                return Err(bad("has the token of an earlier line"));
            }
        }
        Ok(Self { users })
    }

    /// Whose token it is. Tokens are compared by digest, so that the time it takes tells nothing about them.
    pub fn whose(&self, token: &str) -> Option<&User> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        self.users.get(&digest)
    }
}

/// The fields of one line of comma-separated values; a field in double quotes may hold commas.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let field = fields.last_mut()?;
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    (!quoted).then(|| fields.into_iter().map(|field| field.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_their_tokens() {
        let file = "# users\n\nsecret1,alice,1\nsecret2,bob,2,\"crew, system:masters\"\n";
        let file = TokenFile::parse(file).unwrap();
        let alice = file.whose("secret1").unwrap();
        assert_eq!((alice.name.as_str(), alice.uid.as_str()), ("alice", "1"));
        assert_eq!(file.whose("secret2").unwrap().groups, ["crew", "system:masters", "system:authenticated"]);
        assert_eq!(file.whose("secret3"), None);
        assert_eq!(file.whose(""), None);
    }

    #[test]
    fn a_bad_line_is_named_and_not_shown() {
        for (text, what) in [
            ("a,b,c\nhunter2,alice\n", "line 2 of the token file has too few or too many fields"),
            (",alice,1", "line 1 of the token file has no token or no user"),
            ("hunter2,a,1\nhunter2,b,2", "line 2 of the token file has the token of an earlier line"),
            ("hunter2,a,1,\"b", "line 1 of the token file has a quote that does not end"),
        ] {
            let said = TokenFile::parse(text).unwrap_err().to_string();
            assert!(said.starts_with(what), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
