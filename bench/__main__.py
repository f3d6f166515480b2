"""The command: `python -m bench [--against kafka|HOST:PORT] [--quick] [--only PART]...`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import (
    archive,
    brokers,
    bulk,
    cluster,
    compaction,
    fetch_load,
    footprint,
    group_reload,
    groups,
    latency,
    librdkafka,
    machine,
    produce_load,
    recovery,
    report,
    scale,
    several,
    spark,
    three,
    transactions,
)
from bench.rounds import Plan, Row
from ottla.client import ClientError

PARTS: dict[str, Callable[[Sequence[brokers.Broker], Plan], Iterator[Row]]] = {
    "produce": produce_load.rows,
    "fetch": fetch_load.rows,
    "bulk": bulk.rows,
    "librdkafka": librdkafka.rows,
    "latency": latency.rows,
    "groups": groups.rows,
    "reload": group_reload.rows,
    "transactions": transactions.rows,
    "recovery": recovery.rows,
    "compaction": compaction.rows,
    "scale": scale.rows,
    "spark": spark.rows,
    "archive": archive.rows,
    "footprint": footprint.rows,
    "cluster": cluster.rows,
    "brokers": several.rows,
}
OF_THEIR_OWN = ("footprint", "cluster", "brokers")
"""Parts that start brokers themselves, of the kinds that are measured."""
RESULTS = Path(__file__).parent / "results"
FULL = Plan(rounds=3, seconds=3.0, warm_up_seconds=10.0)
QUICK = Plan(rounds=2, seconds=1.0, warm_up_seconds=3.0, scale=0.25)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if sys.platform != "linux":
        print("The benchmark needs Linux: its clients use epoll, and it reads /proc.", file=sys.stderr)
        return 1
    plan = QUICK if options.quick else FULL
    names = options.only or list(PARTS)
    sides: list[brokers.Broker] = []
    measured: list[Row] = []
    begin = brokers.make if all(name in OF_THEIR_OWN for name in names) else brokers.start
    try:
        sides.append(begin("ottla"))
        if options.against == "kafka":
            sides.append(begin("kafka"))
        elif options.against:
            sides.append(brokers.running_at(options.against))
        columns = [side.name for side in sides]
        for name in names:
            run_part(name, sides, plan, columns, measured)
    finally:
        stalls = {side.name: side.stop() for side in sides}
    for side in sides:
        if (stall_ms := stalls[side.name]) is not None:
            print(
                f"\nThe event loop of {side.name} was held up for {stall_ms} ms at most, of which it worked "
                f"{side.worked_ms} ms; the rest is the kernel's, or others'."
            )
    about = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine.describe(),
        "quick": options.quick,
        "parts": names,
        "longest_stall_ms": {name: ms for name, ms in stalls.items() if ms is not None},
        "kafka_version": brokers.KAFKA_VERSION if "kafka" in columns else None,
        "kafka_version_in_clusters": three.KAFKA_VERSION if "kafka" in columns else None,
    }
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = report.save(report.as_json(measured, [*columns, report.FLOOR], about), RESULTS, stamp)
    print(f"\nWritten to {path}")
    return 1 if any(row.notes for row in measured) else 0


def run_part(
    name: str, sides: Sequence[brokers.Broker], plan: Plan, columns: list[str], measured: list[Row]
) -> None:
    """Measure one part and print its rows as they come."""
    section, shown = "", columns
    for row in rows_of(name, sides, plan):
        measured.append(row)
        if row.section != section:
            section = row.section
            shown = row.columns or columns
            if report.FLOOR in row.samples:
                shown = [*shown, report.FLOOR]
            print(f"\n{section}\n{report.header(shown)}", flush=True)
        print(report.line(row, shown), flush=True)


def rows_of(name: str, sides: Sequence[brokers.Broker], plan: Plan) -> Iterator[Row]:
    """The part's rows; a part that cannot go on ends with a row that says why."""
    try:
        yield from PARTS[name](sides, plan)
    except (RuntimeError, OSError, ClientError) as error:
        yield Row(f"{name} could not go on", "", "", notes=[str(error)])


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench", description="Measure the broker.")
    made.add_argument(
        "--against", metavar="kafka|HOST:PORT", help="measure Apache Kafka, or a running broker, in turns"
    )
    made.add_argument("--quick", action="store_true", help="short rounds and less data; not for comparing")
    made.add_argument("--only", action="append", choices=list(PARTS), help="this part only; may be repeated")
    return made


if __name__ == "__main__":
    sys.exit(main())
