//! Puts the Pods that the kubelet can run on its node as they are created, so that Deployments need not ask for it.
//!
//! The node is tainted, so the scheduler gives it nothing and every other Pod goes to KWOK's nodes. A
//! `MutatingAdmissionPolicy` sets `spec.nodeName` of those that [`Images::of`] would find something for, by the same
//! rule: the repository of the first container's image, else the program that its command calls.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::image::Images;
use crate::error::{Asking, Error, Result};
use crate::wait::wait_until;

/// The API server looks for new policies once a second.
const ACTIVE_LIMIT: Duration = Duration::from_secs(30);

/// The policy of one kubelet and its binding. Dropping it removes both, if their server is there.
pub(super) struct Admission {
    client: Client,
    runtime: Handle,
    /// Of the policy and of its binding alike.
    name: String,
    binding_uid: Option<String>,
    policy_uid: Option<String>,
}

impl Admission {
    /// Sends what `images` has programs for to `node`, from when this returns.
    ///
    /// What an earlier kubelet of the same node left is replaced rather than changed: its removal may still be under
    /// way, and goes by UID.
    pub(super) async fn start(client: &Client, node: &str, images: &Images) -> Result<Self> {
        let mut admission = Self {
            client: client.clone(),
            runtime: Handle::current(),
            name: node.to_owned(),
            binding_uid: None,
            policy_uid: None,
        };
        let binding: MutatingAdmissionPolicyBinding = typed(binding(node))?;
        admission.binding_uid = Some(replace(client, node, &binding).await?);
        // Known to no other policy, so that what an earlier one still does is not taken for this one's work.
        let sample_program = format!("/{}", admission.binding_uid.as_deref().unwrap_or_default());
        let policy: MutatingAdmissionPolicy = typed(policy(node, images, &sample_program))?;
        admission.policy_uid = Some(replace(client, node, &policy).await?);
        admission.wait_until_active(&sample_program).await?;
        Ok(admission)
    }

    async fn wait_until_active(&self, sample_program: &str) -> Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let container = json!({ "name": "sample", "image": "sample", "command": [sample_program] });
        let sample = json!({ "metadata": { "name": self.name }, "spec": { "containers": [container] } });
        let sample: Pod = typed(sample)?;
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        wait_until(format!("pods admitted to node {}", self.name), ACTIVE_LIMIT, || async {
            let pod = pods.create(&dry_run, &sample).await.map_err(|error| error.to_string())?;
            let node = pod.spec.and_then(|spec| spec.node_name);
            if node.as_deref() == Some(&self.name) { Ok(()) } else { Err(format!("put on {node:?}")) }
        })
        .await?;
        Ok(())
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let (client, name) = (self.client.clone(), self.name.clone());
        let (policy_uid, binding_uid) = (self.policy_uid.take(), self.binding_uid.take());
        // Nobody is left to tell if the server is away, and a world that ends takes both with it.
        self.runtime.spawn(async move {
            if let Some(uid) = policy_uid {
                let _ = remove::<MutatingAdmissionPolicy>(&client, &name, Some(uid)).await;
            }
            if let Some(uid) = binding_uid {
                let _ = remove::<MutatingAdmissionPolicyBinding>(&client, &name, Some(uid)).await;
            }
        });
    }
}

fn binding(node: &str) -> Value {
    json!({ "metadata": { "name": node }, "spec": { "policyName": node } })
}

fn policy(node: &str, images: &Images, sample_program: &str) -> Value {
    json!({
        "metadata": { "name": node },
        "spec": {
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"],
                }],
            },
            "matchConditions": [
                { "name": "not-on-a-node-yet", "expression": "!has(object.spec.nodeName)" },
                // Such a Pod is for one node; found on another, it is deleted and made anew without end.
                {
                    "name": "not-of-a-daemon-set",
                    "expression": "!has(object.metadata.ownerReferences) || \
                        !object.metadata.ownerReferences.exists(owner, owner.kind == 'DaemonSet')",
                },
                { "name": "can-be-run", "expression": can_be_run(images, sample_program) },
            ],
            "mutations": [{
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": format!(
                        "[JSONPatch{{op: 'add', path: '/spec/nodeName', value: {}}}]",
                        Value::from(node)
                    ),
                },
            }],
            "reinvocationPolicy": "Never",
            // A Pod that KWOK would play after all is a test that passes for nothing: better none.
            "failurePolicy": "Fail",
        },
    })
}

/// [`Images::of`] in CEL, in which lists and strings are written as in JSON. The sample counts as one that can be run.
fn can_be_run(images: &Images, sample_program: &str) -> String {
    let repositories: Value = images.named.keys().cloned().collect();
    let programs = images.any.programs.keys().map(String::as_str).chain([sample_program]);
    let programs: Value = programs.collect();
    format!(
        "object.spec.containers.size() > 0 && [object.spec.containers[0]].exists(container, \
            has(container.image) && {repositories}.exists(repository, \
                container.image == repository || \
                container.image.startsWith(repository + ':') || \
                container.image.startsWith(repository + '@')) || \
            has(container.command) && container.command.size() > 0 && container.command[0] in {programs})"
    )
}

async fn replace<Kind>(client: &Client, name: &str, object: &Kind) -> Result<String>
where
    Kind: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let kind = Kind::kind(&());
    let removed = remove::<Kind>(client, name, None).await;
    removed.asking(|| format!("removing an earlier {kind} {name}"))?;
    let created = Api::<Kind>::all(client.clone()).create(&PostParams::default(), object).await;
    let created = created.asking(|| format!("creating {kind} {name}"))?;
    Ok(created.uid().unwrap_or_default())
}

/// Removes an object, unless there is none or another bears its name by now.
async fn remove<Kind>(client: &Client, name: &str, uid: Option<String>) -> kube::Result<()>
where
    Kind: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let preconditions = Preconditions { uid, resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match Api::<Kind>::all(client.clone()).delete(name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

fn typed<Kind: DeserializeOwned>(value: Value) -> Result<Kind> {
    serde_json::from_value(value).map_err(|error| Error::Malformed {
        what: "an object for the kubelet".to_owned(),
        why: error.to_string(),
    })
}
