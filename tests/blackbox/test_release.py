"""The folder that is published: signed, complete, the same bytes twice, and apt installs from it.

Made of the Debian package of the program that the tests run, of wheels, and signed with a key that lives as long as
the tests.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from urllib.parse import unquote

import pytest

import wire
from conftest import FATHOM, ROOT, run_fathom
from test_package import (CONFIG, as_root, field, finish_interrupted_dpkg, has_user, is_of_a_test,  # noqa: F401
                          machine_for_itself, package, purge, run, why_not_installed)
from test_wheel import PORTABLE

BUILD = ROOT / "deploy/release/build"

pytestmark = pytest.mark.slow


def why_not_released():
    missing = [name for name in ("gpg", "gpgv", "dpkg-scanpackages", "apt-get") if not shutil.which(name)]
    return f"no {missing[0]} here" if missing else None


@pytest.fixture(scope="module")
def keys():
    """[armoured secret keys]: the release's, and a stranger's."""
    if reason := why_not_released():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="gpg-") as home:  # short: sockets are in it
        Path(home).chmod(0o700)
        gpg = ["gpg", "--homedir", home, "--batch", "--passphrase", ""]
        made = []
        for name in ("release", "stranger"):
            address = f"{name}@packages.invalid"
            run(*gpg, "--quick-generate-key", address, "ed25519", "sign", "never")
            made.append(Path(home) / f"{name}.asc")
            made[-1].write_text(run(*gpg, "--armor", "--export-secret-keys", address))
        yield made
        run("gpgconf", "--homedir", home, "--kill", "all")


def version():
    return run_fathom("version").stdout.split()[1]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return make_image(tmp_path_factory.mktemp("image"), version())


def make_image(folder, label):
    """A layout with one layer, as ./dev image makes it: what its packages are, and a licence."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(kind, data):
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    files = folder.with_name(folder.name + "-root")
    libc6 = "Package: libc6\nVersion: 2.36-9+deb12u10\nArchitecture: amd64\n"
    for name, text in (("var/lib/dpkg/status.d/libc6", libc6), ("usr/share/doc/openssl/copyright", "text\n")):
        (files / name).parent.mkdir(parents=True)
        (files / name).write_text(text)
    with tarfile.open(folder.with_name("layer.tar.gz"), "w:gz") as archive:
        archive.add(files, ".")
    layer = blob("layer.v1.tar+gzip", folder.with_name("layer.tar.gz").read_bytes())
    labels = {"Labels": {"org.opencontainers.image.version": label}}
    config = blob("config.v1+json", json.dumps({"config": labels}).encode())
    manifest = blob("manifest.v1+json", json.dumps({"config": config, "layers": [layer]}).encode())
    index = blob("index.v1+json", json.dumps({"manifests": [manifest]}).encode())
    (folder / "index.json").write_text(json.dumps({"manifests": [index]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Of the portable binary; where there is none, of another one with a list of libraries as it would have it."""
    folder = tmp_path_factory.mktemp("wheel")
    binary = PORTABLE
    if not PORTABLE.exists():
        binary = folder / "fathom"
        shutil.copyfile(FATHOM, binary)
        (folder / "libraries.txt").write_text(f"openssl 3.0.16-1~deb12u1 {ROOT}/LICENSE\n"
                                              f"zeromq3 1:4.3.4+x-6 {ROOT}/LICENSE\n")
    return Path(run(ROOT / "deploy/wheel/build", binary, folder, "--allow-libraries").strip())


def build(folder, key, *artefacts, **options):
    return run(BUILD, folder, "--key", key, *artefacts, **options)


@pytest.fixture(scope="module")
def release(package, wheel, image, keys, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("release") / "dist"
    build(folder, keys[0], package, wheel, image)
    return folder


def refusal(*command, **options):
    done = subprocess.run([BUILD, *map(str, command)], text=True, capture_output=True, timeout=wire.PATIENCE,
                          check=False, **options)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


# --- what is in it


def test_it_has_every_artefact_once_more_as_it_was_given(release, package, wheel, image):  # noqa: F811
    assert (release / package.name).read_bytes() == package.read_bytes()
    assert (release / wheel.name).read_bytes() == wheel.read_bytes()
    assert os.stat(release / "apt" / package.name).st_ino == os.stat(release / package.name).st_ino
    with tarfile.open(release / f"fathom-{version()}-image.tar") as archive:
        files = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
        assert {(entry.uid, entry.gid, entry.uname) for entry in archive} == {(0, 0, "")}
    assert files == {str(path.relative_to(image)): path.read_bytes() for path in image.rglob("*") if path.is_file()}


def test_the_checksums_are_of_all_files_and_signed(release):
    run("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=release)
    listed = {line.split("  ")[1] for line in (release / "SHA256SUMS").read_text().splitlines()}
    there = {str(path.relative_to(release)) for path in release.rglob("*") if path.is_file()}
    assert there - listed == {"SHA256SUMS", "SHA256SUMS.asc"} and listed <= there
    verify = ["gpgv", "--keyring", release / "fathom-keyring.gpg"]
    run(*verify, release / "SHA256SUMS.asc", release / "SHA256SUMS")
    run(*verify, release / "apt/Release.gpg", release / "apt/Release")
    run(*verify, release / "apt/InRelease")


def test_a_changed_checksum_is_noticed(release, tmp_path):
    text = (release / "SHA256SUMS").read_text()
    (tmp_path / "SHA256SUMS").write_text(text.replace("a", "b", 1))
    run("gpgv", "--keyring", release / "fathom-keyring.gpg", release / "SHA256SUMS.asc", tmp_path / "SHA256SUMS",
        status=1)


def test_the_notes_are_this_versions_part_of_the_changelog(release):
    notes = (release / "RELEASE_NOTES.md").read_text()
    title, _, body = notes.partition("\n\n")
    assert title == f"# Fathom {version()}"
    changelog = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## .*$", changelog, re.MULTILINE)
    own = next((line for line in headings if line.startswith(f"## [{version()}]")), "## [Unreleased]")
    rest = changelog.partition(own + "\n")[2]
    following = next((line for line in headings if f"\n{line}\n" in rest), None)
    assert body.strip() == (rest.partition(f"\n{following}\n")[0] if following else rest).strip()
    assert len(body) > 500


def test_two_runs_give_the_same_bytes_and_leave_no_key_behind(
        release, package, wheel, image, keys, tmp_path):  # noqa: F811
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    too_long = tmp_path / "too-long-for-the-path-of-a-socket-that-lies-below-it"
    too_long.mkdir()
    with tempfile.TemporaryDirectory(prefix="tmp-") as temporary:
        for folder in (temporary, too_long):  # the second run replaces what the first one made
            environment = {**os.environ, "GNUPGHOME": str(home), "TMPDIR": str(folder), "TZ": "Asia/Tokyo"}
            build(tmp_path / "dist", keys[0], image, wheel, package, env=environment)
            assert os.listdir(folder) == []
    first, second = ({str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
                     for folder in (release, tmp_path / "dist"))
    assert [name for name in first | second if first.get(name) != second.get(name)] == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".release")] == []
    assert list(home.iterdir()) == []


def test_a_key_of_the_callers_gnupg_signs_too(package, keys, tmp_path):  # noqa: F811
    with tempfile.TemporaryDirectory(prefix="gpg-") as home:
        environment = {**os.environ, "GNUPGHOME": home}
        run("gpg", "--batch", "--import", keys[0], keys[1], env=environment)
        build(tmp_path / "dist", "stranger@packages.invalid", package, env=environment)
        run("gpgconf", "--kill", "all", env=environment)
    shown = run("gpg", "--show-keys", "--with-colons", tmp_path / "dist/fathom.asc")
    assert "stranger@packages.invalid" in shown and "release@" not in shown
    run("gpgv", "--keyring", tmp_path / "dist/fathom-keyring.gpg", tmp_path / "dist/apt/InRelease")


# --- what is refused


def test_without_a_key_it_says_how_to_give_one(package, tmp_path):  # noqa: F811
    environment = {name: value for name, value in os.environ.items() if name != "RELEASE_KEY"}
    message = refusal(tmp_path / "dist", package, env=environment)
    assert "no key to sign with; give a key with --key KEY or RELEASE_KEY" in message
    assert not (tmp_path / "dist").exists()
    (tmp_path / "empty").touch()
    assert "give a key with --key" in refusal(tmp_path / "dist", package, "--key", tmp_path / "empty")
    assert "give a key with --key" in refusal(tmp_path / "dist", package, "--key", "nobody@packages.invalid")


def test_what_is_no_artefact_of_this_version_is_refused(package, wheel, keys, tmp_path):  # noqa: F811
    old = tmp_path / wheel.name.replace(version(), "0.0.1")
    shutil.copyfile(wheel, old)
    assert f"has version 0.0.1; this release is {version()}" in refusal(tmp_path / "dist", old, "--key", keys[0])
    (tmp_path / "image").mkdir()
    older = make_image(tmp_path / "image", "0.0.2")
    assert f"has version 0.0.2; this release is {version()}" in refusal(tmp_path / "dist", older, "--key", keys[0])
    (older / "index.json").write_text("[]")
    assert "is a damaged OCI layout" in refusal(tmp_path / "dist", older, "--key", keys[0])
    assert "is no .deb, no .whl" in refusal(tmp_path / "dist", tmp_path, "--key", keys[0])
    assert "two artefacts are called" in refusal(tmp_path / "dist", package, package, "--key", keys[0])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter").write_text("kept")
    assert "holds something that is no release" in refusal(tmp_path / "mine", package, "--key", keys[0])
    assert (tmp_path / "mine/letter").read_text() == "kept"


# --- apt


class Apt:
    """apt with a state of its own: it knows this one repository, and only the machine's installed packages."""

    def __init__(self, folder, repository, keyring):
        self.folder = folder
        for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d", "log"):
            (folder / name).mkdir(parents=True)
        source = f"deb [signed-by={keyring}] file://{repository} ./\n"
        (folder / "etc/sources.list").write_text(source)
        settings = {"Dir::State::lists": "lists", "Dir::Cache": "cache", "Dir::Etc": "etc", "Dir::Log": "log"}
        self.options = [word for name, value in settings.items() for word in ("-o", f"{name}={folder / value}")]
        # Its own user may not read the tests' folders.
        self.options += ["-o", "APT::Sandbox::User=root", "-o", "Dir::State::status=/var/lib/dpkg/status",
                         "-o", "DPkg::Lock::Timeout=60", "-q", "-y"]

    def get(self, *arguments, runner=run, **options):
        return runner("apt-get", *self.options, *arguments, cwd=self.folder,
                      env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}, **options)

    def versions(self):
        listed = run("apt-cache", *self.options[:-2], "madison", "fathom")
        return [line.split("|")[1].strip() for line in listed.splitlines() if "file:" in line or "Packages" in line]


def copy_of(release, folder):
    shutil.copytree(release, folder)
    return folder


def test_apt_finds_the_package_and_its_bytes_are_those_that_were_signed(release, package, tmp_path):  # noqa: F811
    apt = Apt(tmp_path, release / "apt", release / "fathom.asc")
    apt.get("update", "-o", "APT::Update::Error-Mode=any")
    assert apt.versions() == [version()]
    apt.get("download", "fathom")
    assert (tmp_path / package.name).read_bytes() == package.read_bytes()


@pytest.mark.parametrize("spoilt", ["Packages", "InRelease", "key"])
def test_apt_refuses_what_was_changed_or_signed_by_another(release, keys, tmp_path, spoilt):
    copy = copy_of(release, tmp_path / "copy")
    if spoilt == "key":
        key = tmp_path / "stranger.asc"
        with tempfile.TemporaryDirectory(prefix="gpg-") as home:
            run("gpg", "--homedir", home, "--batch", "--import", keys[1])
            key.write_text(run("gpg", "--homedir", home, "--batch", "--armor", "--export"))
            run("gpgconf", "--homedir", home, "--kill", "all")
    else:
        key = copy / "fathom.asc"
        (copy / "apt/Packages.gz").unlink()
        path = copy / "apt" / spoilt
        path.write_text(path.read_text().replace("amd64", "arm64", 1))
    apt = Apt(tmp_path / "apt", copy / "apt", key)
    apt.get("update", "-o", "APT::Update::Error-Mode=any", status=100)
    assert apt.versions() == []


def test_apt_refuses_a_package_that_was_changed(release, package, tmp_path):  # noqa: F811
    copy = copy_of(release, tmp_path / "copy")
    apt = Apt(tmp_path / "apt", copy / "apt", copy / "fathom.asc")
    apt.get("update")
    with open(copy / "apt" / package.name, "r+b") as deb:
        deb.seek(1000)
        deb.write(b"\0")
    apt.get("download", "fathom", status=100)


def test_it_installs_from_the_repository_and_is_removed(release, tmp_path):
    with machine_for_itself():
        finish_interrupted_dpkg()
        if is_of_a_test():
            purge(with_user=True)
        if reason := why_not_installed():
            pytest.skip(reason)
        had_user = has_user()
        apt = Apt(tmp_path, release / "apt", release / "fathom.asc")
        apt.get("update")
        try:
            apt.get("install", "fathom", runner=as_root)
            assert run("/usr/bin/fathom", "version", cwd="/") == run_fathom("version").stdout
            assert CONFIG.exists()
        finally:
            purge(with_user=not had_user)
        assert not os.path.lexists("/usr/bin/fathom") and not CONFIG.parent.exists()


# --- the list of contents


# Of SPDX 2.3: what a package must have, the forms of identifiers, and the relations that are used here.
REQUIRED = {"": ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo"),
            "package": ("SPDXID", "name", "downloadLocation")}
RELATIONS = {"DESCRIBES", "GENERATED_FROM", "STATIC_LINK", "DYNAMIC_LINK", "DEPENDS_ON", "CONTAINS"}
PURPOSES = {"APPLICATION", "LIBRARY", "CONTAINER", "INSTALL"}
LICENCE = re.compile(r"NOASSERTION|NONE|(LicenseRef-)?[A-Za-z0-9.-]+( (AND|OR|WITH) (LicenseRef-)?[A-Za-z0-9.-]+)*")
PURL = re.compile(r"pkg:(deb/debian|generic)/[a-z0-9]([a-z0-9.-]|%2B)*(@[A-Za-z0-9.%~-]+)?(\?[a-z0-9=&-]+)?")


def breaches(document):
    """What is wrong with it by these rules."""
    wrong = [f"no {name}" for name in REQUIRED[""] if not document.get(name)]
    wrong += [f"{package.get('SPDXID')}: no {name}" for package in document["packages"] for name in REQUIRED["package"]
              if not package.get(name)]
    if (document.get("spdxVersion"), document.get("dataLicense"), document.get("SPDXID")) != (
            "SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"):
        wrong.append("another version, licence or identifier of the document")
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*:[^#\s]+", document.get("documentNamespace", "")):
        wrong.append("the namespace is no absolute URI without a fragment")
    made = document.get("creationInfo", {})
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made.get("created", "")):
        wrong.append("the time of creation has another form")
    wrong += [f"creator {name}" for name in made.get("creators") or [""]
              if not re.fullmatch(r"(Tool|Person|Organization): .+", name)]
    ids = ["SPDXRef-DOCUMENT", *(package.get("SPDXID", "") for package in document["packages"])]
    wrong += [f"identifier {name} twice" for name in set(ids) if ids.count(name) > 1]
    wrong += [f"identifier {name}" for name in ids if not re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name)]
    texts = {entry["licenseId"]: entry for entry in document.get("hasExtractedLicensingInfos", [])}
    wrong += [f"{name} has no text" for name, entry in texts.items() if not entry["extractedText"].strip()]
    for package in document["packages"]:
        wrong += breaches_of_package(package, texts)
    for relation in document["relationships"]:
        if relation["relationshipType"] not in RELATIONS:
            wrong.append(f"relation {relation['relationshipType']}")
        wrong += [f"{relation[end]} does not exist" for end in ("spdxElementId", "relatedSpdxElement")
                  if relation[end] not in ids]
    return wrong + [f"{name} is related to nothing" for name in ids
                    if name not in json.dumps(document["relationships"])]


def breaches_of_package(package, texts):  # noqa: F811
    name, wrong = package.get("SPDXID"), []
    for key in ("licenseConcluded", "licenseDeclared"):
        licence = package.get(key, "NOASSERTION")
        wrong += [f"{name}: {key} {licence}"] * (not LICENCE.fullmatch(licence))
        wrong += [f"{name}: no text of {ref}" for ref in re.findall(r"LicenseRef-[A-Za-z0-9.-]+", licence)
                  if ref not in texts]
    # Without files of its own it must say that they were not looked at.
    wrong += [f"{name}: filesAnalyzed"] * (package.get("filesAnalyzed") is not False)
    wrong += [f"{name}: purpose"] * (package.get("primaryPackagePurpose", "LIBRARY") not in PURPOSES)
    for checksum in package.get("checksums", []):
        fine = checksum["algorithm"] == "SHA256" and re.fullmatch("[0-9a-f]{64}", checksum["checksumValue"])
        wrong += [f"{name}: checksum"] * (not fine)
    for reference in package.get("externalRefs", []):
        kind = (reference["referenceCategory"], reference["referenceType"])
        locator = PURL.fullmatch(reference["referenceLocator"])
        wrong += [f"{name}: {reference}"] * (kind != ("PACKAGE-MANAGER", "purl") or not locator)
    return wrong


@pytest.fixture
def contents(release):
    return json.loads((release / f"fathom-{version()}.spdx.json").read_text())


def related(document, name, kind):
    """The names of what the package of that name is so related to."""
    by_id = {package["SPDXID"]: package for package in document["packages"]}
    return {by_id[relation["relatedSpdxElement"]]["name"] for relation in document["relationships"]
            if relation["relationshipType"] == kind and by_id.get(relation["spdxElementId"], {}).get("name") == name}


def test_the_list_of_contents_keeps_the_rules_of_spdx(contents):
    assert breaches(contents) == []


def test_a_list_that_breaks_a_rule_is_noticed(contents):
    for spoil in (lambda it: it.pop("dataLicense"), lambda it: it["packages"].append(it["packages"][0]),
                  lambda it: it["packages"][0].update(SPDXID="SPDXRef-a_b"), lambda it: it["packages"].pop(),
                  lambda it: it["packages"][0].update(licenseDeclared="LicenseRef-unknown"),
                  lambda it: it["relationships"][0].update(relationshipType="KNOWS"),
                  lambda it: it["creationInfo"].update(creators=["me"])):
        copy = json.loads(json.dumps(contents))
        spoil(copy)
        assert breaches(copy) != []


def test_the_list_has_each_artefact_with_its_checksum_and_what_it_is_made_of(
        contents, release, package, wheel, image):  # noqa: F811
    image_name = f"fathom-{version()}-image.tar"
    for name in (package.name, wheel.name, image_name):
        entry, = (entry for entry in contents["packages"] if entry["name"] == name)
        assert entry["checksums"][0]["checksumValue"] == hashlib.sha256((release / name).read_bytes()).hexdigest()
        assert related(contents, name, "GENERATED_FROM") == {"fathom"}
    depends = {entry.split()[0] for entry in field(package, "Depends").split(", ")}
    assert related(contents, package.name, "DEPENDS_ON") == {"adduser"}
    assert related(contents, package.name, "DYNAMIC_LINK") == depends - {"adduser"}
    linked = related(contents, wheel.name, "STATIC_LINK")
    assert "openssl" in linked
    assert related(contents, image_name, "CONTAINS") == {"libc6"}
    assert related(contents, image_name, "STATIC_LINK") == {"openssl"}
    for source in linked:
        entry, = (entry for entry in contents["packages"] if entry["name"] == source)
        locator = unquote(entry["externalRefs"][0]["referenceLocator"])
        assert locator == f"pkg:deb/debian/{source}@{entry['versionInfo']}?arch=source&distro=debian-12"
        assert entry["licenseDeclared"] != "NOASSERTION"


# --- the README's three lines


def test_the_readme_installs_from_this_folder(release, wheel, tmp_path):
    block, = re.findall(r"```sh\n(sudo apt-get install fathom.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    _, pip, podman = (line.partition("  #")[0].strip() for line in block.splitlines())
    (tmp_path / "build").mkdir()
    (tmp_path / "build/dist").symlink_to(release)
    archive = re.search(r"oci-archive:(\S+)", podman)[1]
    with tarfile.open(tmp_path / archive) as image:
        assert {"oci-layout", "index.json"} <= set(image.getnames())
    words = pip.split()
    assert words[:2] == ["pip", "install"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    said = run("/usr/bin/python3", "-m", "pip", "install", "--dry-run", "--break-system-packages", *words[2:],
               cwd=tmp_path, env=environment)
    assert wheel.name in said and f"Would install fathom-{version()}" in said
