//! How we say who we are: a token, a token file that is replaced now and then, a name and password, or a
//! plugin that is run. Client certificates belong to TLS; a plugin may give one of those as well.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;

use crate::source::ConfigError;

/// A credential as it is sent.
#[derive(Default)]
pub(crate) struct Credential {
    pub(crate) authorization: Option<HeaderValue>,
    /// When to ask for a new one, long enough before the old one ends.
    pub(crate) renew_at: Option<Timestamp>,
}

/// A plugin that takes longer has hung, or waits for a person who is not there.
const PLUGIN_TIMEOUT: Duration = Duration::from_mins(1);
const PLUGIN_OUTPUT_LIMIT_BYTES: u64 = 1 << 20;
/// A new credential is asked for this long before the old one ends, or when three quarters of its life have
/// passed, whichever is later.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_secs(60);

/// Resolves what a configuration says about us. What a plugin gives as a certificate is written into `user`,
/// from which the TLS configuration is made.
pub(crate) async fn resolve(user: &mut AuthInfo, place: &str) -> Result<Credential, ConfigError> {
    if let Some(provider) = &user.auth_provider {
        return Err(ConfigError::AuthProvider { name: provider.name.clone(), place: place.to_owned() });
    }
    // As kubectl does: where both are given, the file wins as long as it can be read.
    if let Some(file) = &user.token_file {
        match (tokio::fs::read_to_string(file).await, &user.token) {
            (Ok(token), _) => return bearer(&token, None, place),
            (Err(_), Some(_)) => {}
            (Err(cause), None) => {
                let cause = format!("{file}: {cause}");
                return Err(ConfigError::Credential {
                    what: "the token file",
                    cause,
                    place: place.to_owned(),
                });
            }
        }
    }
    if let Some(token) = &user.token {
        return bearer(token.expose_secret(), None, place);
    }
    if let (Some(name), Some(password)) = (&user.username, &user.password) {
        let pair = STANDARD.encode(format!("{name}:{}", password.expose_secret()));
        return authorization(&format!("Basic {pair}"), None, "the user name and password", place);
    }
    match user.exec.take() {
        Some(exec) => from_plugin(&exec, user, place).await,
        None => Ok(Credential::default()),
    }
}

fn bearer(token: &str, renew_at: Option<Timestamp>, place: &str) -> Result<Credential, ConfigError> {
    // Files written by people end in a newline, which is no part of the token.
    authorization(&format!("Bearer {}", token.trim()), renew_at, "the token", place)
}

fn authorization(
    value: &str,
    renew_at: Option<Timestamp>,
    what: &'static str,
    place: &str,
) -> Result<Credential, ConfigError> {
    let mut value = HeaderValue::try_from(value).map_err(|_| ConfigError::Credential {
        what,
        cause: "it has characters that HTTP does not carry".into(),
        place: place.to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(Credential { authorization: Some(value), renew_at })
}

async fn from_plugin(exec: &ExecConfig, user: &mut AuthInfo, place: &str) -> Result<Credential, ConfigError> {
    let failed = |cause: String| plugin_failed(exec, cause);
    let output = tokio::time::timeout(PLUGIN_TIMEOUT, run(exec))
        .await
        .map_err(|_| failed(format!("it did not end within {PLUGIN_TIMEOUT:?}")))??;
    let given: ExecCredential<'_> = serde_json::from_slice(&output)
        .map_err(|_| failed("its output is no ExecCredential in JSON".into()))?;
    let Some(status) = given.status else { return Err(failed("its output has no `status`".into())) };
    let now = Timestamp::now();
    let renew_at = match &status.expiration_timestamp {
        None => None,
        Some(text) => {
            let end: Timestamp =
                text.parse().map_err(|_| failed("its `expirationTimestamp` is no time".into()))?;
            Some(renewal(now, end))
        }
    };
    if let (Some(certificate), Some(key)) = (&status.client_certificate_data, &status.client_key_data) {
        user.client_certificate_data = Some(STANDARD.encode(certificate));
        user.client_key_data = Some(SecretString::from(STANDARD.encode(key)));
    }
    match &status.token {
        Some(token) => bearer(token, renew_at, place),
        None if user.client_certificate_data.is_some() => Ok(Credential { authorization: None, renew_at }),
        None => Err(failed("its output has neither a token nor a certificate with its key".into())),
    }
}

fn renewal(now: Timestamp, end: Timestamp) -> Timestamp {
    let life = end.duration_since(now);
    let margin = RENEW_BEFORE.min(life / 4).max(SignedDuration::ZERO);
    end.checked_sub(margin).unwrap_or(end)
}

async fn run(exec: &ExecConfig) -> Result<Vec<u8>, ConfigError> {
    let failed = |cause: String| plugin_failed(exec, cause);
    let Some(command) = exec.command.as_deref() else {
        return Err(failed("the kubeconfig names no `command`".into()));
    };
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(failed("it wants to ask a person, and there is none".into()));
    }
    let info = ExecInfo {
        api_version: exec.api_version.as_deref().unwrap_or("client.authentication.k8s.io/v1"),
        kind: "ExecCredential",
        spec: ExecSpec { interactive: false, cluster: exec.cluster.as_ref() },
    };
    let info = serde_json::to_string(&info).map_err(|error| failed(error.to_string()))?;
    let environment =
        exec.env.iter().flatten().filter_map(|pair| Some((pair.get("name")?, pair.get("value")?)));
    let mut child = tokio::process::Command::new(command);
    child
        .args(exec.args.iter().flatten())
        .envs(environment)
        .env("KUBERNETES_EXEC_INFO", info)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    for name in exec.drop_env.iter().flatten() {
        child.env_remove(name);
    }
    let mut child =
        child.spawn().map_err(|error| failed(format!("it cannot be started ({})", error.kind())))?;
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = stdout.take(PLUGIN_OUTPUT_LIMIT_BYTES);
        stdout.read_to_end(&mut output).await.map_err(|error| failed(error.kind().to_string()))?;
    }
    let status = child.wait().await.map_err(|error| failed(error.kind().to_string()))?;
    if status.success() { Ok(output) } else { Err(failed(format!("it ended with {status}"))) }
}

