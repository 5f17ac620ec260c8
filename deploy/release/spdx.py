"""What is in a release, for programs that look for known flaws and licences: SPDX 2.3, as JSON.

Fathom itself, each artefact with its checksum, each library that is linked into one, and the packages that the
Debian package depends on or that the image contains.
"""

import hashlib
import io
import json
import re
import subprocess
import tarfile
import time
import uuid
import zipfile
from pathlib import Path
from urllib.parse import quote

from artefact import Refused, libraries_in, release_time, summary, version

LICENCES = Path(__file__).resolve().parent / "licences"
NO = "NOASSERTION"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def known_licences():
    """{Debian source package: SPDX expression}"""
    lines = [line for line in LICENCES.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(None, 1) for line in lines)


def identifier(*words):
    """SPDX allows letters, digits, dots and hyphens."""
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(words))


def debian_purl(name, of_version=None, **qualifiers):
    found = f"pkg:deb/debian/{quote(name, safe='')}" + (f"@{quote(of_version, safe='')}" if of_version else "")
    qualifiers = {**qualifiers, "distro": "debian-12"}
    return found + "?" + "&".join(f"{key}={value}" for key, value in sorted(qualifiers.items()))


class Document:
    def __init__(self):
        self.packages = {}       # by SPDXID
        self.relationships = []
        self.licences = {}       # texts that have no SPDX identifier, by LicenseRef-…

    def add(self, spdx_id, name, **fields):
        package = {"SPDXID": spdx_id, "name": name, "downloadLocation": NO, "filesAnalyzed": False,
                   "licenseConcluded": NO, "licenseDeclared": NO, "copyrightText": NO, **fields}
        if self.packages.setdefault(spdx_id, package) != package:
            raise Refused(f"two things have the SPDX identifier {spdx_id}")
        return spdx_id

    def relate(self, subject, kind, other, comment=None):
        relation = {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other,
                    **({"comment": comment} if comment else {})}
        if relation not in self.relationships:
            self.relationships.append(relation)

    def add_library(self, library, text):
        licence = known_licences().get(library.source)
        if not licence:
            licence = f"LicenseRef-Debian-{re.sub(r'[^A-Za-z0-9.-]+', '-', library.source)}"
            self.licences[licence] = {"licenseId": licence, "name": f"Debian's copyright file of {library.source}",
                                      "extractedText": text}
        return self.add(identifier("library", library.source, library.version), library.source,
                        versionInfo=library.version, licenseDeclared=licence, supplier="Organization: Debian",
                        primaryPackagePurpose="LIBRARY",
                        externalRefs=purl(debian_purl(library.source, library.version, arch="source")))

    def add_debian_package(self, name, of_version=None, architecture=None):
        of_what = {"arch": architecture} if architecture else {}
        return self.add(identifier("debian", name, *filter(None, (of_version, architecture))), name,
                        **({"versionInfo": of_version} if of_version else {}), supplier="Organization: Debian",
                        externalRefs=purl(debian_purl(name, of_version, **of_what)))

    def text(self):
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release_time()))
        content = {"packages": sorted(self.packages.values(), key=lambda package: package["SPDXID"]),
                   "relationships": self.relationships}
        if self.licences:
            content["hasExtractedLicensingInfos"] = [self.licences[name] for name in sorted(self.licences)]
        # Another content is another document.
        namespace = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(content, sort_keys=True)).urn
        return json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                           "name": f"fathom-{version()}", "documentNamespace": namespace,
                           "creationInfo": {"created": created, "creators": [f"Tool: fathom-release-{version()}",
                                                                             "Organization: The Fathom authors"]},
                           **content}, indent=2, ensure_ascii=False) + "\n"


def purl(locator):
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]


def wheel_libraries(path):
    """[(library, text of its licence)] of what is linked into a wheel's program."""
    with zipfile.ZipFile(path) as wheel:
        folder = f"fathom-{version()}.dist-info/licenses/"
        if folder + "libraries.txt" not in wheel.namelist():
            return []
        listed = libraries_in(wheel.read(folder + "libraries.txt").decode(), f"{path.name}: libraries.txt")
        return [(library, wheel.read(folder + str(library.licence)).decode(errors="replace")) for library in listed]


