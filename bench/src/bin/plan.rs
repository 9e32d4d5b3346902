//! Benchmark `plan`: how many slots one core decides about in a second, from what is known to what is to be called.
//!
//! One route carries objects to mailboxes in memory. Timed is the engine alone, from the news of a change to the calls
//! that it wants, or to the finding that there is nothing to do: evaluation, projection, comparison and plan. Time is
//! that on a processor, so that a busy machine does not matter.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Result, ensure};
use mailboat_bench::fleet::{Fleet, Plan, copied};
use mailboat_bench::{Measurement, cpu};
use mailboat_center::customize::{Customizer, customize};
use mailboat_engine::want::Body;
use mailboat_object::digest_of;
use serde_json::{Value, json};

const ROUNDS: u64 = 7;

fn main() -> Result<()> {
    let config_maps = Plan {
        edges: 100,
        sources: 200,
        kind: ("", "configmaps", "v1", "ConfigMap"),
        source: |number| {
            json!({ "apiVersion": "v1", "kind": "ConfigMap",
                    "data": { "config.yaml": format!("number: {number}\n").repeat(30) } })
        },
        change: |source, _| copied(source),
        varies: true,
    };
    measure("ConfigMaps, each projected for each place", config_maps, 200_000.0)?;
    let deployments = Plan {
        edges: 100,
        sources: 100,
        kind: ("apps", "deployments", "apps/v1", "Deployment"),
        source: deployment,
        change: |source, to| {
            let plain = copied(source)?;
            let mut parameters = BTreeMap::new();
            parameters.insert("clusterName".to_owned(), to.cluster.to_string());
            let json =
                customize(&plain.json, Some(&CUSTOMIZER), &parameters).map_err(|bad| bad.to_string())?;
            let digest = digest_of(&json).map_err(|bad| bad.to_string())?;
            Ok(Body { json: json.into(), digest })
        },
        varies: true,
    };
    measure("Deployments, each customized for each place", deployments, 60_000.0)?;
    nothing_changed(config_maps, 1_000_000.0)
}

/// How many slots a second are decided about when what goes there is projected anew.
fn measure(case: &str, plan: Plan, bar: f64) -> Result<()> {
    let mut fleet = Fleet::new(plan)?;
    fleet.settle()?;
    fleet.projections();
    let mut best = Duration::MAX;
    let mut projected = 0;
    for _ in 0..ROUNDS {
        fleet.reconfigure();
        let begun = cpu::spent();
        let calls = fleet.decide()?;
        best = best.min(cpu::spent_since(begun));
        ensure!(calls == 0, "{calls} calls though nothing changed");
        projected = fleet.projections();
    }
    let slots = slots_of(plan);
    eprintln!("{case}: {projected} projections for {slots} slots");
    let speed = slots / best.as_secs_f64();
    Measurement::new("plan", case, "slots decided").value(speed, "slots/s").at_least(bar).print()?;
    Ok(())
}

/// The same where everything is shown again just as it was.
fn nothing_changed(plan: Plan, bar: f64) -> Result<()> {
    let mut fleet = Fleet::new(plan)?;
    fleet.settle()?;
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let begun = cpu::spent();
        fleet.look_again();
        let calls = fleet.decide()?;
        best = best.min(cpu::spent_since(begun));
        ensure!(calls == 0, "{calls} calls though nothing changed");
    }
    let speed = slots_of(plan) / best.as_secs_f64();
    Measurement::new("plan", "nothing changed", "slots decided")
        .value(speed, "slots/s")
        .at_least(bar)
        .print()?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "no count here has 52 bits")]
fn slots_of(plan: Plan) -> f64 {
    (plan.edges * plan.sources) as f64
}

static CUSTOMIZER: LazyLock<Customizer> = LazyLock::new(|| {
    let customizer = json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "Customizer", "metadata": { "name": "c", "namespace": "n" },
        "replacements": [
            { "path": "$.spec.replicas", "value": "3" },
            { "path": "$.spec.template.spec.containers[0].image", "value": "\"registry.example/%(clusterName)/till:2\"" },
        ],
    });
    #[expect(clippy::expect_used, reason = "a fixed value")]
    Customizer::parse(customizer.to_string().as_bytes()).expect("the customizer of this benchmark")
});

fn deployment(number: usize) -> Value {
    let probe = json!({ "httpGet": { "path": "/healthz", "port": 8080 }, "initialDelaySeconds": 5, "periodSeconds": 10 });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "spec": {
            "replicas": 1, "revisionHistoryLimit": 3,
            "selector": { "matchLabels": { "app": format!("till-{number}") } },
            "template": {
                "metadata": { "labels": { "app": format!("till-{number}"), "tier": "front" } },
                "spec": {
                    "serviceAccountName": "till", "terminationGracePeriodSeconds": 30,
                    "containers": [{
                        "name": "till", "image": "registry.example/till:1", "args": ["--listen=:8080", "--log=json"],
                        "ports": [{ "name": "http", "containerPort": 8080 }],
                        "env": [{ "name": "REGION", "value": "north" }, { "name": "SHOP", "value": number.to_string() }],
                        "resources": { "requests": { "cpu": "100m", "memory": "64Mi" }, "limits": { "memory": "128Mi" } },
                        "readinessProbe": probe, "livenessProbe": probe,
                        "volumeMounts": [{ "name": "config", "mountPath": "/etc/till" }],
                    }],
                    "volumes": [{ "name": "config", "configMap": { "name": "till" } }],
                },
            },
        },
    })
}
