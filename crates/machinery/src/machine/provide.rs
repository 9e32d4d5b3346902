//! What a cluster gives to objects that no rule of their kinds can: to Services addresses, which nobody else may have, to Pods
//! the files by which they speak to their own cluster, which depend on their account, and to exports and types of kcp the
//! path of their workspace.

use std::collections::BTreeSet;
use std::hash::BuildHasher as _;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use mailboat_object::json::Raw;
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use super::Machine;
use super::write::Writing;
use crate::object::Stored;
use crate::random::Moment;
use crate::status::{FieldError, Status};

/// The addresses of Services: 10.96.0.0/12, as kubeadm has it.
const ADDRESSES: RangeInclusive<u32> = 0x0a60_0001..=0x0a6f_fffe;
/// The first of them are left to those who name theirs.
const STATIC: u32 = 256;
const NODE_PORTS: RangeInclusive<u64> = 30_000..=32_767;

/// What others refer to by the path of its workspace.
const SAYS_WHERE_EXPORTS: (&str, &str) = ("apis.kcp.io", "apiexports");
const SAYS_WHERE_TYPES: (&str, &str) = ("tenancy.kcp.io", "workspacetypes");
/// The annotation that says this path, of what is in the workspace and of the LogicalCluster that it is.
const PATH: &str = "kcp.io/path";

/// Where a Pod finds what it needs to speak to its cluster.
const ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Whether it is wanted, as Pods and accounts say it.
const AUTOMOUNT: &str = "automountServiceAccountToken";
/// The volume that is mounted there.
const ACCOUNT_VOLUME: &str = "kube-api-access-";
/// The ConfigMap of every namespace that says whose certificate the API shows.
pub const ROOT_CA: &str = "kube-root-ca.crt";

impl Machine {
    /// From now on a new Pod has an account, which must be there, and is given the account's token.
    pub fn give_tokens(&mut self) {
        self.settings.tokens = true;
    }

