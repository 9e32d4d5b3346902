//! The volumes of a Pod: what is in them, and how it gets there.
//!
//! Files of Secrets, ConfigMaps, the downward API and tokens change as the kubelet's own do: everything new is
//! written to a fresh folder, and one rename of the symbolic link `..data` shows it all at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Component, Path, PathBuf};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, ServiceAccountTokenProjection, Volume,
    VolumeProjection,
};
use kube::ResourceExt as _;

use super::Blocked;
use super::environment::{Known, find, pod_field};
use crate::error::{Doing, Result};

const DEFAULT_MODE: i32 = 0o644;
const DATA_LINK: &str = "..data";
const NEW_DATA_LINK: &str = "..data_tmp";

/// What one volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// A folder that belongs to the Pod.
    Empty,
    /// Files that follow API objects, mounted read-only.
    Files(Files),
}

/// Files by their paths in the volume.
pub(super) type Files = BTreeMap<String, File>;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    bytes: Vec<u8>,
    mode: u32,
    /// A token belongs to the containers' user; all other files belong to root, as the kubelet's do.
    is_token: bool,
}

/// Who may read a Pod's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ownership {
    /// The user of all containers, if they have one in common: token files belong to it.
    pub(super) user: Option<u32>,
    /// `fsGroup`.
    pub(super) group: Option<u32>,
}

/// Tokens that were asked for, by the way that a volume asks for them.
pub(super) type Tokens = BTreeMap<TokenWish, String>;

/// What a token is to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TokenWish {
    pub(super) audience: Option<String>,
    pub(super) expiration_seconds: i64,
}

impl TokenWish {
    fn of(projection: &ServiceAccountTokenProjection) -> Self {
        let audience = projection.audience.clone().filter(|audience| !audience.is_empty());
        Self { audience, expiration_seconds: projection.expiration_seconds.unwrap_or(3600) }
    }
}

/// The tokens that a Pod's volumes hold.
pub(super) fn token_wishes(pod: &Pod) -> BTreeSet<TokenWish> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let sources = volumes.filter_map(|volume| volume.projected.as_ref()?.sources.as_ref()).flatten();
    sources.filter_map(|source| source.service_account_token.as_ref()).map(TokenWish::of).collect()
}

/// What is in a volume now.
pub(super) fn content(
    pod: &Pod,
    volume: &Volume,
    known: &Known,
    tokens: &Tokens,
    ownership: Ownership,
) -> Result<Content, Blocked> {
    let namespace = pod.namespace().unwrap_or_default();
    if volume.empty_dir.is_some() {
        return Ok(Content::Empty);
    }
    let mut files = Files::new();
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        let found = find(&known.secrets, "secret", &namespace, name, source.optional)?;
        let data = found.map(secret_data).unwrap_or_default();
        let selection = Selection {
            items: source.items.as_deref(),
            mode: source.default_mode,
            optional: source.optional,
        };
        selection.add(&mut files, &data, name)?;
    } else if let Some(source) = &volume.config_map {
        let found = find(&known.config_maps, "configmap", &namespace, &source.name, source.optional)?;
        let data = found.map(config_map_data).unwrap_or_default();
        let selection = Selection {
            items: source.items.as_deref(),
            mode: source.default_mode,
            optional: source.optional,
        };
        selection.add(&mut files, &data, &source.name)?;
    } else if let Some(source) = &volume.downward_api {
        for item in source.items.iter().flatten() {
            add_field(&mut files, pod, item, source.default_mode)?;
        }
    } else if let Some(source) = &volume.projected {
        for projection in source.sources.iter().flatten() {
            let place = Projection { pod, known, tokens, ownership, default_mode: source.default_mode };
            place.add(&mut files, projection)?;
        }
    } else {
        let message = format!("volume {} is of a kind that is not played by this kubelet", volume.name);
        return Err(Blocked::creating(message));
    }
    Ok(Content::Files(files))
}

