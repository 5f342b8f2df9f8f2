"""One real cluster of two processes for all tests of this room, and tables for it."""

import logging

import dask
import pytest

from distributed import Client, LocalCluster
from distributed_tables import Killer


@pytest.fixture(scope="session")
def client():
    dask.config.set({"distributed.admin.system-monitor.gil.enabled": False})
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0", silence_logs=logging.WARNING
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def two_workers(client):
    """Begin every test with both workers, also after one that killed some."""
    client.wait_for_workers(2, timeout=60)
    with client.as_current():
        yield


@pytest.fixture
def small_sample():
    """Leave the work to the passes over the table: the sample that they start from is a small part of it."""
    with dask.config.set({"mcode.sample-rows": 200}):
        yield


@pytest.fixture
def killer(client):
    return lambda stage: Killer(client, stage)
