#!/usr/bin/env python3
"""What a release consists of besides the binaries, out of files alone: no daemon, and nothing from the network.

    release.py image BINARY OUT.tar [--name NAME]   an OCI image of the static binary, as `podman load` takes it
    release.py zip TACIT.EXE OUT.zip                the archive for Windows: the command and the licences
    release.py sbom OUT.json [--target TRIPLE]      CycloneDX: every crate of the command, with version, licence and hash
    release.py manifests VERSION SHA256SUMS OUT     Homebrew formula, winget manifests and installer for the archives
                                                    that SHA256SUMS lists, downloaded from --url

The same inputs give the same bytes.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tomllib
import uuid
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FEATURES = "tacit-cli/postgres,tacit-cli/s3"
# The user of packaging/Containerfile, which the image follows.
USER = 65532
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def workspace():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def entry(name, size, mode, owner=0, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type = size, mode, kind
    info.uid = info.gid = owner
    return info


def layer(binary):
    """The image's one layer: the binary, and the directory that its user may write to."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        tar.addfile(entry("data", 0, 0o700, USER, tarfile.DIRTYPE))
        tar.addfile(entry("tacit", len(binary), 0o755), io.BytesIO(binary))
    return out.getvalue()


def containerfile():
    """What packaging/Containerfile says of user, port and command, so that both images are the same."""
    words = dict(
        line.split(" ", 1) for line in (ROOT / "packaging" / "Containerfile").read_text().splitlines() if re.match(r"[A-Z]+ ", line)
    )
    return {
        "User": words["USER"],
        "WorkingDir": words["WORKDIR"],
        "ExposedPorts": {f"{words['EXPOSE']}/tcp": {}},
        "StopSignal": words["STOPSIGNAL"],
        "Entrypoint": json.loads(words["ENTRYPOINT"]),
        "Cmd": json.loads(words["CMD"]),
    }


def architecture(binary):
    """The image's architecture, by the machine in the ELF header."""
    machines = {62: "amd64", 183: "arm64"}
    if binary[:4] != b"\x7fELF":
        return ARCHITECTURES.get(platform.machine(), platform.machine())
    return machines[int.from_bytes(binary[18:20], "little")]