/// Makes `folder` show `files`, all at once.
pub(super) fn write_files(folder: &Path, files: &Files, ownership: Ownership, number: u64) -> Result<()> {
    fs::create_dir_all(folder).doing("creating", folder)?;
    set_owner(folder, 0o755, None, ownership.group)?;
    let generation = format!("..{number:010}");
    let new_folder = folder.join(&generation);
    for (path, file) in files {
        let target = new_folder.join(path);
        let parent = target.parent().unwrap_or(&new_folder);
        fs::create_dir_all(parent).doing("creating", parent)?;
        fs::write(&target, &file.bytes).doing("writing", &target)?;
        let owner = ownership.user.filter(|_| file.is_token);
        let mode = if ownership.group.is_some() { file.mode | 0o440 } else { file.mode };
        set_owner(&target, mode, owner, ownership.group)?;
    }
    fs::create_dir_all(&new_folder).doing("creating", &new_folder)?;
    let old_folder = fs::read_link(folder.join(DATA_LINK)).ok();
    let new_link = folder.join(NEW_DATA_LINK);
    symlink(&generation, &new_link).doing("linking", &new_link)?;
    fs::rename(&new_link, folder.join(DATA_LINK)).doing("renaming", &new_link)?;
    link_names(folder, files)?;
    if let Some(old) = old_folder {
        let old = folder.join(old);
        fs::remove_dir_all(&old).doing("removing", &old)?;
    }
    Ok(())
}

/// Makes an `emptyDir` that everybody may write to, as the kubelet's are.
pub(super) fn make_empty(folder: &Path, ownership: Ownership) -> Result<()> {
    fs::create_dir_all(folder).doing("creating", folder)?;
    let mode = if ownership.group.is_some() { 0o2777 } else { 0o777 };
    set_owner(folder, mode, None, ownership.group)
}

fn set_owner(path: &Path, mode: u32, user: Option<u32>, group: Option<u32>) -> Result<()> {
    chown(path, user, group).doing("giving away", path)?;
    // After the owner: the kernel clears bits of the mode when that changes.
    fs::set_permissions(path, Permissions::from_mode(mode)).doing("setting the mode of", path)
}

/// The names by which a container knows the files are links through `..data`, and so never change.
fn link_names(folder: &Path, files: &Files) -> Result<()> {
    let wanted: BTreeSet<PathBuf> = files.keys().filter_map(|path| first_component(path)).collect();
    for name in &wanted {
        let link = folder.join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA_LINK).join(name), &link).doing("linking", &link)?;
        }
    }
    for entry in fs::read_dir(folder).doing("listing", folder)?.flatten() {
        let name = PathBuf::from(entry.file_name());
        let is_ours = name.to_string_lossy().starts_with("..");
        if !is_ours && !wanted.contains(&name) {
            fs::remove_file(entry.path()).doing("removing", &entry.path())?;
        }
    }
    Ok(())
}

fn first_component(path: &str) -> Option<PathBuf> {
    match Path::new(path).components().next()? {
        Component::Normal(name) => Some(PathBuf::from(name)),
        _ => None,
    }
}

type Data<'a> = BTreeMap<&'a str, &'a [u8]>;

fn secret_data(secret: &Secret) -> Data<'_> {
    secret.data.iter().flatten().map(|(key, ByteString(value))| (key.as_str(), value.as_slice())).collect()
}

fn config_map_data(config_map: &ConfigMap) -> Data<'_> {
    let texts = config_map.data.iter().flatten().map(|(key, value)| (key.as_str(), value.as_bytes()));
    let binaries = config_map.binary_data.iter().flatten();
    texts.chain(binaries.map(|(key, ByteString(value))| (key.as_str(), value.as_slice()))).collect()
}

/// Which keys of an object become which files.
struct Selection<'a> {
    items: Option<&'a [KeyToPath]>,
    mode: Option<i32>,
    optional: Option<bool>,
}

impl Selection<'_> {
    fn add(&self, files: &mut Files, data: &Data<'_>, name: &str) -> Result<(), Blocked> {
        let Some(items) = self.items.filter(|items| !items.is_empty()) else {
            for (key, bytes) in data {
                files.insert((*key).to_owned(), file(bytes, self.mode));
            }
            return Ok(());
        };
        for item in items {
            match data.get(item.key.as_str()) {
                Some(bytes) => {
                    files.insert(item.path.clone(), file(bytes, item.mode.or(self.mode)));
                }
                None if self.optional == Some(true) => {}
                None => {
                    let message = format!("references non-existent key {} of {name}", item.key);
                    return Err(Blocked::creating(message));
                }
            }
        }
        Ok(())
    }
}

struct Projection<'a> {
    pod: &'a Pod,
    known: &'a Known,
    tokens: &'a Tokens,
    ownership: Ownership,
    default_mode: Option<i32>,
}

