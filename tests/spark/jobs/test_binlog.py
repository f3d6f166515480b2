"""The binlog reader against a real MariaDB and our broker: order, restarts, kills, values, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.readers import read_with_confluent
from tests.spark.jobs.binlog_process import TIMEOUT_S, BinlogProcess, run_binlog
from tests.support.mariadb_process import MariadbProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.mariadb,
    pytest.mark.xdist_group("binlog"),  # starts no Spark
    # of mysql-replication
    pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp:DeprecationWarning"),
]

PARTITIONS = 3
ITEMS = "(id INT PRIMARY KEY, name VARCHAR(60), price DECIMAL(20,4), v INT NOT NULL DEFAULT 0)"


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbProcess]:
    with MariadbProcess() as server:
        yield server


@pytest.fixture(scope="module")
def broker() -> Iterator[OttlaProcess]:
    with OttlaProcess() as broker:
        yield broker


class Followed:
    """A table of its own, followed into a topic of its name."""

    def __init__(
        self, server: MariadbProcess, broker: OttlaProcess, name: str, folder: Path, columns: str
    ) -> None:
        self.server, self.broker, self.name = server, broker, name
        self.position_file = folder / "position.json"
        server.run(f"CREATE OR REPLACE DATABASE {name}", f"CREATE TABLE {name}.t {columns}")
        file, offset, *_ = server.rows("SHOW MASTER STATUS")[0]
        self.options = ["--table", f"{name}.t", "--topic", name, "--partitions", str(PARTITIONS)]
        self.options += ["--start", f"{file}:{offset}"]

    def once(self, *more: str) -> str:
        """Reads to the end of the binlog; what was said."""
        code, said = self.attempt(*more)
        assert code == 0, said
        return said

    def attempt(self, *more: str) -> tuple[int, str]:
        return run_binlog(
            self.server, self.broker.bootstrap_servers, self.position_file, *self.options, *more
        )

    def follow(self, *more: str) -> BinlogProcess:
        return BinlogProcess(
            self.server, self.broker.bootstrap_servers, self.position_file, *self.options, *more
        )

    def records(self) -> list[list]:
        """The topic by partition, in order."""
        partitions = read_with_confluent(self.broker.bootstrap_servers, [self.name], PARTITIONS)[self.name]
        return [[row for _, row in partition] for partition in partitions]

    def events(self) -> list[tuple[int, dict]]:
        """(id, event) of each partition in its order."""
        return [(json.loads(row.key)["id"], json.loads(row.value)) for rows in self.records() for row in rows]

    def state(self) -> dict[int, dict]:
        """The table as the events tell it."""
        found: dict[int, dict] = {}
        for number, event in self.events():
            if event["op"] == "d":
                found.pop(number)
            else:
                assert (event["op"] == "c") == (number not in found), event
                found[number] = event["after"]
        return found

    def table(self) -> dict[int, dict]:
        rows = self.server.rows(f"SELECT id, name, CAST(price AS CHAR), v FROM {self.name}.t")
        return {row[0]: dict(zip(("id", "name", "price", "v"), row, strict=True)) for row in rows}


@pytest.fixture
def items(
    server: MariadbProcess, broker: OttlaProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> Followed:
    name = request.node.name.split("[")[0][5:50]
    return Followed(server, broker, name, tmp_path, ITEMS)


def test_changes_arrive_in_order_and_once_over_restarts(items: Followed) -> None:
    t = f"{items.name}.t"
    items.server.many(
        f"INSERT INTO {t} (id, name, price) VALUES (%s, %s, %s)", [(n, f"é {n}", n) for n in range(300)]
    )
    assert "300 in all" in items.once()
    items.server.run(f"UPDATE {t} SET v = v + 1", f"UPDATE {t} SET v = v + 1 WHERE id % 3 = 0")
    items.server.run(f"DELETE FROM {t} WHERE id % 5 = 0", f"UPDATE {t} SET id = id + 1000 WHERE id < 10")
    items.once()
    items.server.run(
        "FLUSH LOGS", f"INSERT INTO {t} (id) VALUES (5)", "BEGIN", f"DELETE FROM {t}", "ROLLBACK"
    )
    items.once()
    assert items.state() == items.table()
    assert "0 in all" in items.once()
    events = len(items.events())
    items.position_file.unlink()  # lost: everything is read again, and recognised
    assert f"0 in all, {events:,} were there already" in items.once()
    assert items.state() == items.table()


def test_a_record_says_what_changed_and_where_it_stood(items: Followed) -> None:
    t = f"{items.name}.t"

    def now_ms() -> int:
        return int(items.server.rows("SELECT UNIX_TIMESTAMP()")[0][0]) * 1000

    begun = now_ms()
    items.server.run(
        f"INSERT INTO {t} VALUES (7, 'a', 1.5, 2)", f"UPDATE {t} SET name = NULL", f"DELETE FROM {t}"
    )
    ended = now_ms()
    items.once("--tombstones")
    rows = next(rows for rows in items.records() if rows)
    first, second, third, tombstone = rows
    row = {"id": 7, "name": "a", "price": "1.5000", "v": 2}
    changed = {**row, "name": None}
    events = [json.loads(each.value) for each in (first, second, third)]
    assert [(e["op"], e["before"], e["after"]) for e in events] == [
        ("c", None, row),
        ("u", row, changed),
        ("d", changed, None),
    ]
    assert tombstone.value is None
    assert {each.key for each in rows} == {b'{"id":7}'}
    source = events[1]["source"]
    assert (source["database"], source["table"], source["row"]) == (items.name, "t", 0)
    header = dict(second.headers)["binlog"].decode()
    assert header.endswith(f"/{source['file']}:{source['position']}:0")
    assert begun <= events[0]["ts_ms"] <= ended


TYPES = """(id INT UNSIGNED PRIMARY KEY, d DECIMAL(30,10), f FLOAT, db DOUBLE, dt DATETIME(6),
    dt0 DATETIME, ts TIMESTAMP(3) NULL, da DATE, tm TIME(6), tm1 TIME(1), y YEAR, b BIT(12), e ENUM('x','ü'),
    st SET('z','a','m'), v VARCHAR(300), l VARCHAR(20) CHARSET latin1, vb VARBINARY(300), bl BLOB, tx TEXT,
    j JSON, u UUID, i6 INET6, bu BIGINT UNSIGNED, ti TINYINT, g GEOMETRY)"""


def test_values_of_every_kind(server: MariadbProcess, broker: OttlaProcess, tmp_path: Path) -> None:
    table = Followed(server, broker, "kinds", tmp_path, TYPES)
    server.run(
        "SET time_zone = '+05:00'",
        """INSERT INTO kinds.t VALUES (1, -12345678901234567890.0123456789, 0.1, 1e300,
        '2013-01-01 05:06:07.123456', '0000-00-00', '2013-01-01 05:06:07.125', '2013-01-01', '-01:02:03.25',
        '-838:59:58.9', 2013, b'101010101010', 'ü', 'm,z', 'snow ☃ 😀', 'café', x'00FF10', x'DEADBEEF',
        'text', '{"a": [1, 2.50]}', '43c06aeb-eb25-11f1-a8b2-02fc00000000', '2001:db8::',
        18446744073709551615, -5, POINT(1, 2))""",
        "INSERT INTO kinds.t (id, st, tx) VALUES (4294967295, '', '')",
    )
    table.once()
    found = {number: event["after"] for number, event in table.events()}
    geometry = server.rows("SELECT TO_BASE64(g) FROM kinds.t WHERE id = 1")[0][0]
    assert found[1] == {
        **{"id": 1, "d": "-12345678901234567890.0123456789", "f": 0.1, "db": 1e300},
        **{"dt": "2013-01-01 05:06:07.123456", "dt0": "0000-00-00 00:00:00", "ts": "2013-01-01 00:06:07.125"},
        **{
            "da": "2013-01-01",
            "tm": "-01:02:03.250000",
            "tm1": "-838:59:58.9",
            "y": 2013,
            "b": 0b101010101010,
        },
        **{
            "e": "ü",
            "st": "z,m",
            "v": "snow ☃ 😀",
            "l": "café",
            "vb": "AP8Q",
            "bl": "3q2+7w==",
            "tx": "text",
        },
        **{"j": '{"a": [1, 2.50]}', "u": "43c06aeb-eb25-11f1-a8b2-02fc00000000", "i6": "2001:db8::"},
        **{"bu": 18446744073709551615, "ti": -5, "g": geometry},
    }
    assert {name: value for name, value in found[4294967295].items() if value is not None} == {
        "id": 4294967295,
        "st": "",
        "tx": "",
    }


def test_killed_again_and_again_nothing_is_lost_or_doubled(items: Followed) -> None:
    t = f"{items.name}.t"
    with items.follow("--kafka-option", "queue.buffering.max.messages=500") as reader:
        for turn in range(3):
            for part in range(3):
                first = (turn * 3 + part) * 400
                items.server.many(
                    f"INSERT INTO {t} (id, name) VALUES (%s, %s)", [(first + n, "x" * 60) for n in range(400)]
                )
                items.server.run(f"UPDATE {t} SET v = {turn + 1} WHERE id % 7 = {part}")
            reader.wait_for("changes in")
            reader.kill()
            reader.output.write_text("")
            reader.__enter__()
        wait_until(lambda: items.position_file.exists(), "a position", TIMEOUT_S)
        items.server.run(f"DELETE FROM {t} WHERE id % 2 = 0", f"INSERT INTO {t} (id) VALUES (-1)")
        wait_until(lambda: -1 in dict(items.events()), "the last change", TIMEOUT_S)
        assert reader.stop() == 0
    assert items.state() == items.table()
    places = [dict(row.headers)["binlog"] for rows in items.records() for row in rows]
    assert len(places) == len(set(places))


def test_it_waits_for_a_server_that_went_away(
    server: MariadbProcess, broker: OttlaProcess, tmp_path: Path
) -> None:
    with MariadbProcess() as own:
        items = Followed(own, broker, "away", tmp_path, ITEMS)
        own.run("INSERT INTO away.t (id) VALUES (1)")
        with items.follow() as reader:
            reader.wait_for("1 changes")
            own.kill()
            reader.wait_for("trying again")
            own.start()
            own.run("INSERT INTO away.t (id) VALUES (2)", "ALTER TABLE away.t ADD COLUMN u UUID")
            own.run("UPDATE away.t SET u = '43c06aeb-eb25-11f1-a8b2-02fc00000000'")
            wait_until(lambda: len(items.events()) == 4, "the changes after the restart", TIMEOUT_S)
            assert reader.stop() == 0
        assert {event["after"].get("u") for _, event in items.events()[-1:]} == {
            "43c06aeb-eb25-11f1-a8b2-02fc00000000"
        }
        own.run("FLUSH LOGS", "FLUSH LOGS")

        def purged() -> bool:
            own.run("PURGE BINARY LOGS TO 'bin.000004'")  # not yet while the server still sends one
            return own.rows("SHOW BINARY LOGS")[0][0] == "bin.000004"

        wait_until(purged, "the purge", TIMEOUT_S)
        code, said = items.attempt()
        assert code == 1
        assert "is gone from the server (the oldest is bin.000004): changes were purged" in said
        own.run("RESET MASTER")
        assert "purged" in items.attempt()[1]


def test_what_can_not_be_followed_is_said(items: Followed) -> None:
    t = f"{items.name}.t"
    for statement, words in (
        (f"TRUNCATE {t}", f"a statement on {t}: TRUNCATE {t}"),
        (f"SET binlog_format = STATEMENT; INSERT INTO {t} (id) VALUES (1)", f"a statement on {t}: INSERT"),
        (f"SET binlog_row_image = MINIMAL; UPDATE {t} SET v = 9", f"rows of {t} with columns left out"),
    ):
        items.server.run(*statement.split("; "))
        code, said = items.attempt()
        assert code == 1
        assert words in said
        assert re.search(r"(bin\.\d{6}|binlog) at \d+: ", said)
        assert "passed over" in items.once("--skip-statements")
    items.server.run(f"INSERT INTO {t} (id) VALUES (2)")
    items.once()
    assert [number for number, _ in items.events()] == [2]


def test_what_is_missing_is_said_before_anything_is_read(
    items: Followed, broker: OttlaProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    items.server.run(f"CREATE TABLE {items.name}.keyless (a INT)")
    for more, words in (
        (["--table", "shop.none", "--topic", "x-{table}"], "no table shop.none"),
        (["--table", f"{items.name}.keyless", "--topic", "x-{table}"], "has no primary key"),
        (["--password", "wrong"], "Access denied"),
        (["--port", "1"], "Can't connect"),
        (["--topic", "absent", "--partitions", "0"], "no topic absent: create it, or name its number"),
        (["--start", "bin.999999:4"], "is gone from the server"),
    ):
        code, said = items.attempt(*more)
        assert code == 1, said
        assert words in said
    with monkeypatch.context() as impatient:
        impatient.setattr("spark_jobs.binlog.produce.REQUEST_TIMEOUT_S", 1.0)
        code, said = items.attempt("--bootstrap", "127.0.0.1:1")
    assert (code, "topic what_is_missing" in said) == (1, True), said
    with MariadbProcess({"binlog-format": "MIXED", "binlog-row-metadata": "MINIMAL"}) as wrong:
        code, said = run_binlog(wrong, broker.bootstrap_servers, items.position_file, *items.options)
    assert code == 1
    assert "binlog_format=MIXED, must be ROW; binlog_row_metadata=MINIMAL, must be FULL" in said


def test_a_topic_that_grew_and_a_server_that_is_another_are_refused(items: Followed) -> None:
    items.once()
    saved = json.loads(items.position_file.read_text())
    items.position_file.write_text(json.dumps({**saved, "partitions": {items.name: 2}}))
    code, said = items.attempt()
    assert code == 1
    assert f"topic {items.name} has 3 partitions, 2 when this reader began" in said
    items.position_file.write_text(json.dumps({**saved, "server": "other"}))
    assert "belongs to server other" in items.attempt()[1]
    items.position_file.write_text(json.dumps({**saved, "created_s": 5}))
    assert "is not the file that was read before" in items.attempt()[1]
