"""Dashboards and alerts, described once in Python and written for Grafana and Prometheus.

A metric that no process has makes an empty panel and an alert that never fires, and nobody notices.
`tests/unit/monitoring` therefore reads every name out of the registries that our processes make,
and gives every query to promtool.
"""
