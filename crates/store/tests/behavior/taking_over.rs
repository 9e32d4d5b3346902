//! A view that comes to answer for the bindings of a workspace that others have shown before.
//!
//! Each of the views that a mailbox is bound to shows its own binding there, and one that claims bindings shows all of them. Which
//! of them is heard first is chance, and the one that claims them answers in the end. A mailbox more must not make it be
//! listed again: that is all bindings of all mailboxes.

use mailboat_object::key::{ClusterId, Key, Name};
use mailboat_object::object::Keep;
use mailboat_store::{
    Definition, Doubt, EndpointId, FeedId, Filter, Follower, Input, Nature, News, Now, PlaceId, Seen,
    Settings, Store,
};
use serde_json::{Value, json};

use crate::rig::definition;
use crate::server::{bindings, line};

/// Two views, whose bindings were listed when there were none.
struct Views {
    store: Store,
    edge: Follower,
    claiming: Follower,
    news: Vec<News>,
}

fn feed_id(place: &str) -> FeedId {
    FeedId { place: PlaceId::new(place), endpoint: EndpointId::new("shard"), kind: bindings() }
}

impl Views {
    fn new() -> Self {
        let (mut store, mut news) = (Store::new(), Vec::new());
        let [edge, claiming] = ["edge", "claiming"].map(|place| {
            store.open(&PlaceId::new(place), Nature::View, [EndpointId::new("shard")], &mut news);
            let definition = Definition { keep: Keep::Head, ..definition(Filter::All) };
            Follower::new(feed_id(place), definition, Settings::default(), 1, &mut store, &mut news).unwrap()
        });
        let mut views = Self { store, edge, claiming, news };
        let nothing = json!({ "metadata": { "resourceVersion": "10" }, "items": [] }).to_string();
        for claiming in [false, true] {
            views.feed(claiming, Input::Page(nothing.as_bytes()));
            views.feed(claiming, Input::Opened { new_connection: false });
        }
        assert!(views.store.take_relists().is_empty());
        views
    }

    fn feed(&mut self, claiming: bool, input: Input<'_>) {
        let follower = if claiming { &mut self.claiming } else { &mut self.edge };
        follower.next(Now::default());
        let turn = follower.turn();
        follower.feed(Now::default(), turn, input, &mut self.store, &mut self.news);
    }

    fn shows(&mut self, claiming: bool, event: &str, binding: &Value) {
        self.feed(claiming, Input::Line(&line(event, binding)));
    }

    /// The bindings that were told whole since this was last asked, and those of which only the head was.
    fn told(&mut self) -> (Vec<String>, Vec<String>) {
        let mut told = (Vec::new(), Vec::new());
        for news in std::mem::take(&mut self.news) {
            if let News::Object(change) = news
                && let Seen::Present(object) = change.now
            {
                let list = if object.is_whole() { &mut told.0 } else { &mut told.1 };
                list.push(object.key.name.to_string());
            }
        }
        told
    }

    fn seen(&self, name: &str) -> Result<u64, Doubt> {
        match self.store.get(&key(name)) {
            Seen::Present(object) => Ok(object.version.0),
            Seen::Unknown(doubt) => Err(doubt),
            Seen::Absent(_) => {
                panic!("{name}: a view that claims bindings never proves that one is not there")
            }
        }
    }
}

fn key(name: &str) -> Key {
    Key {
        cluster: ClusterId::new("mailbox"),
        kind: bindings(),
        namespace: Name::EMPTY,
        name: Name::new(name),
    }
}

fn binding(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
            "annotations": { "kcp.io/cluster": "mailbox" },
        },
    })
}

/// The binding by which the view is to see all others, which is not in force yet.
fn will_claim(version: u64) -> Value {
    let mut claims = binding("claims", version);
    claims["spec"] = json!({ "permissionClaims": [
        { "group": "apis.kcp.io", "resource": "apibindings", "state": "Accepted" },
    ] });
    claims
}

