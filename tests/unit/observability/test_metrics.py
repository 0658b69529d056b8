from observability.metrics import MAX_SLACK_ERRORS, Metrics


def test_the_page_counts_the_runs_of_the_background_sync() -> None:
    metrics = Metrics()
    metrics.syncs.labels("failed").inc()
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
