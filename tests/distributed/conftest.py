"""One real cluster of two processes for all tests of this room, and tables for it."""

import logging

import dask
import pytest

from distributed import Client, LocalCluster
from distributed_tables import Killer


class Place:
    """A cluster of two worker processes, which is replaced when tests have killed more than it can bring back."""

    def __init__(self):
        dask.config.set({"distributed.admin.system-monitor.gil.enabled": False})
        self._open()

    def _open(self):
        self.cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0", silence_logs=logging.WARNING
        )
        self.client = Client(self.cluster)

    def close(self):
        self.client.close()
        self.cluster.close()

    def with_two_workers(self):
        try:
            self.client.wait_for_workers(2, timeout=20)
        except TimeoutError:
            self.close()
            self._open()
            self.client.wait_for_workers(2, timeout=60)
        return self.client


@pytest.fixture(scope="session")
def place():
    place = Place()
    yield place
    place.close()


@pytest.fixture
def client(place):
    """Begin every test with both workers, also after one that killed some."""
    return place.with_two_workers()


@pytest.fixture(autouse=True)
def current_client(client):
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
