"""Lines of growing text files as a streaming source of Spark's; see lines.py for how files are known again.

Columns: value (the line's bytes), file (its path), position (of its first byte). The places are Spark's
offsets, so a batch that is repeated has the same lines. The files must be at the same path on every executor:
one machine, or a file system that all have mounted.

Options: `patterns` (JSON list of folders and globs), `maxBytesPerTrigger`, `unfinishedAfterSeconds` (0:
never), `failOnDataLoss`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from spark_jobs.files.lines import (
    LinesGone,
    Range,
    advance,
    find,
    look,
    places_from,
    places_json,
    ranges,
    read_lines,
)

FORMAT = "ottla_lines"
SCHEMA = "value binary, file string, position bigint"
LINES_PER_BATCH = 10_000
_log = logging.getLogger(__name__)


class Lines(InputPartition):
    """One file's lines."""

    def __init__(self, wanted: Range) -> None:
        super().__init__(None)
        self.wanted = wanted


class LineSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> LineReader:
        return LineReader(self.options)


class LineReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.patterns: list[str] = json.loads(options["patterns"])
        self.max_bytes = int(options.get("maxBytesPerTrigger", 0))
        self.unfinished_after_s = float(options.get("unfinishedAfterSeconds", 0))
        self.fail_on_data_loss = options.get("failOnDataLoss", "true") == "true"
        self.upto: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {"files": {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self.max_bytes) if self.max_bytes else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.upto = {each.identity: each.size for each in look(self.patterns, {})}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        known = places_from(start["files"])
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        idle = time.time() - self.unfinished_after_s if self.unfinished_after_s else None
        places = advance(look(self.patterns, known), known, most, self.upto, idle)
        return {"files": places_json(places)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [Lines(each) for each in ranges(places_from(start["files"]), places_from(end["files"]))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Arrow batches; raises LinesGone where lines of the range are gone and that is not allowed."""
        assert isinstance(partition, Lines)
        wanted = partition.wanted
        try:
            path = find(wanted)
        except LinesGone as gone:
            if self.fail_on_data_loss:
                raise
            _log.warning("%s", gone)
            return
        values: list[bytes] = []
        positions: list[int] = []
        for position, line in read_lines(path, wanted.start, wanted.end):
            values.append(line)
            positions.append(position)
            if len(values) == LINES_PER_BATCH:
                yield batch(values, wanted.path, positions)
                values, positions = [], []
        if values:
            yield batch(values, wanted.path, positions)


def batch(values: list[bytes], path: str, positions: list[int]) -> Any:
    import pyarrow  # on executors only

    return pyarrow.RecordBatch.from_arrays(
        [
            pyarrow.array(values, pyarrow.binary()),
            pyarrow.array([path] * len(values), pyarrow.string()),
            pyarrow.array(positions, pyarrow.int64()),
        ],
        names=["value", "file", "position"],
    )
