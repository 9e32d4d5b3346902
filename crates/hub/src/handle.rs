//! From a request to an answer: one way for all kinds.

mod about;
mod act;
mod admit;
mod certificate;
mod components;
mod connect;
mod ending;
mod held;
mod read;
mod review;
#[cfg(test)]
mod tests;
mod watch;
mod write;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use mailboat_machinery::{Kind, KindVersion, Origin, Status};
use mailboat_object::{ClusterId, Key, KindId, Name};

use crate::access::User;
use crate::access::user::ANONYMOUS;
use crate::answer::{self, Answer};
use crate::flow::{Asker, Limits, Pass, Work};
use crate::hub::Serving;
use crate::media::{Accepted, Form, Offer, Types, check_named};
use crate::path::{Asked, ObjectPath};
use crate::place::{self, Place};
use crate::query::Query;
use crate::{Hub, compress, protobuf, shape};

/// What real servers tell everybody who asks for Endpoints.
const ENDPOINTS_DEPRECATED: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
/// What they tell everybody who asks how their parts are.
const COMPONENTS_DEPRECATED: &str = "v1 ComponentStatus is deprecated in v1.19+";

/// So much memory all schemas in one document take while they are made: nobody may have many of them at once.
const SCHEMAS_BYTES: usize = 16 << 20;

/// One request for objects, understood as far as its kind.
struct Call<'r> {
    hub: &'r Arc<Hub>,
    place: Place,
    /// The cluster; one that nobody has where all are meant.
    cluster: ClusterId,
    path: ObjectPath,
    kind: Arc<Kind>,
    version: KindVersion,
    query: Query,
    accepted: Accepted,
    headers: &'r HeaderMap,
    user: User,
    /// Who asks, whomever he acts as.
    asker: Asker,
    /// What is done, as rights name it.
    verb: &'static str,
}

/// Answers one request.
pub(crate) async fn handle<B>(hub: Arc<Hub>, certified: Option<&User>, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let reads_gzip = compress::reads_gzip(request.headers());
    let [form, form_in_view] = [false, true].map(|in_view| Form::of_refusal(request.headers(), in_view));
    let mut course = Course::default();
    let within = hub.limits.request_within;
    let answered = tokio::time::timeout(within, answer(&hub, certified, request, &mut course)).await;
    let form = if course.is_in_view { form_in_view } else { form };
    let mut answer = match answered.unwrap_or_else(|_| Err(too_late(within))) {
        Ok(answer) if reads_gzip => compress::compress(answer).await,
        Ok(answer) => answer,
        // Real servers have no route to what they do not serve, and say so in words.
        Err(status) if status == Status::unserved() => {
            answer::as_it_is(answer::text(StatusCode::NOT_FOUND, "404 page not found\n"))
        }
        // Whoever is not let in may have asked in a browser.
        Err(status) if !course.is_past_gate && matches!(status.code(), 400 | 403) => {
            answer::as_it_is(answer::refusal(&status, form))
        }
        Err(status) => answer::refusal(&status, form),
    };
    answer.headers_mut().entry(CACHE_CONTROL).or_insert(answer::NOT_KEPT);
    if course.is_known {
        answer.extensions_mut().insert(Known);
    }
    match course.turn {
        Some(turn) => held::until_read(answer, turn, hub.limits.answer_within).await,
        None => answer,
    }
}

/// Stands with an answer to somebody who proved who he is.
#[derive(Clone, Copy)]
pub(crate) struct Known;

/// How far a request came.
#[derive(Default)]
struct Course {
    /// The turn of what is answered soon.
    turn: Option<Pass>,
    /// Whoever asks proved who he is.
    is_known: bool,
    /// He looks at workspaces through something else.
    is_in_view: bool,
    /// He may do what he asks for.
    is_past_gate: bool,
}

