"""A bulk load on Spark: executors read, check and stage; the driver decides and commits once."""
