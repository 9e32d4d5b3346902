//! Who asks for a certificate, and who may decide on it.

use mailboat_machinery::{Machine, Status, Written};
use mailboat_object::{Key, KindId, Name};
use serde_json::{Value, json};

use super::Call;
use crate::access::User;
use crate::access::review::user_info;

/// Requests for certificates.
pub(super) fn requests() -> KindId {
    KindId::new("certificates.k8s.io", "certificatesigningrequests")
}

/// Who asks, as a request says it: whatever was sent, it is the one who sent it.
pub(super) fn asker(user: &User) -> Value {
    let mut spec = json!({ "username": null, "uid": null, "groups": null, "extra": null });
    if let (Value::Object(spec), Value::Object(info)) = (&mut spec, user_info(user)) {
        spec.extend(info);
    }
    json!({ "spec": spec })
}

impl Call<'_> {
    /// Refuses whoever decides on a request, or signs it, without the right to do so for its signer.
    pub(super) fn check_signer(&self, machine: &Machine, tried: &Written) -> Result<(), Status> {
        let before = machine.get(&self.key())?;
        let verb = match self.path.subresource.as_str() {
            "approval" => "approve",
            _ if before.body()["status"] == tried.object.body()["status"] => return Ok(()),
            _ => "sign",
        };
        let signer = before.body()["spec"]["signerName"].as_str().unwrap_or_default();
        let domain = signer.split('/').next().unwrap_or_default();
        let may = |name: &str| {
            let signers = KindId::new("certificates.k8s.io", "signers");
            self.may(&Key { kind: signers, name: Name::new(name), ..self.key() }, verb)
        };
        if may(signer) || may(&format!("{domain}/*")) {
            return Ok(());
        }
        let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
        Err(Status::forbidden(&self.kind.id, &self.path.name, &why))
    }
}
