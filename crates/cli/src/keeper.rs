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
