//! The life of one Pod: its volumes, its containers, its status, and its end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Container, Pod, ServiceAccount};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::container::{Life, Outcome, RestartPolicy, Stop};
use super::sandbox::ownership;
use super::status::{self, Board, Standing, State, Transitions};
use super::volumes::{self, Content, Ownership, TokenWish, Tokens, token_wishes};
use super::{Blocked, Shared};
use crate::error::{Doing, Result};

/// What a server refused or did not hear is said again after this long.
const RETRY_PERIOD: Duration = Duration::from_millis(500);
/// A token is replaced when four fifths of its life are over, and after a day at the latest.
const TOKEN_LIFE_SHARE: f64 = 0.8;
const TOKEN_LIFE_LIMIT: Duration = Duration::from_hours(24);

/// A Pod as its own task sees it: the latest version, and `None` once it is gone.
pub(super) type Latest = watch::Receiver<Option<Arc<Pod>>>;

/// Plays one Pod until it is gone.
pub(super) async fn play(
    shared: Arc<Shared>,
    latest: Latest,
    board: Arc<watch::Sender<Board>>,
    folder: PathBuf,
) {
    let Some(pod) = latest.borrow().clone() else { return };
    let (volumes_ready, when_ready) = watch::channel(false);
    let (stop, when_stopped) = watch::channel::<Stop>(None);
    let (done, when_done) = watch::channel(false);
    let crew = Crew { shared: &shared, pod: &pod, folder: &folder, board: &board, stop: when_stopped };
    let desk = Desk {
        shared: &shared,
        first: &pod,
        latest,
        board: &board,
        volumes: Volumes::new(&shared, folder.join("volumes")),
        reporter: Reporter::new(&shared, &pod),
        volumes_ready,
        stop,
        when_done,
    };
    // Side by side: a server that does not answer must not keep containers from being looked after.
    tokio::select! {
        () = desk.sit() => {}
        () = async {
            crew.work(when_ready).await;
            done.send_replace(true);
            std::future::pending::<()>().await;
        } => {}
    }
}

/// All that a Pod's player has to do with the API.
struct Desk<'a> {
    shared: &'a Shared,
    first: &'a Arc<Pod>,
    latest: Latest,
    board: &'a watch::Sender<Board>,
    volumes: Volumes<'a>,
    reporter: Reporter,
    volumes_ready: watch::Sender<bool>,
    stop: watch::Sender<Stop>,
    when_done: watch::Receiver<bool>,
}

impl Desk<'_> {
    /// Sits until the Pod is gone.
    async fn sit(mut self) {
        let mut standings = self.board.subscribe();
        let mut changes = self.shared.changes();
        loop {
            let pod = self.latest.borrow_and_update().clone();
            let current = pod.as_ref().unwrap_or(self.first);
            let stop = grace(pod.as_deref());
            self.stop.send_if_modified(|told| std::mem::replace(told, stop) != stop);
            let done = *self.when_done.borrow_and_update();
            if !done {
                self.refresh_volumes(current).await;
            }
            let board = standings.borrow_and_update().clone();
            let in_sync = pod.is_none() || self.reporter.report(current, &board).await;
            let to_be_deleted = done && stop.is_some();
            if to_be_deleted && (pod.is_none() || delete(self.shared, current).await.is_ok()) {
                return;
            }
            let again = !in_sync || to_be_deleted || (!done && self.volumes.incomplete);
            let closed = tokio::select! {
                changed = self.latest.changed() => changed.is_err(),
                changed = changes.changed() => changed.is_err(),
                changed = standings.changed() => changed.is_err(),
                changed = self.when_done.changed() => changed.is_err(),
                () = sleep_until(self.volumes.next_refresh()), if !done => false,
                () = sleep(RETRY_PERIOD), if again => false,
            };
            if closed {
                return;
            }
        }
    }

    async fn refresh_volumes(&mut self, pod: &Pod) {
        match self.volumes.refresh(pod).await {
            Ok(()) => {
                self.volumes_ready.send_replace(true);
            }
            Err(blocked) if !*self.volumes_ready.borrow() => wait_for_volumes(self.board, pod, &blocked),
            // A Secret that vanished leaves the files of running containers as they are.
            Err(_) => {}
        }
    }
}

