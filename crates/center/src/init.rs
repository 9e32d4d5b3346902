//! Setting up a provider workspace: asks what is there, and writes what is missing of it.

use std::fmt;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use mailboat_api::kcp::Workspace;
use mailboat_cluster::{Connection, Transport};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::setup::{Missing, Offer, Piece, pieces};

/// The field manager of what is set up.
const MANAGER: &str = "mailboat-init";
/// How long a server may need until it takes something that it does not take yet: a new workspace is not usable at
/// once, and neither are rights that were just given.
const PATIENCE: Duration = Duration::from_mins(2);
/// How many objects of one kind are written at once.
const AT_ONCE: usize = 16;
/// The pause before it is asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// What was done about one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// It was made.
    Made,
    /// It was written anew.
    Changed,
    /// It was as it should be.
    Kept,
}

/// Why a provider workspace could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The path does not name a workspace below another.
    #[error("{path:?} is no path of a workspace below another, such as root:espw")]
    Path {
        /// The path.
        path: String,
    },
    /// The APIs that we offer could not be generated, which is a mistake of ours.
    #[error("the APIs to offer cannot be made: {0}")]
    Offer(#[from] mailboat_api::generate::GenerateError),
    /// No random numbers.
    #[error("no random numbers are to be had: {0}")]
    Random(#[from] std::io::Error),
    /// The provider workspace cannot be used.
    #[error("the workspace {path} {what}: {fault}")]
    Workspace {
        /// The workspace.
        path: String,
        /// What about it.
        what: &'static str,
        /// What its server said.
        fault: Fault,
    },
    /// An identity is lost.
    #[error(
        "the Secret {secret} is missing, by which the objects of APIExport {export} are found; restore it from a backup, \
         since with another one every workspace would look empty"
    )]
    IdentityLost {
        /// The export.
        export: String,
        /// The Secret, as namespace and name.
        secret: String,
    },
    /// An object could not be read or written.
    #[error("{what} in {path} cannot be {done}: {fault}")]
    Object {
        /// Its kind and name.
        what: String,
        /// The workspace.
        path: String,
        /// Read or written.
        done: &'static str,
        /// What its server said.
        fault: Fault,
    },
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Made => "made",
            Self::Changed => "changed",
            Self::Kept => "unchanged",
        })
    }
}

/// Sets up the provider workspace at a path, and makes it if it is not there. `tell` hears of every object.
pub async fn init(
    connection: &Connection,
    path: &str,
    offer: &Offer,
    mut tell: impl FnMut(&Piece, Done),
) -> Result<(), InitError> {
    let Some((parent, name)) =
        path.rsplit_once(':').filter(|(parent, name)| !parent.is_empty() && !name.is_empty())
    else {
        return Err(InitError::Path { path: path.to_owned() });
    };
    ensure_workspace(connection, parent, name, path).await?;
    let provider = &connection.at(&format!("/clusters/{path}"));
    let keys: Vec<String> = (0..offer.exports.len()).map(|_| random_key()).collect::<Result<_, _>>()?;
    let mut keys = keys.into_iter();
    let pieces = pieces(path, offer, || keys.next().unwrap_or_default());
    check_identities(provider, path, offer).await?;
    // What is of one kind does not need each other; what comes after may need all of it.
    for alike in pieces.chunk_by(|one, next| one.kind == next.kind) {
        let mut done = stream::iter(alike)
            .map(|piece| async move { (piece, ensure(provider, path, piece).await) })
            .buffered(AT_ONCE);
        while let Some((piece, done)) = done.next().await {
            tell(piece, done?);
        }
    }
    Ok(())
}

