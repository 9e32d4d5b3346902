//! What a container sees of the machine: a root of its own, its volumes, a user and its capabilities.
//!
//! There are no images, so the root borrows the machine's `/usr` and little else, read-only. Everything is done by a
//! shell script that runs in fresh mount, process and host-name namespaces and ends by becoming the program: the
//! program is process 1 there, as in any container, and the machine's own mounts are never touched.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod};

use super::Blocked;
use super::environment::Environment;
use super::volumes::Ownership;

/// What the script's own commands are found by, in the machine's root and in the container's.
const TOOLS_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What a container may do that says nothing about it: the runtimes' common default.
const DEFAULT_CAPABILITIES: [&str; 14] = [
    "chown",
    "dac_override",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "net_bind_service",
    "net_raw",
    "sys_chroot",
    "mknod",
    "audit_write",
    "setfcap",
];

/// The parts of the root that every container has. `$root` is set before.
const COMMON_ROOT: &str = r#"
mkdir -p "$root/dev" "$root/etc" "$root/home" "$root/proc" "$root/root" "$root/run" "$root/sys" "$root/tmp" "$root/var"
chmod 1777 "$root/tmp"
ln -s ../run "$root/var/run"
mount --bind "$root" "$root"
for name in usr bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then
    ln -s "$(readlink "/$name")" "$root/$name"
  elif [ -d "/$name" ]; then
    mkdir "$root/$name"
    mount -o bind,ro "/$name" "$root/$name"
  fi
done
for name in group hosts ld.so.cache localtime nsswitch.conf passwd resolv.conf; do
  if [ -e "/etc/$name" ]; then cp -L "/etc/$name" "$root/etc/$name"; fi
done
for name in alternatives ca-certificates pki ssl; do
  if [ -d "/etc/$name" ]; then
    mkdir "$root/etc/$name"
    mount -o bind,ro "/etc/$name" "$root/etc/$name"
  fi
done
mount -t tmpfs -o mode=755,size=1m tmpfs "$root/dev"
for name in null zero full random urandom tty; do
  : > "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
mkdir "$root/dev/shm"
mount -t tmpfs -o mode=1777,size=64m tmpfs "$root/dev/shm"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -o bind,ro /sys "$root/sys"
"#;

/// All that is needed to run one container once.
#[derive(Debug)]
pub(super) struct Sandbox {
    /// Where its root is built: a folder that does not exist yet.
    pub(super) root: PathBuf,
    pub(super) host_name: String,
    pub(super) mounts: Vec<Mount>,
    pub(super) read_only_root: bool,
    pub(super) identity: Identity,
    pub(super) working_directory: String,
    pub(super) environment: Environment,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
}

/// Something of the machine's that the container sees.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mount {
    /// Where the container sees it.
    pub(super) target: String,
    pub(super) source: PathBuf,
    pub(super) read_only: bool,
}

/// Who the container runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) more_groups: Vec<u32>,
    /// What it may ever hold; nothing is taken away if this is absent (a privileged container).
    pub(super) capabilities: Option<Vec<String>>,
    pub(super) may_gain_privileges: bool,
}

impl Identity {
    /// Who `container` is to run as; `image_user` is the user that its image names.
    pub(super) fn of(pod: &Pod, container: &Container, image_user: (u32, u32)) -> Result<Self, Blocked> {
        let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let own = container.security_context.as_ref();
        let user = own.and_then(|own| own.run_as_user).or_else(|| of_pod.and_then(|pod| pod.run_as_user));
        let group = own.and_then(|own| own.run_as_group).or_else(|| of_pod.and_then(|pod| pod.run_as_group));
        let must_not_be_root =
            own.and_then(|own| own.run_as_non_root).or_else(|| of_pod.and_then(|pod| pod.run_as_non_root));
        let (user, group) = match (user, group) {
            (None, None) => image_user,
            (None, Some(group)) => (image_user.0, id(group)?),
            (Some(user), group) => (id(user)?, group.map_or(Ok(0), id)?),
        };
        if must_not_be_root == Some(true) && user == 0 {
            return Err(Blocked::config("container has runAsNonRoot and image will run as root"));
        }
        let wanted = of_pod.and_then(|pod| pod.supplemental_groups.clone()).unwrap_or_default();
        let wanted = wanted.into_iter().chain(of_pod.and_then(|pod| pod.fs_group));
        let privileged = own.and_then(|own| own.privileged) == Some(true);
        Ok(Self {
            user,
            group,
            more_groups: wanted.map(id).collect::<Result<_, _>>()?,
            capabilities: (!privileged).then(|| capabilities(container)),
            may_gain_privileges: own.and_then(|own| own.allow_privilege_escalation) != Some(false),
        })
    }