/// What is said to whoever may not be in a place: as much as if he were there and had no right to what he asks for.
fn no_entry(status: Status, user: &User, method: &Method, uri: &http::Uri) -> Status {
    let (_, rest) = shape::place(uri.path());
    let (Some(Asked::Objects(path)), Ok(query)) = (Asked::read(rest), Query::read(uri.query())) else {
        return status;
    };
    match verb(method, &path, &query) {
        Some(verb) if status == place::denied(user) => place::not_granted(user, verb, &path),
        _ => status,
    }
}

/// Answers one request.
async fn answer<B>(
    hub: &Arc<Hub>,
    certified: Option<&User>,
    request: Request<B>,
    course: &mut Course,
) -> Result<Answer, Status>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    if let Some(recorder) = &hub.recorder {
        let (method, uri) = (head.method.as_str(), &head.uri);
        for shape in shape::of_request(method, uri.path(), uri.query(), &head.headers) {
            recorder.note(shape);
        }
    }
    let user = hub.peek(|machine| hub.gate().user(machine, &head.headers, certified))?;
    course.is_known = user.name != ANONYMOUS;
    // Turns go to whoever asks, whomever he acts as.
    let asker = hub.asker(&user);
    let (place, rest) = Place::read(hub, &user, head.uri.path())
        .map_err(|status| no_entry(status, &user, &head.method, &head.uri))?;
    course.is_in_view = place.view.is_some();
    let cluster = place.cluster.clone().unwrap_or_default();
    // Whoever prepares a workspace does it in its owner's name, and in nobody else's.
    let acting = match place.owner {
        Some(_) => None,
        None => hub.gate().acting(&cluster, &user, &head.headers)?,
    };
    let user = match place.owner.clone().or(acting) {
        Some(acting) => {
            place
                .check_entry(hub, &acting)
                .map_err(|status| no_entry(status, &acting, &head.method, &head.uri))?;
            acting
        }
        None => user,
    };
    let Some(asked) = Asked::read(rest) else {
        hub.gate().check_path(&cluster, &user, &head.method, rest)?;
        let core = rest.trim_start_matches('/').starts_with("api/");
        return Err(if core { unserved(hub, &place, "") } else { Status::unserved() });
    };
    let query = Query::read(head.uri.query())?;
    let Asked::Objects(path) = asked else {
        if place.view.is_none() {
            hub.gate().check_path(&cluster, &user, &head.method, rest)?;
        }
        course.is_past_gate = true;
        let is_read = head.method == Method::GET || head.method == Method::HEAD;
        if !is_read && !matches!(asked, Asked::Health { .. }) {
            return Err(not_allowed());
        }
        // How it is must be told when there is no room for anything else.
        course.turn = match asked {
            Asked::Health { .. } => None,
            _ => Some(hub.turn(&asker, Work::Request).await?),
        };
        if asked != Asked::OpenApiV2 {
            return about::about(hub, &place, &asked, &query, &head.headers);
        }
        let room = hub.turn(&asker, Work::List(SCHEMAS_BYTES)).await?;
        let mut answer = about::about(hub, &place, &asked, &query, &head.headers)?;
        answer.extensions_mut().insert(Arc::new(room));
        return Ok(answer);
    };
    let verb = verb(&head.method, &path, &query).ok_or_else(not_allowed)?;
    if place.view.is_none() {
        // Whoever selects one object by its name asks for that one, unless the path names another.
        let selects = path.name.is_empty() && matches!(verb, "list" | "watch");
        let selected = query.selected_name().filter(|_| selects);
        let asked = ObjectPath { name: selected.unwrap_or_else(|| path.name.clone()), ..path.clone() };
        hub.gate().check_object(&cluster, &user, verb, &asked)?;
    }
    hub.peek(|machine| place.check_granted(hub, machine, &user, verb, &path))?;
    course.is_past_gate = true;
    let mut watching = None;
    // A body that comes slowly has nobody wait: the turn is taken when it is there, and it counts for itself until it is done
    // with.
    let (body, _room) = match verb {
        "get" | "list" | "watch" => (Bytes::new(), None),
        _ => sent(hub, &asker, body).await?,
    };
    match verb {
        "watch" => {
            let lasting = hub.watch_turn(&asker).await?;
            // A watch that begins with a list is a list, until that is read.
            let beginning =
                if query.begins_with_a_list() { Some(hub.turn(&asker, Work::Request).await?) } else { None };
            watching = Some((lasting, beginning));
        }
        _ => course.turn = Some(hub.turn(&asker, Work::Request).await?),
    }
    if review::is_question(&path) || (verb == "create" && review::is_token_request(&path)) {
        if verb != "create" {
            return Err(not_allowed());
        }
        // Nobody's rights were asked for in a view, so that nobody is told there who others are, and nobody becomes one of
        // those who are bound.
        if place.view.is_some() {
            return Err(Status::unserved());
        }
        check_named(&head.headers, false)?;
        let form = Accepted::of(&head.headers, Offer::Plain { in_view: false })?.form;
        let body = review::body(&body, &head.headers)?;
        if review::is_token_request(&path) {
            let issued = review::token(hub, &cluster, &path, body, &manager(&query, &head.headers))?;
            return Ok(answer::object(StatusCode::CREATED, &issued, form));
        }
        let answered = review::answer(hub, &cluster, &user, &path, body, &manager(&query, &head.headers))?;
        return Ok(answer::object(StatusCode::CREATED, &answered, form));
    }
    let is_cluster = matches!(hub.serving(), Serving::Cluster(_));
    if is_cluster && components::is_asked(&path) {
        if !matches!(verb, "get" | "list" | "watch") {
            return Err(not_allowed());
        }
        check_named(&head.headers, verb == "list")?;
        let accepted = Accepted::of(&head.headers, Offer::Objects { types: Types::All, is_watch: false })?;
        let answered = components::answer(&path, verb, accepted);
        let form = Form::of_refusal(&head.headers, false);
        let mut answer = answered.unwrap_or_else(|status| answer::refusal(&status, form));
        answer::warn(&mut answer, [COMPONENTS_DEPRECATED.to_owned()]);
        return Ok(answer);
    }
    let path = if is_cluster && act::is_bare_binding(&path) {
        if verb != "create" {
            return Err(not_allowed());
        }
        // As if it were sent to the Pod that it names.
        act::of_binding(&path, &body, &head.headers)?
    } else {
        path
    };
    let id = KindId::new(&path.group, &path.resource);
    let missing = || unserved(hub, &place, &path.group);
    let kind = hub.peek(|machine| place.kind(hub, machine, &id)).ok_or_else(missing)?;
    let version = kind.version(&path.version).filter(|_| !path.version.is_empty()).cloned();
    let version = version.ok_or_else(missing)?;
    if !kind.namespaced && !path.namespace.is_empty() {
        return Err(missing());
    }
    if place.cluster.is_none() && !matches!(verb, "list" | "watch") {
        return Err(not_allowed());
    }
    let is_own = kind.origin == Origin::Native && place.view.is_none();
    if is_own && !connect::is_connection(&path) && path.subresource != "log" {
        check_named(&head.headers, matches!(verb, "list" | "watch"))?;
    }
    let types = match &place.view {
        Some(_) => Types::None,
        None if is_own && protobuf::is_known(&version.api_version, &kind.name) => Types::All,
        None => Types::Metadata,
    };
    let accepted = Accepted::of(&head.headers, Offer::Objects { types, is_watch: verb == "watch" })?;
    let call = Call {
        hub,
        place,
        cluster,
        path,
        kind,
        version,
        query,
        accepted,
        headers: &head.headers,
        user,
        asker,
        verb,
    };
    // A watch has its turn as long as it lasts.
    if let Some((lasting, beginning)) = watching {
        return call.watch(lasting, beginning);
    }
    let answer = match verb {
        _ if connect::is_connection(&call.path) => call.connect().await,
        "get" => call.get().await,
        "list" => call.list().await,
        "create" if act::is_act(&call.path) => call.act(&body).await,
        "create" => call.create(&body).await,
        "update" => call.update(&body).await,
        "patch" => call.patch(&body).await,
        "delete" => call.delete(&body).await,
        "deletecollection" => call.delete_collection(&body).await,
        _ => Err(not_allowed()),
    };
    let mut answer = answer.map_err(|status| status.renamed(call.kept(), &call.kind.id))?;
    if call.kind.id == KindId::new("", "endpoints") {
        answer::warn(&mut answer, [ENDPOINTS_DEPRECATED.to_owned()]);
    }
    Ok(answer)
}

