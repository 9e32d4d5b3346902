//! `mailboat syncer-gen`: asks and checks everything, then writes, then prints.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, anyhow};
use jiff::Timestamp;
use mailboat_api::edge::{EdgeSyncConfigSpec, SyncerConfigSpec};
use mailboat_api::names::{export, group};
use mailboat_cluster::{Cluster, Transport as _};
use mailboat_object::key::KindId;
use mailboat_object::wire::FaultKind;
use mailboat_registration::Registration;
use mailboat_registration::account::Wanted;
use mailboat_registration::lifetime::Lifetime;
use mailboat_registration::manifest::{CenterAddress, EdgeOptions, Manifest};
use mailboat_registration::rights::{self, EdgeAccess, EdgeAccessArgument, ServedKind};
use mailboat_registration::token::{self, Token};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{before_writing, refusal};
use crate::flags::{SyncerGenArguments, server_url};
use crate::output::Output;
use crate::place::{Reached, check_rights, get, list, reach_mailbox};

/// Registers a syncer and writes its manifest.
pub async fn run(arguments: &SyncerGenArguments) -> Result<()> {
    let options = edge_options(arguments)?;
    let reached = reach_mailbox(&arguments.center, &arguments.name).await?;
    let plan = Plan::check(&reached, arguments.options.rotate).await?;
    let output = Output::open(&arguments.output_file)?;

    let Reached { cluster, registration, .. } = &reached;
    say!("registering {} in the mailbox {}", registration.id, registration.mailbox.path);
    for wanted in &plan.account {
        let reply =
            cluster.call(wanted.apply(false)).await.map_err(|fault| half_done(&wanted.title, &fault))?;
        say!("  {}: {}", wanted.title, if reply.created { "made" } else { "put right" });
    }
    if plan.account.is_empty() {
        say!("  account and rights: in place");
    }
    if let Some(wanted) = &plan.configuration {
        cluster.call(wanted.create(false)).await.map_err(|fault| half_done(&wanted.title, &fault))?;
        say!("  {}: made", wanted.title);
    }
    let token = plan.token(cluster, registration, arguments.options.lifetime).await?;
    let manifest = Manifest {
        registration: registration.clone(),
        token,
        center: center_address(&reached, arguments),
        options,
    };
    output.write(&manifest.text())?;
    say_what_is_next(&manifest, arguments);
    Ok(())
}

/// What is to be written, once nothing speaks against it any more.
struct Plan {
    /// What of the account and its rights is missing or not as it should be.
    account: Vec<Wanted>,
    /// The default configuration, if there is none yet. One that is there is its owner's.
    configuration: Option<Wanted>,
    /// The token that the edge was given before and that still serves.
    known: Option<Token>,
}

impl Plan {
    /// Asks for everything that could go wrong, and writes nothing.
    async fn check(reached: &Reached, rotate: bool) -> Result<Self> {
        let Reached { cluster, registration, .. } = reached;
        check_rights(cluster, &registration.mailbox, &registration.needs()).await?;
        let configuration = registration.default_configuration();
        let is_there = match get::<Value>(cluster, configuration.key.clone()).await {
            Ok(found) => found.is_some(),
            Err(fault) if fault.kind == FaultKind::Unserved => {
                return Err(refusal(format!(
                    "the mailbox {} does not serve EdgeSyncConfigs; it needs its APIBinding {}, which the center makes",
                    registration.mailbox.path,
                    export::BINDING_IN_MAILBOX
                )));
            }
            Err(fault) => return Err(before_writing("the mailbox's configuration cannot be read", &fault)),
        };
        let mut account = Vec::new();
        let Kinds { returned, upsynced } = Kinds::of(cluster).await?;
        for wanted in registration.account(&returned, &upsynced) {
            let found: Option<Value> = get(cluster, wanted.key.clone())
                .await
                .map_err(|fault| before_writing(&format!("{} cannot be read", wanted.title), &fault))?;
            if !found.is_some_and(|found| wanted.is_in(&found)) {
                account.push(wanted);
            }
        }
        let configuration = (!is_there).then_some(configuration);
        // A binding to a role that is not there yet cannot be tried; whether it may be made was asked above.
        for wanted in account.iter().filter(|wanted| wanted.key.kind.resource() != "clusterrolebindings") {
            let tried = cluster.call(wanted.apply(true)).await;
            tried.map_err(|fault| {
                before_writing(&format!("the mailbox would not take {}", wanted.title), &fault)
            })?;
        }
        if let Some(wanted) = &configuration {
            let tried = cluster.call(wanted.create(true)).await;
            tried.map_err(|fault| {
                before_writing(&format!("the mailbox would not take {}", wanted.title), &fault)
            })?;
        }
        let known = if rotate { None } else { known_token(cluster, registration).await? };
        Ok(Self { account, configuration, known })
    }

    /// The token that was given before, or a new one, which is then remembered.
    async fn token(
        self,
        cluster: &Cluster,
        registration: &Registration,
        lifetime: Lifetime,
    ) -> Result<Token> {
        if let Some(token) = self.known {
            say!("  token: in place, until {}", token.expires_at);
            return Ok(token);
        }
        let reply = cluster.call(registration.token_request(lifetime)).await;
        let reply = reply.map_err(|fault| half_done("a token", &fault))?;
        let token =
            token::granted(&reply.body).map_err(|bad| anyhow!("the center's answer is of no use: {bad}"))?;
        let secret = registration.token_secret(&token);
        cluster.call(secret.apply(false)).await.map_err(|fault| half_done(&secret.title, &fault))?;
        say!("  token: made, until {}", token.expires_at);
        Ok(token)
    }
}

