"""Makes an OCI image of a root file system: an archive of one layer, the same bytes every time.

usage: python3 oci-archive.py DOCKERFILE ROOT.tar OUT.oci.tar VERSION COMMIT

How the image runs (user, volume, ports, health check, entry point, …) is read from the last stage of
the Dockerfile, so that both images are run the same way. SOURCE_DATE_EPOCH is its time. Nothing but
Python's standard library is needed, and no daemon.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shlex
import sys
import tarfile
import time

NAME = "push-relay"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SECONDS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}


def instructions(dockerfile):
    """The last stage's instructions, each with its argument on one line."""
    lines = re.sub(r"^\s*#.*\n", "", open(dockerfile).read(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", lines).splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    for line in lines[last + 1 :]:
        if line.strip():
            name, _, argument = line.strip().partition(" ")
            yield name, argument.strip()


def health(argument):
    options, _, command = argument.partition("CMD ")
    result = {"Test": ["CMD", *json.loads(command)]}
    for option in shlex.split(options):
        name, _, value = option.removeprefix("--").partition("=")
        if name == "retries":
            result["Retries"] = int(value)
        else:
            number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", value).groups()
            key = "".join(word.capitalize() for word in name.split("-"))
            result[key] = int(int(number) * SECONDS[unit] * 1e9)
    return result


def run_configuration(dockerfile):
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    config = {"Env": [f"PATH={path}"]}
    for name, argument in instructions(dockerfile):
        if name in ("ENTRYPOINT", "CMD"):
            config[name.capitalize()] = json.loads(argument)
        elif name == "USER":
            config["User"] = argument
        elif name == "WORKDIR":
            config["WorkingDir"] = argument
        elif name == "STOPSIGNAL":
            config["StopSignal"] = argument
        elif name == "VOLUME":
            config["Volumes"] = {volume: {} for volume in argument.split()}
        elif name == "EXPOSE":
            config["ExposedPorts"] = {f"{port}/tcp": {} for port in argument.split()}
        elif name == "HEALTHCHECK":
            # Not of OCI's specification: what knows it (Docker) uses it, others must ignore it.
            config["Healthcheck"] = health(argument)
        elif name not in ("COPY", "RUN"):
            # Rather no image than one that runs another way.
            sys.exit(f"{dockerfile}: what {name} means for the image is not known here")
    return config


def compressed(path):
    """The layer's bytes compressed, and the digest of what they are when unpacked."""
    out, plain = io.BytesIO(), hashlib.sha256()
    with gzip.GzipFile("", "wb", 9, out, mtime=0) as layer, open(path, "rb") as root:
        while block := root.read(1 << 20):
            plain.update(block)
            layer.write(block)
    return out.getvalue(), f"sha256:{plain.hexdigest()}"


def encoded(value):
    return json.dumps(value, indent=1, sort_keys=True).encode()


def image(dockerfile, root, version, commit, epoch):
    """The archive's files, by name."""
    files = {}

    def blob(kind, data):
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": f"sha256:{digest}",
            "size": len(data),
        }

    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    labels = {
        "org.opencontainers.image.title": NAME,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": commit,
        "org.opencontainers.image.licenses": "MIT",
    }
    data, plain = compressed(root)
    layer = blob("layer.v1.tar+gzip", data)
    config = {
        "created": created,
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": run_configuration(dockerfile) | {"Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [plain]},
        "history": [{"created": created, "created_by": "scripts/package image"}],
    }
    config = blob("config.v1+json", encoded(config))
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
        "annotations": labels | {"org.opencontainers.image.created": created},
    }
    entry = blob("manifest.v1+json", encoded(manifest)) | {
        "annotations": {
            "org.opencontainers.image.ref.name": version,
            "io.containerd.image.name": f"docker.io/library/{NAME}:{version}",
        }
    }
    files["index.json"] = encoded({"schemaVersion": 2, "manifests": [entry]})
    files["oci-layout"] = encoded({"imageLayoutVersion": "1.0.0"})
    # For a Docker that does not read OCI archives (before 25): it looks here.
    where = {part["digest"]: "blobs/" + part["digest"].replace(":", "/") for part in (config, layer)}
    files["manifest.json"] = encoded(
        [
            {
                "Config": where[config["digest"]],
                "RepoTags": [f"{NAME}:{version}"],
                "Layers": [where[layer["digest"]]],
            }
        ]
    )
    return files


def main():
    dockerfile, root, out, version, commit = sys.argv[1:]
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(image(dockerfile, root, version, commit, epoch).items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), epoch, 0o644
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
