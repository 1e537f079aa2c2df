"""Checks the Helm chart without a cluster: chart.py HELM KUBERNETES_MODELS, where the second is the folder of the npm package
with the kinds of the Prometheus operator. run.py runs what the chart renders."""
import json
import pathlib
import re
import subprocess
import sys
import tomllib

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "ops/helm/svc"
KUBERNETES = ["1.30", "1.37"]
VALUES = [None, *sorted((CHART / "ci").glob("*.yaml"))]


def helm(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def render(program, *arguments):
    """Returns the objects of a release called svc in the namespace prod."""
    done = helm(program, "template", "svc", str(CHART), "--namespace", "prod", *arguments)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stderr}")
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def find(objects, kind, name=""):
    found = [item for item in objects if item["kind"] == kind and item["metadata"]["name"].endswith(name)]
    assert found, f"no {kind} {name}"
    return found[0]


def pod_of(item):
    """Returns the labels and the specification of the pods of an object, or None."""
    if item["kind"] == "Pod":
        return item["metadata"]["labels"], item["spec"]
    template = item.get("spec", {}).get("template")
    return (template["metadata"]["labels"], template["spec"]) if template else None


def check_schemas(objects, models):
    monitoring = [item for item in objects if item["apiVersion"].startswith("monitoring.coreos.com/")]
    for version in KUBERNETES:
        for item in objects:
            if item not in monitoring:
                kubernetes_validate.validate(item, version, strict=True)
    script = """
      const models = require(process.argv[1]);
      for (const item of JSON.parse(process.argv[2])) new models[item.kind](item).validate();
    """
    subprocess.run(["node", "-e", script, f"{models}/monitoring.coreos.com/v1", json.dumps(monitoring)], check=True)


def check_pods(objects):
    pods = [pod for pod in map(pod_of, objects) if pod]
    for _, spec in pods:
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0, spec
        assert spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", spec
        assert spec["automountServiceAccountToken"] is spec["enableServiceLinks"] is False, spec
        for container in spec["containers"]:
            allowed = container["securityContext"]
            assert allowed["readOnlyRootFilesystem"] and allowed["allowPrivilegeEscalation"] is False, allowed
            assert allowed["capabilities"] == {"drop": ["ALL"]}, allowed
            assert container["resources"]["requests"] and container["resources"]["limits"]["memory"], container
            # Secrets are named, and never written.
            for variable in container.get("env", []):
                secret = re.search("URL|KEY|SECRET|PASSWORD", variable["name"])
                assert not secret or "secretKeyRef" in variable["valueFrom"], variable
    assert not [item for item in objects if item["kind"] in {"Secret", "ServiceAccount", "Role", "ClusterRole"}]


def check_nodes(objects):
    deployment = find(objects, "Deployment")
    labels, spec = pod_of(deployment)
    container = spec["containers"][0]
    env = {variable["name"]: variable.get("value") for variable in container["env"]}
    grace = int(env["SVC_SHUTDOWN_GRACE"].removesuffix("s"))
    assert spec["terminationGracePeriodSeconds"] > container["lifecycle"]["preStop"]["sleep"]["seconds"] + grace
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    ports = {port["name"] for port in container["ports"]}
    for probe, path in {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}.items():
        assert container[probe]["httpGet"] == {"path": path, "port": "ops"}, probe
    # What selects pods selects the nodes, and no other pod.
    selectors = [item["spec"]["selector"] for item in objects if item["kind"] == "Service"]
    selectors += [item["spec"]["selector"]["matchLabels"] for item in objects if item["kind"] in {"Deployment", "PodDisruptionBudget"}]
    selectors += [constraint["labelSelector"]["matchLabels"] for constraint in spec["topologySpreadConstraints"]]
    for selector in selectors:
        selected = [item["kind"] for item in objects if pod_of(item) and selector.items() <= pod_of(item)[0].items()]
        assert selected == ["Deployment"], (selector, selected)
    for service in objects:
        if service["kind"] == "Service":
            assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports, service
    assert labels["app.kubernetes.io/instance"] == "svc"


