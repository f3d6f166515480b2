from storage.log_config import FOREVER, LogConfig


def test_defaults_are_kafkas():
    config = LogConfig()
    assert (config.segment_bytes, config.index_interval_bytes, config.segment_index_bytes) == (
        1 << 30,
        4096,
        10 << 20,
    )
    assert config.roll_ms == 604_800_000
    assert config.flush_messages == FOREVER
    assert config.deletes
    assert not config.compacted
    assert not config.log_append_time


def test_dotted_names_are_taken_and_foreign_ones_passed_over():
    config = LogConfig.from_kafka(
        {
            "segment.bytes": 14,
            "cleanup.policy": ["compact", "delete"],
            "remote.storage.enable": True,
            "segment.ms": None,
        }
    )
    assert config.segment_bytes == 14
    assert config.cleanup_policy == ("compact", "delete")
    assert config.segment_ms == 604_800_000


def test_a_compacted_log_rolls_at_its_maximum_lag():
    lag = {"max_compaction_lag_ms": 5, "segment_ms": 10}
    assert LogConfig(cleanup_policy=("compact",), **lag).roll_ms == 5
    assert LogConfig(**lag).roll_ms == 10


def test_rules_are_built_once():
    config = LogConfig(compression_type="zstd", compression_zstd_level=7, max_message_bytes=9,
                       message_timestamp_type="LogAppendTime", cleanup_policy=("compact",))  # fmt: skip
    rules = config.rules()
    assert rules is config.rules()
    assert (rules.compression, rules.compression_level, rules.max_message_bytes) == (4, 7, 9)
    assert rules.log_append_time
    assert rules.compacted
    assert LogConfig().rules().compression == -1
    assert LogConfig(compression_type="uncompressed").rules().compression == 0
