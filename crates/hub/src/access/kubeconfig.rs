//! Kubeconfigs of the hub's own users.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::Certified;
use crate::private;

/// A kubeconfig for a certified user, as JSON, which is YAML too. It holds a private key.
pub fn kubeconfig(
    name: &str,
    server: &str,
    authority_pem: &str,
    user: &str,
    certified: &Certified,
) -> String {
    let data = |pem: &str| BASE64_STANDARD.encode(pem);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{
            "name": name, "cluster": { "server": server, "certificate-authority-data": data(authority_pem) },
        }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": user } }],
        "users": [{ "name": user, "user": {
            "client-certificate-data": data(&certified.certificate_pem),
            "client-key-data": data(&certified.key_pem),
        } }],
    });
    format!("{config:#}\n")
}

/// Writes a file that its owner alone may read; what is there is replaced as a whole.
pub fn write_private(path: &Path, content: &str) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    // One that an earlier process left may be readable by others.
    match fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private::file(partial)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    fs::rename(partial, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_readable_by_all_is_so_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.kubeconfig");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_private(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
