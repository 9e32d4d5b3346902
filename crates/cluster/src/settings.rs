//! Every limit and every time of a connection, named, with its default and the reason for it.

use std::time::Duration;

/// How a connection behaves. The defaults suit an edge syncer and the center alike; tests shorten the times.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Requests started per second, and how many at once after a quiet time; `None`: as many as the server
    /// takes, which has flow control of its own (priority and fairness).
    pub rate: Option<Rate>,
    /// Calls and list pages under way at once. More wait for their turn.
    pub in_flight: usize,
    /// Watches open at once. More wait for their turn.
    pub watches: usize,
    /// HTTP/2 streams on one connection. API servers allow 100 and let the 101st wait without a word, behind
    /// watches that never end, so another connection is opened well before that.
    pub streams_per_connection: usize,
    /// From the first packet to the end of the TLS handshake.
    pub connect_timeout: Duration,
    /// One call from its sending to the end of its answer. API servers give up by themselves after 60 s, and
    /// their answer says more than ours.
    pub call_timeout: Duration,
    /// Until a list or watch begins to answer, and between two pieces of one page.
    pub fetch_timeout: Duration,
    /// HTTP/2: quiet for this long, the peer is asked for a sign of life, whether streams are open or not.
    pub ping_interval: Duration,
    /// HTTP/2: without that sign for this long, the connection is given up and all its streams end.
    pub ping_timeout: Duration,
    /// The kernel's own check, the only one on HTTP/1.1: the first probe after this much silence,
    pub keepalive_idle: Duration,
    /// then every so often,
    pub keepalive_interval: Duration,
    /// and given up after so many without an answer.
    pub keepalive_probes: u32,
    /// Sent bytes that nobody acknowledges for this long end a connection.
    pub user_timeout: Duration,
    /// How requests that are safe to repeat are repeated.
    pub retry: Retry,
    /// The longest watch line. API servers take bodies of 3 MiB at most; what they answer is little longer.
    pub line_limit_bytes: usize,
    /// The largest list page.
    pub page_limit_bytes: usize,
    /// The largest answer to a call.
    pub reply_limit_bytes: usize,
    /// While requests are made, the files behind a connection (kubeconfig, certificates, token) are looked at
    /// this often, and at once when a server refuses the credential.
    pub recheck: Duration,
}

/// A rate of requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate {
    /// Requests per second, in the long run.
    pub per_second: f64,
    /// Requests at once after a quiet time.
    pub burst: u32,
}

/// How requests that are safe to repeat are repeated: reads that met a passing fault, and anything that
/// provably never reached the server. All others are answered with the fault; who asked decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// At most so many tries in all.
    pub attempts: u32,
    /// The pause before the second try, doubled for each further one, half of it random.
    pub first_pause: Duration,
    /// No new try after this much time.
    pub total: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate: None,
            in_flight: 128,
            watches: 4096,
            streams_per_connection: 80,
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(65),
            fetch_timeout: Duration::from_secs(30),
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(10),
            keepalive_idle: Duration::from_secs(15),
            keepalive_interval: Duration::from_secs(5),
            keepalive_probes: 3,
            user_timeout: Duration::from_secs(30),
            retry: Retry {
                attempts: 4,
                first_pause: Duration::from_millis(100),
                total: Duration::from_secs(5),
            },
            line_limit_bytes: 16 << 20,
            page_limit_bytes: 64 << 20,
            reply_limit_bytes: 16 << 20,
            recheck: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_peer_is_noticed_within_thirty_seconds_by_default() {
        let s = Settings::default();
        let limit = Duration::from_secs(30);
        assert!(s.ping_interval + s.ping_timeout <= limit, "HTTP/2 ping");
        assert!(s.keepalive_idle + s.keepalive_interval * s.keepalive_probes <= limit, "TCP keep-alive");
        assert!(s.user_timeout <= limit, "unacknowledged bytes");
        assert!(s.streams_per_connection <= 80, "API servers stop at 100");
    }
}
