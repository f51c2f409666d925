"""The service of tests/served_fastapi.py, but it leaves SIGTERM to uvicorn alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from .served_fastapi import app, host, tell


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with host:
        yield
    await asyncio.sleep(0.2)  # uvicorn does not wait for the requests that it has cancelled
    tell()


app.router.lifespan_context = lifespan
