"""What does a program need of the machine that runs it? Its architecture, libraries and symbol versions.

Reads the dynamic segment of a 64-bit little-endian ELF file, for any architecture and without binutils.
"""

import struct
from dataclasses import dataclass, field

from artefact import Refused

ARCHITECTURES = {62: "x86_64", 183: "aarch64"}  # e_machine
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF


@dataclass
class Program:
    architecture: str                             # as in the names of wheels: x86_64, aarch64
    libraries: list = field(default_factory=list)  # DT_NEEDED, in its order
    versions: dict = field(default_factory=dict)   # library: symbol versions needed of it, sorted


def read_program(path):
    data = path.read_bytes()
    try:
        return _read(data, path)
    except (struct.error, ValueError, IndexError, StopIteration) as error:
        raise Refused(f"{path} is a damaged ELF file: {error}") from error


def _read(data, path):
    if data[:6] != b"\x7fELF\x02\x01":
        raise Refused(f"{path} is no 64-bit little-endian ELF program")
    machine, = struct.unpack_from("<H", data, 18)
    if machine not in ARCHITECTURES:
        raise Refused(f"{path} is for ELF machine {machine}; there are x86_64 (62) and aarch64 (183)")
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, start + n * size) for n in range(count)]
    if any(at + size > len(data) for _, _, at, _, _, size in segments):
        raise ValueError("it is truncated")

    def offset(address):
        for kind, _, at, begin, _, length in segments:
            if kind == PT_LOAD and begin <= address < begin + length:
                return address - begin + at
        raise ValueError(f"address {address:#x} is in no segment")

    program = Program(ARCHITECTURES[machine])
    dynamic = next((segment for segment in segments if segment[0] == PT_DYNAMIC), None)
    if not dynamic:
        return program  # a static one needs nothing
    entries = list(struct.iter_unpack("<qQ", data[dynamic[2]:dynamic[2] + dynamic[5] // 16 * 16]))
    values = dict(reversed(entries))
    strings = offset(values[DT_STRTAB]) if DT_STRTAB in values else 0

    def text(at):
        return data[strings + at:data.index(b"\0", strings + at)].decode()

    program.libraries = [text(value) for tag, value in entries if tag == DT_NEEDED]
    at = offset(values[DT_VERNEED]) if DT_VERNEED in values else 0
    for _ in range(values.get(DT_VERNEEDNUM, 0)):
        _, number, library, first, following = struct.unpack_from("<HHIII", data, at)
        names, entry = set(), at + first
        for _ in range(number):
            _, _, _, name, ahead = struct.unpack_from("<IHHII", data, entry)
            names.add(text(name))
            entry += ahead
        program.versions[text(library)] = sorted(names)
        at += following
    return program