/// An export that is there must have its identity: a new one in its place would hide every object.
async fn check_identities(provider: &dyn Transport, path: &str, offer: &Offer) -> Result<(), InitError> {
    for name in offer.exports.keys() {
        let export = key("apis.kcp.io", "apiexports", "", name);
        let Some(found) = read(provider, path, &export).await? else { continue };
        let reference = |member: &str| {
            let text = found["spec"]["identity"]["secretRef"][member].as_str();
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        // An export that says nothing of its identity was made by others, and kcp keeps its key where it likes to.
        let Some((namespace, secret)) = reference("namespace").zip(reference("name")) else { continue };
        if read(provider, path, &key("", "secrets", &namespace, &secret)).await?.is_none() {
            let secret = format!("{namespace}/{secret}");
            return Err(InitError::IdentityLost { export: (*name).to_owned(), secret });
        }
    }
    Ok(())
}

async fn ensure_workspace(
    connection: &Connection,
    parent: &str,
    name: &str,
    path: &str,
) -> Result<(), InitError> {
    let here = key("core.kcp.io", "logicalclusters", "", mailboat_api::names::object::LOGICAL_CLUSTER);
    // One that may be entered is there.
    if get(&connection.at(&format!("/clusters/{path}")), &here).await.is_ok() {
        return Ok(());
    }
    let above = connection.at(&format!("/clusters/{parent}"));
    let workspace = key("tenancy.kcp.io", "workspaces", "", name);
    let refused = |what: &'static str| {
        let path = path.to_owned();
        move |fault: Fault| InitError::Workspace { path, what, fault }
    };
    if get(&above, &workspace).await.map_err(refused("is not there, or its parent cannot be read"))?.is_none()
    {
        let object = json!({
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "Workspace",
            "metadata": { "name": name },
            "spec": { "type": { "name": "universal", "path": "root" } },
        });
        create(&above, &workspace, &object).await.map_err(refused("cannot be made"))?;
    }
    patiently(|| async {
        let found = get(&above, &workspace).await?;
        let found: Option<Workspace> = found.and_then(|found| serde_json::from_value(found).ok());
        match found.map(|workspace| workspace.status.phase) {
            // Whoever just made it may enter it in a moment. What was answered before it was there is not asked again
            // for a while, so it is entered anew.
            Some(phase) if phase == "Ready" => {
                let entered = get(&connection.at(&format!("/clusters/{path}")), &here).await;
                entered.map(drop).map_err(|fault| match fault.kind {
                    FaultKind::Forbidden => Fault::new(FaultKind::Retry(None), fault.text),
                    _ => fault,
                })
            }
            phase => Err(Fault::new(
                FaultKind::Retry(None),
                format!("its phase is {:?}", phase.unwrap_or_default()),
            )),
        }
    })
    .await
    .map_err(refused("does not become ready"))
}

async fn ensure(provider: &dyn Transport, path: &str, piece: &Piece) -> Result<Done, InitError> {
    let key = piece.key(&ClusterId::default());
    let found = read(provider, path, &key).await?;
    let written =
        |fault| InitError::Object { what: what(&key), path: path.to_owned(), done: "written", fault };
    match piece.missing_from(found.as_ref()) {
        None => Ok(Done::Kept),
        Some(Missing::All) => {
            patiently(|| create(provider, &key, &piece.object)).await.map_err(written)?;
            Ok(Done::Made)
        }
        Some(Missing::Written(object)) => {
            patiently(|| async {
                let verb = Verb::Apply { body: bytes(&object), manager: Name::new(MANAGER), force: true };
                let call = Call { key: key.clone(), verb, part: Part::Whole, dry_run: false };
                provider.call(call).await.map(drop)
            })
            .await
            .map_err(written)?;
            Ok(Done::Changed)
        }
    }
}

async fn read(provider: &dyn Transport, path: &str, key: &Key) -> Result<Option<Value>, InitError> {
    let fault = |fault| InitError::Object { what: what(key), path: path.to_owned(), done: "read", fault };
    patiently(|| get(provider, key)).await.map_err(fault)
}

async fn get(place: &dyn Transport, key: &Key) -> Result<Option<Value>, Fault> {
    let call = Call { key: key.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
    match place.call(call).await {
        Ok(reply) => serde_json::from_slice(&reply.body)
            .map(Some)
            .map_err(|_| Fault::new(FaultKind::Invalid, "its answer is not understood")),
        Err(fault) if fault.kind == FaultKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Makes an object. One that was made meanwhile is as good.
async fn create(place: &dyn Transport, key: &Key, object: &Value) -> Result<(), Fault> {
    // By apply, so that a later change of what is wanted also takes away what is not wanted any more.
    let verb = Verb::Apply { body: bytes(object), manager: Name::new(MANAGER), force: false };
    let call = Call { key: key.clone(), verb, part: Part::Whole, dry_run: false };
    match place.call(call).await {
        Err(fault) if fault.kind != FaultKind::Exists => Err(fault),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Tries until it succeeds, as long as what fails may pass by itself.
async fn patiently<T, F: Future<Output = Result<T, Fault>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, Fault> {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt().await {
            Err(fault) if fault.passes() && Instant::now() < end => sleep(PAUSE).await,
            result => return result,
        }
    }
}

fn key(group: &str, resource: &str, namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::default(),
        kind: KindId::new(group, resource),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}

fn what(key: &Key) -> String {
    format!("{} {}", key.kind, key.name)
}

fn bytes(object: &Value) -> std::sync::Arc<[u8]> {
    std::sync::Arc::from(object.to_string().into_bytes())
}

/// 256 random bits, as text.
fn random_key() -> Result<String, std::io::Error> {
    use std::fmt::Write as _;
    use std::io::Read as _;
    let mut bits = [0_u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bits)?;
    Ok(bits.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
