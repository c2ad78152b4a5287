"""The page where the dashboard's files are missing: how to build them, and where the API is."""

from __future__ import annotations

from typing import Final

PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>mpi-trainer</title></head>
<body>
<h1>The dashboard is not built</h1>
<p>This is a checkout of the source. Build the dashboard with <code>make dashboard</code>, which
needs Node.js 20.19 or newer, and reload this page. The released wheel has it built in.</p>
<p>The REST API is here all the same:</p>
<ul>
<li><a href="/api/openapi.json">The API's description (OpenAPI 3.1)</a></li>
<li><a href="/api/v1/jobs">Your jobs, as JSON</a></li>
</ul>
</body>
</html>
"""
