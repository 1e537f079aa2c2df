"""Runs what the chart renders as Kubernetes would, as far as that goes on one machine: run.py HELM PROGRAMS, as root, in
namespaces of its own for mounts, the network and processes (`unshare --mount --net --pid --fork`).

It starts PostgreSQL, runs the Job of migrations, starts one node, asks its probes, runs the test, and stops the node while a
request is under way. Each container gets its command, variables and files, the user of its pod, a file system that it cannot
write to, and no capabilities."""
import fcntl
import os
import pathlib
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from chart import CHART, ROOT, find, pod_of, render  # noqa: E402

MACHINE = pathlib.Path("/mnt/machine")
SECRETS = {"svc": {"SVC_DATABASE_URL": "postgres://svc@127.0.0.1:5432/svc?sslmode=disable", "SVC_SECRET_KEY": "5c" * 32}}


def start_loopback():
    """The network namespace is new, and its loopback interface is down."""
    with socket.socket() as any_socket:
        request = struct.pack("16sH14s", b"lo", 1 | 64, b"")  # IFF_UP and IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def prepare_machine(programs, hosts):
    """Makes a copy of the file system with the programs and names of the image, over which files of pods are mounted."""
    mount("-t", "tmpfs", "tmpfs", "/mnt")
    for folder in ["upper", "work", "machine"]:
        pathlib.Path("/mnt", folder).mkdir()
    mount("-t", "overlay", "overlay", "-o", "lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work", str(MACHINE))
    for program in ["svc-server", "svc"]:
        subprocess.run(["install", programs / program, MACHINE / "usr/bin" / program], check=True)
    (MACHINE / "etc/svc").mkdir(exist_ok=True)
    (MACHINE / "etc/hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in ["localhost", *hosts]))
    mount("-t", "proc", "proc", str(MACHINE / "proc"))
    mount("--rbind", "/dev", str(MACHINE / "dev"))
    mount("-o", "remount,ro", str(MACHINE))


def start_postgres():
    folders = [*os.environ["PATH"].split(":"), *map(str, sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin")))]
    programs = next(folder for folder in folders if os.access(f"{folder}/initdb", os.X_OK) and os.access(f"{folder}/postgres", os.X_OK))
    folder = tempfile.mkdtemp()
    subprocess.run(["chown", "postgres", folder], check=True)
    as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    data = f"{folder}/data"
    log = open(f"{folder}.log", "w")
    subprocess.run([*as_postgres, f"{programs}/initdb", "--username=svc", "--auth=trust", data], check=True, stdout=log)
    single = [*as_postgres, f"{programs}/postgres", "--single", "-D", data, "postgres"]
    subprocess.run(single, input="CREATE DATABASE svc\n", text=True, check=True, stdout=log, stderr=log)
    server = subprocess.Popen([*as_postgres, f"{programs}/postgres", "-D", data, "-k", folder, "-c", "fsync=off"], stderr=log)
    until("PostgreSQL", lambda: not socket.socket().connect_ex(("127.0.0.1", 5432)))
    return server


def until(what, is_done, seconds=60):
    end = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.1)


def image():
    """Returns the entry point and the variables of the image."""
    text = (ROOT / "ops/Containerfile").read_text()
    entry = re.search(r"^ENTRYPOINT (\[.*\])$", text, flags=re.M)[1]
    pairs = shlex.split(re.search(r"^ENV (.*)$", text, flags=re.M)[1])
    return yaml.safe_load(entry), dict(pair.split("=", 1) for pair in pairs)


def start(item, objects):
    """Starts the container of a pod, and returns its process, whose output has both streams."""
    _, spec = pod_of(item)
    container = spec["containers"][0]
    entry, env = image()
    for variable in container.get("env", []):
        secret = variable.get("valueFrom", {}).get("secretKeyRef")
        env[variable["name"]] = SECRETS[secret["name"]][secret["key"]] if secret else variable["value"]
    for place in container.get("volumeMounts", []):
        volume = next(volume for volume in spec["volumes"] if volume["name"] == place["name"])
        target = f"{MACHINE}{place['mountPath']}"
        mount("-t", "tmpfs", "tmpfs", target)
        for name, text in find(objects, "ConfigMap", volume["configMap"]["name"])["data"].items():
            pathlib.Path(target, name).write_text(text)
        mount("-o", "remount,ro", target)
    user = spec["securityContext"]
    command = ["chroot", str(MACHINE), "setpriv", f"--reuid={user['runAsUser']}", f"--regid={user['runAsGroup']}", "--clear-groups"]
    command += ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "env", "--ignore-environment"]
    command += [f"{name}={value}" for name, value in env.items()]
    command += container.get("command", entry) + container.get("args", [])
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process, what, seconds=60):
    output, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, f"{what} ended with {process.returncode}:\n{output}"
    return output


