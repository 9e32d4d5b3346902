//! What one client may hold, and for how long.

use std::future::poll_fn;

use http_body_util::BodyStream;

use super::*;
use crate::answer::Body as AnswerBody;

/// A hub with so many ConfigMaps of so many bytes.
async fn hub_with_maps(limits: Limits, count: usize, bytes: usize) -> Arc<Hub> {
    let hub = hub(limits).await;
    for number in 0..count {
        let (code, said) =
            answered(&hub, ask(Method::POST, MAPS, "application/json", map(number, bytes))).await;
        assert_eq!(code, 201, "{said}");
    }
    hub
}

fn get(path: &str) -> Request<Full<Bytes>> {
    ask(Method::GET, path, "", String::new())
}

async fn begun(hub: &Arc<Hub>, user: &User, query: &str) -> Answer {
    handle(Arc::clone(hub), Some(user), get(&format!("{MAPS}?{query}"))).await
}

/// The pieces of a watch up to its first bookmark, each with how many events it has.
async fn pieces(body: AnswerBody) -> Vec<(usize, usize)> {
    let mut body = BodyStream::new(body);
    let mut pieces = Vec::new();
    while let Some(frame) = futures::StreamExt::next(&mut body).await {
        let piece = frame.unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&piece).unwrap();
        pieces.push((piece.len(), text.lines().filter(|line| line.contains(r#""ADDED""#)).count()));
        if text.contains("k8s.io/initial-events-end") {
            break;
        }
    }
    pieces
}

const FROM_BEGIN: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn is_pending<F: Future>(future: &mut std::pin::Pin<&mut F>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn a_watch_that_begins_with_a_long_list_has_a_turn_until_that_is_read() {
    // Of many, or of a few that are large.
    for (count, bytes) in [(100, 10), (5, 50_000)] {
        begins_with_a_long_list(count, bytes).await;
    }
}

async fn begins_with_a_long_list(count: usize, bytes: usize) {
    let hub = hub_with_maps(Limits { requests: one_request(), ..Limits::default() }, count, bytes).await;
    let watch = begun(&hub, &admin(), FROM_BEGIN).await;
    assert_eq!(watch.status(), 200);
    let mut second = pin!(answered(&hub, get(MAPS)));
    assert!(is_pending(&mut second), "the list of the watch is still under way");
    let read = pieces(watch.into_body()).await;
    assert_eq!(read.iter().map(|(_, events)| events).sum::<usize>(), count, "{read:?}");
    assert_eq!(second.await.0, 200);
    // A watch from a version, or with little to begin with, waits for nobody.
    let other = begun(&hub, &admin(), FROM_BEGIN).await;
    let (_, list) = answered_to(&hub, &alice(), get(MAPS)).await;
    assert_eq!(list["code"], 403, "{list}");
    let version = hub.peek(|machine| machine.version().0);
    let later = begun(&hub, &admin(), &format!("watch=true&resourceVersion={version}")).await;
    assert_eq!((later.status().as_u16(), other.status().as_u16()), (200, 200));
}

#[tokio::test]
async fn a_watch_whose_beginning_nobody_reads_is_given_up() {
    let limits = Limits {
        requests: one_request(),
        watches: Shares { per_user: 1, ..Limits::default().watches },
        answer_within: Duration::from_millis(50),
        ..Limits::default()
    };
    let hub = hub_with_maps(limits, 100, 10).await;
    let mut first = begun(&hub, &admin(), FROM_BEGIN).await.into_body();
    assert!(first.frame().await.unwrap().is_ok(), "it began well");
    let (code, _) = answered(&hub, get(&format!("{MAPS}?limit=1"))).await;
    assert_eq!(code, 200, "its turn is over");
    assert_eq!(
        begun(&hub, &admin(), "watch=true&resourceVersion=1").await.status(),
        200,
        "and so is the watch"
    );
    assert!(first.frame().await.unwrap().is_err());
    assert!(first.frame().await.is_none());
}

#[tokio::test]
async fn a_watch_that_nobody_reads_ends_in_time() {
    let limits = Limits { watches: Shares { per_user: 1, ..Limits::default().watches }, ..Limits::default() };
    let hub = hub_with_maps(limits, 1, 10).await;
    let _unread = begun(&hub, &admin(), "watch=true&timeoutSeconds=1").await;
    assert_eq!(begun(&hub, &admin(), "watch=true").await.status(), 429);
    let ended = async {
        while begun(&hub, &admin(), "watch=true").await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it never ended");
}

#[tokio::test]
async fn no_piece_of_a_watch_is_larger_than_it_need_be() {
    let hub = hub_with_maps(Limits::default(), 40, 20_000).await;
    let (code, _) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(99, 500_000))).await;
    assert_eq!(code, 201);
    let (_, first) = answered(&hub, get(&format!("{MAPS}/map-0"))).await;
    let first: u64 = first["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let from_version = format!("watch=true&resourceVersion={}&timeoutSeconds=1", first - 1);
    for query in [FROM_BEGIN.to_owned(), from_version] {
        let read = pieces(begun(&hub, &admin(), &query).await.into_body()).await;
        assert_eq!(read.iter().map(|(_, events)| events).sum::<usize>(), 41, "{query}: {read:?}");
        let (large, small): (Vec<_>, Vec<_>) = read.into_iter().partition(|(bytes, _)| *bytes > 100_000);
        assert!(
            matches!(large[..], [(500_000..510_000, 1)]),
            "{query}: the large one comes alone: {large:?}"
        );
        let is_together = small.iter().any(|(_, events)| *events > 1);
        assert_eq!(is_together, query == FROM_BEGIN, "{query}: later each is shared by all: {small:?}");
    }
}

#[tokio::test]
async fn lists_that_are_larger_than_ones_share_go_one_after_the_other() {
    let list_bytes = Shares { all: 1 << 20, per_workspace: 1 << 20, per_user: 300_000 };
    let hub = hub_with_maps(Limits { list_bytes, ..Limits::default() }, 5, 50_000).await;
    let first = handle(Arc::clone(&hub), Some(&admin()), get(MAPS)).await;
    let mut second = pin!(answered(&hub, get(MAPS)));
    assert!(is_pending(&mut second), "there is no memory for two of them");
    assert_eq!(answered(&hub, get(&format!("{MAPS}?limit=1"))).await.0, 200, "a short one waits for nobody");
    drop(first);
    assert_eq!(second.await.0, 200);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered_all_the_same() {
    let limits = Limits { request_within: Duration::from_millis(50), ..Limits::default() };
    let hub = hub(limits).await;
    let never = futures::stream::pending::<Result<Frame<Bytes>, std::io::Error>>();
    let request = Request::builder().method(Method::POST).uri(MAPS).body(StreamBody::new(never)).unwrap();
    let answer = handle(Arc::clone(&hub), Some(&admin()), request).await;
    assert_eq!(answer.status(), 504);
}

#[tokio::test]
async fn whoever_waits_too_long_for_his_turn_is_told_when_to_come_again() {
    let limits =
        Limits { requests: one_request(), turn_within: Duration::from_millis(20), ..Limits::default() };
    let hub = hub_with_maps(limits, 2, 50_000).await;
    let unread = handle(Arc::clone(&hub), Some(&admin()), get(MAPS)).await;
    let refused = handle(Arc::clone(&hub), Some(&admin()), get(MAPS)).await;
    assert_eq!((refused.status().as_u16(), refused.headers().get("retry-after").is_some()), (429, true));
    drop(unread);
    assert_eq!(answered(&hub, get(MAPS)).await.0, 200);
}

/// One user sends whatever he can, and reads nothing. Another is answered as if he were alone: not after some time, but
/// while all that is still there.
#[tokio::test]
async fn a_flood_of_one_user_keeps_nobody_else_from_anything() {
    let limits = Limits {
        requests: Shares { all: 8, per_workspace: 8, per_user: 4 },
        watches: Shares { all: 8, per_workspace: 8, per_user: 4 },
        waiting_per_user: 20,
        ..Limits::default()
    };
    let hub = hub_with_maps(limits, 3, 50_000).await;
    let greedy = admin();
    let mut unread = Vec::new();
    let mut waiting = Vec::new();
    for _ in 0..50 {
        let watch = begun(&hub, &admin(), "watch=true&resourceVersion=1").await;
        unread.extend((watch.status() == 200).then_some(watch));
        let mut list = Box::pin(handle(Arc::clone(&hub), Some(&greedy), get(MAPS)));
        match poll_fn(|context| Poll::Ready(list.as_mut().poll(context))).await {
            Poll::Ready(answer) => unread.extend((answer.status() == 200).then_some(answer)),
            Poll::Pending => waiting.push(list),
        }
    }
    assert_eq!(
        (unread.len(), waiting.len()),
        (8, 20),
        "four lists and four watches, and as many as may wait"
    );
    let other = User { name: "other".to_owned(), ..admin() };
    for _ in 0..20 {
        assert_eq!(answered_to(&hub, &other, get(MAPS)).await.0, 200);
    }
    let mut watch = begun(&hub, &other, "watch=true").await.into_body();
    assert!(watch.frame().await.unwrap().is_ok());
}

/// A request whose body never comes, of so many bytes.
fn never_sent(bytes: u64) -> Request<Promised> {
    Request::builder().method(Method::POST).uri(MAPS).body(Promised(bytes)).unwrap()
}

/// A body that is promised, and not sent.
struct Promised(u64);

impl hyper::body::Body for Promised {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.0)
    }
}

#[tokio::test]
async fn bodies_that_do_not_come_take_nobodys_turn() {
    let limits = Limits {
        requests: Shares { all: 2, per_workspace: 2, per_user: 1 },
        bodies: Shares { all: 1 << 20, per_workspace: 512 << 10, per_user: 256 << 10 },
        turn_within: Duration::from_millis(20),
        ..Limits::default()
    };
    let hub = hub_with_maps(limits, 1, 10).await;
    let users = ["a", "b"].map(|name| User { name: name.to_owned(), ..admin() });
    let mut slow = Vec::new();
    for user in &users {
        for _ in 0..4 {
            let mut one = Box::pin(handle(Arc::clone(&hub), Some(user), never_sent(100)));
            assert!(is_pending(&mut one.as_mut()), "it waits for its body");
            slow.push(one);
        }
    }
    for user in &users {
        assert_eq!(answered_to(&hub, user, get(MAPS)).await.0, 200, "not even his own turns are taken");
        let refused = handle(Arc::clone(&hub), Some(user), never_sent(100)).await;
        assert_eq!(refused.status(), 429, "he has no room for more bodies");
    }
    let (code, said) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(1, 10))).await;
    assert_eq!(code, 201, "others have room: {said}");
    drop(slow);
    let small = ask(Method::POST, MAPS, "application/json", map(2, 10));
    assert_eq!(answered_to(&hub, &users[0], small).await.0, 201, "there is room again");
}

#[tokio::test]
async fn accounts_of_one_name_in_two_workspaces_do_not_share_turns() {
    let account = |home: &str| {
        let mut user = User::service_account("default", "syncer", "uid");
        user.extra.insert(crate::access::user::CLUSTER_EXTRA.to_owned(), vec![home.to_owned()]);
        user
    };
    let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
    let workspaces = crate::workspaces(Memory::default(), options).await.unwrap().hub;
    let [a, b] = ["1a2b", "3c4d"].map(|home| workspaces.asker(&account(home)));
    assert_ne!(a, b);
    let workspaces = workspaces.with_limits(Limits {
        watches: Shares { all: 9, per_workspace: 9, per_user: 1 },
        ..Limits::default()
    });
    let _first = workspaces.turn(&a, Work::Watch).await.unwrap();
    assert!(workspaces.turn(&a, Work::Watch).await.is_err());
    assert!(workspaces.turn(&b, Work::Watch).await.is_ok());
    // In one cluster accounts are users like all others, and none of them has a share for all of them.
    let cluster = hub(Limits::default()).await;
    assert_eq!(cluster.asker(&account("cluster")), Asker::user("system:serviceaccount:default:syncer"));
}

#[tokio::test]
async fn a_large_event_is_in_memory_once_for_all_who_watch_tables_of_it() {
    let hub = hub_with_maps(Limits::default(), 1, 10).await;
    let version = hub.peek(|machine| machine.version().0);
    let (code, said) =
        answered(&hub, ask(Method::PUT, &format!("{MAPS}/map-0"), "application/json", map(0, 500_000))).await;
    assert_eq!(code, 200, "{said}");
    let table = async |include: &str| {
        let path = format!("{MAPS}?watch=true&resourceVersion={version}&includeObject={include}");
        let request = Request::builder()
            .uri(path)
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Full::<Bytes>::default());
        let answer = handle(Arc::clone(&hub), Some(&admin()), request.unwrap()).await;
        assert_eq!(answer.status(), 200);
        let mut body = answer.into_body();
        body.frame().await.unwrap().unwrap().into_data().unwrap()
    };
    let (first, second) = (table("Object").await, table("Object").await);
    assert!(first.len() > 500_000, "{}", first.len());
    assert_eq!(first.as_ptr(), second.as_ptr(), "it is the same memory");
    let said: Value = serde_json::from_slice(&first).unwrap();
    assert!(said["object"]["columnDefinitions"].is_array(), "the first line tells the columns");
    let other: Value = serde_json::from_slice(&table("Metadata").await).unwrap();
    assert!(other["object"]["rows"][0]["object"]["data"].is_null(), "another asked for less: {other}");
}