def check_full(objects):
    """What the file with all values is to become."""
    _, spec = pod_of(find(objects, "Deployment"))
    container = spec["containers"][0]
    assert container["image"].startswith("registry.example.com/svc@sha256:0123"), container["image"]
    assert spec["terminationGracePeriodSeconds"] == 85
    settings = tomllib.loads(find(objects, "ConfigMap")["data"]["svc.toml"])
    assert (settings["rate-limit"], settings["webhook-retry"]) == (1000000, ["1m", "10m", "1h"]), settings
    reference = {"name": "business-api", "key": "owner-url"}
    env = {variable["name"]: variable.get("valueFrom", {}).get("secretKeyRef") for variable in pod_of(find(objects, "Job"))[1]["containers"][0]["env"]}
    assert (env["SVC_DATABASE_URL"], env["SVC_SECRET_KEY"]["key"]) == (reference, "key"), env
    assert env["SVC_OIDC_CLIENT_SECRET"], env
    rule = find(objects, "PrometheusRule")["spec"]
    assert rule == yaml.safe_load((ROOT / "ops/alerts.yaml").read_text())
    assert find(objects, "Ingress")["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] == "business-api"


# Values that are refused, with a part of the reason.
REFUSED = [
    ("replicaCount=two", "at '/replicaCount': got string, want null or integer"),
    ("replicaCount=-1", "at '/replicaCount': minimum: got -1, want 0"),
    ("replicas=3", "additional properties 'replicas' not allowed"),
    ("image.pullPolicy=Sometimes", "at '/image/pullPolicy': value must be one of"),
    ("image.tag=a b", "at '/image/tag': 'a b' does not match pattern"),
    ("secret.existingSecret=Svc", "at '/secret/existingSecret': 'Svc' does not match pattern"),
    ("secret.databaseUrl=postgres://svc", "at '/secret': additional properties 'databaseUrl' not allowed"),
    ("shutdown.graceSeconds=20s", "at '/shutdown/graceSeconds': got string, want integer"),
    ("shutdown.drainSeconds=0", "at '/shutdown/drainSeconds': minimum: got 0, want 1"),
    ("resources.limits.memory=lots", "at '/resources/limits/memory'"),
    ("podDisruptionBudget.maxUnavailable=0", "at '/podDisruptionBudget/maxUnavailable'"),
    ("extraEnv[0].name=SVC_SECRET_KEY", "at '/extraEnv/0/name': 'not' failed"),
    ("settings.rate_limit=5", "invalid propertyName 'rate_limit'"),
    ("settings.database-url=postgres://svc", "settings.database-url cannot be set: put it in the Secret, under secret.databaseUrlKey"),
    ("settings.listen=:80", "settings.listen cannot be set: the chart sets it to port 8080"),
    ("settings.egress-proxy=http://a:b@c", "its URL may hold a password: set SVC_EGRESS_PROXY from a Secret with extraEnv"),
    ("ingress.enabled=true", "ingress.hosts is empty: name the host of the API"),
]


def check_refused(program):
    for value, reason in REFUSED:
        done = helm(program, "template", "svc", str(CHART), "--set", value)
        assert done.returncode and reason in done.stderr, f"{value}: {done.stderr or 'not refused'}"
    done = helm(program, "template", "svc", str(CHART), "--kube-version", "1.29.0")
    assert "requires kubeVersion: >=1.30.0-0" in done.stderr, done.stderr


def check_files(program):
    """The version is that of the workspace, and every value has its schema and its line in the page."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version, f"Chart.yaml must have the version {version}"
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]) - {"global"} == set(values)
    for name, value in values.items():
        properties = schema["properties"][name].get("properties")
        if properties:
            assert set(properties) == set(value), name
    # The first cells of the table.
    page = (CHART / "README.md").read_text()
    for cell in re.findall(r"^\| (`[^|]+) \|", page, re.M):
        for path in re.findall(r"`([^`]+)`", cell):
            name, _, key = path.partition(".")
            assert name in values and (not key or key in values[name]), f"README.md has {path}, which is no value"


def main():
    program, models = sys.argv[1:]
    check_files(program)
    for values in VALUES:
        arguments = ["--values", str(values)] if values else []
        linted = helm(program, "lint", "--strict", str(CHART), *arguments)
        if linted.returncode:
            sys.exit(linted.stdout + linted.stderr)
        objects = render(program, *arguments)
        check_schemas(objects, models)
        check_pods(objects)
        check_nodes(objects)
        if values and values.name == "full-values.yaml":
            check_full(objects)
        print(f"{values.name if values else 'the defaults'}: {len(objects)} objects")
    check_refused(program)
    print(f"{len(REFUSED) + 1} bad values are refused")


if __name__ == "__main__":
    main()
