//! Tells whoever listens that something happened on a server: always in the order in which they began to wait, so that a
//! seed replays exactly. (tokio's own watch channel wakes in an order that it draws.)

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// A bell.
#[derive(Clone, Default)]
pub(crate) struct Bell(Arc<(AtomicU64, Notify)>);

/// Somebody who listens to a bell.
pub(crate) struct Listener {
    bell: Bell,
    heard: u64,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        self.0.1.notify_waiters();
    }

    /// From now on; what was rung before is taken for news once.
    pub(crate) fn listen(&self) -> Listener {
        Listener { bell: self.clone(), heard: u64::MAX }
    }
}

impl Listener {
    /// Waits until it was rung since it was last heard. All runs in one thread: nothing is rung between the look and the
    /// wait.
    pub(crate) async fn hear(&mut self) {
        loop {
            let rung = self.bell.0.0.load(Ordering::Relaxed);
            if rung != self.heard {
                self.heard = rung;
                return;
            }
            self.bell.0.1.notified().await;
        }
    }
}
