"""Small files and folders that a Parquet sink keeps beside its data: on a local path or a Hadoop file system.

`replace` is atomic: a reader sees the old text or the new one. On a local (or mounted) path it is
durable too, with everything that was handed to `sync` before; on HDFS that is the file system's own affair.
Object stores have no atomic rename: don't use them for the manifest.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession


class Storage(Protocol):
    """A folder. Names are relative to it, with forward slashes."""

    def read(self, name: str) -> str | None:
        """A file's text; None where there is none."""

    def replace(self, name: str, text: str) -> None:
        """Puts a file in place of the one of that name."""

    def folders(self, name: str) -> list[str]:
        """Names of the folders in a folder, which may be missing."""

    def files(self, name: str) -> list[str]:
        """Every file below a folder, by its name relative to the root."""

    def sync(self, names: list[str]) -> None:
        """Makes files last before something refers to them."""

    def remove(self, name: str) -> None:
        """Removes a file, or a folder with what is in it; a missing one is no error."""

    def uri(self, name: str) -> str:
        """What Spark reads and writes."""


def storage_of(spark: SparkSession, path: str) -> Storage:
    parts = urlsplit(path)
    if parts.scheme in ("", "file"):
        return LocalStorage(Path(unquote(parts.path) if parts.scheme else path).absolute())
    return HadoopStorage(spark, path)


class LocalStorage:
    """A folder of this machine's, or one that is mounted everywhere."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> str | None:
        try:
            return (self.root / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def replace(self, name: str, text: str) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        temporary = self.root / f".{name}.new"
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.root / name)
        sync_folder(self.root)

    def folders(self, name: str) -> list[str]:
        folder = self.root / name
        return sorted(each.name for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []

    def files(self, name: str) -> list[str]:
        found = sorted((self.root / name).rglob("*"))
        return [each.relative_to(self.root).as_posix() for each in found if each.is_file()]

    def sync(self, names: list[str]) -> None:
        for name in names:
            with (self.root / name).open("rb") as file:
                os.fsync(file.fileno())
        folders = {parent for name in names for parent in (self.root / name).relative_to(self.root).parents}
        for folder in sorted(folders):
            sync_folder(self.root / folder)

    def remove(self, name: str) -> None:
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def uri(self, name: str) -> str:
        return f"file://{self.root / name}"  # Hadoop takes a path as it is, nothing escaped


def sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class HadoopStorage:
    """A folder of HDFS or another file system that Spark has a driver for and that renames atomically."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        context: Any = spark.sparkContext
        self.root = root.rstrip("/")
        self.gateway = context._gateway
        self.hadoop = context._jvm.org.apache.hadoop.fs
        configuration = context._jsc.hadoopConfiguration()
        self.system = self.path("").getFileSystem(configuration)
        self.renaming = self.hadoop.FileContext.getFileContext(self.path("").toUri(), configuration)

    def path(self, name: str) -> Any:
        return self.hadoop.Path(self.uri(name))

    def uri(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def read(self, name: str) -> str | None:
        if not self.system.exists(self.path(name)):
            return None
        stream = self.system.open(self.path(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def replace(self, name: str, text: str) -> None:
        temporary = self.path(f".{name}.new")
        stream = self.system.create(temporary, True)
        try:
            stream.write(bytearray(text.encode()))
            stream.hsync()
        finally:
            stream.close()
        options = self.gateway.new_array(getattr(self.hadoop, "Options$Rename"), 1)
        options[0] = getattr(self.hadoop, "Options$Rename").OVERWRITE
        self.renaming.rename(temporary, self.path(name), options)

    def folders(self, name: str) -> list[str]:
        if not self.system.exists(self.path(name)):
            return []
        found = self.system.listStatus(self.path(name))
        return sorted(str(each.getPath().getName()) for each in found if each.isDirectory())

    def files(self, name: str) -> list[str]:
        if not self.system.exists(self.path(name)):
            return []
        walk = self.system.listFiles(self.path(name), True)
        base = str(self.system.makeQualified(self.path("")).toUri().getPath()).rstrip("/")
        found = []
        while walk.hasNext():
            found.append(str(walk.next().getPath().toUri().getPath()).removeprefix(f"{base}/"))
        return sorted(found)

    def sync(self, names: list[str]) -> None:
        """Files are complete and replicated when they are closed."""

    def remove(self, name: str) -> None:
        self.system.delete(self.path(name), True)