/// What went wrong after the first write: nothing is undone, because running it again goes on from there.
fn half_done(title: &str, fault: &mailboat_object::wire::Fault) -> anyhow::Error {
    anyhow!("{title} cannot be made: {fault}; run the same command again to go on from here")
}

/// The token in the mailbox's Secret, if it is one of the account that is there now.
async fn known_token(cluster: &Cluster, registration: &Registration) -> Result<Option<Token>> {
    let unread = |fault| before_writing("what was registered before cannot be read", &fault);
    let account: Option<Value> = get(cluster, registration.account_key()).await.map_err(unread)?;
    let secret: Option<Value> = get(cluster, registration.token_secret_key()).await.map_err(unread)?;
    let (Some(account), Some(secret)) = (account, secret) else { return Ok(None) };
    let Some(token) = Registration::remembered(&secret, &account) else { return Ok(None) };
    if token.has_expired(Timestamp::now()) {
        return Err(refusal(format!(
            "the token that was made for {} ended at {}; add --rotate to make a new one (a syncer that renewed its own \
             meanwhile takes that one up too)",
            registration.id, token.expires_at
        )));
    }
    Ok(Some(token))
}

/// What a mailbox's syncer writes there.
struct Kinds {
    /// The kinds whose status it returns.
    returned: BTreeSet<KindId>,
    /// Those that the mailbox's configurations bring up.
    upsynced: BTreeSet<KindId>,
}

impl Kinds {
    async fn of(cluster: &Cluster) -> Result<Self> {
        let unread = |fault| before_writing("the mailbox's configurations cannot be read", &fault);
        let catalog = cluster.catalog().await.map_err(unread)?;
        let served = catalog.iter().map(|served| ServedKind {
            kind: served.kind.clone(),
            kind_name: served.kind_name.to_string(),
            status: served.status,
        });
        let served: Vec<ServedKind> = served.collect();
        let syncer_configs: Vec<SyncerConfigSpec> = specs(cluster, "syncerconfigs").await?;
        let edge_sync_configs: Vec<EdgeSyncConfigSpec> = specs(cluster, "edgesyncconfigs").await?;
        Ok(Self {
            returned: rights::returned_kinds(&served),
            upsynced: rights::upsynced_kinds(&syncer_configs, &edge_sync_configs, &served),
        })
    }
}

async fn specs<T: DeserializeOwned>(cluster: &Cluster, resource: &str) -> Result<Vec<T>> {
    let kind = KindId::new(group::EDGE, resource);
    let objects = list(cluster, &kind, "").await;
    let objects = objects.map_err(|fault| before_writing(&format!("{kind} cannot be listed"), &fault))?;
    // One that is not understood is the syncer's to report; it gives no rights meanwhile.
    Ok(objects
        .into_iter()
        .filter_map(|mut object| serde_json::from_value(object["spec"].take()).ok())
        .collect())
}

fn edge_options(arguments: &SyncerGenArguments) -> Result<EdgeOptions> {
    if arguments.syncer_image.trim().is_empty() {
        return Err(refusal("--syncer-image is empty; name the image that the syncer runs from"));
    }
    let access = match &arguments.options.edge_access {
        EdgeAccessArgument::All => EdgeAccess::All,
        EdgeAccessArgument::Namespaces(names) => EdgeAccess::Namespaces(names.clone()),
        EdgeAccessArgument::RulesFile(path) => {
            let unusable =
                |why: String| refusal(format!("the rules in {} cannot be used: {why}", path.display()));
            let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
            EdgeAccess::Rules(rights::read_rules(&text).map_err(|bad| unusable(bad.to_string()))?)
        }
    };
    let options = EdgeOptions {
        image: arguments.syncer_image.clone(),
        namespace: arguments.options.namespace.clone(),
        replicas: arguments.options.replicas,
        qps: arguments.options.qps,
        burst: arguments.options.burst,
        port: arguments.options.port,
        labels: arguments.options.labels(),
        access,
    };
    options.check().map_err(|bad| refusal(bad.to_string()))?;
    if let Some(server) = &arguments.options.server {
        server_url(server).map_err(refusal)?;
    }
    Ok(options)
}

fn center_address(reached: &Reached, arguments: &SyncerGenArguments) -> CenterAddress {
    let address = &reached.address;
    CenterAddress {
        url: arguments.options.server.clone().unwrap_or_else(|| address.url.clone()),
        certificate_authority_pem: address.certificate_authority_pem.clone(),
        tls_server_name: address.tls_server_name.clone(),
        insecure: address.insecure,
    }
}

fn say_what_is_next(manifest: &Manifest, arguments: &SyncerGenArguments) {
    if manifest.center.insecure {
        say!(
            "note: the center's certificate is not checked, as in your kubeconfig; the edge will not check it either"
        );
    }
    say!("note: {}", manifest.options.access.sentence());
    if arguments.output_file.as_os_str() == "-" {
        return;
    }
    let (file, namespace) = (arguments.output_file.display(), manifest.namespace());
    say!("the manifest is in {file}; at the edge cluster:");
    say!("  kubectl apply -f {file}");
    say!("  kubectl -n {namespace} get deployment {}", manifest.registration.id);
}
