"""A study over HTTP, and its live page. Needs the extra ``serve`` (Starlette and uvicorn)."""