    fn setpriv_options(&self) -> Vec<String> {
        let mut options = vec![
            format!("--reuid={}", self.user),
            format!("--regid={}", self.group),
            // Set here as well: a change of user clears what was set before.
            "--pdeathsig=KILL".to_owned(),
        ];
        let groups: Vec<String> = self.more_groups.iter().map(u32::to_string).collect();
        options.push(if groups.is_empty() {
            "--clear-groups".to_owned()
        } else {
            format!("--groups={}", groups.join(","))
        });
        if let Some(capabilities) = &self.capabilities {
            let added = capabilities.iter().map(|name| format!("+{name}"));
            let bounds: Vec<String> = std::iter::once("-all".to_owned()).chain(added).collect();
            options.push(format!("--bounding-set={}", bounds.join(",")));
            options.push("--inh-caps=-all".to_owned());
        }
        if !self.may_gain_privileges {
            options.push("--no-new-privs".to_owned());
        }
        options
    }
}

/// Who owns the files of a Pod's volumes.
pub(super) fn ownership(pod: &Pod) -> Result<Ownership, Blocked> {
    let Some(spec) = &pod.spec else { return Ok(Ownership::default()) };
    let of_pod = spec.security_context.as_ref();
    let user_of = |container: &Container| {
        let own = container.security_context.as_ref().and_then(|own| own.run_as_user);
        own.or_else(|| of_pod.and_then(|pod| pod.run_as_user))
    };
    let mut users = spec.init_containers.iter().flatten().chain(&spec.containers).map(user_of);
    let first = users.next().flatten();
    let common = first.filter(|first| users.all(|user| user == Some(*first)));
    let group = of_pod.and_then(|pod| pod.fs_group);
    Ok(Ownership { user: common.map(id).transpose()?, group: group.map(id).transpose()? })
}

impl Sandbox {
    /// The script that makes the sandbox and becomes the program.
    ///
    /// The environment stands at the very end and reaches the program alone, since a shell would drop names that
    /// are no identifiers of its own and add some that nobody asked for.
    pub(super) fn script(&self) -> String {
        let mut script = format!(
            "set -eu\numask 022\nPATH={TOOLS_PATH}\nroot={}\nprintf %s {} > /proc/sys/kernel/hostname\n{COMMON_ROOT}",
            quoted(&self.root.to_string_lossy()),
            quoted(&self.host_name),
        );
        // A mount inside another one must come after it.
        let mut mounts = self.mounts.clone();
        mounts.sort_by_key(|mount| (Path::new(&mount.target).components().count(), mount.target.clone()));
        for mount in &mounts {
            add_mount(&mut script, mount);
        }
        let directory = quoted(&self.working_directory);
        // Writing to a String cannot fail.
        let _ = writeln!(script, "mkdir -p \"$root\"{directory}");
        if self.read_only_root {
            script.push_str("mount -o remount,bind,ro \"$root\"\n");
        }
        script.push_str("exec chroot \"$root\" setpriv");
        for option in self.identity.setpriv_options() {
            let _ = write!(script, " {option}");
        }
        let _ = write!(script, " env -i -C {directory}");
        for (name, value) in &self.environment {
            let _ = write!(script, " {}", quoted(&format!("{name}={value}")));
        }
        for word in &self.command {
            let _ = write!(script, " {}", quoted(word));
        }
        script.push('\n');
        script
    }
}

fn add_mount(script: &mut String, mount: &Mount) {
    let target = quoted(&mount.target);
    let source = quoted(&mount.source.to_string_lossy());
    let options = if mount.read_only { "bind,ro" } else { "bind" };
    let _ = writeln!(
        script,
        "if [ -d {source} ]; then mkdir -p \"$root\"{target}; else mkdir -p \"$(dirname \"$root\"{target})\"; \
         [ -e \"$root\"{target} ] || : > \"$root\"{target}; fi\n\
         mount -o {options} {source} \"$root\"{target}"
    );
}