/// All containers of a Pod.
struct Crew<'a> {
    shared: &'a Shared,
    pod: &'a Arc<Pod>,
    folder: &'a Path,
    board: &'a watch::Sender<Board>,
    stop: watch::Receiver<Stop>,
}

impl Crew<'_> {
    /// Runs the init containers one after the other, then the others side by side, until all are done.
    async fn work(self, mut volumes_ready: watch::Receiver<bool>) {
        let mut stop = self.stop.clone();
        tokio::select! {
            ready = volumes_ready.wait_for(|ready| *ready) => if ready.is_err() { return },
            _ = stop.wait_for(Option::is_some) => return,
        }
        let Some(spec) = &self.pod.spec else { return };
        let policy = match spec.restart_policy.as_deref() {
            Some("Never") => RestartPolicy::Never,
            Some("OnFailure") => RestartPolicy::OnFailure,
            _ => RestartPolicy::Always,
        };
        let init_policy = if policy == RestartPolicy::Never { policy } else { RestartPolicy::OnFailure };
        for container in spec.init_containers.iter().flatten() {
            if self.life(container, init_policy).live().await != Outcome::Succeeded {
                return;
            }
        }
        join_all(spec.containers.iter().map(|container| self.life(container, policy).live())).await;
    }

    fn life<'a>(&'a self, container: &'a Container, restart_policy: RestartPolicy) -> Life<'a> {
        Life {
            shared: self.shared,
            pod: self.pod,
            container,
            restart_policy,
            folder: self.folder.join("containers").join(&container.name),
            volumes: self.folder.join("volumes"),
            board: self.board,
            stop: self.stop.clone(),
        }
    }
}

/// The Pod's volumes as they stand on this machine.
struct Volumes<'a> {
    shared: &'a Shared,
    folder: PathBuf,
    written: BTreeMap<String, Content>,
    tokens: Tokens,
    tokens_until: Option<Instant>,
    rotation: u64,
    writes: u64,
    incomplete: bool,
}

impl<'a> Volumes<'a> {
    fn new(shared: &'a Shared, folder: PathBuf) -> Self {
        Self {
            shared,
            folder,
            written: BTreeMap::new(),
            tokens: Tokens::new(),
            tokens_until: None,
            rotation: shared.rotation(),
            writes: 0,
            incomplete: true,
        }
    }

    fn next_refresh(&self) -> Instant {
        self.tokens_until.unwrap_or_else(|| Instant::now() + TOKEN_LIFE_LIMIT)
    }

