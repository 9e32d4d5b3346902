//! What stands for images: programs of this machine, found by the paths under which containers call them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::Container;

use super::Blocked;
use super::sandbox::Mount;

/// Stands for one image: its programs, what it runs by itself, and as whom.
#[derive(Debug, Clone, Default)]
pub struct Image {
    pub(super) programs: BTreeMap<String, PathBuf>,
    pub(super) entrypoint: Vec<String>,
    pub(super) user: (u32, u32),
}

impl Image {
    /// An image with nothing in it, run as root.
    pub fn new() -> Self {
        Self::default()
    }

    /// A program: the absolute path that containers see it under, and the file of this machine that it is.
    #[must_use]
    pub fn program(mut self, path_in_image: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        self.programs.insert(path_in_image.into(), file.into());
        self
    }

    /// What a container without a command of its own runs.
    #[must_use]
    pub fn entrypoint<Word: Into<String>>(mut self, command: impl IntoIterator<Item = Word>) -> Self {
        self.entrypoint = command.into_iter().map(Into::into).collect();
        self
    }

    /// The user and group that the image runs as, unless the manifest says otherwise.
    #[must_use]
    pub fn user(mut self, user: u32, group: u32) -> Self {
        self.user = (user, group);
        self
    }

    /// The image's programs, where a container sees them.
    pub(super) fn mounts(&self) -> impl Iterator<Item = Mount> {
        let mount = |(path, file): (&String, &PathBuf)| Mount {
            target: path.clone(),
            source: file.clone(),
            read_only: true,
        };
        self.programs.iter().map(mount)
    }
}

/// All images that a kubelet has.
#[derive(Debug, Clone, Default)]
pub(super) struct Images {
    /// By repository, without tag or digest.
    pub(super) named: BTreeMap<String, Image>,
    /// Programs that stand in for any image whose containers call them.
    pub(super) any: Image,
}

impl Images {
    /// What stands for the image of `container`.
    pub(super) fn of(&self, container: &Container) -> Result<&Image, Blocked> {
        let reference = container.image.as_deref().unwrap_or_default();
        let named = self.named.iter().find(|(repository, _)| {
            let rest = reference.strip_prefix(repository.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '@']))
        });
        if let Some((_, image)) = named {
            return Ok(image);
        }
        let program = container.command.iter().flatten().next();
        if program.is_some_and(|program| self.any.programs.contains_key(program)) {
            return Ok(&self.any);
        }
        let message =
            format!("no program of this machine stands for image {reference:?}, command {program:?}");
        Err(Blocked { reason: "ErrImageNeverPull", message })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_image_is_found_by_its_repository_and_else_by_the_command() {
        let images = Images {
            named: [("example.org/boat".to_owned(), Image::new().user(1, 1))].into(),
            any: Image::new().program("/bin/row", "/usr/bin/true").user(2, 2),
        };
        let user = |image: &str, command: &[&str]| {
            let container = json!({ "name": "c", "image": image, "command": command });
            images
                .of(&serde_json::from_value(container).unwrap())
                .map(|image| image.user.0)
                .map_err(|no| no.reason)
        };
        assert_eq!(user("example.org/boat", &[]), Ok(1));
        assert_eq!(user("example.org/boat:v1", &["/bin/row"]), Ok(1));
        assert_eq!(user("example.org/boat@sha256:00", &[]), Ok(1));
        assert_eq!(user("example.org/boathouse:v1", &["/bin/row"]), Ok(2));
        assert_eq!(user("example.org/boathouse:v1", &["/bin/sail"]), Err("ErrImageNeverPull"));
        assert_eq!(user("example.org/boathouse:v1", &[]), Err("ErrImageNeverPull"));
    }
}
