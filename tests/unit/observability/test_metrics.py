from prometheus_client.parser import text_string_to_metric_families

from observability.metrics import MAX_SLACK_ERRORS, Metrics


def test_the_page_has_every_metric_with_its_help() -> None:
    metrics = Metrics()
    metrics.turns.labels(outcome="answered").inc()
    metrics.turn_seconds.labels(outcome="answered").observe(0.7)
    metrics.model_tokens.labels(phase="write", direction="in").inc(12)
    page, content_type = metrics.render()
    families = {family.name: family for family in text_string_to_metric_families(page.decode())}
    assert content_type.startswith("text/plain")
    assert all(family.documentation for family in families.values())
    assert families["orion_turns"].samples[0].labels == {"outcome": "answered"}
    assert {
        "orion_turns", "orion_turn_seconds", "orion_attempts", "orion_violations", "orion_model_calls",
        "orion_model_tokens", "orion_model_seconds", "orion_tool_calls", "orion_queue_messages", "orion_dead_letters",
        "orion_queue_wait_seconds", "orion_deliveries", "orion_slack_errors",
    } <= families.keys()  # fmt: skip


def test_the_page_counts_the_runs_of_the_background_sync() -> None:
    metrics = Metrics()
    metrics.count_sync("failed")
    assert b'orion_knowledge_syncs_total{how="failed"} 1.0' in metrics.render()[0]


def test_names_of_slack_errors_are_bounded() -> None:
    metrics = Metrics()
    for number in range(2 * MAX_SLACK_ERRORS):
        metrics.slack_error("chat.postMessage", f"error_{number}")
    metrics.slack_error("chat.postMessage", "error_1")
    metrics.slack_error("chat.postMessage", "Something <b>went</b> wrong: " + "x" * 500)
    (family,) = (each for each in metrics.registry.collect() if each.name == "orion_slack_errors")
    totals = {s.labels["error"]: s.value for s in family.samples if s.name.endswith("_total")}
    assert len(totals) == MAX_SLACK_ERRORS + 1
    assert (totals["error_1"], totals["other"]) == (2, MAX_SLACK_ERRORS + 1)


def test_two_sets_do_not_share_a_registry() -> None:
    one, two = Metrics(), Metrics()
    one.deliveries.labels(how="posted").inc()
    assert b'how="posted"' not in two.render()[0]
