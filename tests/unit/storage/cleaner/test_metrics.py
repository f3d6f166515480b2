from storage.cleaner.metrics import MIB, CleanerMetrics, CleaningStats


def test_the_line_tells_rate_and_reduction() -> None:
    stats = CleaningStats(
        "t-0", 5, 100, map_bytes=10 * MIB, map_messages=100, map_seconds=1.0, map_utilization=0.125,
        start_bytes=20 * MIB, start_messages=200, end_bytes=5 * MIB, end_messages=100, seconds=4.0,
    )  # fmt: skip
    line = stats.line()
    assert "Cleaned log t-0 (dirty section [5, 100)): 20.0 MB in 4.0 s (5.0 MB/s)" in line
    assert "map 12.5% full" in line
    assert "75.0% smaller, 50.0% fewer messages" in line


def test_gauges_are_kafkas() -> None:
    metrics = CleanerMetrics({})
    assert metrics.max_clean_time_secs == metrics.max_buffer_utilization_percent == 0
    metrics.last[0] = CleaningStats(
        "a-0", 0, 1, start_bytes=100, end_bytes=30, seconds=2.5, map_utilization=0.5
    )
    metrics.last[1] = CleaningStats(
        "b-0", 0, 1, start_bytes=100, end_bytes=50, seconds=1.5, map_utilization=0.25
    )
    assert metrics.max_clean_time_secs == 2
    assert metrics.max_buffer_utilization_percent == 50
    assert metrics.cleaner_recopy_percent == 40
