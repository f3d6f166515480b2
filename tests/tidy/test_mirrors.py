"""Every module of the product has a test file of its name, in the mirrored folder below tests/unit.

Exempt are modules without behaviour (tables, ports, package files) and those that another suite proves;
the list says which.
"""

from __future__ import annotations

from pathlib import Path

from tests.tidy.sources import PRODUCT, ROOT, is_generated, name_of, python_files, report

TABLES = (
    "protocol/schema/defs/",  # compared field by field with Kafka's own schemas
    "broker/config/cluster_keys.py",  # these: compared with a running Kafka's keys in test_definitions
    "broker/config/coordination_keys.py",
    "broker/config/group_keys.py",
    "broker/config/log_keys.py",
    "broker/config/network_keys.py",
    "broker/config/own_keys.py",
    "broker/config/security_keys.py",
    "broker/config/topic_keys.py",
    "broker/config/docs/",
    "ottla/version.py",
)

PROVED_ELSEWHERE = {
    "broker/alone.py": "tests/unit/broker/test_server.py",
    "broker/cluster/auto_topics.py": "tests/cluster/test_requests.py",
    "broker/cluster/member.py": "tests/cluster/test_failures.py",
    "broker/cluster/services.py": "tests/cluster/test_requests.py",
    "broker/handlers/allocate_producer_ids.py": "tests/cluster/test_requests.py",
    "broker/handlers/alter_partition.py": "tests/cluster/test_requests.py",
    "broker/handlers/alter_partition_reassignments.py": "tests/cluster/test_requests.py",
    "broker/handlers/controlled_shutdown.py": "tests/cluster/test_requests.py",
    "broker/handlers/elect_leaders.py": "tests/cluster/test_requests.py",
    "broker/handlers/leader_and_isr.py": "tests/cluster/test_requests.py",
    "broker/handlers/list_partition_reassignments.py": "tests/cluster/test_requests.py",
    "broker/handlers/stop_replica.py": "tests/cluster/test_requests.py",
    "broker/handlers/update_metadata.py": "tests/cluster/test_requests.py",
    "broker/membership.py": "tests/cluster/test_failures.py",
    "replication/controller/door.py": "tests/cluster/test_requests.py",
    "broker/net/shape.py": "tests/unit/broker/net/test_connection.py",
    "broker/net/waits.py": "tests/unit/broker/net/test_connection.py",
    "coordinator/group/consumer/environment.py": "tests/unit/coordinator/group/consumer/test_groups.py",
    "coordinator/group/consumer/errors.py": "tests/unit/coordinator/group/consumer/test_checks.py",
    "coordinator/group/modern/ports.py": "tests/unit/coordinator/group/consumer/test_groups.py",
    "coordinator/group/offset_requests.py": "tests/unit/coordinator/group/test_manager.py",
    "coordinator/ports.py": "tests/unit/coordinator/test_runtime.py",
    "coordinator/shard.py": "tests/unit/coordinator/test_loader.py",
    "ottla/cli/cluster.py": "tests/tools/test_cluster.py",
    "ottla/cli/configs.py": "tests/tools/test_configs.py",
    "ottla/cli/console_consumer.py": "tests/tools/test_console.py",
    "ottla/cli/console_producer.py": "tests/tools/test_console.py",
    "ottla/cli/consumer_group_options.py": "tests/tools/test_consumer_groups.py",
    "ottla/cli/consumer_groups.py": "tests/tools/test_consumer_groups.py",
    "ottla/cli/controller_calls.py": "tests/tools/test_leader_election.py",
    "ottla/cli/delete_records.py": "tests/tools/test_delete_records.py",
    "ottla/cli/describe_groups.py": "tests/tools/test_consumer_groups.py",
    "ottla/cli/describe_topics.py": "tests/tools/test_topics.py",
    "ottla/cli/dump_log.py": "tests/tools/test_dump_log.py",
    "ottla/cli/feature_levels.py": "tests/tools/test_features.py",
    "ottla/cli/features.py": "tests/tools/test_features.py",
    "ottla/cli/get_offsets.py": "tests/tools/test_get_offsets.py",
    "ottla/cli/group_errors.py": "tests/tools/test_consumer_groups.py",
    "ottla/cli/group_options.py": "tests/tools/test_consumer_groups.py",
    "ottla/cli/leader_election.py": "tests/tools/test_leader_election.py",
    "ottla/cli/log_dirs.py": "tests/tools/test_log_dirs.py",
    "ottla/cli/reassign_partitions.py": "tests/tools/test_reassign_partitions.py",
    "ottla/cli/reassignment_cluster.py": "tests/tools/test_reassign_partitions.py",
    "ottla/cli/reassignment_file.py": "tests/tools/test_reassign_partitions.py",
    "ottla/cli/reset_offsets.py": "tests/tools/test_consumer_groups.py",
    "ottla/cli/share_group_options.py": "tests/tools/test_share_groups.py",
    "ottla/cli/share_groups.py": "tests/tools/test_share_groups.py",
    "ottla/groups/share_admin.py": "tests/tools/test_share_groups.py",
    "ottla/cli/spark.py": "tests/packaging/test_wheel.py",
    "ottla/cli/topics.py": "tests/tools/test_topics.py",
    "ottla/cli/transactions.py": "tests/tools/test_transactions.py",
    "ottla/transactions.py": "tests/tools/test_transactions.py",
    "ottla/cli/verify_log.py": "tests/tools/test_verify_log.py",
    "storage/producers/settings.py": "tests/unit/storage/producers/test_state.py",
    "storage/verify.py": "tests/tools/test_verify_log.py",
    "replication/share/ports.py": "tests/unit/broker/share/test_settings.py",
    "runtime/files.py": "tests/contract/test_file_system.py",
    "replication/cluster/channel.py": "tests/unit/broker/cluster/test_channels.py",
    "replication/metadata/store.py": "tests/contract/test_metadata_store.py",
    "replication/metadata/memory_store.py": "tests/contract/test_metadata_store.py",
    "replication/metadata/sqlite_store.py": "tests/contract/test_metadata_store.py",
    "replication/metadata/sqlite_tree.py": "tests/contract/test_metadata_store.py",
    "replication/metadata/shared_sqlite_session.py": "tests/contract/test_shared_sqlite.py",
    "replication/metadata/shared_sqlite_store.py": "tests/contract/test_shared_sqlite.py",
    "replication/metadata/zookeeper_session.py": "tests/contract/test_zookeeper_faults.py",
    "replication/metadata/zookeeper_store.py": "tests/contract/test_metadata_sessions.py",
    "replication/metadata/zookeeper_watches.py": "tests/contract/test_metadata_sessions.py",
}


def test_every_module_has_a_test_of_its_name() -> None:
    findings = []
    for path in python_files(PRODUCT):
        name = name_of(path)
        if path.name == "__init__.py" or name.startswith(TABLES) or is_generated(path):
            continue
        expected = PROVED_ELSEWHERE.get(name) or mirror_of(Path(name)).as_posix()
        if not (ROOT / expected).exists():
            findings.append(f"{name}: no {expected}")
    assert not findings, report(findings)


def test_every_unit_test_has_a_module_of_its_name() -> None:
    modules = {mirror_of(Path(name_of(path))).as_posix() for path in python_files((*PRODUCT, "spark_jobs"))}
    findings = [
        name_of(path)
        for path in python_files(("tests/unit",))
        if path.name.startswith("test_")
        and not path.stem.endswith("_machine")  # a state machine of hypothesis over several modules
        and name_of(path) not in modules
    ]
    assert not findings, report(findings)


def mirror_of(source: Path) -> Path:
    """storage/segment.py -> tests/unit/storage/test_segment.py; a package itself: test_<package>.py."""
    stem = source.parent.name if source.stem == "__init__" else source.stem
    return Path("tests/unit") / source.parent / f"test_{stem.strip('_')}.py"
