//! `mailboat ws`: goes from workspace to workspace by changing where the kubeconfig points to.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use mailboat_api::generate::yaml;
use mailboat_api::kcp::Workspace;
use mailboat_object::key::KindId;
use mailboat_object::wire::FaultKind;
use mailboat_registration::kubeconfig;
use mailboat_registration::workspace::{Destination, ROOT, WorkspacePath, url_of, workspace_of};
use serde_json::{Value, json};

use crate::documents::write_out;
use crate::failure::{before_writing, refusal};
use crate::flags::{ServerFlags, WsArguments, WsCommand};
use crate::output::Output;
use crate::place::{get, list};
use crate::site::{Made, Site, workspace_key};

/// Workspaces within workspaces that `tree` follows.
const DEEPEST: usize = 16;

/// Does what is asked about workspaces.
pub async fn run(arguments: &WsArguments) -> Result<()> {
    let server = &arguments.server;
    if let (Some(path), Some(_)) = (&arguments.path, &arguments.command) {
        return Err(refusal(format!("go to {path:?} first, and do the rest there: it is one or the other")));
    }
    match &arguments.command {
        None => go(server, arguments.path.as_deref()).await,
        Some(WsCommand::Use { path }) => go(server, Some(path)).await,
        Some(WsCommand::Current { short }) => say_where(server, *short).await,
        Some(WsCommand::Tree) => tree(server).await,
        Some(WsCommand::Create { name, type_, enter, ignore_existing }) => {
            let type_ = type_.as_deref().map(workspace_type).transpose()?;
            let site = Site::reach(server).await?;
            let path = named(&site, name)?;
            if site.make_workspace(&path, type_).await? == Made::Before && !ignore_existing {
                return Err(refusal(format!(
                    "the workspace {path} is there already; add --ignore-existing to use it"
                )));
            }
            say!("workspace {path} is ready");
            if *enter { enter_workspace(server, &path) } else { Ok(()) }
        }
        Some(WsCommand::Ensure { path, enter }) => ensure(server, path, *enter).await,
    }
}

async fn go(server: &ServerFlags, word: Option<&str>) -> Result<()> {
    let site = Site::reach(server).await?;
    let home = env::var("HOME").ok();
    let current = site.current();
    let destination = Destination::read(word, current.as_ref(), home.as_deref());
    match destination.map_err(|bad| refusal(bad.to_string()))? {
        Destination::Here => say_where(server, false).await,
        Destination::Previous => {
            let mut file = Kubeconfig::open(server)?;
            kubeconfig::go_back(&mut file.config, &file.context).map_err(|bad| refusal(bad.to_string()))?;
            let at = kubeconfig::server(&file.config, kubeconfig::CURRENT)
                .map_err(|bad| refusal(bad.to_string()))?;
            let at = workspace_of(at).map_or_else(|| at.to_owned(), |path| path.to_string());
            file.write()?;
            write_out(&format!("Current workspace is '{at}'.\n"))
        }
        Destination::Home => {
            let path = home_of(&site).await?;
            enter_workspace(server, &path)
        }
        Destination::Path(path) => {
            site.logical_cluster(&path).await?;
            enter_workspace(server, &path)
        }
    }
}

/// The workspace that kcp keeps for whoever asks.
async fn home_of(site: &Site) -> Result<WorkspacePath> {
    let root = WorkspacePath::parse(ROOT).map_err(|bad| refusal(bad.to_string()))?;
    let found: Result<Option<Workspace>, _> = get(&site.at(&root), workspace_key("~")).await;
    let home = match found {
        Ok(home) => home,
        Err(fault) if matches!(fault.kind, FaultKind::Forbidden | FaultKind::Invalid) => None,
        Err(fault) => return Err(before_writing("your own workspace cannot be found", &fault)),
    };
    let path = home.and_then(|home| workspace_of(&home.spec.url));
    path.ok_or_else(|| refusal("this center keeps no workspace of your own; name one, as root:a:b"))
}

async fn say_where(server: &ServerFlags, short: bool) -> Result<()> {
    let site = Site::reach(server).await?;
    let (path, _) = site.named(None).await?;
    write_out(&if short { format!("{path}\n") } else { format!("Current workspace is '{path}'.\n") })
}