/// What a method does to objects, as rights name it. None: it does nothing there.
fn verb(method: &Method, path: &ObjectPath, query: &Query) -> Option<&'static str> {
    let named = !path.name.is_empty();
    Some(match (method, named) {
        (&Method::GET, _) if path.watched => "watch",
        (&Method::GET, true) => "get",
        (&Method::GET, false) if query.is("watch") => "watch",
        (&Method::GET, false) => "list",
        (&Method::POST, false) => "create",
        (&Method::POST, true)
            if review::is_token_request(path) || act::is_act(path) || connect::is_connection(path) =>
        {
            "create"
        }
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => return None,
    })
}

/// 404: there is no such kind. A group that the server knows by itself says so in JSON, others have nobody who could.
fn unserved(hub: &Hub, place: &Place, group: &str) -> Status {
    let native = |kind: &Arc<Kind>| kind.id.group() == group && kind.origin == Origin::Native;
    if hub.peek(|machine| place.kinds(hub, machine)).iter().any(native) && place.view.is_none() {
        Status::unserved().without_details()
    } else {
        Status::unserved()
    }
}

/// A body, when all of it is there, and its room.
async fn sent<B>(hub: &Hub, asker: &Asker, body: B) -> Result<(Bytes, Option<Pass>), Status>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let most = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    if most == Some(0) {
        return Ok((Bytes::new(), None));
    }
    let most = most.unwrap_or(usize::MAX).min(hub.limits.body_bytes);
    let room = hub.turn(asker, Work::Body(most)).await?;
    Ok((collect(body, &hub.limits).await?, Some(room)))
}