fn capabilities(container: &Container) -> Vec<String> {
    let wishes = container.security_context.as_ref().and_then(|own| own.capabilities.as_ref());
    let names = |list: Option<&Vec<String>>| -> Vec<String> {
        let plain = |name: &String| name.to_lowercase().trim_start_matches("cap_").to_owned();
        list.into_iter().flatten().map(plain).collect()
    };
    let dropped = names(wishes.and_then(|wishes| wishes.drop.as_ref()));
    let added = names(wishes.and_then(|wishes| wishes.add.as_ref()));
    let is_kept = |name: &&str| !dropped.iter().any(|dropped| dropped == "all" || dropped == name);
    let mut capabilities: Vec<String> =
        DEFAULT_CAPABILITIES.iter().copied().filter(is_kept).map(str::to_owned).collect();
    capabilities.extend(added);
    capabilities
}

fn id(number: i64) -> Result<u32, Blocked> {
    u32::try_from(number).map_err(|_| Blocked::config(format!("{number} is no user or group")))
}

/// One word of a shell's, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn identity(pod: &Value, container: &Value, image_user: (u32, u32)) -> Result<Identity, Blocked> {
        let pod: Pod =
            serde_json::from_value(json!({ "spec": { "containers": [], "securityContext": pod } })).unwrap();
        let container = json!({ "name": "c", "securityContext": container });
        Identity::of(&pod, &serde_json::from_value(container).unwrap(), image_user)
    }

    #[test]
    fn the_container_speaks_before_the_pod_and_the_pod_before_the_image() {
        let users = |pod, container, image| {
            let seen = identity(&pod, &container, image).unwrap();
            (seen.user, seen.group)
        };
        assert_eq!(users(json!({}), json!({}), (65532, 65532)), (65532, 65532));
        assert_eq!(users(json!({ "runAsUser": 7, "runAsGroup": 8 }), json!({}), (0, 0)), (7, 8));
        assert_eq!(
            users(json!({ "runAsUser": 7, "runAsGroup": 8 }), json!({ "runAsUser": 9 }), (0, 0)),
            (9, 8)
        );
        assert_eq!(users(json!({ "runAsUser": 7 }), json!({}), (1, 1)), (7, 0));
    }

    #[test]
    fn a_container_that_must_not_be_root_and_would_be_does_not_start() {
        let blocked = identity(&json!({ "runAsNonRoot": true }), &json!({}), (0, 0)).unwrap_err();
        assert!(blocked.message.contains("runAsNonRoot"), "{blocked:?}");
        assert!(identity(&json!({ "runAsNonRoot": true }), &json!({}), (65532, 65532)).is_ok());
    }

    #[test]
    fn capabilities_are_dropped_and_added_by_name() {
        let of = |wishes: Value| {
            identity(&json!({}), &json!({ "capabilities": wishes }), (0, 0)).unwrap().capabilities
        };
        assert_eq!(of(json!({ "drop": ["ALL"] })), Some(vec![]));
        assert_eq!(
            of(json!({ "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] })),
            Some(vec!["net_bind_service".into()])
        );
        let without_raw = of(json!({ "drop": ["CAP_NET_RAW"] })).unwrap();
        assert_eq!(without_raw.len(), DEFAULT_CAPABILITIES.len() - 1, "{without_raw:?}");
        assert_eq!(identity(&json!({}), &json!({ "privileged": true }), (0, 0)).unwrap().capabilities, None);
    }

    #[test]
    fn files_belong_to_the_user_that_all_containers_have_in_common() {
        let owner = |first: Value, second: Value| {
            let container = |user: Value| json!({ "name": "c", "securityContext": { "runAsUser": user } });
            let spec = json!({
                "containers": [container(first), container(second)], "securityContext": { "fsGroup": 5 },
            });
            ownership(&serde_json::from_value(json!({ "spec": spec })).unwrap()).unwrap()
        };
        assert_eq!(owner(json!(3), json!(3)), Ownership { user: Some(3), group: Some(5) });
        assert_eq!(owner(json!(3), json!(4)), Ownership { user: None, group: Some(5) });
        assert_eq!(owner(Value::Null, json!(4)), Ownership { user: None, group: Some(5) });
    }

    #[test]
    fn any_text_is_one_word_to_the_shell() {
        let text = "it's $HOME `id` \"x\"\n; \\";
        let output =
            std::process::Command::new("sh").args(["-c", &format!("printf %s {}", quoted(text))]).output();
        assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), text);
    }
}
