//! `mailboat link`: the program's other names, as symbolic links.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::called::ALIASES;
use crate::failure::refusal;
use crate::flags::LinkArguments;

/// Makes the links.
pub fn run(arguments: &LinkArguments) -> Result<()> {
    let program = std::env::current_exe().context("this program cannot find its own file")?;
    for name in make(&program, &arguments.folder)? {
        println!("{}", arguments.folder.join(name).display());
    }
    Ok(())
}

/// Links every name that has a command to `program`, and gives back the names. What is not a link of ours is left
/// alone: then nothing is linked at all.
fn make(program: &Path, folder: &Path) -> Result<Vec<&'static str>> {
    if !folder.is_dir() {
        return Err(refusal(format!("{} is not a folder; make it first", folder.display())));
    }
    let names: Vec<&str> =
        ALIASES.iter().filter(|alias| alias.words.is_some()).map(|alias| alias.name).collect();
    for name in &names {
        let link = folder.join(name);
        match fs::symlink_metadata(&link) {
            Ok(found) if !found.is_symlink() => {
                let sentence = format!(
                    "{} is there and not a link; remove it, or choose another folder",
                    link.display()
                );
                return Err(refusal(sentence));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{} cannot be looked at", link.display()));
            }
            _ => {}
        }
    }
    for name in &names {
        let link = folder.join(name);
        if fs::read_link(&link).is_ok_and(|target| target == program) {
            continue;
        }
        // Made beside its place and moved there, so that the name always leads somewhere.
        let fresh = folder.join(format!(".{name}.new"));
        let _ = fs::remove_file(&fresh);
        let made = symlink(program, &fresh).and_then(|()| fs::rename(&fresh, &link));
        made.with_context(|| format!("{} cannot be made", link.display()))?;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Refusal;

    #[test]
    fn names_with_a_command_are_linked_and_linking_again_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new("/usr/bin/mailboat");
        let names = make(program, folder.path()).unwrap();
        assert_eq!(make(program, folder.path()).unwrap(), names);
        let mut found: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "emc-customize",
                "kubectl-kcp-workload-edge_sync",
                "kubectl-kubestellar",
                "kubectl-kubestellar-syncer_gen",
                "kubectl-mailboat",
                "kubectl-ws",
                "kubectl_complete-kubestellar",
                "kubectl_complete-mailboat",
                "kubectl_complete-ws",
                "kubestellar",
                "kubestellar-list-syncing-objects",
                "kubestellar-release",
                "kubestellar-version"
            ]
        );
        for name in names {
            assert_eq!(fs::read_link(folder.path().join(name)).unwrap(), program, "{name}");
        }
    }

    #[test]
    fn somebody_elses_program_is_left_alone_and_then_nothing_is_linked() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kubectl-kubestellar-syncer_gen"), "theirs").unwrap();
        let error = make(Path::new("/usr/bin/mailboat"), folder.path()).unwrap_err();
        assert!(error.is::<Refusal>() && error.to_string().contains("not a link"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let missing = make(Path::new("/usr/bin/mailboat"), &folder.path().join("missing")).unwrap_err();
        assert!(missing.is::<Refusal>(), "{missing}");
    }

    #[test]
    fn a_link_to_an_older_program_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/old/mailboat", folder.path().join("kubectl-mailboat")).unwrap();
        make(Path::new("/usr/bin/mailboat"), folder.path()).unwrap();
        let target = fs::read_link(folder.path().join("kubectl-mailboat")).unwrap();
        assert_eq!(target, Path::new("/usr/bin/mailboat"));
    }
}