    /// What a new Service or Pod is given.
    pub(super) fn provide(
        &self,
        writing: &Writing<'_>,
        key: &Key,
        body: &mut Value,
        moment: &mut Moment<'_>,
    ) -> Result<(), Status> {
        match (key.kind.group(), key.kind.resource()) {
            ("", "services") if self.settings.addresses => self.address(writing, key, body, None),
            ("", "pods") if self.settings.tokens => self.introduce(key, body, moment),
            SAYS_WHERE_EXPORTS | SAYS_WHERE_TYPES => {
                self.say_where(key, body);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What a changed Service is given, or has to give back.
    pub(super) fn provide_changed(
        &self,
        writing: &Writing<'_>,
        live: &Stored,
        body: &mut Value,
    ) -> Result<(), Status> {
        match (live.key.kind.group(), live.key.kind.resource()) {
            ("", "services") if self.settings.addresses => {
                self.address(writing, &live.key, body, Some(live.body()))
            }
            SAYS_WHERE_EXPORTS | SAYS_WHERE_TYPES => {
                self.say_where(&live.key, body);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Has an object of kcp that others refer to by a path say the path of its workspace. It is the server's own.
    fn say_where(&self, key: &Key, body: &mut Value) {
        let kind = KindId::new("core.kcp.io", "logicalclusters");
        let place = Key { kind, namespace: Name::default(), name: Name::new("cluster"), ..key.clone() };
        let place = self.get(&place).ok();
        if let Some(path) = place.and_then(|place| place.metadata()["annotations"].get(PATH).cloned()) {
            if !body["metadata"]["annotations"].is_object() {
                body["metadata"]["annotations"] = json!({});
            }
            body["metadata"]["annotations"][PATH] = path;
        }
    }

    /// Gives a Service the addresses and ports that its type asks for.
    fn address(
        &self,
        writing: &Writing<'_>,
        key: &Key,
        service: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let uid = service["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let spec = &mut service["spec"];
        let former = old.map(|old| &old["spec"]);
        let errors = match self.cluster_address(key, &uid, spec, former) {
            Ok(()) => self.node_ports(key, spec, former).err(),
            Err(error) => Some(error),
        };
        let errors: Vec<FieldError> = errors.into_iter().collect();
        writing.refuse(&key.name, &errors)
    }

    fn cluster_address(
        &self,
        key: &Key,
        uid: &str,
        spec: &mut Value,
        former: Option<&Value>,
    ) -> Result<(), FieldError> {
        let has = |spec: &Value| spec["clusterIP"].as_str().unwrap_or_default().to_owned();
        let (wanted, before) = (has(spec), former.map(has).unwrap_or_default());
        if spec["type"] == "ExternalName" {
            // What nobody asks for any more is given back.
            if let Some(spec) = spec.as_object_mut().filter(|_| !before.is_empty() && wanted == before) {
                for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                    spec.remove(member);
                }
            }
            return Ok(());
        }
        if !before.is_empty() && wanted != before {
            let what = "may not change once set";
            return Err(FieldError::invalid("spec.clusterIPs[0]", &spec["clusterIPs"], what));
        }
        if wanted == "None" || (!wanted.is_empty() && wanted == before) {
            return Ok(());
        }
        let taken = self.of_services(key, address_of);
        let given = if wanted.is_empty() {
            free_address(uid, &taken)
        } else {
            let refused = |what: &str| {
                let what = format!("failed to allocate IP {wanted}: {what}");
                FieldError::invalid("spec.clusterIPs", &json!([wanted]), what)
            };
            let asked = wanted.parse::<Ipv4Addr>().ok().map(u32::from);
            let asked = asked.filter(|asked| ADDRESSES.contains(asked));
            let range = "the provided network does not match the current range";
            let asked = asked.ok_or_else(|| refused(range))?;
            if taken.contains(&asked) {
                return Err(refused("provided IP is already allocated"));
            }
            asked
        };
        let given = Ipv4Addr::from(given).to_string();
        spec["clusterIPs"] = json!([given]);
        spec["clusterIP"] = given.into();
        if spec["ipFamilies"].is_null() {
            spec["ipFamilies"] = json!(["IPv4"]);
            spec["ipFamilyPolicy"] = "SingleStack".into();
        }
        Ok(())
    }

    fn node_ports(&self, key: &Key, spec: &mut Value, former: Option<&Value>) -> Result<(), FieldError> {
        let wants = |spec: &Value| match spec["type"].as_str() {
            Some("NodePort") => true,
            Some("LoadBalancer") => spec["allocateLoadBalancerNodePorts"] != false,
            _ => false,
        };
        let former = former.filter(|former| wants(former));
        let (wants, balances) = (wants(spec), spec["type"] == "LoadBalancer");
        let kind = spec["type"].as_str().unwrap_or_default().to_owned();
        let ports =
            spec.get_mut("ports").and_then(Value::as_array_mut).map_or(&mut [][..], Vec::as_mut_slice);
        let mut taken = None;
        for (index, port) in ports.iter_mut().enumerate() {
            let at = format!("spec.ports[{index}].nodePort");
            let before = former.and_then(|former| same_port(former, port));
            let asked = port["nodePort"].as_u64().filter(|asked| *asked > 0);
            if !wants && !balances {
                match asked {
                    Some(asked) if before == Some(asked) => {
                        port.as_object_mut().map(|port| port.remove("nodePort"));
                    }
                    Some(_) => {
                        let what = format!("may not be used when `type` is '{kind}'");
                        return Err(FieldError::forbidden(&at, &what));
                    }
                    None => {}
                }
                continue;
            }
            if asked.is_some() && asked == before {
                continue;
            }
            let taken = taken.get_or_insert_with(|| self.of_services(key, ports_of));
            let given = match asked.or(before) {
                Some(given) if !NODE_PORTS.contains(&given) => {
                    let what =
                        "provided port is not in the valid range. The range of valid ports is 30000-32767";
                    return Err(FieldError::invalid(&at, &given.into(), what));
                }
                Some(given) if taken.contains(&given) => {
                    return Err(FieldError::invalid(
                        &at,
                        &given.into(),
                        "provided port is already allocated",
                    ));
                }
                Some(given) => given,
                None if !wants => continue,
                None => NODE_PORTS
                    .into_iter()
                    .find(|port| !taken.contains(port))
                    .ok_or_else(|| FieldError::invalid(&at, &0.into(), "all node ports are taken"))?,
            };
            taken.insert(given);
            port["nodePort"] = given.into();
        }
        Ok(())
    }

    /// What all other Services of a cluster have.
    fn of_services<T: Ord, I: IntoIterator<Item = T>>(&self, but: &Key, of: fn(&Stored) -> I) -> BTreeSet<T> {
        let table = self.table(&but.cluster, &but.kind);
        let held = table.into_iter().flat_map(|table| table.values());
        held.filter(|held| !held.is(but)).flat_map(|held| of(&held.get())).collect()
    }

    /// Gives a Pod its account, and what it needs to be taken for it: the work of an admission plugin.
    fn introduce(&self, key: &Key, pod: &mut Value, moment: &mut Moment<'_>) -> Result<(), Status> {
        let name = pod["spec"]["serviceAccountName"].as_str().unwrap_or("default").to_owned();
        let account = self.account(&key.cluster, &key.namespace, &name);
        // The account for those who bring none is made with its namespace, a moment later.
        if account.is_none() && name != "default" {
            let why = format!(
                "error looking up service account {}/{name}: serviceaccount {name:?} not found",
                key.namespace
            );
            return Err(Status::forbidden(&key.kind, &key.name, &why));
        }
        let said = account.as_ref().map(|account| account.body());
        let spec = &mut pod["spec"];
        spec["serviceAccountName"] = name.as_str().into();
        spec["serviceAccount"] = name.into();
        let secrets = said.map(|account| &account["imagePullSecrets"]).filter(|secrets| secrets.is_array());
        if let (Some(secrets), true) = (secrets, spec["imagePullSecrets"].is_null()) {
            spec["imagePullSecrets"] = secrets.clone();
        }
        let asked =
            spec[AUTOMOUNT].as_bool().or_else(|| said.and_then(|account| account[AUTOMOUNT].as_bool()));
        if asked != Some(false) {
            mount_token(spec, moment);
        }
        Ok(())
    }

    fn account(&self, cluster: &ClusterId, namespace: &Name, name: &str) -> Option<Arc<Stored>> {
        self.find(&Key {
            cluster: cluster.clone(),
            kind: KindId::new("", "serviceaccounts"),
            namespace: namespace.clone(),
            name: Name::new(name),
        })
    }
}

/// Mounts the account's files into all containers that have nothing there.
fn mount_token(spec: &mut Value, moment: &mut Moment<'_>) {
    let volume = moment.name(ACCOUNT_VOLUME);
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let mounts = &mut container["volumeMounts"];
            if mounts.is_null() {
                *mounts = json!([]);
            }
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().any(|mount| mount["mountPath"] == ACCOUNT_FOLDER) {
                continue;
            }
            mounts.push(json!({ "name": volume, "readOnly": true, "mountPath": ACCOUNT_FOLDER }));
            mounted = true;
        }
    }
    if !mounted {
        return;
    }
    if spec["volumes"].is_null() {
        spec["volumes"] = json!([]);
    }
    let namespace = json!({ "path": "namespace",
        "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } });
    let sources = json!([
        // Seven seconds more than an hour tell these tokens from those that somebody asked for.
        { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
        { "configMap": { "name": ROOT_CA, "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
        { "downwardAPI": { "items": [namespace] } },
    ]);
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.push(json!({ "name": volume, "projected": { "defaultMode": 0o644, "sources": sources } }));
    }
}

/// The next free address after a place that the uid says, so that an address is seldom used twice in a row.
fn free_address(uid: &str, taken: &BTreeSet<u32>) -> u32 {
    let first = ADDRESSES.start() + STATIC;
    let count = ADDRESSES.end() - first;
    let hash = foldhash::fast::FixedState::default().hash_one(uid);
    let begin = u32::try_from(hash % u64::from(count)).unwrap_or(0);
    let candidates = (0..count).map(|step| first + (begin + step) % count);
    // There are a million.
    candidates.into_iter().find(|address| !taken.contains(address)).unwrap_or(first)
}

fn address_of(service: &Stored) -> Option<u32> {
    service.text_at(&["spec", "clusterIP"])?.parse::<Ipv4Addr>().ok().map(u32::from)
}

fn ports_of(service: &Stored) -> Vec<u64> {
    if let Some(spec) = service.resting_member("spec") {
        let ports = Raw::trusted(&spec).member("ports");
        let ports = ports.into_iter().flat_map(Raw::elements);
        return ports.filter_map(|port| port.member("nodePort")?.as_u64()).collect();
    }
    let ports = service.body()["spec"]["ports"].as_array().into_iter().flatten();
    ports.filter_map(|port| port["nodePort"].as_u64()).collect()
}

/// The node port that the same port had before.
fn same_port(former: &Value, port: &Value) -> Option<u64> {
    let former = former["ports"].as_array().into_iter().flatten();
    let mut same = former.filter(|other| ["port", "protocol"].iter().all(|name| other[name] == port[name]));
    same.find_map(|other| other["nodePort"].as_u64())
}
