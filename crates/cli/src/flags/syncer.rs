//! The flags of a running syncer: those of both generations of edge syncers, and our own.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use mailboat_cluster::{Rate, Source};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_registration::names::{check_namespace, check_object_name};
use mailboat_runner::listen::DEFAULT_ADDRESS;

use super::caution::CautionFlags;

/// Carry one mailbox to its cluster, and bring back what the cluster reports
#[derive(Debug, Parser)]
#[command(name = "mailboat-syncer", version, max_term_width = 100, after_long_help = SYNCER_NOTES)]
pub struct MailboatSyncer {
    /// What `mailboat syncer` takes
    #[command(flatten)]
    pub arguments: SyncerArguments,
}

const SYNCER_NOTES: &str = "\
Example:
  mailboat syncer --from-kubeconfig mailbox.kubeconfig --to-kubeconfig guilder.kubeconfig \\
    --sync-target-name guilder --sync-target-uid 3f0c5d1e-7a84-4c0e-9a53-0c6f1f0a2b11 --namespace default

Exit codes: 0 told to end, 1 failed, 2 not as it should be called. A server that is away is waited for.";

/// Carry one mailbox to its cluster, and bring back what the cluster reports.
///
/// This is what runs at the edge; the manifest of `mailboat syncer-gen` calls it. It runs until SIGTERM or SIGINT, and
/// then finishes what is under way. The program `mailboat-syncer` is this command by itself, and smaller.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = SYNCER_NOTES)]
pub struct SyncerArguments {
    /// The kubeconfig of the mailbox
    #[arg(long, value_name = "FILE")]
    pub from_kubeconfig: PathBuf,
    /// The context in it; by default its current one
    #[arg(long, value_name = "NAME")]
    pub from_context: Option<String>,
    /// The kubeconfig of the cluster; by default the service account of the Pod that this runs in
    #[arg(long, value_name = "FILE")]
    pub to_kubeconfig: Option<PathBuf>,
    /// The context in it; by default its current one
    #[arg(long, value_name = "NAME", requires = "to_kubeconfig")]
    pub to_context: Option<String>,
    /// The SyncTarget's name
    #[arg(long, value_name = "NAME")]
    pub sync_target_name: String,
    /// The SyncTarget's UID
    #[arg(long, value_name = "UID")]
    pub sync_target_uid: String,
    /// Requests per second to either side; 0: as many as the servers take, which have flow control of their own
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, value_parser = super::rate)]
    pub qps: f64,
    /// Requests at once after a quiet time, where --qps limits them
    #[arg(long, value_name = "NUMBER", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub burst: u32,
    /// How often the syncer says in the mailbox that it is alive, such as 30s or 5m
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = period)]
    pub heartbeat_period: Duration,
    /// When somebody is asked first
    #[command(flatten)]
    pub caution: CautionFlags,
    /// Where health and metrics are served: address:port, or :port for every address
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADDRESS, value_parser = listen_address)]
    pub listen: SocketAddr,
    /// The Secret at the edge that holds the mailbox's token; a renewed token is written there. Without it nothing is
    /// renewed
    #[arg(long, value_name = "NAME", requires = "namespace")]
    pub credential_secret: Option<String>,
    /// The syncer's own namespace at the edge
    #[arg(long, value_name = "NAME", env = "NAMESPACE")]
    pub namespace: Option<String>,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Which log lines are written: error, warn, info, debug or trace, or by part, such as info,mailboat_cluster=debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "MAILBOAT_LOG")]
    pub log_level: String,
    /// How much is logged, as earlier syncers had it: 0 to 2 is info, 3 to 5 debug, more is trace
    #[arg(short = 'v', long = "v", value_name = "NUMBER", hide = true, conflicts_with = "log_level")]
    pub verbosity: Option<u8>,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

/// Flags that are well formed and still cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSyncerFlags(String);

impl SyncerArguments {
    /// Checks what can be checked without a server.
    pub fn check(&self) -> Result<(), BadSyncerFlags> {
        let bad = |sentence: String| BadSyncerFlags(sentence);
        check_object_name(&self.sync_target_name, "a SyncTarget").map_err(|name| bad(name.to_string()))?;
        if self.sync_target_uid.is_empty() {
            return Err(bad(
                "--sync-target-uid is empty; the manifest of `mailboat syncer-gen` has it".to_owned()
            ));
        }
        if let Some(namespace) = &self.namespace {
            check_namespace(namespace).map_err(|name| bad(name.to_string()))?;
        }
        if let Some(secret) = &self.credential_secret {
            check_object_name(secret, "a Secret").map_err(|name| bad(name.to_string()))?;
        }
        Ok(())
    }

    /// Where the mailbox is.
    pub fn from(&self) -> Source {
        Source::Kubeconfig { path: Some(self.from_kubeconfig.clone()), context: self.from_context.clone() }
    }

    /// Where the cluster is.
    pub fn to(&self) -> Source {
        match &self.to_kubeconfig {
            Some(path) => Source::Kubeconfig { path: Some(path.clone()), context: self.to_context.clone() },
            None => Source::InCluster,
        }
    }

    /// The limit of requests to either side, if there is one.
    pub fn rate(&self) -> Option<Rate> {
        (self.qps > 0.0).then_some(Rate { per_second: self.qps, burst: self.burst })
    }

