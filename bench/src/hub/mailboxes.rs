//! Mailboxes as the center makes them, with what stands in each of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use mailboat_center::mailbox::{self, SyncedKinds};
use mailboat_center::setup::Offer;
use mailboat_cluster::{Cluster, Connection, Transport as _};
use mailboat_object::wire::{Call, Part, Verb};
use mailboat_object::{ClusterId, Key, KindId, Name};
use mailboat_registration::SyncerId;
use serde_json::{Value, json};
use tokio::time::sleep;

/// The workspace that mailboxes stand in.
pub const PROVIDER: &str = "root:espw";
const MANAGER: &str = "mailboat-center";
const READY_LIMIT: Duration = Duration::from_mins(2);
const GLANCE: Duration = Duration::from_millis(50);

/// Sets a provider workspace up that offers this.
pub async fn set_up(connection: &Connection, offer: &Offer) -> Result<()> {
    mailboat_center::init::init(connection, PROVIDER, offer, |_, _| ()).await?;
    Ok(())
}

/// Makes workspaces of these numbers in a parent, and waits for each until it is ready.
pub async fn make_workspaces(
    connection: &Connection,
    parent: &str,
    numbers: std::ops::Range<usize>,
    in_flight: usize,
) -> Result<Duration> {
    let begun = Instant::now();
    let above = connection.at(&format!("/clusters/{parent}"));
    stream::iter(numbers)
        .map(|number| make_workspace(&above, name_of(number)))
        .buffer_unordered(in_flight)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(begun.elapsed())
}

/// Puts into the mailboxes of these numbers what the center puts into a mailbox.
pub async fn furnish(
    connection: &Connection,
    mut numbers: std::ops::Range<usize>,
    in_flight: usize,
) -> Result<()> {
    let syncer = SyncerId::new("florin", "f99e773f-3db2-439e-8054-827c4ac55368");
    let first: Vec<(Key, Arc<[u8]>)> = mailbox::contents(PROVIDER, &syncer, &SyncedKinds::default())
        .into_iter()
        .map(|fixture| (fixture.key(&ClusterId::new("mailbox")), fixture.body.json))
        .collect();
    // Of a kind that is served because of what came before, which only a new look at the mailbox shows.
    let then = [(key("edge.kubestellar.io", "syncerconfigs", "", "the-one"), bytes(&the_one()))];
    // As the center does, one mailbox is asked what all of them serve: before anything is in it, and then.
    let Some(model) = numbers.next() else { return Ok(()) };
    let asked = || connection.at(&format!("/clusters/{PROVIDER}:{}", name_of(model)));
    let steps = [(asked(), &first[..]), (asked(), &then[..])];
    fill(&steps, connection, model).await?;
    stream::iter(numbers)
        .map(|number| fill(&steps, connection, number))
        .buffer_unordered(in_flight)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

/// What is put into a mailbox, and a model that serves what is needed for it.
type Step<'s> = (Cluster, &'s [(Key, Arc<[u8]>)]);

async fn fill(steps: &[Step<'_>], connection: &Connection, number: usize) -> Result<()> {
    let path = format!("{PROVIDER}:{}", name_of(number));
    for (model, wanted) in steps {
        let mailbox = connection.at(&format!("/clusters/{path}")).serving_like(model);
        for (key, body) in *wanted {
            let verb = Verb::Apply { body: Arc::clone(body), manager: Name::new(MANAGER), force: false };
            let call = Call { key: key.clone(), verb, part: Part::Whole, dry_run: false };
            mailbox.call(call).await.with_context(|| format!("{} {} in {path}", key.kind, key.name))?;
        }
    }
    Ok(())
}

/// Makes a workspace, and waits until it is ready.
pub async fn make_workspace(above: &Cluster, name: String) -> Result<()> {
    let workspace = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name },
        "spec": { "type": { "name": "universal", "path": "root" } },
    });
    let key = key("tenancy.kcp.io", "workspaces", "", &name);
    let verb = Verb::Create { body: bytes(&workspace), manager: Name::new(MANAGER) };
    above.call(Call { key: key.clone(), verb, part: Part::Whole, dry_run: false }).await?;
    let begun = Instant::now();
    loop {
        let call = Call { key: key.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
        let found: Value = serde_json::from_slice(&above.call(call).await?.body)?;
        if found["status"]["phase"] == "Ready" {
            return Ok(());
        }
        if begun.elapsed() > READY_LIMIT {
            bail!("the workspace {name} does not become ready");
        }
        sleep(GLANCE).await;
    }
}

fn name_of(number: usize) -> String {
    format!("1hx9gm3uijrd2lfk-mb-6ab3e4a2-44d2-4fb6-8d2e-{number:012}")
}

/// What a mailbox asks for where one placement selects three objects.
fn the_one() -> Value {
    let object = |resource: &str, group: &str, version: &str| {
        json!({ "group": group, "resource": resource, "apiVersion": version,
            "objectsByNamespace": [{ "namespace": "commonstuff", "names": ["commond"] }] })
    };
    json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "SyncerConfig", "metadata": { "name": "the-one" },
        "spec": { "namespacedObjects": [object("configmaps", "", "v1"), object("replicasets", "apps", "v1")] },
    })
}

fn key(group: &str, resource: &str, namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new("mailbox"),
        kind: KindId::new(group, resource),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}

fn bytes(object: &Value) -> Arc<[u8]> {
    Arc::from(object.to_string().into_bytes())
}