def status(port, path, timeout=5):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def main():
    program, programs = sys.argv[1], pathlib.Path(sys.argv[2])
    os.setsid()
    start_loopback()
    objects = render(program, "--set", "settings.rate-limit=1000000", "--set", "shutdown.graceSeconds=5")
    prepare_machine(programs, [item["metadata"]["name"] for item in objects if item["kind"] == "Service"])
    postgres = start_postgres()

    applied = finish(start(find(objects, "Job"), objects), "the Job")
    assert "Applied migrations: 0001_schema" in applied, applied
    assert "Applied" not in finish(start(find(objects, "Job"), objects), "the Job, run again")

    node = find(objects, "Deployment")
    container = pod_of(node)[1]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    process = start(node, objects)

    def responds(name):
        probe = container[name]
        asked = probe["httpGet"]
        return status(ports[asked["port"]], asked["path"], probe["timeoutSeconds"]) == 200

    def is_up():
        assert process.poll() is None, process.stdout.read()
        return responds("startupProbe")

    until("the node", is_up)
    until("readiness", lambda: responds("readinessProbe"))
    assert responds("livenessProbe") and status(ports["ops"], "/metrics") == 200
    assert status(ports["http"], "/api/v1/ping") == 401
    finish(start(find(objects, "Pod", "-test"), objects), "the test")

    # A request whose body is under way when SIGTERM comes.
    account = subprocess.run(
        ["chroot", str(MACHINE), "env", *(f"{name}={value}" for name, value in SECRETS["svc"].items()),
         "SVC_URL=http://127.0.0.1:8080", "svc", "init", "--name", "Harbour Plumbing"],
        check=True, capture_output=True, text=True)
    key = re.search(r"SVC_KEY='?([\w.-]+)", account.stdout)[1]
    body = b'{"email": "ada@example.com", "first_name": "Ada"}'
    client = socket.create_connection(("127.0.0.1", ports["http"]))
    client.sendall(
        f"POST /api/v1/contacts HTTP/1.1\r\nHost: svc\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    stopped = time.monotonic()
    until("the listener", lambda: status(ports["http"], "/healthz") == 0)
    client.sendall(body[10:])
    response = client.recv(65536).decode()
    assert response.startswith("HTTP/1.1 201 "), response
    finish(process, "the node", pod_of(node)[1]["terminationGracePeriodSeconds"])
    print(f"the node served the request under way and stopped {time.monotonic() - stopped:.1f} s after SIGTERM")

    # Without its database a node stays alive and is not ready.
    process = start(node, objects)
    until("the node", is_up)
    postgres.send_signal(signal.SIGINT)
    postgres.wait()
    until("the outage", lambda: not responds("readinessProbe"))
    assert responds("livenessProbe")
    process.send_signal(signal.SIGTERM)
    finish(process, "the node", pod_of(node)[1]["terminationGracePeriodSeconds"])
    print("without its database the node stayed alive and was not ready")

    # The settings of the file with all values, as the server reads them: nobody listens, so it is unhealthy, and no usage is wrong.
    settings = find(render(program, "--values", str(CHART / "ci/full-values.yaml")), "ConfigMap")["data"]["svc.toml"]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(settings)
        file.flush()
        checked = subprocess.run([programs / "svc-server", "healthcheck", "--config", file.name], capture_output=True, text=True)
    assert checked.returncode == 1 and checked.stderr.startswith("unhealthy: "), checked.stderr
    print("the server reads the settings of the chart")


if __name__ == "__main__":
    main()