    /// The Secret that a renewed token is written to, at the edge.
    pub fn credential_key(&self, edge: &ClusterId) -> Option<Key> {
        Some(Key {
            cluster: edge.clone(),
            kind: KindId::new("", "secrets"),
            namespace: Name::new(self.namespace.as_deref()?),
            name: Name::new(self.credential_secret.as_deref()?),
        })
    }

    /// The log filter that the flags of either generation ask for.
    pub fn log_filter(&self) -> &str {
        match self.verbosity {
            None => &self.log_level,
            Some(0..=2) => "info",
            Some(3..=5) => "debug",
            Some(_) => "trace",
        }
    }
}

/// `30s`, `5m` or `1h`; not less than a second.
pub(super) fn period(text: &str) -> Result<Duration, String> {
    let seconds = |digits: &str, factor: u64| digits.parse::<u64>().ok()?.checked_mul(factor);
    let read = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((digits, "s")) => seconds(digits, 1),
        Some((digits, "m")) => seconds(digits, 60),
        Some((digits, "h")) => seconds(digits, 3_600),
        _ => None,
    };
    let read = read.filter(|seconds| (1..=86_400).contains(seconds));
    read.map(Duration::from_secs).ok_or_else(|| "write it as 30s, 5m or 1h, up to a day".to_owned())
}

/// `127.0.0.1:8080`, `[::1]:8080`, or `:8080` for every address.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
    let every = port.map(|port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    let named = || {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host == "localhost" {
            Ipv4Addr::LOCALHOST.into()
        } else {
            host.trim_matches(['[', ']']).parse().ok()?
        };
        Some(SocketAddr::new(host, port.parse().ok()?))
    };
    every.or_else(named).ok_or_else(|| "write it as address:port or :port".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str =
        "syncer --from-kubeconfig=/kcp/kubeconfig --sync-target-name=guilder --sync-target-uid=u-1";

    fn parse(more: &str) -> Result<SyncerArguments, String> {
        let words = LEAST.split(' ').chain(more.split_whitespace());
        MailboatSyncer::try_parse_from(words)
            .map(|program| program.arguments)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_flags_of_every_generation_are_understood() {
        for more in [
            "",
            "--qps=20 --burst=30 --v=3",
            "--qps=0",
            "-v 3",
            "--from-context=a --to-kubeconfig=f --to-context=b",
            "--credential-secret=s --namespace=n --listen=:8080 --log-format=json",
            "--listen 127.0.0.1:9000 --log-level info,mailboat_cluster=debug",
        ] {
            let arguments = parse(more).unwrap_or_else(|told| panic!("{more}: {told}"));
            assert_eq!(arguments.check(), Ok(()), "{more}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for more in [
            "--qps=-1",
            "--qps=NaN",
            "--burst=0",
            "--to-context=b",
            "--listen=8080",
            "--listen=:99999",
            "--v=3 --log-level=info",
            "--log-format=xml",
            "--heartbeat-period=0s",
        ] {
            assert!(parse(more).is_err(), "{more}");
        }
        let mut arguments = parse("").unwrap();
        arguments.sync_target_name = "Guilder".to_owned();
        assert!(arguments.check().is_err());
        let mut arguments = parse("").unwrap();
        arguments.sync_target_uid = String::new();
        assert!(arguments.check().unwrap_err().to_string().contains("syncer-gen"));
    }

    #[test]
    fn without_a_kubeconfig_the_cluster_is_the_one_around_us() {
        assert!(matches!(parse("").unwrap().to(), Source::InCluster));
        assert!(matches!(parse("--to-kubeconfig=f").unwrap().to(), Source::Kubeconfig { .. }));
    }

    #[test]
    fn older_verbosity_becomes_a_level() {
        let filter = |more: &str| parse(more).unwrap().log_filter().to_owned();
        assert_eq!(
            [filter(""), filter("--v=2"), filter("--v=4"), filter("--v=9")],
            ["info", "info", "debug", "trace"]
        );
    }

    #[test]
    fn a_heartbeat_is_between_a_second_and_a_day() {
        let seconds = |text: &str| period(text).map(|period| period.as_secs());
        assert_eq!([seconds("1s"), seconds("5m"), seconds("24h")], [Ok(1), Ok(300), Ok(86_400)]);
        for bad in ["", "s", "0s", "30", "1.5s", "-1s", "25h", "99999999999999999999h", "5ü"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_may_leave_out_its_host() {
        let listen = |text: &str| listen_address(text).map(|address| address.to_string());
        assert_eq!(listen(":8080").as_deref(), Ok("[::]:8080"));
        assert_eq!(listen("127.0.0.1:1").as_deref(), Ok("127.0.0.1:1"));
        assert_eq!(listen("localhost:1").as_deref(), Ok("127.0.0.1:1"));
        assert_eq!(listen("[::1]:1").as_deref(), Ok("[::1]:1"));
        for bad in ["", ":", "8080", "host:", "example.org:1"] {
            assert!(listen(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_renewed_token_goes_where_the_flags_say_and_nowhere_without_them() {
        let edge = ClusterId::new("edge");
        let key = parse("--credential-secret=s --namespace=n").unwrap().credential_key(&edge);
        assert_eq!(key.map(|key| key.to_string()).as_deref(), Some("edge|secrets n/s"));
        assert_eq!(parse("").unwrap().credential_key(&edge), None);
    }
}