def image(binary_path, out, name):
    binary = binary_path.read_bytes()
    plain = layer(binary)
    packed = gzip.compress(plain, mtime=0)
    labels = {
        "org.opencontainers.image.title": "tacit",
        "org.opencontainers.image.version": workspace()["version"],
        "org.opencontainers.image.licenses": workspace()["license"],
    }
    config = json.dumps(
        {
            "architecture": architecture(binary),
            "os": "linux",
            "config": {**containerfile(), "Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [digest(plain)]},
            "history": [{"created_by": "tools/release/release.py image"}],
        }
    ).encode()

    def described(kind, data, **more):
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(data), "size": len(data), **more}

    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": described("config.v1+json", config),
            "layers": [described("layer.v1.tar+gzip", packed)],
            "annotations": labels,
        }
    ).encode()
    index = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [
                described("manifest.v1+json", manifest, annotations={"org.opencontainers.image.ref.name": name})
            ],
        }
    ).encode()
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
    for blob in (config, packed, manifest):
        files["blobs/sha256/" + digest(blob).removeprefix("sha256:")] = blob
    with tarfile.open(out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in ("blobs", "blobs/sha256"):
            tar.addfile(entry(folder, 0, 0o755, kind=tarfile.DIRTYPE))
        for path, data in sorted(files.items()):
            tar.addfile(entry(path, len(data), 0o644), io.BytesIO(data))
    print(f"{out}: {name}, {architecture(binary)}, {digest(manifest)}")


def archive(exe_path, out):
    """The archive for Windows, as winget unpacks it: the folder `tacit` with the command and the licences."""
    exe = exe_path.read_bytes()
    header = int.from_bytes(exe[60:64], "little")
    if exe[:2] != b"MZ" or exe[header : header + 6] != b"PE\0\0\x64\x86":
        sys.exit(f"error: {exe_path} is no program for Windows on x86-64; build it with --target x86_64-pc-windows-gnu")
    licences = {name: (ROOT / name).read_bytes() for name in ("LICENSE-APACHE", "LICENSE-MIT")}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, data in {**licences, "tacit.exe": exe}.items():
            # The first moment that the format knows, so that the same inputs give the same bytes.
            packed.writestr(zipfile.ZipInfo(f"tacit/{name}", (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    print(f"{out}: {out.stat().st_size} bytes")


def sbom(out, target):
    """The crates that the command is made of, without those that only tests and build scripts need."""
    cargo = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--offline", "--format-version", "1"]
    cargo += ["--features", FEATURES, *(["--filter-platform", target] if target else [])]
    read = json.loads(subprocess.run(cargo, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in read["packages"]}
    nodes = {node["id"]: node for node in read["resolve"]["nodes"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    hashes = {(one["name"], one["version"]): one.get("checksum") for one in lock}
    root = next(one["id"] for one in read["packages"] if one["name"] == "tacit-cli")

    def needs(one):
        linked = [dep for dep in nodes[one]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        return sorted(dep["pkg"] for dep in linked)

    found, rest = {root}, [root]
    while rest:
        new = [one for one in needs(rest.pop()) if one not in found]
        found.update(new)
        rest += new

    def purl(one):
        package = packages[one]
        return f"pkg:cargo/{package['name']}@{package['version']}"

    def component(one):
        package = packages[one]
        told = {
            "type": "application" if one == root else "library",
            "bom-ref": purl(one),
            "name": package["name"],
            "version": package["version"],
            "purl": purl(one),
        }
        if package["license"]:
            # Cargo once wrote `/` for OR.
            told["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksum := hashes.get((package["name"], package["version"])):
            told["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return told

    others = sorted((one for one in found if one != root), key=purl)
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(root)},
        "components": [component(one) for one in others],
        "dependencies": [{"ref": purl(one), "dependsOn": [purl(need) for need in needs(one)]} for one in [root, *others]],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    out.write_text(json.dumps({**body, "serialNumber": f"urn:uuid:{serial}"}, indent=1) + "\n")
    print(f"{out}: {len(others)} components")


def archives(sums):
    """The archives of the command by target triple, and their SHA-256."""
    found = {}
    for line in sums.read_text().splitlines():
        checksum, name = line.split(maxsplit=1)
        if match := re.fullmatch(r"\*?tacit-([\w]+-[\w-]+)\.(?:tar\.gz|zip)", name):
            found[match[1]] = (name.removeprefix("*"), checksum)
    return found


def formula(version, url, found):
    def part(system, targets):
        lines = [f"  on_{system} do"]
        for cpu, target in targets:
            if target in found:
                name, checksum = found[target]
                lines += [f"    on_{cpu} do", f'      url "{url}/{name}"', f'      sha256 "{checksum}"', "    end"]
        return [*lines, "  end"] if len(lines) > 1 else []

    parts = [
        part("macos", [("arm", "aarch64-apple-darwin"), ("intel", "x86_64-apple-darwin")]),
        part("linux", [("arm", "aarch64-unknown-linux-musl"), ("intel", "x86_64-unknown-linux-musl")]),
    ]
    head = [
        "class Tacit < Formula",
        '  desc "Two parties compute on data that neither may see"',
        f'  homepage "{workspace()["repository"]}"',
        f'  version "{version}"',
        '  license any_of: ["MIT", "Apache-2.0"]',
        "",
    ]
    tail = [
        "  def install",
        '    bin.install "tacit"',
        '    generate_completions_from_executable(bin/"tacit", "completions")',
        '    (buildpath/"man").mkpath',
        '    system bin/"tacit", "man", buildpath/"man"',
        '    man1.install Dir["man/*.1"]',
        "  end",
        "",
        "  test do",
        '    assert_match version.to_s, shell_output("#{bin}/tacit --version")',
        "  end",
        "end",
    ]
    body = [line for lines in parts if lines for line in [*lines, ""]]
    return "\n".join([*head, *body, *tail]) + "\n"


def winget(version, url, found):
    """The three files that a package of winget consists of, or none without an archive for Windows."""
    target = "x86_64-pc-windows-gnu" if "x86_64-pc-windows-gnu" in found else "x86_64-pc-windows-msvc"
    if target not in found:
        return {}
    name, checksum = found[target]
    common = f"PackageIdentifier: Tacit.Tacit\nPackageVersion: {version}\n"
    installer = (
        common + "InstallerType: zip\nNestedInstallerType: portable\nNestedInstallerFiles:\n"
        "- RelativeFilePath: tacit\\tacit.exe\n  PortableCommandAlias: tacit\nInstallers:\n"
        f"- Architecture: x64\n  InstallerUrl: {url}/{name}\n  InstallerSha256: {checksum.upper()}\n"
        "ManifestType: installer\nManifestVersion: 1.6.0\n"
    )
    locale = (
        common + "PackageLocale: en-US\nPublisher: The Tacit developers\nPackageName: Tacit\n"
        f"License: {workspace()['license']}\nShortDescription: Two parties compute on data that neither may see\n"
        "ManifestType: defaultLocale\nManifestVersion: 1.6.0\n"
    )
    whole = common + "DefaultLocale: en-US\nManifestType: version\nManifestVersion: 1.6.0\n"
    return {
        "winget/Tacit.Tacit.installer.yaml": installer,
        "winget/Tacit.Tacit.locale.en-US.yaml": locale,
        "winget/Tacit.Tacit.yaml": whole,
    }


def installer(version, url, found):
    cases = "\n".join(
        f'  {target}) name="{name}" sum="{checksum}" ;;' for target, (name, checksum) in sorted(found.items()) if name.endswith(".tar.gz")
    )
    text = (ROOT / "packaging" / "install.sh").read_text()
    return text.replace("@VERSION@", version).replace("@URL@", url).replace("  @CASES@", cases)


def manifests(version, sums, out, url):
    found = archives(sums)
    if not found:
        sys.exit(f"error: {sums} lists no archive called tacit-TARGET.tar.gz or .zip")
    url = url.replace("VERSION", version)
    files = {
        "tacit.rb": formula(version, url, found),
        "install.sh": installer(version, url, found),
        **winget(version, url, found),
    }
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if name.endswith(".sh"):
            path.chmod(0o755)
    print(f"{out}: {', '.join(sorted(files))} for {', '.join(sorted(found))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("image")
    one.add_argument("binary", type=Path)
    one.add_argument("out", type=Path)
    one.add_argument("--name", default=f"tacit:{workspace()['version']}")
    one = parts.add_parser("zip")
    one.add_argument("binary", type=Path)
    one.add_argument("out", type=Path)
    one = parts.add_parser("sbom")
    one.add_argument("out", type=Path)
    one.add_argument("--target")
    one = parts.add_parser("manifests")
    one.add_argument("version")
    one.add_argument("sums", type=Path)
    one.add_argument("out", type=Path)
    one.add_argument("--url", default=f"{workspace()['repository']}/releases/download/vVERSION")
    options = parser.parse_args()
    if options.part == "image":
        image(options.binary, options.out, options.name)
    elif options.part == "zip":
        archive(options.binary, options.out)
    elif options.part == "sbom":
        sbom(options.out, options.target)
    else:
        manifests(options.version, options.sums, options.out, options.url)


if __name__ == "__main__":
    main()