    /// Brings every volume up to date that can be.
    async fn refresh(&mut self, pod: &Pod) -> Result<(), Blocked> {
        self.incomplete = true;
        self.refresh_tokens(pod).await?;
        let known = self.shared.known();
        let ownership = ownership(pod)?;
        for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
            let content = volumes::content(pod, volume, &known, &self.tokens, ownership)?;
            if self.written.get(&volume.name) != Some(&content) {
                self.write(&volume.name, &content, ownership)
                    .map_err(|error| Blocked::creating(error.to_string()))?;
                self.written.insert(volume.name.clone(), content);
            }
        }
        self.incomplete = false;
        Ok(())
    }

    fn write(&mut self, name: &str, content: &Content, ownership: Ownership) -> Result<()> {
        fs::create_dir_all(&self.folder).doing("creating", &self.folder)?;
        let folder = self.folder.join(name);
        self.writes += 1;
        match content {
            Content::Empty => volumes::make_empty(&folder, ownership),
            Content::Files(files) => volumes::write_files(&folder, files, ownership, self.writes),
        }
    }

    async fn refresh_tokens(&mut self, pod: &Pod) -> Result<(), Blocked> {
        let wishes = token_wishes(pod);
        let rotation = self.shared.rotation();
        let is_fresh =
            self.tokens_until.is_none_or(|until| Instant::now() < until) && self.rotation == rotation;
        if is_fresh && wishes.iter().all(|wish| self.tokens.contains_key(wish)) {
            return Ok(());
        }
        let mut tokens_until = Instant::now() + TOKEN_LIFE_LIMIT;
        for wish in wishes {
            let (token, life) =
                self.issue(pod, &wish).await.map_err(|error| Blocked::creating(error.to_string()))?;
            tokens_until = tokens_until.min(Instant::now() + life.mul_f64(TOKEN_LIFE_SHARE));
            self.tokens.insert(wish, token);
        }
        (self.tokens_until, self.rotation) = (Some(tokens_until), rotation);
        Ok(())
    }

    async fn issue(&self, pod: &Pod, wish: &TokenWish) -> kube::Result<(String, Duration)> {
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
        let namespace = pod.namespace().unwrap_or_default();
        let accounts: Api<ServiceAccount> = Api::namespaced(self.shared.client.clone(), &namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: wish.audience.clone().map(|audience| vec![audience]),
                expiration_seconds: Some(wish.expiration_seconds),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
            }),
            ..TokenRequest::default()
        };
        let account = account.as_deref().unwrap_or("default");
        let answer = accounts.create_token_request(account, &PostParams::default(), &request).await?;
        let status = answer.status.unwrap_or_default();
        let end = status.expiration_timestamp.map_or(0, |end| end.0.as_second());
        let seconds = u64::try_from(end - Timestamp::now().as_second()).unwrap_or(0);
        Ok((status.token.unwrap_or_default(), Duration::from_secs(seconds)))
    }
}

/// Says how the Pod stands, whenever that has changed.
struct Reporter {
    pods: Api<Pod>,
    name: String,
    start_time: Timestamp,
    transitions: Transitions,
    said: Option<Value>,
}

impl Reporter {
    fn new(shared: &Shared, pod: &Pod) -> Self {
        Self {
            pods: Api::namespaced(shared.client.clone(), &pod.namespace().unwrap_or_default()),
            name: pod.name_any(),
            start_time: Timestamp::now(),
            transitions: Transitions::new(),
            said: None,
        }
    }

    /// Whether the server knows how the Pod stands.
    async fn report(&mut self, pod: &Pod, board: &Board) -> bool {
        let patch = status::patch(pod, board, self.start_time, &mut self.transitions);
        if self.said.as_ref() == Some(&patch) {
            return true;
        }
        let said =
            self.pods.patch_status(&self.name, &PatchParams::default(), &Patch::Strategic(&patch)).await;
        if said.is_ok() {
            self.said = Some(patch);
            return true;
        }
        false
    }
}

fn wait_for_volumes(board: &watch::Sender<Board>, pod: &Pod, blocked: &Blocked) {
    let containers =
        pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    board.send_if_modified(|board| {
        let mut changed = false;
        for container in containers {
            let standing = board.entry(container.name.clone()).or_default();
            let is_said = matches!(&standing.state, State::Waiting(said) if said == blocked);
            if !is_said {
                *standing = Standing { state: State::Waiting(blocked.clone()), ..Standing::default() };
                changed = true;
            }
        }
        changed
    });
}

/// How long the containers may take to end, if they are to.
fn grace(pod: Option<&Pod>) -> Stop {
    let Some(pod) = pod else { return Some(Duration::ZERO) };
    pod.metadata.deletion_timestamp.as_ref()?;
    let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

async fn delete(shared: &Shared, pod: &Pod) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(shared.client.clone(), &pod.namespace().unwrap_or_default());
    let preconditions = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
    let params =
        DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default().grace_period(0) };
    match pods.delete(&pod.name_any(), &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}
