"""L1: the only importer of `lance`. Tables at exact versions, staged writes, their application, small objects."""

import os

# Lance writes its own warnings to the terminal; what a user must know comes from our errors and logs.
os.environ.setdefault("LANCE_LOG", "error")
