"""CPU time and memory of broker processes, read from /proc; children count with their parent."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    """The process and all its descendants that are alive."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(int(entry))):
            children.setdefault(int(fields[1]), []).append(int(entry))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of the family so far."""
    total = 0
    for each in family(pid):
        if fields := _stat(each):
            total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def rss_bytes(pid: int) -> int:
    """Resident memory of the family."""
    total = 0
    for each in family(pid):
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * _PAGE
        except FileNotFoundError:
            continue
    return total


def listener_pid(port: int) -> int | None:
    """The process on this machine that listens on the port, if we may see it."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if any(os.readlink(link) in inodes for link in Path(f"/proc/{entry}/fd").iterdir()):
                return int(entry)
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
    return None


def describe() -> dict[str, object]:
    """What the figures were measured on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": model.group(1) if model else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory.group(1)) / (1 << 20), 1) if memory else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat behind the name, which may hold spaces; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
