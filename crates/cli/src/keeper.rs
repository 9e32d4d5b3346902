//! Keeps a running syncer's token alive: the loop around [`Renewal`], which decides.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mailboat_cluster::Transport;
use mailboat_registration::Renewal;
use mailboat_registration::renewal::{Health, Next};
use mailboat_runner::Instruments;

/// How often the token's file is looked at. kubelets take up to a minute to show a changed Secret.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// One token, where it is read, and who is asked for another.
pub struct Keeper {
    /// The file that the mailbox's credential is read from.
    pub token_file: PathBuf,
    /// Decides when what is done.
    pub renewal: Renewal,
    /// The mailbox.
    pub mailbox: Arc<dyn Transport>,
    /// The edge.
    pub edge: Arc<dyn Transport>,
    /// Where it is told how the token is doing.
    pub instruments: Arc<Instruments>,
}

impl Keeper {
    /// Keeps the token for as long as this is polled, and tells how it is doing. Each change is logged once.
    pub async fn keep(mut self) {
        let mut told = Health::Well;
        loop {
            // A file that cannot be read just now is being replaced, or will be mended by hand; what it held counts.
            if let Ok(text) = tokio::fs::read_to_string(&self.token_file).await {
                self.renewal.holds(&text);
            }
            let until = self.act().await;
            let health = self.renewal.health(Timestamp::now());
            if health != told {
                tell(&health, &self.instruments);
                told = health;
            }
            let pause = until.map_or(LOOK_EVERY, |until| {
                let left = until.duration_since(Timestamp::now());
                Duration::try_from(left).unwrap_or_default().min(LOOK_EVERY)
            });
            tokio::time::sleep(pause).await;
        }
    }

    /// Does what is due, one thing after the other, and gives back until when nothing is.
    async fn act(&mut self) -> Option<Timestamp> {
        loop {
            let answer = match self.renewal.next(Timestamp::now()) {
                Next::Wait(until) => return until,
                Next::Mailbox(call) => self.mailbox.call(call).await,
                Next::Edge(call) => self.edge.call(call).await,
            };
            self.renewal.answered(Timestamp::now(), answer.as_ref());
        }
    }
}

fn tell(health: &Health, instruments: &Instruments) {
    let sentence = match health {
        Health::Well => {
            tracing::info!("the mailbox's token is in order");
            None
        }
        Health::Overdue(why) => {
            tracing::warn!("{why}");
            Some(why.clone())
        }
        Health::Expired(why) => {
            tracing::error!("{why}");
            Some(why.clone())
        }
    };
    instruments.health.note("the mailbox's token", sentence);
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use mailboat_cluster::{Connection, Settings, Source};
    use mailboat_object::key::{ClusterId, Key, KindId, Name};
    use serde_json::json;

    use super::*;

    fn token(issued_at: i64, expires_at: i64) -> String {
        let claims =
            json!({ "iat": issued_at, "exp": expires_at, "sub": "system:serviceaccount:default:syncer" });
        format!("h.{}.s3cr3t", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    /// A server that nobody runs.
    async fn nobody(folder: &std::path::Path) -> Arc<dyn Transport> {
        let path = folder.join("kubeconfig");
        let text = "{apiVersion: v1, kind: Config, current-context: a, users: [], clusters: [{name: a, cluster: {server: \
                    'http://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}]}";
        std::fs::write(&path, text).unwrap();
        let source = Source::Kubeconfig { path: Some(path), context: None };
        Arc::new(Connection::open(source, Settings::default()).await.unwrap().cluster())
    }

    #[tokio::test]
    async fn a_token_that_has_ended_is_told_and_a_replaced_one_is_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        let now = Timestamp::now().as_second();
        std::fs::write(&token_file, token(now - 2_000, now - 1_000)).unwrap();
        let secret = Key {
            cluster: ClusterId::new("edge"),
            kind: KindId::new("", "secrets"),
            namespace: Name::new("n"),
            name: Name::new("s"),
        };
        let (server, instruments) = (nobody(folder.path()).await, Arc::new(Instruments::default()));
        let keeper = Keeper {
            token_file: token_file.clone(),
            renewal: Renewal::new(ClusterId::new("mailbox"), Some(secret)),
            mailbox: Arc::clone(&server),
            edge: server,
            instruments: Arc::clone(&instruments),
        };
        let kept = tokio::spawn(keeper.keep());
        let until = async |fits: fn(&str) -> bool| {
            let waited = async {
                while !fits(&instruments.health.ready(true).text) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let text = || instruments.health.ready(true).text;
            tokio::time::timeout(LOOK_EVERY * 3, waited).await.unwrap_or_else(|_| panic!("{}", text()));
        };
        until(|told| told.contains("the mailbox's token: the token of syncer ended at")).await;
        assert!(instruments.health.ready(true).text.contains("--rotate"));
        assert!(!instruments.health.ready(true).text.contains("s3cr3t"));
        std::fs::write(&token_file, token(now, now + 1_000)).unwrap();
        until(|told| !told.contains("the mailbox's token")).await;
        kept.abort();
    }
}
