"""A merge on Spark: executors read, compare and stage; the driver decides conflicts and commits once."""
