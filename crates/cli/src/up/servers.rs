//! Which servers a kept folder belongs to: those of somebody's own are named once, and used again by every later start.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::folder::Folder;
use super::kubeconfig::Entry;
use crate::failure::refusal;
use crate::flags::UpArguments;

/// The file that says so.
const FILE: &str = "servers.json";
/// How many edges there are if nobody says it.
const EDGES: u16 = 2;

/// The servers of one `mailboat up`: what is not named here is embedded.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Servers {
    /// The kubeconfig of a center of somebody's own.
    pub(super) center: Option<PathBuf>,
    /// How many edges with the names of the embedded ones.
    pub(super) edges: u16,
    /// The kubeconfigs of edges of somebody's own, by their names.
    pub(super) given: BTreeMap<String, PathBuf>,
}

impl Servers {
    /// Those that the flags name, and those that a kept folder belongs to; kept for the next time.
    pub(super) fn settle(arguments: &UpArguments, folder: &Folder) -> Result<Self> {
        let file = folder.file(FILE);
        let kept: Option<Self> = match fs::read(&file) {
            Ok(bytes) => Some(serde_json::from_slice(&bytes).map_err(|error| {
                refusal(format!(
                    "{} says which servers are used here and cannot be read: {error}",
                    file.display()
                ))
            })?),
            Err(_) => None,
        };
        let named = Self::named(arguments)?;
        let servers = match kept {
            Some(kept) => kept.with(named.clone(), arguments.edges).map_err(|why| {
                refusal(format!("{why}; leave the flag out, or name another folder with --data"))
            })?,
            None => named.clone(),
        };
        named.check()?;
        if folder.is_kept() {
            let bytes = serde_json::to_vec_pretty(&servers)?;
            fs::write(&file, bytes).with_context(|| format!("{} cannot be written", file.display()))?;
        }
        Ok(servers)
    }

    fn named(arguments: &UpArguments) -> Result<Self> {
        let whole = |file: &PathBuf| std::path::absolute(file).context("there is no current folder");
        let given = arguments.given.iter().map(|edge| Ok((edge.name.clone(), whole(&edge.kubeconfig)?)));
        Ok(Self {
            center: arguments.center_kubeconfig.as_ref().map(whole).transpose()?,
            edges: arguments.edges.unwrap_or(EDGES),
            given: given.collect::<Result<_>>()?,
        })
    }

    /// What cannot be used is refused before anything is started, or kept for the next time.
    fn check(&self) -> Result<()> {
        let center = self.center.iter().map(|file| (file, "--center-kubeconfig FILE".to_owned()));
        let edges = self.given.iter().map(|(name, file)| (file, format!("--edge {name}=FILE")));
        for (file, flag) in center.chain(edges) {
            Entry::read(file).map_err(|bad| refusal(format!("{bad}; name a kubeconfig with {flag}")))?;
        }
        Ok(())
    }

    /// Those of last time with what is named now. No server may become another: what is kept speaks of the one that it was.
    fn with(mut self, named: Self, edges: Option<u16>) -> Result<Self, String> {
        if let Some(center) = named.center
            && self.center.as_ref() != Some(&center)
        {
            return Err(format!("the center of this folder is {}", told(self.center.as_deref())));
        }
        for (name, file) in named.given {
            let known = self.given.get(&name);
            let is_new = known.is_none() && !super::embedded_names(self.edges).any(|other| other == name);
            if !is_new && known != Some(&file) {
                let known = told(known.map(PathBuf::as_path));
                return Err(format!("the edge {name} of this folder is {known}"));
            }
            self.given.insert(name, file);
        }
        self.edges = edges.unwrap_or(self.edges);
        Ok(self)
    }
}

fn told(file: Option<&Path>) -> String {
    file.map_or_else(|| "an embedded one".to_owned(), |file| format!("that of {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(center: Option<&str>, edges: u16, given: &[(&str, &str)]) -> Servers {
        let given = given.iter().map(|(name, file)| ((*name).to_owned(), PathBuf::from(file))).collect();
        Servers { center: center.map(PathBuf::from), edges, given }
    }

    #[test]
    fn a_later_start_without_flags_goes_on_with_the_servers_of_the_folder() {
        let kept = servers(Some("/kcp"), 3, &[("guilder", "/g")]);
        assert_eq!(kept.clone().with(servers(None, EDGES, &[]), None), Ok(kept));
    }

    #[test]
    fn edges_may_come_and_no_server_may_become_another() {
        let kept = || servers(Some("/kcp"), 2, &[("guilder", "/g")]);
        let more = kept().with(servers(Some("/kcp"), 4, &[("pier", "/p")]), Some(4));
        assert_eq!(more, Ok(servers(Some("/kcp"), 4, &[("guilder", "/g"), ("pier", "/p")])));
        for (named, why) in [
            (servers(Some("/other"), 2, &[]), "the center of this folder is that of /kcp"),
            (servers(None, 2, &[("guilder", "/other")]), "the edge guilder of this folder is that of /g"),
            (servers(None, 2, &[("florin", "/f")]), "the edge florin of this folder is an embedded one"),
        ] {
            assert_eq!(kept().with(named, None), Err(why.to_owned()));
        }
        let embedded = servers(None, 2, &[]).with(servers(Some("/kcp"), 2, &[]), None);
        assert_eq!(embedded, Err("the center of this folder is an embedded one".to_owned()));
    }
}