fn plugin_failed(exec: &ExecConfig, cause: String) -> ConfigError {
    let hint = exec.install_hint.as_ref().map(|hint| format!(" ({})", hint.trim().replace('\n', " ")));
    ConfigError::Plugin {
        command: exec.command.clone().unwrap_or_default(),
        cause,
        hint: hint.unwrap_or_default(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecInfo<'a> {
    api_version: &'a str,
    kind: &'static str,
    spec: ExecSpec<'a>,
}

#[derive(Serialize)]
struct ExecSpec<'a> {
    interactive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a ExecAuthCluster>,
}

#[derive(Deserialize)]
struct ExecCredential<'a> {
    #[serde(borrow)]
    status: Option<ExecStatus<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus<'a> {
    expiration_timestamp: Option<std::borrow::Cow<'a, str>>,
    token: Option<std::borrow::Cow<'a, str>>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(script: &str) -> AuthInfo {
        let exec = ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".into()),
            command: Some("/bin/sh".into()),
            args: Some(vec!["-c".into(), script.into()]),
            env: None,
            drop_env: None,
            install_hint: Some("get it from\nthe shop".into()),
            interactive_mode: None,
            provide_cluster_info: false,
            cluster: None,
            other: std::collections::BTreeMap::new(),
        };
        AuthInfo { exec: Some(exec), ..AuthInfo::default() }
    }

    async fn header(mut user: AuthInfo) -> Result<String, String> {
        let credential = resolve(&mut user, "the kubeconfig").await.map_err(|error| error.to_string())?;
        Ok(credential.authorization.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default())
    }

    #[tokio::test]
    async fn each_kind_of_credential_becomes_its_header() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from-file\n").unwrap();
        let path = Some(file.path().to_str().unwrap().to_owned());
        let token = Some(SecretString::from("inline"));
        let cases = [
            (AuthInfo { token: token.clone(), ..AuthInfo::default() }, "Bearer inline"),
            (AuthInfo { token_file: path.clone(), ..AuthInfo::default() }, "Bearer from-file"),
            (AuthInfo { token: token.clone(), token_file: path, ..AuthInfo::default() }, "Bearer from-file"),
            (
                AuthInfo { token, token_file: Some("/nonexistent".into()), ..AuthInfo::default() },
                "Bearer inline",
            ),
            (
                AuthInfo {
                    username: Some("Aladdin".into()),
                    password: Some(SecretString::from("opensesame")),
                    ..AuthInfo::default()
                },
                "Basic QWxhZGRpbjpvcGVuc2VzYW1l",
            ),
            (AuthInfo::default(), ""),
            (
                plugin(r#"echo '{"kind":"ExecCredential","status":{"token":"from-plugin"}}'"#),
                "Bearer from-plugin",
            ),
            (
                plugin(
                    r#"echo "$KUBERNETES_EXEC_INFO" | grep -q '"interactive":false' && echo '{"status":{"token":"told"}}'"#,
                ),
                "Bearer told",
            ),
        ];
        for (user, expected) in cases {
            assert_eq!(header(user).await.as_deref(), Ok(expected));
        }
    }

    #[tokio::test]
    async fn a_plugin_may_give_a_certificate_instead() {
        let mut user = plugin(r#"echo '{"status":{"clientCertificateData":"CERT","clientKeyData":"KEY"}}'"#);
        let credential = resolve(&mut user, "the kubeconfig").await.unwrap_or_else(|error| panic!("{error}"));
        assert!(credential.authorization.is_none());
        assert_eq!(user.client_certificate_data.as_deref(), Some("Q0VSVA=="));
        assert!(user.exec.is_none(), "TLS must not run the plugin once more");
    }

    #[tokio::test]
    async fn a_plugin_that_fails_is_named_and_its_output_is_not_shown() {
        for (script, cause) in [
            ("echo s3cr3t; exit 3", "ended with exit status: 3"),
            ("echo s3cr3t", "no ExecCredential"),
            (r#"echo '{"status":{}}'"#, "neither a token"),
            (r#"echo '{"status":{"token":"s3cr3t","expirationTimestamp":"soon"}}'"#, "is no time"),
            (
                r#"printf '%s' '{"status":{"token":"s3cr3t\n\u0000x"}}'"#,
                "characters that HTTP does not carry",
            ),
        ] {
            let text = header(plugin(script)).await.expect_err(script);
            assert!(text.contains(cause) && !text.contains("s3cr3t") && !text.contains('\n'), "{text}");
        }
        let mut missing = plugin("");
        if let Some(exec) = &mut missing.exec {
            exec.command = Some("/nonexistent/plugin".into());
        }
        let text = header(missing).await.expect_err("a plugin that is not there");
        assert!(text.contains("/nonexistent/plugin") && text.contains("get it from the shop"), "{text}");
    }

    #[test]
    fn a_credential_is_renewed_before_it_ends_and_not_at_every_request() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let at =
            |seconds: i64| renewal(now, now + SignedDuration::from_secs(seconds)).as_second() - 1_000_000;
        assert_eq!((at(3600), at(60), at(8), at(-5)), (3540, 45, 6, -5));
    }
}