async fn ensure(server: &ServerFlags, word: &str, enter: bool) -> Result<()> {
    let site = Site::reach(server).await?;
    let path = named(&site, word)?;
    let mut missing = Vec::new();
    let mut above = path.clone();
    while above.as_str() != ROOT && site.logical_cluster(&above).await.is_err() {
        missing.push(above.clone());
        above = above.parent().map_err(|bad| refusal(bad.to_string()))?;
    }
    for path in missing.iter().rev() {
        if site.make_workspace(path, None).await? == Made::Now {
            say!("workspace {path} is made");
        }
    }
    if enter { enter_workspace(server, &path) } else { Ok(()) }
}

/// A workspace by its name in the current one, or by its whole path.
fn named(site: &Site, word: &str) -> Result<WorkspacePath> {
    let current = site.current();
    match Destination::read(Some(word), current.as_ref(), None) {
        Ok(Destination::Path(path)) => Ok(path),
        Ok(_) => Err(refusal(format!("{word:?} is no name of a workspace"))),
        Err(bad) => Err(refusal(bad.to_string())),
    }
}

/// A type as kcp writes it, from `name` or `path:name`.
fn workspace_type(word: &str) -> Result<Value> {
    let (path, name) = word.rsplit_once(':').unwrap_or((ROOT, word));
    if name.is_empty() {
        return Err(refusal(format!("{word:?} is no type of workspace; write it as name or path:name")));
    }
    Ok(json!({ "name": name, "path": path }))
}

async fn tree(server: &ServerFlags) -> Result<()> {
    let site = Site::reach(server).await?;
    let (path, _) = site.named(None).await?;
    let mut text = format!("{path}\n");
    grow(&site, &path, "", DEEPEST, &mut text).await?;
    write_out(&text)
}

/// Adds the workspaces in one, and what is in them. Whoever may not look into one sees it without what is in it.
async fn grow(
    site: &Site,
    path: &WorkspacePath,
    indent: &str,
    depth: usize,
    text: &mut String,
) -> Result<()> {
    if depth == 0 {
        return Ok(());
    }
    let kind = KindId::new("tenancy.kcp.io", "workspaces");
    let children = match list(&site.at(path), &kind, "").await {
        Ok(children) => children,
        Err(fault) if matches!(fault.kind, FaultKind::Forbidden | FaultKind::Unserved) => return Ok(()),
        Err(fault) => {
            return Err(before_writing(&format!("the workspaces in {path} cannot be listed"), &fault));
        }
    };
    let last = children.len().saturating_sub(1);
    for (index, child) in children.iter().enumerate() {
        let name = child["metadata"]["name"].as_str().unwrap_or_default();
        let (branch, below) = if index == last { ("└── ", "    ") } else { ("├── ", "│   ") };
        text.extend([indent, branch, name, "\n"]);
        if let Ok(child) = path.child(name) {
            Box::pin(grow(site, &child, &format!("{indent}{below}"), depth - 1, text)).await?;
        }
    }
    Ok(())
}

fn enter_workspace(server: &ServerFlags, path: &WorkspacePath) -> Result<()> {
    let mut file = Kubeconfig::open(server)?;
    let from = kubeconfig::server(&file.config, &file.context).map_err(|bad| refusal(bad.to_string()))?;
    let url = url_of(from, path);
    if from != url {
        kubeconfig::enter(&mut file.config, &file.context, &url).map_err(|bad| refusal(bad.to_string()))?;
        file.write()?;
    }
    write_out(&format!("Current workspace is '{path}'.\n"))
}

/// The kubeconfig file that is changed: the first that has the context.
struct Kubeconfig {
    path: PathBuf,
    config: Value,
    context: String,
}

impl Kubeconfig {
    fn open(flags: &ServerFlags) -> Result<Self> {
        let candidates = match &flags.kubeconfig {
            Some(path) => vec![path.clone()],
            None => default_files(),
        };
        let mut wanted = flags.context.clone();
        for path in candidates {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let Ok(config) = serde_saphyr::from_str::<Value>(&text) else { continue };
            let context = wanted.get_or_insert_with(|| kubeconfig::current_context(&config).to_owned());
            if kubeconfig::server(&config, context).is_ok() {
                let context = context.clone();
                return Ok(Self { path, config, context });
            }
        }
        Err(refusal(
            "no kubeconfig file has both the current context and its cluster, so none can be changed",
        ))
    }

    /// Writes it as a whole, for its owner's eyes; a link to it stays one.
    fn write(&self) -> Result<()> {
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        Output::open(&path)?.write(&yaml(&self.config))
    }
}

fn default_files() -> Vec<PathBuf> {
    match env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(value) => env::split_paths(&value).collect(),
        None => {
            env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config")).into_iter().collect()
        }
    }
}