#[tokio::test]
async fn rows_of_tables_come_one_by_one_and_tell_the_columns_once() {
    let hub = hub_with_maps(Limits::default(), 1, 10).await;
    let version = hub.peek(|machine| machine.version().0);
    for number in 1..4 {
        let (code, _) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(number, 10))).await;
        assert_eq!(code, 201);
    }
    let request = Request::builder()
        .uri(format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={version}"))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Full::<Bytes>::default());
    let answer = handle(Arc::clone(&hub), Some(&admin()), request.unwrap()).await;
    let mut body = BodyStream::new(answer.into_body());
    let mut told = Vec::new();
    while let Some(frame) = futures::StreamExt::next(&mut body).await {
        let piece = frame.unwrap().into_data().unwrap();
        let lines = piece.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let name = lines[0]["object"]["rows"][0]["cells"][0].as_str().unwrap_or_default().to_owned();
        if name.starts_with("map-") {
            told.push((name, lines[0]["object"]["columnDefinitions"].is_array()));
        }
    }
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().skip(1).all(|(_, columns)| !columns), "{told:?}");
}

#[tokio::test]
async fn a_deletion_of_many_has_memory_as_a_list_of_them_has() {
    let list_bytes = Shares { all: 1 << 20, per_workspace: 1 << 20, per_user: 300_000 };
    let hub = hub_with_maps(Limits { list_bytes, ..Limits::default() }, 5, 100_000).await;
    let dry = || ask(Method::DELETE, &format!("{MAPS}?dryRun=All"), "", String::new());
    let first = handle(Arc::clone(&hub), Some(&admin()), dry()).await;
    assert_eq!(first.status(), 200);
    let mut second = pin!(answered(&hub, dry()));
    assert!(is_pending(&mut second), "there is no memory for two of them");
    drop(first);
    let (code, said) = second.await;
    assert_eq!((code, said["items"].as_array().map(Vec::len)), (200, Some(5)));
    let (code, said) = answered(&hub, ask(Method::DELETE, MAPS, "", String::new())).await;
    assert_eq!((code, said["items"].as_array().map(Vec::len)), (200, Some(5)));
    let (_, left) = answered(&hub, get(MAPS)).await;
    assert_eq!(left["items"], json!([]));
}

#[tokio::test]
async fn a_deletion_of_many_goes_in_rounds_and_leaves_none_out() {
    let hub = hub_with_maps(Limits::default(), 1_100, 10).await;
    let (code, said) =
        answered(&hub, ask(Method::DELETE, &format!("{MAPS}?limit=0"), "", String::new())).await;
    assert_eq!((code, said["items"].as_array().map(Vec::len)), (200, Some(1_100)));
    let (_, left) = answered(&hub, get(MAPS)).await;
    assert_eq!(left["items"], json!([]));
}
