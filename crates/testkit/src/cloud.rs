//! Plays the cloud: Services of type LoadBalancer get an address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::access::Access;
use crate::error::Result;
use crate::follow::{Followed, Key, Snapshot};

/// Addresses come from 192.0.2.0/24, which is reserved for documentation (RFC 5737): nothing ever answers there.
const NETWORK: [u8; 3] = [192, 0, 2];

const RETRY_PERIOD: Duration = Duration::from_millis(250);
const LOAD_BALANCER: &str = "LoadBalancer";

/// A cloud's load balancers for one cluster, as far as the API shows them. Dropping it ends it; the addresses that
/// it gave stay in the objects.
///
/// Services that ask for another's balancer by `loadBalancerClass` are left alone. An address is given back when
/// its Service goes or changes its type. It puts no finalizer on Services.
#[derive(Debug)]
pub struct Cloud {
    player: JoinHandle<()>,
}

impl Cloud {
    /// Plays the cloud for the cluster that `access` leads to, as a user who may change the status of Services.
    pub async fn start(access: &Access) -> Result<Self> {
        let client = access.client().await?;
        let services: Followed<Service> = Followed::start(Api::all(client.clone()), None).await?;
        Ok(Self { player: tokio::spawn(play(client, services)) })
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        self.player.abort();
    }
}

async fn play(client: kube::Client, services: Followed<Service>) {
    let mut snapshots = services.snapshots();
    loop {
        let mut failed = false;
        let snapshot = snapshots.borrow_and_update().clone();
        for ((namespace, name), ingress) in decide(&snapshot) {
            let api: Api<Service> = Api::namespaced(client.clone(), &namespace);
            let patch = json!({ "status": { "loadBalancer": { "ingress": ingress } } });
            let patched = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
            failed |= patched.is_err();
        }
        // A refused patch met an object that has changed since, or a server that is away: look again in a moment.
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(RETRY_PERIOD), if failed => {}
        }
    }
}

/// The Services whose status is to change, each with its new list of addresses.
fn decide(services: &Snapshot<Service>) -> Vec<(Key, Option<serde_json::Value>)> {
    let mut taken: BTreeMap<Ipv4Addr, &Key> = BTreeMap::new();
    for (key, service) in services.iter().filter(|(_, service)| wants_address(service)) {
        if let Some(address) = own_address(service) {
            taken.insert(address, key);
        }
    }
    let mut free = (1..=254).map(host).filter(|address| !taken.contains_key(address));
    let mut changes = Vec::new();
    for (key, service) in services.iter() {
        let has_address = own_address(service).is_some();
        if !wants_address(service) && has_address {
            changes.push((key.clone(), None));
        } else if wants_address(service) && !has_address {
            // With all 254 given, a Service stays pending, as with any cloud that has run out.
            let Some(address) = free.next() else { continue };
            changes.push((key.clone(), Some(json!([{ "ip": address.to_string(), "ipMode": "VIP" }]))));
        }
    }
    changes
}

fn wants_address(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| {
        spec.type_.as_deref() == Some(LOAD_BALANCER) && spec.load_balancer_class.is_none()
    }) && service.meta().deletion_timestamp.is_none()
}

fn own_address(service: &Service) -> Option<Ipv4Addr> {
    let ingress = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?;
    ingress.iter().find_map(|entry| match entry.ip.as_ref()?.parse().ok()? {
        IpAddr::V4(address) if address.octets().starts_with(&NETWORK) => Some(address),
        _ => None,
    })
}

fn host(number: u8) -> Ipv4Addr {
    let [first, second, third] = NETWORK;
    Ipv4Addr::new(first, second, third, number)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn snapshot(services: &[(&str, &str, Option<&str>)]) -> Snapshot<Service> {
        let service = |(name, service_type, address): &(&str, &str, Option<&str>)| {
            let ingress = address.map(|address| json!([{ "ip": address }]));
            let service = json!({
                "metadata": { "name": name, "namespace": "sea" },
                "spec": { "type": service_type },
                "status": { "loadBalancer": { "ingress": ingress } },
            });
            let key = ("sea".to_owned(), (*name).to_owned());
            (key, Arc::new(serde_json::from_value::<Service>(service).unwrap()))
        };
        Arc::new(services.iter().map(service).collect())
    }

    #[test]
    fn a_balancer_gets_an_address_that_no_other_has() {
        let services = snapshot(&[
            ("a", LOAD_BALANCER, Some("192.0.2.1")),
            ("b", LOAD_BALANCER, None),
            ("c", LOAD_BALANCER, Some("192.0.2.2")),
            ("d", "ClusterIP", None),
        ]);
        let changes = decide(&services);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(
            (changes[0].0.1.as_str(), &changes[0].1.as_ref().unwrap()[0]["ip"]),
            ("b", &json!("192.0.2.3"))
        );
    }

    #[test]
    fn an_address_is_taken_back_when_the_type_changes_and_given_to_the_next() {
        let services = snapshot(&[("a", "ClusterIP", Some("192.0.2.1")), ("b", LOAD_BALANCER, None)]);
        let changes = decide(&services);
        assert_eq!(changes[0], (("sea".to_owned(), "a".to_owned()), None), "{changes:?}");
        assert_eq!(changes[1].1.as_ref().unwrap()[0]["ip"], "192.0.2.1", "{changes:?}");
    }

    #[test]
    fn an_address_of_someone_else_is_left_alone() {
        let changes = decide(&snapshot(&[("a", "ClusterIP", Some("203.0.113.7"))]));
        assert_eq!(changes, []);
    }

    #[test]
    fn the_two_hundred_and_fifty_fifth_balancer_stays_pending() {
        let names: Vec<String> = (0..255).map(|number| format!("b{number:03}")).collect();
        let services: Vec<_> = names.iter().map(|name| (name.as_str(), LOAD_BALANCER, None)).collect();
        let changes = decide(&snapshot(&services));
        assert_eq!(changes.len(), 254);
    }
}