def add_dependencies(document, package, deb):
    """Of a .deb. Libraries are linked; other packages are called."""
    depends = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], text=True, capture_output=True, check=True).stdout
    for entry in filter(None, (entry.strip() for entry in depends.split(","))):
        name = re.match(r"[a-z0-9][a-z0-9.+-]+", entry)[0]
        kind = "DYNAMIC_LINK" if name.startswith("lib") else "DEPENDS_ON"
        document.relate(package, kind, document.add_debian_package(name), entry)


def image_files(path):
    """{path: bytes} of all layers of an OCI archive that name a package or a licence."""
    found = {}
    with tarfile.open(path) as archive:
        def blob(descriptor):
            return archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()

        def walk(descriptor):
            if "index" in descriptor["mediaType"] or "manifest" in descriptor["mediaType"]:
                inner = json.loads(blob(descriptor))
                for each in inner.get("manifests", []) + inner.get("layers", []):
                    walk(each)
                return
            with tarfile.open(fileobj=io.BytesIO(blob(descriptor))) as layer:
                for member in layer:
                    name = member.name.removeprefix("./")
                    if member.isfile() and re.match(r"var/lib/dpkg/status\.d/|usr/share/doc/", name):
                        found[f"{descriptor['digest']}:{name}"] = layer.extractfile(member).read()
        for each in json.load(archive.extractfile("index.json"))["manifests"]:
            walk(each)
    return found


def add_image_contents(document, package, path, linked):
    """The Debian packages whose files are in it, and those of the linked libraries whose licence it carries."""
    licensed = set()
    for name, content in image_files(path).items():
        inside = name.split(":", 2)[2]
        if inside.startswith("var/lib/dpkg/status.d/"):
            fields = dict(re.findall(r"^(Package|Version|Architecture): (.*)$", content.decode(), re.MULTILINE))
            if len(fields) == 3:
                document.relate(package, "CONTAINS", document.add_debian_package(
                    fields["Package"], fields["Version"], fields["Architecture"]))
        elif inside.endswith("/copyright"):
            licensed.add(Path(inside).parent.name)
    for source, spdx_id in linked:
        if source in licensed:
            document.relate(package, "STATIC_LINK", spdx_id)


def bill_of_materials(paths):
    """The text of the document about these files: .deb, .whl, and the image's archive."""
    document = Document()
    fathom = document.add(identifier("fathom"), "fathom", versionInfo=version(), summary=summary(),
                          licenseConcluded="Apache-2.0", licenseDeclared="Apache-2.0",
                          primaryPackagePurpose="APPLICATION", externalRefs=purl(f"pkg:generic/fathom@{version()}"))
    document.relate("SPDXRef-DOCUMENT", "DESCRIBES", fathom)
    linked = []
    # Wheels first: they name the libraries that are in the image's program, too.
    for path in sorted(paths, key=lambda path: (path.suffix != ".whl", path.name)):
        package = document.add(identifier("artefact", path.name), path.name, versionInfo=version(),
                               packageFileName=path.name, licenseDeclared="Apache-2.0",
                               primaryPackagePurpose="CONTAINER" if path.suffix == ".tar" else "INSTALL",
                               checksums=[{"algorithm": "SHA256", "checksumValue": sha256(path)}])
        document.relate("SPDXRef-DOCUMENT", "DESCRIBES", package)
        document.relate(package, "GENERATED_FROM", fathom)
        if path.suffix == ".whl":
            for library, text in wheel_libraries(path):
                linked.append((library.source, document.add_library(library, text)))
                document.relate(package, "STATIC_LINK", linked[-1][1])
        elif path.suffix == ".deb":
            add_dependencies(document, package, path)
        else:
            add_image_contents(document, package, path, linked)
    return document.text()
