"""L1: the only importer of `lance`. Tables at exact versions, staged writes, their application, small objects."""
