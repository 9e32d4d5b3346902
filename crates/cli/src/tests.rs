use super::*;

fn parse_line(line: &str) -> Result<Mailboat, clap::Error> {
    parse(&called::read(line.split(' ').map(OsString::from)).unwrap())
}

#[test]
fn the_flags_do_not_contradict_each_other() {
    command().debug_assert();
}

/// As kcp's own plugin takes them.
#[test]
fn flags_may_stand_before_what_is_done_about_workspaces() {
    let Command::Ws(read) = parse_line("kubectl-ws --kubeconfig f create team --enter").unwrap().command
    else {
        panic!("another command");
    };
    assert!(matches!(read.command, Some(flags::WsCommand::Create { name, .. }) if name == "team"));
    assert_eq!((read.path, read.server.kubeconfig), (None, Some("f".into())));
}

#[test]
fn every_documented_call_is_understood() {
    for line in [
        "mailboat syncer-gen guilder --syncer-image i -o f.yaml",
        "kubectl-mailboat syncer-gen guilder --syncer-image i -o -",
        "kubectl-kubestellar syncer-gen guilder --syncer-image i --output-file f",
        "kubectl-kubestellar-syncer_gen guilder --syncer-image i -o f",
        "kubectl-kcp-workload-edge_sync guilder --image i -o f",
        "mailboat workload edge-sync guilder --image i -o f",
        "mailboat syncer-gen guilder --syncer-image i -o f --replicas 0 --kcp-namespace a -n b --qps 5 --burst 9 \
         --labels a=b,c=d --labels e=f --lifetime 87600h --rotate --edge-access namespaces=x,y --port 9090",
        "mailboat syncer-gen guilder --syncer-image i -o f --mailbox a-mb-b --provider-workspace root:x",
        "mailboat syncer-gen guilder --syncer-image i -o f --kubeconfig k --context c --server https://h:1",
        "mailboat syncer-gen guilder --syncer-image i -o f --edge-access rules=r.yaml",
        "mailboat syncer-remove guilder",
        "mailboat syncer-remove guilder --keep-objects --edge-kubeconfig f --edge-context c",
        "mailboat syncer --from-kubeconfig f --sync-target-name a --sync-target-uid b",
        "mailboat syncer --from-kubeconfig f --from-context c --to-kubeconfig g --to-context d --sync-target-name a \
         --sync-target-uid b --qps 20 --burst 30 --listen :9 --log-format json --log-level debug",
        "kubectl-ws",
        "kubectl-ws ..",
        "kubectl-ws -",
        "kubectl-ws :root:x",
        "kubectl-ws use root:x",
        "kubectl-ws current --short",
        "kubectl-ws tree --kubeconfig f",
        "mailboat ws create team --type root:universal --enter --ignore-existing",
        "mailboat ws ensure root:a:b --enter",
        "kubectl-kubestellar ensure location --imw root:imw1 guilder env=prod extended=si",
        "kubectl-mailboat ensure location guilder env=prod --kubeconfig f --context c",
        "kubectl-kubestellar ensure wmw --with-kube false wmw1",
        "kubectl-kubestellar ensure wmw wmw1 --espw root:x",
        "kubectl-mailboat ensure imw imw1",
        "mailboat ensure imw root:a:b --kcp-kinds --provider-workspace root:x",
        "kubectl-kubestellar remove location --imw root:imw1 guilder",
        "kubectl-kubestellar remove wmw wmw1",
        "kubectl-mailboat remove imw imw1",
        "mailboat remove imw root:a:b --with-edges --kubeconfig k",
        "kubectl-kubestellar prep-for-syncer --imw root:imw1 --syncer-image i -o f guilder",
        "kubectl-kubestellar prep-for-cluster --imw root:imw1 --syncer-image i guilder env=prod",
        "mailboat prep-for-syncer guilder --syncer-image i --server https://h:1 -n b --lifetime 30d --rotate --edge-access all",
        "mailboat prep-for-cluster guilder env=prod --syncer-image i --server https://h:1 --labels a=b --replicas 0",
        "kubectl-kubestellar prep-for-syncer --imw root:imw1 --espw root:espw --syncer-image i -o f -s -X guilder",
        "kubectl-kubestellar ensure location -X --imw root:imw1 guilder env=prod",
        "kubectl-ws ensure root:a:b --enter -V",
        "kubestellar init --local-kcp false --ensure-imw root:a,root:b --ensure-wmw root:c -X",
        "kubestellar start --log-folder logs --ensure-wmw= -V",
        "kubestellar stop --log-folder logs",
        "kubestellar-list-syncing-objects --api-kind Deployment --api-group apps --api-version v1 --watch --json",
        "kubestellar-list-syncing-objects --api-kind PolicyReport --api-resource policyreports --parent-context root --all-context system:admin",
        "kubestellar-version",
        "kubestellar-version buildDate",
        "kubestellar-version gitTreeState",
        "kubestellar-release",
        "emc-customize --customizer-filename c.yaml o.yaml l.yaml",
        "emc-customize o.yaml",
        "mailboat get placements",
        "mailboat get edges -w root:imw1 -o json",
        "mailboat get summary -o yaml",
        "mailboat get objects --kind Deployment",
        "mailboat get objects --kind Deployment --watch -o yaml",
        "kubectl-mailboat get summary shops",
        "kubectl-mailboat why deployment/web -n shop",
        "mailboat why configmap page -n shop --edge guilder -w root:wmw1 --imw root:imw1 -o json --espw root:x",
        "kubectl-mailboat plan -f placement.yaml --exit-code",
        "kubectl-mailboat plan placement.yaml --exit-code",
        "mailboat plan - --workspace root:imw1",
        "mailboat plan --filename - --workspace root:imw1 -o yaml --kubeconfig k",
        "kubectl-mailboat api import -f crd.yaml --bind -w root:a",
        "mailboat api import --from-kubeconfig k --from-context c widgets.example.com --export example --dry-run",
        "kubectl_complete-mailboat get pl",
        "kubectl_complete-mailboat get placements --out",
        "kubectl_complete-mailboat --he",
        "mailboat customize o.yaml",
        "mailboat customize - --customizer c.yaml --customizer d.yaml --location l.yaml -o json",
        "mailboat customize o.yaml --customizer-filename c.yaml",
        "mailboat center",
        "mailboat center --kubeconfig k --context c --provider-workspace root:x --qps 50 --leader-elect false",
        "mailboat center init --provider-workspace root:x",
        "mailboat hub --data d",
        "mailboat hub --mode cluster --memory --kubeconfig k --listen 127.0.0.1:0 --name hub.example --token-auth-file t",
        "mailboat hub restore --backup b --data d",
        "mailboat link /usr/local/bin",
        "mailboat completion bash",
        "mailboat completion powershell",
        "mailboat version",
    ] {
        parse_line(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn what_is_not_as_it_should_be_called_ends_with_2() {
    for line in [
        "mailboat",
        "mailboat sail",
        "mailboat syncer-gen guilder",
        "mailboat syncer-gen guilder --syncer-image i",
        "mailboat syncer-gen --syncer-image i -o f",
        "mailboat syncer-gen guilder --syncer-image i -o f --replicas 2",
        "mailboat syncer-gen guilder --syncer-image i -o f --qps=-1",
        "mailboat syncer --sync-target-name a --sync-target-uid b",
        "mailboat syncer --from-kubeconfig f --sync-target-name a --sync-target-uid b --log-format xml",
        "mailboat syncer-gen guilder --syncer-image i -o f --lifetime soon",
        "mailboat syncer-gen guilder --syncer-image i -o f --edge-access most",
        "mailboat syncer-gen guilder --syncer-image i -o f --labels novalue",
        "mailboat syncer-remove guilder --edge-context c",
        "mailboat ws create",
        "mailboat ensure",
        "mailboat ensure location",
        "mailboat ensure location guilder novalue",
        "mailboat ensure wmw w --with-kube maybe",
        "mailboat remove imw",
        "mailboat plan",
        "mailboat plan a.yaml -f b.yaml",
        "mailboat get",
        "mailboat get objects",
        "mailboat get pods",
        "mailboat why",
        "mailboat why a b c",
        "mailboat why deployment/web -o xml",
        "mailboat plan",
        "mailboat api",
        "mailboat api import",
        "mailboat api import --from-kubeconfig k",
        "mailboat api import -f crd.yaml widgets.example.com",
        "mailboat api import -f crd.yaml --bind --dry-run",
        "mailboat prep-for-syncer guilder",
        "mailboat customize",
        "mailboat customize o.yaml -o xml",
        "mailboat center --burst 5",
        "mailboat center start",
        "mailboat completion tcsh",
    ] {
        let error = parse_line(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}: {error}");
    }
}

/// A center is a user of kcp. Where its Pods run, it has no business.
#[test]
fn the_centers_manifest_calls_it_as_it_can_be_called_and_asks_for_no_rights() {
    let text = include_str!("../../../deploy/center.yaml");
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(text).unwrap();
    let kinds: Vec<_> = documents.iter().map(|document| document["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Namespace", "ServiceAccount", "Deployment", "PodDisruptionBudget"]);
    assert_eq!(documents[1]["automountServiceAccountToken"], false);
    let pod = &documents[2]["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    let container = &pod["containers"][0];
    let words = [&container["command"], &container["args"]];
    let words = words.into_iter().flat_map(|words| words.as_array().unwrap());
    let words: Vec<OsString> = words.map(|word| word.as_str().unwrap().into()).collect();
    let Command::Center(read) = parse(&called::read(words).unwrap()).unwrap().command else {
        panic!("another command");
    };
    let port = &container["ports"][0]["containerPort"];
    assert_eq!(port.as_u64(), Some(u64::from(read.listen.port())));
    let folder = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
    assert!(read.kcp.kubeconfig.unwrap().starts_with(folder));
}

#[test]
fn help_is_no_error_and_shows_how_the_program_was_called() {
    for (line, usage) in [
        ("mailboat syncer-gen --help", "Usage: mailboat syncer-gen"),
        ("kubectl-mailboat syncer-gen --help", "Usage: kubectl mailboat syncer-gen"),
        ("kubectl-kcp-workload-edge_sync --help", "Usage: kubectl kcp workload edge-sync"),
    ] {
        let help = parse_line(line).expect_err(line);
        assert_eq!(help.exit_code(), 0, "{line}");
        assert!(help.to_string().contains(usage), "{line}: {help}");
    }
}

#[test]
fn an_edges_labels_and_those_of_what_stands_there_are_told_apart() {
    let line = "mailboat prep-for-cluster g env=prod --syncer-image i --labels a=1 rack=7";
    let Command::PrepForCluster(arguments) = parse_line(line).unwrap().command else { panic!("{line}") };
    let keys: Vec<&str> = arguments.edge_labels.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["env", "rack"]);
    assert_eq!(arguments.syncer.options.labels().len(), 1);
}

#[test]
fn labels_are_taken_from_every_flag() {
    let line = "mailboat syncer-gen g --syncer-image i -o f --labels a=1,b=2 --labels a=3";
    let Command::SyncerGen(arguments) = parse_line(line).unwrap().command else { panic!("{line}") };
    let labels: Vec<String> =
        arguments.options.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(labels, ["a=3", "b=2"]);
}

#[test]
fn a_completion_script_knows_every_visible_command() {
    for shell in [
        clap_complete::Shell::Bash,
        clap_complete::Shell::Zsh,
        clap_complete::Shell::Fish,
        clap_complete::Shell::PowerShell,
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command_as_typed(), "mailboat", &mut script);
        let script = String::from_utf8(script).unwrap();
        for name in ["syncer", "syncer-gen", "syncer-remove", "customize", "link", "completion", "version"] {
            assert!(script.contains(name), "{shell}: {name} is not in it");
        }
    }
}