impl Projection<'_> {
    fn add(&self, files: &mut Files, source: &VolumeProjection) -> Result<(), Blocked> {
        let namespace = self.pod.namespace().unwrap_or_default();
        let mode = self.default_mode;
        if let Some(source) = &source.secret {
            let found = find(&self.known.secrets, "secret", &namespace, &source.name, source.optional)?;
            let selection = Selection { items: source.items.as_deref(), mode, optional: source.optional };
            selection.add(files, &found.map(secret_data).unwrap_or_default(), &source.name)
        } else if let Some(source) = &source.config_map {
            let found =
                find(&self.known.config_maps, "configmap", &namespace, &source.name, source.optional)?;
            let selection = Selection { items: source.items.as_deref(), mode, optional: source.optional };
            selection.add(files, &found.map(config_map_data).unwrap_or_default(), &source.name)
        } else if let Some(source) = &source.downward_api {
            source.items.iter().flatten().try_for_each(|item| add_field(files, self.pod, item, mode))
        } else if let Some(source) = &source.service_account_token {
            let token = self.tokens.get(&TokenWish::of(source));
            let token = token.ok_or_else(|| Blocked::creating("a token has not been issued yet"))?;
            let private = self.ownership.user.is_some() || self.ownership.group.is_some();
            let mode = if private { Some(0o600) } else { mode };
            files.insert(source.path.clone(), File { is_token: true, ..file(token.as_bytes(), mode) });
            Ok(())
        } else {
            Err(Blocked::creating("a projected source is of a kind that is not played by this kubelet"))
        }
    }
}

fn add_field(
    files: &mut Files,
    pod: &Pod,
    item: &DownwardAPIVolumeFile,
    mode: Option<i32>,
) -> Result<(), Blocked> {
    let Some(selector) = &item.field_ref else {
        return Err(Blocked::creating(format!(
            "{}: resource fields are not played by this kubelet",
            item.path
        )));
    };
    let value = pod_field(pod, selector)?;
    files.insert(item.path.clone(), file(value.as_bytes(), item.mode.or(mode)));
    Ok(())
}

fn file(bytes: &[u8], mode: Option<i32>) -> File {
    let mode = u32::try_from(mode.unwrap_or(DEFAULT_MODE)).unwrap_or(0o644);
    File { bytes: bytes.to_vec(), mode, is_token: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("mailboat-volumes-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn files(entries: &[(&str, &str)]) -> Files {
        entries.iter().map(|(path, text)| ((*path).to_owned(), file(text.as_bytes(), None))).collect()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn new_files_appear_under_the_same_names_and_removed_ones_go() {
        let scratch = Scratch::new("swap");
        let folder = &scratch.0;
        write_files(
            folder,
            &files(&[("token", "one"), ("deep/er", "x"), ("old", "y")]),
            Ownership::default(),
            1,
        )
        .unwrap();
        let inode = |name: &str| {
            use std::os::unix::fs::MetadataExt as _;
            fs::symlink_metadata(folder.join(name)).unwrap().ino()
        };
        let before = inode("token");
        write_files(folder, &files(&[("token", "two"), ("deep/er", "x")]), Ownership::default(), 2).unwrap();
        assert_eq!(fs::read_to_string(folder.join("token")).unwrap(), "two");
        assert_eq!(fs::read_to_string(folder.join("deep/er")).unwrap(), "x");
        assert_eq!(inode("token"), before, "the link that the container opens must not change");
        assert_eq!(names(folder), ["..0000000002", "..data", "deep", "token"]);
    }

    #[test]
    fn an_object_without_keys_makes_an_empty_volume() {
        let scratch = Scratch::new("empty");
        write_files(&scratch.0, &Files::new(), Ownership::default(), 1).unwrap();
        assert_eq!(names(&scratch.0), ["..0000000001", "..data"]);
    }

    #[test]
    fn keys_are_chosen_renamed_and_given_modes() {
        let items: Vec<KeyToPath> = serde_json::from_value(serde_json::json!([
            { "key": "a", "path": "x/a", "mode": 0o400 }, { "key": "b", "path": "b" },
        ]))
        .unwrap();
        let data: Data<'_> = [("a", b"1".as_slice()), ("b", b"2"), ("c", b"3")].into();
        let selection = Selection { items: Some(&items), mode: Some(0o640), optional: None };
        let mut chosen = Files::new();
        selection.add(&mut chosen, &data, "keys").unwrap();
        let seen: Vec<_> = chosen.iter().map(|(path, file)| (path.as_str(), file.mode)).collect();
        assert_eq!(seen, [("b", 0o640), ("x/a", 0o400)]);
        let blocked = selection.add(&mut chosen, &[("a", b"1".as_slice())].into(), "keys").unwrap_err();
        assert!(blocked.message.contains("key b of keys"), "{blocked:?}");
    }
}