/// The same, in force.
fn claims(version: u64) -> Value {
    let mut claims = will_claim(version);
    claims["status"] =
        json!({ "appliedPermissionClaims": [{ "group": "apis.kcp.io", "resource": "apibindings" }] });
    claims
}

#[test]
fn a_view_that_comes_to_answer_knows_what_it_has_shown_and_is_not_listed_again() {
    let mut views = Views::new();
    views.shows(false, "ADDED", &binding("own", 11));
    views.shows(false, "ADDED", &binding("unlabelled", 12));
    views.shows(true, "ADDED", &will_claim(13));
    views.shows(true, "ADDED", &binding("gone", 14));
    views.shows(true, "ADDED", &binding("own", 15));
    assert_eq!(views.seen("own"), Ok(11), "the first view answers");
    views.shows(true, "DELETED", &binding("gone", 16));
    views.shows(true, "MODIFIED", &claims(17));

    assert!(views.store.take_relists().is_empty(), "all bindings of all workspaces");
    let heard = ["own", "unlabelled", "claims", "own"].map(str::to_owned).to_vec();
    assert_eq!(views.told(), (heard, vec![]), "whoever hears of one can compare it without asking for it");
    assert_eq!(views.seen("claims"), Ok(17));
    assert_eq!(views.seen("own"), Ok(15), "shown before the view answered, and never again");
    for name in ["gone", "unlabelled"] {
        assert_eq!(views.seen(name), Err(Doubt::Claimed), "{name}");
    }
    views.shows(true, "ADDED", &binding("unlabelled", 18));
    assert_eq!(views.seen("unlabelled"), Ok(18));
    // What the other one says does not count any more.
    views.shows(false, "MODIFIED", &binding("own", 19));
    assert_eq!(views.seen("own"), Ok(15));
    views.shows(true, "DELETED", &binding("own", 20));
    assert_eq!(views.seen("own"), Err(Doubt::Claimed));
}

#[test]
fn a_view_whose_word_was_not_kept_is_listed_again() {
    let mut views = Views::new();
    views.shows(true, "ADDED", &claims(11));
    views.shows(true, "ADDED", &binding("own", 12));
    views.shows(false, "ADDED", &binding("own", 12));
    assert!(views.store.take_relists().is_empty());
    let mut news = Vec::new();
    views.store.unfollow(&PlaceId::new("claiming"), &bindings(), &mut news);
    assert_eq!(views.store.take_relists(), [feed_id("edge")]);
    assert_eq!(views.seen("own"), Ok(12), "as last seen");
}

#[test]
fn what_a_view_shows_in_a_list_before_it_answers_is_known_at_its_end() {
    let mut views = Views::new();
    views.shows(false, "ADDED", &binding("own", 11));
    views.told();
    let expired = crate::server::expired_line();
    views.feed(true, Input::Line(&expired));
    // By their names: that this view claims bindings is not known before the second.
    let all = [binding("before", 12), claims(13), binding("own", 11)];
    let page = json!({ "metadata": { "resourceVersion": "14" }, "items": all }).to_string();
    views.feed(true, Input::Page(page.as_bytes()));
    for (name, version) in [("before", 12), ("claims", 13), ("own", 11)] {
        assert_eq!(views.seen(name), Ok(version), "{name}");
    }
    assert!(views.store.take_relists().is_empty());
    assert_eq!(views.told(), (["before", "claims"].map(str::to_owned).to_vec(), vec![]));
}

/// With ten thousand mailboxes, what nobody will ever ask for would be a hundred megabytes of a start.
#[test]
fn a_view_that_claims_no_bindings_sets_none_aside() {
    let mut views = Views::new();
    let mut elsewhere = binding("own", 13);
    elsewhere["metadata"]["annotations"]["kcp.io/cluster"] = json!("another");
    views.shows(true, "ADDED", &binding("first", 11));
    views.shows(false, "ADDED", &binding("own", 12));
    views.shows(false, "ADDED", &elsewhere);
    views.shows(false, "ADDED", &claims(14));
    assert_eq!(views.store.take_relists(), [feed_id("edge")], "its word was not kept");
    assert_eq!(views.seen("first"), Ok(11), "as last seen");
}