async fn collect<B>(body: B, limits: &Limits) -> Result<Bytes, Status>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Ok(collected) =
        tokio::time::timeout(limits.body_within, Limited::new(body, limits.body_bytes).collect()).await
    else {
        let message = format!("the body was not sent within {} seconds", limits.body_within.as_secs());
        return Err(Status::other(408, "Timeout", message));
    };
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {}", limits.body_bytes);
            Err(Status::other(413, "RequestEntityTooLarge", message))
        }
        Err(error) => Err(Status::bad_request(format!("the body cannot be read: {error}"))),
    }
}

/// 504: as real servers say it.
fn too_late(within: Duration) -> Status {
    let message = format!("Timeout: request did not complete within {} seconds", within.as_secs());
    Status::other(504, "Timeout", message)
}

pub(crate) fn not_allowed() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::other(405, "MethodNotAllowed", message).without_details()
}

impl Call<'_> {
    /// The object that is asked for.
    fn key(&self) -> Key {
        Key {
            cluster: self.cluster.clone(),
            kind: self.kept().clone(),
            namespace: self.path.namespace.clone(),
            name: self.path.name.clone(),
        }
    }

    /// The kind as which its objects are kept.
    fn kept(&self) -> &KindId {
        self.kind.kept_as.as_ref().unwrap_or(&self.kind.id)
    }

    /// Who is written down as the manager of fields.
    fn manager(&self) -> Name {
        manager(&self.query, self.headers)
    }
}

/// Who is written down as the manager of fields: as the request says, else the client's own name.
fn manager(query: &Query, headers: &HeaderMap) -> Name {
    let agent = || {
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let agent = agent.split('/').next().unwrap_or_default();
        Name::new(if agent.is_empty() { "unknown" } else { agent })
    };
    query.manager().unwrap_or_else(agent)
}
