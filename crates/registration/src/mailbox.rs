//! Whether the workspace that we point at is a mailbox, and whose.

use mailboat_api::kcp::LogicalCluster;
use mailboat_api::names::{MailboxName, annotation};

/// A mailbox workspace, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// Where it stands, such as `root:espw:<its name>`.
    pub path: String,
    /// The id of its logical cluster, which is never given to another.
    pub cluster: String,
    /// The UID of the SyncTarget that it serves.
    pub sync_target_uid: String,
}

/// Why a workspace is not one to register a syncer in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAMailbox {
    /// Its name is no mailbox's.
    #[error(
        "the workspace {path} is not a mailbox (their names look like <cluster>-mb-<SyncTarget UID>); enter one with \
         `kubectl ws`, or name one with --mailbox"
    )]
    Name {
        /// The workspace's path.
        path: String,
    },
    /// It is on its way out.
    #[error("the mailbox {path} is being deleted, so no syncer can be registered in it")]
    Deleting {
        /// The workspace's path.
        path: String,
    },
    /// The server does not say which workspace it is.
    #[error(
        "the workspace does not say its own path and cluster id, so it cannot be told whether it is a mailbox"
    )]
    Silent,
    /// It belongs to another SyncTarget.
    #[error(
        "the mailbox {path} belongs to the SyncTarget {owner:?} and not to {asked:?}; give that name, or another mailbox"
    )]
    OfAnother {
        /// The workspace's path.
        path: String,
        /// Whose it is.
        owner: String,
        /// Who was named.
        asked: String,
    },
}

impl Mailbox {
    /// The mailbox whose own LogicalCluster this is.
    pub fn identify(seen: &LogicalCluster) -> Result<Self, NotAMailbox> {
        let annotations = seen.metadata.annotations.as_ref();
        let of = |name: &str| annotations.and_then(|all| all.get(name)).filter(|text| !text.is_empty());
        let (Some(path), Some(cluster)) = (of(annotation::KCP_PATH), of(annotation::KCP_CLUSTER)) else {
            return Err(NotAMailbox::Silent);
        };
        let Ok(name) = workspace_name(path).parse::<MailboxName>() else {
            return Err(NotAMailbox::Name { path: path.clone() });
        };
        if seen.metadata.deletion_timestamp.is_some() {
            return Err(NotAMailbox::Deleting { path: path.clone() });
        }
        Ok(Self { path: path.clone(), cluster: cluster.clone(), sync_target_uid: name.sync_target_uid })
    }

    /// The path of the workspace that it stands in, if it stands in one.
    pub fn parent(&self) -> Option<&str> {
        self.path.rsplit_once(':').map(|(parent, _)| parent)
    }

    /// The last word of its path.
    pub fn name(&self) -> &str {
        workspace_name(&self.path)
    }

    /// Checks that it is the mailbox of the SyncTarget with this name, as far as its parent says whose it is.
    pub fn check_owner(&self, owner: Option<&str>, asked: &str) -> Result<(), NotAMailbox> {
        match owner {
            Some(owner) if owner != asked => Err(NotAMailbox::OfAnother {
                path: self.path.clone(),
                owner: owner.to_owned(),
                asked: asked.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// The path of the workspace that `--mailbox` names: a path of its own, or a name below the provider workspace.
pub fn path_of(mailbox: &str, provider: &str) -> String {
    if mailbox.contains(':') { mailbox.to_owned() } else { format!("{provider}:{mailbox}") }
}

fn workspace_name(path: &str) -> &str {
    path.rsplit(':').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "f99e773f-3db2-439e-8054-827c4ac55368";

    fn seen(path: &str, deleting: bool) -> LogicalCluster {
        let mut object = json!({ "metadata": { "name": "cluster",
            "annotations": { "kcp.io/path": path, "kcp.io/cluster": "2sxa8riw5xha32po" } } });
        if deleting {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_mailbox_is_known_by_its_own_path() {
        let path = format!("root:espw:niqdko2g2pwoadfb-mb-{UID}");
        let mailbox = Mailbox::identify(&seen(&path, false)).unwrap();
        assert_eq!((mailbox.cluster.as_str(), mailbox.sync_target_uid.as_str()), ("2sxa8riw5xha32po", UID));
        assert_eq!((mailbox.parent(), mailbox.name()), (Some("root:espw"), &path[10..]));
        assert_eq!(mailbox.check_owner(None, "guilder"), Ok(()));
        assert_eq!(mailbox.check_owner(Some("guilder"), "guilder"), Ok(()));
        let told = mailbox.check_owner(Some("florin"), "guilder").unwrap_err().to_string();
        assert!(told.contains("\"florin\"") && told.contains("\"guilder\""), "{told}");
    }

    #[test]
    fn what_is_no_mailbox_is_refused_with_the_reason() {
        let mailbox = format!("root:espw:a-mb-{UID}");
        for (seen, words) in [
            (seen("root:espw", false), "root:espw is not a mailbox"),
            (seen("root", false), "root is not a mailbox"),
            (seen(&mailbox, true), "is being deleted"),
            (LogicalCluster::default(), "does not say its own path"),
        ] {
            let told = Mailbox::identify(&seen).expect_err(words).to_string();
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn a_mailbox_is_named_by_path_or_below_the_provider() {
        assert_eq!(path_of("a-mb-b", "root:espw"), "root:espw:a-mb-b");
        assert_eq!(path_of("root:mine:a-mb-b", "root:espw"), "root:mine:a-mb-b");
    }
}
