"""The data pipeline on Spark, driver side; the only room that imports pyspark."""
