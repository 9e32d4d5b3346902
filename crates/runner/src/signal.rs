//! When a program is asked to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGTERM or SIGINT: the kubelet and the service managers send the one, a terminal the other. To be made at a
/// program's very start, since a signal that comes before ends the program on the spot.
pub struct StopSignal {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignal {
    /// Listens from now on.
    pub fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Done once the program is asked to end. Asked a second time, it ends at once: whoever asks twice means it.
    pub async fn received(mut self) {
        let name = self.next().await;
        tracing::info!(signal = name, "asked to end; what is under way is finished first");
        tokio::spawn(async move {
            let name = self.next().await;
            tracing::warn!(signal = name, "asked to end again; ending at once");
            std::process::exit(1);
        });
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
