//! One of the two servers: how it is reached, and as whom.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Request, Response};
use kube::client::Body;
use mailboat_hub::access::TokenFile;
use mailboat_hub::storage::Memory;
use mailboat_hub::{Opened, Options};
use mailboat_testkit::{ADMIN, Access, Center, Credential, Edge};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::run::{Error, FORGETS_EVERY};
use crate::script::On;

/// Users besides the administrator: two without rights, and two who cannot say who they are.
const USERS: [&str; 2] = ["alice", "bob"];
const NOBODY: &str = "nobody";
const STRANGER: &str = "stranger";

/// A server that can be asked as several users.
pub(crate) struct Server {
    url: String,
    clients: BTreeMap<String, kube::Client>,
}

/// A hub that serves as long as this value lives.
pub(crate) struct Hub {
    pub(crate) server: Server,
    serving: JoinHandle<()>,
    forgetting: Option<JoinHandle<()>>,
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.serving.abort();
        if let Some(forgetting) = &self.forgetting {
            forgetting.abort();
        }
    }
}

/// Makes a hub forget what happened, again and again.
async fn forget(hub: Arc<mailboat_hub::Hub>) {
    loop {
        tokio::time::sleep(FORGETS_EVERY).await;
        hub.forget();
    }
}

impl Server {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request as a user.
    pub(crate) async fn send(&self, user: &str, request: Request<Body>) -> Result<Response<Body>, String> {
        let user = if user.is_empty() { ADMIN } else { user };
        let client = self.clients.get(user).ok_or_else(|| format!("there is no user {user:?}"))?;
        client.send(request).await.map_err(|error| error.to_string())
    }

    pub(crate) async fn edge(edge: &Edge) -> Result<Self, Error> {
        let credential = |user: &str| edge.access(user).map(|access| access.credential);
        Self::reached(edge.url(), edge.ca_pem(), |user| Ok(credential(user)?)).await
    }

    pub(crate) async fn center(center: &Center) -> Result<Self, Error> {
        let credential = |user: &str| center.access(user, "").map(|access| access.credential);
        Self::reached(center.url(), center.ca_pem(), |user| Ok(credential(user)?)).await
    }

    async fn reached(
        url: &str,
        ca_pem: &str,
        credential: impl Fn(&str) -> Result<Credential, Error>,
    ) -> Result<Self, Error> {
        let mut clients = BTreeMap::new();
        for user in [ADMIN, NOBODY, STRANGER].into_iter().chain(USERS) {
            let credential = match user {
                NOBODY => Credential::Anonymous,
                STRANGER => Credential::Token("not-a-token".to_owned()),
                user => credential(user)?,
            };
            let access = Access { url: url.to_owned(), ca_pem: Some(ca_pem.to_owned()), credential };
            clients.insert(user.to_owned(), access.client().await?);
        }
        Ok(Self { url: url.to_owned(), clients })
    }
}

impl Hub {
    /// A hub in memory with the users of the real servers.
    pub(crate) async fn start(on: On) -> Result<Self, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Error::Listen)?;
        let url = format!("https://{}", listener.local_addr().map_err(Error::Listen)?);
        let lines = [(ADMIN, "system:masters")].into_iter().chain(USERS.map(|user| (user, "")));
        let lines: Vec<_> =
            lines.map(|(user, group)| format!("{user}-token,{user},{user},\"{group}\"")).collect();
        let tokens = TokenFile::parse(&lines.join("\n")).map_err(|error| Error::Hub(error.to_string()))?;
        let options = Options { tokens, url: url.clone() };
        let opened = match on {
            On::Cluster | On::Forgetful => mailboat_hub::cluster(Memory::default(), options).await,
            On::Workspaces => mailboat_hub::workspaces(Memory::default(), options).await,
        };
        let Opened { hub, authority } = opened.map_err(|error| Error::Hub(error.to_string()))?;
        let tls = authority.server_config(&["127.0.0.1".to_owned()]);
        let tls = tls.map_err(|error| Error::Hub(error.to_string()))?;
        let credential = |user: &str| Ok(Credential::Token(format!("{user}-token")));
        let server = Server::reached(&url, authority.certificate_pem(), credential).await?;
        let served = mailboat_hub::Server::new(hub, tls, listener);
        let forgetting = (on == On::Forgetful).then(|| tokio::spawn(forget(served.hub())));
        let serving = tokio::spawn(served.serve(std::future::pending()));
        Ok(Self { server, serving, forgetting })
    }
}
