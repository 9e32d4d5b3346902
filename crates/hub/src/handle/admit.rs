//! Who may write what gives something away: workspaces, their types and bindings; and what nobody writes but the server.

use mailboat_machinery::{Machine, Moment, Status, Stored, Written};
use mailboat_object::{Key, KindId, Name};
use serde_json::{Value, json};

use super::Call;
use crate::access::review::user_info;
use crate::workspaces::{OWNER, ROOT, binding, children, export, logical_cluster, types};

impl Call<'_> {
    /// Refuses a workspace that cannot be made here, or is to become one of another type. What else a new one has is
    /// answered as a patch: its type, and who asked for it, who becomes its administrator.
    pub(super) fn check_workspace(&self, machine: &Machine, tried: &Written) -> Result<Value, Status> {
        let (id, workspace) = (&self.kind.id, tried.object.body());
        let refused = |why: String| Status::forbidden(id, &tried.object.key.name, &why);
        let before = if tried.created { None } else { Some(machine.get(&tried.object.key)?) };
        if !self.user.is_master() {
            children::check_place(before.as_ref().map(|before| before.body()), workspace).map_err(refused)?;
        }
        if let Some(before) = before {
            if before.body()["spec"]["type"] != workspace["spec"]["type"] {
                return Err(refused("spec.type is immutable".to_owned()));
            }
            return Ok(Value::Null);
        }
        let may_use = |of: &Stored| self.may(&of.key, "use");
        let may_bind = |path: &str, export: &str| self.may_bind(machine, path, export);
        let mut more =
            children::admit(machine, &self.cluster, workspace, may_use, may_bind).map_err(refused)?;
        more["metadata"]["annotations"] = json!({ OWNER: user_info(&self.user).to_string() });
        Ok(more)
    }

    /// Whether whoever asks may bind an export of a workspace, as that says, be the export there or not.
    fn may_bind(&self, machine: &Machine, path: &str, export: &str) -> bool {
        binding::export_at(machine, path, export).is_some_and(|export| self.may(&export, "bind"))
    }

    /// Refuses a type that would have others bound, or him who writes it, to what he may not bind himself. kcp asks for it since
    /// v0.31.
    pub(super) fn check_type(&self, machine: &Machine, tried: &Written) -> Result<(), Status> {
        let before = machine.get(&tried.object.key).ok();
        let known = |export: &(&str, &str)| {
            before.iter().any(|before| types::default_exports(before.body()).any(|one| one == *export))
        };
        let mut new = types::default_exports(tried.object.body()).filter(|export| !known(export));
        let Some((path, export)) = new.find(|(path, export)| !self.may_bind(machine, path, export)) else {
            return Ok(());
        };
        let action = if tried.created { "create" } else { "update" };
        let why =
            format!("unable to {action} WorkspaceType: no permission to bind to export {path}:{export}");
        Err(Status::forbidden(&self.kind.id, &tried.object.key.name, &why))
    }

    /// What a status of the server's own becomes by what somebody else writes into it: nothing. What a binding is bound to, and by
    /// what an export is known, decides who sees what.
    pub(super) fn status_of_the_server(
        &self,
        machine: &mut Machine,
        moment: &mut Moment<'_>,
        try_out: impl Fn(&mut Machine, &mut Moment<'_>) -> Result<Written, Status>,
    ) -> Result<Written, Status> {
        let tried = try_out(machine, moment)?;
        Ok(Written { object: machine.get(&self.key())?, created: false, changed: false, ..tried })
    }

    /// Refuses a definition of a kind that a binding serves.
    pub(super) fn check_free(&self, machine: &Machine, tried: &Written) -> Result<(), Status> {
        let names = |member: &str| tried.object.body()["spec"][member].clone();
        let (group, plural) = (names("group"), names("names")["plural"].clone());
        let defined = KindId::new(group.as_str().unwrap_or_default(), plural.as_str().unwrap_or_default());
        let bound_by = tried.created.then(|| binding::server_of(machine, &self.cluster, &defined)).flatten();
        let Some(by) = bound_by else { return Ok(()) };
        let why = format!("cannot create because resource is bound by APIBinding {:?}", by.as_str());
        Err(Status::forbidden(&self.kind.id, &tried.object.key.name, &why))
    }

    /// Refuses a binding to an export that is not there, or that its writer may not bind, as the export's workspace says.
    /// Nobody is told which of the two it is. As in kcp, an export of the root or of the binding's own workspace may come
    /// later.
    pub(super) fn check_bind(&self, machine: &Machine, tried: &Written) -> Result<(), Status> {
        let binding = &tried.object;
        let reference = |of: &Stored| of.body()["spec"]["reference"].clone();
        if !tried.created
            && machine.get(&binding.key).is_ok_and(|before| reference(&before) == reference(binding))
        {
            return Ok(());
        }
        let path = reference(binding)["export"]["path"].as_str().unwrap_or_default().to_owned();
        let export = binding::export_of(machine, binding);
        let there = |export: &Key| path.is_empty() || path == ROOT || machine.get(export).is_ok();
        if export.as_ref().is_some_and(|export| there(export) && self.may(export, "bind")) {
            return Ok(());
        }
        let name = types::told(&reference(binding)["export"]);
        let action = if tried.created { "create" } else { "update" };
        let why = format!("unable to {action} APIBinding: no permission to bind to export {name}");
        Err(Status::forbidden(&self.kind.id, &binding.key.name, &why))
    }
    /// Refuses a slice of an export that its writer may not bind: it shows where the export's view is, and that somebody is
    /// bound. Nobody is told whether there is such an export, or such a workspace.
    pub(super) fn check_slice(&self, machine: &Machine, tried: &Written) -> Result<(), Status> {
        let of = |slice: &Stored| slice.body()["spec"]["export"].clone();
        let (slice, before) = (&tried.object, machine.get(&tried.object.key).ok());
        if before.is_some_and(|before| of(&before) == of(slice)) {
            return Ok(());
        }
        let asked = of(slice);
        let text = |member: &str| asked[member].as_str().unwrap_or_default();
        let (path, name) = (text("path"), text("name"));
        let own = Key {
            cluster: self.cluster.clone(),
            kind: export::kind(),
            namespace: Name::EMPTY,
            name: Name::new(name),
        };
        let export = match path {
            "" => Some(own),
            path => binding::export_at(machine, path, name).filter(|export| machine.get(export).is_ok()),
        };
        if export.is_some_and(|export| self.may(&export, "bind")) {
            return Ok(());
        }
        let why = format!(
            "unable to create APIExportEndpointSlice: no permission to bind to export {}",
            types::told(&asked)
        );
        Err(Status::forbidden(&self.kind.id, &slice.key.name, &why))
    }
}

/// Whether the server alone says how far an object of a kind is.
pub(super) fn tells_of_itself(kind: &KindId) -> bool {
    kind.group() == "apis.kcp.io" || (kind.group() == "tenancy.kcp.io" && *kind != logical_cluster())
}

pub(super) fn definitions() -> KindId {
    KindId::new("apiextensions.k8s.io", "customresourcedefinitions")
}
