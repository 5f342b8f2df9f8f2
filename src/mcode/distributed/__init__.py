"""Tables larger than one machine: fit, audit and score on Dask. The only room that imports it.

`mcode.MCODE` and `mcode.audit` come here by themselves when they are given Dask's arrays or dataframes. For a folder of
Parquet files there are `open_folder`, and then `fit_folder`, `audit_folder` and `score_folder`.
"""

from mcode.distributed.audit import DistributedAudit, audit, audit_folder
from mcode.distributed.cluster import Cluster, ClusterError, connect
from mcode.distributed.deal import Deal
from mcode.distributed.fit import fit_folder
from mcode.distributed.folder import Folder, open_folder
from mcode.distributed.methods import call
from mcode.distributed.results import read_results
from mcode.distributed.score import score_folder

__all__ = [
    "Cluster",
    "ClusterError",
    "Deal",
    "DistributedAudit",
    "Folder",
    "audit",
    "audit_folder",
    "call",
    "connect",
    "fit_folder",
    "open_folder",
    "read_results",
    "score_folder",
]
