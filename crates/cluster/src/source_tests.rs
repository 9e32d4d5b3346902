use std::io::Write as _;

use super::*;

const GOOD: &str = "
apiVersion: v1
kind: Config
current-context: edge
clusters:
- {name: edge, cluster: {server: 'https://edge.example.com:6443/clusters/root:org'}}
- {name: relative, cluster: {server: edge}}
- {name: badca, cluster: {server: 'https://edge.example.com', certificate-authority-data: aGVsbG8=}}
users:
- {name: admin, user: {token: s3cr3t-token}}
contexts:
- {name: edge, context: {cluster: edge, user: admin}}
- {name: nowhere, context: {cluster: gone, user: admin}}
- {name: nobody, context: {cluster: edge, user: gone}}
- {name: relative, context: {cluster: relative, user: admin}}
- {name: badca, context: {cluster: badca, user: admin}}
";

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn load(path: &Path, context: Option<&str>) -> Result<Loaded, ConfigError> {
    Source::Kubeconfig { path: Some(path.to_owned()), context: context.map(str::to_owned) }.load()
}

fn sentence(path: &Path, context: Option<&str>) -> String {
    match load(path, context) {
        Ok(loaded) => panic!("loaded {}", loaded.config.cluster_url),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_good_kubeconfig_gives_server_and_credential() {
    let file = file(GOOD);
    let loaded = load(file.path(), None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.config.cluster_url.to_string(), "https://edge.example.com:6443/clusters/root:org");
    assert!(loaded.config.auth_info.token.is_some());
}

#[test]
fn a_kubeconfig_of_somebody_elses_names_no_file_program_or_proxy_of_ours() {
    let load = |text: &str| Source::Foreign(Arc::from(text)).load();
    assert!(load(GOOD).is_ok_and(|loaded| loaded.files.is_empty()));
    let user = |entry: &str| GOOD.replace("{token: s3cr3t-token}", entry);
    let cluster = |entry: &str| {
        let server = "{server: 'https://edge.example.com:6443/clusters/root:org'}";
        GOOD.replace(server, &server.replace('}', &format!(", {entry}}}")))
    };
    for (text, what) in [
        (user("{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}"), "exec"),
        (user("{auth-provider: {name: oidc, config: {}}}"), "auth-provider"),
        (user("{tokenFile: /var/run/secrets/token}"), "tokenFile"),
        (user("{client-certificate: /etc/a.pem}"), "client-certificate"),
        (user("{client-key: /etc/a.key}"), "client-key"),
        (cluster("certificate-authority: /etc/ca.pem"), "certificate-authority"),
        (cluster("proxy-url: 'http://10.0.0.1:3128'"), "proxy-url"),
    ] {
        let told = load(&text).err().map(|bad| bad.to_string()).unwrap_or_default();
        assert!(told.contains(what) && told.contains("not allowed"), "{what}: {told}");
        assert!(!told.contains("/etc") && !told.contains("10.0.0.1"), "{told}");
    }
    assert!(load("no: kubeconfig").is_err());
}

#[test]
fn a_token_that_stands_in_a_file_of_its_own_is_found() {
    let of = |text: &str| {
        let file = file(text);
        let source = Source::Kubeconfig { path: Some(file.path().to_owned()), context: None };
        source.token_file().unwrap_or_else(|error| panic!("{error}"))
    };
    assert_eq!(of(&GOOD.replace("token: s3cr3t-token", "tokenFile: /kcp/token")), Some("/kcp/token".into()));
    assert_eq!(of(GOOD), None);
}

#[test]
fn each_bad_kubeconfig_ends_with_one_sentence_without_secrets() {
    let good = file(GOOD);
    let broken = file("clusters:\n- name: a\n  cluster: {server: [s3cr3t-token\n");
    let shape = file("clusters: s3cr3t-token\n");
    let empty = file("");
    let gone = Path::new("/nonexistent/kubeconfig");
    for (text, cause, hint) in [
        (sentence(gone, None), "cannot read the kubeconfig /nonexistent/kubeconfig", "No such file"),
        (sentence(broken.path(), None), "cannot be understood", "kubectl config view"),
        (sentence(shape.path(), None), "cannot be understood (line 1, column", "kubectl config view"),
        (sentence(empty.path(), None), "has no current context", "and no contexts at all"),
        (sentence(good.path(), Some("other")), "no context named \"other\"", "edge, nowhere, nobody"),
        (sentence(good.path(), Some("nowhere")), "no cluster named \"gone\"", "edge, relative"),
        (sentence(good.path(), Some("nobody")), "no user named \"gone\"", "it has: admin"),
        (sentence(good.path(), Some("relative")), "no usable `server`", "https://host:6443"),
        (sentence(good.path(), Some("badca")), "holds no PEM certificate", "correct it in the kubeconfig"),
    ] {
        assert!(text.contains(cause) && text.contains(hint), "{text}");
        assert!(!text.contains("s3cr3t") && !text.contains('\n'), "{text}");
        assert!(!text.contains("--"), "only the caller knows its flags: {text}");
    }
}

#[test]
fn outside_a_pod_there_is_no_service_account() {
    let text = Source::InCluster.load().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("no service account") && !text.contains("--"), "{text}");
}

#[test]
fn a_replaced_file_is_noticed_and_a_removed_one_is_not_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    fs::write(&path, "one").unwrap();
    let mark = Mark::new(path.clone());
    assert!(!mark.changed());
    fs::remove_file(&path).unwrap();
    assert!(!mark.changed(), "a removed file");
    fs::write(&path, "another").unwrap();
    assert!(mark.changed(), "a new file under the same name");
}
